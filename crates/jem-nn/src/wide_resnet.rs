//! The wide residual network of the JEM paper: no normalisation unless asked for, the stride on the second
//! convolution of a block.

use burn::config::Config;
use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{BatchNorm, Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::{Activation, batch_norm, conv2d, convolve, linear};
use jem_core::energy::Classifier;
use jem_core::error;
use jem_core::error::ensure;
use jem_core::noise::Noise;

/// What normalises the input of each activation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Norm {
    /// Nothing, as in JEM: the energy of a sample depends on that sample alone.
    #[default]
    None,
    /// Batch norm with running statistics, as in JEM++.
    Batch,
}

impl Norm {
    fn init(self, channels: usize, device: &Device) -> error::Result<Option<BatchNorm>> {
        match self {
            Self::None => Ok(None),
            Self::Batch => batch_norm(channels, device).map(Some),
        }
    }
}

/// Configuration of a [`WideResNet`]; WideResNet-28-10 is `WideResNetConfig::new(28, 10, num_classes)`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::Classifier;
/// use jem_nn::WideResNetConfig;
/// use jem_core::noise::Noise;
///
/// let device = Device::default();
/// let net = WideResNetConfig::new(10, 1, 10).with_in_channels(1).init(&mut Noise::host(0), &device)?;
/// assert_eq!(net.logits(Tensor::zeros([2, 1, 8, 8], &device)).dims(), [2, 10]);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Config, Debug, PartialEq)]
pub struct WideResNetConfig {
    /// The number of layers that count: 6n + 4 for n blocks in each of three groups.
    pub depth: usize,
    /// The factor on the 16, 32 and 64 channels of the groups, from 1 to 1024.
    pub width: usize,
    /// The number of logits.
    pub num_classes: usize,
    /// The channels of the input.
    #[config(default = 3)]
    pub in_channels: usize,
    /// What normalises the input of each activation.
    #[config(default = "Norm::None")]
    pub norm: Norm,
    /// The activation.
    #[config(default = "Activation::default()")]
    pub activation: Activation,
}

impl WideResNetConfig {
    /// The network, its weights drawn from `noise`.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) unless the depth is 6n + 4 with n > 0, the width is from 1 to
    /// 1024, there are classes and channels, and the activation is valid.
    pub fn init(&self, noise: &mut Noise, device: &Device) -> error::Result<WideResNet> {
        let (depth, width, classes) = (self.depth, self.width, self.num_classes);
        ensure(depth >= 10 && depth % 6 == 4, "WideResNetConfig.depth", depth, "6n + 4 with n > 0")?;
        ensure((1..=1024).contains(&width), "WideResNetConfig.width", width, "from 1 to 1024")?;
        ensure(classes > 0, "WideResNetConfig.num_classes", classes, "a number > 0")?;
        ensure(self.in_channels > 0, "WideResNetConfig.in_channels", self.in_channels, "a number > 0")?;
        self.activation.check("WideResNetConfig.activation")?;

        let conv1 = conv2d(&three_by_three([self.in_channels, 16], 1), noise, device)?;
        let mut channels = 16;
        let mut group = |planes: usize, stride: usize| -> error::Result<Vec<ResidualBlock>> {
            let blocks = (depth - 4) / 6;
            (0..blocks)
                .map(|block| {
                    let stride = if block == 0 { stride } else { 1 };
                    let block = self.block([channels, planes], stride, noise, device)?;
                    channels = planes;
                    Ok(block)
                })
                .collect()
        };
        let group1 = group(16 * width, 1)?;
        let group2 = group(32 * width, 2)?;
        let group3 = group(64 * width, 2)?;
        Ok(WideResNet {
            conv1,
            group1,
            group2,
            group3,
            norm: self.norm.init(channels, device)?,
            class_output: linear(&LinearConfig::new(channels, classes), noise, device)?,
            activation: self.activation,
        })
    }

