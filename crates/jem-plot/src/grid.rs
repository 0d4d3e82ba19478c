//! Many small images as one picture, each value at its own colour and every broken value in magenta.

use burn::tensor::Tensor;

use super::picture::Picture;
use jem_core::error::{Error, Result, ensure};

/// The colour of a pixel that is not finite: no photograph has it.
const BROKEN: [u8; 3] = [255, 0, 255];
/// The colour between the tiles, and of tiles that no image fills.
const GAP: [u8; 3] = [96, 96, 96];

/// Images in rows of `columns`, each pixel enlarged to a square of `scale`, `padding` pixels apart.
///
/// The values `range.0` and `range.1` become black and white (or none and all of a channel), values outside
/// are clamped, and a pixel with a value that is not finite is magenta. With fewer images than columns there
/// are only as many columns as images.
///
/// # Shapes
/// `[images, 1 or 3, height, width]`.
///
/// # Errors
/// [`Error::Shape`] for another number of channels; [`Error::Config`] if the range is empty or not finite or
/// if `columns` or `scale` is 0; [`Error::Draw`] if there is no image or the picture would be larger than
/// 2^28 pixels.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_plot::grid;
///
/// let images = Tensor::<4>::ones([5, 1, 2, 2], &Device::default());
/// let picture = grid(&images, (-1.0, 1.0), 3, 4, 1)?;
/// // Three tiles of 2 x 4 pixels and four gaps; two rows and three gaps.
/// assert_eq!((picture.width(), picture.height()), (28, 19));
/// assert_eq!(picture.pixel(1, 1), Some([255, 255, 255]));
/// # Ok::<(), jem_core::Error>(())
/// ```
pub fn grid(
    images: &Tensor<4>,
    range: (f32, f32),
    columns: usize,
    scale: usize,
    padding: usize,
) -> Result<Picture> {
    let [count, channels, height, width] = images.dims();
    if channels != 1 && channels != 3 {
        return Err(Error::shape("grid images", &images.dims(), "[images, 1 or 3, height, width]"));
    }
    let (low, high) = (f64::from(range.0), f64::from(range.1));
    let ordered = low.is_finite() && high.is_finite() && low < high;
    ensure(ordered, "grid.range", format!("({low}, {high})"), "finite with the smaller value first")?;
    ensure(columns > 0, "grid.columns", columns, "at least 1")?;
    ensure(scale > 0, "grid.scale", scale, "at least 1")?;
    if count * height * width == 0 {
        let reason = format!("there is no pixel in shape {:?}", images.dims());
        return Err(Error::Draw { what: "an image grid".to_owned(), reason });
    }
    let columns = columns.min(count);
    let extent = |tiles: usize, size: usize| {
        let tile = (size as u64).saturating_mul(scale as u64).saturating_add(padding as u64);
        tile.saturating_mul(tiles as u64).saturating_add(padding as u64)
    };
    let (across, down) = (extent(columns, width), extent(count.div_ceil(columns), height));
    let mut picture = Picture::filled("an image grid", across, down, GAP)?;

    let values: Vec<f32> = match images.clone().into_data().convert::<f32>().try_to_vec() {
        Ok(values) => values,
        Err(error) => {
            return Err(Error::Draw { what: "an image grid".to_owned(), reason: format!("{error:?}") });
        }
    };
    let level =
        |value: f32| ((f64::from(value) - low) / (high - low) * 255.0).round().clamp(0.0, 255.0) as u8;
    for image in 0..count {
        let left = padding + image % columns * (width * scale + padding);
        let top = padding + image / columns * (height * scale + padding);
        for y in 0..height {
            for x in 0..width {
                let value = |channel: usize| values[((image * channels + channel) * height + y) * width + x];
                let parts = if channels == 1 { [value(0); 3] } else { [value(0), value(1), value(2)] };
                let broken = parts.iter().any(|part| !part.is_finite());
                let colour = if broken { BROKEN } else { parts.map(level) };
                for dy in 0..scale {
                    for dx in 0..scale {
                        picture.set((left + x * scale + dx) as i64, (top + y * scale + dy) as i64, colour);
                    }
                }
            }
        }
    }
    Ok(picture)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn every_pixel_lands_where_it_belongs() {
        let device = Device::flex();
        // Two images of 1 x 2 pixels, three channels: channel-major.
        let images = Tensor::<4>::from_floats(
            [[[[1.0, -1.0]], [[-1.0, 1.0]], [[0.0, 9.0]]], [[[-9.0, f32::NAN]], [[0.5, 0.0]], [[1.0, 0.0]]]],
            &device,
        );
        let picture = grid(&images, (-1.0, 1.0), 8, 3, 2).unwrap();
        assert_eq!((picture.width(), picture.height()), (2 + 8 + 8, 2 + 5));
        assert_eq!(picture.pixel(0, 0), Some(GAP));
        for corner in [(2, 2), (4, 4)] {
            assert_eq!(picture.pixel(corner.0, corner.1), Some([255, 0, 128]));
        }
        assert_eq!(picture.pixel(5, 2), Some([0, 255, 255]));
        assert_eq!(picture.pixel(8, 3), Some(GAP));
        assert_eq!(picture.pixel(10, 2), Some([0, 191, 255]));
        assert_eq!(picture.pixel(15, 4), Some(BROKEN));
    }

    #[test]
    fn the_number_of_tiles_is_right_and_the_rest_is_gap() {
        let images = Tensor::<4>::zeros([5, 1, 1, 1], &Device::flex());
        let picture = grid(&images, (0.0, 1.0), 2, 1, 1).unwrap();
        assert_eq!((picture.width(), picture.height()), (5, 7));
        let black = (0..7).flat_map(|y| (0..5).map(move |x| (x, y)));
        let black = black.filter(|(x, y)| picture.pixel(*x, *y) == Some([0, 0, 0])).count();
        assert_eq!((black, picture.pixel(3, 5)), (5, Some(GAP)));
    }

    #[test]
    fn misuse_is_named() {
        let device = Device::flex();
        let image = Tensor::<4>::zeros([1, 1, 2, 2], &device);
        let message = |result: Result<Picture>| result.unwrap_err().to_string();
        let two = Tensor::<4>::zeros([1, 2, 2, 2], &device);
        assert!(message(grid(&two, (0.0, 1.0), 1, 1, 0)).contains("[1, 2, 2, 2]"));
        assert!(message(grid(&image, (1.0, 1.0), 1, 1, 0)).contains("grid.range"));
        assert!(message(grid(&image, (f32::NAN, 1.0), 1, 1, 0)).contains("grid.range"));
        assert!(message(grid(&image, (0.0, 1.0), 0, 1, 0)).contains("grid.columns"));
        assert!(message(grid(&image, (0.0, 1.0), 1, 0, 0)).contains("grid.scale"));
        assert!(message(grid(&image, (0.0, 1.0), 1, usize::MAX, 0)).contains("pixels"));
        let none = Tensor::<4>::zeros([0, 1, 2, 2], &device);
        assert!(message(grid(&none, (0.0, 1.0), 1, 1, 0)).contains("no pixel"));
    }
}
