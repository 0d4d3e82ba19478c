//! Model-predictive path integral: perturbed candidates, averaged by how low their energies are.

use burn::tensor::{Tensor, activation};
use serde::{Deserialize, Serialize};

use super::Sampler;
use super::kernel::{Bounds, ChainState, check_options};
use crate::energy::EnergyModel;
use crate::error::{Result, ensure};
use crate::math::per_chain;
use crate::noise::{Noise, Stream};
use crate::schedule::Schedule;

/// Configuration of [`Mppi`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MppiConfig {
    /// σ_t, the standard deviation of the perturbations.
    pub noise_scale: Schedule,
    /// λ_t, the temperature of the weights; 0 takes the best candidate. Default 1.
    pub temperature: Schedule,
    /// K, candidates per chain. Default 16.
    pub num_candidates: usize,
    /// Each coordinate of a candidate is clamped to this box. Default none.
    #[serde(default)]
    pub bounds: Option<Bounds>,
}

impl MppiConfig {
    /// 16 candidates at a deviation of σ, weighted at a temperature of 1.
    pub fn new(noise_scale: impl Into<Schedule>) -> Self {
        Self {
            noise_scale: noise_scale.into(),
            temperature: Schedule::Constant(1.0),
            num_candidates: 16,
            bounds: None,
        }
    }

    /// Sets λ.
    pub fn with_temperature(mut self, temperature: impl Into<Schedule>) -> Self {
        self.temperature = temperature.into();
        self
    }

    /// Sets K.
    pub fn with_num_candidates(mut self, count: usize) -> Self {
        self.num_candidates = count;
        self
    }

    /// Clamps each coordinate of a candidate to [low, high].
    pub fn with_bounds(mut self, low: f32, high: f32) -> Self {
        self.bounds = Some(Bounds { low, high });
        self
    }

    /// The sampler.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) naming the field that is not allowed.
    pub fn init(self) -> Result<Mppi> {
        self.noise_scale.check("MppiConfig.noise_scale")?;
        self.temperature.check("MppiConfig.temperature")?;
        ensure(self.num_candidates > 0, "MppiConfig.num_candidates", self.num_candidates, "at least 1")?;
        check_options("MppiConfig", None, self.bounds)?;
        Ok(Mppi { config: self })
    }
}

/// The candidates of a step.
#[derive(Debug, Clone)]
pub struct MppiInfo {
    /// Energies of the candidates, `[chains, candidates]`.
    pub energies: Tensor<2>,
    /// Their weights, each row summing to 1, `[chains, candidates]`.
    pub weights: Tensor<2>,
}

/// Each chain perturbs itself K times, and moves to the weighted mean:
///
/// ```text
/// y_k = x + σ_t ε_k,   ε_k ~ N(0, I)
/// w_k ∝ exp(-(E(y_k) - min_j E(y_j)) / λ_t),   x ← Σ_k w_k y_k
/// ```
///
/// No gradient is needed, which suits energies that have none, and states over time (trajectories), for which
/// it was made. It is a descent with noise, not a sampler of p(x). On N(0, 1) with many candidates the mean
/// shrinks by a = λ / (λ + σ²) in a step, and the stationary variance is V / (1 - a²) with
///
/// ```text
/// V = (1/K) · σ²λ / (λ + 2σ²) · √(λ / (λ + 2σ²)) · (λ + σ²) / λ        up to O(1/K²)
/// ```
///
/// A candidate whose energy is a NaN or +∞ weighs nothing, unless all of them are: then the chain ends in a NaN.
/// The candidates are evaluated one batch after the other, K evaluations in all.
///
/// # Shapes
/// Any rank; `[chains, ..]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{MppiConfig, run};
///
/// let mppi = MppiConfig::new(1.0).with_temperature(0.1).with_num_candidates(32).init()?;
/// let x = Tensor::<2>::full([100, 2], 4.0, &Device::default());
/// let end = run(&mppi, &Gaussian::standard(), x, 20, &mut Noise::host(0));
/// assert!(end.square().mean().into_scalar::<f32>() < 0.1); // near the mode
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Williams, Aldrich & Theodorou 2015, "Model predictive path integral control using covariance variable
/// importance sampling", arXiv 1509.01149; for energy-based models Du & Mordatch 2019, arXiv 1903.08689.
#[derive(Debug, Clone, PartialEq)]
pub struct Mppi {
    config: MppiConfig,
}

impl<const D: usize> Sampler<D> for Mppi {
    type State = ChainState<D>;
    type Info = MppiInfo;

    fn init(&self, _model: &dyn EnergyModel<D>, x: Tensor<D>) -> ChainState<D> {
        ChainState { x: x.without_autodiff(), t: 0 }
    }

