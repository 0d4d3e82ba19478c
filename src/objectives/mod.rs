//! Objectives: what is minimised, as a function of model, batch and state.

pub mod contrastive_divergence;
pub mod energy_based;
mod jem;
mod jem_config;
mod nce;
mod reference;
pub mod score_matching;
mod softplus;

pub use jem::Jem;
pub use jem_config::{JemConfig, NegativeKind, terms};
pub use nce::{NoiseContrastive, WithNormaliser, nce_terms};
pub use reference::{DiagonalGaussian, Reference};

use burn::tensor::{Device, Tensor};

use crate::error::Result;
use crate::noise::Noise;
use crate::persist::Persist;

/// A loss with a memory, such as the chains that negatives come from.
///
/// The memory is an argument and a result, never hidden: the trainer carries it and checkpoints it. A model
/// comes in trainable (its tensors carry autodiff), and leaves as it was.
pub trait Objective<M, B> {
    /// The memory.
    type State: Persist;

    /// A memory with nothing learnt in it. Called again to forget everything after a divergence.
    ///
    /// # Errors
    /// Whatever the configuration of the parts does not allow.
    fn start(&self, noise: &mut Noise, device: &Device) -> Result<Self::State>;

    /// The loss of `model` on `batch`, and the memory after it.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Config`](crate::Error::Config) if the batch does not
    /// fit. Numbers that are not finite are no error here: they are in the terms, and the trainer's guard sees
    /// them.
    fn loss(
        &self,
        model: &M,
        batch: &B,
        state: Self::State,
        noise: &mut Noise,
    ) -> Result<(Loss, Self::State)>;
}

/// A loss to minimise, with named terms to look at.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::objectives::Loss;
/// let one = Tensor::<1>::ones([1], &Device::default());
/// let mut loss = Loss::new(one.clone());
/// loss.add_term("half", one.mul_scalar(0.5));
/// loss.add_count("samples", 3.0);
/// assert_eq!(loss.read(), [("half", 0.5), ("samples", 3.0), ("loss", 1.0)]);
/// ```
#[derive(Debug, Clone)]
pub struct Loss {
    total: Tensor<1>,
    terms: Vec<(&'static str, Tensor<1>)>,
    counts: Vec<(&'static str, f64)>,
}

impl Loss {
    /// The name under which the total is read.
    pub const TOTAL: &'static str = "loss";

    /// A loss without terms. `total` has one element.
    pub fn new(total: Tensor<1>) -> Self {
        Self { total, terms: Vec::new(), counts: Vec::new() }
    }

    /// Names a part of the loss, or any number of one element. It is detached, and stays on its device.
    pub fn add_term(&mut self, name: &'static str, value: Tensor<1>) {
        self.terms.push((name, value.without_autodiff()));
    }

    /// Names a number that is on the host already.
    pub fn add_count(&mut self, name: &'static str, value: f64) {
        self.counts.push((name, value));
    }

    /// What is minimised.
    pub fn total(&self) -> &Tensor<1> {
        &self.total
    }

    /// All numbers with their names: terms, counts, the total. One read from the device.
    pub fn read(&self) -> Vec<(&'static str, f64)> {
        let total = self.total.clone().without_autodiff();
        let on_device = self.terms.iter().map(|(_, value)| value.clone()).chain([total]).collect();
        let values: Vec<f64> = Tensor::cat(on_device, 0).into_data().iter::<f64>().collect();
        let mut numbers: Vec<_> = self.terms.iter().map(|(name, _)| *name).zip(values.clone()).collect();
        numbers.extend(self.counts.iter().copied());
        numbers.extend(values.last().map(|total| (Self::TOTAL, *total)));
        numbers
    }
}
