//! Energies: what a model is here. p(x) ∝ exp(-E(x)), so low energy means likely.
//!
//! [`EnergyModel`] is the one trait that samplers need. [`Classifier`] and [`JointEnergy`] make one of any
//! network with logits; [`Given`] clamps the label of a [`ConditionalEnergy`], and [`EnergyClassifier`] reads one as
//! a classifier; [`analytic`] has energies with known moments and normalisers, which is how samplers are tested.
//! Energies combine: [`Product`], [`Mixture`], [`Negation`], [`Tempered`], [`LinearCombination`], or written as sums
//! ([`Energy`]); [`Clamped`] fixes some coordinates, [`FreeEnergy`] and [`Minimum`] do away with a latent variable.

mod algebra;
pub mod analytic;
mod conditional;
mod energy_classifier;
mod joint;

pub use algebra::{
    Clamp, Clamped, Energy, FiniteLatent, FreeEnergy, LatentEnergy, LinearCombination, Minimum, Mixture,
    Negation, Product, Tempered,
};
pub use conditional::{ConditionalEnergy, Given};
pub use energy_classifier::EnergyClassifier;
pub use joint::{Classifier, JointEnergy};

use std::sync::Arc;

use burn::tensor::Tensor;

/// An unnormalised density: p(x) ∝ exp(-E(x)).
///
/// `D` is the rank of a batch, its first dimension counting the samples: 2 for vectors, 4 for images. The
/// trait is object-safe, and implemented for `&M`, `Box<M>` and `Arc<M>`.
///
/// # Shapes
/// `[batch, ..]` to `[batch]`; the energy of a sample depends on that sample alone.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::EnergyModel;
///
/// /// E(x) = ‖x‖² / 2: the standard normal distribution.
/// struct Bowl;
/// impl EnergyModel<2> for Bowl {
///     fn energy(&self, x: Tensor<2>) -> Tensor<1> {
///         x.square().sum_dim(1).squeeze_dim(1).mul_scalar(0.5)
///     }
/// }
///
/// let x = Tensor::from_floats([[3.0, 4.0]], &Device::default());
/// let (energy, grad) = Bowl.energy_and_grad(x.clone());
/// assert_eq!(energy.into_scalar::<f32>(), 12.5);
/// assert_eq!(grad.to_data(), x.to_data()); // the gradient of ‖x‖² / 2 is x
/// ```
///
/// Source: LeCun et al., "A tutorial on energy-based learning", 2006.
pub trait EnergyModel<const D: usize> {
    /// E(x) of every sample.
    fn energy(&self, x: Tensor<D>) -> Tensor<1>;

    /// E(x) and ∇ₓE(x) of every sample, neither of which carries an autodiff graph.
    ///
    /// By automatic differentiation unless overridden. Hand in a module that is not tracked
    /// (`model.valid()`): tracked weights double the cost of the backward pass.
    fn energy_and_grad(&self, x: Tensor<D>) -> (Tensor<1>, Tensor<D>) {
        energy_and_grad_by_autodiff(|x| self.energy(x), x)
    }
}

/// E(x) and ∇ₓE(x) by one backward pass through the summed energy.
///
/// An energy that does not depend on x, or a sample that it ignores, has the gradient 0.
pub fn energy_and_grad_by_autodiff<const D: usize>(
    energy: impl FnOnce(Tensor<D>) -> Tensor<1>,
    x: Tensor<D>,
) -> (Tensor<1>, Tensor<D>) {
    let x = x.without_autodiff().autodiff().require_grad();
    let energy = energy(x.clone());
    let gradient = if energy.is_tracked() {
        let mut gradients = energy.clone().sum().backward();
        x.grad_remove(&mut gradients)
    } else {
        None
    };
    let gradient = gradient.unwrap_or_else(|| x.zeros_like()).without_autodiff();
    (energy.without_autodiff(), gradient)
}

macro_rules! forward_energy_model {
    ($($pointer:ty),*) => {$(
        impl<const D: usize, M: EnergyModel<D> + ?Sized> EnergyModel<D> for $pointer {
            fn energy(&self, x: Tensor<D>) -> Tensor<1> {
                (**self).energy(x)
            }
            fn energy_and_grad(&self, x: Tensor<D>) -> (Tensor<1>, Tensor<D>) {
                (**self).energy_and_grad(x)
            }
        }
    )*};
}
forward_energy_model!(&M, Box<M>, Arc<M>);

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::Device;

    struct Flat;
    impl EnergyModel<3> for Flat {
        fn energy(&self, x: Tensor<3>) -> Tensor<1> {
            Tensor::zeros([x.dims()[0]], &x.device())
        }
    }

    #[test]
    fn an_energy_that_ignores_x_has_gradient_zero() {
        let boxed: Box<dyn EnergyModel<3>> = Box::new(Flat);
        let (energy, grad) = boxed.energy_and_grad(Tensor::ones([2, 3, 1], &Device::flex()));
        assert_eq!((energy.dims(), grad.dims()), ([2], [2, 3, 1]));
        assert_eq!(grad.abs().sum().into_scalar::<f32>(), 0.0);
    }

    #[test]
    fn results_carry_no_autodiff() {
        let model = analytic::Gaussian::standard();
        let x = Tensor::<2>::ones([2, 3], &Device::flex().autodiff());
        let (energy, grad) = energy_and_grad_by_autodiff(|x| model.energy(x), x);
        assert!(!energy.is_autodiff() && !grad.is_autodiff());
    }
}
