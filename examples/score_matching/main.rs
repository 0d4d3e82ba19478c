//! One energy network, trained in four ways that differ in how they do without the normaliser.
//!
//! ```text
//! cargo run --example score_matching
//! cargo run --example score_matching -- --data rings
//! cargo run --example score_matching -- --quick     what CI runs: seconds, and numbers that mean nothing
//! ```
//!
//! | method | what it sees | what it cannot see |
//! | --- | --- | --- |
//! | sliced score matching | slope and curvature of E at the data | how much mass lies in parts that are far from each other |
//! | denoising score matching | the slope of E at noisy data | the same, and what is narrower than the noise |
//! | noise-contrastive estimation | the log-density, against samples of a known one | where that one is not |
//! | maximum likelihood by chains | samples of its own | where its chains do not go in their few steps |
//!
//! The network, the data, the iterations, the batches and the optimiser are the same; the first three evaluate six
//! energies for each point of a batch, the chains twenty gradients and two energies. In the plane a sum over a grid
//! normalises all four, so that their log-likelihoods can be compared, and the normaliser that noise-contrastive
//! estimation has learnt can be checked. It takes one to two minutes on two CPU cores.

mod learn;
mod report;

use std::path::PathBuf;

use burn::tensor::Device;
use clap::Parser;
use clap::builder::RangedU64ValueParser;
use jem_core::Result;
use jem_core::data::Toy;
use jem_core::noise::{Noise, Stream};

/// Train one energy network by score matching, noise contrast and chains.
#[derive(Debug, Parser)]
pub struct Options {
    /// The distribution: two-moons, rings, checkerboard, pinwheel, spirals or gaussians.
    #[arg(long, value_parser = toy, default_value = "pinwheel")]
    data: Toy,
    /// Training iterations of each method.
    #[arg(long, default_value_t = 3_000)]
    iterations: u64,
    /// Points in a batch.
    #[arg(long, default_value_t = 128, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    batch: usize,
    /// Width of the three hidden layers.
    #[arg(long, default_value_t = 64)]
    width: usize,
    /// Learning rate of Adam at the start; it falls to 0 along half a cosine.
    #[arg(long, default_value_t = 1e-2)]
    learning_rate: f64,
    /// σ, the noise of denoising score matching, and on the points that the chains learn from.
    #[arg(long, default_value_t = 0.15)]
    noise: f64,
    /// The first seed of all randomness.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs with one seed after the other; pictures are of the first.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The run directory.
    #[arg(long, value_name = "DIR", default_value = "runs/score_matching")]
    out: PathBuf,
    /// 20 iterations and coarse grids, to see that everything runs.
    #[arg(long)]
    quick: bool,
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
    let device = Device::default();
    std::fs::create_dir_all(&options.out).map_err(|source| jem_core::Error::io(&options.out, source))?;
    let started = std::time::Instant::now();
    // What the data are, by counting: many more points than any method sees.
    let many = options.shortened(2_000_000, 20_000);
    let many = options.data.sample(many, Noise::host(0).rng(Stream::new("reference")))?;
    let reference = report::Reference::new(&many)?;
    let mut runs = Vec::new();
    for seed in options.seed..options.seed + options.seeds {
        let noise = Noise::host(seed);
        let train = options.data.sample(20_000, noise.fork(0).rng(Stream::new("train")))?;
        let test =
            options.data.sample(options.shortened(10_000, 500), noise.fork(0).rng(Stream::new("test")))?;
        let fitted = learn::all(&train, &noise, options, &device)?;
        runs.push(report::measure(fitted, &test, &reference, options, &device)?);
    }
    report::write(&runs, &reference, options, started.elapsed().as_secs_f64())
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
