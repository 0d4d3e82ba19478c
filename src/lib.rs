//! Energy-based models on Burn. (Front page to come.)
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

pub mod energy;
pub mod error;
pub mod math;
pub mod noise;
pub mod schedule;
#[cfg(feature = "viz")]
pub mod viz;

pub use error::{Error, Result};
