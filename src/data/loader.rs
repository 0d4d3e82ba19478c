//! Batches for joint training: one loader for p(x), one for labels, each with its own order.

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::order::Order;
use super::{Augmentation, BatchSource, Examples, ImageSet, JointBatch, LastBatch, VectorSet};
use crate::error::Result;
use crate::noise::{Noise, Stream};

/// The order of labelled examples, independent of [`Stream::ORDER`], that of the p(x) set.
const LABELLED_ORDER: Stream = Stream::new("order/labelled");

/// How a [`Loader`] makes batches.
///
/// ```
/// use jem_core::data::{Augmentation, LoaderConfig};
/// let config = LoaderConfig::new(64).with_labelled_batch(32).with_augmentation(Augmentation::reference());
/// assert_eq!((config.unlabelled_batch, config.labelled_batch), (64, 32));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoaderConfig {
    /// Samples of p(x) per batch: 64.
    pub unlabelled_batch: usize,
    /// Labelled samples per batch: 64.
    pub labelled_batch: usize,
    /// What becomes of the examples that do not fill a batch; dropped.
    pub last_batch: LastBatch,
    /// Augmentation of the samples of p(x); none.
    pub unlabelled_augmentation: Augmentation,
    /// Augmentation of the labelled samples; none.
    pub labelled_augmentation: Augmentation,
}

impl LoaderConfig {
    /// Batches of `size` of either kind, full and not augmented.
    pub fn new(size: usize) -> Self {
        Self {
            unlabelled_batch: size,
            labelled_batch: size,
            last_batch: LastBatch::Drop,
            unlabelled_augmentation: Augmentation::none(),
            labelled_augmentation: Augmentation::none(),
        }
    }

    /// Another number of samples of p(x) per batch.
    pub fn with_unlabelled_batch(mut self, size: usize) -> Self {
        self.unlabelled_batch = size;
        self
    }

    /// Another number of labelled samples per batch.
    pub fn with_labelled_batch(mut self, size: usize) -> Self {
        self.labelled_batch = size;
        self
    }

    /// Another end of an epoch, for both kinds.
    pub fn with_last_batch(mut self, last_batch: LastBatch) -> Self {
        self.last_batch = last_batch;
        self
    }

    /// The same augmentation for both kinds.
    pub fn with_augmentation(mut self, augmentation: Augmentation) -> Self {
        self.unlabelled_augmentation = augmentation;
        self.labelled_augmentation = augmentation;
        self
    }

    /// Another augmentation of the samples of p(x).
    pub fn with_unlabelled_augmentation(mut self, augmentation: Augmentation) -> Self {
        self.unlabelled_augmentation = augmentation;
        self
    }

    /// Another augmentation of the labelled samples.
    pub fn with_labelled_augmentation(mut self, augmentation: Augmentation) -> Self {
        self.labelled_augmentation = augmentation;
        self
    }
}

impl Default for LoaderConfig {
    fn default() -> Self {
        Self::new(64)
    }
}

/// Joint batches from a set for p(x) and a set with labels, which may be the same or a few labelled examples.
///
/// Each set has a permutation of its own for each of its own epochs; an epoch of the loader is one pass over
/// the p(x) set. The labels of that set are not looked at.
///
/// ```
/// use burn::tensor::Device;
/// use jem_core::data::{BatchSource, ImageLoader, LoaderConfig};
/// use jem_data::digits;
/// use jem_core::noise::Noise;
///
/// let train = digits::digits()?.train;
/// let labelled = train.take_per_class(10)?; // semi-supervised: 10 labels a class
/// let config = LoaderConfig::new(32).with_labelled_batch(16);
/// let mut loader = ImageLoader::new(train, labelled, &config, &Device::default())?;
/// let batch = loader.batch(0, &mut Noise::host(1))?;
/// assert_eq!(batch.unlabelled.dims(), [32, 1, 8, 8]);
/// assert_eq!(batch.labels.len(), 16);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Loader<S> {
    unlabelled: S,
    labelled: S,
    unlabelled_order: Order,
    labelled_order: Order,
    unlabelled_augmentation: Augmentation,
    labelled_augmentation: Augmentation,
    device: Device,
}

