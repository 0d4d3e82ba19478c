//! What a joint model is trained on, and where batches come from.

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::error::Result;
use crate::noise::Noise;

/// Samples for p(x) and, drawn on their own, samples with labels for p(y|x).
///
/// # Shapes
/// `unlabelled` is `[unlabelled batch, ..]`, `labelled` `[labelled batch, ..]`, with as many `labels`.
#[derive(Debug, Clone)]
pub struct JointBatch<const D: usize> {
    /// Samples of p(x).
    pub unlabelled: Tensor<D>,
    /// Samples of p(x, y).
    pub labelled: Tensor<D>,
    /// The classes of `labelled`.
    pub labels: Vec<usize>,
}

impl<const D: usize> JointBatch<D> {
    /// The labels on the device of the labelled samples.
    ///
    /// # Shapes
    /// `[labelled batch]`.
    pub fn label_tensor(&self) -> Tensor<1, Int> {
        label_tensor(&self.labels, &self.labelled.device())
    }
}

/// Labels as a tensor.
///
/// # Shapes
/// `[labels]`.
pub fn label_tensor(labels: &[usize], device: &Device) -> Tensor<1, Int> {
    let values: Vec<i64> = labels.iter().map(|&label| label as i64).collect();
    Tensor::from_data(TensorData::new(values, [labels.len()]), device)
}

/// Where a trainer gets its batches.
///
/// A batch is a function of the iteration and of the noise alone, so that a run which continues from a saved
/// [`Noise`] needs to save nothing of its source. An implementation may remember what it could compute again.
///
/// ```
/// use jem_core::Result;
/// use jem_core::data::BatchSource;
/// use jem_core::noise::{Noise, Stream};
/// use rand::RngExt;
///
/// /// Batches that are one number each.
/// struct Numbers;
/// impl BatchSource<f64> for Numbers {
///     fn batches_per_epoch(&self) -> u64 { 10 }
///     fn batch(&mut self, iteration: u64, noise: &mut Noise) -> Result<f64> {
///         Ok(noise.derived(Stream::DATA, iteration).random())
///     }
/// }
/// let mut noise = Noise::host(1);
/// assert_eq!(Numbers.batch(3, &mut noise)?, Numbers.batch(3, &mut noise)?);
/// # Ok::<(), jem_core::Error>(())
/// ```
pub trait BatchSource<B> {
    /// How many iterations make up an epoch; at least 1.
    fn batches_per_epoch(&self) -> u64;

    /// The batch of an iteration, counted from 0 over all epochs.
    fn batch(&mut self, iteration: u64, noise: &mut Noise) -> Result<B>;
}

impl<B, S: BatchSource<B> + ?Sized> BatchSource<B> for &mut S {
    fn batches_per_epoch(&self) -> u64 {
        (**self).batches_per_epoch()
    }
    fn batch(&mut self, iteration: u64, noise: &mut Noise) -> Result<B> {
        (**self).batch(iteration, noise)
    }
}

impl<B, S: BatchSource<B> + ?Sized> BatchSource<B> for Box<S> {
    fn batches_per_epoch(&self) -> u64 {
        (**self).batches_per_epoch()
    }
    fn batch(&mut self, iteration: u64, noise: &mut Noise) -> Result<B> {
        (**self).batch(iteration, noise)
    }
}
