//! A uniform mixture of Gaussians, which is a density and a perfect classifier at once.

use burn::tensor::{Tensor, TensorData, activation};
use rand::RngExt;
use rand_distr::StandardNormal;

use crate::energy::{Classifier, EnergyModel};
use crate::error::{Error, Result, ensure_positive};
use crate::math::{log_sum_exp, sample_extent};
use crate::noise::{Noise, Stream};

/// A uniform mixture of C isotropic Gaussians N(μ_c, s² I), which is also a perfect classifier:
/// f(x)\[c\] = -‖x - μ_c‖² / 2s², E(x) = -LSE f(x), log Z = log C + (d/2) log 2πs².
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::{Classifier, JointEnergy};
/// use jem_core::energy::analytic::GaussianMixture;
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
        let each =
            0.5 * dimension as f64 * (2.0 * std::f64::consts::PI * f64::from(self.deviation).powi(2)).ln();
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
