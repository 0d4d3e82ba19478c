//! CIFAR-10 and CIFAR-100 from the folders that their official binary archives unpack to.

use std::path::Path;

use jem_core::data::{ImageSet, Split};

use super::{RecordFormat, file};
use jem_core::error::Result;

/// The classes of CIFAR-10.
pub const CIFAR10_CLASSES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

/// The folder within the CIFAR-10 archive.
pub const CIFAR10_FOLDER: &str = "cifar-10-batches-bin";
/// The folder within the CIFAR-100 archive.
pub const CIFAR100_FOLDER: &str = "cifar-100-binary";

const CIFAR10_TRAIN: [&str; 5] =
    ["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"];

/// CIFAR-10, 50,000 training and 10,000 test images of 3x32x32, from the folder `cifar-10-batches-bin` or the
/// one that holds it. Each file may be gzipped.
///
/// ```no_run
/// let split = jem_data::cifar::cifar10("data")?;
/// assert_eq!((split.train.len(), split.test.len()), (50_000, 10_000));
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`](jem_core::Error::Io) if the folder or one of its files is missing,
/// [`Error::Data`](jem_core::Error::Data) if a file is damaged.
///
/// Source: Krizhevsky, "Learning multiple layers of features from tiny images", 2009.
pub fn cifar10(folder: impl AsRef<Path>) -> Result<Split> {
    let folder = file::enter(folder.as_ref(), CIFAR10_FOLDER)?;
    let part = |name: &str, files: &[&str]| named(&RecordFormat::cifar10(), name, &folder, files);
    Ok(Split {
        train: part("CIFAR-10 train", &CIFAR10_TRAIN)?.with_class_names(CIFAR10_CLASSES)?,
        test: part("CIFAR-10 test", &["test_batch.bin"])?.with_class_names(CIFAR10_CLASSES)?,
    })
}

/// CIFAR-100 by its 100 classes, from the folder `cifar-100-binary` or the one that holds it. Class names
/// come from `fine_label_names.txt` if that is there.
///
/// # Errors
/// As [`cifar10`].
pub fn cifar100(folder: impl AsRef<Path>) -> Result<Split> {
    cifar100_as(&RecordFormat::cifar100_fine(), folder.as_ref(), "fine_label_names.txt")
}

/// CIFAR-100 by its 20 superclasses, with names from `coarse_label_names.txt` if that is there.
///
/// # Errors
/// As [`cifar10`].
pub fn cifar100_coarse(folder: impl AsRef<Path>) -> Result<Split> {
    cifar100_as(&RecordFormat::cifar100_coarse(), folder.as_ref(), "coarse_label_names.txt")
}

fn cifar100_as(format: &RecordFormat, folder: &Path, names: &str) -> Result<Split> {
    let folder = file::enter(folder, CIFAR100_FOLDER)?;
    let names = std::fs::read_to_string(folder.join(names)).unwrap_or_default();
    let names: Vec<&str> = names.lines().map(str::trim).filter(|name| !name.is_empty()).collect();
    let part = |name: &str, file: &str| {
        let set = named(format, name, &folder, &[file])?;
        if names.is_empty() { Ok(set) } else { set.with_class_names(names.iter().copied()) }
    };
    Ok(Split { train: part("CIFAR-100 train", "train.bin")?, test: part("CIFAR-100 test", "test.bin")? })
}

fn named(format: &RecordFormat, name: &str, folder: &Path, files: &[&str]) -> Result<ImageSet> {
    let paths = files.iter().map(|name| file::find(folder, &[name])).collect::<Result<Vec<_>>>()?;
    format.read_all(name.to_owned(), &paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A record whose pixels all are `byte`.
    fn record(labels: &[u8], byte: u8) -> Vec<u8> {
        [labels, &[byte; 3072]].concat()
    }

    #[test]
    fn the_official_folder_or_the_one_around_it_plain_or_gzip() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join(CIFAR10_FOLDER);
        std::fs::create_dir(&inner).unwrap();
        for (i, name) in CIFAR10_TRAIN.iter().enumerate() {
            std::fs::write(inner.join(name), record(&[i as u8], 10 + i as u8)).unwrap();
        }
        let file = std::fs::File::create(inner.join("test_batch.bin.gz")).unwrap();
        let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        packer.write_all(&record(&[9], 77)).unwrap();
        packer.finish().unwrap();
        for folder in [outer.path(), &inner] {
            let split = cifar10(folder).unwrap();
            assert_eq!((split.train.labels(), split.test.labels()), (&[0, 1, 2, 3, 4][..], &[9][..]));
            assert_eq!(split.train.bytes(&[3]).unwrap(), [13; 3072]);
            assert_eq!(split.test.class_names().unwrap()[9], "truck");
        }
    }

    #[test]
    fn cifar_100_reads_names_if_there_are_any() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("train.bin"), record(&[4, 0], 1)).unwrap();
        std::fs::write(folder.path().join("test.bin"), record(&[1, 1], 2)).unwrap();
        assert!(cifar100(&folder).unwrap().train.class_names().is_none());
        let names: String = (0..20).map(|i| format!("super{i}\n")).collect();
        std::fs::write(folder.path().join("coarse_label_names.txt"), names).unwrap();
        let coarse = cifar100_coarse(&folder).unwrap();
        assert_eq!(coarse.train.labels(), [4]);
        assert_eq!(coarse.train.class_names().unwrap()[4], "super4");
    }
}
