//! A classifier behind the normalisation of pixels that it was trained with.

use burn::module::Module;
use burn::tensor::Tensor;

use jem_core::data::PixelRange;
use jem_core::energy::Classifier;
use jem_core::error;
use jem_core::error::{Error, ensure};

/// An image classifier that wants (u - mean) / std, for images on a range of this crate.
///
/// ```text
/// z = (u - mean) / std     u = (x - low) / (high - low), from 0 to 1     per channel
/// ```
///
/// Published weights expect such inputs, while images here are on [-1, 1] or [0, 1]. The normalisation is
/// within the model, so that chains, noise and attacks stay on the scale of the images. It is a module: its
/// parameters are those of the classifier.
///
/// # Shapes
/// `[batch, channels, height, width]`, with as many channels as there are means.
///
/// # Panics
/// The forward pass panics on another number of channels.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::data::PixelRange;
/// use jem_core::energy::{EnergyModel, JointEnergy};
/// use jem_nn::{CifarResNetConfig, Normalized};
/// use jem_core::noise::Noise;
///
/// let device = Device::default();
/// let net = CifarResNetConfig::new(10).with_depth(8).init(&mut Noise::host(0), &device)?;
/// let net = Normalized::new(net, PixelRange::Symmetric, &[0.485, 0.456, 0.406], &[0.229, 0.224, 0.225])?;
/// let black = Tensor::<4>::full([1, 3, 8, 8], -1.0, &device);
/// let red = net.normalise(black.clone()).narrow(1, 0, 1).max().into_scalar::<f32>();
/// assert!((red + 0.485 / 0.229).abs() < 1e-5);
/// assert_eq!(JointEnergy::new(net).energy(black).dims(), [1]);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Module, Debug)]
pub struct Normalized<C> {
    /// What sees the normalised images.
    pub classifier: C,
    /// z = factor x + offset.
    #[module(skip)]
    factor: Vec<f32>,
    #[module(skip)]
    offset: Vec<f32>,
}

impl<C> Normalized<C> {
    /// `classifier` for images on `range`, with a mean and a standard deviation per channel on the scale from 0
    /// to 1, as PyTorch's `transforms.Normalize` has them.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are as many means as standard deviations, and at least one;
    /// [`Error::Config`] unless all are finite and the standard deviations above 0.
    pub fn new(classifier: C, range: PixelRange, mean: &[f32], std: &[f32]) -> error::Result<Self> {
        if mean.is_empty() || mean.len() != std.len() {
            return Err(Error::shape(
                "Normalized.std",
                &[std.len()],
                format!("one per mean, {}", mean.len()),
            ));
        }
        for (mean, std) in mean.iter().zip(std) {
            ensure(mean.is_finite(), "Normalized.mean", mean, "finite numbers")?;
            ensure(std.is_finite() && *std > 0.0, "Normalized.std", std, "finite numbers > 0")?;
        }
        let (low, width) = (range.low(), range.high() - range.low());
        let factor: Vec<f32> = std.iter().map(|std| 1.0 / (width * std)).collect();
        let offset = mean.iter().zip(std).map(|(mean, std)| -(low / width + mean) / std).collect();
        Ok(Self { classifier, factor, offset })
    }

    /// What the classifier sees.
    ///
    /// # Shapes
    /// `[batch, channels, height, width]`, kept.
    pub fn normalise(&self, x: Tensor<4>) -> Tensor<4> {
        let device = x.device();
        let per_channel =
            |values: &[f32]| Tensor::<1>::from_floats(values, &device).reshape([1, values.len(), 1, 1]);
        x * per_channel(&self.factor) + per_channel(&self.offset)
    }
}

impl<C: Classifier<4>> Classifier<4> for Normalized<C> {
    fn logits(&self, x: Tensor<4>) -> Tensor<2> {
        self.classifier.logits(self.normalise(x))
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::{CnnConfig, checks};
    use burn::tensor::Device;
    use jem_core::noise::Noise;

    fn net(range: PixelRange, device: &Device) -> Normalized<crate::Cnn> {
        let cnn = CnnConfig::new(vec![3], 2).with_in_channels(2).init(&mut Noise::host(0), device).unwrap();
        Normalized::new(cnn, range, &[0.5, 0.25], &[0.25, 0.5]).unwrap()
    }

    #[test]
    fn a_pixel_means_the_same_on_either_range() {
        let device = Device::flex();
        for range in [PixelRange::Symmetric, PixelRange::Unit] {
            let of = |byte: u8| {
                let x = Tensor::<4>::full([1, 2, 1, 1], range.scale(byte), &device);
                net(range, &device).normalise(x).into_data().try_to_vec::<f32>().unwrap()
            };
            for (byte, expected) in [(0, [-2.0, -0.5]), (51, [-1.2, -0.1]), (255, [2.0, 1.5])] {
                let found = of(byte);
                let close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5);
                assert!(close, "{range:?}: {byte} became {found:?}, not {expected:?}");
            }
        }
    }

    #[test]
    fn gradients_pass_and_the_parameters_are_the_classifiers() {
        let net = net(PixelRange::Symmetric, &Device::flex().autodiff());
        assert_eq!(net.num_params(), net.classifier.num_params());
        checks::gradient_matches_finite_differences(&net, [2, 2, 4, 5]);
    }

    #[test]
    fn wrong_statistics_are_refused() {
        for (mean, std, part) in [
            (vec![], vec![], "Normalized.std has shape [0], expected one per mean, 0"),
            (vec![0.5], vec![0.1, 0.1], "Normalized.std has shape [2], expected one per mean, 1"),
            (vec![f32::NAN], vec![1.0], "Normalized.mean = NaN"),
            (vec![0.0], vec![0.0], "Normalized.std = 0 "),
        ] {
            let error = Normalized::new((), PixelRange::Unit, &mean, &std).unwrap_err().to_string();
            assert!(error.contains(part), "{error} does not say {part:?}");
        }
    }
}
