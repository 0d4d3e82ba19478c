//! The networks to choose from, and the device to put them on.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use jem_core::energy::Classifier;
use jem_core::error::{Error, Result};
use jem_core::noise::Noise;
use jem_nn::{Cnn, CnnConfig, Norm, WideResNet, WideResNetConfig};

use crate::config::{Architecture, Recipe};

/// The network of a run.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // one of them, for the whole run
pub enum Network {
    /// The small CNN.
    Cnn(Cnn),
    /// The wide residual network.
    Wrn(WideResNet),
}

impl Classifier<4> for Network {
    fn logits(&self, x: Tensor<4>) -> Tensor<2> {
        match self {
            Self::Cnn(network) => network.logits(x),
            Self::Wrn(network) => network.logits(x),
        }
    }
}

impl Network {
    /// The network that the recipe asks for, trainable.
    pub fn new(
        recipe: &Recipe,
        classes: usize,
        channels: usize,
        noise: &mut Noise,
        device: &Device,
    ) -> Result<Self> {
        let device = device.clone().autodiff();
        Ok(match recipe.network {
            Architecture::Cnn => {
                let config = CnnConfig::new(recipe.cnn_channels()?, classes).with_in_channels(channels);
                Self::Cnn(config.init(noise, &device)?)
            }
            Architecture::Wrn => {
                let norm = if recipe.batch_norm { Norm::Batch } else { Norm::None };
                let config = WideResNetConfig::new(recipe.depth, recipe.width, classes);
                Self::Wrn(config.with_in_channels(channels).with_norm(norm).init(noise, &device)?)
            }
        })
    }
}

/// The device called `name`, or Burn's default.
pub fn device(name: Option<&str>) -> Result<Device> {
    let Some(name) = name else { return Ok(Device::default()) };
    match name {
        #[cfg(feature = "flex")]
        "flex" => Ok(Device::flex()),
        #[cfg(feature = "tch")]
        "tch" => Ok(Device::libtorch()),
        #[cfg(feature = "wgpu")]
        "wgpu" => Ok(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(feature = "vulkan")]
        "vulkan" => Ok(Device::vulkan(burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(feature = "metal")]
        "metal" => Ok(Device::metal(burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(feature = "webgpu")]
        "webgpu" => Ok(Device::webgpu(burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(feature = "cuda")]
        "cuda" => Ok(Device::cuda(0usize)),
        #[cfg(feature = "rocm")]
        "rocm" => Ok(Device::rocm(0usize)),
        #[cfg(feature = "cpu")]
        "cpu" => Ok(Device::cpu()),
        _ => Err(Error::config("--device", name, "a backend whose feature is compiled in")),
    }
}
