//! Files that are whole or not there at all, and named tensors as safetensors.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use burn::tensor::{BoolStore, DType, TensorData};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::NamedTensors;
use crate::error::{Error, Result};

/// Writes a file and waits until it is on the disk.
pub fn write_synced(path: &Path, content: &[u8]) -> Result<()> {
    File::create(path)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .map_err(|source| Error::io(path, source))
}

/// Makes a rename last, where the system lets a folder be synced.
pub fn sync_folder(path: &Path) {
    if let Ok(folder) = File::open(path) {
        let _ = folder.sync_all();
    }
}

/// Puts a file at `path` in one step: it is written aside, synced and renamed into place.
///
/// A reader sees the old file or the new one, never a part; if anything fails the old one stays.
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let failed = |source| Error::io(path, source);
    let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidFilename.into()))?;
    let mut partial = OsString::from(".partial-");
    partial.push(name);
    let partial = path.with_file_name(partial);
    let put = || {
        let mut file = File::create(&partial).map_err(failed)?;
        write(&mut file)?;
        file.sync_all().map_err(failed)?;
        drop(file);
        fs::rename(&partial, path).map_err(failed)
    };
    if let Err(error) = put() {
        let _ = fs::remove_file(&partial);
        return Err(error);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    sync_folder(folder.unwrap_or(Path::new(".")));
    Ok(())
}

/// Named tensors of f32 or bytes as the content of a safetensors file.
pub fn to_safetensors(tensors: &NamedTensors) -> Result<Vec<u8>, String> {
    let mut views = Vec::new();
    for (name, data) in tensors {
        let dtype = match data.dtype() {
            DType::F32 => Dtype::F32,
            DType::U8 => Dtype::U8,
            other => return Err(format!("{name} is of type {other:?}, and only F32 and U8 are saved")),
        };
        let shape = data.shape().as_slice().to_vec();
        let view = TensorView::new(dtype, shape, data.as_bytes()).map_err(|error| error.to_string())?;
        views.push((name.clone(), view));
    }
    safetensors::serialize(views, None).map_err(|error| error.to_string())
}

/// The tensors of a safetensors file, each of the type that it is stored in.
pub fn from_safetensors(content: &[u8]) -> Result<NamedTensors, String> {
    let tensors = SafeTensors::deserialize(content).map_err(|error| error.to_string())?;
    let read = |name: String, view: TensorView<'_>| {
        let dtype = match view.dtype() {
            Dtype::F64 => DType::F64,
            Dtype::F32 => DType::F32,
            Dtype::F16 => DType::F16,
            Dtype::BF16 => DType::BF16,
            Dtype::I64 => DType::I64,
            Dtype::I32 => DType::I32,
            Dtype::I16 => DType::I16,
            Dtype::I8 => DType::I8,
            Dtype::U64 => DType::U64,
            Dtype::U32 => DType::U32,
            Dtype::U16 => DType::U16,
            Dtype::U8 => DType::U8,
            Dtype::BOOL => DType::Bool(BoolStore::U8),
            other => return Err(format!("{name} is of type {other:?}, which is not read")),
        };
        let mut bytes = view.data().to_vec();
        if cfg!(target_endian = "big") {
            bytes.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
        }
        let data = TensorData::try_from_bytes_vec(bytes, view.shape().to_vec(), dtype)
            .map_err(|error| format!("{name}: {error}"))?;
        Ok((name, data))
    };
    tensors.tensors().into_iter().map(|(name, view)| read(name, view)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        replace(&path, |file| file.write_all(b"old").map_err(|error| Error::io("", error))).unwrap();
        let broken = replace(&path, |file| {
            file.write_all(b"half").unwrap();
            Err(Error::checkpoint("weights", "the rest is missing"))
        });
        assert!(broken.unwrap_err().to_string().contains("the rest is missing"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        replace(&path, |file| file.write_all(b"new").map_err(|error| Error::io("", error))).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["weights"]);
        assert!(replace(Path::new("/"), |_| Ok(())).is_err());
    }

    #[test]
    fn bytes_come_back_as_they_were() {
        let bytes: Vec<u8> = (0..=255).collect();
        let saved: NamedTensors = [
            ("bytes".to_owned(), TensorData::new(bytes.clone(), [2, 128])),
            ("floats".to_owned(), TensorData::new(vec![0.5f32], [1])),
        ]
        .into();
        let mut read = from_safetensors(&to_safetensors(&saved).unwrap()).unwrap();
        assert_eq!(read, saved);
        let message = crate::persist::take(&mut read.clone(), "bytes", &[2, 128]).unwrap_err().to_string();
        assert!(message.contains("\"bytes\" of type U8") && message.contains("of type F32"), "{message}");
        assert!(crate::persist::take_bytes(&mut read.clone(), "floats", &[1]).is_err());
        let data = crate::persist::take_bytes(&mut read, "bytes", &[2, 128]).unwrap();
        assert_eq!(data.as_bytes(), bytes);
    }

    #[test]
    fn other_types_are_read_as_they_are_and_not_written() {
        let half = [0x00u8, 0x3c, 0x00, 0xc0]; // 1 and -2
        let view = TensorView::new(Dtype::F16, vec![2], &half).unwrap();
        let content = safetensors::serialize([("a", view)], None).unwrap();
        let tensors = from_safetensors(&content).unwrap();
        assert_eq!(tensors["a"].dtype(), DType::F16);
        assert_eq!(tensors["a"].iter::<f32>().collect::<Vec<_>>(), [1.0, -2.0]);
        assert_eq!(to_safetensors(&tensors).unwrap_err(), "a is of type F16, and only F32 and U8 are saved");
        assert!(from_safetensors(&content[..content.len() - 1]).is_err());
    }
}
