//! Files that appear whole or not at all: written beside their place, then renamed.

use std::io::Write;
use std::path::Path;

use jem_core::error::{Error, Result};

/// Writes `bytes` to `path` through a temporary file in the same folder, which must exist.
pub(super) fn write(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let path = path.as_ref();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    // The default is readable by the owner only, which is wrong for what is made to be shown.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder).map_err(|source| Error::io(path, source))?;
    file.write_all(bytes).map_err(|source| Error::io(path, source))?;
    file.persist(path).map_err(|error| Error::io(path, error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let error = write(folder.path().join("absent/a.txt"), b"").unwrap_err();
        assert!(matches!(error, Error::Io { .. }) && error.to_string().contains("a.txt"));
    }
}
