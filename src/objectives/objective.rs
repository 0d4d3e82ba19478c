//! The trait of all objectives: a loss with a memory, as a function of model, batch and memory.

use burn::tensor::Device;

use super::Loss;
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
