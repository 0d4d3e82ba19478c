//! Labelled images in memory, with the scaling that turns them into tensors.

use std::fmt;
use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};

use super::PixelRange;
use super::select;
use crate::error::{Error, Result, ensure};

/// Labelled images of one size: bytes, channel by channel and row by row, and a class for each.
///
/// Clones and parts share the pixels, so `subset`, `take_per_class` and the splits cost an index per image.
///
/// ```
/// use burn::tensor::Device;
/// use jem_core::data::{ImageSet, PixelRange};
///
/// // Two images of one channel, one row and three columns.
/// let set = ImageSet::new("tiny", vec![0, 51, 255, 255, 0, 0], [1, 1, 3], vec![0, 1], 2)?;
/// let batch = set.with_range(PixelRange::Unit).tensor(&[0], &Device::default())?;
/// assert_eq!(batch.dims(), [1, 1, 1, 3]);
/// assert_eq!(batch.into_data().try_to_vec::<f32>().unwrap(), [0.0, 0.2, 1.0]);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Clone)]
pub struct ImageSet {
    name: String,
    pixels: Arc<[u8]>,
    pub(super) rows: Arc<[usize]>, // which images of `pixels` this set consists of
    pub(super) labels: Arc<[usize]>,
    image_shape: [usize; 3],
    pub(super) num_classes: usize,
    pub(super) class_names: Option<Arc<[String]>>,
    range: PixelRange,
}

/// A training part and a test part.
#[derive(Debug, Clone)]
pub struct Split {
    /// What a model may learn from.
    pub train: ImageSet,
    /// What it is judged by.
    pub test: ImageSet,
}

impl ImageSet {
    /// Images whose bytes lie one after the other in `pixels`, each `[channels, height, width]`.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of bytes is not labels times image size; [`Error::Config`] if an extent
    /// or the number of classes is 0, or a label is not below the number of classes.
    pub fn new(
        name: impl Into<String>,
        pixels: impl Into<Arc<[u8]>>,
        image_shape: [usize; 3],
        labels: Vec<usize>,
        num_classes: usize,
    ) -> Result<Self> {
        let pixels = pixels.into();
        let size = image_shape.iter().try_fold(1usize, |product, extent| product.checked_mul(*extent));
        let size = size.filter(|size| *size > 0).ok_or_else(|| {
            Error::config("ImageSet.image_shape", format!("{image_shape:?}"), "three extents above 0")
        })?;
        ensure(num_classes > 0, "ImageSet.num_classes", num_classes, "above 0")?;
        if labels.len().checked_mul(size) != Some(pixels.len()) {
            let expected = format!("{} labels times {image_shape:?} bytes", labels.len());
            return Err(Error::shape("ImageSet.pixels", &[pixels.len()], expected));
        }
        select::check_labels("ImageSet", &labels, num_classes)?;
        Ok(Self {
            name: name.into(),
            pixels,
            rows: (0..labels.len()).collect(),
            labels: labels.into(),
            image_shape,
            num_classes,
            class_names: None,
            range: PixelRange::default(),
        })
    }

    /// The same images under another scaling.
    pub fn with_range(mut self, range: PixelRange) -> Self {
        self.range = range;
        self
    }

