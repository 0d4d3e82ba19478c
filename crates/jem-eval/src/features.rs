//! Features of images, which distances between sets of images are measured in.

use burn::tensor::Tensor;
use nalgebra::DMatrix;

use super::checks::{finite, num_rows};
use jem_core::error::{Error, Result, ensure};
use jem_core::math::per_sample;

/// A network read as a map from images to features, such as the layer before the logits.
///
/// Distances between features mean what the features mean. Published Fréchet distances use Inception-v3's
/// pooling layer, and are comparable with no other.
///
/// # Shapes
/// `[batch, channels, height, width]` to `[batch, features]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_eval::{FeatureExtractor, Features};
///
/// /// Mean brightness of each channel.
/// struct Brightness;
/// impl FeatureExtractor for Brightness {
///     fn features(&self, images: Tensor<4>) -> Tensor<2> {
///         images.mean_dim(3).mean_dim(2).flatten(1, 3)
///     }
/// }
/// let images = Tensor::ones([5, 3, 8, 8], &Device::default());
/// let features = Features::extract(&Brightness, images, 2)?; // in batches of 2
/// assert_eq!((features.len(), features.dimension()), (5, 3));
/// assert_eq!(features.row(4), [1.0, 1.0, 1.0]);
/// # Ok::<(), jem_core::Error>(())
/// ```
pub trait FeatureExtractor {
    /// The features of a batch of images.
    fn features(&self, images: Tensor<4>) -> Tensor<2>;
}

impl<E: FeatureExtractor + ?Sized> FeatureExtractor for &E {
    fn features(&self, images: Tensor<4>) -> Tensor<2> {
        (**self).features(images)
    }
}

impl<E: FeatureExtractor + ?Sized> FeatureExtractor for Box<E> {
    fn features(&self, images: Tensor<4>) -> Tensor<2> {
        (**self).features(images)
    }
}

/// The pixels themselves as features.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pixels;

impl FeatureExtractor for Pixels {
    fn features(&self, images: Tensor<4>) -> Tensor<2> {
        per_sample(images)
    }
}

/// Features of one or more samples, on the host and in f64.
///
/// # Shapes
/// `[samples, dimension]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    columns: DMatrix<f64>, // a sample is a column, so that its features lie side by side
}

impl Features {
    /// Features that are at hand, sample after sample.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are one or more whole samples, [`Error::NonFinite`] for a NaN or an infinity.
    pub fn new<T: Copy + Into<f64>>(values: &[T], dimension: usize) -> Result<Self> {
        let samples = num_rows("features", values.len(), dimension)?;
        Ok(Self { columns: DMatrix::from_vec(dimension, samples, finite("features", values)?) })
    }

