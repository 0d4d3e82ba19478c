//! Labellings of a chain: an energy per position and label, and one per pair of neighbours.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};

use crate::error::{Error, Result, ensure};

/// A model that gives every input a [`Chain`]: unary energies by a network, pairwise ones by a parameter, say.
///
/// # Shapes
/// `[batch, ..]` to a chain of as many sequences.
pub trait ChainEnergy<const X: usize> {
    /// The energies of all labellings of every input.
    ///
    /// # Errors
    /// Those of [`Chain::new`].
    fn chain(&self, x: Tensor<X>) -> Result<Chain>;
}

impl<const X: usize, M: ChainEnergy<X> + ?Sized> ChainEnergy<X> for &M {
    fn chain(&self, x: Tensor<X>) -> Result<Chain> {
        (**self).chain(x)
    }
}

/// The energies of all labellings y_1 .. y_T of a batch of sequences:
///
/// ```text
/// E(y) = Σ_t U[t, y_t] + Σ_{t > 1} V[y_{t-1}, y_t]
/// ```
///
/// V is one matrix for all places, or one for each pair of neighbours. [`lowest`](Self::lowest) and
/// [`most_offending`](Self::most_offending) are min-sum (Viterbi) on the host in double precision;
/// [`energy`](Self::energy) and [`free_energy`](Self::free_energy) stay on the device and carry gradients.
///
/// # Shapes
/// U is `[batch, length, labels]`, V `[labels, labels]` or `[length - 1, labels, labels]`, from the label of a
/// position to that of the next.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::inference::Chain;
///
/// let device = Device::default();
/// // Each position on its own prefers 0, 1, 0; a change of label costs 1.
/// let unary = Tensor::from_floats([[[0.0, 0.6], [0.6, 0.0], [0.0, 0.6]]], &device);
/// let chain = Chain::new(unary, Tensor::from_floats([[0.0, 1.0], [1.0, 0.0]], &device))?;
/// let best = chain.lowest();
/// assert_eq!(best[0].labels, [0, 0, 0]);
/// assert!((best[0].energy - 0.6).abs() < 1e-6);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: LeCun et al. 2006, sections 5 and 6.
#[derive(Debug, Clone)]
pub struct Chain {
    pub(super) unary: Tensor<3>,
    /// `[1, labels, labels]` where all places share it.
    pub(super) pairwise: Tensor<3>,
    pub(super) lengths: Vec<usize>,
}

impl Chain {
    /// Chains with one pairwise matrix.
    ///
    /// # Errors
    /// [`Error::Shape`] if an extent is 0 or the matrix is not `[labels, labels]`.
    pub fn new(unary: Tensor<3>, pairwise: Tensor<2>) -> Result<Self> {
        let [_, _, labels] = unary.dims();
        if pairwise.dims() != [labels, labels] {
            return Err(Error::shape("Chain.pairwise", &pairwise.dims(), format!("[{labels}, {labels}]")));
        }
        Self::checked(unary, pairwise.unsqueeze_dim(0))
    }

    /// Chains with a pairwise matrix for each pair of neighbours.
    ///
    /// # Errors
    /// [`Error::Shape`] if an extent is 0 or the matrices are not `[length - 1, labels, labels]`.
    pub fn with_positions(unary: Tensor<3>, pairwise: Tensor<3>) -> Result<Self> {
        let [_, length, labels] = unary.dims();
        if length < 2 || pairwise.dims() != [length - 1, labels, labels] {
            let expected = format!("[{}, {labels}, {labels}], of 1 place at least", length.saturating_sub(1));
            return Err(Error::shape("Chain.pairwise", &pairwise.dims(), expected));
        }
        Self::checked(unary, pairwise)
    }

    fn checked(unary: Tensor<3>, pairwise: Tensor<3>) -> Result<Self> {
        let dims = unary.dims();
        if dims.contains(&0) {
            return Err(Error::shape("Chain.unary", &dims, "[batch, length, labels], each 1 at least"));
        }
        Ok(Self { unary, pairwise, lengths: vec![dims[1]; dims[0]] })
    }

    /// Sequences of their own lengths: positions from `lengths[i]` on do not count for sequence i. What stands
    /// there must be finite.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one per sequence, [`Error::Config`] unless each is from 1 to the length
    /// of the unary energies.
    pub fn with_lengths(mut self, lengths: Vec<usize>) -> Result<Self> {
        let [batch, length, _] = self.unary.dims();
        if lengths.len() != batch {
            return Err(Error::shape("Chain.lengths", &[lengths.len()], format!("[{batch}]")));
        }
        for found in &lengths {
            let allowed = format!("from 1 to {length}");
            ensure((1..=length).contains(found), "Chain.lengths", found, &allowed)?;
        }
        self.lengths = lengths;
        Ok(self)
    }

