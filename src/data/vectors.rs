//! Labelled vectors in memory: points of the plane, features, anything that is not an image.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};

use super::select;
use crate::error::{Error, Result, ensure};

/// Labelled vectors of one length.
///
/// ```
/// use burn::tensor::Device;
/// use jem_core::data::VectorSet;
/// let set = VectorSet::new("two points", vec![0.0, 1.0, 2.0, 3.0], 2, vec![0, 1], 2)?;
/// assert_eq!(set.tensor(&[1], &Device::default())?.into_data().try_to_vec::<f32>().unwrap(), [2.0, 3.0]);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct VectorSet {
    name: String,
    values: Arc<[f32]>,
    dimension: usize,
    labels: Arc<[usize]>,
    num_classes: usize,
}

impl VectorSet {
    /// Vectors that lie one after the other in `values`.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are not `dimension` values per label; [`Error::Config`] if the dimension or
    /// the number of classes is 0 or a label is not below the latter; [`Error::NonFinite`] for such a value.
    pub fn new(
        name: impl Into<String>,
        values: impl Into<Arc<[f32]>>,
        dimension: usize,
        labels: Vec<usize>,
        num_classes: usize,
    ) -> Result<Self> {
        let values = values.into();
        ensure(dimension > 0, "VectorSet.dimension", dimension, "above 0")?;
        ensure(num_classes > 0, "VectorSet.num_classes", num_classes, "above 0")?;
        if labels.len().checked_mul(dimension) != Some(values.len()) {
            let expected = format!("{} labels times {dimension}", labels.len());
            return Err(Error::shape("VectorSet.values", &[values.len()], expected));
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let what = format!("VectorSet.values[{at}]");
            return Err(Error::NonFinite { what, value: values[at].into() });
        }
        select::check_labels("VectorSet", &labels, num_classes)?;
        Ok(Self { name: name.into(), values, dimension, labels: labels.into(), num_classes })
    }

    /// What the set calls itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many vectors.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The length of each vector.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// How many classes there may be; every label is below it.
    pub fn num_classes(&self) -> usize {
        self.num_classes
    }

    /// The class of every vector.
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }

    /// All values, vector by vector.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The vectors at `indices`.
    ///
    /// # Shapes
    /// `[indices, dimension]`.
    ///
    /// # Errors
    /// [`Error::Config`] if an index is not below [`len`](Self::len), [`Error::Shape`] if there is no index.
    pub fn tensor(&self, indices: &[usize], device: &Device) -> Result<Tensor<2>> {
        if indices.is_empty() {
            let what = format!("a batch of {}", self.name);
            return Err(Error::shape(what, &[0, self.dimension], "at least one vector"));
        }
        let mut values = Vec::with_capacity(indices.len() * self.dimension);
        for &index in indices {
            let field = || format!("index into {}", self.name);
            let missing = || Error::config(field(), index, format!("below {}", self.len()));
            let vector = self.values.chunks_exact(self.dimension).nth(index).ok_or_else(missing)?;
            values.extend_from_slice(vector);
        }
        Ok(Tensor::from_data(TensorData::new(values, [indices.len(), self.dimension]), device))
    }

    /// Share `rank` of `of`: every `of`-th vector, the same number for each, the last few left out.
    ///
    /// # Errors
    /// [`Error::Config`] unless `rank` is below `of`.
    pub fn share(&self, rank: usize, of: usize) -> Result<Self> {
        let chosen = select::share("VectorSet", self.len(), rank, of)?;
        let row = |index: usize| &self.values[index * self.dimension..(index + 1) * self.dimension];
        Ok(Self {
            values: chosen.iter().flat_map(|&index| row(index)).copied().collect(),
            labels: chosen.iter().map(|&index| self.labels[index]).collect(),
            ..self.clone()
        })
    }

    /// Every vector as one batch.
    ///
    /// # Shapes
    /// `[len, dimension]`.
    ///
    /// # Errors
    /// [`Error::Shape`] if the set is empty.
    pub fn all(&self, device: &Device) -> Result<Tensor<2>> {
        self.tensor(&(0..self.len()).collect::<Vec<_>>(), device)
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;

    #[test]
    fn bad_sets_and_indices_are_refused() {
        let new = |values: Vec<f32>, dimension, labels| VectorSet::new("x", values, dimension, labels, 2);
        assert!(new(vec![0.0; 3], 2, vec![0]).unwrap_err().to_string().contains("1 labels times 2"));
        assert!(new(vec![0.0; 2], 0, vec![0]).is_err());
        assert!(new(vec![0.0; 2], 2, vec![2]).unwrap_err().to_string().contains("VectorSet.labels[0] = 2"));
        assert!(new(vec![0.0, f32::NAN], 2, vec![0]).unwrap_err().to_string().contains("values[1]"));
        let set = new(vec![0.0; 4], 2, vec![0, 1]).unwrap();
        assert!(set.tensor(&[2], &Device::flex()).is_err());
        assert!(set.tensor(&[], &Device::flex()).is_err());
        assert_eq!(set.all(&Device::flex()).unwrap().dims(), [2, 2]);
    }

    #[test]
    fn a_share_has_every_so_manyth_vector_with_its_label() {
        let values: Vec<f32> = (0..10).map(|value| value as f32).collect();
        let set = VectorSet::new("x", values, 2, vec![0, 1, 2, 3, 4], 5).unwrap();
        let share = set.share(1, 2).unwrap();
        assert_eq!((share.values(), share.labels()), (&[2.0, 3.0, 6.0, 7.0][..], &[1, 3][..]));
        assert!(set.share(2, 2).is_err() && set.share(0, 0).is_err());
    }
}
