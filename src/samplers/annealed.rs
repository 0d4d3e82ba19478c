//! Annealed Langevin dynamics: step and noise walk down a ladder of scales, coarse moves first.

use serde::{Deserialize, Serialize};

use super::kernel::{Bounds, Force, Langevin, LangevinMove, check_options};
use crate::error::{Error, Result, ensure};
use crate::schedule::Schedule;

/// Configuration of [`AnnealedLangevin`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnnealedLangevinConfig {
    /// s_0 > s_1 > … > s_{L-1}, the scales of the levels.
    pub scales: Vec<f64>,
    /// T, the steps at each level. Default 100.
    pub steps_per_level: u64,
    /// ε, the step of the last level, as a function of the level.
    pub step_size: Schedule,
    /// τ, the factor of the noise, as a function of the level: the law of a level is that of E/τ². Default 1.
    pub noise_factor: Schedule,
    /// Each element of the gradient is clamped to ± this. Default none.
    #[serde(default)]
    pub gradient_clip: Option<f32>,
    /// Each coordinate is clamped to this box after the step. Default none.
    #[serde(default)]
    pub bounds: Option<Bounds>,
}

impl AnnealedLangevinConfig {
    /// 100 steps at each of `scales`, which must descend, with a step of ε at the last.
    pub fn new(scales: impl Into<Vec<f64>>, step_size: impl Into<Schedule>) -> Self {
        Self {
            scales: scales.into(),
            steps_per_level: 100,
            step_size: step_size.into(),
            noise_factor: Schedule::Constant(1.0),
            gradient_clip: None,
            bounds: None,
        }
    }

    /// A geometric ladder of `levels` scales from `first` down to `last`, both included.
    pub fn geometric(first: f64, last: f64, levels: usize, step_size: impl Into<Schedule>) -> Self {
        let share = |level: usize| level as f64 / levels.saturating_sub(1).max(1) as f64;
        let scales = (0..levels).map(|level| first * (last / first).powf(share(level)));
        Self::new(scales.collect::<Vec<_>>(), step_size)
    }

    /// Sets T.
    pub fn with_steps_per_level(mut self, steps: u64) -> Self {
        self.steps_per_level = steps;
        self
    }

