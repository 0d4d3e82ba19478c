//! The double well: two minima in every coordinate, and a barrier between them.

use std::f64::consts::PI;

use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;
use rand_distr::StandardNormal;

use super::bessel::ln_bessel_i_scaled;
use crate::energy::EnergyModel;
use crate::error::{Result, ensure_positive};
use crate::math::per_sample;
use crate::noise::{Noise, Stream};

/// E(x) = Σ_i h ((x_i/w)² - 1)²: wells at ±w and a barrier of height h at 0 in each coordinate, of any shape.
///
/// log Z = d log(w (π/2) e^(-h/2) \[I_(-1/4)(h/2) + I_(1/4)(h/2)\]) in d dimensions, with the modified Bessel
/// functions. In a well the curvature is 8h/w².
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::EnergyModel;
/// use jem_core::energy::analytic::DoubleWell;
///
/// let well = DoubleWell::new(3.0, 2.0)?;
/// let x = Tensor::<2>::from_floats([[2.0], [-2.0], [0.0]], &Device::default());
/// assert_eq!(well.energy(x).into_data().try_to_vec::<f32>().unwrap(), [0.0, 0.0, 3.0]);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct DoubleWell {
    barrier: f32,
    well: f32,
}

impl DoubleWell {
    /// Wells at ± `well` behind a barrier of this height.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless both are finite and above 0.
    pub fn new(barrier: f32, well: f32) -> Result<Self> {
        ensure_positive("DoubleWell.barrier", barrier)?;
        ensure_positive("DoubleWell.well", well)?;
        Ok(Self { barrier, well })
    }

    /// log ∫ exp(-E(x)) dx in `dimension` dimensions.
    pub fn log_normaliser(&self, dimension: usize) -> f64 {
        let half = f64::from(self.barrier) / 2.0;
        // The scaled functions hold e^(-h/2) already.
        let [a, b] = [-0.25, 0.25].map(|order| ln_bessel_i_scaled(order, half).exp());
        dimension as f64 * (f64::from(self.well) * PI / 2.0 * (a + b)).ln()
    }

    /// Exact samples, drawn from [`Stream::DATA`] by rejection.
    ///
    /// # Shapes
    /// `[count, ..]`, as asked for.
    pub fn sample<const D: usize>(&self, shape: [usize; D], noise: &mut Noise, device: &Device) -> Tensor<D> {
        let h = f64::from(self.barrier);
        // With u = x/w and proposals from N(0, s²): u²/2s² - h (u² - 1)² is largest at u² = 1 + 1/4hs².
        let variance = (0.5 / h.sqrt()).max(1.0);
        let bound = 0.5 / variance + 1.0 / (16.0 * h * variance * variance);
        let rng = noise.rng(Stream::DATA);
        let mut one = || loop {
            let u: f64 = variance.sqrt() * rng.sample::<f64, _>(StandardNormal);
            let log_ratio = 0.5 * u * u / variance - h * (u * u - 1.0).powi(2) - bound;
            if rng.random::<f64>().ln() < log_ratio {
                return u as f32 * self.well;
            }
        };
        let values: Vec<f32> = (0..shape.iter().product()).map(|_| one()).collect();
        Tensor::from_data(TensorData::new(values, shape), device)
    }

    /// (x/w)² - 1 in each coordinate.
    fn height<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        x.div_scalar(self.well).square().sub_scalar(1.0)
    }
}

impl<const D: usize> EnergyModel<D> for DoubleWell {
    fn energy(&self, x: Tensor<D>) -> Tensor<1> {
        let squares = per_sample(self.height(x)).square().sum_dim(1);
        squares.squeeze_dim(1).mul_scalar(self.barrier)
    }

    fn energy_and_grad(&self, x: Tensor<D>) -> (Tensor<1>, Tensor<D>) {
        let x = x.without_autodiff();
        let slope = 4.0 * self.barrier / (self.well * self.well);
        let gradient = self.height(x.clone()) * x.clone().mul_scalar(slope);
        (self.energy(x), gradient)
    }
}
