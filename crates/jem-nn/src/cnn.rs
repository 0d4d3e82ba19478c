//! A small convolutional network: a stack of 3×3 convolutions, the mean over all places and a linear head.

use burn::config::Config;
use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::{Device, Tensor};

use super::wide_resnet::mean_over_places;
use super::{Activation, conv2d, convolve, linear};
use jem_core::energy::Classifier;
use jem_core::error;
use jem_core::error::ensure;
use jem_core::noise::Noise;

/// Configuration of a [`Cnn`]: the channels of each convolution, and the number of classes.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::Classifier;
/// use jem_nn::CnnConfig;
/// use jem_core::noise::Noise;
///
/// let device = Device::default();
/// let net = CnnConfig::new(vec![8, 16], 10).with_in_channels(1).init(&mut Noise::host(0), &device)?;
/// assert_eq!(net.logits(Tensor::zeros([2, 1, 8, 8], &device)).dims(), [2, 10]);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Config, Debug, PartialEq)]
pub struct CnnConfig {
    /// The channels that each convolution puts out; the first has stride 1, the others stride 2.
    pub channels: Vec<usize>,
    /// The number of logits.
    pub num_classes: usize,
    /// The channels of the input.
    #[config(default = 3)]
    pub in_channels: usize,
    /// The activation.
    #[config(default = "Activation::default()")]
    pub activation: Activation,
}

impl CnnConfig {
    /// The network, its weights drawn from `noise`.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) if there is no convolution, if a number of channels or classes
    /// is 0, or if the activation is not valid.
    pub fn init(&self, noise: &mut Noise, device: &Device) -> error::Result<Cnn> {
        let allowed = !self.channels.is_empty() && self.channels.iter().all(|channels| *channels > 0);
        let found = format!("{:?}", self.channels);
        ensure(allowed, "CnnConfig.channels", found, "one or more numbers > 0")?;
        ensure(self.num_classes > 0, "CnnConfig.num_classes", self.num_classes, "a number > 0")?;
        ensure(self.in_channels > 0, "CnnConfig.in_channels", self.in_channels, "a number > 0")?;
        self.activation.check("CnnConfig.activation")?;

        let mut inputs = self.in_channels;
        let mut convs = Vec::with_capacity(self.channels.len());
        for (layer, outputs) in self.channels.iter().copied().enumerate() {
            let stride = if layer == 0 { 1 } else { 2 };
            let config = Conv2dConfig::new([inputs, outputs], [3, 3])
                .with_stride([stride, stride])
                .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1));
            convs.push(conv2d(&config, noise, device)?);
            inputs = outputs;
        }
        let class_output = linear(&LinearConfig::new(inputs, self.num_classes), noise, device)?;
        Ok(Cnn { convs, class_output, activation: self.activation })
    }
}

/// A stack of convolutions, each with an activation behind it. It takes images of any size.
///
/// # Shapes
/// `[batch, in_channels, height, width]` to `[batch, num_classes]`.
///
/// # Panics
/// The forward pass panics on another number of channels, as Burn's convolutions do.
#[derive(Module, Debug)]
pub struct Cnn {
    /// The convolutions.
    pub convs: Vec<Conv2d>,
    /// The head.
    pub class_output: Linear,
    #[module(skip)]
    activation: Activation,
}

impl Cnn {
    /// What the head sees.
    ///
    /// # Shapes
    /// `[batch, in_channels, height, width]` to `[batch, last of channels]`.
    pub fn features(&self, x: Tensor<4>) -> Tensor<2> {
        let Some((first, others)) = self.convs.split_first() else { return mean_over_places(x) };
        let x = others.iter().fold(convolve(first, x), |x, conv| self.activation.then_conv(conv, x));
        mean_over_places(self.activation.forward(x))
    }
}

impl Classifier<4> for Cnn {
    fn logits(&self, x: Tensor<4>) -> Tensor<2> {
        self.class_output.forward(self.features(x))
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::checks;

    #[test]
    fn parameter_counts_are_those_of_the_architecture() {
        let net = CnnConfig::new(vec![64, 128, 256], 10).init(&mut Noise::host(0), &Device::flex()).unwrap();
        let convolutions = (27 + 1) * 64 + (64 * 9 + 1) * 128 + (128 * 9 + 1) * 256;
        assert_eq!(net.num_params(), convolutions + (256 + 1) * 10);
    }

    #[test]
    fn any_size_channels_and_classes() {
        let device = Device::flex();
        for (classes, shape) in [(100, [1, 1, 17, 23]), (1, [3, 2, 1, 1]), (10, [2, 3, 32, 32])] {
            let net = CnnConfig::new(vec![4, 5, 6], classes).with_in_channels(shape[1]);
            let net = net.init(&mut Noise::host(0), &device).unwrap();
            assert_eq!(net.features(Tensor::ones(shape, &device)).dims(), [shape[0], 6]);
            assert_eq!(net.logits(Tensor::ones(shape, &device)).dims(), [shape[0], classes]);
        }
    }

    #[test]
    fn wrong_configurations_are_refused_by_name() {
        let activation = Activation::LeakyRelu { negative_slope: 2.0 };
        for (config, field) in [
            (CnnConfig::new(vec![], 10), "channels = [] "),
            (CnnConfig::new(vec![4, 0], 10), "channels = [4, 0] "),
            (CnnConfig::new(vec![4], 0), "num_classes = 0 "),
            (CnnConfig::new(vec![4], 10).with_in_channels(0), "in_channels = 0 "),
            (CnnConfig::new(vec![4], 10).with_activation(activation), "activation.negative_slope = 2 "),
        ] {
            let error = config.init(&mut Noise::host(0), &Device::flex()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("CnnConfig.{field}")), "{error}");
        }
    }

    #[test]
    fn one_seed_is_one_network_and_gradients_match_finite_differences() {
        let config = CnnConfig::new(vec![4, 6], 5).with_in_channels(2);
        let init = |noise: &mut Noise, device: &Device| config.init(noise, device).unwrap();
        checks::one_seed_is_one_network(init, [2, 2, 5, 8]);
        let net = init(&mut Noise::host(3), &Device::flex().autodiff());
        checks::gradient_matches_finite_differences(&net, [3, 2, 5, 8]);
    }
}