    fn step(
        &self,
        model: &dyn EnergyModel<D>,
        state: ChainState<D>,
        noise: &mut Noise,
    ) -> (ChainState<D>, MppiInfo) {
        let ChainState { x, t } = state;
        let (sigma, lambda) = (self.config.noise_scale.value(t), self.config.temperature.value(t));
        let mut candidates = Vec::with_capacity(self.config.num_candidates);
        let mut energies = Vec::with_capacity(self.config.num_candidates);
        for _ in 0..self.config.num_candidates {
            let draws = noise.normal(x.dims(), Stream::CHAIN, &x.device());
            let mut candidate = x.clone() + draws.mul_scalar(sigma);
            if let Some(bounds) = self.config.bounds {
                candidate = bounds.clamp(candidate);
            }
            energies.push(model.energy(candidate.clone()).without_autodiff());
            candidates.push(candidate);
        }
        let energies: Tensor<2> = Tensor::stack(energies, 1);
        let weights = weights(energies.clone(), lambda);
        let x = candidates.into_iter().enumerate().fold(x.zeros_like(), |sum, (k, candidate)| {
            let weight = weights.clone().narrow(1, k, 1).squeeze_dim::<1>(1);
            sum + candidate * per_chain(weight)
        });
        (ChainState { x, t: t + 1 }, MppiInfo { energies, weights })
    }

    fn position(&self, state: &ChainState<D>) -> Tensor<D> {
        state.x.clone()
    }

    fn moved_to(&self, _model: &dyn EnergyModel<D>, state: ChainState<D>, x: Tensor<D>) -> ChainState<D> {
        ChainState { x: x.without_autodiff(), t: state.t }
    }
}

/// softmax(-E/λ) along the candidates, `[chains, candidates]`, with λ → 0 as its limit.
fn weights(energies: Tensor<2>, lambda: f64) -> Tensor<2> {
    let energies = energies.clone().mask_fill(energies.is_nan(), f32::INFINITY);
    let best = energies.clone().min_dim(1);
    let above = (energies - best).div_scalar(lambda.max(1e-30));
    activation::softmax(above.neg(), 1)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::energy::analytic::Gaussian;
    use burn::tensor::Device;

    fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    #[test]
    fn one_step_is_the_formula() {
        let device = Device::flex();
        let x = Tensor::<2>::from_floats([[1.0], [-2.0]], &device);
        let mppi = MppiConfig::new(0.5).with_temperature(0.3).with_num_candidates(3).init().unwrap();
        let mut noise = Noise::host(4);
        let mut same = noise.clone();
        let draws: Vec<Vec<f32>> =
            (0..3).map(|_| values(same.normal([2, 1], Stream::CHAIN, &device))).collect();
        let state = Sampler::<2>::init(&mppi, &Gaussian::standard(), x);
        let (state, info) = mppi.step(&Gaussian::standard(), state, &mut noise);
        let end = values(state.x);
        for (chain, start) in [1.0f32, -2.0].into_iter().enumerate() {
            let candidates: Vec<f32> = draws.iter().map(|draw| start + 0.5 * draw[chain]).collect();
            let weight = |y: &f32| (-0.5 * y * y / 0.3).exp();
            let total: f32 = candidates.iter().map(weight).sum();
            let mean: f32 = candidates.iter().map(|y| y * weight(y)).sum::<f32>() / total;
            assert!((end[chain] - mean).abs() < 1e-5, "{} != {mean}", end[chain]);
        }
        assert_eq!((info.energies.dims(), info.weights.dims()), ([2, 3], [2, 3]));
    }

    #[test]
    fn weights_have_their_limits_and_ignore_what_is_not_a_number() {
        let energies = Tensor::<2>::from_floats([[1.0, 0.5, f32::NAN, f32::INFINITY]], &Device::flex());
        assert_eq!(values(weights(energies.clone(), 0.0)), [0.0, 1.0, 0.0, 0.0]);
        let share = 1.0 / (1.0 + (-0.5f32).exp());
        let found = values(weights(energies, 1.0));
        assert!((found[1] - share).abs() < 1e-6 && found[2] == 0.0 && found[3] == 0.0, "{found:?}");
    }

    #[test]
    fn bad_configurations_are_named() {
        for (config, field) in [
            (MppiConfig::new(-0.1), "noise_scale"),
            (MppiConfig::new(0.1).with_temperature(f64::NAN), "temperature"),
            (MppiConfig::new(0.1).with_num_candidates(0), "num_candidates"),
            (MppiConfig::new(0.1).with_bounds(1.0, 0.0), "bounds"),
        ] {
            let message = config.init().unwrap_err().to_string();
            assert!(message.contains(&format!("MppiConfig.{field} =")), "{message}");
        }
    }
}
