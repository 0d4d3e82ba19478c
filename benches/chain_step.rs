//! What one step of a chain costs beside the forward pass and the gradient in x that it cannot do without:
//! `cargo bench --bench chain_step`.
//!
//! For every sampler whose step has one gradient: twenty pairs of a step and a bare `energy_and_grad` of the same network
//! at the same place, in alternation; the median of the ratios, and its quartiles. The last column is what the step does
//! besides, timed alone on an energy that gives numbers made before: where a machine's speed moves by more than a few per
//! cent from one moment to the next, the ratios cannot show less, and this can. `--quick` makes three pairs of a small
//! network.

use std::time::Instant;

use burn::tensor::{Device, Tensor};
use jem_core::energy::{EnergyModel, JointEnergy};
use jem_core::noise::{Noise, Stream};
use jem_core::samplers::{
    AnnealedLangevinConfig, ImproperSgldConfig, MalaConfig, NormalizedGradientConfig, ProximalSgldConfig,
    Sampler, SgldConfig, UlaConfig, UnderdampedLangevinConfig,
};
use jem_nn::CnnConfig;

/// Energies and gradients that were made before: a step on it costs what a step adds.
struct Made(Tensor<1>, Tensor<4>);

impl EnergyModel<4> for Made {
    fn energy(&self, _: Tensor<4>) -> Tensor<1> {
        self.0.clone()
    }

    fn energy_and_grad(&self, _: Tensor<4>) -> (Tensor<1>, Tensor<4>) {
        (self.0.clone(), self.1.clone())
    }
}

struct Bench<'a> {
    model: &'a dyn EnergyModel<4>,
    x: Tensor<4>,
    pairs: usize,
    device: Device,
}

impl Bench<'_> {
    fn seconds(&self, work: impl FnOnce()) -> f64 {
        self.device.sync().expect("a device that answers");
        let started = Instant::now();
        work();
        self.device.sync().expect("a device that answers");
        started.elapsed().as_secs_f64()
    }

    fn row<S: Sampler<4>>(&self, name: &str, sampler: S) {
        let mut noise = Noise::host(2);
        let mut state = Some(sampler.init(self.model, self.x.clone()));
        let mut ratios = Vec::with_capacity(self.pairs);
        let mut bare_seconds = Vec::with_capacity(self.pairs);
        for pair in 0..self.pairs + 1 {
            let place = state.as_ref().map(|state| sampler.position(state)).unwrap_or_else(|| self.x.clone());
            let bare = |place: Tensor<4>| self.seconds(|| drop(self.model.energy_and_grad(place)));
            let mut step = || {
                self.seconds(|| {
                    let (next, _) = sampler.step(self.model, state.take().expect("a state"), &mut noise);
                    state = Some(next);
                })
            };
            // Either goes first in turn.
            let (bare, step) = if pair % 2 == 0 {
                let bare = bare(place);
                (bare, step())
            } else {
                let step = step();
                (bare(place), step)
            };
            if pair > 0 {
                ratios.push(step / bare);
                bare_seconds.push(bare);
            }
        }
        let (energy, gradient) = self.model.energy_and_grad(self.x.clone());
        let made = Made(energy, gradient);
        let mut state = Some(sampler.init(&made, self.x.clone()));
        let added = (0..self.pairs).map(|_| {
            self.seconds(|| state = state.take().map(|state| sampler.step(&made, state, &mut noise).0))
        });
        let mut added: Vec<f64> = added.collect();
        [&mut ratios, &mut bare_seconds, &mut added].into_iter().for_each(|all| all.sort_by(f64::total_cmp));
        let at = |quarter: usize| ratios[quarter * (ratios.len() - 1) / 4];
        let (bare, added) = (bare_seconds[bare_seconds.len() / 2], added[added.len() / 2]);
        let share = 100.0 * added / bare;
        println!(
            "| {name} | {:.3} | {:.3} to {:.3} | {:.1} | {:.2}, {share:.1} % |",
            at(2),
            at(1),
            at(3),
            1e3 * bare,
            1e3 * added
        );
    }
}

fn main() -> jem_core::Result<()> {
    let quick = std::env::args().any(|argument| argument == "--quick" || argument == "--test");
    let device = Device::default();
    let (channels, batch, pairs) = if quick { (vec![4, 8], 2, 3) } else { (vec![64, 128, 256], 64, 20) };
    let network = CnnConfig::new(channels, 10).init(&mut Noise::host(0), &device)?;
    let model = JointEnergy::new(network);
    let x = Noise::host(1).uniform([batch, 3, 32, 32], -1.0..1.0, Stream::DATA, &device);
    let bench = Bench { model: &model, x, pairs, device };
    println!("| sampler | step / bare, median | quartiles | bare, ms | what the step adds, ms |");
    println!("| --- | --- | --- | --- | --- |");
    bench.row("`ImproperSgld`", ImproperSgldConfig::new().init()?);
    bench.row("`Sgld`", SgldConfig::new(1e-4).init()?);
    bench.row("`Ula`", UlaConfig::new(1e-4).init()?);
    bench.row("`ProximalSgld`", ProximalSgldConfig::new(0.2).init()?);
    bench.row("`NormalizedGradient`", NormalizedGradientConfig::new().init()?);
    bench.row("`UnderdampedLangevin`", UnderdampedLangevinConfig::new(0.01).init()?);
    bench.row("`Mala`", MalaConfig::new(1e-4).init()?);
    bench.row("`AnnealedLangevin`", AnnealedLangevinConfig::new(vec![0.1, 0.01], 1e-4).init()?);
    Ok(())
}