    fn block(
        &self,
        channels: [usize; 2],
        stride: usize,
        noise: &mut Noise,
        device: &Device,
    ) -> error::Result<ResidualBlock> {
        let [inputs, planes] = channels;
        let reshapes = stride != 1 || inputs != planes;
        Ok(ResidualBlock {
            norm1: self.norm.init(inputs, device)?,
            conv1: conv2d(&three_by_three(channels, 1), noise, device)?,
            norm2: self.norm.init(planes, device)?,
            conv2: conv2d(&three_by_three([planes, planes], stride), noise, device)?,
            shortcut: reshapes
                .then(|| Conv2dConfig::new(channels, [1, 1]).with_stride([stride, stride]))
                .map(|config| conv2d(&config, noise, device))
                .transpose()?,
            activation: self.activation,
        })
    }
}

fn three_by_three(channels: [usize; 2], stride: usize) -> Conv2dConfig {
    Conv2dConfig::new(channels, [3, 3])
        .with_stride([stride, stride])
        .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
}

/// Two 3×3 convolutions behind activations, added to the block's own input.
#[derive(Module, Debug)]
pub struct ResidualBlock {
    /// Before the first activation.
    pub norm1: Option<BatchNorm>,
    /// The convolution that changes the number of channels.
    pub conv1: Conv2d,
    /// Before the second activation.
    pub norm2: Option<BatchNorm>,
    /// The convolution that has the stride.
    pub conv2: Conv2d,
    /// A 1×1 convolution of the input where the block changes its shape.
    pub shortcut: Option<Conv2d>,
    #[module(skip)]
    activation: Activation,
}

impl ResidualBlock {
    /// # Shapes
    /// `[batch, inputs, height, width]` to `[batch, planes, ⌈height/stride⌉, ⌈width/stride⌉]`.
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let residual = match &self.shortcut {
            Some(shortcut) => convolve(shortcut, x.clone()),
            None => x.clone(),
        };
        let x = self.activation.then_conv(&self.conv1, normalised(&self.norm1, x));
        let x = self.activation.then_conv(&self.conv2, normalised(&self.norm2, x));
        x + residual
    }
}

fn normalised(norm: &Option<BatchNorm>, x: Tensor<4>) -> Tensor<4> {
    match norm {
        Some(norm) => norm.forward(x),
        None => x,
    }
}

/// A wide residual network: a convolution, three groups of blocks, the mean over all places, and a linear
/// head. It takes images of any size.
///
/// # Shapes
/// `[batch, in_channels, height, width]` to `[batch, num_classes]`.
///
/// # Panics
/// The forward pass panics on another number of channels, as Burn's convolutions do.
///
/// Source: Zagoruyko and Komodakis 2016, arXiv 1605.07146, as varied by Grathwohl et al. 2020, arXiv
/// 1912.03263: no normalisation, leaky ReLU of slope 0.2, every convolution with a bias.
#[derive(Module, Debug)]
pub struct WideResNet {
    /// The first layer.
    pub conv1: Conv2d,
    /// The blocks at full resolution, 16 channels times the width.
    pub group1: Vec<ResidualBlock>,
    /// The blocks at half resolution, 32 channels times the width.
    pub group2: Vec<ResidualBlock>,
    /// The blocks at a quarter of the resolution, 64 channels times the width.
    pub group3: Vec<ResidualBlock>,
    /// Before the last activation.
    pub norm: Option<BatchNorm>,
    /// The head.
    pub class_output: Linear,
    #[module(skip)]
    activation: Activation,
}

impl WideResNet {
    /// The activation between its layers.
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// What the head sees.
    ///
    /// # Shapes
    /// `[batch, in_channels, height, width]` to `[batch, 64 width]`.
    pub fn features(&self, x: Tensor<4>) -> Tensor<2> {
        let blocks = self.group1.iter().chain(&self.group2).chain(&self.group3);
        let x = blocks.fold(convolve(&self.conv1, x), |x, block| block.forward(x));
        mean_over_places(self.activation.forward(normalised(&self.norm, x)))
    }
}

impl Classifier<4> for WideResNet {
    fn logits(&self, x: Tensor<4>) -> Tensor<2> {
        self.class_output.forward(self.features(x))
    }
}

