//! Denoising score matching: the slope of the energy at a noisy sample points back to the clean one.

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::differences::{check_directions, one_per_direction};
use super::{directional_slope, rademacher, score_terms};
use crate::data::JointBatch;
use crate::energy::{Classifier, EnergyModel, JointEnergy};
use crate::error::{Result, ensure_positive};
use crate::math::per_sample;
use crate::noise::{Noise, Stream};
use crate::objectives::{Loss, Objective};

/// The noise on the data.
const NOISE: Stream = Stream::new("score_matching/noise");

/// Configuration of [`DenoisingScoreMatching`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DenoisingScoreMatchingConfig {
    /// σ, the standard deviation of the noise.
    pub noise_scale: f64,
    /// δ, the step of the difference, as a multiple of v, whose coordinates are ±1. Default 0.02, for data and
    /// energies of order 1; see [`directional_differences`](super::directional_differences).
    pub step: f64,
    /// Directions per sample. Default 1.
    pub num_projections: usize,
}

impl DenoisingScoreMatchingConfig {
    /// Noise of standard deviation σ, δ = 0.02, one direction per sample.
    pub fn new(noise_scale: f64) -> Self {
        Self { noise_scale, step: 0.02, num_projections: 1 }
    }

    /// Sets δ.
    pub fn with_step(mut self, step: f64) -> Self {
        self.step = step;
        self
    }

    /// Sets the number of directions per sample.
    pub fn with_num_projections(mut self, num_projections: usize) -> Self {
        self.num_projections = num_projections;
        self
    }

    /// The objective.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) naming the field that is 0, negative or not finite.
    pub fn init(self) -> Result<DenoisingScoreMatching> {
        ensure_positive("DenoisingScoreMatchingConfig.noise_scale", self.noise_scale)?;
        check_directions("DenoisingScoreMatchingConfig", self.step, self.num_projections)?;
        Ok(DenoisingScoreMatching { config: self })
    }
}

/// Denoising score matching by finite differences, times σ² so that its scale does not depend on σ:
///
/// ```text
/// L = ½ σ² mean ‖∇E(x̃) - (x̃ - x)/σ²‖²,   x̃ = x + σε,  ε ~ N(0, I)
///   = ½ mean over v of (σ v·∇E(x̃) - v·ε)²,   v·∇E(x̃) ≈ [E(x̃+δv) - E(x̃-δv)] / 2δ
/// ```
///
/// since E_v\[(v·u)²\] = ‖u‖². Its minimum is the energy of the data with the noise on them, up to a constant. No
/// second difference is in it, so that it bears a smaller δ and networks with kinks.
///
/// # Shapes
/// Of a [`JointBatch`] of any rank the unlabelled part is used; E(x) = -LSE f(x), so that one class makes
/// E(x) = -f(x).
///
/// ```
/// use jem_core::objectives::score_matching::DenoisingScoreMatchingConfig;
/// let objective = DenoisingScoreMatchingConfig::new(0.1).init()?;
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Vincent 2011, doi 10.1162/NECO_a_00142; Pang et al. 2020, arXiv 2007.03317.
#[derive(Debug, Clone, PartialEq)]
pub struct DenoisingScoreMatching {
    config: DenoisingScoreMatchingConfig,
}

impl DenoisingScoreMatching {
    /// The loss of any energy on samples of the data, with its terms.
    ///
    /// # Shapes
    /// `[batch, ..]`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) for an empty batch.
    pub fn of<const D: usize>(
        &self,
        model: &dyn EnergyModel<D>,
        x: Tensor<D>,
        noise: &mut Noise,
    ) -> Result<Loss> {
        let DenoisingScoreMatchingConfig { noise_scale, step, num_projections } = self.config;
        let x = one_per_direction(x, num_projections)?;
        let draws = noise.normal(x.dims(), NOISE, &x.device());
        let v = rademacher(x.dims(), noise, &x.device());
        let target = per_sample(v.clone() * draws.clone()).sum_dim(1).squeeze_dim(1);
        let slope = directional_slope(model, x + draws.mul_scalar(noise_scale), v, step);
        let mut loss =
            Loss::new((slope.clone().mul_scalar(noise_scale) - target).square().mean().mul_scalar(0.5));
        loss.add_term(score_terms::SQUARED_SLOPE, slope.square().mean());
        Ok(loss)
    }
}

impl<M: Classifier<D>, const D: usize> Objective<M, JointBatch<D>> for DenoisingScoreMatching {
    type State = ();

    fn start(&self, _noise: &mut Noise, _device: &Device) -> Result<()> {
        Ok(())
    }

    fn loss(&self, model: &M, batch: &JointBatch<D>, (): (), noise: &mut Noise) -> Result<(Loss, ())> {
        Ok((self.of(&JointEnergy::new(model), batch.unlabelled.clone().autodiff(), noise)?, ()))
    }
}
