//! Bits per dimension of byte images, from log Z and a mean energy.

use burn::tensor::Tensor;

use jem_core::data::PixelRange;
use jem_core::error::{Error, Result, ensure};
use jem_core::noise::{Noise, Stream};

/// The noise that spreads a byte over its bin.
const DEQUANTISATION: Stream = Stream::new("dequantisation");

/// The negative log2-likelihood per dimension of byte images. A byte stands for the bin of width
/// δ = (high - low)/255 round its value in `range`, and its probability is the density times the bin:
///
/// ```text
/// bits = (mean E(x) + log Z) / (d log 2) - log2 δ        δ = 2/255 on [-1, 1], 1/255 on [0, 1]
/// ```
///
/// `mean_energy` is the mean of E over [`dequantised`] images, in nats: by Jensen's inequality the result is then
/// an upper bound of the bits of the bytes themselves. On bare bytes, which are points of a lattice, it is no bound of
/// anything. A uniform density on the box of the bins has 8 bits. (Papers that scale by 256 have bins of 1/256
/// of the box: log2(256/255) = 0.006 bits of difference.)
///
/// An interval of log Z gives one of bits: the function is linear in it.
///
/// # Errors
/// [`Error::Config`] if the dimension is 0, [`Error::NonFinite`] if a number is not finite.
///
/// ```
/// use jem_core::data::PixelRange;
/// use jem_eval::ais::bits_per_dimension;
/// // Uniform over 256 bins of width 2/255: E = 0, log Z = d log(512/255).
/// let log_z = 3072.0 * (512f64 / 255.0).ln();
/// let bits = bits_per_dimension(0.0, log_z, 3072, PixelRange::Symmetric)?;
/// assert!((bits - 8.0).abs() < 1e-9);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Theis et al. 2016, "A note on the evaluation of generative models", arXiv 1511.01844.
pub fn bits_per_dimension(mean_energy: f64, log_z: f64, dimension: usize, range: PixelRange) -> Result<f64> {
    ensure(dimension > 0, "bits_per_dimension.dimension", dimension, "above 0")?;
    for (what, value) in [("mean energy", mean_energy), ("log Z", log_z)] {
        if !value.is_finite() {
            return Err(Error::NonFinite { what: what.to_owned(), value });
        }
    }
    let nats = (mean_energy + log_z) / dimension as f64;
    Ok(nats / std::f64::consts::LN_2 - bin(range).log2())
}

/// Images with each byte spread evenly over its bin: x + U(-δ/2, δ/2). The first and the last bin reach δ/2 beyond the
/// range.
///
/// # Shapes
/// Any.
pub fn dequantised<const D: usize>(x: Tensor<D>, range: PixelRange, noise: &mut Noise) -> Tensor<D> {
    let half = (bin(range) / 2.0) as f32;
    let spread = noise.uniform(x.dims(), -half..half, DEQUANTISATION, &x.device());
    x + spread
}

/// δ, the distance between two bytes.
fn bin(range: PixelRange) -> f64 {
    (f64::from(range.high()) - f64::from(range.low())) / 255.0
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::{Device, TensorData};
    use jem_core::energy::EnergyModel;
    use jem_core::energy::analytic::Gaussian;

    /// Bytes of a Gaussian of deviation 40: the entropy of the bytes is log2(40 √(2πe)) = 7.369 bits, whichever
    /// range they are scaled to. 60,000 bytes: the standard error of the mean of z²/2 is 0.003 nats.
    #[test]
    fn bits_of_a_gaussian_are_its_entropy_on_either_range() {
        let n = 60_000;
        let device = Device::flex();
        let bytes: Vec<u8> = Noise::host(4)
            .normal([n], Stream::DATA, &device)
            .into_data()
            .iter::<f32>()
            .map(|z| (127.5 + 40.0 * z).round() as u8)
            .collect();
        let entropy = (40.0 * (2.0 * std::f64::consts::PI * std::f64::consts::E).sqrt()).log2();
        for range in [PixelRange::Symmetric, PixelRange::Unit] {
            let x: Vec<f32> = bytes.iter().map(|byte| range.scale(*byte)).collect();
            let x = Tensor::<2>::from_data(TensorData::new(x, [n, 1]), &device);
            let x = dequantised(x, range, &mut Noise::host(5));
            let centre = (range.low() + range.high()) / 2.0;
            let model = Gaussian::new(centre, (40.0 * bin(range)) as f32).unwrap();
            let energy = f64::from(model.energy(x).mean().into_scalar::<f32>());
            let bits = bits_per_dimension(energy, model.log_normaliser(1), 1, range).unwrap();
            assert!((bits - entropy).abs() < 0.02, "{range:?}: {bits}, not {entropy}");
        }
        assert!(bits_per_dimension(0.0, 0.0, 0, PixelRange::Unit).is_err());
        assert!(bits_per_dimension(f64::NAN, 0.0, 1, PixelRange::Unit).is_err());
    }
}
