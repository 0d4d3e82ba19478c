//! The files of a checkpoint: seals, their manifest, and removal in two steps.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// What a checkpoint holds, and how to tell that it is all there.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub crate_version: String,
    pub files: BTreeMap<String, Seal>,
}

/// Size and checksum of a file.
#[derive(Debug, Serialize, Deserialize, PartialEq)]
pub(super) struct Seal {
    pub bytes: u64,
    pub sha256: String,
}

impl Seal {
    pub fn of(content: &[u8]) -> Self {
        let sha256 = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { bytes: content.len() as u64, sha256 }
    }
}

/// Removes a checkpoint in two steps, so that it is never there in part under its own name.
pub(super) fn remove(path: &Path) -> Result<()> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let aside = path.with_file_name(format!(".removed-{name}"));
    let _ = fs::remove_dir_all(&aside);
    fs::rename(path, &aside)
        .and_then(|()| fs::remove_dir_all(&aside))
        .map_err(|source| Error::io(path, source))
}

pub(super) fn to_json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec_pretty(value).map_err(|error| Error::checkpoint(path, error))
}
