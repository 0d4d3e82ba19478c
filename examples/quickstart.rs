//! Your own Burn classifier becomes a joint energy model: what [`Net`] is and [`train`] does is all there is to it.
//!
//! ```text
//! cargo run --example quickstart
//! cargo run --example quickstart -- --quick     what CI runs: seconds, and numbers that mean nothing
//! ```

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::AdamConfig;
use burn::tensor::{Device, Tensor, activation};
use clap::Parser;
use jem_core::Result;
use jem_core::data::{Augmentation, ImageLoader, ImageSet, LoaderConfig};
use jem_core::energy::{Classifier, EnergyModel, JointEnergy};
use jem_core::noise::{Noise, Stream};
use jem_core::objectives::JemConfig;
use jem_core::samplers::{ImproperSgldConfig, ReplayConfig};
use jem_core::train::{Trainer, TrainerConfig, validate};
use jem_data::digits;

/// A network of the user's, in plain Burn.
#[derive(Module, Debug)]
struct Net {
    hidden: Linear,
    output: Linear,
}

/// From here on it is an energy model: E(x) = -log Σ_y exp f(x)[y], p(x) ∝ exp(-E(x)), and p(y|x) as ever.
impl Classifier<4> for Net {
    fn logits(&self, x: Tensor<4>) -> Tensor<2> {
        self.output.forward(activation::silu(self.hidden.forward(x.flatten(1, 3))))
    }
}

/// A trained network, without autodiff.
fn train(digits: ImageSet, options: &Options, device: &Device) -> Result<Net> {
    // Burn draws a weight when it is first used: seed, then use.
    device.seed(options.seed);
    let trainable = device.clone().autodiff();
    let (hidden, output) =
        (LinearConfig::new(64, 256).init(&trainable), LinearConfig::new(256, 10).init(&trainable));
    let net = Net { hidden, output };
    net.logits(Tensor::zeros([1, 1, 8, 8], &trainable));

    // Negatives are persistent chains of the paper's sampler; the objective is CE + E(data) - E(samples).
    let replay = ReplayConfig::new(digits.image_shape()).with_capacity(1_000).with_num_steps(10);
    let objective = JemConfig::new().init(replay.init(ImproperSgldConfig::new().init()?)?)?;
    let batches = LoaderConfig::new(64).with_augmentation(Augmentation::none().with_noise(0.1));
    let batches = ImageLoader::new(digits.clone(), digits, &batches, device)?;
    let mut trainer = Trainer::new(objective, batches, TrainerConfig::new(options.iterations()))
        .with_learning_rate(1e-3.into());
    let state = trainer.start(net, AdamConfig::new().init(), Noise::host(options.seed), device)?;
    let (state, outcome) = trainer.train(state)?;
    outcome.into_result(state.iteration)?;
    Ok(state.model.valid())
}

fn run(options: &Options) -> Result<()> {
    let device = Device::default();
    let digits = digits::digits()?;
    let net = train(digits.train, options, &device)?;

    let test = validate(&net, &digits.test, 100, &device)?;
    let shape = [digits.test.len(), 1, 8, 8];
    let uniform = Noise::host(options.seed).uniform(shape, -1.0..1.0, Stream::new("test"), &device);
    let uniform = JointEnergy::new(&net).energy(uniform).mean().into_scalar::<f32>();
    println!("test accuracy            {:.1} %", 100.0 * test.accuracy);
    println!("mean energy, test digits {:.2}", test.energy);
    println!("mean energy, noise       {uniform:.2}");
    Ok(())
}

/// Turn a small classifier of handwritten digits into a joint energy model.
#[derive(Debug, Parser)]
struct Options {
    /// Training iterations.
    #[arg(long, default_value_t = 1_000)]
    iterations: u64,
    /// Seed of all randomness.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// 20 iterations at most, to see that everything runs.
    #[arg(long)]
    quick: bool,
}

impl Options {
    fn iterations(&self) -> u64 {
        if self.quick { self.iterations.min(20) } else { self.iterations }
    }
}

fn main() -> std::process::ExitCode {
    match run(&Options::parse()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
