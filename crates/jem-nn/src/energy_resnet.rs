//! The residual network of IGEBM: no logits but an energy, E(x) or, with a gain and a bias per class, E(x, y).

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{Initializer, Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::module::avg_pool2d;
use burn::tensor::ops::AvgPoolOptions;
use burn::tensor::{Device, Int, Tensor};
use serde::{Deserialize, Serialize};

use super::{Activation, SpectralNormConfig, conv2d, convolve, linear};
use jem_core::energy::{ConditionalEnergy, EnergyClassifier, EnergyModel, JointEnergy};
use jem_core::error;
use jem_core::error::ensure;
use jem_core::noise::Noise;

/// How the features of all places become those of the image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Pooling {
    /// Their sum, as in IGEBM: the energies of parts add up.
    #[default]
    Sum,
    /// Their mean: the scale of the energy does not depend on the size of the image.
    Mean,
}

/// Configuration of an [`EnergyResNet`].
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::{ConditionalEnergy, EnergyModel};
/// use jem_nn::{EnergyResNet, EnergyResNetConfig};
/// use jem_core::noise::Noise;
///
/// let (device, mut noise) = (Device::default(), Noise::host(0));
/// let config = EnergyResNetConfig::new(vec![8, 16]).with_in_channels(1).with_num_classes(10);
/// let net = config.init(&mut noise, &device)?;
/// let net = EnergyResNet::spectral_norm().apply(net, &mut noise)?; // as IGEBM has it
/// let x = Tensor::zeros([2, 1, 8, 8], &device);
/// assert_eq!(net.energy_given(x.clone(), Tensor::from_ints([3, 7], &device)).dims(), [2]);
/// assert_eq!(net.energy(x).dims(), [2]);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Config, Debug, PartialEq)]
pub struct EnergyResNetConfig {
    /// The channels of each stage; each halves the height and the width.
    pub channels: Vec<usize>,
    /// The residual blocks of a stage; the first of them halves height and width.
    #[config(default = 2)]
    pub blocks: usize,
    /// The channels of the input.
    #[config(default = 3)]
    pub in_channels: usize,
    /// The number of classes; 1 for an energy without labels.
    #[config(default = 1)]
    pub num_classes: usize,
    /// How the features of all places become those of the image.
    #[config(default = "Pooling::Sum")]
    pub pooling: Pooling,
    /// The activation.
    #[config(default = "Activation::default()")]
    pub activation: Activation,
}

impl EnergyResNetConfig {
    /// The network of the paper for CIFAR-10: stages of 128, 256 and 256 channels with two blocks each, 10 classes
    /// for the conditional model and 1 for the unconditional one. The larger networks of the paper have three
    /// blocks a stage.
    pub fn cifar10(num_classes: usize) -> Self {
        Self::new(vec![128, 256, 256]).with_num_classes(num_classes)
    }

    /// The network, its weights drawn from `noise`.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) if there is no stage, if a number of channels, blocks or classes is
    /// 0, or if the activation is not valid.
    pub fn init(&self, noise: &mut Noise, device: &Device) -> error::Result<EnergyResNet> {
        let allowed = !self.channels.is_empty() && self.channels.iter().all(|channels| *channels > 0);
        let found = format!("{:?}", self.channels);
        ensure(allowed, "EnergyResNetConfig.channels", found, "one or more numbers > 0")?;
        ensure(self.blocks > 0, "EnergyResNetConfig.blocks", self.blocks, "a number > 0")?;
        ensure(self.in_channels > 0, "EnergyResNetConfig.in_channels", self.in_channels, "a number > 0")?;
        ensure(self.num_classes > 0, "EnergyResNetConfig.num_classes", self.num_classes, "a number > 0")?;
        self.activation.check("EnergyResNetConfig.activation")?;

        let mut inputs = self.channels[0];
        let stem = conv2d(&three_by_three([self.in_channels, inputs]), noise, device)?;
        let mut blocks = Vec::with_capacity(self.channels.len() * self.blocks);
        for planes in self.channels.iter().copied() {
            for block in 0..self.blocks {
                blocks.push(self.block([inputs, planes], block == 0, noise, device)?);
                inputs = planes;
            }
        }
        Ok(EnergyResNet {
            stem,
            blocks,
            energy_output: linear(&LinearConfig::new(inputs, 1), noise, device)?,
            activation: self.activation,
            pooling: self.pooling,
            num_classes: self.num_classes,
        })
    }

