//! Energy-based models on [Burn](https://burn.dev): make a classifier a joint energy model, train it, sample it.
//!
//! The logits f(x) of any classifier give every input and label an energy, and with it a density:
//!
//! ```text
//! E(x, y) = -f(x)[y]      E(x) = -log Σ_y exp f(x)[y]      p(x) ∝ exp(-E(x))      p(y|x) = softmax f(x)
//! ```
//!
//! Low energy means likely. p(y|x) is the classifier that you had; p(x) is new, and known up to a constant
//! factor. Plain cross-entropy leaves that part of the network free: adding c(x) to all logits does not change
//! p(y|x), but moves E(x) by -c(x). Training here fixes it by maximum likelihood. To the cross-entropy it adds
//! mean E(data) - mean E(samples), where the samples come from Langevin chains on the model itself. The chains
//! live in a replay buffer, so that each iteration adds only a few steps to them.
//!
//! # A complete program
//!
//! A Burn module, one trait of one method, and a run on two moons:
//!
//! ```
//! use burn::module::Module;
//! use burn::nn::{Linear, LinearConfig};
//! use burn::optim::AdamConfig;
//! use burn::tensor::{Device, Tensor, activation};
//! use jem_core::data::{LoaderConfig, Toy, VectorLoader};
//! use jem_core::energy::{Classifier, EnergyModel, JointEnergy};
//! use jem_nn::linear;
//! use jem_core::noise::{Noise, Stream};
//! use jem_core::objectives::JemConfig;
//! use jem_core::samplers::{ImproperSgldConfig, ReplayConfig, UniformStart};
//! use jem_core::train::{Outcome, Trainer, TrainerConfig, validate};
//!
//! #[derive(Module, Debug)]
//! struct Net {
//!     hidden: Linear,
//!     output: Linear,
//! }
//!
//! impl Classifier<2> for Net { // 2 is the rank of a batch: [batch, features]
//!     fn logits(&self, x: Tensor<2>) -> Tensor<2> {
//!         self.output.forward(activation::silu(self.hidden.forward(x)))
//!     }
//! }
//!
//! fn main() -> jem_core::Result<()> {
//!     let device = Device::default();
//!     let trainable = device.clone().autodiff();
//!     let mut noise = Noise::host(1); // the only source of randomness
//!     // `linear` draws the weights from `noise`; LinearConfig::init would draw them from the backend.
//!     let hidden = linear(&LinearConfig::new(2, 64), &mut noise, &trainable)?;
//!     let output = linear(&LinearConfig::new(64, 2), &mut noise, &trainable)?;
//!     let net = Net { hidden, output };
//!
//!     let moons = Toy::TwoMoons.sample(512, noise.rng(Stream::DATA))?;
//!     let batches = VectorLoader::new(moons.clone(), moons.clone(), &LoaderConfig::new(64), &device)?;
//!
//!     // Chains of 20 steps in the square [-4, 4]², 500 of them in the buffer.
//!     let sampler = ImproperSgldConfig::new().with_step_size(0.2).with_noise_scale(0.1).with_bounds(-4.0, 4.0);
//!     let replay = ReplayConfig::new([2]).with_capacity(500);
//!     let replay = replay.init_from(sampler.init()?, UniformStart::new(-4.0, 4.0)?)?;
//!     let objective = JemConfig::new().init(replay)?;
//!
//!     let mut trainer =
//!         Trainer::new(objective, batches, TrainerConfig::new(100)).with_learning_rate(0.02.into());
//!     let state = trainer.start(net, AdamConfig::new().init(), noise, &device)?;
//!     let (state, outcome) = trainer.train(state)?;
//!     assert_eq!(outcome, Outcome::Finished);
//!
//!     let net = state.model.valid(); // without autodiff
//!     let measured = validate(&net, &moons, 128, &device)?;
//!     let joint = JointEnergy::new(&net);
//!     let points = Tensor::from_floats([[-1.0, 1.5], [3.5, 3.5]], &device); // on a moon, and far from both
//!     let energy: Vec<f32> = joint.energy(points.clone()).into_data().iter().collect();
//!     println!("accuracy {:.2}, E(on a moon) {:.2}, E(far) {:.2}", measured.accuracy, energy[0], energy[1]);
//!     println!("p(y|x) {}", joint.probabilities(points));
//!     assert!(measured.accuracy > 0.8 && energy[0] < energy[1]);
//!     Ok(())
//! }
//! ```
//!
//! For images, `Classifier<4>` and [`data::ImageLoader`] take the places of `Classifier<2>` and
//! [`data::VectorLoader`]; nothing else changes.
//!
//! # Map
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`energy`] | [`EnergyModel`](energy::EnergyModel), [`Classifier`](energy::Classifier), [`JointEnergy`](energy::JointEnergy); products, mixtures, negation; energies with known normalisers |
//! | [`samplers`] | [`Sampler`](samplers::Sampler): SGLD and its family, MALA, HMC, tempering; the [replay buffer](samplers::Replay) and [short runs](samplers::ShortRun) |
//! | [`objectives`] | [`Objective`](objectives::Objective) and the joint objective [`Jem`](objectives::Jem); the losses of [energy-based learning](objectives::energy_based), score matching, noise-contrastive estimation |
//! | [`inference`] | the answer of lowest energy: exhaustion, descent, min-sum on chains; free energies |
//! | [`train`] | [`Trainer`](train::Trainer), checkpoints with exact resume, the divergence guard, observers, validation |
//! | [`data`] | CIFAR, IDX (MNIST), embedded CIFAR-10 subset and digits, toy distributions; augmentation and loaders |
//! | [`workers`] | several processes or machines that train one model |
//! | [`noise`], [`schedule`], [`persist`], [`math`], [`error`] | random streams, values that change with the step, state as tensors, numerics, errors |
//! | [`guide`] | the formulas that are implemented, with their defaults and sources |
//!
//! # Features
//!
//! | feature | default | what it does |
//! | --- | --- | --- |
//! | `flex` | yes | Burn's own CPU backend, with SIMD and threads |
//! | `wgpu`, `vulkan`, `metal`, `webgpu` | no | GPUs through wgpu; the last three pin the graphics API |
//! | `cuda`, `rocm` | no | GPUs of NVIDIA and AMD |
//! | `tch` | no | libtorch; deprecated by Burn, and here for the 0.22 line only |
//! | `cpu` | no | Burn's compiling CPU backend; forwarded and untried, since it downloads LLVM while it builds |
//! | `remote`, `remote-server` | no | a device of another machine through Burn, and the server that lends one |
//!
//! Nothing that you call names a backend: the crate follows the [`Device`](burn::tensor::Device) that tensors are made
//! on. Without any backend feature the crate builds, and your own `burn` dependency brings one.
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

pub mod data;
pub mod energy;
pub mod error;
pub mod inference;
pub mod math;
pub mod noise;
pub mod objectives;
pub mod persist;
pub mod samplers;
pub mod schedule;
pub mod train;
pub mod workers;

pub mod guide {
    #![doc = include_str!("../docs/math.md")]
}

pub use error::{Error, Result};

// The code in the pages is compiled and run with the documentation tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../docs/adding-a-sampler.md")]
    struct AddingASampler;
    #[doc = include_str!("../docs/choosing-a-sampler.md")]
    struct ChoosingASampler;
    #[doc = include_str!("../docs/troubleshooting.md")]
    struct Troubleshooting;
    #[doc = include_str!("../docs/backends.md")]
    struct Backends;
    #[doc = include_str!("../docs/checkpoints.md")]
    struct Checkpoints;
    #[doc = include_str!("../docs/evaluating.md")]
    struct Evaluating;
    #[doc = include_str!("../docs/scaling.md")]
    struct Scaling;
    #[doc = include_str!("../docs/your-own-classifier.md")]
    struct YourOwnClassifier;
}
