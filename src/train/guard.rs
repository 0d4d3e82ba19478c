//! The divergence guard: what is watched, where its limits are, and what happens beyond them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Result, ensure};
use crate::objectives::{Reading, Watch};

/// What happens when a watched quantity leaves its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Return to the last good weights, write a checkpoint, and end.
    Stop,
    /// Leave the step out, at most so many times in a row.
    Skip {
        /// Steps left out in a row before the run ends.
        at_most: u32,
    },
    /// Return to the last good weights and optimiser state, multiply the learning rate, and forget the memory of
    /// the objective (the replay buffer), at most so many times.
    RollBack {
        /// Returns before the run ends.
        at_most: u32,
        /// What each return multiplies the learning rate by.
        learning_rate_factor: f64,
    },
}

/// Limits on what is watched. Beyond them, or not finite, is a divergence.
///
/// Energies of a healthy JEM on 32x32 images stay within some tens of each other; a gap between data and samples
/// in the hundreds does not come back.
///
/// ```
/// use jem_core::train::{GuardConfig, Policy};
/// let guard = GuardConfig::new().with_policy(Policy::Stop).with_max_energy_gap(50.0);
/// assert!(guard.check().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuardConfig {
    /// |loss|. Default 10,000.
    pub max_loss: f64,
    /// |mean E| of data and of samples. Default 10,000.
    pub max_energy: f64,
    /// |mean E(data) - mean E(samples)|. Default 200.
    pub max_energy_gap: f64,
    /// L2 norm of the parameter gradient. Default 1,000,000.
    pub max_gradient_norm: f64,
    /// Chains of one draw that may end in a NaN or an infinity. Default 0.
    pub max_non_finite_samples: f64,
    /// Default: roll back up to 5 times, halving the learning rate.
    pub policy: Policy,
    /// Iterations between good states that are remembered. Default 100.
    pub snapshot_every: u64,
}

impl Default for GuardConfig {
    fn default() -> Self {
        Self {
            max_loss: 1e4,
            max_energy: 1e4,
            max_energy_gap: 200.0,
            max_gradient_norm: 1e6,
            max_non_finite_samples: 0.0,
            policy: Policy::RollBack { at_most: 5, learning_rate_factor: 0.5 },
            snapshot_every: 100,
        }
    }
}

impl GuardConfig {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what happens.
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the limit on |loss|.
    pub fn with_max_loss(mut self, limit: f64) -> Self {
        self.max_loss = limit;
        self
    }

    /// Sets the limit on |mean E|.
    pub fn with_max_energy(mut self, limit: f64) -> Self {
        self.max_energy = limit;
        self
    }

    /// Sets the limit on the energy gap.
    pub fn with_max_energy_gap(mut self, limit: f64) -> Self {
        self.max_energy_gap = limit;
        self
    }

    /// Sets the limit on the gradient norm.
    pub fn with_max_gradient_norm(mut self, limit: f64) -> Self {
        self.max_gradient_norm = limit;
        self
    }

    /// Sets how many chains of one draw may end in a NaN or an infinity.
    pub fn with_max_non_finite_samples(mut self, limit: f64) -> Self {
        self.max_non_finite_samples = limit;
        self
    }

    /// Sets the iterations between remembered states.
    pub fn with_snapshot_every(mut self, iterations: u64) -> Self {
        self.snapshot_every = iterations;
        self
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) naming the field.
    pub fn check(&self) -> Result<()> {
        for (field, limit) in [
            ("max_loss", self.max_loss),
            ("max_energy", self.max_energy),
            ("max_energy_gap", self.max_energy_gap),
            ("max_gradient_norm", self.max_gradient_norm),
        ] {
            ensure(limit > 0.0, &format!("GuardConfig.{field}"), limit, "above 0")?;
        }
        let samples = self.max_non_finite_samples;
        ensure(samples >= 0.0, "GuardConfig.max_non_finite_samples", samples, "at least 0")?;
        ensure(self.snapshot_every > 0, "GuardConfig.snapshot_every", self.snapshot_every, "at least 1")?;
        if let Policy::RollBack { learning_rate_factor: factor, .. } = self.policy {
            let field = "GuardConfig.policy.learning_rate_factor";
            ensure(factor > 0.0 && factor <= 1.0, field, factor, "in (0, 1]")?;
        }
        Ok(())
    }

    /// The first of the numbers that is beyond its limit, or not finite.
    pub fn judge(&self, values: &[Reading]) -> Option<Cause> {
        values.iter().find_map(|&Reading { name: quantity, watch, value }| {
            let limit = match watch {
                Some(Watch::Loss) => self.max_loss,
                Some(Watch::Energy) => self.max_energy,
                Some(Watch::Gap) => self.max_energy_gap,
                Some(Watch::NonFiniteSamples) => self.max_non_finite_samples,
                Some(Watch::GradientNorm) => self.max_gradient_norm,
                Some(Watch::Accuracy) | None => f64::INFINITY,
            };
            let beyond = !value.is_finite() || value.abs() > limit;
            beyond.then(|| Cause { quantity: quantity.to_owned(), value, limit })
        })
    }
}

/// The name under which the gradient norm is judged and recorded.
pub const GRADIENT_NORM: &str = "gradient_norm";

/// The quantity that left its bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// Its name.
    pub quantity: String,
    /// Its value.
    pub value: f64,
    /// The bound on its absolute value.
    pub limit: f64,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { quantity, value, limit } = self;
        if value.is_finite() {
            write!(f, "{quantity} = {value:.6} is beyond its limit of {limit}")
        } else {
            write!(f, "{quantity} is not finite ({value})")
        }
    }
}

/// What the guard has done so far. A checkpoint holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuardState {
    /// Steps left out since the last good one.
    pub skipped_in_a_row: u32,
    /// Returns to a good state.
    pub roll_backs: u32,
    /// What the learning rate is multiplied by.
    pub learning_rate_scale: f64,
}

impl Default for GuardState {
    fn default() -> Self {
        Self { skipped_in_a_row: 0, roll_backs: 0, learning_rate_scale: 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_quantity_has_its_limit_and_nan_is_beyond_all() {
        let guard = GuardConfig::new().with_max_energy_gap(10.0);
        let reading = |watch, value| Reading { name: "gap", watch, value };
        let (gap, loss) = (Some(Watch::Gap), Some(Watch::Loss));
        assert_eq!(guard.judge(&[reading(gap, -9.0), reading(loss, 5.0)]), None);
        let cause = guard.judge(&[reading(loss, 1.0), reading(gap, -11.0)]).unwrap();
        assert_eq!(cause.to_string(), "gap = -11.000000 is beyond its limit of 10");
        assert!(guard.judge(&[reading(None, f64::NAN)]).unwrap().to_string().contains("not finite"));
        assert!(guard.judge(&[reading(Some(Watch::NonFiniteSamples), 1.0)]).is_some());
        assert!(guard.judge(&[reading(Some(Watch::GradientNorm), 1e7)]).is_some());
    }

    #[test]
    fn bad_limits_are_named() {
        let policy = Policy::RollBack { at_most: 1, learning_rate_factor: 0.0 };
        for (config, field) in [
            (GuardConfig::new().with_max_loss(f64::NAN), "max_loss"),
            (GuardConfig::new().with_max_energy(0.0), "max_energy"),
            (GuardConfig::new().with_snapshot_every(0), "snapshot_every"),
            (GuardConfig::new().with_policy(policy), "learning_rate_factor"),
        ] {
            assert!(config.check().unwrap_err().to_string().contains(field));
        }
    }
}
