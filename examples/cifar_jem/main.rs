//! Trains a joint energy model on CIFAR-10: the main job of this crate, from files to a report.
//!
//! ```text
//! cargo run --release --example cifar_jem
//! cargo run --release --example cifar_jem -- --preset paper --data DIR --download --device cuda
//! cargo run --release --example cifar_jem -- --sampler proximal --start class-gaussian     as JEM++
//! cargo run --release --example cifar_jem -- --help
//! ```

mod chains;
mod config;
mod model;
mod report;
mod run;

use clap::Parser;
use tracing_subscriber::EnvFilter;

fn main() -> std::process::ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match run::run(config::Cli::parse()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
