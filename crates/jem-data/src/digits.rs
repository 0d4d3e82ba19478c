//! The 8x8 handwritten digits that come with the crate: the smallest real images to train on.

use std::path::Path;

use jem_core::data::{ImageSet, Split};

use super::{RecordFormat, file};
use jem_core::error::Result;

/// The digits have the grey levels 0..=16.
const LEVELS: u16 = 16;

/// 1,797 digits of 1x8x8: every fifth image of each class, from its fifth on, is test (355), the others are
/// train (1,442).
///
/// The grey levels 0..=16 become the nearest bytes of 0..=255, which can be undone without loss. Both parts
/// hold digits of the same writers.
///
/// ```
/// let split = jem_data::digits::digits()?;
/// assert_eq!(split.train.len() + split.test.len(), 1_797);
/// assert_eq!(split.test.image_shape(), [1, 8, 8]);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// # Errors
/// None in practice: the bytes are part of the crate and tested.
///
/// Source: Alpaydin and Kaynak, "Optical recognition of handwritten digits", UCI, 1998, DOI 10.24432/C50P49,
/// CC BY 4.0.
pub fn digits() -> Result<Split> {
    let all = all()?;
    let mut seen = vec![0usize; all.num_classes()];
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for (index, &label) in all.labels().iter().enumerate() {
        seen[label] += 1;
        if seen[label].is_multiple_of(5) { &mut test } else { &mut train }.push(index);
    }
    Ok(Split {
        train: all.subset(&train)?.with_name("digits train"),
        test: all.subset(&test)?.with_name("digits test"),
    })
}

/// All 1,797 digits in their original order.
///
/// # Errors
/// As [`digits`].
pub fn all() -> Result<ImageSet> {
    let path = Path::new("data/digits.bin.gz");
    let format = RecordFormat::new([1, 8, 8], 10)?;
    let mut bytes = file::unpack(path, include_bytes!("../data/digits.bin.gz"))?;
    for record in bytes.chunks_exact_mut(format.record_size()) {
        for level in &mut record[1..] {
            *level = ((u16::from(*level) * 255 + LEVELS / 2) / LEVELS).min(255) as u8;
        }
    }
    format.decode("digits", path, &bytes)?.with_class_names((0..10).map(|digit| digit.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_split_is_fixed_and_stratified() {
        let split = digits().unwrap();
        assert_eq!((split.train.len(), split.test.len()), (1_442, 355));
        assert!(split.test.class_counts().iter().all(|count| (34..=36).contains(count)));
    }

    #[test]
    fn grey_levels_can_be_undone() {
        let set = all().unwrap();
        assert_eq!(set.labels()[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let levels = |index| -> Vec<u16> {
            set.bytes(&[index]).unwrap().iter().map(|&byte| (u16::from(byte) * 16 + 127) / 255).collect()
        };
        assert_eq!(levels(0)[..8], [0, 0, 5, 13, 9, 1, 0, 0]); // the first line of the original
        let mut sum = 0u32;
        for index in 0..set.len() {
            sum += levels(index).into_iter().map(u32::from).sum::<u32>();
        }
        assert_eq!(sum, 561_718); // of the original file
    }
}
