//! The isotropic Gaussian, of any shape.

use burn::tensor::Tensor;

use crate::energy::EnergyModel;
use crate::error::{Result, ensure, ensure_positive};
use crate::math::per_sample;
use crate::noise::{Noise, Stream};

/// The isotropic Gaussian N(μ, s² I) of any shape: E(x) = ‖x - μ‖² / 2s², log Z = (d/2) log 2πs².
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::EnergyModel;
/// use jem_core::energy::analytic::Gaussian;
///
/// let gaussian = Gaussian::new(1.0, 2.0)?;
/// let x = Tensor::<2>::from_floats([[3.0, 1.0]], &Device::default());
/// assert_eq!(gaussian.energy(x).into_scalar::<f32>(), 0.5);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Gaussian {
    mean: f32,
    deviation: f32,
}

impl Gaussian {
    /// N(mean, deviation² I).
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless both are finite and the deviation is above 0.
    pub fn new(mean: f32, deviation: f32) -> Result<Self> {
        ensure(mean.is_finite(), "Gaussian.mean", mean, "a finite number")?;
        ensure_positive("Gaussian.deviation", deviation)?;
        Ok(Self { mean, deviation })
    }

    /// N(0, I).
    pub fn standard() -> Self {
        Self { mean: 0.0, deviation: 1.0 }
    }

    /// log ∫ exp(-E(x)) dx in `dimension` dimensions.
    pub fn log_normaliser(&self, dimension: usize) -> f64 {
        0.5 * dimension as f64 * (2.0 * std::f64::consts::PI * f64::from(self.deviation).powi(2)).ln()
    }

    /// Exact samples, drawn from [`Stream::DATA`].
    ///
    /// # Shapes
    /// `[count, ..]`, as asked for.
    pub fn sample<const D: usize>(
        &self,
        shape: [usize; D],
        noise: &mut Noise,
        device: &burn::tensor::Device,
    ) -> Tensor<D> {
        noise.normal(shape, Stream::DATA, device).mul_scalar(self.deviation).add_scalar(self.mean)
    }
}

impl<const D: usize> EnergyModel<D> for Gaussian {
    fn energy(&self, x: Tensor<D>) -> Tensor<1> {
        let squares = per_sample(x.sub_scalar(self.mean)).square().sum_dim(1);
        squares.squeeze_dim(1).div_scalar(2.0 * self.deviation * self.deviation)
    }

    fn energy_and_grad(&self, x: Tensor<D>) -> (Tensor<1>, Tensor<D>) {
        let x = x.without_autodiff();
        let gradient = x.clone().sub_scalar(self.mean).div_scalar(self.deviation * self.deviation);
        (self.energy(x), gradient)
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::Device;

    /// n = 40,000 numbers; mean and variance within 4.417 standard errors (α = 1e-5 each).
    #[test]
    fn exact_samples_have_their_moments() {
        let gaussian = Gaussian::new(0.5, 2.0).unwrap();
        let n = 40_000;
        let x = gaussian.sample([n / 4, 2, 2], &mut Noise::host(1), &Device::flex());
        let x: Vec<f64> = x.into_data().iter::<f64>().collect();
        let mean = x.iter().sum::<f64>() / n as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        let has = |m: f64, v: f64| {
            (mean - m).abs() < 4.417 * (v / n as f64).sqrt()
                && (variance - v).abs() < 4.417 * v * (2.0 / n as f64).sqrt()
        };
        assert!(has(0.5, 4.0), "{mean} {variance}");
        assert!(!has(0.5, 2.0) && !has(0.0, 4.0));
    }
}