    fn block(
        &self,
        channels: [usize; 2],
        downsamples: bool,
        noise: &mut Noise,
        device: &Device,
    ) -> error::Result<EnergyResNetBlock> {
        let [inputs, planes] = channels;
        let zeros = three_by_three([planes, planes]).with_initializer(Initializer::Zeros);
        Ok(EnergyResNetBlock {
            conv1: conv2d(&three_by_three(channels), noise, device)?,
            conv2: conv2d(&zeros, noise, device)?,
            shortcut: (inputs != planes)
                .then(|| conv2d(&three_by_three(channels), noise, device))
                .transpose()?,
            classes: (self.num_classes > 1).then(|| ClassModulation::new(self.num_classes, planes, device)),
            downsamples,
            activation: self.activation,
        })
    }
}

fn three_by_three(channels: [usize; 2]) -> Conv2dConfig {
    Conv2dConfig::new(channels, [3, 3]).with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
}

/// A gain and a bias per class and channel, which is all that depends on the label. They start at 1 and at 0.
#[derive(Module, Debug)]
pub struct ClassModulation {
    /// The factors on the output of a block's second convolution, `[classes, channels]`.
    pub gain: Param<Tensor<2>>,
    /// What is added to the output of a block's first convolution, `[classes, channels]`.
    pub bias: Param<Tensor<2>>,
}

impl ClassModulation {
    fn new(classes: usize, channels: usize, device: &Device) -> Self {
        Self {
            gain: Param::from_tensor(Tensor::ones([classes, channels], device)),
            bias: Param::from_tensor(Tensor::zeros([classes, channels], device)),
        }
    }
}

/// The row of each label, shaped to combine with images: `[classes, channels]` to `[batch, channels, 1, 1]`.
fn rows(table: &Param<Tensor<2>>, labels: &Tensor<1, Int>) -> Tensor<4> {
    let rows = table.val().select(0, labels.clone());
    let [batch, channels] = rows.dims();
    rows.reshape([batch, channels, 1, 1])
}

/// Two 3×3 convolutions with an activation between, added to the block's own input, then average pooling if the
/// block halves height and width, and an activation.
///
/// ```text
/// h = a(conv1(x) + bias[y])        a(pool(gain[y] conv2(h) + shortcut(x)))
/// ```
///
/// The second convolution starts at zero, so that a new block passes its input on.
#[derive(Module, Debug)]
pub struct EnergyResNetBlock {
    /// The convolution that changes the number of channels.
    pub conv1: Conv2d,
    /// The convolution that starts at zero.
    pub conv2: Conv2d,
    /// A 3×3 convolution of the input where the block changes the number of channels.
    pub shortcut: Option<Conv2d>,
    /// What depends on the label, if there is more than one.
    pub classes: Option<ClassModulation>,
    #[module(skip)]
    downsamples: bool,
    #[module(skip)]
    activation: Activation,
}

impl EnergyResNetBlock {
    /// # Shapes
    /// `[batch, inputs, height, width]` and `[batch]` to `[batch, planes, height, width]`, or half the height and
    /// the width, rounded up.
    fn forward(&self, x: Tensor<4>, labels: &Tensor<1, Int>) -> Tensor<4> {
        let mut residual = convolve(&self.conv1, x.clone());
        if let Some(classes) = &self.classes {
            residual = residual + rows(&classes.bias, labels);
        }
        residual = self.activation.then_conv(&self.conv2, residual);
        if let Some(classes) = &self.classes {
            residual = residual * rows(&classes.gain, labels);
        }
        let shortcut = match &self.shortcut {
            Some(shortcut) => convolve(shortcut, x),
            None => x,
        };
        let mut x = residual + shortcut;
        if self.downsamples {
            // A last row or column without a partner is a mean of its own.
            let halves = AvgPoolOptions::new([2, 2]).with_count_include_pad(false).with_ceil_mode(true);
            x = avg_pool2d(x, halves);
        }
        self.activation.forward(x)
    }
}

