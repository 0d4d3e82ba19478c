//! Two architectures for the same answers: one whose energy can be flat, and one whose cannot.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use jem_core::Result;
use jem_core::energy::Classifier;
use jem_core::inference::PairEnergy;
use jem_core::noise::Noise;
use jem_nn::{Activation, Mlp, MlpConfig};

/// Implicit regression: E(x, y) = ‖A(x) - B(y)‖² / 2. It is flat wherever B is constant.
#[derive(Module, Debug)]
pub struct Implicit {
    of_x: Mlp,
    of_y: Mlp,
}

/// Regression: E(x, y) = (A(x) - y)² / 2. However bad A is, y has one valley.
#[derive(Module, Debug)]
pub struct Regression {
    of_x: Mlp,
}

fn network(outputs: usize, noise: &mut Noise, device: &Device) -> Result<Mlp> {
    MlpConfig::new(1, vec![24], outputs).with_activation(Activation::Silu).init(noise, device)
}

impl Implicit {
    /// Two networks with four outputs each, trainable.
    pub fn init(noise: &mut Noise, device: &Device) -> Result<Self> {
        let tracked = device.clone().autodiff();
        Ok(Self { of_x: network(4, noise, &tracked)?, of_y: network(4, noise, &tracked)? })
    }
}

impl Regression {
    /// A network with one output, trainable.
    pub fn init(noise: &mut Noise, device: &Device) -> Result<Self> {
        Ok(Self { of_x: network(1, noise, &device.clone().autodiff())? })
    }
}

fn half_square(difference: Tensor<2>) -> Tensor<1> {
    difference.square().sum_dim(1).squeeze_dim(1).mul_scalar(0.5)
}

impl PairEnergy<2, 2> for Implicit {
    fn pair_energy(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<1> {
        half_square(self.of_x.logits(x) - self.of_y.logits(y))
    }
}

impl PairEnergy<2, 2> for Regression {
    fn pair_energy(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<1> {
        half_square(self.of_x.logits(x) - y)
    }
}
