//! Evaluation: what a trained energy model knows beyond its accuracy.
//!
//! On a model: [`predict`] and [`score_set`] over whole sets, [`attack`], log Z by [`ais`] and, in the plane, by
//! [`GridQuadrature`], samples with a record of where they come from by [`generate`]. What runs long tells its
//! [`Progress`] and can be ended.
//!
//! On numbers that are on the host already, in f32 or f64, computing in f64: calibration ([`Predictions`],
//! [`Reliability`], [`Temperature`]), detection ([`RocCurve`], [`OodDetector`]), distances between sets of images
//! ([`frechet_distance`], [`kernel_distance`], [`inception_score`], [`NeighbourSearch`]) and chains ([`ChainSet`],
//! [`ChainSummary`], [`EnergyTrace`]).
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

pub mod ais;
pub mod attack;
mod calibration;
mod chains;
mod checks;
mod detector;
mod energy_trace;
mod features;
mod frechet;
pub mod generate;
mod inception_score;
mod interpolation;
mod kernel_distance;
mod neighbours;
mod predict;
mod predictions;
mod probabilities;
mod progress;
mod quadrature;
mod roc;
mod scores;
mod temperature;

pub use calibration::{Binning, Reliability, ReliabilityBin};
pub use chains::{ChainSet, ChainSummary, Extreme, autocorrelation};
pub use detector::OodDetector;
pub use energy_trace::{EnergyPoint, EnergyTrace};
pub use features::{FeatureExtractor, Features, Pixels};
pub use frechet::{GaussianFit, frechet_distance};
pub use inception_score::{InceptionScore, inception_score};
pub use interpolation::interpolated;
pub use kernel_distance::{KernelDistance, KernelDistanceConfig, KernelEstimate, kernel_distance};
pub use neighbours::{Neighbour, NeighbourSearch, nearest_neighbours};
pub use predict::{LabelledLogits, predict};
pub use predictions::Predictions;
pub use probabilities::ClassProbabilities;
pub use progress::{Progress, Watch, unwatched};
pub use quadrature::{GridDensity, GridQuadrature};
pub use roc::{RocCurve, RocPoint};
pub use scores::{Score, ScoreColumn, ScoreTable, score_batch, score_set};
pub use temperature::Temperature;
