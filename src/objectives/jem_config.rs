//! Configuration of the joint objective: weights, negatives, and the names of its terms.

use serde::{Deserialize, Serialize};

use super::Jem;
use crate::error::{Result, ensure, ensure_not_negative};

/// The names of the terms that [`Jem`] reports.
pub mod terms {
    /// Cross-entropy of the labelled batch, in nats.
    pub const CROSS_ENTROPY: &str = "cross_entropy";
    /// Share of the labelled batch that is classified right.
    pub const ACCURACY: &str = "batch_accuracy";
    /// Mean E(x) of the p(x) batch.
    pub const ENERGY_DATA: &str = "energy_data";
    /// Mean E(x) of the samples.
    pub const ENERGY_SAMPLES: &str = "energy_samples";
    /// Mean E(x) of data less that of samples: the p(x) term.
    pub const ENERGY_GAP: &str = "energy_gap";
    /// Mean E(x, y) of labelled data less that of samples given the same labels: the p(x|y) term.
    pub const JOINT_GAP: &str = "joint_gap";
    /// mean E(data)² + mean E(samples)².
    pub const ENERGY_MAGNITUDE: &str = "energy_magnitude";
    /// Chains that started afresh.
    pub const RESTARTED: &str = "restarted_chains";
    /// Chains that ended in a NaN or an infinity, and were replaced.
    pub const NON_FINITE: &str = "non_finite_samples";
}

/// What the negatives of the p(x) term are samples of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NegativeKind {
    /// E(x).
    Marginal,
    /// E(x, y) with y uniform over the classes: nicer samples, lower accuracy.
    Conditional {
        /// The number of classes, which is also the number of blocks that the source must have.
        num_classes: usize,
    },
}

/// Configuration of [`Jem`]; the defaults are the factorised objective of the paper.
///
/// A weight of 0 leaves its term out, samples and all: with only `classification_weight` this is an ordinary
/// classifier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JemConfig {
    /// w_yx, of the cross-entropy. Default 1.
    pub classification_weight: f64,
    /// w_x, of the p(x) term. Default 1.
    pub marginal_weight: f64,
    /// w_xy, of the p(x|y) term. Default 0. Needs a source with one block per class.
    pub joint_weight: f64,
    /// α, of the squared energies. Default 0; 0.1 is the first remedy for a run that blows up.
    pub energy_magnitude: f64,
    /// Default marginal.
    pub negatives: NegativeKind,
}

impl Default for JemConfig {
    fn default() -> Self {
        Self {
            classification_weight: 1.0,
            marginal_weight: 1.0,
            joint_weight: 0.0,
            energy_magnitude: 0.0,
            negatives: NegativeKind::Marginal,
        }
    }
}

impl JemConfig {
    /// The factorised objective: w_yx = w_x = 1.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets w_yx.
    pub fn with_classification_weight(mut self, weight: f64) -> Self {
        self.classification_weight = weight;
        self
    }

    /// Sets w_x.
    pub fn with_marginal_weight(mut self, weight: f64) -> Self {
        self.marginal_weight = weight;
        self
    }

    /// Sets w_xy.
    pub fn with_joint_weight(mut self, weight: f64) -> Self {
        self.joint_weight = weight;
        self
    }

    /// Sets α.
    pub fn with_energy_magnitude(mut self, alpha: f64) -> Self {
        self.energy_magnitude = alpha;
        self
    }

    /// Sets what the negatives of the p(x) term are samples of.
    pub fn with_negatives(mut self, negatives: NegativeKind) -> Self {
        self.negatives = negatives;
        self
    }

    /// The objective, drawing its negatives from `source`.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if a weight is negative or not finite, all are 0, or there are no classes.
    pub fn init<S>(self, source: S) -> Result<Jem<S>> {
        let weights = [
            ("classification_weight", self.classification_weight),
            ("marginal_weight", self.marginal_weight),
            ("joint_weight", self.joint_weight),
            ("energy_magnitude", self.energy_magnitude),
        ];
        for (field, weight) in weights {
            ensure_not_negative(&format!("JemConfig.{field}"), weight)?;
        }
        let trains = weights[..3].iter().any(|(_, weight)| *weight > 0.0);
        ensure(trains, "JemConfig", "all weights 0", "one weight above 0 at least")?;
        if let NegativeKind::Conditional { num_classes } = self.negatives {
            ensure(num_classes > 0, "JemConfig.negatives.num_classes", num_classes, "at least 1")?;
        }
        Ok(Jem::new(self, source))
    }
}