/// A residual network that gives an energy: a convolution, stages of residual blocks without normalisation, the
/// sum over all places, and a linear layer to one number. It takes images of any size.
///
/// With one class it is E(x), and labels are ignored. With more it is E(x, y), by a gain and a bias per class and
/// channel in each block; as an [`EnergyModel`] it then is
///
/// ```text
/// E(x) = -log Σ_y exp(-E(x, y))
/// ```
///
/// which is [`JointEnergy`] of [`EnergyClassifier`]: one pass with a batch of as many copies as there are classes.
/// For p(y|x), or to train it as a classifier, put it into an [`EnergyClassifier`].
///
/// IGEBM divides every weight by its largest singular value, see [`spectral_norm`](Self::spectral_norm).
///
/// # Shapes
/// `[batch, in_channels, height, width]` and labels `[batch]` to `[batch]`.
///
/// # Panics
/// The forward pass panics on another number of channels, and where Burn's backends do so, on a label that is not a
/// class.
///
/// Source: Du and Mordatch 2019, arXiv 1903.08689. Its code has no biases but those per class, also in the
/// unconditional model, and one more activation before the sum.
#[derive(Module, Debug)]
pub struct EnergyResNet {
    /// The first layer.
    pub stem: Conv2d,
    /// The blocks of all stages.
    pub blocks: Vec<EnergyResNetBlock>,
    /// The head.
    pub energy_output: Linear,
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    pooling: Pooling,
    #[module(skip)]
    num_classes: usize,
}

impl EnergyResNet {
    /// The number of classes; 1 for an energy without labels.
    pub fn num_classes(&self) -> usize {
        self.num_classes
    }

    /// The spectral normalisation of IGEBM: of every weight, in the form for small weights where one starts at zero.
    /// The code of the paper leaves the head out; `with_excluded(vec!["energy_output.weight".into()])` does the same.
    pub fn spectral_norm() -> SpectralNormConfig {
        SpectralNormConfig::new().with_lower_bounded(vec!["conv2.weight".to_owned()])
    }

    /// What the head sees.
    ///
    /// # Shapes
    /// `[batch, in_channels, height, width]` and `[batch]` to `[batch, last of channels]`.
    pub fn features(&self, x: Tensor<4>, labels: Tensor<1, Int>) -> Tensor<2> {
        let x = self.activation.forward(convolve(&self.stem, x));
        let x = self.blocks.iter().fold(x, |x, block| block.forward(x, &labels));
        let [batch, channels, height, width] = x.dims();
        let places = x.reshape([batch, channels, height * width]);
        match self.pooling {
            Pooling::Sum => places.sum_dim(2),
            Pooling::Mean => places.mean_dim(2),
        }
        .squeeze_dim(2)
    }
}

impl ConditionalEnergy<4> for EnergyResNet {
    fn energy_given(&self, x: Tensor<4>, labels: Tensor<1, Int>) -> Tensor<1> {
        self.energy_output.forward(self.features(x, labels)).squeeze_dim(1)
    }
}

