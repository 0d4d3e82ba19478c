//! Configuration of contrastive divergence, and the names of its terms.

use serde::{Deserialize, Serialize};

use super::conditional::{ConditionalContrastiveDivergence, NegativeLabels};
use super::last_step::{LastStep, LastStepConfig};
use super::{Contrast, ContrastiveDivergence};
use crate::error::{Result, ensure, ensure_not_negative};

/// The names of the terms that contrastive divergence reports beside those of [`terms`](crate::objectives::terms):
/// `energy_data`, `energy_samples`, `energy_gap`, `energy_magnitude`, `restarted_chains` and `non_finite_samples`.
pub mod contrastive_terms {
    /// The contrast as it is minimised; reported where it is not the energy gap.
    pub const CONTRAST: &str = "contrast";
    /// Mean E(x_K) after the last step.
    pub const LAST_STEP: &str = "energy_last_step";
}

/// Configuration of [`ContrastiveDivergence`] and [`ConditionalContrastiveDivergence`]; the defaults are IGEBM's
/// without its KL term.
///
/// ```
/// use jem_core::objectives::contrastive_divergence::{Contrast, ContrastiveDivergenceConfig, LastStepConfig, NegativeLabels};
/// use jem_core::samplers::{FifoReplayConfig, ImproperSgldConfig, Langevin};
///
/// let chain = ImproperSgldConfig::new()
///     .with_step_size(10.0)
///     .with_noise_scale(0.005)
///     .with_gradient_clip(0.01)
///     .with_bounds(0.0, 1.0)
///     .init()?;
/// let last_step = LastStepConfig::new(chain.move_at(0)).with_weight(0.3);
/// let source = FifoReplayConfig::new([3, 32, 32]).init(chain)?;
/// let objective = ContrastiveDivergenceConfig::new()
///     .with_contrast(Contrast::Softplus { inverse_temperature: 1.0 })
///     .with_last_step(last_step)
///     .init_conditional(source, NegativeLabels::OfBatch)?;
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContrastiveDivergenceConfig {
    /// How energies of data and samples are contrasted. Default their difference.
    pub contrast: Contrast,
    /// α, of the squared energies mean E⁺² + mean E⁻². Default 1.
    pub energy_magnitude: f64,
    /// The KL term through one more step of the chain. Default none.
    pub last_step: Option<LastStepConfig>,
}

impl Default for ContrastiveDivergenceConfig {
    fn default() -> Self {
        Self { contrast: Contrast::Difference, energy_magnitude: 1.0, last_step: None }
    }
}

impl ContrastiveDivergenceConfig {
    /// The difference of energies, α = 1.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the form of the contrast.
    pub fn with_contrast(mut self, contrast: Contrast) -> Self {
        self.contrast = contrast;
        self
    }

    /// Sets α.
    pub fn with_energy_magnitude(mut self, alpha: f64) -> Self {
        self.energy_magnitude = alpha;
        self
    }

    /// Adds the KL term.
    pub fn with_last_step(mut self, last_step: LastStepConfig) -> Self {
        self.last_step = Some(last_step);
        self
    }

    /// The objective of E(x), drawing its negatives from `source`.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) naming the field that is not allowed.
    pub fn init<S>(self, source: S) -> Result<ContrastiveDivergence<S>> {
        self.contrast.check("ContrastiveDivergenceConfig.contrast")?;
        ensure_not_negative("ContrastiveDivergenceConfig.energy_magnitude", self.energy_magnitude)?;
        let last_step = self.last_step.clone().map(LastStepConfig::init).transpose()?;
        Ok(ContrastiveDivergence::new(Checked { config: self, last_step }, source))
    }

    /// The objective of E(x, y), drawing negatives given `labels` from `source`.
    ///
    /// # Errors
    /// As [`init`](Self::init), and if there are no classes.
    pub fn init_conditional<S>(
        self,
        source: S,
        labels: NegativeLabels,
    ) -> Result<ConditionalContrastiveDivergence<S>> {
        if let NegativeLabels::Uniform { num_classes } = labels {
            ensure(num_classes > 0, "NegativeLabels::Uniform.num_classes", num_classes, "at least 1")?;
        }
        Ok(ConditionalContrastiveDivergence::new(self.init(source)?, labels))
    }
}

/// A configuration that has been checked.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Checked {
    pub config: ContrastiveDivergenceConfig,
    pub last_step: Option<LastStep>,
}
