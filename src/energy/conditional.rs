//! Energies of a sample and a label, and the same with the label clamped.

use burn::tensor::{Int, Tensor};

use super::EnergyModel;

/// An unnormalised joint density of samples and labels: p(x, y) ∝ exp(-E(x, y)).
///
/// # Shapes
/// `[batch, ..]` and `[batch]` to `[batch]`.
pub trait ConditionalEnergy<const D: usize> {
    /// E(x, y) of every sample with its label.
    fn energy_given(&self, x: Tensor<D>, labels: Tensor<1, Int>) -> Tensor<1>;
}

impl<const D: usize, M: ConditionalEnergy<D> + ?Sized> ConditionalEnergy<D> for &M {
    fn energy_given(&self, x: Tensor<D>, labels: Tensor<1, Int>) -> Tensor<1> {
        (**self).energy_given(x, labels)
    }
}

/// x ↦ E(x, y) for one label per sample: sampling it samples p(x|y).
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use jem_core::energy::{ConditionalEnergy, EnergyModel, Given};
///
/// /// A unit Gaussian around the label.
/// struct Around;
/// impl ConditionalEnergy<2> for Around {
///     fn energy_given(&self, x: Tensor<2>, y: Tensor<1, Int>) -> Tensor<1> {
///         (x - y.float().unsqueeze_dim(1)).square().sum_dim(1).squeeze_dim(1).mul_scalar(0.5)
///     }
/// }
/// let device = Device::default();
/// let three = Given::new(Around, Tensor::from_ints([3], &device));
/// assert_eq!(three.energy(Tensor::from_floats([[3.0]], &device)).into_scalar::<f32>(), 0.0);
/// ```
#[derive(Debug, Clone)]
pub struct Given<M> {
    model: M,
    labels: Tensor<1, Int>,
}

impl<M> Given<M> {
    /// `model` with the label of sample i clamped to `labels[i]`.
    pub fn new(model: M, labels: Tensor<1, Int>) -> Self {
        Self { model, labels }
    }

    /// The clamped labels.
    pub fn labels(&self) -> &Tensor<1, Int> {
        &self.labels
    }
}

impl<const D: usize, M: ConditionalEnergy<D>> EnergyModel<D> for Given<M> {
    fn energy(&self, x: Tensor<D>) -> Tensor<1> {
        self.model.energy_given(x, self.labels.clone())
    }
}
