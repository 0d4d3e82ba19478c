//! Proximal SGLD: JEM++'s noiseless step along a clipped gradient, projected back into the box of the data.

use serde::{Deserialize, Serialize};

use super::kernel::{Bounds, Force, Langevin, LangevinMove, check_options};
use crate::error::Result;
use crate::schedule::Schedule;

/// Configuration of [`ProximalSgld`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProximalSgldConfig {
    /// η_t. SADA-JEM has 1; JEM++ has 0.2 in the inner steps of its own sampler.
    pub step_size: Schedule,
    /// Each element of the gradient is clamped to ± this. Default 1.
    pub gradient_clip: f32,
    /// The box that samples are projected to. Default [-1, 1].
    pub bounds: Bounds,
}

impl ProximalSgldConfig {
    /// Steps of size η, with the gradient clipped to ± 1 and samples kept in [-1, 1].
    pub fn new(step_size: impl Into<Schedule>) -> Self {
        Self { step_size: step_size.into(), gradient_clip: 1.0, bounds: Bounds { low: -1.0, high: 1.0 } }
    }

    /// JEM++'s PYLD, where the first layer is linear: `inner_steps` steps of size `step_size` for each gradient.
    ///
    /// PYLD goes through the whole network once per outer step, and in between only through the first layer, with the
    /// gradient p in that layer's output frozen: x ← clamp(x - η clamp(Jᵀp, ±1), -1, 1), J the layer's Jacobian at the
    /// present x. The layer that JEM++ freezes behind is the first convolution of a WideResNet. It is linear, J does
    /// not change, and n such steps are one of size n η. JEM++ makes 10 outer steps of 5 inner ones with η = 0.2: this
    /// sampler with `pyld(0.2, 5)` and K = 10. Behind a layer that is not linear they would differ.
    ///
    /// Source: Yang & Ji 2021, arXiv 2109.09032; Zhang et al. 2019, "You only propagate once", arXiv 1905.00877.
    pub fn pyld(step_size: f64, inner_steps: u32) -> Self {
        Self::new(step_size * f64::from(inner_steps))
    }

    /// Clamps each element of the gradient to ± `clip`.
    pub fn with_gradient_clip(mut self, clip: f32) -> Self {
        self.gradient_clip = clip;
        self
    }

    /// Projects to [low, high] in each coordinate.
    pub fn with_bounds(mut self, low: f32, high: f32) -> Self {
        self.bounds = Bounds { low, high };
        self
    }

    /// The sampler.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) naming the field that is negative, not finite or empty.
    pub fn init(self) -> Result<ProximalSgld> {
        self.step_size.check("ProximalSgldConfig.step_size")?;
        check_options("ProximalSgldConfig", Some(self.gradient_clip), Some(self.bounds))?;
        Ok(ProximalSgld { config: self })
    }
}

/// Projected descent along a clipped gradient:
///
/// ```text
/// x ← clamp(x - η_t clamp(∇E(x), ±1), -1, 1)
/// ```
///
/// There is no noise: what spreads the samples are their starts, so that it belongs with informative ones
/// ([`ClassGaussianStart`](super::ClassGaussianStart)) and a buffer. It has no stationary law; its bias is that
/// chains end in local minima of E within the box. A step moves no coordinate by more than η times the clip.
///
/// # Shapes
/// Any rank; `[chains, ..]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{ProximalSgldConfig, run};
///
/// let sampler = ProximalSgldConfig::new(0.5).init()?;
/// let x = Tensor::<2>::from_floats([[3.0, -0.5]], &Device::default());
/// let end = run(&sampler, &Gaussian::standard(), x, 1, &mut Noise::host(0));
/// // 3 - 0.5 · 1 is projected to 1; -0.5 + 0.5 · 0.5 is within.
/// assert_eq!(end.into_data().try_to_vec::<f32>().unwrap(), [1.0, -0.25]);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Yang & Ji 2021, "JEM++: improved techniques for training JEM", arXiv 2109.09032; Yang, Su & Ji 2023,
/// "Towards bridging the performance gaps of joint energy-based models", arXiv 2209.07959.
#[derive(Debug, Clone, PartialEq)]
pub struct ProximalSgld {
    config: ProximalSgldConfig,
}

impl Langevin for ProximalSgld {
    fn move_at(&self, t: u64) -> LangevinMove {
        let ProximalSgldConfig { step_size, gradient_clip, bounds } = &self.config;
        LangevinMove {
            drift: step_size.value(t),
            noise_scale: 0.0,
            force: Force::Clipped(*gradient_clip),
            bounds: Some(*bounds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_configurations_are_named() {
        for (config, field) in [
            (ProximalSgldConfig::new(-1.0), "step_size"),
            (ProximalSgldConfig::new(1.0).with_gradient_clip(f32::INFINITY), "gradient_clip"),
            (ProximalSgldConfig::new(1.0).with_bounds(1.0, -1.0), "bounds"),
        ] {
            let message = config.init().unwrap_err().to_string();
            assert!(message.contains(&format!("ProximalSgldConfig.{field} =")), "{message}");
        }
    }
}
