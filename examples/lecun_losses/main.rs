//! Ten losses of energy-based learning on one problem, and what each makes of the energy surface.
//!
//! ```text
//! cargo run --example lecun_losses
//! cargo run --example lecun_losses -- --quick     what CI runs: seconds, and pictures of nothing
//! ```
//!
//! The problem is that of figures 5 to 8 of LeCun et al. 2006, "A tutorial on energy-based learning": y = x² with
//! noise, as implicit regression. The energy E(x, y) = ‖A(x) - B(y)‖² / 2 can become flat, and a loss that only
//! pulls down makes it so; regression proper, E(x, y) = (A(x) - y)² / 2, cannot. It takes about half a minute on
//! two CPU cores.

mod learn;
mod model;
mod report;

use std::path::PathBuf;

use clap::Parser;
use jem_core::Result;
use jem_core::objectives::energy_based::EblLoss;

/// Compare the losses of energy-based learning.
#[derive(Debug, Parser)]
pub struct Options {
    /// Training iterations for each loss.
    #[arg(long, default_value_t = 600)]
    iterations: u64,
    /// Seed of all randomness.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The run directory.
    #[arg(long, value_name = "DIR", default_value = "runs/lecun_losses")]
    out: PathBuf,
    /// 10 iterations and coarse pictures, to see that everything runs.
    #[arg(long)]
    quick: bool,
    /// Learning rate of Adam at the start; it falls to 0 along half a cosine.
    #[arg(long, default_value_t = 0.01)]
    learning_rate: f64,
    /// The margin of the hinge and the square-square loss.
    #[arg(long, default_value_t = 0.5)]
    margin: f64,
    /// β of the two probabilistic losses.
    #[arg(long, default_value_t = 1.0)]
    beta: f64,
    /// An answer is incorrect if it is further than this from the correct one.
    #[arg(long, default_value_t = 0.35)]
    epsilon: f64,
}

impl Options {
    /// `value`, or `at_most` where all should be over soon.
    fn shortened<T: Ord>(&self, value: T, at_most: T) -> T {
        if self.quick { value.min(at_most) } else { value }
    }

    /// The losses of the table, in its order.
    fn losses(&self) -> [EblLoss; 10] {
        EblLoss::ALL.map(|loss| match loss {
            EblLoss::Hinge { .. } => EblLoss::Hinge { margin: self.margin },
            EblLoss::SquareSquare { .. } => EblLoss::SquareSquare { margin: self.margin },
            EblLoss::NegativeLogLikelihood { .. } => {
                EblLoss::NegativeLogLikelihood { inverse_temperature: self.beta }
            }
            EblLoss::MinimumEmpiricalError { .. } => {
                EblLoss::MinimumEmpiricalError { inverse_temperature: self.beta }
            }
            other => other,
        })
    }
}

fn run(options: &Options) -> Result<()> {
    let device = burn::tensor::Device::default();
    std::fs::create_dir_all(&options.out).map_err(|source| jem_core::Error::io(&options.out, source))?;
    let started = std::time::Instant::now();
    let data = learn::Pairs::new(options, &device)?;
    let mut surfaces = vec![learn::untrained(options, &data)?];
    for loss in options.losses() {
        surfaces.push(learn::implicit(options, loss, &data)?);
    }
    surfaces.push(learn::regression(options, EblLoss::Energy, &data)?);
    report::write(&surfaces, &data, options, started.elapsed().as_secs_f64())
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
