//! A file of `torch.save` as named tensors: what is accepted, and what is refused before anything is believed.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use burn::store::bridge;
use burn::store::pytorch_reader::PytorchReader;
use zip::{CompressionMethod, ZipArchive, ZipReadOptions};

use super::guard;
use crate::Weights;
use jem_core::error::{Error, Result};
use jem_core::persist::NamedTensors;

/// The largest pickle that is read; that of a WideResNet-28-10 has some 20 kB.
const MAX_PICKLE: u64 = 16 << 20;
/// What files of PyTorch before 1.6 begin with: a pickle of their magic number.
const LEGACY: &[u8] = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";

/// Every tensor of a file that `torch.save` wrote, by its path through the file's dictionaries and lists, joined by
/// dots. Files of PyTorch 1.6 and later are zip archives; those from 0.1.10 to 1.5, which have no checksums, are
/// read too.
///
/// A bare state dict gives its own keys, `{"state_dict": {"fc.weight": ..}}` gives `state_dict.fc.weight`.
/// Tensors have the type that they are stored in, and lie as PyTorch has them:
/// [`Weights::load_into`] with [`WeightLayout::PyTorch`](crate::WeightLayout::PyTorch) puts them into a
/// network. Numbers and texts beside the tensors are not read, and nothing in the file is run.
///
/// # Errors
/// [`Error::Io`] if the file cannot be opened. [`Error::Checkpoint`] if it is no such file, is cut short or
/// changed, names a function or class that is not part of a tensor, or declares more data than it holds.
pub fn read_weights(path: impl AsRef<Path>) -> Result<Weights> {
    let path = path.as_ref();
    let size = check(path)?;
    let refuse = |reason: String| Error::checkpoint(path, reason);
    let reader = PytorchReader::new(path).map_err(|error| refuse(error.to_string()))?;
    // A tensor may be declared as a view that repeats a few bytes without end. Those of torch.save do not.
    let declared = reader.tensors().values().map(|tensor| tensor.byte_len() as u64);
    let declared = declared.fold(0, u64::saturating_add);
    if declared > size {
        return Err(refuse(format!("declares {declared} bytes of tensors, and has {size} in all")));
    }
    let mut tensors = NamedTensors::new();
    for (name, tensor) in reader.into_tensors() {
        let data = bridge::into_data(bridge::from_pytorch(tensor));
        tensors.insert(name, data.map_err(|error| refuse(error.to_string()))?);
    }
    Ok(Weights::new(path, tensors))
}

/// The size of the file, once its container and its pickles have been found to be in order.
fn check(path: &Path) -> Result<u64> {
    let failed = |source| Error::io(path, source);
    let mut file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let mut start = Vec::new();
    file.by_ref().take(262).read_to_end(&mut start).map_err(failed)?;
    let is_tar = start.get(257..) == Some(b"ustar"); // PyTorch before 0.1.10
    let checked = if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
        // It finds its own way; where the file stands does not matter.
        zipped_pickle(file).and_then(|pickle| guard::check(&pickle).map(|_| ()))
    } else if start.starts_with(LEGACY) && !is_tar {
        file.take(MAX_PICKLE).read_to_end(&mut start).map_err(failed)?;
        check_legacy(&start)
    } else if start.is_empty() {
        Err("is empty".to_owned())
    } else {
        Err("is not a file of torch.save: neither a zip archive nor what PyTorch before 1.6 wrote".to_owned())
    };
    checked.map_err(|reason| Error::checkpoint(path, reason))?;
    Ok(metadata.len())
}

/// The one `data.pkl` of an archive.
fn zipped_pickle(file: File) -> Result<Vec<u8>, String> {
    let broken = |error: &dyn std::fmt::Display| format!("is not a whole zip archive: {error}");
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| broken(&error))?;
    let mut found = Vec::new();
    for name in archive.file_names() {
        let name = name.map_err(|error| broken(&error))?;
        if name.rsplit('/').next() == Some("data.pkl") {
            found.push(name.into_owned());
        }
    }
    let [name] = found.as_slice() else {
        return Err(format!("holds {} entries data.pkl, a file of torch.save has one", found.len()));
    };
    // The checksum is left to the reader of the tensors: torch.save can be told to write none.
    let options = ZipReadOptions::new().ignore_crc32(true);
    let entry = archive.by_name_with_options(name, options).map_err(|error| broken(&error))?;
    let size = entry.size();
    if entry.compression() != CompressionMethod::Stored {
        return Err("data.pkl is compressed, which torch.save does not do".to_owned());
    }
    if size > MAX_PICKLE {
        return Err(format!("data.pkl declares {size} bytes, allowed are {MAX_PICKLE}"));
    }
    let mut pickle = Vec::new();
    entry.take(MAX_PICKLE).read_to_end(&mut pickle).map_err(|error| broken(&error))?;
    Ok(pickle)
}

/// The five pickles that a file of PyTorch before 1.6 begins with: magic number, version, system, object, keys.
fn check_legacy(mut pickles: &[u8]) -> Result<(), String> {
    for _ in 0..5 {
        let end = guard::check(pickles)?;
        pickles = &pickles[end..];
    }
    Ok(())
}
