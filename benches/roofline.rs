//! What the machine could do and what the layers of the networks reach: `cargo bench --bench roofline`.
//!
//! It prints tables in Markdown for docs/performance.md. The ceilings are measured in the same run: a large matrix
//! product for arithmetic, a copy that no cache holds for memory. A layer is a leaky ReLU and a convolution; a chain
//! step needs its forward pass and its gradient in the image, and only training the one in the weight.

use std::time::Instant;

use burn::module::Module;
use burn::nn::PaddingConfig2d;
use burn::nn::conv::Conv2dConfig;
use burn::tensor::Device;
use jem_core::noise::{Noise, Stream};
use jem_nn::{Activation, conv2d};

/// Channels in and out, size of the square image, stride, and how often the network has it.
type Layer = (usize, usize, usize, usize, usize);

const NETWORKS: [(&str, usize, &[Layer]); 3] = [
    ("CNN 3-64-128-256, batch 64", 64, &[(3, 64, 32, 1, 1), (64, 128, 32, 2, 1), (128, 256, 16, 2, 1)]),
    (
        "WideResNet-10-1, batch 32",
        32,
        &[
            (3, 16, 32, 1, 1),
            (16, 16, 32, 1, 2),
            (16, 32, 32, 1, 1),
            (32, 32, 32, 2, 1),
            (32, 64, 16, 1, 1),
            (64, 64, 16, 2, 1),
        ],
    ),
    (
        "a group of WideResNet-28-10, batch 4",
        4,
        &[(160, 160, 32, 1, 1), (320, 320, 16, 1, 1), (640, 640, 8, 1, 1)],
    ),
];

/// The median of several runs, in seconds.
fn seconds(device: &Device, mut run: impl FnMut()) -> f64 {
    let mut all: Vec<f64> = (0..7)
        .map(|_| {
            let start = Instant::now();
            run();
            device.sync().expect("a device that answers");
            start.elapsed().as_secs_f64()
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn main() -> jem_core::Result<()> {
    let device = Device::default();
    let mut noise = Noise::host(0);

    let n = 1024;
    let matrix = noise.normal([n, n], Stream::DATA, &device);
    let time = seconds(&device, || drop(matrix.clone().matmul(matrix.clone())));
    let arithmetic = 2.0 * (n as f64).powi(3) / time / 1e9;
    let large = noise.normal([64, 1024, 1024], Stream::DATA, &device);
    // Reads and writes 256 MiB.
    let time = seconds(&device, || drop(large.clone() + 1.0));
    let memory = 2.0 * 4.0 * large.shape().num_elements() as f64 / time / 1e9;
    println!(
        "Ceilings: {arithmetic:.0} GFLOP/s in a product of 1024x1024 matrices, {memory:.1} GB/s in a pass over 256 MiB.\n"
    );
    println!(
        "| layer | times | GFLOP | MiB | forward, ms | share of the ceiling | gradient in the image, ms | share | in the weight, ms | share |"
    );
    println!("|{}", " --- |".repeat(10));
    for (network, batch, layers) in NETWORKS {
        let (mut work, mut spent) = (0.0, 0.0);
        for (inputs, outputs, size, stride, times) in layers.iter().copied() {
            let config = Conv2dConfig::new([inputs, outputs], [3, 3])
                .with_stride([stride, stride])
                .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1));
            let trainable = conv2d(&config, &mut noise, &device.clone().autodiff())?;
            let conv = trainable.valid();
            let x = noise.normal([batch, inputs, size, size], Stream::DATA, &device);
            let activation = Activation::default();
            let forward = seconds(&device, || drop(activation.then_conv(&conv, x.clone())));
            let both = seconds(&device, || {
                let x = x.clone().autodiff().require_grad();
                let y = activation.then_conv(&conv, x.clone());
                drop(x.grad(&y.sum().backward()));
            });
            let trained = seconds(&device, || {
                let y = activation.then_conv(&trainable, x.clone().autodiff());
                drop(trainable.weight.val().grad(&y.sum().backward()));
            });
            let places = batch * size.div_ceil(stride).pow(2);
            let flop = 2.0 * (places * outputs * inputs * 9) as f64 / 1e9;
            let bytes = 4.0 * (batch * inputs * size * size + places * outputs + 9 * inputs * outputs) as f64;
            let [backward, in_weight] = [both, trained].map(|time| (time - forward).max(0.0));
            let share = |seconds: f64| 100.0 * flop / seconds / arithmetic;
            println!(
                "| {inputs}→{outputs}, {size}x{size}, stride {stride} | {times} | {flop:.2} | {:.1} | {:.1} | {:.0} % | {:.1} | {:.0} % | {:.1} | {:.0} % |",
                bytes / f64::from(1 << 20),
                1e3 * forward,
                share(forward),
                1e3 * backward,
                share(backward),
                1e3 * in_weight,
                share(in_weight),
            );
            work += times as f64 * 2.0 * flop;
            spent += times as f64 * both;
        }
        let reached = 100.0 * work / spent / arithmetic;
        println!("| **{network}** | | {work:.2} | | | | {:.1} in all | {reached:.0} % | | |", 1e3 * spent);
    }
    Ok(())
}
