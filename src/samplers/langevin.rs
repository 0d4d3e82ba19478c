//! Improper SGLD: Langevin dynamics with step and noise chosen apart, the sampler that trains JEMs.

use serde::{Deserialize, Serialize};

use super::kernel::{Bounds, Force, Langevin, LangevinMove, check_options};
use crate::error::Result;
use crate::schedule::Schedule;

/// Configuration of [`ImproperSgld`]; the defaults are JEM's.
///
/// ```
/// use jem_core::samplers::ImproperSgldConfig;
/// // IGEBM's chain on [0, 1]: a long step along a clipped gradient.
/// let igebm = ImproperSgldConfig::new()
///     .with_step_size(10.0)
///     .with_noise_scale(0.005)
///     .with_gradient_clip(0.01)
///     .with_bounds(0.0, 1.0)
///     .init()?;
/// assert!(ImproperSgldConfig::new().with_step_size(-1.0).init().is_err());
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImproperSgldConfig {
    /// η, the factor of the gradient. Default 1 (JEM writes α = 2 and η = α/2).
    pub step_size: Schedule,
    /// σ, the standard deviation of the noise. Default 0.01.
    pub noise_scale: Schedule,
    /// Each element of the gradient is clamped to ± this. Default none.
    pub gradient_clip: Option<f32>,
    /// Each coordinate is clamped to this box after the step. Default none.
    pub bounds: Option<Bounds>,
}

impl Default for ImproperSgldConfig {
    fn default() -> Self {
        Self {
            step_size: Schedule::Constant(1.0),
            noise_scale: Schedule::Constant(0.01),
            gradient_clip: None,
            bounds: None,
        }
    }
}

impl ImproperSgldConfig {
    /// JEM's sampler: η = 1, σ = 0.01.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets η.
    pub fn with_step_size(mut self, step_size: impl Into<Schedule>) -> Self {
        self.step_size = step_size.into();
        self
    }

    /// Sets σ.
    pub fn with_noise_scale(mut self, noise_scale: impl Into<Schedule>) -> Self {
        self.noise_scale = noise_scale.into();
        self
    }

    /// Clamps each element of the gradient to ± `clip`.
    pub fn with_gradient_clip(mut self, clip: f32) -> Self {
        self.gradient_clip = Some(clip);
        self
    }

    /// Clamps each coordinate to [low, high].
    pub fn with_bounds(mut self, low: f32, high: f32) -> Self {
        self.bounds = Some(Bounds { low, high });
        self
    }

    /// The sampler.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) naming the field that is negative, not finite or empty.
    pub fn init(self) -> Result<ImproperSgld> {
        self.step_size.check("ImproperSgldConfig.step_size")?;
        self.noise_scale.check("ImproperSgldConfig.noise_scale")?;
        check_options("ImproperSgldConfig", self.gradient_clip, self.bounds)?;
        Ok(ImproperSgld { config: self })
    }
}

/// Langevin dynamics with step η and noise σ set apart, so that the chain mixes within tens of steps:
///
/// ```text
/// x ← x - η_t ∇E(x) + σ_t ε,   ε ~ N(0, I)
/// ```
///
/// It is improper: unless σ² = 2η and η → 0 its stationary distribution is not p(x). On N(0, 1) it has variance
/// σ² / (1 - (1 - η)²), which the tests check. JEM trains with η = 1 and σ = 0.01, 20 steps from a replay
/// buffer; IGEBM with a clipped gradient, η = 10 and σ = 0.005, 60 steps on \[0, 1\].
///
/// # Shapes
/// Any rank; `[chains, ..]`.
///
/// Source: Grathwohl et al. 2020, arXiv 1912.03263, section 3; Du & Mordatch 2019, arXiv 1903.08689;
/// Nijkamp et al. 2019, arXiv 1904.09770.
#[derive(Debug, Clone, PartialEq)]
pub struct ImproperSgld {
    config: ImproperSgldConfig,
}

impl Langevin for ImproperSgld {
    fn move_at(&self, t: u64) -> LangevinMove {
        let ImproperSgldConfig { step_size, noise_scale, gradient_clip, bounds } = &self.config;
        LangevinMove {
            drift: step_size.value(t),
            noise_scale: noise_scale.value(t),
            force: Force::clipped(*gradient_clip),
            bounds: *bounds,
        }
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::energy::analytic::Gaussian;
    use crate::noise::{Noise, Stream};
    use crate::samplers::{Sampler, run};
    use burn::tensor::{Device, Tensor};

    #[test]
    fn one_step_is_the_formula_with_clip_bounds_and_schedules() {
        let device = Device::flex();
        let x = Tensor::<2>::from_floats([[2.0, -0.5]], &device);
        let model = Gaussian::standard(); // ∇E(x) = x
        let mut noise = Noise::host(1);
        let draws = noise.clone().normal([1, 2], Stream::CHAIN, &device);
        let sampler = ImproperSgldConfig::new()
            .with_step_size(Schedule::Linear { from: 0.5, to: 0.0, steps: 1 })
            .with_noise_scale(Schedule::Linear { from: 0.1, to: 0.0, steps: 1 })
            .with_gradient_clip(1.0)
            .with_bounds(-0.2, 1.6);
        let sampler = sampler.init().unwrap();
        let state = sampler.init(&model, x.clone());
        let (state, info) = sampler.step(&model, state, &mut noise);
        let force = Tensor::from_floats([[1.0, -0.5]], &device);
        let expected = (x.clone() - force.mul_scalar(0.5) + draws.mul_scalar(0.1)).clamp(-0.2, 1.6);
        assert!(state.x.clone().all_close(expected.clone(), Some(1e-6), Some(1e-6)));
        assert_eq!(info.gradient.to_data(), x.to_data()); // unclipped
        assert!((info.gradient_norm().into_scalar::<f32>() - 4.25f32.sqrt()).abs() < 1e-6);
        // The schedules have reached 0: the second step moves nothing.
        let (state, _) = sampler.step(&model, state, &mut noise);
        assert!(state.x.all_close(expected, Some(1e-6), Some(1e-6)));
    }

    #[test]
    fn bad_configurations_are_named() {
        let new = ImproperSgldConfig::new;
        for (config, field) in [
            (new().with_step_size(f64::NAN), "step_size"),
            (new().with_noise_scale(-0.1), "noise_scale"),
            (new().with_gradient_clip(0.0), "gradient_clip"),
            (new().with_bounds(1.0, 1.0), "bounds"),
            (new().with_bounds(f32::NEG_INFINITY, 1.0), "bounds"),
        ] {
            let message = config.init().unwrap_err().to_string();
            assert!(message.contains(&format!("ImproperSgldConfig.{field} =")), "{message}");
        }
    }

    #[test]
    fn no_steps_is_the_identity() {
        let x = Tensor::<2>::ones([2, 2], &Device::flex());
        let sampler = ImproperSgldConfig::new().init().unwrap();
        let end = run(&sampler, &Gaussian::standard(), x.clone(), 0, &mut Noise::host(0));
        assert_eq!(end.to_data(), x.to_data());
    }
}
