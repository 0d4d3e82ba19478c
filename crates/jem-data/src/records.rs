//! Files of equal records, each some label bytes and the bytes of an image: CIFAR's binary format.

use std::path::Path;

use jem_core::data::ImageSet;

use super::file;
use jem_core::error::{Error, Result, ensure};

/// What a record looks like: its label bytes, which of them counts, and the image after them.
///
/// Any folder of small pictures can be brought into this form and then be read like CIFAR:
///
/// ```
/// use jem_data::RecordFormat;
///
/// let format = RecordFormat::new([1, 2, 2], 3)?; // one label byte below 3, then 4 pixels
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("three.bin");
/// std::fs::write(&path, [0, 10, 20, 30, 40, 2, 50, 60, 70, 80]).unwrap();
/// let set = format.read(&path)?;
/// assert_eq!((set.labels(), set.bytes(&[1])?), (&[0, 2][..], vec![50, 60, 70, 80]));
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFormat {
    image_shape: [usize; 3],
    classes: Vec<usize>, // of each label byte
    used: usize,
}

impl RecordFormat {
    /// One label byte, then an image `[channels, height, width]`, channel by channel.
    ///
    /// # Errors
    /// [`Error::Config`] if an extent is 0 or the number of classes is not in 1..=256.
    pub fn new(image_shape: [usize; 3], num_classes: usize) -> Result<Self> {
        let within = image_shape.iter().all(|extent| (1..=1 << 16).contains(extent));
        let field = "RecordFormat.image_shape";
        ensure(within, field, format!("{image_shape:?}"), "three extents in 1..=65536")?;
        ensure((1..=256).contains(&num_classes), "RecordFormat.num_classes", num_classes, "in 1..=256")?;
        Ok(Self { image_shape, classes: vec![num_classes], used: 0 })
    }

    /// CIFAR-10: a label below 10 and 3x32x32 bytes, 3,073 a record.
    pub fn cifar10() -> Self {
        Self { image_shape: [3, 32, 32], classes: vec![10], used: 0 }
    }

    /// CIFAR-100 by its 100 classes: a coarse label, a fine label and 3x32x32 bytes, 3,074 a record.
    pub fn cifar100_fine() -> Self {
        Self { image_shape: [3, 32, 32], classes: vec![20, 100], used: 1 }
    }

    /// CIFAR-100 by its 20 superclasses.
    pub fn cifar100_coarse() -> Self {
        Self { used: 0, ..Self::cifar100_fine() }
    }

    /// Bytes per record.
    pub fn record_size(&self) -> usize {
        self.classes.len() + self.image_shape.iter().product::<usize>()
    }

    /// How many classes the label that counts may name.
    pub fn num_classes(&self) -> usize {
        self.classes[self.used]
    }

    /// The images of one file, plain or gzip, named after the file.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read; [`Error::Data`], with the offset in the unpacked file, if it is
    /// empty, ends within a record or has a label that is too large, or if its gzip data is damaged.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<ImageSet> {
        let path = path.as_ref();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.read_all(name, &[path])
    }

    /// The images of several files, one after the other.
    pub(super) fn read_all(&self, name: String, paths: &[impl AsRef<Path>]) -> Result<ImageSet> {
        let (mut pixels, mut labels) = (Vec::new(), Vec::new());
        for path in paths {
            self.append(path.as_ref(), &file::read(path.as_ref())?, &mut pixels, &mut labels)?;
        }
        ImageSet::new(name, pixels, self.image_shape, labels, self.num_classes())
    }

    /// The images of the unpacked file `bytes`; `path` is for messages.
    pub(super) fn decode(&self, name: &str, path: &Path, bytes: &[u8]) -> Result<ImageSet> {
        let (mut pixels, mut labels) = (Vec::new(), Vec::new());
        self.append(path, bytes, &mut pixels, &mut labels)?;
        ImageSet::new(name, pixels, self.image_shape, labels, self.num_classes())
    }

    fn append(&self, path: &Path, bytes: &[u8], pixels: &mut Vec<u8>, labels: &mut Vec<usize>) -> Result<()> {
        let size = self.record_size();
        self.check_length(path, bytes.len())?;
        pixels.reserve(bytes.len());
        for (index, record) in bytes.chunks_exact(size).enumerate() {
            let (head, image) = record.split_at(self.classes.len());
            for (at, (&label, &classes)) in head.iter().zip(&self.classes).enumerate() {
                if usize::from(label) >= classes {
                    let reason = format!("label {label} of record {index} is not below {classes}");
                    return Err(Error::data(path, (index * size + at) as u64, reason));
                }
            }
            labels.push(head[self.used].into());
            pixels.extend_from_slice(image);
        }
        Ok(())
    }

    fn check_length(&self, path: &Path, length: usize) -> Result<()> {
        let size = self.record_size();
        let (whole, left) = (length / size, length % size);
        if left == 0 {
            return Ok(());
        }
        let others = [("CIFAR-10", Self::cifar10()), ("CIFAR-100", Self::cifar100_fine())];
        let other = others.iter().find(|(_, other)| length.is_multiple_of(other.record_size()));
        let hint = other.map_or(String::new(), |(name, other)| {
            format!("; the length fits {name} records of {} bytes", other.record_size())
        });
        let reason = format!("truncated: record {whole} has {left} of {size} bytes{hint}");
        Err(Error::data(path, (whole * size) as u64, reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(format: &RecordFormat, bytes: &[u8]) -> Result<ImageSet> {
        format.decode("x", Path::new("x.bin"), bytes)
    }

    #[test]
    fn both_labels_of_cifar_100_can_be_read() {
        let mut bytes = vec![0; 2 * 3074];
        (bytes[0], bytes[1], bytes[2], bytes[3074], bytes[3075]) = (19, 99, 7, 3, 42);
        let fine = decode(&RecordFormat::cifar100_fine(), &bytes).unwrap();
        let coarse = decode(&RecordFormat::cifar100_coarse(), &bytes).unwrap();
        assert_eq!((fine.labels(), fine.num_classes()), (&[99, 42][..], 100));
        assert_eq!((coarse.labels(), coarse.num_classes()), (&[19, 3][..], 20));
        assert_eq!(fine.bytes(&[0]).unwrap()[0], 7);
    }

    #[test]
    fn wrong_lengths_and_labels_name_their_place() {
        let format = RecordFormat::cifar10();
        let error = decode(&format, &[0; 3073 + 100]).unwrap_err().to_string();
        assert_eq!(error, "x.bin: truncated: record 1 has 100 of 3073 bytes (at byte 3073)");
        let error = decode(&format, &[0; 3074 * 2]).unwrap_err().to_string();
        assert!(error.contains("the length fits CIFAR-100 records of 3074 bytes"), "{error}");
        let mut bytes = vec![0; 3073 * 2];
        bytes[3073] = 10;
        let error = decode(&format, &bytes).unwrap_err().to_string();
        assert_eq!(error, "x.bin: label 10 of record 1 is not below 10 (at byte 3073)");
    }
}