/// Global average pooling.
///
/// # Shapes
/// `[batch, channels, height, width]` to `[batch, channels]`.
pub(super) fn mean_over_places(x: Tensor<4>) -> Tensor<2> {
    let [batch, channels, height, width] = x.dims();
    x.reshape([batch, channels, height * width]).mean_dim(2).squeeze_dim(2)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::checks;

    fn tiny(classes: usize) -> WideResNetConfig {
        WideResNetConfig::new(10, 1, classes)
    }

    #[test]
    fn parameter_counts_are_those_of_the_architecture() {
        // By hand: every convolution and the head have a bias; a group's first block has a shortcut
        // where it changes its shape, which at width 1 the first group's does not.
        let mut noise = Noise::host(0);
        let mut count =
            |config: WideResNetConfig| config.init(&mut noise, &Device::flex()).unwrap().num_params();
        assert_eq!(count(tiny(10)), 77_706);
        assert_eq!(count(tiny(10).with_in_channels(1)), 77_706 - 2 * 9 * 16);
        // Gain, bias and two running statistics, which Burn counts too, for the seven normalised inputs.
        assert_eq!(count(tiny(10).with_norm(Norm::Batch)), 77_706 + 4 * (16 * 3 + 32 * 2 + 64 * 2));
        assert_eq!(count(WideResNetConfig::new(28, 10, 10)), 36_471_338);
    }

    #[test]
    fn any_size_channels_and_classes() {
        let device = Device::flex();
        for (classes, shape) in [(100, [1, 1, 17, 23]), (1, [3, 2, 1, 1]), (10, [2, 3, 32, 32])] {
            for norm in [Norm::None, Norm::Batch] {
                let net = tiny(classes).with_in_channels(shape[1]).with_norm(norm);
                let net = net.init(&mut Noise::host(0), &device).unwrap();
                let x = Tensor::ones(shape, &device);
                assert_eq!(net.features(x.clone()).dims(), [shape[0], 64]);
                assert_eq!(net.logits(x).dims(), [shape[0], classes]);
            }
        }
    }

    #[test]
    fn wrong_configurations_are_refused_by_name() {
        let activation = Activation::LeakyRelu { negative_slope: f64::NAN };
        for (config, field) in [
            (WideResNetConfig::new(12, 1, 10), "depth = 12 "),
            (WideResNetConfig::new(4, 1, 10), "depth = 4 "),
            (WideResNetConfig::new(0, 1, 10), "depth = 0 "),
            (WideResNetConfig::new(10, 0, 10), "width = 0 "),
            (WideResNetConfig::new(10, usize::MAX, 10), "width = 1"),
            (tiny(0), "num_classes = 0 "),
            (tiny(10).with_in_channels(0), "in_channels = 0 "),
            (tiny(10).with_activation(activation), "activation.negative_slope = NaN "),
        ] {
            let error = config.init(&mut Noise::host(0), &Device::flex()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("WideResNetConfig.{field}")), "{error}");
        }
    }

    #[test]
    fn configurations_survive_json_and_one_seed_is_one_network() {
        let config = tiny(10).with_norm(Norm::Batch).with_activation(Activation::Silu);
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<WideResNetConfig>(&json).unwrap(), config);
        checks::one_seed_is_one_network(|noise, device| tiny(10).init(noise, device).unwrap(), [2, 3, 9, 9]);
    }

    #[test]
    fn gradients_in_x_match_finite_differences() {
        for activation in [Activation::Silu, Activation::default()] {
            let config = tiny(4).with_in_channels(2).with_activation(activation);
            let net = config.init(&mut Noise::host(1), &Device::flex().autodiff()).unwrap();
            checks::gradient_matches_finite_differences(&net, [2, 2, 7, 6]);
        }
    }

    #[test]
    fn batch_norm_uses_running_statistics_in_valid_mode() {
        // There the energy of a sample does not depend on the rest of the batch.
        let net = tiny(3).with_norm(Norm::Batch).init(&mut Noise::host(0), &Device::flex().autodiff());
        let net = net.unwrap();
        let x = Noise::host(1).normal([4, 3, 8, 8], jem_core::noise::Stream::DATA, &Device::flex());
        let alone = net.valid().logits(x.clone().narrow(0, 0, 1));
        let together = net.valid().logits(x.clone()).narrow(0, 0, 1);
        assert!((alone - together.clone()).abs().max().into_scalar::<f32>() < 1e-5);
        // Negative control: in training mode it does.
        let trained = net.logits(x.autodiff()).narrow(0, 0, 1).without_autodiff();
        assert!((trained - together).abs().max().into_scalar::<f32>() > 1e-3);
    }
}