    /// The same images under another name.
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The same images with a name for each class.
    ///
    /// # Errors
    /// [`Error::Config`] unless there is one name per class.
    pub fn with_class_names<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Result<Self> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let allowed = format!("{} names, one per class", self.num_classes);
        ensure(names.len() == self.num_classes, "ImageSet.class_names", format!("{names:?}"), &allowed)?;
        self.class_names = Some(names.into());
        Ok(self)
    }

    /// What the set calls itself in messages and reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many images.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// `[channels, height, width]` of every image.
    pub fn image_shape(&self) -> [usize; 3] {
        self.image_shape
    }

    /// Bytes per image.
    pub fn image_size(&self) -> usize {
        self.image_shape.iter().product()
    }

    /// How many classes there may be; every label is below it.
    pub fn num_classes(&self) -> usize {
        self.num_classes
    }

    /// The names of the classes, if the source had any.
    pub fn class_names(&self) -> Option<&[String]> {
        self.class_names.as_deref()
    }

    /// The class of every image.
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }

    /// How many images there are of each class.
    pub fn class_counts(&self) -> Vec<usize> {
        select::by_class(&self.labels, self.num_classes).iter().map(Vec::len).collect()
    }

    /// The interval that tensors of this set lie in.
    pub fn range(&self) -> PixelRange {
        self.range
    }

    /// The bytes of the images at `indices`, one after the other; an index may come twice.
    ///
    /// # Errors
    /// [`Error::Config`] if an index is not below [`len`](Self::len).
    pub fn bytes(&self, indices: &[usize]) -> Result<Vec<u8>> {
        let size = self.image_size();
        let mut bytes = Vec::with_capacity(indices.len() * size);
        for &index in indices {
            let row = *self.rows.get(index).ok_or_else(|| self.no_such_image(index))?;
            bytes.extend_from_slice(&self.pixels[row * size..(row + 1) * size]);
        }
        Ok(bytes)
    }

    /// The images at `indices` as a batch, scaled to [`range`](Self::range).
    ///
    /// # Shapes
    /// `[indices, channels, height, width]`, in f32.
    ///
    /// # Errors
    /// [`Error::Config`] if an index is not below [`len`](Self::len), [`Error::Shape`] if there is no index.
    pub fn tensor(&self, indices: &[usize], device: &Device) -> Result<Tensor<4>> {
        self.tensor_of(&self.bytes(indices)?, device)
    }

    /// Every image as one batch.
    ///
    /// # Shapes
    /// `[len, channels, height, width]`.
    ///
    /// # Errors
    /// [`Error::Shape`] if the set is empty.
    pub fn all(&self, device: &Device) -> Result<Tensor<4>> {
        self.tensor(&(0..self.len()).collect::<Vec<_>>(), device)
    }

    /// All images in order, in batches of `size` (the last may be shorter), each with its labels: what
    /// evaluation reads. No augmentation, no noise.
    ///
    /// # Errors
    /// [`Error::Config`] if `size` is 0.
    pub fn batches<'a>(
        &'a self,
        size: usize,
        device: &'a Device,
    ) -> Result<impl ExactSizeIterator<Item = Result<(Tensor<4>, &'a [usize])>> + 'a> {
        ensure(size > 0, "ImageSet.batches.size", size, "above 0")?;
        Ok(self.labels.chunks(size).enumerate().map(move |(batch, labels)| {
            let first = batch * size;
            let indices: Vec<usize> = (first..first + labels.len()).collect();
            Ok((self.tensor(&indices, device)?, labels))
        }))
    }

    /// Planar bytes of whole images as a scaled batch.
    pub(crate) fn tensor_of(&self, bytes: &[u8], device: &Device) -> Result<Tensor<4>> {
        let [channels, height, width] = self.image_shape;
        let count = bytes.len() / self.image_size();
        if count == 0 {
            let found = [0, channels, height, width];
            return Err(Error::shape(format!("a batch of {}", self.name), &found, "at least one image"));
        }
        let values: Vec<f32> = bytes.iter().map(|&byte| self.range.scale(byte)).collect();
        Ok(Tensor::from_data(TensorData::new(values, [count, channels, height, width]), device))
    }

    pub(super) fn no_such_image(&self, index: usize) -> Error {
        Error::config(format!("index into {}", self.name), index, format!("below {}", self.len()))
    }
}

impl fmt::Debug for ImageSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImageSet")
            .field("name", &self.name)
            .field("len", &self.len())
            .field("image_shape", &self.image_shape)
            .field("num_classes", &self.num_classes)
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;

    /// n images of one channel and 2x3 whose bytes all equal their index, labels 0, 1, 2, 0, 1, …
    fn numbered(n: usize) -> ImageSet {
        let pixels: Vec<u8> = (0..n).flat_map(|i| [i as u8; 6]).collect();
        ImageSet::new("numbered", pixels, [1, 2, 3], (0..n).map(|i| i % 3).collect(), 3).unwrap()
    }

    #[test]
    fn tensors_are_scaled_once_and_come_back() {
        let set = ImageSet::new("x", vec![0, 255, 3, 9, 100, 200], [3, 1, 2], vec![0], 1).unwrap();
        for range in [PixelRange::Symmetric, PixelRange::Unit] {
            let set = set.clone().with_range(range);
            let all = set.all(&Device::flex()).unwrap();
            assert_eq!(all.dims(), [1, 3, 1, 2]);
            assert_eq!(all.clone().min().into_scalar::<f32>(), range.low());
            assert_eq!(all.clone().max().into_scalar::<f32>(), range.high());
            assert_eq!(range.to_bytes(all), set.bytes(&[0]).unwrap());
        }
    }

    #[test]
    fn batches_cover_the_set_in_order() {
        let (set, device) = (numbered(7), Device::flex());
        let batches: Vec<_> = set.batches(3, &device).unwrap().map(Result::unwrap).collect();
        assert_eq!(batches.iter().map(|(x, _)| x.dims()[0]).collect::<Vec<_>>(), [3, 3, 1]);
        assert_eq!(batches[2].1, [0]);
    }

    #[test]
    fn debug_output_does_not_list_the_pixels() {
        assert!(format!("{:?}", numbered(200)).len() < 200);
    }
}
