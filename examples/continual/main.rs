//! Continual learning: five pairs of digits, one after the other, with nothing kept of the pairs before.
//!
//! ```text
//! cargo run --release --example continual
//! cargo run --release --example continual -- --iterations 600 --seeds 5
//! cargo run --example continual -- --quick       what CI runs: seconds, and networks that have learnt little
//! ```
//!
//! A conditional energy E(x, y), whose labels act by a gain and a bias on a hidden layer, against an ordinary softmax
//! classifier of the same size, on the same batches, for as many iterations. Both answer with argmin_y E(x, y) over
//! all ten digits. They differ in two things: where the label enters, and which labels a loss pushes up. The energy's
//! loss names only the two labels of the present pair; a softmax over ten logits pushes the eight others up all the
//! time. The other two combinations are trained as well, which tells the two apart.
//!
//! It takes about a minute on two CPU cores. Source: Li et al. 2020, "Energy-based models for continual learning",
//! arXiv 2011.12216; Du & Mordatch 2019, arXiv 1903.08689.

mod learn;
mod model;
mod report;

use std::path::PathBuf;

use burn::tensor::Device;
use clap::Parser;
use clap::builder::RangedU64ValueParser;
use jem_core::{Error, Result};
use jem_data::digits;

use crate::learn::{Learnt, METHODS, run_method};
use crate::report::Row;

/// The pairs, in the order in which they come.
pub const PAIRS: [[usize; 2]; 5] = [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]];
pub const CLASSES: usize = 10;
pub const BATCH: usize = 32;

/// Learn five pairs of digits, one after the other.
#[derive(Debug, Parser)]
pub struct Options {
    /// Training iterations for each pair.
    #[arg(long, default_value_t = 300, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    iterations: u64,
    /// Runs, with the seeds 1, 2, ..
    #[arg(long, default_value_t = 3, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    seeds: u64,
    /// Width of the two hidden layers.
    #[arg(long, default_value_t = 128)]
    width: usize,
    /// Learning rate of Adam, which starts afresh with each pair.
    #[arg(long, default_value_t = 1e-3)]
    learning_rate: f64,
    /// Where results go.
    #[arg(long, value_name = "DIR", default_value = "runs/continual")]
    out: PathBuf,
    /// 10 iterations, to see that everything runs.
    #[arg(long)]
    quick: bool,
}

impl Options {
    fn iterations(&self) -> u64 {
        if self.quick { self.iterations.min(10) } else { self.iterations }
    }

    fn seeds(&self) -> u64 {
        if self.quick { self.seeds.min(2) } else { self.seeds }
    }
}

fn run(options: &Options) -> Result<()> {
    let device = Device::default();
    std::fs::create_dir_all(&options.out).map_err(|source| Error::io(&options.out, source))?;
    let data = digits::digits()?;
    let started = std::time::Instant::now();
    let pairs: Vec<Vec<usize>> = PAIRS.iter().map(|pair| pair.to_vec()).collect();
    let everything = [(0..CLASSES).collect::<Vec<_>>()];
    let mut rows = Vec::new();
    for method in METHODS {
        let each = |parts: &[Vec<usize>]| -> Result<Vec<Learnt>> {
            (1..=options.seeds())
                .map(|seed| run_method(method, parts, seed, options, &data, &device))
                .collect()
        };
        rows.push(Row { method, runs: each(&pairs)?, at_once: each(&everything)? });
    }
    report::write(&rows, options, started.elapsed().as_secs_f64())
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
