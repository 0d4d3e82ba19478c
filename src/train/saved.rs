//! A checkpoint that was read back, and what may be taken out of it.

use std::path::PathBuf;

use burn::module::Module;

use super::checkpoint::Progress;
use super::state::{Snapshot, load_record};
use crate::error::{Error, Result};
use crate::persist::{NamedTensors, Persist};

/// A checkpoint that is whole: every file was there and had the size and the checksum of the manifest.
///
/// [`Trainer::resume`](super::Trainer::resume) goes on from it. Without a trainer, it gives the weights to
/// classify with, and the replay buffer to sample from.
#[derive(Debug)]
pub struct Saved {
    pub(super) snapshot: Snapshot,
    pub(super) objective: NamedTensors,
    /// Where the run stood.
    pub progress: Progress,
    /// The checkpoint's folder.
    pub path: PathBuf,
}

impl Saved {
    /// The weights, loaded into a model of the same architecture: the averaged ones if the run kept an average.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if they do not fit.
    pub fn load_model<M: Module>(&self, model: M) -> Result<M> {
        let bytes = self.snapshot.average.as_ref().unwrap_or(&self.snapshot.model);
        load_record(model, bytes).map_err(|reason| Error::checkpoint(&self.path, reason))
    }

    /// The memory of the objective, such as the replay buffer, loaded into a fresh one.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if it is of another kind or size.
    pub fn load_objective<S: Persist>(&self, mut state: S) -> Result<S> {
        state.load(self.objective.clone()).map_err(|error| Error::checkpoint(&self.path, error))?;
        Ok(state)
    }
}
