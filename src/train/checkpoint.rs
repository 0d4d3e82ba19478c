//! Checkpoints: a folder per checkpoint, staged aside, sealed with checksums, and renamed into place.
//!
//! ```text
//! checkpoints/iteration-00000300/
//!   model.bpk  average.bpk  optimizer.bpk    Burn's own format
//!   objective.safetensors                    the memory of the objective, such as the replay buffer
//!   progress.json                            iteration, noise streams, guard, best value, configuration
//!   manifest.json                            crate version; size and SHA-256 of every file above
//! ```
//!
//! A checkpoint is staged before an iteration and put in place only when that iteration has found its weights
//! healthy, so that a run that blows up never leaves a checkpoint of the wreck. The last one of a run has no
//! iteration behind it, and is written if all weights are finite.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::checkpoint_files::{Manifest, Seal, remove, to_json};
use super::guard::GuardState;
use super::saved::Saved;
use super::state::Snapshot;
use crate::error::{Error, Result, ensure};
use crate::noise::Noise;
use crate::persist::NamedTensors;
use crate::persist::files::{from_safetensors, sync_folder, to_safetensors, write_synced};

const PREFIX: &str = "iteration-";
const MANIFEST: &str = "manifest.json";
const PROGRESS: &str = "progress.json";
const MODEL: &str = "model.bpk";
const AVERAGE: &str = "average.bpk";
const OPTIMIZER: &str = "optimizer.bpk";
const OBJECTIVE: &str = "objective.safetensors";

/// Where checkpoints go, how often, and which stay.
///
/// ```
/// use jem_core::train::CheckpointConfig;
/// let config = CheckpointConfig::new("runs/a/checkpoints").with_every(500).with_best("validation_accuracy");
/// assert!(config.with_keep(0).check().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointConfig {
    /// The folder, which is made if it is absent.
    pub folder: PathBuf,
    /// Iterations from one to the next. Default 500.
    pub every: u64,
    /// The newest so many stay. Default 3.
    pub keep: usize,
    /// A value of the epoch records; the checkpoint at its highest stays too. Default none.
    pub best: Option<String>,
}

impl CheckpointConfig {
    /// Checkpoints in `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), every: 500, keep: 3, best: None }
    }

    /// Sets the iterations from one to the next.
    pub fn with_every(mut self, iterations: u64) -> Self {
        self.every = iterations;
        self
    }

    /// Sets how many of the newest stay.
    pub fn with_keep(mut self, count: usize) -> Self {
        self.keep = count;
        self
    }

    /// Also keeps the checkpoint at which this value of the epoch records is highest.
    pub fn with_best(mut self, value: impl Into<String>) -> Self {
        self.best = Some(value.into());
        self
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`Error::Config`] naming the field.
    pub fn check(&self) -> Result<()> {
        ensure(self.every > 0, "CheckpointConfig.every", self.every, "at least 1")?;
        ensure(self.keep > 0, "CheckpointConfig.keep", self.keep, "at least 1")
    }
}

/// The highest value so far of the quantity that decides which checkpoint is best.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The value.
    pub value: f64,
    /// The iteration of the checkpoint at which it was measured.
    pub iteration: u64,
}

/// Where a run stands, apart from its tensors.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Progress {
    /// The version of this crate that wrote it.
    pub crate_version: String,
    /// Iterations done.
    pub iteration: u64,
    /// Epochs done.
    pub epoch: u64,
    /// Iterations done in this epoch.
    pub position: u64,
    /// All random streams.
    pub noise: Noise,
    /// What the guard has done.
    pub guard: GuardState,
    /// The best value so far.
    pub best: Option<Best>,
    /// The configuration of the run, as its program described it.
    pub configuration: serde_json::Value,
}

/// A checkpoint that is written and not yet in place.
#[derive(Debug)]
pub(super) struct Staged {
    path: PathBuf,
    iteration: u64,
    best: Option<u64>,
}

/// The checkpoints of a run.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    config: CheckpointConfig,
}

impl Checkpoints {
    /// The checkpoints in the configured folder.
    ///
    /// # Errors
    /// [`Error::Config`] naming a bad field, [`Error::Io`] if the folder cannot be made.
    pub fn open(config: CheckpointConfig) -> Result<Self> {
        config.check()?;
        fs::create_dir_all(&config.folder).map_err(|source| Error::io(&config.folder, source))?;
        Ok(Self { config })
    }

    /// The configuration.
    pub fn config(&self) -> &CheckpointConfig {
        &self.config
    }

