//! How bytes become network inputs and back: the one place where pixels are scaled.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// The interval that bytes 0..=255 are mapped to.
///
/// It is part of a data set, so that scaling happens exactly once, and is needed again to turn samples into
/// pictures.
///
/// ```
/// use jem_core::data::PixelRange;
/// assert_eq!((PixelRange::Symmetric.scale(0), PixelRange::Symmetric.scale(255)), (-1.0, 1.0));
/// assert_eq!(PixelRange::Unit.unscale(0.5), 128);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PixelRange {
    /// [-1, 1], as in JEM: v / 127.5 - 1.
    #[default]
    Symmetric,
    /// [0, 1]: v / 255.
    Unit,
}

impl PixelRange {
    /// What the byte 0 becomes.
    pub fn low(self) -> f32 {
        match self {
            Self::Symmetric => -1.0,
            Self::Unit => 0.0,
        }
    }

    /// What the byte 255 becomes.
    pub fn high(self) -> f32 {
        1.0
    }

    /// The value of a byte.
    pub fn scale(self, byte: u8) -> f32 {
        match self {
            Self::Symmetric => f32::from(byte) / 127.5 - 1.0,
            Self::Unit => f32::from(byte) / 255.0,
        }
    }

    /// The byte nearest to a value: the inverse of [`scale`](Self::scale). Values outside the range saturate
    /// and NaN becomes 0.
    pub fn unscale(self, value: f32) -> u8 {
        let unit = (value - self.low()) / (self.high() - self.low());
        (unit * 255.0).round() as u8 // `as` saturates
    }

    /// The bytes of a tensor, in its own order: a batch `[n, c, h, w]` becomes n planar images.
    pub fn to_bytes<const D: usize>(self, tensor: Tensor<D>) -> Vec<u8> {
        tensor.into_data().iter::<f32>().map(|value| self.unscale(value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_the_round_trip() {
        for range in [PixelRange::Symmetric, PixelRange::Unit] {
            for byte in 0..=255 {
                assert_eq!(range.unscale(range.scale(byte)), byte);
            }
            assert_eq!((range.scale(0), range.scale(255)), (range.low(), range.high()));
        }
    }

    #[test]
    fn what_lies_outside_saturates() {
        let range = PixelRange::Symmetric;
        assert_eq!((range.unscale(-7.0), range.unscale(1.1), range.unscale(f32::NAN)), (0, 255, 0));
    }
}
