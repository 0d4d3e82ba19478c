//! The geometric path between two energies.

use std::fmt;

use burn::tensor::Tensor;

use jem_core::energy::EnergyModel;

/// E_β(x) = (1 - β) E_0(x) + β E_1(x): the energy of p_β ∝ p_0^(1-β) p_1^β.
///
/// # Shapes
/// `[batch, ..]` to `[batch]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::EnergyModel;
/// use jem_core::energy::analytic::Gaussian;
/// use jem_eval::ais::GeometricPath;
///
/// let (wide, narrow) = (Gaussian::new(0.0, 1.0)?, Gaussian::new(0.0, 0.5)?);
/// let half_way = GeometricPath::new(&wide, &narrow, 0.5);
/// let x = Tensor::<2>::from_floats([[1.0]], &Device::default());
/// assert_eq!(half_way.energy(x).into_scalar::<f32>(), 0.5 * 0.5 + 0.5 * 2.0);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Neal 2001, arXiv physics/9803008.
#[derive(Clone, Copy)]
pub struct GeometricPath<'a, const D: usize> {
    from: &'a dyn EnergyModel<D>,
    to: &'a dyn EnergyModel<D>,
    beta: f64,
}

impl<'a, const D: usize> GeometricPath<'a, D> {
    /// The energy at β between `from`, β = 0, and `to`, β = 1.
    pub fn new(from: &'a dyn EnergyModel<D>, to: &'a dyn EnergyModel<D>, beta: f64) -> Self {
        Self { from, to, beta }
    }
}

impl<const D: usize> fmt::Debug for GeometricPath<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeometricPath").field("beta", &self.beta).finish_non_exhaustive()
    }
}

impl<const D: usize> EnergyModel<D> for GeometricPath<'_, D> {
    fn energy(&self, x: Tensor<D>) -> Tensor<1> {
        let from = self.from.energy(x.clone()).mul_scalar(1.0 - self.beta);
        from + self.to.energy(x).mul_scalar(self.beta)
    }

    fn energy_and_grad(&self, x: Tensor<D>) -> (Tensor<1>, Tensor<D>) {
        let (from, slope_from) = self.from.energy_and_grad(x.clone());
        let (to, slope_to) = self.to.energy_and_grad(x);
        let (a, b) = (1.0 - self.beta, self.beta);
        (from.mul_scalar(a) + to.mul_scalar(b), slope_from.mul_scalar(a) + slope_to.mul_scalar(b))
    }
}