    /// Sets τ over the levels.
    pub fn with_noise_factor(mut self, factor: impl Into<Schedule>) -> Self {
        self.noise_factor = factor.into();
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
    /// [`Error::Config`] naming the field that is not allowed: scales must be finite, above 0 and descend.
    pub fn init(self) -> Result<AnnealedLangevin> {
        let scales = &self.scales;
        let positive = scales.iter().all(|scale| scale.is_finite() && *scale > 0.0);
        if scales.is_empty() || !positive || !scales.windows(2).all(|pair| pair[0] > pair[1]) {
            let allowed = "at least one finite number > 0, each below the one before";
            return Err(Error::config("AnnealedLangevinConfig.scales", format!("{scales:?}"), allowed));
        }
        let steps = self.steps_per_level;
        ensure(steps > 0, "AnnealedLangevinConfig.steps_per_level", steps, "at least 1")?;
        self.step_size.check("AnnealedLangevinConfig.step_size")?;
        self.noise_factor.check("AnnealedLangevinConfig.noise_factor")?;
        check_options("AnnealedLangevinConfig", self.gradient_clip, self.bounds)?;
        Ok(AnnealedLangevin { config: self })
    }
}

/// Langevin dynamics over a ladder of L scales, T steps at each:
///
/// ```text
/// level i = min(⌊t / T⌋, L - 1),   η_i = ε_i (s_i / s_{L-1})²
/// x ← x - η_i ∇E(x) + τ_i √(2η_i) ξ,   ξ ~ N(0, I)
/// ```
///
/// The coarse levels move far, the fine ones settle. [`num_steps`](Self::num_steps) is the length of the whole
/// ladder; a longer chain stays at the last level. There it is [`Ula`](super::Ula) with step ε, for the energy
/// E/τ²: on N(0, 1) the variance tends to τ² / (1 - ε/2). The largest step must be stable: η_0 c < 2 for a
/// curvature c. A falling τ is simulated annealing; τ = 0 at the last level ends in modes.
///
/// # Shapes
/// Any rank; `[chains, ..]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{AnnealedLangevinConfig, run};
///
/// let config = AnnealedLangevinConfig::geometric(4.0, 1.0, 5, 0.05).with_steps_per_level(10);
/// let annealed = config.init()?;
/// let x = Tensor::<2>::full([500, 1], 20.0, &Device::default());
/// let end = run(&annealed, &Gaussian::standard(), x, annealed.num_steps(), &mut Noise::host(0));
/// assert!(end.mean().into_scalar::<f32>().abs() < 0.3); // from 20 to 0
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Song & Ermon 2019, "Generative modeling by estimating gradients of the data distribution", arXiv
/// 1907.05600, algorithm 1, whose step ratio this is; there the energy changes with the level too.
#[derive(Debug, Clone, PartialEq)]
pub struct AnnealedLangevin {
    config: AnnealedLangevinConfig,
}

impl AnnealedLangevin {
    /// L T, the steps of the whole ladder.
    pub fn num_steps(&self) -> usize {
        self.config.scales.len() * self.config.steps_per_level as usize
    }
}

impl Langevin for AnnealedLangevin {
    fn move_at(&self, t: u64) -> LangevinMove {
        let AnnealedLangevinConfig { scales, steps_per_level, step_size, noise_factor, .. } = &self.config;
        let last = scales.len() - 1;
        let level = (t / steps_per_level).min(last as u64);
        let ratio = scales[level as usize] / scales[last];
        let drift = step_size.value(level) * ratio * ratio;
        LangevinMove {
            drift,
            noise_scale: noise_factor.value(level) * (2.0 * drift).sqrt(),
            force: Force::clipped(self.config.gradient_clip),
            bounds: self.config.bounds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_last_t_steps_and_the_last_goes_on() {
        let config = AnnealedLangevinConfig::new([4.0, 2.0, 1.0], 0.01)
            .with_steps_per_level(3)
            .with_noise_factor(Schedule::Linear { from: 2.0, to: 1.0, steps: 2 });
        let annealed = config.init().unwrap();
        assert_eq!(annealed.num_steps(), 9);
        for (t, drift, factor) in
            [(0, 0.16, 2.0), (2, 0.16, 2.0), (3, 0.04, 1.5), (6, 0.01, 1.0), (99, 0.01, 1.0)]
        {
            let found = annealed.move_at(t);
            assert!((found.drift - drift).abs() < 1e-12, "{t}: {found:?}");
            assert!((found.noise_scale - factor * (2.0 * drift).sqrt()).abs() < 1e-12, "{t}: {found:?}");
        }
    }

    #[test]
    fn a_geometric_ladder_has_its_ends_and_a_constant_ratio() {
        let scales = AnnealedLangevinConfig::geometric(8.0, 1.0, 4, 0.1).scales;
        for (found, expected) in scales.iter().zip([8.0, 4.0, 2.0, 1.0]) {
            assert!((found - expected).abs() < 1e-12, "{scales:?}");
        }
        assert_eq!(AnnealedLangevinConfig::geometric(8.0, 1.0, 1, 0.1).scales, [8.0]);
    }

    #[test]
    fn bad_configurations_are_named() {
        let new = || AnnealedLangevinConfig::new([2.0, 1.0], 0.1);
        for (config, field) in [
            (AnnealedLangevinConfig::new([], 0.1), "scales"),
            (AnnealedLangevinConfig::new([1.0, 1.0], 0.1), "scales"),
            (AnnealedLangevinConfig::new([1.0, 0.0], 0.1), "scales"),
            (AnnealedLangevinConfig::geometric(1.0, f64::NAN, 3, 0.1), "scales"),
            (AnnealedLangevinConfig::new([1.0], -0.1), "step_size"),
            (new().with_steps_per_level(0), "steps_per_level"),
            (new().with_noise_factor(f64::NAN), "noise_factor"),
            (new().with_gradient_clip(0.0), "gradient_clip"),
            (new().with_bounds(1.0, 0.0), "bounds"),
        ] {
            let message = config.init().unwrap_err().to_string();
            assert!(message.contains(&format!("AnnealedLangevinConfig.{field} =")), "{message}");
        }
    }
}
