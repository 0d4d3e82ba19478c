//! Sliced score matching: slope and curvature of the energy along random directions.

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::differences::{check_directions, one_per_direction};
use super::{directional_differences, rademacher};
use crate::data::JointBatch;
use crate::energy::{Classifier, EnergyModel, JointEnergy};
use crate::error::Result;
use crate::noise::Noise;
use crate::objectives::{Loss, Objective, Watch};

/// The names of the terms that the score matching objectives report.
pub mod score_terms {
    /// Mean E(x) of the data.
    pub const ENERGY_DATA: &str = "energy_data";
    /// Mean of (v·∇E)².
    pub const SQUARED_SLOPE: &str = "squared_slope";
    /// Mean of vᵀ∇²E v.
    pub const CURVATURE: &str = "curvature";
}

/// Configuration of [`SlicedScoreMatching`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlicedScoreMatchingConfig {
    /// δ, the step of the differences, as a multiple of v, whose coordinates are ±1. Default 0.05, for data and
    /// energies of order 1; see [`directional_differences`].
    pub step: f64,
    /// Directions per sample. Default 1.
    pub num_projections: usize,
}

impl Default for SlicedScoreMatchingConfig {
    fn default() -> Self {
        Self { step: 0.05, num_projections: 1 }
    }
}

impl SlicedScoreMatchingConfig {
    /// δ = 0.05, one direction per sample.
    pub fn new() -> Self {
        Self::default()
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
    pub fn init(self) -> Result<SlicedScoreMatching> {
        check_directions("SlicedScoreMatchingConfig", self.step, self.num_projections)?;
        Ok(SlicedScoreMatching { config: self })
    }
}

/// Sliced score matching by finite differences:
///
/// ```text
/// L = mean over x and v of  ½ (v·∇E(x))² - vᵀ∇²E(x) v
///   ≈ mean  ½ ([E(x+δv) - E(x-δv)] / 2δ)² - [E(x+δv) - 2E(x) + E(x-δv)] / δ²
/// ```
///
/// Its minimum over all energies is that of the data, up to a constant, with the value -½ E‖∇ log p‖². It needs
/// neither chains nor a normaliser, and an energy that has two derivatives: not a network of ReLUs.
///
/// # Shapes
/// Of a [`JointBatch`] of any rank the unlabelled part is used; E(x) = -LSE f(x), so that one class makes
/// E(x) = -f(x).
///
/// ```
/// use jem_core::objectives::score_matching::SlicedScoreMatchingConfig;
/// let objective = SlicedScoreMatchingConfig::new().with_num_projections(2).init()?;
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Song et al. 2019, arXiv 1905.07088; Pang et al. 2020, arXiv 2007.03317; Hyvärinen 2005.
#[derive(Debug, Clone, PartialEq)]
pub struct SlicedScoreMatching {
    config: SlicedScoreMatchingConfig,
}

impl SlicedScoreMatching {
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
        let x = one_per_direction(x, self.config.num_projections)?;
        let v = rademacher(x.dims(), noise, &x.device());
        let along = directional_differences(model, x, v, self.config.step);
        let (square, curvature) = (along.slope.square().mean(), along.curvature.mean());
        let mut loss = Loss::new(square.clone().mul_scalar(0.5) - curvature.clone());
        loss.add_watched(Watch::Energy, score_terms::ENERGY_DATA, along.energy.mean());
        loss.add_term(score_terms::SQUARED_SLOPE, square);
        loss.add_term(score_terms::CURVATURE, curvature);
        Ok(loss)
    }
}

impl<M: Classifier<D>, const D: usize> Objective<M, JointBatch<D>> for SlicedScoreMatching {
    type State = ();

    fn start(&self, _noise: &mut Noise, _device: &Device) -> Result<()> {
        Ok(())
    }

    fn loss(&self, model: &M, batch: &JointBatch<D>, (): (), noise: &mut Noise) -> Result<(Loss, ())> {
        Ok((self.of(&JointEnergy::new(model), batch.unlabelled.clone().autodiff(), noise)?, ()))
    }
}
