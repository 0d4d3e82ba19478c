//! The files of a checkpoint: seals, synced writes, and named tensors as safetensors.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use burn::tensor::{DType, TensorData};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::persist::NamedTensors;

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

pub(super) fn write_synced(path: &Path, content: &[u8]) -> Result<()> {
    fs::File::create(path)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .map_err(|source| Error::io(path, source))
}

/// Makes a rename last, where the system lets a folder be synced.
pub(super) fn sync_folder(path: &Path) {
    if let Ok(folder) = fs::File::open(path) {
        let _ = folder.sync_all();
    }
}

pub(super) fn to_json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec_pretty(value).map_err(|error| Error::checkpoint(path, error))
}

pub(super) fn to_safetensors(tensors: &NamedTensors) -> std::result::Result<Vec<u8>, String> {
    let mut views = Vec::new();
    for (name, data) in tensors {
        if data.dtype() != DType::F32 {
            return Err(format!("{name} is of type {:?}, and only F32 is saved", data.dtype()));
        }
        let shape = data.shape().as_slice().to_vec();
        let view = TensorView::new(Dtype::F32, shape, data.as_bytes()).map_err(|error| error.to_string())?;
        views.push((name.clone(), view));
    }
    safetensors::serialize(views, None).map_err(|error| error.to_string())
}

pub(super) fn from_safetensors(content: &[u8]) -> std::result::Result<NamedTensors, String> {
    let tensors = SafeTensors::deserialize(content).map_err(|error| error.to_string())?;
    tensors
        .iter()
        .map(|(name, view)| {
            if view.dtype() != Dtype::F32 {
                return Err(format!("{name} is of type {:?}, expected F32", view.dtype()));
            }
            let values: Vec<f32> = view
                .data()
                .chunks_exact(4)
                .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
                .collect();
            Ok((name.to_owned(), TensorData::new(values, view.shape().to_vec())))
        })
        .collect()
}
