//! Langevin chains in the plane, timed for `benches/compare --samplers`:
//! `cargo bench --bench samplers_2d -- gaussian --chains 1000 --steps 500 --step-size 0.1`.
//!
//! A line of JSON says the seconds of each run of all chains, all starting from 0, and the mean of x² over chains,
//! coordinates and runs at their ends. The work is that of `benches/peers/samplers_2d.py`.

use std::time::Instant;

use burn::tensor::{Device, Tensor};
use clap::{Parser, ValueEnum};
use jem_core::energy::EnergyModel;
use jem_core::energy::analytic::{DoubleWell, Gaussian, GaussianMixture};
use jem_core::noise::Noise;
use jem_core::samplers::{UlaConfig, run};

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Target {
    /// N(0, I).
    Gaussian,
    /// 2 (x² - 1)² in each coordinate.
    DoubleWell,
    /// Four Gaussians of deviation 0.7 at a distance of 2 from the origin.
    Mixture,
}

impl Target {
    fn energy(self) -> jem_core::Result<Box<dyn EnergyModel<2>>> {
        let means = [[2.0, 0.0], [-2.0, 0.0], [0.0, 2.0], [0.0, -2.0]];
        Ok(match self {
            Self::Gaussian => Box::new(Gaussian::standard()),
            Self::DoubleWell => Box::new(DoubleWell::new(2.0, 1.0)?),
            Self::Mixture => Box::new(GaussianMixture::new(means.map(Vec::from).to_vec(), 0.7)?),
        })
    }
}

#[derive(Parser)]
struct Options {
    target: Target,
    #[arg(long, default_value_t = 1_000)]
    chains: usize,
    #[arg(long, default_value_t = 500)]
    steps: usize,
    #[arg(long, default_value_t = 0.1)]
    step_size: f64,
    /// Runs that are timed, after one that is not.
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// What `cargo bench` adds.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> jem_core::Result<()> {
    let Options { target, chains, steps, step_size, repeats, bench: _ } = Options::parse();
    let (device, mut noise) = (Device::default(), Noise::host(0));
    let (energy, sampler) = (target.energy()?, UlaConfig::new(step_size).init()?);
    let (mut seconds, mut second_moment) = (Vec::new(), 0.0);
    for number in 0..=repeats {
        let start = Instant::now();
        let x = Tensor::zeros([chains, 2], &device);
        let end = run(&sampler, &energy, x, steps, &mut noise);
        device.sync().expect("a device that answers");
        if number > 0 {
            seconds.push(start.elapsed().as_secs_f64());
            second_moment += end.square().mean().into_scalar::<f32>() / repeats as f32;
        }
    }
    let device = format!("{device:?}");
    println!("{{\"device\": {device:?}, \"seconds\": {seconds:?}, \"second_moment\": {second_moment}}}");
    Ok(())
}
