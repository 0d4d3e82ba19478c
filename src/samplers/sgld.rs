//! Proper SGLD: Langevin dynamics whose noise matches its step, with a decaying step.

use serde::{Deserialize, Serialize};

use super::kernel::{Bounds, Force, Langevin, LangevinMove, check_options};
use crate::error::Result;
use crate::schedule::Schedule;

/// Configuration of [`Sgld`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SgldConfig {
    /// α_t. A constant gives the unadjusted Langevin algorithm; the theory asks for
    /// [`Schedule::polynomial`] with an exponent in (0.5, 1].
    pub step_size: Schedule,
    /// Each element of the gradient is clamped to ± this. Default none.
    #[serde(default)]
    pub gradient_clip: Option<f32>,
    /// Each coordinate is clamped to this box after the step. Default none.
    #[serde(default)]
    pub bounds: Option<Bounds>,
}

impl SgldConfig {
    /// Steps of size α_t.
    pub fn new(step_size: impl Into<Schedule>) -> Self {
        Self { step_size: step_size.into(), gradient_clip: None, bounds: None }
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
    pub fn init(self) -> Result<Sgld> {
        self.step_size.check("SgldConfig.step_size")?;
        check_options("SgldConfig", self.gradient_clip, self.bounds)?;
        Ok(Sgld { config: self })
    }
}

/// Stochastic gradient Langevin dynamics with proper scaling:
///
/// ```text
/// x ← x - (α_t/2) ∇E(x) + ε,   ε ~ N(0, α_t)
/// ```
///
/// With α_t → 0 slowly enough the chain converges to p(x); with a constant step it is biased by O(α): on
/// N(0, 1) its variance is 1 / (1 - α/4). A clip or a box, where set, changes the law for good.
///
/// # Shapes
/// Any rank; `[chains, ..]`.
///
/// ```
/// use jem_core::samplers::SgldConfig;
/// use jem_core::schedule::Schedule;
/// let sampler = SgldConfig::new(Schedule::polynomial(0.1, 1.0, 0.55)).init()?;
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Welling & Teh 2011, "Bayesian learning via stochastic gradient Langevin dynamics"; Grathwohl et
/// al. 2020, arXiv 1912.03263, equation 5.
#[derive(Debug, Clone, PartialEq)]
pub struct Sgld {
    config: SgldConfig,
}

impl Langevin for Sgld {
    fn move_at(&self, t: u64) -> LangevinMove {
        let SgldConfig { step_size, gradient_clip, bounds } = &self.config;
        let alpha = step_size.value(t);
        LangevinMove {
            drift: alpha / 2.0,
            noise_scale: alpha.sqrt(),
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
    use crate::samplers::Sampler;
    use burn::tensor::{Device, Tensor};

    #[test]
    fn noise_scales_with_the_root_of_the_step() {
        let device = Device::flex();
        let x = Tensor::<2>::from_floats([[2.0, -1.0]], &device);
        let mut noise = Noise::host(4);
        let draws = noise.clone().normal([1, 2], Stream::CHAIN, &device);
        let sampler = SgldConfig::new(0.16).init().unwrap();
        let state = sampler.init(&Gaussian::standard(), x.clone());
        let (state, _) = sampler.step(&Gaussian::standard(), state, &mut noise);
        let expected = x.clone() - x.mul_scalar(0.08) + draws.mul_scalar(0.4);
        assert!(state.x.all_close(expected, Some(1e-6), Some(1e-6)));
        assert!(SgldConfig::new(-0.1).init().is_err());
    }

    #[test]
    fn clip_and_box_are_options() {
        let device = Device::flex();
        let x = Tensor::<2>::from_floats([[2.0, -0.1]], &device);
        let mut noise = Noise::host(4);
        let draws = noise.clone().normal([1, 2], Stream::CHAIN, &device);
        let sampler = SgldConfig::new(0.16).with_gradient_clip(1.0).with_bounds(-0.2, 1.6).init().unwrap();
        let state = sampler.init(&Gaussian::standard(), x.clone());
        let (state, info) = sampler.step(&Gaussian::standard(), state, &mut noise);
        let force = Tensor::from_floats([[1.0, -0.1]], &device);
        let expected = (x.clone() - force.mul_scalar(0.08) + draws.mul_scalar(0.4)).clamp(-0.2, 1.6);
        assert!(state.x.all_close(expected, Some(1e-6), Some(1e-6)));
        assert_eq!(info.gradient.to_data(), x.to_data());
        for (config, field) in [
            (SgldConfig::new(0.1).with_gradient_clip(-1.0), "gradient_clip"),
            (SgldConfig::new(0.1).with_bounds(1.0, 0.0), "bounds"),
        ] {
            let message = config.init().unwrap_err().to_string();
            assert!(message.contains(&format!("SgldConfig.{field} =")), "{message}");
        }
        // Files from before the options existed can still be read.
        let old: SgldConfig = serde_json::from_str(r#"{"step_size":{"constant":0.1}}"#).unwrap();
        assert_eq!(old, SgldConfig::new(0.1));
    }
}
