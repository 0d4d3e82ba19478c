//! A piece of CIFAR-10 that comes with the crate, so that real images need no download.

use std::path::Path;

use super::cifar::CIFAR10_CLASSES;
use jem_core::data::{ImageSet, Split};

use super::{RecordFormat, file};
use jem_core::error::Result;

/// The first 240 training and the first 60 test images of each class of CIFAR-10, in their original order and
/// without loss: 2,400 and 600 images of 3x32x32.
///
/// Decoding takes a few hundredths of a second and happens at each call.
///
/// ```
/// let split = jem_data::embedded::cifar10()?;
/// assert_eq!((split.train.len(), split.test.len()), (2_400, 600));
/// assert_eq!(split.train.image_shape(), [3, 32, 32]);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// # Errors
/// None in practice: the bytes are part of the crate and tested.
///
/// Source: Krizhevsky, "Learning multiple layers of features from tiny images", 2009; `data/README.md` says
/// how the subset was made.
pub fn cifar10() -> Result<Split> {
    let train = include_bytes!("../data/cifar10_train_2400.bin.gz");
    let test = include_bytes!("../data/cifar10_test_600.bin.gz");
    Ok(Split {
        train: part("CIFAR-10 subset train", "data/cifar10_train_2400.bin.gz", train)?,
        test: part("CIFAR-10 subset test", "data/cifar10_test_600.bin.gz", test)?,
    })
}

fn part(name: &str, path: &str, packed: &[u8]) -> Result<ImageSet> {
    let path = Path::new(path);
    let set = RecordFormat::cifar10().decode(name, path, &file::unpack(path, packed)?)?;
    set.with_class_names(CIFAR10_CLASSES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_balanced_and_the_first_image_is_cifars_frog() {
        let split = cifar10().unwrap();
        assert_eq!(split.train.class_counts(), [240; 10]);
        assert_eq!(split.test.class_counts(), [60; 10]);
        // The well-known first record of data_batch_1.bin: a frog, whose red plane begins 59 43 50 68.
        assert_eq!(split.train.class_names().unwrap()[split.train.labels()[0]], "frog");
        assert_eq!(split.train.bytes(&[0]).unwrap()[..4], [59, 43, 50, 68]);
        // And of test_batch.bin: a cat, 158 159 165 166.
        assert_eq!(split.test.labels()[0], 3);
        assert_eq!(split.test.bytes(&[0]).unwrap()[..4], [158, 159, 165, 166]);
    }
}