    /// The folders of the checkpoints in place, oldest first.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be read.
    pub fn list(folder: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
        let folder = folder.as_ref();
        let failed = |source| Error::io(folder, source);
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if iteration_of(&path).is_some() {
                paths.push(path);
            }
        }
        paths.sort_by_key(|path| iteration_of(path));
        Ok(paths)
    }

    /// The newest checkpoint that is whole, with the errors of the newer ones that are not.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be read, [`Error::Checkpoint`] if no checkpoint in it is whole.
    pub fn latest(folder: impl AsRef<Path>) -> Result<(Saved, Vec<Error>)> {
        let folder = folder.as_ref();
        let mut refused = Vec::new();
        for path in Self::list(folder)?.into_iter().rev() {
            match Self::read(&path) {
                Ok(saved) => return Ok((saved, refused)),
                Err(error) => {
                    tracing::warn!(%error, "checkpoint refused; trying the one before it");
                    refused.push(error);
                }
            }
        }
        let reasons: Vec<String> = refused.iter().map(Error::to_string).collect();
        let reason = if reasons.is_empty() { "holds no checkpoint".to_owned() } else { reasons.join("; ") };
        Err(Error::checkpoint(folder, reason))
    }

    /// The checkpoint in the folder `path`.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] naming the file that is missing, cut short or changed.
    pub fn read(path: impl AsRef<Path>) -> Result<Saved> {
        let path = path.as_ref();
        let refuse = |reason: String| Error::checkpoint(path, reason);
        let read = |name: &str| fs::read(path.join(name)).map_err(|error| refuse(format!("{name}: {error}")));
        let manifest: Manifest = serde_json::from_slice(&read(MANIFEST)?)
            .map_err(|error| refuse(format!("{MANIFEST} is not readable: {error}")))?;
        let mut files = BTreeMap::new();
        for (name, seal) in &manifest.files {
            let content = read(name)?;
            let found = Seal::of(&content);
            if found.bytes != seal.bytes {
                let (found, expected) = (found.bytes, seal.bytes);
                return Err(refuse(format!("{name} has {found} bytes, the manifest says {expected}")));
            }
            if found != *seal {
                return Err(refuse(format!("{name} does not have the SHA-256 of the manifest")));
            }
            files.insert(name.clone(), content);
        }
        let average = files.remove(AVERAGE);
        let mut take =
            |name: &str| files.remove(name).ok_or_else(|| refuse(format!("{name} is not in the manifest")));
        let progress: Progress = serde_json::from_slice(&take(PROGRESS)?)
            .map_err(|error| refuse(format!("{PROGRESS} is not readable: {error}")))?;
        let snapshot = Snapshot {
            model: take(MODEL)?,
            average,
            optimizer: take(OPTIMIZER)?,
            iteration: progress.iteration,
        };
        let objective = from_safetensors(&take(OBJECTIVE)?)
            .map_err(|reason| refuse(format!("{OBJECTIVE} is not readable: {reason}")))?;
        Ok(Saved { snapshot, objective, progress, path: path.to_path_buf() })
    }

    /// Writes a checkpoint aside.
    pub(super) fn stage(
        &self,
        snapshot: &Snapshot,
        objective: &NamedTensors,
        progress: &Progress,
    ) -> Result<Staged> {
        let path = self.config.folder.join(format!(".partial-{:08}", progress.iteration));
        let failed = |source| Error::io(&path, source);
        if path.exists() {
            fs::remove_dir_all(&path).map_err(failed)?;
        }
        fs::create_dir_all(&path).map_err(failed)?;
        let mut manifest = Manifest { crate_version: progress.crate_version.clone(), files: BTreeMap::new() };
        let mut put = |name: &str, content: &[u8]| -> Result<()> {
            write_synced(&path.join(name), content)?;
            manifest.files.insert(name.to_owned(), Seal::of(content));
            Ok(())
        };
        put(MODEL, &snapshot.model)?;
        put(OPTIMIZER, &snapshot.optimizer)?;
        if let Some(average) = &snapshot.average {
            put(AVERAGE, average)?;
        }
        put(OBJECTIVE, &to_safetensors(objective).map_err(|reason| Error::checkpoint(&path, reason))?)?;
        put(PROGRESS, &to_json(&path, progress)?)?;
        write_synced(&path.join(MANIFEST), &to_json(&path, &manifest)?)?;
        let best = progress.best.as_ref().map(|best| best.iteration);
        Ok(Staged { path, iteration: progress.iteration, best })
    }

    /// Puts a staged checkpoint in place and removes those that are no longer kept.
    pub(super) fn commit(&self, staged: Staged) -> Result<PathBuf> {
        let folder = &self.config.folder;
        let path = folder.join(format!("{PREFIX}{:08}", staged.iteration));
        if path.exists() {
            remove(&path)?;
        }
        fs::rename(&staged.path, &path).map_err(|source| Error::io(&path, source))?;
        sync_folder(folder);
        let all = Self::list(folder)?;
        let surplus = all.len().saturating_sub(self.config.keep);
        for old in &all[..surplus] {
            if iteration_of(old) != staged.best {
                remove(old)?;
            }
        }
        Ok(path)
    }

    /// Removes a staged checkpoint that must not be put in place.
    pub(super) fn discard(&self, staged: &Staged) -> Result<()> {
        fs::remove_dir_all(&staged.path).map_err(|source| Error::io(&staged.path, source))
    }
}

fn iteration_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix(PREFIX)?.parse().ok()
}
