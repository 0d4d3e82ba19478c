//! Trains a conditional energy on CIFAR-10 by contrastive divergence, as IGEBM does, and puts it to its uses.
//!
//! ```text
//! cargo run --release --example igebm
//! cargo run --release --example igebm -- --data DIR --channels 128,256,256 --blocks 2 --steps 60 --iterations 100000
//! cargo run --example igebm -- --quick       what CI runs: seconds, and pictures of nothing
//! ```
//!
//! With no arguments it trains a small network on the embedded subset for about a minute and a half on two CPU cores.
//! That is enough to see every part at work, and far too little for good pictures: the paper trains for days on GPUs. It
//! leaves `report.html`, the pictures that the report is made of, `metrics.jsonl` and checkpoints in the run directory.

mod options;
mod report;
mod train;
mod uses;

use clap::Parser;
use jem_core::Result;
use jem_core::data::{PixelRange, Split};
use jem_core::noise::Noise;
use jem_data::embedded;

fn run(asked: options::Options) -> Result<()> {
    let device = burn::tensor::Device::default();
    std::fs::create_dir_all(&asked.out).map_err(|source| jem_core::Error::io(&asked.out, source))?;
    let (options, saved) = train::continued(asked)?;
    let Split { train, test } = match &options.data {
        Some(folder) => jem_data::open(folder)?,
        None => embedded::cifar10()?,
    };
    // The chains live in the unit box.
    let (train, test) = (train.with_range(PixelRange::Unit), test.with_range(PixelRange::Unit));
    let started = std::time::Instant::now();
    let state = train::train(&train, &options, saved, &device)?;
    let seconds = started.elapsed().as_secs_f64();
    // Randomness of its own: what is drawn from the finished model does not depend on how long it was trained.
    let mut noise = Noise::host(options.seed).fork(0);
    report::write(&state, &train, &test, &options, seconds, &mut noise, &device)
}

fn main() -> std::process::ExitCode {
    match run(options::Options::parse()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
