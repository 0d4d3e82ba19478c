//! The unadjusted Langevin algorithm: a constant proper step, and a bias that is known.

use serde::{Deserialize, Serialize};

use super::kernel::{Bounds, Force, Langevin, LangevinMove, check_options};
use crate::error::Result;
use crate::schedule::Schedule;

/// Configuration of [`Ula`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UlaConfig {
    /// ε_t.
    pub step_size: Schedule,
    /// Each element of the gradient is clamped to ± this. Default none.
    #[serde(default)]
    pub gradient_clip: Option<f32>,
    /// Each coordinate is clamped to this box after the step. Default none.
    #[serde(default)]
    pub bounds: Option<Bounds>,
}

impl UlaConfig {
    /// Steps of size ε.
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
    pub fn init(self) -> Result<Ula> {
        self.step_size.check("UlaConfig.step_size")?;
        check_options("UlaConfig", self.gradient_clip, self.bounds)?;
        Ok(Ula { config: self })
    }
}

/// The unadjusted Langevin algorithm, which is the Euler scheme of dX = -∇E(X) dt + √2 dW:
///
/// ```text
/// x ← x - ε_t ∇E(x) + √(2ε_t) ξ,   ξ ~ N(0, I)
/// ```
///
/// It is biased by O(ε): on N(0, 1) its variance is 1 / (1 - ε/2), and for a curvature c replace ε by εc. It is
/// [`Sgld`](super::Sgld) with α = 2ε. [`Mala`](super::Mala) makes the same proposals and removes the bias. A
/// clip or a box, where set, changes the law for good.
///
/// # Shapes
/// Any rank; `[chains, ..]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{UlaConfig, run};
///
/// let ula = UlaConfig::new(0.2).init()?;
/// let x = Tensor::<2>::zeros([500, 2], &Device::default());
/// let end = run(&ula, &Gaussian::standard(), x, 30, &mut Noise::host(0));
/// let variance = end.square().mean().into_scalar::<f32>();
/// assert!(variance > 0.9 && variance < 1.35); // 1 / (1 - 0.1) is 1.11
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Roberts & Tweedie, "Exponential convergence of Langevin distributions and their discrete
/// approximations", Bernoulli 2, 1996, doi 10.2307/3318418.
#[derive(Debug, Clone, PartialEq)]
pub struct Ula {
    config: UlaConfig,
}

impl Langevin for Ula {
    fn move_at(&self, t: u64) -> LangevinMove {
        let epsilon = self.config.step_size.value(t);
        LangevinMove {
            drift: epsilon,
            noise_scale: (2.0 * epsilon).sqrt(),
            force: Force::clipped(self.config.gradient_clip),
            bounds: self.config.bounds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_move_is_the_formula() {
        let ula = UlaConfig::new(Schedule::Linear { from: 0.5, to: 0.0, steps: 2 });
        let ula = ula.with_gradient_clip(2.0).with_bounds(-1.0, 1.0).init().unwrap();
        let found = ula.move_at(1);
        assert_eq!((found.drift, found.force), (0.25, Force::Clipped(2.0)));
        assert_eq!(found.bounds, Some(Bounds { low: -1.0, high: 1.0 }));
        assert!((found.noise_scale - 0.5f64.sqrt()).abs() < 1e-12);
        for (config, field) in [
            (UlaConfig::new(f64::NAN), "step_size"),
            (UlaConfig::new(0.1).with_gradient_clip(0.0), "gradient_clip"),
            (UlaConfig::new(0.1).with_bounds(0.0, 0.0), "bounds"),
        ] {
            let message = config.init().unwrap_err().to_string();
            assert!(message.contains(&format!("UlaConfig.{field} =")), "{message}");
        }
    }
}
