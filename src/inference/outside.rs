//! An energy seen from outside a ball: how a search for incorrect answers keeps away from the correct one.

use burn::tensor::Tensor;

use crate::energy::EnergyModel;
use crate::error::{Result, ensure_positive};
use crate::math::sample_norms;

/// y ↦ E(P(y)), where P moves a point within `radius` of its centre out to that distance.
///
/// ```text
/// P(y) = c + (y - c) max(1, ε / ‖y - c‖)
/// ```
///
/// Its minimum over all y is the minimum of E over ‖y - c‖ ≥ ε, and its gradient within the ball has no part
/// along the radius: any sampler of energies walks around the ball. At the centre itself P is not defined and
/// leaves the point where it is.
///
/// # Shapes
/// Batches of as many samples as there are centres.
#[derive(Debug, Clone)]
pub struct Outside<M, const D: usize> {
    model: M,
    centre: Tensor<D>,
    radius: f64,
}

impl<M, const D: usize> Outside<M, D> {
    /// `model` outside the balls of one radius around each of the centres.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless the radius is finite and above 0.
    pub fn new(model: M, centre: Tensor<D>, radius: f64) -> Result<Self> {
        ensure_positive("Outside.radius", radius)?;
        Ok(Self { model, centre: centre.without_autodiff(), radius })
    }

    /// P(y), `[batch, ..]` kept.
    pub fn project(&self, y: Tensor<D>) -> Tensor<D> {
        let centre = if y.is_autodiff() { self.centre.clone().autodiff() } else { self.centre.clone() };
        let mut column = [1; D];
        column[0] = y.dims()[0];
        let offset = y - centre.clone();
        // Added before the root, so that its slope at the centre is finite.
        let squares = crate::math::per_sample(offset.clone()).square().sum_dim(1).add_scalar(1e-20);
        let factor = squares.sqrt().recip().mul_scalar(self.radius).clamp_min(1.0);
        centre + offset * factor.reshape(column)
    }

    /// Each sample's distance from its centre, `[batch]`.
    pub fn distance(&self, y: Tensor<D>) -> Tensor<1> {
        sample_norms(y.without_autodiff() - self.centre.clone())
    }
}

impl<M: EnergyModel<D>, const D: usize> EnergyModel<D> for Outside<M, D> {
    fn energy(&self, y: Tensor<D>) -> Tensor<1> {
        self.model.energy(self.project(y))
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::energy::analytic::Gaussian;
    use burn::tensor::Device;

    #[test]
    fn points_within_move_to_the_sphere_and_feel_no_radial_force() {
        let device = Device::flex();
        let centre = Tensor::<2>::from_floats([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], &device);
        let outside = Outside::new(Gaussian::standard(), centre, 2.0).unwrap();
        let y = Tensor::<2>::from_floats([[1.0, 0.5], [4.0, 0.0], [1.0, 0.0]], &device);
        let moved: Vec<f32> = outside.project(y.clone()).into_data().iter::<f32>().collect();
        assert_eq!(moved, [1.0, 2.0, 4.0, 0.0, 1.0, 0.0]);
        let (energy, gradient) = outside.energy_and_grad(y);
        let (energy, gradient): (Vec<f32>, Vec<f32>) =
            (energy.into_data().iter::<f32>().collect(), gradient.into_data().iter::<f32>().collect());
        assert_eq!(energy, [2.5, 8.0, 0.5]);
        // At (1, 0.5): ∇E(P) = (1, 2), of which (1, 0) is tangential, and P stretches by 2 / 0.5.
        assert!((gradient[0] - 4.0).abs() < 1e-4 && gradient[1].abs() < 1e-4, "{gradient:?}");
        assert!((gradient[2] - 4.0).abs() < 1e-5 && gradient.iter().all(|g| g.is_finite()));
        assert!(Outside::new(Gaussian::standard(), Tensor::<2>::zeros([1, 1], &device), 0.0).is_err());
    }
}
