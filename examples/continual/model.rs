//! An energy of an image and a digit, which acts by a gain and a bias on each hidden unit.

use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Int, Tensor, activation};
use jem_core::Result;
use jem_core::energy::{Classifier, ConditionalEnergy};
use jem_core::math::per_sample;
use jem_core::noise::{Noise, Stream};
use jem_nn::linear;

use crate::CLASSES;

/// E(x, y) = w · σ(W₂ (h ⊙ (1 + g_y) + b_y)) with h = σ(W₁ x): the label acts as a gain and a bias per unit.
#[derive(Module, Debug)]
pub struct ConditionalMlp {
    first: Linear,
    gain: Param<Tensor<2>>,
    bias: Param<Tensor<2>>,
    second: Linear,
    output: Linear,
}

impl ConditionalMlp {
    /// A network over images of so many pixels.
    pub fn init(inputs: usize, width: usize, noise: &mut Noise, device: &Device) -> Result<Self> {
        let mut table = || {
            let draws = noise.normal([CLASSES, width], Stream::INITIALISATION, device);
            Param::from_tensor(draws.mul_scalar(0.5))
        };
        let (gain, bias) = (table(), table());
        Ok(Self {
            first: linear(&LinearConfig::new(inputs, width), noise, device)?,
            gain,
            bias,
            second: linear(&LinearConfig::new(width, width), noise, device)?,
            output: linear(&LinearConfig::new(width, 1), noise, device)?,
        })
    }
}

impl ConditionalEnergy<4> for ConditionalMlp {
    fn energy_given(&self, x: Tensor<4>, labels: Tensor<1, Int>) -> Tensor<1> {
        let of = |table: &Param<Tensor<2>>| table.val().select(0, labels.clone());
        let hidden = activation::silu(self.first.forward(per_sample(x)));
        let hidden = hidden * (of(&self.gain) + 1.0) + of(&self.bias);
        self.output.forward(activation::silu(self.second.forward(hidden))).squeeze_dim(1)
    }
}

impl Classifier<4> for ConditionalMlp {
    fn logits(&self, x: Tensor<4>) -> Tensor<2> {
        let batch = x.dims()[0];
        let device = x.device().without_autodiff();
        let labels: Tensor<1, Int> = Tensor::arange(0..CLASSES as i64, &device).repeat_dim(0, batch);
        let rows: Tensor<1, Int> = Tensor::arange(0..batch as i64, &device);
        let rows = rows.unsqueeze_dim::<2>(1).expand([batch, CLASSES]).reshape([batch * CLASSES]);
        self.energy_given(x.select(0, rows), labels).neg().reshape([batch, CLASSES])
    }
}
