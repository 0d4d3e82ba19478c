//! Networks: a wide residual network without batch norm, a small CNN and an MLP with logits, a residual network that
//! gives an energy; spectral normalisation; weights by name.
//!
//! Those with logits are Burn modules and [`Classifier`](jem_core::energy::Classifier)s, so
//! [`JointEnergy`](jem_core::energy::JointEnergy) makes an energy model of each; with one class it is a plain scalar
//! energy, E(x) = -f(x). An [`EnergyResNet`] is an energy of samples and labels, and
//! [`EnergyClassifier`](jem_core::energy::EnergyClassifier) makes a classifier of it. [`SpectralNormConfig`] works on any
//! module. Weights come from [`Noise`](jem_core::noise::Noise), drawn on the host: the same seed gives the same network on
//! every backend.
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

mod activation;
mod cifar_resnet;
mod cnn;
mod energy_resnet;
mod init;
#[cfg(feature = "kernels")]
mod kernels;
mod mlp;
mod normalized;
#[cfg(feature = "pytorch")]
pub mod pytorch;
mod spectral_norm;
mod weights;
mod wide_resnet;

pub use activation::{Activation, convolve, leaky_relu};
pub use cifar_resnet::{CifarResNet, CifarResNetBlock, CifarResNetConfig};
pub use cnn::{Cnn, CnnConfig};
pub use energy_resnet::{ClassModulation, EnergyResNet, EnergyResNetBlock, EnergyResNetConfig, Pooling};
pub use init::{batch_norm, conv2d, linear};
pub use mlp::{Mlp, MlpConfig};
pub use normalized::Normalized;
pub use spectral_norm::{SpectralNorm, SpectralNormConfig};
pub use weights::{WeightLayout, Weights};
#[cfg(feature = "pytorch")]
pub(crate) use weights::{faults, is_batch_counter};
pub use wide_resnet::{Norm, ResidualBlock, WideResNet, WideResNetConfig};

#[cfg(all(test, feature = "flex"))]
mod checks {
    //! What every network of this room is held to.

    use burn::module::Module;
    use burn::tensor::{Device, Tensor};

    use jem_core::energy::{Classifier, EnergyModel, JointEnergy};
    use jem_core::noise::{Noise, Stream};

    pub fn one_seed_is_one_network<const D: usize, C: Classifier<D>>(
        init: impl Fn(&mut Noise, &Device) -> C,
        shape: [usize; D],
    ) {
        let device = Device::flex();
        let x = Noise::host(9).normal(shape, Stream::DATA, &device);
        let logits = |mut noise: Noise| {
            device.seed(noise.seed() ^ 77); // the backend's own state does not matter
            let data = init(&mut noise, &device).logits(x.clone()).into_data();
            data.try_to_vec::<f32>().unwrap()
        };
        assert_eq!(logits(Noise::host(1)), logits(Noise::device(1)));
        assert_ne!(logits(Noise::host(1)), logits(Noise::host(2)));
    }

    /// v·∇E(x) against [E(x+δv) - E(x-δv)] / 2δ along the gradient's own direction, where it is ‖∇E(x)‖.
    pub fn gradient_matches_finite_differences<const D: usize, C: Classifier<D> + Module>(
        net: &C,
        shape: [usize; D],
    ) {
        let model = JointEnergy::new(net.valid());
        let x = Noise::host(8).normal(shape, Stream::DATA, &Device::flex());
        let (_, grad) = model.energy_and_grad(x.clone());
        let norm = grad.clone().square().sum().sqrt().into_scalar::<f32>();
        let delta = 1e-2;
        let step = grad.mul_scalar(delta / norm);
        let total = |x: Tensor<D>| model.energy(x).sum().into_scalar::<f32>();
        let slope = (total(x.clone() + step.clone()) - total(x - step)) / (2.0 * delta);
        assert!(norm > 1e-3 && (slope / norm - 1.0).abs() < 2e-2, "{slope} != {norm}");
    }
}