    /// Features from the device.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn from_tensor(features: Tensor<2>) -> Result<Self> {
        let [_, dimension] = features.dims();
        let values: Vec<f64> = features.into_data().iter::<f64>().collect();
        Self::new(&values, dimension)
    }

    /// The features of `images`, computed in batches of `batch_size`.
    ///
    /// Hand in a model without autodiff, `model.valid()`.
    ///
    /// # Shapes
    /// Images `[samples, channels, height, width]`.
    ///
    /// # Errors
    /// [`Error::Config`] if `batch_size` is 0, else those of [`extract_batches`](Self::extract_batches).
    pub fn extract<E: FeatureExtractor + ?Sized>(
        extractor: &E,
        images: Tensor<4>,
        batch_size: usize,
    ) -> Result<Self> {
        ensure(batch_size > 0, "Features.extract.batch_size", batch_size, "at least 1")?;
        let samples = images.dims()[0];
        let batches = (0..samples).step_by(batch_size).map(|start| {
            let end = (start + batch_size).min(samples);
            Ok(images.clone().narrow(0, start, end - start))
        });
        Self::extract_batches(extractor, batches)
    }

    /// The features of images that come in batches, as [`ImageSet::batches`](jem_core::data::ImageSet::batches)
    /// gives them.
    ///
    /// # Errors
    /// An error of a batch; [`Error::Shape`] if there is no image or the extractor does not give a row per image
    /// and rows of one length; [`Error::NonFinite`] for a NaN or an infinity.
    pub fn extract_batches<E: FeatureExtractor + ?Sized>(
        extractor: &E,
        batches: impl IntoIterator<Item = Result<Tensor<4>>>,
    ) -> Result<Self> {
        let mut values: Vec<f64> = Vec::new();
        let mut dimension = None;
        for (number, images) in batches.into_iter().enumerate() {
            let images = images?;
            let samples = images.dims()[0];
            let features = extractor.features(images);
            let [rows, columns] = features.dims();
            let expected_columns = *dimension.get_or_insert(columns);
            if [rows, columns] != [samples, expected_columns] {
                let expected = format!("[{samples}, {expected_columns}]: a row per image, of one length");
                return Err(Error::shape(format!("features of batch {number}"), &[rows, columns], expected));
            }
            values.extend(features.into_data().iter::<f64>());
        }
        match dimension {
            Some(dimension) => Self::new(&values, dimension),
            None => Err(Error::shape("images to extract features of", &[0], "at least one image")),
        }
    }

    /// How many samples, at least 1.
    #[allow(clippy::len_without_is_empty)] // there is always one
    pub fn len(&self) -> usize {
        self.columns.ncols()
    }

    /// How many features a sample has, at least 1.
    pub fn dimension(&self) -> usize {
        self.columns.nrows()
    }

    /// The features of a sample.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    pub fn row(&self, index: usize) -> &[f64] {
        assert!(index < self.len(), "sample {index} of {}", self.len());
        let start = index * self.dimension();
        &self.columns.as_slice()[start..start + self.dimension()]
    }

    /// The features of every sample in turn.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.columns.as_slice().chunks_exact(self.dimension())
    }

    /// `[dimension, samples]`.
    pub(super) fn columns(&self) -> &DMatrix<f64> {
        &self.columns
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::{Device, TensorData};

    fn numbered(samples: usize) -> Tensor<4> {
        let values: Vec<f32> = (0..samples * 4).map(|i| i as f32).collect();
        Tensor::from_data(TensorData::new(values, [samples, 1, 2, 2]), &Device::flex())
    }

    #[test]
    fn batches_make_no_difference() {
        let whole = Features::extract(&Pixels, numbered(5), 5).unwrap();
        assert_eq!(whole.row(4), [16.0, 17.0, 18.0, 19.0]);
        assert_eq!(whole.rows().len(), 5);
        let boxed: Box<dyn FeatureExtractor> = Box::new(Pixels);
        for batch_size in [1, 2, 100] {
            assert_eq!(Features::extract(&*boxed, numbered(5), batch_size).unwrap(), whole);
        }
    }

    struct Wrong(usize);
    impl FeatureExtractor for Wrong {
        fn features(&self, images: Tensor<4>) -> Tensor<2> {
            let rows = images.dims()[0];
            match self.0 {
                0 => Tensor::zeros([1, 3], &images.device()), // a row for all
                1 => Tensor::zeros([rows, rows], &images.device()), // the size of the batch
                _ => per_sample(images).div_scalar(0.0),
            }
        }
    }

    #[test]
    fn wrong_extractors_and_bad_batches_are_named() {
        let message = |kind| Features::extract(&Wrong(kind), numbered(3), 2).unwrap_err().to_string();
        assert!(message(0).starts_with("features of batch 0 has shape [1, 3], expected [2, 3]"));
        assert!(message(1).starts_with("features of batch 1 has shape [1, 1], expected [1, 2]"));
        assert!(message(2).starts_with("features[0] is not finite"));
        assert!(
            Features::extract(&Pixels, numbered(3), 0).unwrap_err().to_string().contains("batch_size = 0")
        );
        let none = Features::extract_batches(&Pixels, []).unwrap_err().to_string();
        assert!(none.starts_with("images to extract features of has shape [0]"));
        assert!(Features::new(&[1.0f32, 2.0, 3.0], 2).is_err() && Features::new(&[1.0f64], 0).is_err());
    }
}
