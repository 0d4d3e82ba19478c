//! A folder of official files, whichever data set they are of.

use std::path::Path;

use jem_core::data::Split;

use super::{cifar, idx};
use jem_core::error::{Error, Result};

/// The training and the test set in `folder`: CIFAR-10 in its binary format, or MNIST and its likes in IDX files.
///
/// # Errors
/// [`Error::Io`] if the folder holds neither, and as [`cifar::cifar10`] and [`idx::mnist`].
///
/// ```no_run
/// let split = jem_data::open("data/fashion-mnist")?;
/// println!("{} images of {:?}", split.train.len(), split.train.image_shape());
/// # Ok::<(), jem_core::Error>(())
/// ```
pub fn open(folder: impl AsRef<Path>) -> Result<Split> {
    let folder = folder.as_ref();
    let names = |folder: &Path| -> Result<Vec<String>> {
        let entries = std::fs::read_dir(folder).map_err(|source| Error::io(folder, source))?;
        Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
    };
    let names = names(folder)?;
    let has = |part: &str| names.iter().any(|name| name.contains(part));
    if has("test_batch") || has("cifar-10") || has("data_batch") {
        cifar::cifar10(folder)
    } else if has("idx3") || has("idx1") {
        idx::mnist(folder)
    } else {
        let missing = std::io::Error::new(
            std::io::ErrorKind::NotFound,
            "neither CIFAR-10's binary files (test_batch.bin) nor MNIST's IDX files (t10k-images-idx3-ubyte) are there",
        );
        Err(Error::io(folder, missing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_neither_is_refused_and_one_of_either_is_read_as_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let message = || open(folder.path()).unwrap_err().to_string();
        assert!(message().contains("neither CIFAR-10's binary files"), "{}", message());
        std::fs::write(folder.path().join("t10k-images-idx3-ubyte"), [0; 3]).unwrap();
        assert!(message().contains("idx3-ubyte"), "{}", message());
        std::fs::write(folder.path().join("test_batch.bin"), [0; 3]).unwrap();
        assert!(message().contains("_batch"), "{}", message());
        assert!(open(folder.path().join("absent")).unwrap_err().to_string().contains("absent"));
    }
}
