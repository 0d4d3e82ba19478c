//! Reading a whole file, unpacked if it is gzip, with errors that name it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use jem_core::error::{Error, Result};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The bytes of the file at `path`, unpacked if they begin like gzip.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(|e| Error::io(path, e))?;
    if bytes.is_empty() {
        return Err(Error::data(path, 0, "the file is empty"));
    }
    if bytes.starts_with(&GZIP_MAGIC) { unpack(path, &bytes) } else { Ok(bytes) }
}

/// The bytes that the gzip file `packed` holds; `path` is for messages.
pub(super) fn unpack(path: &Path, packed: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match MultiGzDecoder::new(packed).read_to_end(&mut bytes) {
        Ok(0) => Err(Error::data(path, 0, "the gzip file holds nothing")),
        Ok(_) => Ok(bytes),
        Err(source) => {
            let reason = match source.kind() {
                std::io::ErrorKind::UnexpectedEof => "the gzip data is cut short".to_owned(),
                _ => format!("the gzip data is damaged: {source}"),
            };
            Err(Error::data(path, bytes.len() as u64, reason))
        }
    }
}

/// The first of `names`, or of `names` with `.gz`, that exists in `folder`.
pub(super) fn find(folder: &Path, names: &[&str]) -> Result<PathBuf> {
    let candidates = names.iter().flat_map(|name| [folder.join(name), folder.join(format!("{name}.gz"))]);
    candidates.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        let missing = format!("no file {} (or .gz) in this folder", names.join(" or "));
        Error::io(folder, std::io::Error::new(std::io::ErrorKind::NotFound, missing))
    })
}

/// `folder`, or `folder/inner` if that exists: either the unpacked folder or the one that holds it.
pub(super) fn enter(folder: &Path, inner: &str) -> Result<PathBuf> {
    std::fs::metadata(folder).map_err(|e| Error::io(folder, e))?;
    let within = folder.join(inner);
    Ok(if within.is_dir() { within } else { folder.to_path_buf() })
}