impl EnergyModel<4> for EnergyResNet {
    fn energy(&self, x: Tensor<4>) -> Tensor<1> {
        match EnergyClassifier::new(self, self.num_classes) {
            Ok(classifier) if self.num_classes > 1 => JointEnergy::new(classifier).energy(x),
            _ => {
                let labels = Tensor::zeros([x.dims()[0]], &x.device().without_autodiff());
                self.energy_given(x, labels)
            }
        }
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::checks;
    use jem_core::energy::Classifier;
    use jem_core::noise::Stream;

    fn tiny(classes: usize) -> EnergyResNetConfig {
        EnergyResNetConfig::new(vec![3, 5]).with_in_channels(2).with_num_classes(classes)
    }

    /// Every parameter moved, as after training: those at zero hide what is behind them.
    fn moved<M: Module>(module: M, noise: &mut Noise) -> M {
        struct Move<'a>(&'a mut Noise);
        impl burn::module::ModuleMapper for Move<'_> {
            fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
                let noise = self.0.normal(param.dims(), Stream::DATA, &Device::flex()).mul_scalar(0.2);
                param.map(|value| {
                    let moved = value.clone().without_autodiff() + noise;
                    if value.is_autodiff() { moved.autodiff().require_grad() } else { moved }
                })
            }
        }
        module.map(&mut Move(noise))
    }

    fn trained(classes: usize, device: &Device) -> EnergyResNet {
        let mut noise = Noise::host(4);
        moved(tiny(classes).init(&mut noise, device).unwrap(), &mut noise)
    }

    fn images(shape: [usize; 4]) -> Tensor<4> {
        Noise::host(8).normal(shape, Stream::DATA, &Device::flex())
    }

    fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter().collect()
    }

    #[test]
    fn parameter_counts_are_those_of_the_architecture() {
        // By hand: every convolution has 9 weights per pair of channels, and a bias; a stage that changes the
        // number of channels has a shortcut; a block has a gain and a bias per class and output channel.
        let conv = |inputs: usize, outputs: usize| (9 * inputs + 1) * outputs;
        let stages = conv(3, 128)
            + 4 * conv(128, 128)
            + (2 * conv(128, 256) + 3 * conv(256, 256))
            + 4 * conv(256, 256)
            + 257;
        let count = |classes: usize| {
            let config = EnergyResNetConfig::cifar10(classes);
            config.init(&mut Noise::host(0), &Device::flex()).unwrap().num_params()
        };
        assert_eq!(count(1), stages);
        assert_eq!(count(10), stages + 2 * 10 * (2 * 128 + 4 * 256));
    }

    #[test]
    fn any_size_channels_and_classes() {
        let device = Device::flex();
        for (classes, shape) in [(100, [1, 1, 17, 23]), (1, [3, 2, 1, 1]), (10, [2, 3, 32, 32])] {
            for pooling in [Pooling::Sum, Pooling::Mean] {
                let config =
                    EnergyResNetConfig::new(vec![4, 6]).with_pooling(pooling).with_num_classes(classes);
                let net = config.with_in_channels(shape[1]).init(&mut Noise::host(0), &device).unwrap();
                let labels = Tensor::full([shape[0]], classes as i64 - 1, &device);
                let x = Tensor::ones(shape, &device);
                assert_eq!(net.features(x.clone(), labels.clone()).dims(), [shape[0], 6]);
                assert_eq!(net.energy_given(x.clone(), labels).dims(), [shape[0]]);
                assert_eq!(net.energy(x).dims(), [shape[0]]);
            }
        }
    }

    #[test]
    fn the_forward_pass_is_the_formula() {
        // Again by Burn's own operations, on sizes that pooling divides.
        use burn::tensor::activation::leaky_relu;
        let net = trained(3, &Device::flex());
        let x = images([2, 2, 8, 4]);
        let labels = Tensor::<1, Int>::from_ints([2, 1], &Device::flex());
        let act = |x: Tensor<4>| leaky_relu(x, 0.2);
        let per_label = |table: &Param<Tensor<2>>| {
            Tensor::cat(vec![table.val().narrow(0, 2, 1), table.val().narrow(0, 1, 1)], 0)
                .reshape([2, -1, 1, 1])
        };
        let mut y = act(net.stem.forward(x.clone()));
        for (index, block) in net.blocks.iter().enumerate() {
            let classes = block.classes.as_ref().unwrap();
            let h = act(block.conv1.forward(y.clone()) + per_label(&classes.bias));
            let shortcut = block.shortcut.as_ref().map_or(y.clone(), |conv| conv.forward(y));
            y = block.conv2.forward(h) * per_label(&classes.gain) + shortcut;
            if index % 2 == 0 {
                let [batch, channels, height, width] = y.dims();
                let quarters = y.reshape([batch, channels, height / 2, 2, width / 2, 2]);
                y = quarters.mean_dim(5).mean_dim(3).reshape([batch, channels, height / 2, width / 2]);
            }
            y = act(y);
        }
        let features = y.sum_dim(3).sum_dim(2).reshape([2, 5]);
        let expected = net.energy_output.forward(features);
        for (a, b) in values(net.energy_given(x, labels)).iter().zip(values(expected)) {
            assert!((a - b).abs() < 1e-4 * b.abs().max(1.0), "{a} != {b}");
        }
    }

    #[test]
    fn a_new_network_does_not_know_the_label_and_a_trained_one_does() {
        let spread = |net: EnergyResNet| {
            let logits = EnergyClassifier::new(net, 3).unwrap().logits(images([4, 2, 5, 6]));
            (logits.clone().max_dim(1) - logits.min_dim(1)).min().into_scalar::<f32>()
        };
        let device = Device::flex();
        assert_eq!(spread(tiny(3).init(&mut Noise::host(4), &device).unwrap()), 0.0);
        assert!(spread(trained(3, &device)) > 1e-3);
    }

    #[test]
    fn the_marginal_sums_over_the_classes_and_with_one_it_is_the_energy() {
        let device = Device::flex();
        let x = images([3, 2, 6, 5]);
        let given = |net: &EnergyResNet, label: i64| {
            values(net.energy_given(x.clone(), Tensor::full([3], label, &device)))
        };
        let net = trained(4, &device);
        let by_class: Vec<_> = (0..4).map(|label| given(&net, label)).collect();
        for (sample, found) in values(net.energy(x.clone())).into_iter().enumerate() {
            let sum: f64 = by_class.iter().map(|energies| f64::from(-energies[sample]).exp()).sum();
            assert!((f64::from(found) + sum.ln()).abs() < 1e-4, "{found} != {}", -sum.ln());
        }
        let net = trained(1, &device);
        assert_eq!(values(net.energy(x.clone())), given(&net, 0));
    }

    #[test]
    fn one_seed_is_one_network_and_gradients_match_finite_differences() {
        for classes in [1, 3] {
            let init = |noise: &mut Noise, device: &Device| {
                let net = moved(tiny(classes).init(noise, device).unwrap(), &mut Noise::host(12));
                EnergyClassifier::new(net, classes).unwrap()
            };
            checks::one_seed_is_one_network(init, [2, 2, 5, 8]);
            let smooth = tiny(classes).with_activation(Activation::Silu);
            let mut noise = Noise::host(3);
            let net = moved(smooth.init(&mut noise, &Device::flex().autodiff()).unwrap(), &mut noise);
            let net = EnergyClassifier::new(net, classes).unwrap();
            checks::gradient_matches_finite_differences(&net, [3, 2, 5, 8]);
        }
    }

    #[test]
    fn every_parameter_of_a_trained_network_has_a_gradient() {
        let net = trained(3, &Device::flex().autodiff());
        let labels = Tensor::from_ints([0, 1, 2, 2], &Device::flex());
        let loss = net.energy_given(images([4, 2, 5, 6]).autodiff(), labels).sum();
        let gradients = burn::optim::GradientsParams::from_grads(loss.backward(), &net);
        struct All<'a>(&'a burn::optim::GradientsParams, usize);
        impl burn::module::ModuleVisitor for All<'_> {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                let gradient = self.0.get::<D>(param.id).expect("a gradient");
                assert!(gradient.abs().max().into_scalar::<f32>() > 0.0);
                self.1 += 1;
            }
        }
        let mut all = All(&gradients, 0);
        net.visit(&mut all);
        assert_eq!(all.1, 2 + 4 * (4 + 2) + 2 + 2);
    }

    #[test]
    fn a_new_network_with_spectral_norm_passes_its_input_on_and_all_else_has_norm_one() {
        let device = Device::flex().autodiff();
        let net = tiny(3).init(&mut Noise::host(4), &device).unwrap();
        let net = EnergyResNet::spectral_norm().with_warm_up(60).apply(net, &mut Noise::host(4)).unwrap();
        let fixed = net.valid().materialize();
        let norm = |weight: Tensor<4>| {
            let [outputs, rest] = [weight.dims()[0], weight.shape().num_elements() / weight.dims()[0]];
            nalgebra::DMatrix::from_row_iterator(outputs, rest, weight.into_data().iter::<f64>())
                .singular_values()
                .max()
        };
        let shortcuts = fixed.blocks.iter().filter_map(|block| block.shortcut.as_ref());
        for conv in fixed.blocks.iter().map(|block| &block.conv1).chain([&fixed.stem]).chain(shortcuts) {
            assert!((norm(conv.weight.val()) - 1.0).abs() < 0.01);
        }
        assert!(fixed.blocks.iter().all(|block| norm(block.conv2.weight.val()) == 0.0));
        assert!((fixed.energy_output.weight.val().square().sum().into_scalar::<f32>() - 1.0).abs() < 1e-4);
        // By class, with a gradient for all but the gains behind convolutions of zero.
        let labels = Tensor::from_ints([0, 1, 2, 2], &Device::flex());
        let loss = net.energy_given(images([4, 2, 5, 6]).autodiff(), labels).sum();
        let gradients = loss.backward();
        let conv2 = net.blocks[1].conv2.weight.base().grad(&gradients).unwrap();
        assert!(conv2.abs().max().into_scalar::<f32>() > 0.0);
        let gain = &net.blocks[1].classes.as_ref().unwrap().gain;
        assert_eq!(gain.val().grad(&gradients).unwrap().abs().max().into_scalar::<f32>(), 0.0);
    }

    #[test]
    fn wrong_configurations_are_refused_by_name() {
        let activation = Activation::LeakyRelu { negative_slope: 2.0 };
        for (config, field) in [
            (EnergyResNetConfig::new(vec![]), "channels = [] "),
            (EnergyResNetConfig::new(vec![4, 0]), "channels = [4, 0] "),
            (tiny(1).with_blocks(0), "blocks = 0 "),
            (tiny(0), "num_classes = 0 "),
            (tiny(1).with_in_channels(0), "in_channels = 0 "),
            (tiny(1).with_activation(activation), "activation.negative_slope = 2 "),
        ] {
            let error = config.init(&mut Noise::host(0), &Device::flex()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("EnergyResNetConfig.{field}")), "{error}");
        }
        let config = tiny(7).with_pooling(Pooling::Mean);
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<EnergyResNetConfig>(&json).unwrap(), config);
    }
}
