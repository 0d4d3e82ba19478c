//! How long a run is meant to be, and how it may end.

use serde::{Deserialize, Serialize};

use super::guard::Cause;
use crate::error::{Error, Result, ensure};

/// How long a run is, and whether it averages its weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainerConfig {
    /// Iterations in all.
    pub iterations: u64,
    /// Decay of the exponential moving average of weights. Default none.
    pub average_decay: Option<f64>,
}

impl TrainerConfig {
    /// A run of so many iterations.
    pub fn new(iterations: u64) -> Self {
        Self { iterations, average_decay: None }
    }

    /// Keeps averaged weights beside the model.
    pub fn with_average_decay(mut self, decay: f64) -> Self {
        self.average_decay = Some(decay);
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        ensure(self.iterations > 0, "TrainerConfig.iterations", self.iterations, "at least 1")?;
        let decay = self.average_decay.unwrap_or(0.0);
        ensure((0.0..1.0).contains(&decay), "TrainerConfig.average_decay", decay, "in [0, 1)")
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// All iterations are done.
    Finished,
    /// An observer asked for the end.
    Interrupted,
    /// The guard ended it. The state holds the last good weights.
    Diverged(Cause),
}

impl Outcome {
    /// An error for a run that diverged, for callers to whom only a whole run will do.
    ///
    /// # Errors
    /// [`Error::Diverged`] with the cause; `iteration` is that of the state which came with this outcome.
    ///
    /// ```
    /// use jem_core::train::Outcome;
    /// assert!(Outcome::Finished.into_result(100).is_ok());
    /// ```
    pub fn into_result(self, iteration: u64) -> Result<()> {
        match self {
            Self::Finished | Self::Interrupted => Ok(()),
            Self::Diverged(cause) => Err(Error::Diverged { iteration, cause: cause.to_string() }),
        }
    }
}
