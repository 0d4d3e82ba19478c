//! The two models: an energy of windows, and a Gaussian whose mean and variance a network gives.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use jem_core::Result;
use jem_core::energy::{Clamp, Classifier, EnergyModel};
use jem_core::noise::Noise;
use jem_nn::{Mlp, MlpConfig};

/// E(x_t, x_{t+1}), a network of both states: p(x_{t+1} | x_t) ∝ exp(-E(x_t, x_{t+1})).
#[derive(Module, Debug)]
pub struct WindowEnergy {
    net: Mlp,
}

impl WindowEnergy {
    pub fn new(width: usize, noise: &mut Noise, device: &Device) -> Result<Self> {
        Ok(Self { net: MlpConfig::new(4, vec![width; 2], 1).init(noise, device)? })
    }

    /// E of present and next states, both `[batch, 2]`.
    pub fn of(&self, past: Tensor<2>, next: Tensor<2>) -> Tensor<1> {
        self.energy(Tensor::cat(vec![past, next], 1))
    }
}

/// Windows are `[batch, 4]`, the present state before the next.
impl EnergyModel<2> for WindowEnergy {
    fn energy(&self, window: Tensor<2>) -> Tensor<1> {
        self.net.logits(window).squeeze_dim::<1>(1).neg()
    }
}

/// Windows whose present state is clamped, and where a search for the next state starts: at the present one.
pub fn clamped(past: Tensor<2>) -> Result<(Tensor<2>, Clamp<2>)> {
    let window = Tensor::cat(vec![past.clone(), past], 1);
    let mask = Tensor::<2>::from_floats([[1.0, 1.0, 0.0, 0.0]], &window.device());
    let mask = mask.repeat_dim(0, window.dims()[0]).bool();
    Ok((window.clone(), Clamp::new(mask, window)?))
}

/// p(x_{t+1} | x_t) = N(m(x_t), diag exp v(x_t)).
#[derive(Module, Debug)]
pub struct FeedForward {
    net: Mlp,
}

impl FeedForward {
    pub fn new(width: usize, noise: &mut Noise, device: &Device) -> Result<Self> {
        Ok(Self { net: MlpConfig::new(2, vec![width; 2], 4).init(noise, device)? })
    }

    /// Mean and log-variance, both `[batch, 2]`.
    pub fn predict(&self, past: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let outputs = self.net.logits(past);
        (outputs.clone().narrow(1, 0, 2), outputs.narrow(1, 2, 2))
    }

    /// log p(x_{t+1} | x_t) in nats, `[batch]`.
    pub fn log_density(&self, past: Tensor<2>, next: Tensor<2>) -> Tensor<1> {
        let (mean, log_variance) = self.predict(past);
        let squares = (next - mean).square() * log_variance.clone().neg().exp();
        let sum = (squares + log_variance).sum_dim(1).squeeze_dim::<1>(1);
        sum.mul_scalar(-0.5).sub_scalar(std::f64::consts::TAU.ln())
    }
}
