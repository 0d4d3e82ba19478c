//! Energies whose moments, normalisers and exact samples are known: what samplers are tested against.

use burn::tensor::{Tensor, TensorData, activation};
use rand::RngExt;
use rand_distr::StandardNormal;

use super::{Classifier, EnergyModel};
use crate::error::{Error, Result, ensure, ensure_positive};
use crate::math::{log_sum_exp, per_sample, sample_extent};
use crate::noise::{Noise, Stream};

/// The isotropic Gaussian N(μ, s² I) of any shape: E(x) = ‖x - μ‖² / 2s², log Z = (d/2) log 2πs².
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::{EnergyModel, analytic::Gaussian};
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
    /// [`Error::Config`] unless both are finite and the deviation is above 0.
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

/// A uniform mixture of C isotropic Gaussians N(μ_c, s² I), which is also a perfect classifier:
/// f(x)\[c\] = -‖x - μ_c‖² / 2s², E(x) = -LSE f(x), log Z = log C + (d/2) log 2πs².
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::{Classifier, JointEnergy, analytic::GaussianMixture};
///
/// let mixture = GaussianMixture::new(vec![vec![-2.0], vec![2.0]], 1.0)?;
/// let x = Tensor::<2>::from_floats([[0.0]], &Device::default());
/// assert_eq!(JointEnergy::new(mixture).probabilities(x).into_data().try_to_vec::<f32>().unwrap(), [0.5, 0.5]);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GaussianMixture {
    means: Vec<Vec<f32>>,
    deviation: f32,
}

impl GaussianMixture {
    /// The mixture of Gaussians around `means`, all of the same deviation and weight.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no mean, the means differ in length, a number is not finite or the
    /// deviation is not above 0.
    pub fn new(means: Vec<Vec<f32>>, deviation: f32) -> Result<Self> {
        ensure_positive("GaussianMixture.deviation", deviation)?;
        let dimension = means.first().map_or(0, Vec::len);
        let regular = dimension > 0 && means.iter().all(|mean| mean.len() == dimension);
        if !regular || means.iter().flatten().any(|value| !value.is_finite()) {
            let allowed = "one finite vector per component, all of the same length above 0";
            return Err(Error::config("GaussianMixture.means", format!("{means:?}"), allowed));
        }
        Ok(Self { means, deviation })
    }

    /// log ∫ exp(-E(x)) dx.
    pub fn log_normaliser(&self) -> f64 {
        let dimension = self.means[0].len();
        let each = Gaussian { mean: 0.0, deviation: self.deviation }.log_normaliser(dimension);
        (self.means.len() as f64).ln() + each
    }

    /// Exact samples, with the component that each came from.
    ///
    /// # Shapes
    /// `[count, dimension]` and `count` labels.
    pub fn sample(
        &self,
        count: usize,
        noise: &mut Noise,
        device: &burn::tensor::Device,
    ) -> (Tensor<2>, Vec<usize>) {
        let rng = noise.rng(Stream::DATA);
        let dimension = self.means[0].len();
        let mut values = Vec::with_capacity(count * dimension);
        let mut labels = Vec::with_capacity(count);
        for _ in 0..count {
            let label = rng.random_range(0..self.means.len());
            for mean in &self.means[label] {
                values.push(mean + self.deviation * rng.sample::<f32, _>(StandardNormal));
            }
            labels.push(label);
        }
        (Tensor::from_data(TensorData::new(values, [count, dimension]), device), labels)
    }
}

impl Classifier<2> for GaussianMixture {
    fn logits(&self, x: Tensor<2>) -> Tensor<2> {
        let [batch, dimension] = sample_extent(&x.dims());
        let classes = self.means.len();
        let means = TensorData::new(self.means.concat(), [1, classes, dimension]);
        let means = Tensor::<3>::from_data(means, &x.device());
        let squares = (x.unsqueeze_dim::<3>(1) - means).square().sum_dim(2);
        squares.reshape([batch, classes]).div_scalar(-2.0 * self.deviation * self.deviation)
    }
}

impl EnergyModel<2> for GaussianMixture {
    fn energy(&self, x: Tensor<2>) -> Tensor<1> {
        log_sum_exp(self.logits(x)).neg()
    }

    /// ∇E(x) = (x - Σ_c p(c|x) μ_c) / s², without autodiff.
    fn energy_and_grad(&self, x: Tensor<2>) -> (Tensor<1>, Tensor<2>) {
        let x = x.without_autodiff();
        let logits = self.logits(x.clone());
        let extent = [self.means.len(), self.means[0].len()];
        let means = Tensor::from_data(TensorData::new(self.means.concat(), extent), &x.device());
        let pull = activation::softmax(logits.clone(), 1).matmul(means);
        let gradient = (x - pull).div_scalar(self.deviation * self.deviation);
        (log_sum_exp(logits).neg(), gradient)
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn log_normalisers_agree_with_quadrature() {
        let device = Device::flex();
        let mixture = GaussianMixture::new(vec![vec![-1.0], vec![2.0]], 0.7).unwrap();
        let gaussian = Gaussian::new(0.5, 1.3).unwrap();
        let (n, low, high) = (4001usize, -12.0f32, 14.0f32);
        let width = (high - low) / (n - 1) as f32;
        let grid: Vec<f32> = (0..n).map(|i| low + width * i as f32).collect();
        let grid = Tensor::<2>::from_data(TensorData::new(grid, [n, 1]), &device);
        for (energy, expected) in [
            (mixture.energy(grid.clone()), mixture.log_normaliser()),
            (gaussian.energy(grid.clone()), gaussian.log_normaliser(1)),
        ] {
            let log_z = f64::from((energy.neg().exp().sum().into_scalar::<f32>() * width).ln());
            assert!((log_z - expected).abs() < 1e-4, "{log_z} != {expected}");
        }
    }

    #[test]
    fn exact_gradient_agrees_with_autodiff() {
        let gaussian = Gaussian::new(0.5, 1.3).unwrap();
        let x = Tensor::<2>::from_floats([[0.1, -2.0], [3.0, 0.5]], &Device::flex());
        let (_, exact) = gaussian.energy_and_grad(x.clone());
        let (_, auto) = crate::energy::energy_and_grad_by_autodiff(|x| gaussian.energy(x), x.clone());
        assert!(exact.all_close(auto, Some(1e-5), Some(1e-6)));
        let mixture = GaussianMixture::new(vec![vec![0.0, -1.0], vec![2.0, 0.5]], 0.8).unwrap();
        let (energy, exact) = mixture.energy_and_grad(x.clone());
        let (same, auto) = crate::energy::energy_and_grad_by_autodiff(|x| mixture.energy(x), x);
        assert!(energy.all_close(same, Some(1e-5), Some(1e-6)));
        assert!(exact.all_close(auto, Some(1e-4), Some(1e-5)));
    }

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

    #[test]
    fn irregular_mixtures_are_refused() {
        for means in [vec![], vec![vec![]], vec![vec![0.0], vec![0.0, 1.0]], vec![vec![f32::NAN]]] {
            assert!(GaussianMixture::new(means, 1.0).is_err());
        }
        assert!(GaussianMixture::new(vec![vec![0.0]], 0.0).is_err());
        assert!(Gaussian::new(0.0, f32::INFINITY).is_err());
    }
}
