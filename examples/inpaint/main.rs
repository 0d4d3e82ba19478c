//! In-painting, restoration, change of class and refinement with a conditional joint energy model of the embedded 8x8 digits.
//!
//! ```text
//! cargo run --release --example inpaint
//! cargo run --release --example inpaint -- --checkpoint runs/inpaint --chains 50     with the model of that run
//! cargo run --example inpaint -- --quick       what CI runs: seconds, and a model that knows nothing
//! ```
//!
//! It trains E(x, y) on the digits, and then runs chains on digits that it has not seen. Half of a digit is hidden and
//! drawn anew, given the other half and the class; the visible pixels stay as they are, bit by bit, which is checked.
//! Corrupted digits are where chains start that lead back to likely ones. And chains that start from a digit of one
//! class run under the energy of another. Last, digits are classified by the lowest energy, as they came and after
//! refinement within 8/255 of each pixel.
//!
//! A sample cannot be near the truth in squares: it adds the spread of p(hidden | visible) to what is unknown. The
//! mean of several chains estimates E[hidden | visible], which is the guess of least squared error. Both are measured,
//! beside the mean image of the class and other guesses.
//!
//! It needs no download, takes one to two minutes on two CPU cores, and leaves `report.html`, the pictures in it,
//! `inpaint.json` and a checkpoint in the run directory. Source: Du & Mordatch 2019, arXiv 1903.08689.

mod classify;
mod cross;
mod fill;
mod guesses;
mod numbers;
mod options;
mod report;
mod restore;
mod train;

use burn::tensor::Device;
use clap::Parser;
use jem_core::energy::JointEnergy;
use jem_core::noise::Noise;
use jem_core::{Error, Result};
use jem_data::digits;

fn run(options: &options::Options) -> Result<()> {
    let device = Device::default();
    std::fs::create_dir_all(&options.out).map_err(|source| Error::io(&options.out, source))?;
    let digits = digits::digits()?;
    let started = std::time::Instant::now();
    let subject = match &options.checkpoint {
        Some(folder) => train::load(folder, &digits, &device)?,
        None => train::train(&digits, options, &device)?,
    };
    let trained = started.elapsed().as_secs_f64();
    let joint = JointEnergy::new(&subject.model);
    // Chains of their own: what is drawn does not depend on how long the model was trained.
    let noise = Noise::host(options.seed);
    let known = guesses::Known::new(&digits.train)?;
    let test = if options.quick { digits.test.take_per_class(2)? } else { digits.test.clone() };
    let fills = fill::all(&joint, &subject.sampler, &known, &test, options, &mut noise.fork(1), &device)?;
    let restored = restore::all(
        &joint,
        &subject.sampler,
        &known,
        (&digits.train.take_per_class(if options.quick { 2 } else { 30 })?, &test),
        options,
        &mut noise.fork(2),
        &device,
    )?;
    let crossed = cross::all(&joint, &subject.sampler, &known, &test, options, &mut noise.fork(3), &device)?;
    let corrupted: Vec<&[guesses::Pixels]> = restored.iter().map(|kind| kind.corrupted.as_slice()).collect();
    let rules =
        classify::all(&joint, &subject.sampler, &test, &corrupted, options, &mut noise.fork(4), &device)?;
    let found = report::Found { fills, restored, crossed, rules };
    let seconds = (trained, started.elapsed().as_secs_f64() - trained);
    report::write(&subject, &test, &found, options, seconds, &device)
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
