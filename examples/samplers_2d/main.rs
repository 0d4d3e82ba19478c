//! The samplers on all energies of the plane whose laws are known, with an equal budget of gradients.
//!
//! ```text
//! cargo run --example samplers_2d
//! cargo run --example samplers_2d -- --quick     what CI runs: seconds, and numbers that mean nothing
//! ```
//!
//! Chains that agree (R-hat near 1) and tell much (a large effective sample size) can still be chains of another
//! law. Exact samples show which: their distance to the samples is in a table of its own. It takes about twenty
//! seconds on two CPU cores.
//!
//! `Mppi`, `NormalizedGradient` and `ProximalSgld` are left out: they descend and have no law to compare.

mod measure;
mod methods;
mod report;
mod targets;

use std::path::PathBuf;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use jem_core::Result;
use jem_core::noise::Noise;

/// Compare the samplers on energies in the plane.
#[derive(Debug, Parser)]
pub struct Options {
    /// Chains of every sampler.
    #[arg(long, default_value_t = 64, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    chains: usize,
    /// Gradients that each chain may evaluate.
    #[arg(long, default_value_t = 8_000, value_parser = RangedU64ValueParser::<usize>::new().range(8..))]
    gradients: usize,
    /// Factor of all step sizes.
    #[arg(long, default_value_t = 1.0)]
    step_factor: f64,
    /// Seed of all randomness.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The run directory.
    #[arg(long, value_name = "DIR", default_value = "runs/samplers_2d")]
    out: PathBuf,
    /// 240 gradients and coarse pictures, to see that everything runs.
    #[arg(long)]
    quick: bool,
}

impl Options {
    /// `value`, or `at_most` where all should be over soon.
    fn shortened<T: Ord>(&self, value: T, at_most: T) -> T {
        if self.quick { value.min(at_most) } else { value }
    }

    /// Gradients of a chain.
    fn budget(&self) -> usize {
        self.shortened(self.gradients, 240)
    }
}

fn run(options: &Options) -> Result<()> {
    let device = burn::tensor::Device::default();
    std::fs::create_dir_all(&options.out).map_err(|source| jem_core::Error::io(&options.out, source))?;
    let started = std::time::Instant::now();
    let noise = Noise::host(options.seed);
    let mut blocks = Vec::new();
    for (number, target) in targets::all()?.into_iter().enumerate() {
        let mut noise = noise.fork(number as u64);
        let exact = [(); 2].map(|()| target.exact(options.shortened(1_000, 100), &mut noise, &device));
        let chains = methods::all(&target, options, &mut noise, &device)?;
        blocks.push(measure::block(target, exact, chains)?);
    }
    report::write(&blocks, options, started.elapsed().as_secs_f64(), &device)
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