/// A [`Loader`] of images, whose batches are `JointBatch<4>`.
pub type ImageLoader = Loader<ImageSet>;
/// A [`Loader`] of vectors, whose batches are `JointBatch<2>`.
pub type VectorLoader = Loader<VectorSet>;

impl<S> Loader<S> {
    /// A loader that puts batches on `device`.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if a set is empty, a batch size is 0 or larger than its set while short batches are
    /// dropped, an augmentation does not suit the examples, or the two sets differ in range;
    /// [`Error::Shape`](crate::Error::Shape) if they differ in shape.
    pub fn new<const D: usize>(
        unlabelled: S,
        labelled: S,
        config: &LoaderConfig,
        device: &Device,
    ) -> Result<Self>
    where
        S: Examples<D>,
    {
        unlabelled.check_same_kind(&labelled)?;
        unlabelled.check(&config.unlabelled_augmentation)?;
        labelled.check(&config.labelled_augmentation)?;
        let order = |set: &S, field, size, stream| {
            Order::new(set.name(), set.labels().len(), field, size, config.last_batch, stream)
        };
        let field = ["LoaderConfig.unlabelled_batch", "LoaderConfig.labelled_batch"];
        Ok(Self {
            unlabelled_order: order(&unlabelled, field[0], config.unlabelled_batch, Stream::ORDER)?,
            labelled_order: order(&labelled, field[1], config.labelled_batch, LABELLED_ORDER)?,
            unlabelled_augmentation: config.unlabelled_augmentation,
            labelled_augmentation: config.labelled_augmentation,
            device: device.clone(),
            unlabelled,
            labelled,
        })
    }

    /// The set for p(x).
    pub fn unlabelled(&self) -> &S {
        &self.unlabelled
    }

    /// The set with labels.
    pub fn labelled(&self) -> &S {
        &self.labelled
    }
}

impl<const D: usize, S: Examples<D>> BatchSource<JointBatch<D>> for Loader<S> {
    fn batches_per_epoch(&self) -> u64 {
        self.unlabelled_order.batches_per_epoch()
    }

    fn batch(&mut self, iteration: u64, noise: &mut Noise) -> Result<JointBatch<D>> {
        let indices = self.unlabelled_order.indices(iteration, noise);
        let augmentation = &self.unlabelled_augmentation;
        let unlabelled = self.unlabelled.augmented(indices, augmentation, noise, &self.device)?;
        let indices = self.labelled_order.indices(iteration, noise);
        let labels = indices.iter().map(|&index| self.labelled.labels()[index]).collect();
        let augmentation = &self.labelled_augmentation;
        let labelled = self.labelled.augmented(indices, augmentation, noise, &self.device)?;
        Ok(JointBatch { unlabelled, labelled, labels })
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::data::PixelRange;
    use burn::tensor::Tensor;

    /// n images of one byte that equals their index; labels are the index modulo 10.
    fn numbered(n: usize) -> ImageSet {
        let labels = (0..n).map(|i| i % 10).collect();
        ImageSet::new("numbered", (0..n as u8).collect::<Vec<_>>(), [1, 1, 1], labels, 10).unwrap()
    }

    fn loader(config: &LoaderConfig) -> ImageLoader {
        ImageLoader::new(numbered(100), numbered(20), config, &Device::flex()).unwrap()
    }

    fn bytes(x: &Tensor<4>) -> Vec<u8> {
        PixelRange::Symmetric.to_bytes(x.clone())
    }

    #[test]
    fn labels_belong_to_the_labelled_images_and_the_orders_differ() {
        let mut loader = loader(&LoaderConfig::new(10));
        let noise = &mut Noise::host(1);
        let mut seen = Vec::new();
        for iteration in 0..2 {
            let batch = loader.batch(iteration, noise).unwrap();
            let labelled = bytes(&batch.labelled);
            for (byte, label) in labelled.iter().zip(&batch.labels) {
                assert_eq!(usize::from(*byte) % 10, *label);
            }
            let labels: Vec<i64> = batch.label_tensor().into_data().iter().collect();
            assert_eq!(labels, batch.labels.iter().map(|&label| label as i64).collect::<Vec<_>>());
            assert_ne!(bytes(&batch.unlabelled), labelled);
            seen.extend(labelled);
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..20).collect::<Vec<u8>>()); // one epoch of the labelled set
        assert_eq!(loader.batches_per_epoch(), 10);
    }

