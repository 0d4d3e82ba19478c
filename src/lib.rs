//! Energy-based models on Burn. (Front page to come.)
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

pub mod data;
pub mod energy;
pub mod error;
pub mod math;
pub mod nn;
pub mod noise;
pub mod objectives;
pub mod persist;
pub mod samplers;
pub mod schedule;
pub mod train;
#[cfg(feature = "viz")]
pub mod viz;

pub use error::{Error, Result};
