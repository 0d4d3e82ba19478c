//! A finished raster picture: look at its pixels, save it as PNG, or embed it as a data URI.

use std::fmt::Write as _;
use std::io::Cursor;
use std::path::Path;

use image::{ImageFormat, Rgb, RgbImage};

use super::file;
use jem_core::error::{Error, Result};

/// Most pixels that a picture may have (a 16,384 x 16,384 square).
const MAX_PIXELS: u64 = 1 << 28;

/// An RGB picture of at least one pixel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    image: RgbImage,
}

impl Picture {
    /// A picture of one colour, or an error that names `what` would have been drawn.
    pub(super) fn filled(what: &str, width: u64, height: u64, colour: [u8; 3]) -> Result<Self> {
        if width == 0 || height == 0 || width.saturating_mul(height) > MAX_PIXELS {
            let reason = format!("{width} x {height} pixels is not between 1 and {MAX_PIXELS} pixels");
            return Err(Error::Draw { what: what.to_owned(), reason });
        }
        Ok(Self { image: RgbImage::from_pixel(width as u32, height as u32, Rgb(colour)) })
    }

    /// A column of `steps` pixels, from the colour of 1 at the top to that of 0 at the bottom.
    pub(super) fn ramp(steps: u32, colour: impl Fn(f64) -> [u8; 3]) -> Result<Self> {
        let mut picture = Self::filled("a colour bar", 1, u64::from(steps), [0; 3])?;
        for row in 0..steps {
            picture.set(0, i64::from(row), colour(1.0 - f64::from(row) / f64::from(steps.max(2) - 1)));
        }
        Ok(picture)
    }

    /// Width in pixels.
    pub fn width(&self) -> u32 {
        self.image.width()
    }

    /// Height in pixels.
    pub fn height(&self) -> u32 {
        self.image.height()
    }

    /// The colour at column `x` and row `y` from the top left, or `None` outside the picture.
    pub fn pixel(&self, x: u32, y: u32) -> Option<[u8; 3]> {
        self.image.get_pixel_checked(x, y).map(|pixel| pixel.0)
    }

    /// Colours one pixel; outside the picture nothing happens.
    pub(super) fn set(&mut self, x: i64, y: i64, colour: [u8; 3]) {
        if let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y))
            && let Some(pixel) = self.image.get_pixel_mut_checked(x, y)
        {
            *pixel = Rgb(colour);
        }
    }

    /// A filled disc.
    pub(super) fn disc(&mut self, (x, y): (f64, f64), radius: f64, colour: [u8; 3]) {
        let reach = radius.ceil() as i64;
        let (column, row) = (x.floor() as i64, y.floor() as i64);
        for dy in -reach..=reach {
            for dx in -reach..=reach {
                if ((dx * dx + dy * dy) as f64) <= (radius + 0.5) * (radius + 0.5) {
                    self.set(column + dx, row + dy, colour);
                }
            }
        }
    }

    /// A straight line of discs, clipped to the picture before it is drawn.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), radius: f64, colour: [u8; 3]) {
        let limits = (f64::from(self.width()) + radius, f64::from(self.height()) + radius);
        let Some((start, end)) = clipped(from, to, -radius, limits) else { return };
        let steps = (end.0 - start.0).abs().max((end.1 - start.1).abs()).ceil().max(1.0);
        for step in 0..=steps as u64 {
            let part = step as f64 / steps;
            let at = (start.0 + (end.0 - start.0) * part, start.1 + (end.1 - start.1) * part);
            self.disc(at, radius, colour);
        }
    }

    /// The picture as the bytes of a PNG file.
    ///
    /// # Errors
    /// [`Error::Draw`] if the encoder refuses.
    pub fn to_png(&self) -> Result<Vec<u8>> {
        let mut bytes = Cursor::new(Vec::new());
        match self.image.write_to(&mut bytes, ImageFormat::Png) {
            Ok(()) => Ok(bytes.into_inner()),
            Err(error) => Err(Error::Draw { what: "a PNG".to_owned(), reason: error.to_string() }),
        }
    }

    /// Writes a PNG file: first to a temporary file beside it, which is then renamed.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written, [`Error::Draw`] if the encoder refuses.
    pub fn write_png(&self, path: impl AsRef<Path>) -> Result<()> {
        file::write(path, &self.to_png()?)
    }

    /// The PNG as `data:image/png;base64,…`, for an HTML or SVG document that needs no other file.
    ///
    /// # Errors
    /// [`Error::Draw`] if the encoder refuses.
    pub fn to_data_uri(&self) -> Result<String> {
        Ok(format!("data:image/png;base64,{}", base64(&self.to_png()?)))
    }
}

