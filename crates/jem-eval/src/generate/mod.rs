//! Samples of a trained model, with a record of where each of them comes from.
//!
//! Figures on samples depend on which samples: those of a buffer as they lie there, those of lowest energy, those of
//! fresh chains, those that the model is sure of. Here that choice is an argument, and part of the result as a
//! [`SampleOrigin`]. Training state is read and copied, and never advanced; hand in `model.valid()` and a
//! [`Noise`](jem_core::noise::Noise) of the evaluation's own.

mod buffer;
mod chains;
mod confident;
mod origin;
mod wanted;

pub use buffer::{BufferChoice, FromBuffer, FromBufferConfig};
pub use chains::{continued, fresh_chains, newest_of_buffer};
pub use confident::confident;
pub use origin::{SampleOrigin, Source, Treatment};
pub use wanted::Wanted;

use burn::tensor::Tensor;

use jem_core::data::label_tensor;
use jem_core::noise::Stream;

/// Which slots of a buffer are looked at.
const GENERATION: Stream = Stream::new("generation");

/// Samples, all of them finite, and all that is known of them.
#[derive(Debug, Clone)]
pub struct Generated<const D: usize> {
    /// The samples, `[count, ..]`.
    pub samples: Tensor<D>,
    /// E(x) of each, or E(x, y) where it was made for a class.
    pub energies: Vec<f64>,
    /// The class that each was made for.
    pub labels: Option<Vec<usize>>,
    /// Where they come from.
    pub origin: SampleOrigin,
}

impl<const D: usize> Generated<D> {
    /// How many.
    pub fn len(&self) -> usize {
        self.energies.len()
    }

    /// Whether there are none; never so for what this module makes.
    pub fn is_empty(&self) -> bool {
        self.energies.is_empty()
    }
}

/// These rows of a tensor.
fn rows<const D: usize>(x: Tensor<D>, indices: &[usize]) -> Tensor<D> {
    let indices = label_tensor(indices, &x.device());
    x.select(0, indices)
}

/// These of a list.
fn chosen<T: Copy>(values: &[T], indices: &[usize]) -> Vec<T> {
    indices.iter().map(|index| values[*index]).collect()
}
