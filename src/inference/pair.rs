//! Energies of an input and an answer that are both tensors, and the same with the input clamped.

use burn::tensor::Tensor;

use crate::energy::EnergyModel;

/// An energy E(x, y) of an input and an answer: low where they go together.
///
/// `X` and `Y` are the ranks of a batch of inputs and of a batch of answers. For answers that are labels there
/// is [`ConditionalEnergy`](crate::energy::ConditionalEnergy).
///
/// # Shapes
/// `[batch, ..]` and `[batch, ..]` to `[batch]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::EnergyModel;
/// use jem_core::inference::{GivenInput, PairEnergy};
///
/// /// E(x, y) = ‖y - x²‖² / 2: regression.
/// struct Square;
/// impl PairEnergy<2, 2> for Square {
///     fn pair_energy(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<1> {
///         (y - x.square()).square().sum_dim(1).squeeze_dim(1).mul_scalar(0.5)
///     }
/// }
/// let device = Device::default();
/// let of_three = GivenInput::new(Square, Tensor::<2>::from_floats([[3.0]], &device));
/// assert_eq!(of_three.energy(Tensor::<2>::from_floats([[9.0]], &device)).into_scalar::<f32>(), 0.0);
/// ```
///
/// Source: LeCun et al. 2006, section 1.
pub trait PairEnergy<const X: usize, const Y: usize> {
    /// E(x, y) of every input with its answer.
    fn pair_energy(&self, x: Tensor<X>, y: Tensor<Y>) -> Tensor<1>;
}

impl<const X: usize, const Y: usize, M: PairEnergy<X, Y> + ?Sized> PairEnergy<X, Y> for &M {
    fn pair_energy(&self, x: Tensor<X>, y: Tensor<Y>) -> Tensor<1> {
        (**self).pair_energy(x, y)
    }
}

impl<const X: usize, const Y: usize, M: PairEnergy<X, Y> + ?Sized> PairEnergy<X, Y> for Box<M> {
    fn pair_energy(&self, x: Tensor<X>, y: Tensor<Y>) -> Tensor<1> {
        (**self).pair_energy(x, y)
    }
}

/// y ↦ E(x, y) for one input per sample: any sampler or optimiser of energies searches it for answers.
///
/// # Shapes
/// Batches of as many answers as there are inputs.
#[derive(Debug, Clone)]
pub struct GivenInput<M, const X: usize> {
    model: M,
    x: Tensor<X>,
}

impl<M, const X: usize> GivenInput<M, X> {
    /// `model` with the input of sample i clamped to `x[i]`.
    pub fn new(model: M, x: Tensor<X>) -> Self {
        Self { model, x }
    }

    /// The inputs.
    pub fn input(&self) -> &Tensor<X> {
        &self.x
    }
}

impl<const X: usize, const Y: usize, M: PairEnergy<X, Y>> EnergyModel<Y> for GivenInput<M, X> {
    fn energy(&self, y: Tensor<Y>) -> Tensor<1> {
        // Chains track y with autodiff, and operands must agree on that.
        let x = if y.is_autodiff() { self.x.clone().autodiff() } else { self.x.clone() };
        self.model.pair_energy(x, y)
    }
}
