//! A multilayer perceptron over vectors, and over samples of any other rank by flattening them.

use burn::config::Config;
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};

use super::activation::leaky_relu_gradient;
use super::{Activation, leaky_relu, linear};
use jem_core::energy::{Classifier, logits_and_pullback_by_autodiff};
use jem_core::error;
use jem_core::error::ensure;
use jem_core::math::per_sample;
use jem_core::noise::Noise;

/// Configuration of an [`Mlp`]: the numbers in one sample, the width of each hidden layer (none makes a linear
/// classifier), and the number of classes.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::{EnergyModel, JointEnergy};
/// use jem_nn::MlpConfig;
/// use jem_core::noise::Noise;
///
/// let device = Device::default();
/// // A scalar energy over the plane: one class, E(x) = -f(x).
/// let net = MlpConfig::new(2, vec![16, 16], 1).init(&mut Noise::host(0), &device)?;
/// assert_eq!(JointEnergy::new(net).energy(Tensor::<2>::zeros([5, 2], &device)).dims(), [5]);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Config, Debug, PartialEq)]
pub struct MlpConfig {
    /// The numbers in one sample.
    pub num_inputs: usize,
    /// The width of each hidden layer.
    pub hidden: Vec<usize>,
    /// The number of logits.
    pub num_classes: usize,
    /// The activation.
    #[config(default = "Activation::default()")]
    pub activation: Activation,
}

impl MlpConfig {
    /// The network, its weights drawn from `noise`.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) if a width or number is 0, or if the activation is not valid.
    pub fn init(&self, noise: &mut Noise, device: &Device) -> error::Result<Mlp> {
        ensure(self.num_inputs > 0, "MlpConfig.num_inputs", self.num_inputs, "a number > 0")?;
        let allowed = self.hidden.iter().all(|width| *width > 0);
        ensure(allowed, "MlpConfig.hidden", format!("{:?}", self.hidden), "numbers > 0")?;
        ensure(self.num_classes > 0, "MlpConfig.num_classes", self.num_classes, "a number > 0")?;
        self.activation.check("MlpConfig.activation")?;

        let mut inputs = self.num_inputs;
        let mut layers = Vec::with_capacity(self.hidden.len());
        for width in self.hidden.iter().copied() {
            layers.push(linear(&LinearConfig::new(inputs, width), noise, device)?);
            inputs = width;
        }
        let class_output = linear(&LinearConfig::new(inputs, self.num_classes), noise, device)?;
        Ok(Mlp { layers, class_output, activation: self.activation })
    }
}

/// Linear layers, each hidden one with an activation behind it.
///
/// # Shapes
/// `[batch, ..]` with `num_inputs` numbers in each sample, to `[batch, num_classes]`.
///
/// # Panics
/// The forward pass panics on samples of another size, as Burn's linear layers do.
#[derive(Module, Debug)]
pub struct Mlp {
    /// The hidden layers.
    pub layers: Vec<Linear>,
    /// The head.
    pub class_output: Linear,
    #[module(skip)]
    activation: Activation,
}

impl Mlp {
    /// What the head sees.
    ///
    /// # Shapes
    /// `[batch, ..]` to `[batch, last of hidden]`.
    pub fn features<const D: usize>(&self, x: Tensor<D>) -> Tensor<2> {
        self.layers.iter().fold(per_sample(x), |x, layer| self.activation.forward(layer.forward(x)))
    }
}

impl<const D: usize> Classifier<D> for Mlp {
    fn logits(&self, x: Tensor<D>) -> Tensor<2> {
        self.class_output.forward(self.features(x))
    }

    /// By hand where the activation is a leaky ReLU: c W₃ᵀ ⊙ a'(h₂) W₂ᵀ ⊙ a'(h₁) W₁ᵀ, with h the input of each activation.
    fn logits_and_pullback(
        &self,
        x: Tensor<D>,
        cotangent: &dyn Fn(Tensor<2>) -> Tensor<2>,
    ) -> (Tensor<2>, Tensor<D>) {
        let Activation::LeakyRelu { negative_slope } = self.activation else {
            return logits_and_pullback_by_autodiff(|x| Classifier::<D>::logits(self, x), x, cotangent);
        };
        let shape = x.dims();
        let mut inputs = Vec::with_capacity(self.layers.len());
        let mut y = per_sample(x.without_autodiff());
        for layer in &self.layers {
            let h = affine(layer, y);
            y = leaky_relu(h.clone(), negative_slope);
            inputs.push(h);
        }
        let logits = affine(&self.class_output, y);
        let mut gradient = turned(&self.class_output, cotangent(logits.clone()));
        for (layer, h) in self.layers.iter().zip(inputs).rev() {
            gradient = turned(layer, leaky_relu_gradient(gradient, h, negative_slope));
        }
        (logits, gradient.reshape(shape))
    }
}

