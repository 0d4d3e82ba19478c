//! Where chains start: uniform or Gaussian noise, or anything that a user implements.

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::error::{Result, ensure, ensure_positive};
use crate::noise::{Noise, Stream};

/// A distribution that chains start from.
///
/// # Shapes
/// `shape` is `[chains, ..]`; `labels`, where given, has one entry per chain.
pub trait ChainStart<const D: usize> {
    /// Starting points, drawn from [`Stream::BUFFER`].
    fn draw(
        &self,
        shape: [usize; D],
        labels: Option<&[usize]>,
        noise: &mut Noise,
        device: &Device,
    ) -> Tensor<D>;

    /// Whether chains over samples of `sample_shape` can start from here. Sources ask before they draw.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if not.
    fn check(&self, _sample_shape: &[usize]) -> Result<()> {
        Ok(())
    }
}

/// U(low, high) in every coordinate; U(-1, 1) unless set, as JEM starts its chains.
///
/// ```
/// use jem_core::samplers::UniformStart;
/// let unit_pixels = UniformStart::new(0.0, 1.0)?;
/// assert!(UniformStart::new(1.0, 1.0).is_err());
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UniformStart {
    low: f32,
    high: f32,
}

impl UniformStart {
    /// U(low, high).
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless both are finite and low < high.
    pub fn new(low: f32, high: f32) -> Result<Self> {
        let allowed = low.is_finite() && high.is_finite() && low < high;
        ensure(allowed, "UniformStart", format!("[{low}, {high}]"), "finite, the lower below the upper")?;
        Ok(Self { low, high })
    }
}

impl Default for UniformStart {
    fn default() -> Self {
        Self { low: -1.0, high: 1.0 }
    }
}

impl<const D: usize> ChainStart<D> for UniformStart {
    fn draw(
        &self,
        shape: [usize; D],
        _labels: Option<&[usize]>,
        noise: &mut Noise,
        device: &Device,
    ) -> Tensor<D> {
        noise.uniform(shape, self.low..self.high, Stream::BUFFER, device)
    }
}

/// N(mean, deviation²) in every coordinate.
///
/// ```
/// use jem_core::samplers::GaussianStart;
/// let wide = GaussianStart::new(0.0, 2.0)?;
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GaussianStart {
    mean: f32,
    deviation: f32,
}

impl GaussianStart {
    /// N(mean, deviation²).
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless both are finite and the deviation is above 0.
    pub fn new(mean: f32, deviation: f32) -> Result<Self> {
        ensure(mean.is_finite(), "GaussianStart.mean", mean, "a finite number")?;
        ensure_positive("GaussianStart.deviation", deviation)?;
        Ok(Self { mean, deviation })
    }
}

impl<const D: usize> ChainStart<D> for GaussianStart {
    fn draw(
        &self,
        shape: [usize; D],
        _labels: Option<&[usize]>,
        noise: &mut Noise,
        device: &Device,
    ) -> Tensor<D> {
        noise.normal(shape, Stream::BUFFER, device).mul_scalar(self.deviation).add_scalar(self.mean)
    }
}
