//! Annealed importance sampling: log Z of an energy from both sides, with error bars.
//!
//! Chains go from a [`Base`] whose log Z is known to the target, along a [`Ladder`] of temperatures. The forward
//! estimate is low on average and the reverse one high, so that the truth lies between them; where too few
//! temperatures were used, the two are far apart. [`AisConfig`] has the settings, an [`AisPlan`] the
//! temperatures and step sizes, an [`AisRun`] the weights, a [`LogZ`] the estimate.

mod base;
mod bits;
mod config;
mod estimate;
mod ladder;
mod path;
mod plan;
mod run;

pub use base::{Base, UniformBox};
pub use bits::{bits_per_dimension, dequantised};
pub use config::{Ais, AisConfig};
pub use estimate::{LogZ, LogZBracket};
pub use ladder::Ladder;
pub use path::GeometricPath;
pub use plan::AisPlan;
pub use run::{AisRun, Direction};

use jem_core::noise::Stream;

/// Which weights are drawn for an error bar.
const BOOTSTRAP: Stream = Stream::new("bootstrap");