/// x W + b, without autodiff.
fn affine(layer: &Linear, x: Tensor<2>) -> Tensor<2> {
    let y = x.matmul(layer.weight.val().without_autodiff());
    match &layer.bias {
        Some(bias) => y + bias.val().without_autodiff().unsqueeze(),
        None => y,
    }
}

/// g Wᵀ, without autodiff.
fn turned(layer: &Linear, gradient: Tensor<2>) -> Tensor<2> {
    gradient.matmul(layer.weight.val().without_autodiff().transpose())
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::checks;
    use jem_core::noise::Stream;

    #[test]
    fn parameter_counts_and_shapes_at_several_ranks() {
        let (mut noise, device) = (Noise::host(0), Device::flex());
        let net = MlpConfig::new(12, vec![7, 5], 100).init(&mut noise, &device).unwrap();
        assert_eq!(net.num_params(), 13 * 7 + 8 * 5 + 6 * 100);
        assert_eq!(net.logits(Tensor::<2>::ones([1, 12], &device)).dims(), [1, 100]);
        let image = net.logits(Tensor::<4>::ones([3, 1, 3, 4], &device));
        assert_eq!(image.dims(), [3, 100]);
        let linear = MlpConfig::new(2, vec![], 1).init(&mut noise, &device).unwrap();
        assert_eq!(linear.num_params(), 3);
        assert_eq!(linear.features(Tensor::<3>::ones([4, 1, 2], &device)).dims(), [4, 2]);
    }

    #[test]
    fn wrong_configurations_are_refused_by_name() {
        let activation = Activation::LeakyRelu { negative_slope: -1.0 };
        for (config, field) in [
            (MlpConfig::new(0, vec![], 1), "num_inputs = 0 "),
            (MlpConfig::new(2, vec![3, 0], 1), "hidden = [3, 0] "),
            (MlpConfig::new(2, vec![3], 0), "num_classes = 0 "),
            (MlpConfig::new(2, vec![3], 1).with_activation(activation), "activation.negative_slope = -1 "),
        ] {
            let error = config.init(&mut Noise::host(0), &Device::flex()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("MlpConfig.{field}")), "{error}");
        }
    }

    #[test]
    fn the_gradient_by_hand_is_that_of_autodiff() {
        let mut noise = Noise::host(8);
        let device = Device::flex().autodiff();
        for (hidden, classes, slope) in [(vec![], 3, 0.2), (vec![33], 1, 0.0), (vec![20, 40, 10], 5, 0.3)] {
            let activation = Activation::LeakyRelu { negative_slope: slope };
            let config = MlpConfig::new(12, hidden, classes).with_activation(activation);
            let net = config.init(&mut noise, &device).unwrap();
            let x: Tensor<4> = noise.normal([7, 3, 2, 2], Stream::DATA, &device);
            let square = |logits: Tensor<2>| logits.square();
            let (logits, gradient) = net.logits_and_pullback(x.clone(), &square);
            let (expected, slow) =
                logits_and_pullback_by_autodiff(|x: Tensor<4>| net.logits(x), x.clone(), &square);
            assert!(!logits.is_autodiff() && !gradient.is_autodiff());
            let gap = |a: Tensor<2>, b: Tensor<2>| {
                let norm = |t: Tensor<2>| t.square().sum().sqrt().into_scalar::<f32>();
                norm(a - b.clone()) / norm(b)
            };
            assert!(gap(logits, expected) < 1e-6);
            assert!(gap(per_sample(gradient), per_sample(slow)) < 1e-5);
        }
    }

    #[test]
    fn one_seed_is_one_network_and_gradients_match_finite_differences() {
        for activation in [Activation::Silu, Activation::Softplus, Activation::Tanh, Activation::default()] {
            let config = MlpConfig::new(6, vec![16, 16], 3).with_activation(activation);
            let init = |noise: &mut Noise, device: &Device| config.init(noise, device).unwrap();
            checks::one_seed_is_one_network(init, [2, 6]);
            let net = init(&mut Noise::host(3), &Device::flex().autodiff());
            checks::gradient_matches_finite_differences(&net, [3, 6]);
        }
    }
}
