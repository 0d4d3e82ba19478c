//! Evaluation: what a trained energy model knows beyond its accuracy.
//!
//! Calibration ([`Predictions`], [`Reliability`], [`Temperature`]), detection ([`RocCurve`], [`OodDetector`]),
//! generation ([`frechet_distance`], [`kernel_distance`], [`inception_score`], [`NeighbourSearch`]) and chains
//! ([`ChainSet`], [`ChainSummary`], [`EnergyTrace`]). These work on numbers that are on the host already, in f32
//! or f64, and compute in f64.

mod calibration;
mod checks;
mod detector;
mod predictions;
mod probabilities;
mod roc;
mod temperature;

pub use calibration::{Binning, Reliability, ReliabilityBin};
pub use detector::OodDetector;
pub use predictions::Predictions;
pub use probabilities::ClassProbabilities;
pub use roc::{RocCurve, RocPoint};
pub use temperature::Temperature;
