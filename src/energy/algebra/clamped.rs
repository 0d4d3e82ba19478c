//! Clamped coordinates: an energy of the rest, as in-painting needs it.

use burn::tensor::{Bool, Tensor};

use crate::energy::EnergyModel;
use crate::error::{Error, Result};

/// Which coordinates are clamped, and to what.
///
/// # Shapes
/// Mask and values are `[batch, ..]`, or `[1, ..]` for the same in every sample.
#[derive(Debug, Clone)]
pub struct Clamp<const D: usize> {
    mask: Tensor<D, Bool>,
    values: Tensor<D>,
}

impl<const D: usize> Clamp<D> {
    /// Holds the coordinates where `mask` is true at `values`; what the values are elsewhere does not matter.
    ///
    /// # Errors
    /// [`Error::Shape`] if the two differ in shape.
    pub fn new(mask: Tensor<D, Bool>, values: Tensor<D>) -> Result<Self> {
        if mask.dims() != values.dims() {
            return Err(Error::shape(
                "Clamp.mask",
                &mask.dims(),
                format!("{:?}, as the values", values.dims()),
            ));
        }
        Ok(Self { mask, values: values.without_autodiff() })
    }

    /// `x` with the clamped coordinates at their values, bit by bit.
    pub fn fill(&self, x: Tensor<D>) -> Tensor<D> {
        let dims = x.dims();
        x.mask_where(self.mask.clone().expand(dims), self.values.clone().expand(dims))
    }

    /// `x` with 0 in the clamped coordinates.
    pub fn free(&self, x: Tensor<D>) -> Tensor<D> {
        let dims = x.dims();
        x.mask_fill(self.mask.clone().expand(dims), 0.0)
    }
}

/// x ↦ E(x with the clamped coordinates at their values): sampling it samples p(free | clamped).
///
/// It does not depend on the clamped coordinates of x, and its gradient is 0 there. The noise of a sampler moves them
/// all the same; [`Clamp::fill`] puts them back, as the sampler `Inpainting` does.
///
/// # Shapes
/// `[batch, ..]` to `[batch]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::{Clamp, Clamped, EnergyModel};
/// use jem_core::energy::analytic::Gaussian;
///
/// let device = Device::default();
/// let mask = Tensor::<2>::from_floats([[1.0, 0.0]], &device).bool();
/// let clamp = Clamp::new(mask, Tensor::from_floats([[2.0, 0.0]], &device))?;
/// let clamped = Clamped::new(Gaussian::standard(), clamp);
/// let (energy, gradient) = clamped.energy_and_grad(Tensor::from_floats([[9.0, 1.0]], &device));
/// assert_eq!(energy.into_scalar::<f32>(), 2.5); // (2² + 1²) / 2
/// assert_eq!(gradient.into_data().try_to_vec::<f32>().unwrap(), [0.0, 1.0]);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Du & Mordatch 2019, arXiv 1903.08689, section 4.2.
#[derive(Debug, Clone)]
pub struct Clamped<M, const D: usize> {
    model: M,
    clamp: Clamp<D>,
}

impl<M, const D: usize> Clamped<M, D> {
    /// `model` with some coordinates clamped.
    pub fn new(model: M, clamp: Clamp<D>) -> Self {
        Self { model, clamp }
    }
}

impl<const D: usize, M: EnergyModel<D>> EnergyModel<D> for Clamped<M, D> {
    fn energy(&self, x: Tensor<D>) -> Tensor<1> {
        self.model.energy(self.clamp.fill(x))
    }

    fn energy_and_grad(&self, x: Tensor<D>) -> (Tensor<1>, Tensor<D>) {
        let (energy, gradient) = self.model.energy_and_grad(self.clamp.fill(x.without_autodiff()));
        (energy, self.clamp.free(gradient))
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::energy::analytic::Banana;
    use crate::energy::energy_and_grad_by_autodiff;
    use burn::tensor::Device;

    #[test]
    fn the_gradient_is_that_of_the_rest() {
        let device = Device::flex();
        let banana = Banana::new(1.0, 0.5, 0.7).unwrap();
        let mask = Tensor::<2>::from_floats([[0.0, 1.0], [1.0, 0.0]], &device).bool();
        let values = Tensor::<2>::from_floats([[7.0, 0.5], [-1.0, 7.0]], &device);
        let clamped = Clamped::new(&banana, Clamp::new(mask, values).unwrap());
        let x = Tensor::<2>::from_floats([[0.3, 99.0], [99.0, 0.4]], &device);
        let filled = Tensor::<2>::from_floats([[0.3, 0.5], [-1.0, 0.4]], &device);
        let (energy, gradient) = clamped.energy_and_grad(x.clone());
        let (expected, whole) = banana.energy_and_grad(filled);
        assert_eq!(energy.to_data(), expected.to_data());
        let whole: Vec<f32> = whole.into_data().iter::<f32>().collect();
        let found: Vec<f32> = gradient.clone().into_data().iter::<f32>().collect();
        assert_eq!(found, [whole[0], 0.0, 0.0, whole[3]]);
        let (_, auto) = energy_and_grad_by_autodiff(|x| clamped.energy(x), x);
        assert!(gradient.all_close(auto, Some(1e-4), Some(1e-5)));
    }

    #[test]
    fn shapes_must_agree() {
        let device = Device::flex();
        let mask = Tensor::<2>::zeros([1, 2], &device).bool();
        let message = Clamp::new(mask, Tensor::<2>::zeros([1, 3], &device)).unwrap_err().to_string();
        assert!(message.contains("Clamp.mask has shape [1, 2]"), "{message}");
    }
}
