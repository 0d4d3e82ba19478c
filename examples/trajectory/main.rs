//! Trajectories by an energy-based model of windows of states, beside a feed-forward model of the same size.
//!
//! ```text
//! cargo run --example trajectory
//! cargo run --example trajectory -- --seeds 3    means and ranges over three seeds
//! cargo run --example trajectory -- --quick      what CI runs: seconds, and numbers that mean nothing
//! ```
//!
//! The system is a noisy particle that goes around on one of two circular roads, of radius 1 about (-1, 0) and (1, 0),
//! the left one anticlockwise and the right one clockwise. They touch at the origin, the fork, and both lead upwards
//! there. At every step the particle takes the right road with a probability that only there is neither 0 nor 1:
//!
//! ```text
//! P(right) = 1 / (1 + e^(-x/w)),   w = 0.05
//! x_{t+1} = c + (1 + κ (r - 1)) R(±ω) (x_t - c) / r + s ε,   r = ‖x_t - c‖,  ω = 0.8,  κ = 0.3,  s = 0.1,  ε ~ N(0, I)
//! ```
//!
//! Given most states the next is a Gaussian, which a network that gives mean and variance can learn exactly. At the fork
//! it is one of two, six deviations apart, and no Gaussian is both. The energy E(x_t, x_{t+1}) can be, but has no
//! density until it is normalised, which a sum over a grid does here, and no next state until it is sampled.
//!
//! Both models are multilayer perceptrons of about as many parameters, with the same data, batches, optimiser and
//! iterations. Trajectories of the energy are rolled out by chains (parallel tempering, the present state clamped), and
//! by MPPI, which seeks a likely next state and draws none. After Du & Mordatch 2019, arXiv 1903.08689, section 5. It
//! takes about a minute a seed on two CPU cores.

mod learn;
mod measure;
mod models;
mod report;
mod roll_outs;
mod system;

use std::path::PathBuf;

use burn::tensor::Device;
use clap::Parser;
use clap::builder::RangedU64ValueParser;
use jem_core::Result;
use jem_core::noise::{Noise, Stream};
use jem_core::samplers::ImproperSgldConfig;

use learn::{Likelihood, Pairs, Ranking, ShortChains, train};
use measure::{Figure, GridError, Trained};
use models::{FeedForward, WindowEnergy};
use roll_outs::RollOuts;

/// How the energy is trained.
#[derive(Debug, Clone, Copy, PartialEq, clap::ValueEnum)]
enum ObjectiveKind {
    /// Noise-contrastive estimation by ranking.
    Ranking,
    /// Contrastive divergence with chains of ten steps.
    ContrastiveDivergence,
}

/// Learn the steps of a noisy particle with an energy and with a feed-forward model.
#[derive(Debug, Parser)]
pub struct Options {
    /// Training iterations of each model.
    #[arg(long, default_value_t = 6_000)]
    iterations: u64,
    /// How the energy is trained.
    #[arg(long, value_enum, default_value = "ranking")]
    objective: ObjectiveKind,
    /// Candidates for each next state, K, of the ranking objective.
    #[arg(long, default_value_t = 48, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    candidates: usize,
    /// Learning rate of Adam at the start; it falls to 0 along half a cosine.
    #[arg(long, default_value_t = 3e-3)]
    learning_rate: f64,
    /// Width of the two hidden layers.
    #[arg(long, default_value_t = 64)]
    width: usize,
    /// Windows in a batch.
    #[arg(long, default_value_t = 64, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    batch: usize,
    /// Held-out windows, about.
    #[arg(long, default_value_t = 1_000, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    held_out: usize,
    /// Roll-outs of each kind.
    #[arg(long, default_value_t = 128, value_parser = RangedU64ValueParser::<usize>::new().range(2..))]
    particles: usize,
    /// Steps of a roll-out.
    #[arg(long, default_value_t = 200, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    steps: usize,
    /// The first seed of all randomness.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs with one seed after the other; pictures are of the first.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The run directory.
    #[arg(long, value_name = "DIR", default_value = "runs/trajectory")]
    out: PathBuf,
    /// 30 iterations, few windows and short roll-outs, to see that everything runs.
    #[arg(long)]
    quick: bool,
}

impl Options {
    /// `value`, or `at_most` where all should be over soon.
    fn shortened<T: Ord>(&self, value: T, at_most: T) -> T {
        if self.quick { value.min(at_most) } else { value }
    }
}

/// One seed.
pub struct Run {
    models: Trained,
    figures: Vec<Figure>,
    grid_error: GridError,
    roll_outs: RollOuts,
}

fn one_seed(seed: u64, options: &Options, device: &Device) -> Result<Run> {
    let mut noise = Noise::host(seed);
    let count = options.shortened(20_000, 640);
    let pairs = Pairs::simulated(count, options.batch, &mut noise, Stream::new("train"), device);
    let held_out = options.shortened(options.held_out, 16);
    let held_out = Pairs::simulated(held_out, options.batch, &mut noise, Stream::new("held out"), device);

    let tracked = device.clone().autodiff();
    let energy = WindowEnergy::new(options.width, &mut noise, &tracked)?;
    let (energy, seconds) = match options.objective {
        ObjectiveKind::Ranking => {
            let objective = Ranking { candidates: options.candidates, reach: 0.6 };
            train(energy, objective, &pairs, options, noise.fork(0), device)?
        }
        ObjectiveKind::ContrastiveDivergence => {
            // Proper Langevin steps of half a deviation of the noise.
            let chain = ImproperSgldConfig::new().with_step_size(0.0025).with_noise_scale(0.005f64.sqrt());
            let chain = chain.with_gradient_clip(20.0).init()?;
            train(energy, ShortChains { chain, steps: 10 }, &pairs, options, noise.fork(0), device)?
        }
    };
    let gaussian = FeedForward::new(options.width, &mut noise, &tracked)?;
    let (gaussian, other) = train(gaussian, Likelihood, &pairs, options, noise.fork(0), device)?;
    let models = Trained { energy, gaussian, seconds: (seconds, other) };

    let (mut figures, grid_error) = measure::predictions(&models, &held_out, &mut noise, device)?;
    let roll_outs = roll_outs::all(&models, options, &mut noise, device)?;
    figures.extend(roll_outs::distances(&roll_outs, &mut noise)?);
    Ok(Run { models, figures, grid_error, roll_outs })
}

fn run(options: &Options) -> Result<()> {
    let device = Device::default();
    std::fs::create_dir_all(&options.out).map_err(|source| jem_core::Error::io(&options.out, source))?;
    let started = std::time::Instant::now();
    let seeds = options.seed..options.seed + options.seeds;
    let runs = seeds.map(|seed| one_seed(seed, options, &device)).collect::<Result<Vec<_>>>()?;
    report::write(&runs, options, started.elapsed().as_secs_f64(), &device)
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
