//! The devices that the suite runs on: one of every backend that was compiled in.

use burn::tensor::Device;

/// Name and device of every backend that was compiled in.
#[allow(clippy::vec_init_then_push)]
pub fn devices() -> Vec<(&'static str, Device)> {
    #[allow(unused_mut)]
    let mut devices = Vec::new();
    #[cfg(feature = "flex")]
    devices.push(("flex", Device::flex()));
    #[cfg(feature = "tch")]
    #[allow(deprecated)]
    devices.push(("tch", Device::libtorch()));
    #[cfg(feature = "wgpu")]
    devices.push(("wgpu", Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)));
    #[cfg(feature = "vulkan")]
    devices.push(("vulkan", Device::vulkan(burn::tensor::DeviceKind::DefaultDevice)));
    #[cfg(feature = "webgpu")]
    devices.push(("webgpu", Device::webgpu(burn::tensor::DeviceKind::DefaultDevice)));
    #[cfg(feature = "metal")]
    devices.push(("metal", Device::metal(burn::tensor::DeviceKind::DefaultDevice)));
    #[cfg(feature = "cuda")]
    devices.push(("cuda", Device::cuda(0)));
    #[cfg(feature = "rocm")]
    devices.push(("rocm", Device::rocm(0)));
    #[cfg(feature = "cpu")]
    devices.push(("cpu", Device::cpu()));
    devices
}
