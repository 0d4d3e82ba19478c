//! Training: the loop and nothing else, with what keeps it alive — checkpoints, a divergence guard, observers.

mod checkpoint;
mod checkpoint_files;
mod clipped_adam;
mod data_parallel;
mod ema;
mod gradients;
mod guard;
mod iteration;
mod learning_rate;
mod observer;
mod plan;
mod record;
mod recovery;
mod run_log;
mod saved;
mod state;
mod trainer;
mod validation;

pub use checkpoint::{Best, CheckpointConfig, Checkpoints, Progress};
pub use clipped_adam::{ClippedAdam, ClippedAdamConfig};
pub use ema::update_average;
pub use gradients::gradient_norm;
pub use guard::{Cause, GRADIENT_NORM, GuardConfig, GuardState, Policy};
pub use learning_rate::{BurnScheduler, LearningRate};
pub use observer::{Control, Every, Observer, View};
pub use plan::{Outcome, TrainerConfig};
pub use record::{EpochRecord, Event, EventRecord, Record, StepRecord, Values};
pub use run_log::{JsonLines, read_records};
pub use saved::Saved;
pub use state::TrainState;
pub use trainer::Trainer;
pub use validation::{Measured, Validation, validate};
