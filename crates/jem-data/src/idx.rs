//! IDX files, the format of MNIST and its kin: images of any size and their labels, plain or gzip.

use std::path::Path;

use jem_core::data::{ImageSet, Split};

use super::file;
use jem_core::error::{Error, Result, ensure};

const IMAGES_MAGIC: u32 = 0x0803; // unsigned bytes, three extents
const LABELS_MAGIC: u32 = 0x0801; // unsigned bytes, one extent

/// The grey images of one IDX file with the labels of another, named after the file of images.
///
/// ```
/// let folder = tempfile::tempdir().unwrap();
/// let (images, labels) = (folder.path().join("images"), folder.path().join("labels"));
/// // A magic number and the extents, each four bytes; then one image of 1x2, and its label.
/// std::fs::write(&images, [0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 17, 255]).unwrap();
/// std::fs::write(&labels, [0, 0, 8, 1, 0, 0, 0, 1, 5]).unwrap();
/// let set = jem_data::idx::read(&images, &labels, 10)?;
/// assert_eq!((set.image_shape(), set.labels()), ([1, 1, 2], &[5][..]));
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`] if a file cannot be read; [`Error::Data`], with the offset in the unpacked file, for a wrong
/// magic number, an extent of 0, too few or too many bytes, counts that differ, or a label not below
/// `num_classes`; [`Error::Config`] if `num_classes` is 0.
pub fn read(images: impl AsRef<Path>, labels: impl AsRef<Path>, num_classes: usize) -> Result<ImageSet> {
    let (images, labels) = (images.as_ref(), labels.as_ref());
    ensure(num_classes > 0, "idx::read.num_classes", num_classes, "above 0")?;
    let image_bytes = file::read(images)?;
    let ([count, height, width], pixels) = parse(images, &image_bytes, IMAGES_MAGIC)?;
    let label_bytes = file::read(labels)?;
    let ([label_count], values) = parse(labels, &label_bytes, LABELS_MAGIC)?;
    if count != label_count {
        let reason = format!("{label_count} labels for the {count} images of {}", images.display());
        return Err(Error::data(labels, 4, reason));
    }
    if let Some(at) = values.iter().position(|label| usize::from(*label) >= num_classes) {
        let reason = format!("label {} is not below {num_classes}", values[at]);
        return Err(Error::data(labels, (label_bytes.len() - values.len() + at) as u64, reason));
    }
    let name = images.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let values = values.iter().map(|&label| label.into()).collect();
    ImageSet::new(name, pixels, [1, height, width], values, num_classes)
}

/// A folder in MNIST's layout, with ten classes: `train-images-idx3-ubyte`, `train-labels-idx1-ubyte` and the
/// same with `t10k`, each plain or with `.gz`. MNIST, Fashion-MNIST and KMNIST come like this.
///
/// # Errors
/// As [`read`]; [`Error::Io`] names the file that is missing.
///
/// Source: LeCun et al., "Gradient-based learning applied to document recognition", 1998,
/// DOI 10.1109/5.726791.
pub fn mnist(folder: impl AsRef<Path>) -> Result<Split> {
    let folder = folder.as_ref();
    let part = |prefix: &str| {
        let path = |what: &str, kind: &str| {
            let names = [format!("{prefix}-{what}-{kind}-ubyte"), format!("{prefix}-{what}.{kind}-ubyte")];
            file::find(folder, &[&names[0], &names[1]])
        };
        read(path("images", "idx3")?, path("labels", "idx1")?, 10)
    };
    Ok(Split { train: part("train")?, test: part("t10k")? })
}

/// The extents of an IDX file and what follows them.
fn parse<'a, const N: usize>(path: &Path, bytes: &'a [u8], magic: u32) -> Result<([usize; N], &'a [u8])> {
    let end = bytes.len() as u64;
    let word = |index: usize| {
        let word = bytes.get(4 * index..).and_then(|rest| rest.first_chunk());
        let short = || Error::data(path, end, "truncated: the file ends within the IDX header");
        word.map(|word| u32::from_be_bytes(*word)).ok_or_else(short)
    };
    let found = word(0)?;
    if found != magic {
        let reason = format!("magic number {found:#010x}, expected {magic:#010x}");
        return Err(Error::data(path, 0, reason));
    }
    let mut extents = [0; N];
    for (index, extent) in extents.iter_mut().enumerate() {
        *extent = word(1 + index)? as usize;
        if *extent == 0 {
            return Err(Error::data(path, 4 + 4 * index as u64, format!("extent {index} is 0")));
        }
    }
    let body = &bytes[4 + 4 * N..];
    let expected = extents.iter().map(|extent| *extent as u128).product::<u128>(); // three u32 fit
    let found = body.len() as u128;
    if found == expected {
        return Ok((extents, body));
    }
    let kind = if found < expected { "truncated" } else { "too long" };
    let reason = format!("{kind}: the extents {extents:?} ask for {expected} bytes, there are {found}");
    Err(Error::data(path, end, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IDX file of unsigned bytes.
    fn idx(extents: &[u32], body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 8, extents.len() as u8];
        bytes.extend(extents.iter().flat_map(|extent| extent.to_be_bytes()));
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn a_folder_in_mnists_layout_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes| std::fs::write(folder.path().join(name), bytes).unwrap();
        write("train-images-idx3-ubyte", idx(&[2, 1, 3], &[1, 2, 3, 4, 5, 6]));
        write("train-labels-idx1-ubyte", idx(&[2], &[9, 0]));
        write("t10k-images.idx3-ubyte", idx(&[1, 2, 2], &[7; 4]));
        write("t10k-labels.idx1-ubyte", idx(&[1], &[3]));
        let split = mnist(&folder).unwrap();
        assert_eq!((split.train.image_shape(), split.train.labels()), ([1, 1, 3], &[9, 0][..]));
        assert_eq!(split.train.bytes(&[1]).unwrap(), [4, 5, 6]);
        assert_eq!((split.test.image_shape(), split.test.len()), ([1, 2, 2], 1));
    }

    #[test]
    fn extents_beyond_memory_are_an_error_and_no_allocation() {
        let bytes = idx(&[u32::MAX; 3], &[0; 8]);
        let error = parse::<3>(Path::new("x"), &bytes, IMAGES_MAGIC).unwrap_err().to_string();
        assert!(error.starts_with("x: truncated: the extents"), "{error}");
    }
}
