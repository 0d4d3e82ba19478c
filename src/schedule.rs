//! A scalar that may change with the step: constant, linear, polynomial, stepped, cosine, with warm-up.
//!
//! A schedule is a pure function of the step count, so there is nothing to save and nothing to drift: a
//! resumed run reads the value that it would have had.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, ensure_not_negative, ensure_positive};

/// A value as a function of a step t = 0, 1, 2, …
///
/// | variant | value at t |
/// | --- | --- |
/// | `Constant` | v |
/// | `Linear` | from `from` to `to` over `steps`, then `to` |
/// | `Polynomial` | a (b + t)^-γ, the decay that SGLD asks for (γ in (0.5, 1]) |
/// | `Step` | v · factor^(milestones passed) |
/// | `Cosine` | from `from` to `to` along half a cosine over `steps`, then `to` |
/// | `Warmup` | `then` at t, times min(1, (t + 1) / steps); 0 steps is no warm-up |
///
/// ```
/// use jem_core::schedule::Schedule;
/// // The reference recipe: linear warm-up, then x 0.3 at epochs 160 and 180 of 781 iterations.
/// let lr = Schedule::step(1e-4, 0.3, [160 * 781, 180 * 781]).with_warmup(1_000);
/// assert!((lr.value(0) - 1e-7).abs() < 1e-12);
/// assert_eq!(lr.value(5_000), 1e-4);
/// assert!((lr.value(190 * 781) - 9e-6).abs() < 1e-12);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// The same value always.
    Constant(f64),
    /// A straight line, then constant.
    Linear {
        /// Value at step 0.
        from: f64,
        /// Value from `steps` on.
        to: f64,
        /// Length of the line.
        steps: u64,
    },
    /// a (b + t)^-γ.
    Polynomial {
        /// Scale a.
        scale: f64,
        /// Offset b, above 0.
        offset: f64,
        /// Exponent γ.
        exponent: f64,
    },
    /// A value that is multiplied by `factor` at each milestone.
    Step {
        /// Value before the first milestone.
        initial: f64,
        /// What each milestone multiplies by.
        factor: f64,
        /// Steps at which the value changes, ascending.
        milestones: Vec<u64>,
    },
    /// Half a cosine, then constant.
    Cosine {
        /// Value at step 0.
        from: f64,
        /// Value from `steps` on.
        to: f64,
        /// Length of the half wave.
        steps: u64,
    },
    /// Another schedule behind a linear rise from 0.
    Warmup {
        /// Length of the rise; 0 for none.
        steps: u64,
        /// The schedule itself.
        then: Box<Schedule>,
    },
}

impl Schedule {
    /// a (b + t)^-γ.
    pub fn polynomial(scale: f64, offset: f64, exponent: f64) -> Self {
        Self::Polynomial { scale, offset, exponent }
    }

    /// `initial`, multiplied by `factor` at each of `milestones`.
    pub fn step(initial: f64, factor: f64, milestones: impl Into<Vec<u64>>) -> Self {
        Self::Step { initial, factor, milestones: milestones.into() }
    }

    /// This schedule behind a linear warm-up of `steps`.
    pub fn with_warmup(self, steps: u64) -> Self {
        Self::Warmup { steps, then: Box::new(self) }
    }

    /// The value at step `t`.
    pub fn value(&self, t: u64) -> f64 {
        let progress = |steps: u64| if steps == 0 { 1.0 } else { (t as f64 / steps as f64).min(1.0) };
        match self {
            Self::Constant(value) => *value,
            Self::Linear { from, to, steps } => from + (to - from) * progress(*steps),
            Self::Polynomial { scale, offset, exponent } => scale * (offset + t as f64).powf(-exponent),
            Self::Step { initial, factor, milestones } => {
                let passed = milestones.iter().filter(|milestone| t >= **milestone).count();
                initial * factor.powi(passed as i32)
            }
            Self::Cosine { from, to, steps } => {
                let wave = (std::f64::consts::PI * progress(*steps)).cos();
                to + (from - to) * 0.5 * (1.0 + wave)
            }
            Self::Warmup { steps, then } => {
                let rise = if *steps == 0 { 1.0 } else { ((t + 1) as f64 / *steps as f64).min(1.0) };
                then.value(t) * rise
            }
        }
    }

    /// Checks that every value this schedule can take is finite and at least 0.
    ///
    /// # Errors
    /// [`Error::Config`] naming `field` and the part of the schedule at fault.
    pub fn check(&self, field: &str) -> Result<()> {
        let scalar = |part: &str, value: f64| {
            let name = if part.is_empty() { field.to_owned() } else { format!("{field}.{part}") };
            ensure_not_negative(&name, value)
        };
        match self {
            Self::Constant(value) => scalar("", *value),
            Self::Linear { from, to, .. } | Self::Cosine { from, to, .. } => {
                scalar("from", *from)?;
                scalar("to", *to)
            }
            Self::Polynomial { scale, offset, exponent } => {
                scalar("scale", *scale)?;
                scalar("exponent", *exponent)?;
                ensure_positive(&format!("{field}.offset"), *offset)
            }
            Self::Step { initial, factor, milestones } => {
                scalar("initial", *initial)?;
                scalar("factor", *factor)?;
                if milestones.is_sorted() {
                    Ok(())
                } else {
                    let found = format!("{milestones:?}");
                    Err(Error::config(format!("{field}.milestones"), found, "in ascending order"))
                }
            }
            Self::Warmup { then, .. } => then.check(field),
        }
    }
}

impl From<f64> for Schedule {
    fn from(value: f64) -> Self {
        Self::Constant(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_formulas() {
        let linear = Schedule::Linear { from: 1.0, to: 0.0, steps: 4 };
        assert_eq!([0, 1, 4, 9].map(|t| linear.value(t)), [1.0, 0.75, 0.0, 0.0]);
        assert_eq!(Schedule::polynomial(2.0, 1.0, 1.0).value(3), 0.5);
        let cosine = Schedule::Cosine { from: 1.0, to: 0.0, steps: 2 };
        assert!((cosine.value(1) - 0.5).abs() < 1e-12 && cosine.value(2).abs() < 1e-12);
        let warm = Schedule::from(2.0).with_warmup(4);
        assert_eq!([0, 1, 3, 9].map(|t| warm.value(t)), [0.5, 1.0, 2.0, 2.0]);
        assert_eq!(Schedule::from(2.0).with_warmup(0).value(0), 2.0);
    }

    #[test]
    fn bad_schedules_are_named() {
        for (schedule, part) in [
            (Schedule::from(f64::NAN), "lr = NaN"),
            (Schedule::from(-1.0), "lr = -1"),
            (Schedule::polynomial(1.0, 0.0, 0.5), "lr.offset"),
            (Schedule::step(1.0, 0.1, [5, 3]), "lr.milestones"),
            (Schedule::Linear { from: 1.0, to: f64::INFINITY, steps: 3 }.with_warmup(1), "lr.to"),
        ] {
            let message = schedule.check("lr").unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