    #[test]
    fn one_set_in_both_places_has_two_orders() {
        let config = LoaderConfig::new(50);
        let mut loader = ImageLoader::new(numbered(50), numbered(50), &config, &Device::flex()).unwrap();
        let batch = loader.batch(0, &mut Noise::host(1)).unwrap();
        assert_ne!(bytes(&batch.unlabelled), bytes(&batch.labelled));
    }

    #[test]
    fn a_resumed_run_continues_bit_for_bit_without_loader_state() {
        let config = LoaderConfig::new(7)
            .with_augmentation(Augmentation::reference().with_padding(0))
            .with_last_batch(LastBatch::Keep);
        let (mut whole, noise) = (loader(&config), &mut Noise::host(3));
        for iteration in 0..20 {
            whole.batch(iteration, noise).unwrap();
        }
        let saved = serde_json::to_string(&noise).unwrap();
        let mut resumed_noise: Noise = serde_json::from_str(&saved).unwrap();
        let mut resumed = loader(&config);
        for iteration in 20..40 {
            let (a, b) = (
                whole.batch(iteration, noise).unwrap(),
                resumed.batch(iteration, &mut resumed_noise).unwrap(),
            );
            assert_eq!(a.unlabelled.to_data(), b.unlabelled.to_data());
            assert_eq!(a.labelled.to_data(), b.labelled.to_data());
            assert_eq!(a.labels, b.labels);
        }
    }

    #[test]
    fn noise_has_the_deviation_asked_for() {
        let set = ImageSet::new("grey", vec![128; 64 * 64], [1, 64, 64], vec![0], 1).unwrap();
        let config = LoaderConfig::new(1).with_unlabelled_augmentation(Augmentation::none().with_noise(0.1));
        let mut loader = ImageLoader::new(set.clone(), set, &config, &Device::flex()).unwrap();
        let batch = loader.batch(0, &mut Noise::host(1)).unwrap();
        let deviation = (batch.unlabelled - batch.labelled).square().mean().into_scalar::<f32>().sqrt();
        assert!((deviation - 0.1).abs() < 5.0 * 0.1 / (2.0 * 4096f32).sqrt(), "{deviation}"); // 5 standard errors
    }

    #[test]
    fn vectors_load_like_images() {
        let set = VectorSet::new("v", vec![1.0, 2.0, 3.0, 4.0], 2, vec![0, 1], 2).unwrap();
        let config = LoaderConfig::new(2);
        let mut loader = VectorLoader::new(set.clone(), set.clone(), &config, &Device::flex()).unwrap();
        let batch = loader.batch(0, &mut Noise::host(1)).unwrap();
        assert_eq!(batch.unlabelled.dims(), [2, 2]);
        let flips = config.with_augmentation(Augmentation::reference());
        assert!(VectorLoader::new(set.clone(), set, &flips, &Device::flex()).is_err());
    }

    #[test]
    fn sets_that_do_not_match_are_refused() {
        let config = LoaderConfig::new(2);
        let unit = numbered(5).with_range(PixelRange::Unit);
        let error = ImageLoader::new(numbered(5), unit, &config, &Device::flex()).unwrap_err();
        assert!(error.to_string().contains("range of numbered = Unit"), "{error}");
        let wide = ImageSet::new("wide", vec![0; 4], [1, 1, 2], vec![0, 1], 2).unwrap();
        let error = ImageLoader::new(numbered(5), wide, &config, &Device::flex()).unwrap_err();
        assert!(error.to_string().contains("images of wide has shape [1, 1, 2]"), "{error}");
    }
}
