//! Every way this crate can fail, as data: what was wrong, where, and what would have been right.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use num_traits::Float;

/// The result of a fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. Each variant names the thing at fault and the value found there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A configuration field holds a value that is not allowed.
    #[error("{field} = {value} is not allowed: it must be {allowed}")]
    Config {
        /// The field, with its type, such as `ImproperSgldConfig.step_size`.
        field: String,
        /// The value found.
        value: String,
        /// What would be accepted.
        allowed: String,
    },
    /// A tensor or a batch has a shape that does not fit.
    #[error("{what} has shape {found:?}, expected {expected}")]
    Shape {
        /// The tensor at fault.
        what: String,
        /// The shape found.
        found: Vec<usize>,
        /// The shape that would fit.
        expected: String,
    },
    /// A data file is not what it claims to be.
    #[error("{}: {reason} (at byte {offset})", path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// Where in the (decompressed) file.
        offset: u64,
        /// Why it is refused.
        reason: String,
    },
    /// The operating system refused a file operation.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A number that must be finite is not.
    #[error("{what} is not finite: {value}")]
    NonFinite {
        /// The quantity.
        what: String,
        /// The value found.
        value: f64,
    },
    /// A checkpoint cannot be used.
    #[error("checkpoint {}: {reason}", path.display())]
    Checkpoint {
        /// The checkpoint's folder or file.
        path: PathBuf,
        /// Why it is refused.
        reason: String,
    },
    /// Training diverged, and the policy says that this is the end.
    #[error("training diverged at iteration {iteration}: {cause}")]
    Diverged {
        /// The iteration, counted from 0.
        iteration: u64,
        /// The quantity that left its bounds.
        cause: String,
    },
    /// A transfer failed.
    #[error("{url}: {reason}")]
    Download {
        /// The address.
        url: String,
        /// Why it failed.
        reason: String,
    },
    /// A worker of a run on several is missing, and with it the run.
    #[error("worker {worker} {reason}")]
    Worker {
        /// Its rank.
        worker: usize,
        /// What is known of it.
        reason: String,
    },
    /// A picture or a report could not be drawn.
    #[error("cannot draw {what}: {reason}")]
    Draw {
        /// The picture.
        what: String,
        /// Why it failed.
        reason: String,
    },
}

impl Error {
    /// A configuration error for `field`.
    pub fn config(field: impl Into<String>, value: impl Display, allowed: impl Into<String>) -> Self {
        Self::Config { field: field.into(), value: value.to_string(), allowed: allowed.into() }
    }

    /// A shape error for `what`.
    pub fn shape(what: impl Into<String>, found: &[usize], expected: impl Into<String>) -> Self {
        Self::Shape { what: what.into(), found: found.to_vec(), expected: expected.into() }
    }

    /// A data error at `offset` of `path`.
    pub fn data(path: impl AsRef<Path>, offset: u64, reason: impl Into<String>) -> Self {
        Self::Data { path: path.as_ref().to_path_buf(), offset, reason: reason.into() }
    }

    /// An operating-system error on `path`.
    pub fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { path: path.as_ref().to_path_buf(), source }
    }

    /// A checkpoint error for `path`.
    pub fn checkpoint(path: impl AsRef<Path>, reason: impl Display) -> Self {
        Self::Checkpoint { path: path.as_ref().to_path_buf(), reason: reason.to_string() }
    }

    /// That worker `worker` is missing; `reason` goes on after its name, such as "is gone".
    pub fn worker(worker: usize, reason: impl Into<String>) -> Self {
        Self::Worker { worker, reason: reason.into() }
    }

    /// Whether the same call may succeed later or from an earlier state: a divergence (roll back), a
    /// non-finite number (skip the step), a broken checkpoint (use the one before it), a transfer (try again), a
    /// worker that is gone (start all again, from the checkpoints).
    pub fn is_recoverable(&self) -> bool {
        match self {
            Self::Diverged { .. } | Self::NonFinite { .. } | Self::Checkpoint { .. } => true,
            Self::Download { .. } | Self::Worker { .. } => true,
            Self::Config { .. } | Self::Shape { .. } | Self::Data { .. } => false,
            Self::Io { .. } | Self::Draw { .. } => false,
        }
    }
}

/// `Ok` if `allowed_when` holds, else a configuration error that names the field.
pub fn ensure(allowed_when: bool, field: &str, value: impl Display, allowed: &str) -> Result<()> {
    if allowed_when { Ok(()) } else { Err(Error::config(field, value, allowed)) }
}

/// `Ok` for a finite number above 0.
pub fn ensure_positive<T: Float + Display>(field: &str, value: T) -> Result<()> {
    ensure(value.is_finite() && value > T::zero(), field, value, "a finite number > 0")
}

/// `Ok` for a finite number that is not below 0.
pub fn ensure_not_negative<T: Float + Display>(field: &str, value: T) -> Result<()> {
    ensure(value.is_finite() && value >= T::zero(), field, value, "a finite number >= 0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_either_precision_are_checked_alike() {
        assert!(ensure_positive("x", 1f32).is_ok() && ensure_not_negative("x", 0f64).is_ok());
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(ensure_positive("x", value).is_err() && ensure_positive("x", value as f32).is_err());
        }
        let error = ensure_not_negative("a.b", -0.5f32).unwrap_err().to_string();
        assert_eq!(error, "a.b = -0.5 is not allowed: it must be a finite number >= 0");
    }

    #[test]
    fn messages_name_the_field_its_value_and_what_is_allowed() {
        let error = ensure(false, "ImproperSgldConfig.step_size", -1.0, "a finite number >= 0").unwrap_err();
        assert_eq!(
            error.to_string(),
            "ImproperSgldConfig.step_size = -1 is not allowed: it must be a finite number >= 0"
        );
        assert!(!error.is_recoverable());
        let error = Error::data("data_batch_1.bin", 3073, "label 12 is not below 10");
        assert_eq!(error.to_string(), "data_batch_1.bin: label 12 is not below 10 (at byte 3073)");
    }
}
