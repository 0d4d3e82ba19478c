//! The residual network for CIFAR of He et al.: batch norm after every convolution, shortcuts without weights.

use burn::config::Config;
use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{BatchNorm, Initializer, Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::{Device, Tensor, activation, s};

use super::wide_resnet::mean_over_places;
use super::{batch_norm, conv2d, convolve, linear};
use jem_core::energy::Classifier;
use jem_core::error;
use jem_core::error::ensure;
use jem_core::noise::Noise;

/// Configuration of a [`CifarResNet`], ResNet-20 unless the depth says otherwise.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::Classifier;
/// use jem_nn::CifarResNetConfig;
/// use jem_core::noise::Noise;
///
/// let device = Device::default();
/// let net = CifarResNetConfig::new(10).with_depth(8).init(&mut Noise::host(0), &device)?;
/// let x = Tensor::<4>::zeros([2, 3, 16, 16], &device);
/// assert_eq!((net.features(x.clone()).dims(), net.logits(x).dims()), ([2, 64], [2, 10]));
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Config, Debug, PartialEq)]
pub struct CifarResNetConfig {
    /// The number of logits.
    pub num_classes: usize,
    /// The number of layers with weights: 6n + 2 for n blocks in each of three groups. 20, 32, 44, 56 and 110
    /// are those of the paper.
    #[config(default = 20)]
    pub depth: usize,
    /// The channels of the input.
    #[config(default = 3)]
    pub in_channels: usize,
}

impl CifarResNetConfig {
    /// The network, its weights drawn from `noise`: U(±sqrt(6 / fan in)) for convolutions.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) unless the depth is 6n + 2 with n > 0 and at most 1202, and there
    /// are classes and channels.
    pub fn init(&self, noise: &mut Noise, device: &Device) -> error::Result<CifarResNet> {
        let Self { num_classes, depth, in_channels } = *self;
        let allowed = (8..=1202).contains(&depth) && depth % 6 == 2;
        ensure(allowed, "CifarResNetConfig.depth", depth, "6n + 2 with n > 0, at most 1202")?;
        ensure(num_classes > 0, "CifarResNetConfig.num_classes", num_classes, "a number > 0")?;
        ensure(in_channels > 0, "CifarResNetConfig.in_channels", in_channels, "a number > 0")?;

        let conv1 = conv2d(&convolution([in_channels, 16], 1), noise, device)?;
        let mut channels = 16;
        let mut group = |planes: usize| -> error::Result<Vec<CifarResNetBlock>> {
            (0..(depth - 2) / 6)
                .map(|_| {
                    let block = CifarResNetBlock::init([channels, planes], noise, device)?;
                    channels = planes;
                    Ok(block)
                })
                .collect()
        };
        Ok(CifarResNet {
            conv1,
            norm: batch_norm(16, device)?,
            group1: group(16)?,
            group2: group(32)?,
            group3: group(64)?,
            class_output: linear(&LinearConfig::new(64, num_classes), noise, device)?,
        })
    }
}

fn convolution(channels: [usize; 2], stride: usize) -> Conv2dConfig {
    let gain = std::f64::consts::SQRT_2;
    Conv2dConfig::new(channels, [3, 3])
        .with_stride([stride, stride])
        .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
        .with_bias(false)
        .with_initializer(Initializer::KaimingUniform { gain, fan_out_only: false })
}

/// Two normalised 3×3 convolutions, added to the block's own input. Where the number of channels grows, the
/// input loses every other row and column, and zeros are put on both sides of its channels.
#[derive(Module, Debug)]
pub struct CifarResNetBlock {
    /// The convolution that has the stride.
    pub conv1: Conv2d,
    /// After the first convolution.
    pub norm1: BatchNorm,
    /// The second convolution.
    pub conv2: Conv2d,
    /// After the second convolution.
    pub norm2: BatchNorm,
}

impl CifarResNetBlock {
    fn init(channels: [usize; 2], noise: &mut Noise, device: &Device) -> error::Result<Self> {
        let [inputs, planes] = channels;
        let stride = if inputs == planes { 1 } else { 2 };
        Ok(Self {
            conv1: conv2d(&convolution(channels, stride), noise, device)?,
            norm1: batch_norm(planes, device)?,
            conv2: conv2d(&convolution([planes, planes], 1), noise, device)?,
            norm2: batch_norm(planes, device)?,
        })
    }

    /// # Shapes
    /// `[batch, inputs, height, width]` to `[batch, planes, ⌈height/stride⌉, ⌈width/stride⌉]`.
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let y = activation::relu(self.norm1.forward(convolve(&self.conv1, x.clone())));
        let y = self.norm2.forward(convolve(&self.conv2, y));
        activation::relu(y + self.shortcut(x))
    }

    fn shortcut(&self, x: Tensor<4>) -> Tensor<4> {
        let [planes, inputs, _, _] = self.conv1.weight.dims();
        if planes == inputs {
            return x;
        }
        let x = x.slice(s![.., .., ..;2, ..;2]);
        let [batch, _, height, width] = x.dims();
        let zeros = Tensor::zeros([batch, (planes - inputs) / 2, height, width], &x.device());
        Tensor::cat(vec![zeros.clone(), x, zeros], 1)
    }
}

