//! Normalised-gradient descent: every step of a chain has the same length, whatever the slope.

use serde::{Deserialize, Serialize};

use super::kernel::{Bounds, Force, Langevin, LangevinMove, check_options};
use crate::error::Result;
use crate::schedule::Schedule;

/// Configuration of [`NormalizedGradient`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NormalizedGradientConfig {
    /// η_t, the length of a step in L2. Default 0.1.
    pub step_size: Schedule,
    /// Each coordinate is clamped to this box after the step. Default none.
    #[serde(default)]
    pub bounds: Option<Bounds>,
}

impl Default for NormalizedGradientConfig {
    fn default() -> Self {
        Self { step_size: Schedule::Constant(0.1), bounds: None }
    }
}

impl NormalizedGradientConfig {
    /// Steps of length 0.1.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets η.
    pub fn with_step_size(mut self, step_size: impl Into<Schedule>) -> Self {
        self.step_size = step_size.into();
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
    pub fn init(self) -> Result<NormalizedGradient> {
        self.step_size.check("NormalizedGradientConfig.step_size")?;
        check_options("NormalizedGradientConfig", None, self.bounds)?;
        Ok(NormalizedGradient { config: self })
    }
}

/// Steps of a fixed length down the gradient, each chain by its own:
///
/// ```text
/// x ← x - η_t ∇E(x) / ‖∇E(x)‖₂
/// ```
///
/// A chain makes a way of at most η T in T steps, so that T decides how far negatives are from their starts. A
/// chain whose gradient is 0 stays. There is no noise and no stationary law: near a minimum a chain keeps
/// stepping across it, so that it ends within η of it.
///
/// # Shapes
/// Any rank; `[chains, ..]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{NormalizedGradientConfig, run};
///
/// let sampler = NormalizedGradientConfig::new().with_step_size(5.0).init()?;
/// let x = Tensor::<2>::from_floats([[6.0, 8.0]], &Device::default());
/// let end = run(&sampler, &Gaussian::standard(), x, 1, &mut Noise::host(0));
/// assert_eq!(end.into_data().try_to_vec::<f32>().unwrap(), [3.0, 4.0]); // half of the way of 10
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Yin et al. 2025, "Joint discriminative-generative modeling via dual adversarial training" (DAT), arXiv
/// 2510.13872.
#[derive(Debug, Clone, PartialEq)]
pub struct NormalizedGradient {
    config: NormalizedGradientConfig,
}

impl Langevin for NormalizedGradient {
    fn move_at(&self, t: u64) -> LangevinMove {
        LangevinMove {
            drift: self.config.step_size.value(t),
            noise_scale: 0.0,
            force: Force::Normalized,
            bounds: self.config.bounds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_configurations_are_named() {
        let new = NormalizedGradientConfig::new;
        for (config, field) in
            [(new().with_step_size(f64::INFINITY), "step_size"), (new().with_bounds(f32::NAN, 1.0), "bounds")]
        {
            let message = config.init().unwrap_err().to_string();
            assert!(message.contains(&format!("NormalizedGradientConfig.{field} =")), "{message}");
        }
    }
}
