//! Densities that are known in full and can be sampled: what noise-contrastive estimation tells data from.

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, ensure};
use crate::math::{per_sample, sample_extent};
use crate::noise::{Noise, Stream};

/// What samples are drawn from.
const SAMPLES: Stream = Stream::new("nce/reference");

/// A density q(x) with its normaliser, and exact samples of it.
///
/// It should reach wherever the data are, and be as close to them as it can.
pub trait Reference<const D: usize> {
    /// Samples, `[count, ..]` as asked for.
    ///
    /// # Errors
    /// If the density is not one of samples of this shape.
    fn sample(&self, shape: [usize; D], noise: &mut Noise, device: &Device) -> Result<Tensor<D>>;

    /// log q(x) in nats, `[batch, ..]` to `[batch]`.
    ///
    /// # Errors
    /// If the density is not one of samples of this shape.
    fn log_density(&self, x: Tensor<D>) -> Result<Tensor<1>>;
}

/// Independent normal coordinates, each with its own mean and standard deviation.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::objectives::{DiagonalGaussian, Reference};
/// let q = DiagonalGaussian::new(vec![0.0, 1.0], vec![1.0, 2.0])?;
/// let x = Tensor::<2>::from_floats([[0.0, 1.0]], &Device::default());
/// let expected = -(2.0 * std::f32::consts::PI).ln() - 2f32.ln();
/// assert!((q.log_density(x)?.into_scalar::<f32>() - expected).abs() < 1e-5);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiagonalGaussian {
    mean: Vec<f32>,
    deviation: Vec<f32>,
}

impl DiagonalGaussian {
    /// A mean and a standard deviation for every number of a sample.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are as many of one as of the other, and some; [`Error::Config`] unless all
    /// are finite and the deviations above 0.
    pub fn new(mean: Vec<f32>, deviation: Vec<f32>) -> Result<Self> {
        if mean.is_empty() || mean.len() != deviation.len() {
            let expected = format!("one per mean, {}, and at least one", mean.len());
            return Err(Error::shape("DiagonalGaussian.deviation", &[deviation.len()], expected));
        }
        for (mean, deviation) in mean.iter().zip(&deviation) {
            ensure(mean.is_finite(), "DiagonalGaussian.mean", mean, "finite numbers")?;
            let allowed = deviation.is_finite() && *deviation > 0.0;
            ensure(allowed, "DiagonalGaussian.deviation", deviation, "finite numbers > 0")?;
        }
        Ok(Self { mean, deviation })
    }

    /// The means and the standard deviations of data, the latter times `widening`.
    ///
    /// # Errors
    /// Those of [`new`](Self::new), so for a coordinate that is constant.
    pub fn fit<const D: usize>(x: Tensor<D>, widening: f32) -> Result<Self> {
        let rows = per_sample(x.without_autodiff());
        let read = |tensor: Tensor<2>| tensor.into_data().iter::<f32>().collect::<Vec<f32>>();
        let mean = rows.clone().mean_dim(0);
        let variance = (rows - mean.clone()).square().mean_dim(0);
        Self::new(read(mean), read(variance.sqrt().mul_scalar(widening)))
    }

    /// The parameters as rows for samples of this shape.
    fn rows(&self, shape: &[usize], device: &Device) -> Result<(Tensor<2>, Tensor<2>)> {
        let [_, elements] = sample_extent(shape);
        if elements != self.mean.len() {
            let expected = format!("[batch, ..] with {} numbers a sample", self.mean.len());
            return Err(Error::shape("samples of DiagonalGaussian", shape, expected));
        }
        let row = |values: &[f32]| Tensor::<1>::from_floats(values, device).unsqueeze_dim::<2>(0);
        Ok((row(&self.mean), row(&self.deviation)))
    }
}

impl<const D: usize> Reference<D> for DiagonalGaussian {
    fn sample(&self, shape: [usize; D], noise: &mut Noise, device: &Device) -> Result<Tensor<D>> {
        let (mean, deviation) = self.rows(&shape, device)?;
        let draws = per_sample(noise.normal(shape, SAMPLES, device));
        Ok((draws * deviation + mean).reshape(shape))
    }

    fn log_density(&self, x: Tensor<D>) -> Result<Tensor<1>> {
        let (mean, deviation) = self.rows(&x.dims(), &x.device())?;
        let half_log_tau = 0.5 * (2.0 * std::f64::consts::PI).ln();
        let constant: f64 = self.deviation.iter().map(|s| f64::from(*s).ln() + half_log_tau).sum();
        let squares = ((per_sample(x) - mean) / deviation).square().sum_dim(1).squeeze_dim::<1>(1);
        Ok(squares.mul_scalar(-0.5).sub_scalar(constant))
    }
}
