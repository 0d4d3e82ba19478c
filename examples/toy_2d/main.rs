//! Learns a distribution in the plane and its classes, and draws what was learnt.
//!
//! ```text
//! cargo run --example toy_2d
//! cargo run --example toy_2d -- --data two-moons
//! cargo run --example toy_2d -- --quick       what CI runs: seconds, and pictures of nothing
//! ```
//!
//! In the plane the normaliser of p(x) ∝ exp(-E(x)) is a sum over a grid, so that the example can tell the
//! likelihood of held-out points, which no JEM of images can. It takes about a minute on two CPU cores.

mod learn;
mod pictures;

use std::path::PathBuf;

use clap::Parser;
use jem_core::Result;
use jem_core::data::Toy;

/// Learn a distribution in the plane with a joint energy model.
#[derive(Debug, Parser)]
pub struct Options {
    /// The distribution: two-moons, rings, checkerboard, pinwheel, spirals or gaussians.
    #[arg(long, value_parser = toy, default_value = "pinwheel")]
    data: Toy,
    /// Training iterations.
    #[arg(long, default_value_t = 1_500)]
    iterations: u64,
    /// Seed of all randomness.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The run directory.
    #[arg(long, value_name = "DIR", default_value = "runs/toy_2d")]
    out: PathBuf,
    /// 20 iterations and short chains, to see that everything runs.
    #[arg(long)]
    quick: bool,
    /// Width of the two hidden layers.
    #[arg(long, default_value_t = 128)]
    width: usize,
    /// Steps of a training chain, K.
    #[arg(long, default_value_t = 20)]
    steps: usize,
    /// α of the chains: x ← x - α/2 ∇E(x) + N(0, α).
    #[arg(long, default_value_t = 0.02)]
    step_size: f64,
    /// Noise on training points. What is narrower than a chain's own noise, √α, cannot be learnt.
    #[arg(long, default_value_t = 0.15)]
    data_noise: f32,
    /// Probability that a training chain starts afresh, ρ.
    #[arg(long, default_value_t = 0.05)]
    restart: f64,
    /// Learning rate of Adam at the start; it falls to 0 along half a cosine.
    #[arg(long, default_value_t = 2e-3)]
    learning_rate: f64,
    /// Decay of averaged weights.
    #[arg(long, default_value_t = 0.995)]
    average_decay: f64,
}

impl Options {
    /// `value`, or `at_most` where all should be over soon.
    fn shortened<T: Ord>(&self, value: T, at_most: T) -> T {
        if self.quick { value.min(at_most) } else { value }
    }
}

fn toy(name: &str) -> Result<Toy> {
    name.replace('-', "_").parse()
}

fn run(options: &Options) -> Result<()> {
    let device = burn::tensor::Device::default();
    std::fs::create_dir_all(&options.out).map_err(|source| jem_core::Error::io(&options.out, source))?;
    let started = std::time::Instant::now();
    let learnt = learn::learn(options, &device)?;
    let seconds = started.elapsed().as_secs_f64();
    pictures::write(&learnt, options, seconds, &device)
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