    /// The number of labels.
    pub fn num_labels(&self) -> usize {
        self.unary.dims()[2]
    }

    /// The length of every sequence.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// E(y) of one labelling per sequence, `[batch]`, with gradients for U and V.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is a labelling of its length for every sequence, [`Error::Config`] for a
    /// label that does not exist.
    pub fn energy(&self, labellings: &[Vec<usize>]) -> Result<Tensor<1>> {
        self.check(labellings)?;
        let [batch, length, labels] = self.unary.dims();
        let device = self.plain_device();
        let at = |row: usize, t: usize| labellings[row].get(t).copied().unwrap_or(0);
        let index: Vec<i64> =
            (0..batch * length).map(|entry| at(entry / length, entry % length) as i64).collect();
        let index = Tensor::<3, Int>::from_data(TensorData::new(index, [batch, length, 1]), &device);
        let unary = self.unary.clone().gather(2, index).squeeze_dim::<2>(2);
        let energy = unary.mask_fill(self.padding(0, &device), 0.0).sum_dim(1).squeeze_dim(1);
        if length == 1 {
            return Ok(energy);
        }
        let places = length - 1;
        let matrices = self.pairwise.dims()[0];
        let index: Vec<i64> = (0..batch * places)
            .map(|entry| {
                let (row, t) = (entry / places, entry % places);
                let matrix = if matrices == 1 { 0 } else { t };
                ((matrix * labels + at(row, t)) * labels + at(row, t + 1)) as i64
            })
            .collect();
        let index = Tensor::<1, Int>::from_data(TensorData::new(index, [batch * places]), &device);
        let flat = self.pairwise.clone().reshape([matrices * labels * labels]);
        let pairwise = flat.select(0, index).reshape([batch, places]);
        Ok(energy + pairwise.mask_fill(self.padding(1, &device), 0.0).sum_dim(1).squeeze_dim(1))
    }

    pub(super) fn plain_device(&self) -> Device {
        self.unary.device().without_autodiff()
    }

    /// Which positions from `first` on do not count, `[batch, length - first]`.
    fn padding(&self, first: usize, device: &Device) -> Tensor<2, Bool> {
        let [batch, length, _] = self.unary.dims();
        let outside: Vec<bool> =
            self.lengths.iter().flat_map(|own| (first..length).map(move |t| t >= *own)).collect();
        Tensor::from_data(TensorData::new(outside, [batch, length - first]), device)
    }

    pub(super) fn check(&self, labellings: &[Vec<usize>]) -> Result<()> {
        if labellings.len() != self.lengths.len() {
            let expected = format!("[{}], one per sequence", self.lengths.len());
            return Err(Error::shape("labellings", &[labellings.len()], expected));
        }
        for (row, (labelling, length)) in labellings.iter().zip(&self.lengths).enumerate() {
            if labelling.len() != *length {
                return Err(Error::shape(
                    format!("labellings[{row}]"),
                    &[labelling.len()],
                    format!("[{length}]"),
                ));
            }
            if let Some(label) = labelling.iter().find(|label| **label >= self.num_labels()) {
                let allowed = format!("below the number of labels, {}", self.num_labels());
                return Err(Error::config(format!("label of sequence {row}"), label, allowed));
            }
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;

    #[test]
    fn misuse_is_named() {
        let device = Device::flex();
        let unary = || Tensor::<3>::zeros([2, 3, 2], &device);
        let square = |n| Tensor::<2>::zeros([n, n], &device);
        let message = |result: Result<Chain>| result.unwrap_err().to_string();
        assert!(message(Chain::new(unary(), square(3))).contains("Chain.pairwise has shape [3, 3]"));
        assert!(message(Chain::new(Tensor::zeros([0, 3, 2], &device), square(2))).contains("Chain.unary"));
        let per_place = Tensor::<3>::zeros([3, 2, 2], &device);
        assert!(message(Chain::with_positions(unary(), per_place)).contains("[2, 2, 2]"));
        let chain = Chain::new(unary(), square(2)).unwrap();
        assert!(message(chain.clone().with_lengths(vec![3])).contains("Chain.lengths has shape [1]"));
        assert!(message(chain.clone().with_lengths(vec![0, 3])).contains("Chain.lengths = 0"));
        let error = |labellings: &[Vec<usize>]| chain.energy(labellings).unwrap_err().to_string();
        assert!(error(&[vec![0; 3]]).contains("one per sequence"));
        assert!(error(&[vec![0; 3], vec![0; 2]]).contains("labellings[1]"));
        assert!(error(&[vec![0; 3], vec![0, 2, 0]]).contains("label of sequence 1 = 2"));
        assert!(chain.free_energy(0.0).is_err() && chain.k_lowest(0).is_err());
    }
}
