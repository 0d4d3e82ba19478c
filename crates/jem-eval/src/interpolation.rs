//! The interpolation set: means of consecutive images, close to the data and yet none of them.

use jem_core::data::ImageSet;
use jem_core::error::{Result, ensure};

/// The mean of each image and the next, as a set of one image less.
///
/// Means are rounded to whole grey levels (halves up), so that nothing but the picture tells them from
/// photographs. Image i has the label of image i of `set`, and the same range and names.
///
/// # Errors
/// [`Error::Config`](jem_core::Error::Config) unless there are two images at least.
///
/// ```
/// use jem_core::data::ImageSet;
/// use jem_eval::interpolated;
///
/// let set = ImageSet::new("tiny", vec![0, 10, 20, 13, 100, 255], [1, 1, 2], vec![0, 1, 0], 2)?;
/// let between = interpolated(&set)?;
/// assert_eq!(between.bytes(&[0, 1])?, [10, 12, 60, 134]);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Grathwohl et al. 2020, arXiv 1912.03263, section 5.3.
pub fn interpolated(set: &ImageSet) -> Result<ImageSet> {
    let count = set.len();
    ensure(count >= 2, &format!("images in {}", set.name()), count, "at least 2")?;
    let first: Vec<usize> = (0..count - 1).collect();
    let second: Vec<usize> = (1..count).collect();
    let mean = |(a, b): (u8, u8)| (u16::from(a) + u16::from(b)).div_ceil(2) as u8;
    let pixels: Vec<u8> = set.bytes(&first)?.into_iter().zip(set.bytes(&second)?).map(mean).collect();
    let labels = set.labels()[..count - 1].to_vec();
    let name = format!("interpolation of {}", set.name());
    let between = ImageSet::new(name, pixels, set.image_shape(), labels, set.num_classes())?;
    let between = between.with_range(set.range());
    match set.class_names() {
        Some(names) => between.with_class_names(names.to_vec()),
        None => Ok(between),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jem_core::data::PixelRange;

    #[test]
    fn everything_but_the_pixels_stays() {
        let set = ImageSet::new("x", vec![0, 255, 255], [1, 1, 1], vec![2, 0, 1], 3).unwrap();
        let set = set.with_range(PixelRange::Unit).with_class_names(["a", "b", "c"]).unwrap();
        let between = interpolated(&set).unwrap();
        assert_eq!((between.len(), between.labels()), (2, &[2, 0][..]));
        assert_eq!(between.bytes(&[0, 1]).unwrap(), [128, 255]);
        assert_eq!((between.range(), between.class_names().unwrap().len()), (PixelRange::Unit, 3));
        assert_eq!(between.name(), "interpolation of x");
        let one = ImageSet::new("one", vec![7], [1, 1, 1], vec![0], 1).unwrap();
        assert!(interpolated(&one).unwrap_err().to_string().contains("images in one = 1"));
    }
}
