//! What the trainer's guard can watch, so that it knows a number by its kind and not by its name.

use serde::{Deserialize, Serialize};

/// The kind of a number that the guard holds to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Watch {
    /// What is minimised.
    Loss,
    /// A mean energy, of data or of samples.
    Energy,
    /// A mean energy of data less one of samples.
    Gap,
    /// Chains that ended in a NaN or an infinity.
    NonFiniteSamples,
    /// The share of a batch that is classified right.
    Accuracy,
    /// The L2 norm of the gradient in the parameters.
    GradientNorm,
}

/// One number of an iteration: its name, what the guard watches it as, and its value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// Its name in records.
    pub name: &'static str,
    /// Its kind, if the guard has a limit for it.
    pub watch: Option<Watch>,
    /// Its value.
    pub value: f64,
}
