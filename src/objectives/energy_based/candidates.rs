//! Answers that are a list: a finite set, or a grid over a continuous one.

use burn::module::Module;
use burn::tensor::Tensor;

use super::{AnswerEnergies, AnswerSet, EblLoss};
use crate::error::{Error, Result, ensure_not_negative};
use crate::inference::{EnergyTable, PairEnergy};
use crate::math::per_sample;
use crate::noise::Noise;

/// Inputs with their correct answers.
///
/// # Shapes
/// `x` is `[batch, ..]`, `y` `[batch, ..]`.
#[derive(Debug, Clone)]
pub struct PairBatch<const X: usize, const Y: usize> {
    /// The inputs.
    pub x: Tensor<X>,
    /// The correct answer of each.
    pub y: Tensor<Y>,
}

impl<const X: usize, const Y: usize> PairBatch<X, Y> {
    pub(super) fn check(&self) -> Result<()> {
        let (x, y) = (self.x.dims(), self.y.dims());
        if x[0] == 0 || x[0] != y[0] {
            return Err(Error::shape("PairBatch.y", &y, format!("as many answers as inputs, {}", x[0])));
        }
        Ok(())
    }
}

/// A list of candidate answers, the same for every input. One is incorrect if its distance from the correct
/// answer is above ε.
///
/// For a finite set the list holds every answer, and ε = 0. For a continuous one it is a grid that covers it: the
/// sum of the free energy is then a Riemann sum without its factor, the width of a cell, which moves the
/// negative log-likelihood by a constant and makes the minimum empirical error the chance to miss the cell.
/// The lowest energy counts the correct answer itself in.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::objectives::energy_based::{Candidates, EblLoss, EnergyBased};
///
/// let grid = Tensor::<2>::from_floats([[-1.0], [-0.5], [0.0], [0.5], [1.0]], &Device::default());
/// let objective = EnergyBased::new(EblLoss::Log, Candidates::new(grid, 0.3)?)?;
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Candidates<const Y: usize> {
    answers: Tensor<Y>,
    epsilon: f64,
}

impl<const Y: usize> Candidates<Y> {
    /// The candidates `answers`, incorrect at distances (in L2) above `epsilon`.
    ///
    /// # Shapes
    /// `[candidates, ..]`.
    ///
    /// # Errors
    /// [`Error::Shape`] for fewer than two candidates, [`Error::Config`] if ε is negative or not finite.
    pub fn new(answers: Tensor<Y>, epsilon: f64) -> Result<Self> {
        if answers.dims()[0] < 2 {
            return Err(Error::shape("Candidates.answers", &answers.dims(), "2 candidates at least"));
        }
        ensure_not_negative("Candidates.epsilon", epsilon)?;
        Ok(Self { answers: answers.without_autodiff(), epsilon })
    }

    /// The candidates.
    pub fn answers(&self) -> &Tensor<Y> {
        &self.answers
    }

    /// The distance of each answer of a batch from each candidate, `[batch, candidates]`.
    fn distances(&self, y: Tensor<Y>) -> Result<Tensor<2>> {
        if y.dims()[1..] != self.answers.dims()[1..] {
            let expected = format!("answers shaped as the candidates, {:?}", self.answers.dims());
            return Err(Error::shape("PairBatch.y", &y.dims(), expected));
        }
        let (y, answers) = (per_sample(y.without_autodiff()), per_sample(self.answers.clone()));
        let difference = y.unsqueeze_dim::<3>(1) - answers.unsqueeze_dim(0);
        Ok(difference.square().sum_dim(2).sqrt().squeeze_dim(2))
    }
}

impl<M, const X: usize, const Y: usize> AnswerSet<M, PairBatch<X, Y>> for Candidates<Y>
where
    M: Module + PairEnergy<X, Y>,
{
    fn energies(
        &self,
        model: &M,
        batch: &PairBatch<X, Y>,
        loss: &EblLoss,
        _noise: &mut Noise,
    ) -> Result<AnswerEnergies> {
        batch.check()?;
        let distances = self.distances(batch.y.clone())?;
        let (x, y) = (batch.x.clone().autodiff(), batch.y.clone().autodiff());
        let table = EnergyTable::of_candidates(model, x.clone(), self.answers.clone().autodiff())?;
        let correct = model.pair_energy(x, y);
        let offending = table.most_offending_beyond(distances, self.epsilon)?.energy;
        let mut energies = AnswerEnergies::new(correct.clone(), offending);
        if loss.needs_lowest() {
            let all = Tensor::cat(vec![correct.unsqueeze_dim(1), table.energies().clone()], 1);
            energies = energies.with_lowest(EnergyTable::new(all)?.lowest().energy);
        }
        if let Some(inverse_temperature) = loss.inverse_temperature() {
            energies = energies.with_free_energy(table.free_energy(inverse_temperature)?);
        }
        Ok(energies)
    }
}
