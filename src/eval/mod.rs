//! Evaluation: what a trained energy model knows beyond its accuracy.
//!
//! Working on a model: [`predict`] and [`score_set`] over whole sets, [`attack`], log Z by [`ais`], samples with a
//! record of where they come from by [`generate`]. What runs long tells its [`Progress`] and can be ended.

pub mod ais;
pub mod attack;
pub mod generate;
mod interpolation;
mod predict;
mod progress;
mod scores;

pub use interpolation::interpolated;
pub use predict::{LabelledLogits, predict};
pub use progress::{Progress, Watch, unwatched};
pub use scores::{Score, ScoreColumn, ScoreTable, score_batch, score_set};
