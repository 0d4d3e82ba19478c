//! Trains a joint energy model on the embedded 8x8 digits, and shows what it dreams of.
//!
//! ```text
//! cargo run --example digits_jem
//! cargo run --example digits_jem -- --class-conditional --seed 2
//! cargo run --example digits_jem -- --quick       what CI runs: seconds, and pictures of nothing
//! ```
//!
//! It needs no download and about a minute and a half on two CPU cores, and leaves `report.html`, the pictures
//! that the report is made of, and `metrics.jsonl` in the run directory.

mod options;
mod pictures;
mod report;
mod train;

use clap::Parser;
use jem_core::Result;
use jem_core::noise::Noise;
use jem_data::digits;

fn run(options: &options::Options) -> Result<()> {
    let device = burn::tensor::Device::default();
    std::fs::create_dir_all(&options.out).map_err(|source| jem_core::Error::io(&options.out, source))?;
    let digits = digits::digits()?;
    let started = std::time::Instant::now();
    let state = train::train(digits.train.clone(), options, &device)?;
    let seconds = started.elapsed().as_secs_f64();
    // Randomness of its own: what is drawn from the finished model does not depend on how long it was trained.
    let mut noise = Noise::host(options.seed).fork(0);
    report::write(&state, &digits, options, seconds, &mut noise, &device)
}

fn main() -> std::process::ExitCode {
    match run(&options::Options::parse()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