/// The residual network for CIFAR: a convolution, three groups of blocks with 16, 32 and 64 channels, the mean
/// over all places, and a linear head. It takes images of any size.
///
/// Public weights of this network are easy to find; `docs/your-own-classifier.md` loads some. They want
/// normalised pixels, see [`Normalized`](super::Normalized).
///
/// # Shapes
/// `[batch, in_channels, height, width]` to `[batch, num_classes]`.
///
/// # Panics
/// The forward pass panics on another number of channels, as Burn's convolutions do.
///
/// Source: He et al. 2015, arXiv 1512.03385, section 4.2, with shortcuts of kind A.
#[derive(Module, Debug)]
pub struct CifarResNet {
    /// The first layer.
    pub conv1: Conv2d,
    /// After the first layer.
    pub norm: BatchNorm,
    /// The blocks at full resolution, 16 channels.
    pub group1: Vec<CifarResNetBlock>,
    /// The blocks at half resolution, 32 channels.
    pub group2: Vec<CifarResNetBlock>,
    /// The blocks at a quarter of the resolution, 64 channels.
    pub group3: Vec<CifarResNetBlock>,
    /// The head.
    pub class_output: Linear,
}

impl CifarResNet {
    /// What the head sees: features for distances between sets of images.
    ///
    /// # Shapes
    /// `[batch, in_channels, height, width]` to `[batch, 64]`.
    pub fn features(&self, x: Tensor<4>) -> Tensor<2> {
        let x = activation::relu(self.norm.forward(convolve(&self.conv1, x)));
        let blocks = self.group1.iter().chain(&self.group2).chain(&self.group3);
        mean_over_places(blocks.fold(x, |x, block| block.forward(x)))
    }
}

impl Classifier<4> for CifarResNet {
    fn logits(&self, x: Tensor<4>) -> Tensor<2> {
        self.class_output.forward(self.features(x))
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::checks;

    fn tiny(classes: usize) -> CifarResNetConfig {
        CifarResNetConfig::new(classes).with_depth(8)
    }

    #[test]
    fn parameter_counts_are_those_of_the_paper() {
        // Table 6 gives 0.27, 0.46, 0.66, 0.85 and 1.7 million. Burn counts running statistics too.
        for (depth, parameters) in [(20, 269_722), (32, 464_154), (44, 658_586), (56, 853_018)] {
            let config = CifarResNetConfig::new(10).with_depth(depth);
            let net = config.init(&mut Noise::host(0), &Device::flex()).unwrap();
            let blocks = (depth - 2) / 6;
            let statistics = 2 * (16 + 2 * blocks * (16 + 32 + 64));
            assert_eq!(net.num_params(), parameters + statistics);
        }
    }

    #[test]
    fn any_size_channels_and_classes() {
        let device = Device::flex();
        for (classes, shape) in [(100, [1, 1, 17, 23]), (1, [3, 2, 1, 1]), (10, [2, 3, 32, 32])] {
            let net = tiny(classes).with_in_channels(shape[1]).init(&mut Noise::host(0), &device).unwrap();
            assert_eq!(net.features(Tensor::ones(shape, &device)).dims(), [shape[0], 64]);
            assert_eq!(net.logits(Tensor::ones(shape, &device)).dims(), [shape[0], classes]);
        }
    }

    #[test]
    fn a_shortcut_halves_the_size_and_pads_the_channels_on_both_sides() {
        let device = Device::flex();
        let block = CifarResNetBlock::init([4, 8], &mut Noise::host(0), &device).unwrap();
        let x =
            Tensor::<1>::from_floats([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0].as_slice(), &device);
        let x = x.reshape([1, 1, 3, 3]).expand([1, 4, 3, 3]);
        let found = block.shortcut(x).into_data().try_to_vec::<f32>().unwrap();
        let kept = [1.0, 3.0, 7.0, 9.0];
        let expected = [[0.0; 8].as_slice(), &kept, &kept, &kept, &kept, &[0.0; 8]].concat();
        assert_eq!(found, expected);
    }

    #[test]
    fn wrong_configurations_are_refused_by_name() {
        for (config, field) in [
            (CifarResNetConfig::new(10).with_depth(2), "depth = 2 "),
            (CifarResNetConfig::new(10).with_depth(21), "depth = 21 "),
            (CifarResNetConfig::new(10).with_depth(6_000_002), "depth = 6000002 "),
            (tiny(0), "num_classes = 0 "),
            (tiny(10).with_in_channels(0), "in_channels = 0 "),
        ] {
            let error = config.init(&mut Noise::host(0), &Device::flex()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("CifarResNetConfig.{field}")), "{error}");
        }
    }

    #[test]
    fn one_seed_is_one_network_and_gradients_match_finite_differences() {
        checks::one_seed_is_one_network(|noise, device| tiny(10).init(noise, device).unwrap(), [2, 3, 9, 9]);
        let net = tiny(4).with_in_channels(2).init(&mut Noise::host(1), &Device::flex().autodiff()).unwrap();
        checks::gradient_matches_finite_differences(&net, [2, 2, 7, 6]);
    }
}
