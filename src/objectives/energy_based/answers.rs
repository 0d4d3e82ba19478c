//! What a loss sees of a model, the energies of a few answers, and the trait of what finds them.

use burn::tensor::Tensor;

use super::EblLoss;
use crate::error::{Error, Result};
use crate::noise::Noise;

/// The energies of one batch that losses are made of.
///
/// # Shapes
/// Each `[batch]`.
#[derive(Debug, Clone)]
pub struct AnswerEnergies {
    /// E_C, of the correct answer.
    pub correct: Tensor<1>,
    /// E_I, of the most offending incorrect answer.
    pub offending: Tensor<1>,
    /// min_Y E over all answers, the correct one among them. Some losses need it.
    pub lowest: Option<Tensor<1>>,
    /// -(1/β) log Σ_Y exp(-β E) at the β of the loss. Some losses need it.
    pub free_energy: Option<Tensor<1>>,
}

impl AnswerEnergies {
    /// E_C and E_I alone.
    pub fn new(correct: Tensor<1>, offending: Tensor<1>) -> Self {
        Self { correct, offending, lowest: None, free_energy: None }
    }

    /// With min_Y E.
    pub fn with_lowest(mut self, lowest: Tensor<1>) -> Self {
        self.lowest = Some(lowest);
        self
    }

    /// With the free energy.
    pub fn with_free_energy(mut self, free_energy: Tensor<1>) -> Self {
        self.free_energy = Some(free_energy);
        self
    }

    pub(super) fn need_lowest(&self, loss: &EblLoss) -> Result<Tensor<1>> {
        let missing = || Error::config("EblLoss", loss.name(), "a loss that does without the lowest energy");
        self.lowest.clone().ok_or_else(missing)
    }

    pub(super) fn need_free_energy(&self, loss: &EblLoss) -> Result<Tensor<1>> {
        let allowed = "a loss that does without the free energy, which these answers do not have";
        self.free_energy.clone().ok_or_else(|| Error::config("EblLoss", loss.name(), allowed))
    }
}

/// A set of answers, and the inference in it: from a model and a batch to the energies that a loss needs.
///
/// The four that are here cover classes, candidates, continuous answers and chains; another structure (a tree,
/// a matching) is one more implementation.
pub trait AnswerSet<M, B> {
    /// The energies of a trainable model on a batch, with gradients to its parameters. `loss` tells which of
    /// them are needed, and at which β.
    ///
    /// # Errors
    /// If the batch does not fit, or the set cannot give what the loss needs.
    fn energies(&self, model: &M, batch: &B, loss: &EblLoss, noise: &mut Noise) -> Result<AnswerEnergies>;
}
