//! Evaluates a trained joint model as its papers do: calibration, what it has not seen, attacks, samples, chains.
//!
//! ```text
//! cargo run --release --example cifar_jem                  trains one, in runs/cifar_jem
//! cargo run --release --example evaluate                   evaluates it: minutes
//! cargo run --release --example evaluate -- --checkpoint jem.pt --data DIR --ood svhn=svhn.bin
//! cargo run --release --example evaluate -- --help
//! ```
//!
//! It prints a table, writes `evaluation.json`, and adds its pages to the `report.html` of the run. Every part is
//! written when it is done: the same command goes on with the parts that are missing.

mod attacks;
#[path = "../cifar_jem/chains.rs"]
#[allow(dead_code)]
mod chains;
#[path = "../cifar_jem/config.rs"]
#[allow(dead_code)]
mod config;
mod detection;
mod ledger;
#[path = "../cifar_jem/model.rs"]
mod model;
mod options;
mod pages;
mod parts;
mod samples;
mod sets;
mod subject;

use clap::Parser;

fn main() -> std::process::ExitCode {
    match parts::run(&options::Options::parse()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
