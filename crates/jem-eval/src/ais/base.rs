//! Where annealing begins: densities that are known to the last constant and can be drawn from.

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use jem_core::data::PixelRange;
use jem_core::energy::EnergyModel;
use jem_core::energy::analytic::Gaussian;
use jem_core::error::{Result, ensure};
use jem_core::noise::{Noise, Stream};
use jem_core::samplers::Bounds;

/// A density with a known normaliser and exact samples.
///
/// A [`Gaussian`] is one, and a [`UniformBox`].
pub trait Base<const D: usize>: EnergyModel<D> {
    /// log ∫ exp(-E(x)) dx over samples of `dimension` numbers.
    fn log_z(&self, dimension: usize) -> f64;

    /// Exact samples, `[count, ..]` as asked for.
    fn draw(&self, shape: [usize; D], noise: &mut Noise, device: &Device) -> Tensor<D>;

    /// The box outside which the density is 0, if there is one. The target is then restricted to it as well.
    fn bounds(&self) -> Option<Bounds> {
        None
    }
}

impl<const D: usize> Base<D> for Gaussian {
    fn log_z(&self, dimension: usize) -> f64 {
        self.log_normaliser(dimension)
    }

    fn draw(&self, shape: [usize; D], noise: &mut Noise, device: &Device) -> Tensor<D> {
        self.sample(shape, noise, device)
    }
}

/// The uniform density on \[low, high\] in every coordinate: E(x) = 0, log Z = d log(high - low).
///
/// As a [`Base`] it measures the target within the box: log ∫ exp(-E(x)) over the box. The chains are reflected
/// at its walls.
///
/// ```
/// use jem_eval::ais::{Base, UniformBox};
/// let images = UniformBox::new(-1.0, 1.0)?;
/// let log_z = Base::<4>::log_z(&images, 3 * 32 * 32);
/// assert!((log_z - 3072.0 * 2f64.ln()).abs() < 1e-9);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UniformBox {
    low: f32,
    high: f32,
}

impl UniformBox {
    /// The box [low, high].
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) unless both are finite and low < high.
    pub fn new(low: f32, high: f32) -> Result<Self> {
        let allowed = low.is_finite() && high.is_finite() && low < high;
        ensure(allowed, "UniformBox", format!("[{low}, {high}]"), "finite, the lower below the upper")?;
        Ok(Self { low, high })
    }

    /// The box that the bins of bytes fill: half a bin wider than `range` on each side. It holds all
    /// [`dequantised`](super::dequantised) images.
    pub fn of_bytes(range: PixelRange) -> Self {
        let half = (range.high() - range.low()) / 510.0;
        Self { low: range.low() - half, high: range.high() + half }
    }
}

impl<const D: usize> EnergyModel<D> for UniformBox {
    fn energy(&self, x: Tensor<D>) -> Tensor<1> {
        Tensor::zeros([x.dims()[0]], &x.device())
    }

    fn energy_and_grad(&self, x: Tensor<D>) -> (Tensor<1>, Tensor<D>) {
        let x = x.without_autodiff();
        (self.energy(x.clone()), x.zeros_like())
    }
}

impl<const D: usize> Base<D> for UniformBox {
    fn log_z(&self, dimension: usize) -> f64 {
        dimension as f64 * (f64::from(self.high) - f64::from(self.low)).ln()
    }

    fn draw(&self, shape: [usize; D], noise: &mut Noise, device: &Device) -> Tensor<D> {
        noise.uniform(shape, self.low..self.high, Stream::DATA, device)
    }

    fn bounds(&self) -> Option<Bounds> {
        Some(Bounds { low: self.low, high: self.high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_without_a_volume_are_refused() {
        for (low, high) in [(1.0, 1.0), (0.0, f32::NAN), (f32::NEG_INFINITY, 0.0)] {
            assert!(UniformBox::new(low, high).unwrap_err().to_string().starts_with("UniformBox = ["));
        }
    }
}
