//! Evaluation: what a trained energy model knows beyond its accuracy.

pub mod ais;
pub mod attack;
pub mod generate;
mod interpolation;
mod predict;
mod progress;
mod scores;

pub use interpolation::interpolated;
pub use predict::{Predictions, predict};
pub use progress::{Progress, Watch, unwatched};
pub use scores::{Score, ScoreColumn, ScoreTable, score_batch, score_set};