/// The part of a line inside a box (Liang and Barsky), or `None` if there is none or an end is not finite.
fn clipped(from: (f64, f64), to: (f64, f64), low: f64, high: (f64, f64)) -> Option<((f64, f64), (f64, f64))> {
    if [from.0, from.1, to.0, to.1].iter().any(|value| !value.is_finite()) {
        return None;
    }
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let (mut start, mut end) = (0.0f64, 1.0f64);
    for (direction, room) in
        [(-dx, from.0 - low), (dx, high.0 - from.0), (-dy, from.1 - low), (dy, high.1 - from.1)]
    {
        if direction == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if direction < 0.0 {
            start = start.max(room / direction);
        } else {
            end = end.min(room / direction);
        }
    }
    let at = |part: f64| (from.0 + dx * part, from.1 + dy * part);
    (start <= end).then(|| (at(start), at(end)))
}

/// RFC 4648 base64 with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().enumerate().fold(0u32, |word, (i, byte)| word | u32::from(*byte) << (16 - 8 * i));
        for i in 0..4 {
            if i <= chunk.len() {
                out.push(char::from(ALPHABET[(word >> (18 - 6 * i) & 63) as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

/// `#rrggbb`.
pub(super) fn hex(colour: [u8; 3]) -> String {
    colour.iter().fold("#".to_owned(), |mut text, part| {
        let _ = write!(text, "{part:02X}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_passes_the_vectors_of_rfc_4648() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, coded) in vectors {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(&[0xff, 0xfb, 0xfe]), "//v+");
    }

    #[test]
    fn a_png_holds_the_pixels() {
        let mut picture = Picture::filled("a test", 3, 2, [1, 2, 3]).unwrap();
        picture.set(2, 1, [9, 8, 7]);
        picture.set(-1, 5, [0, 0, 0]);
        let folder = tempfile::tempdir().unwrap();
        picture.write_png(folder.path().join("a.png")).unwrap();
        let read = image::open(folder.path().join("a.png")).unwrap().into_rgb8();
        assert_eq!((read.dimensions(), read.get_pixel(0, 0).0), ((3, 2), [1, 2, 3]));
        assert_eq!(read.get_pixel(2, 1).0, [9, 8, 7]);
        assert!(picture.to_data_uri().unwrap().starts_with("data:image/png;base64,iVBORw0KGgo"));
        assert_eq!(picture.pixel(3, 0), None);
    }

    #[test]
    fn lines_are_clipped_and_sizes_are_bounded() {
        let mut picture = Picture::filled("a test", 10, 10, [0; 3]).unwrap();
        picture.line((-1e12, 5.0), (1e12, 5.0), 0.0, [255; 3]);
        picture.line((0.0, f64::NAN), (9.0, 9.0), 0.0, [7; 3]);
        assert_eq!((picture.pixel(0, 5), picture.pixel(9, 5)), (Some([255; 3]), Some([255; 3])));
        assert_eq!(picture.pixel(9, 9), Some([0; 3]));
        for (width, height) in [(0, 4), (1 << 20, 1 << 20), (u64::MAX, 2)] {
            assert!(matches!(Picture::filled("a test", width, height, [0; 3]), Err(Error::Draw { .. })));
        }
    }
}
