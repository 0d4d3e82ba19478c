//! Evaluation: what a trained energy model knows beyond its accuracy.
//!
//! Calibration ([`Predictions`], [`Reliability`], [`Temperature`]), detection ([`RocCurve`], [`OodDetector`]),
//! generation ([`frechet_distance`], [`kernel_distance`], [`inception_score`], [`NeighbourSearch`]) and chains
//! ([`ChainSet`], [`ChainSummary`], [`EnergyTrace`]). These work on numbers that are on the host already, in f32
//! or f64, and compute in f64.

mod calibration;
mod chains;
mod checks;
mod detector;
mod energy_trace;
mod features;
mod frechet;
mod inception_score;
mod kernel_distance;
mod neighbours;
mod predictions;
mod probabilities;
mod roc;
mod temperature;

pub use calibration::{Binning, Reliability, ReliabilityBin};
pub use chains::{ChainSet, ChainSummary, Extreme, autocorrelation};
pub use detector::OodDetector;
pub use energy_trace::{EnergyPoint, EnergyTrace};
pub use features::{FeatureExtractor, Features, Pixels};
pub use frechet::{GaussianFit, frechet_distance};
pub use inception_score::{InceptionScore, inception_score};
pub use kernel_distance::{KernelDistance, KernelDistanceConfig, KernelEstimate, kernel_distance};
pub use neighbours::{Neighbour, NeighbourSearch, nearest_neighbours};
pub use predictions::Predictions;
pub use probabilities::ClassProbabilities;
pub use roc::{RocCurve, RocPoint};
pub use temperature::Temperature;
