//! Labels of sequences by a chain of energies: inference by min-sum, learning with three losses.
//!
//! ```text
//! cargo run --example sequence_labelling
//! cargo run --example sequence_labelling -- --quick     what CI runs: seconds, and numbers that mean nothing
//! ```
//!
//! A hidden state goes around a circle of three, mostly one step at a time, and is seen through noise. A position
//! on its own tells little; its neighbours tell the rest.

use burn::module::{Module, Param};
use burn::optim::AdamConfig;
use burn::tensor::{Device, Tensor, TensorData};
use clap::Parser;
use jem_core::Result;
use jem_core::data::BatchSource;
use jem_core::energy::Classifier;
use jem_core::inference::{Chain, ChainEnergy};
use jem_core::noise::{Noise, Stream};
use jem_core::objectives::energy_based::{EblLoss, EnergyBased, Labellings, SequenceBatch};
use jem_core::train::{Trainer, TrainerConfig};
use jem_nn::{Mlp, MlpConfig};
use rand::RngExt;
use rand_distr::StandardNormal;

const STATES: usize = 3;
const LENGTH: usize = 20;
const BATCH: usize = 32;

/// The user's model: a network for each position, and a matrix for neighbours.
#[derive(Module, Debug)]
struct Tagger {
    position: Mlp,
    transitions: Param<Tensor<2>>,
}

impl Tagger {
    /// The energies of each position alone.
    fn unary(&self, x: Tensor<3>) -> Tensor<3> {
        let [batch, length, features] = x.dims();
        self.position.logits(x.reshape([batch * length, features])).neg().reshape([batch, length, STATES])
    }
}

impl ChainEnergy<3> for Tagger {
    fn chain(&self, x: Tensor<3>) -> Result<Chain> {
        Chain::new(self.unary(x), self.transitions.val())
    }
}

/// Sequences of 10 to 20 positions: the state steps around the circle with probability 0.9, or anywhere. It is
/// seen as a point near its corner of a triangle.
struct Circle {
    device: Device,
}

impl BatchSource<SequenceBatch<3>> for Circle {
    fn batches_per_epoch(&self) -> u64 {
        100
    }

    fn batch(&mut self, iteration: u64, noise: &mut Noise) -> Result<SequenceBatch<3>> {
        let mut rng = noise.derived(Stream::DATA, iteration);
        let (mut labels, mut values) = (Vec::new(), Vec::new());
        for _ in 0..BATCH {
            let length = rng.random_range(LENGTH / 2..=LENGTH);
            let mut state = rng.random_range(0..STATES);
            let mut sequence = Vec::with_capacity(length);
            for t in 0..LENGTH {
                let angle = state as f32 * std::f32::consts::TAU / STATES as f32;
                for corner in [angle.cos(), angle.sin()] {
                    values.push(corner + rng.sample::<f32, _>(StandardNormal));
                }
                if t < length {
                    sequence.push(state);
                }
                let steps = rng.random::<f64>() < 0.9;
                state = if steps { (state + 1) % STATES } else { rng.random_range(0..STATES) };
            }
            labels.push(sequence);
        }
        let x = Tensor::from_data(TensorData::new(values, [BATCH, LENGTH, 2]), &self.device);
        Ok(SequenceBatch { x, labels })
    }
}

/// The share of positions that are labelled right.
fn accuracy(chain: &Chain, labels: &[Vec<usize>]) -> f64 {
    let pairs = chain.lowest().into_iter().zip(labels);
    let right = pairs.map(|(found, y)| found.labels.iter().zip(y).filter(|(a, b)| a == b).count());
    right.sum::<usize>() as f64 / labels.iter().map(Vec::len).sum::<usize>() as f64
}

fn run(options: &Options) -> Result<()> {
    let device = Device::default();
    let iterations = if options.quick { 10 } else { options.iterations };
    println!("{:<26} {:>8} {:>10}   energies of transitions, row by row", "loss", "chain", "positions");
    for loss in [
        EblLoss::NegativeLogLikelihood { inverse_temperature: 1.0 },
        EblLoss::Hinge { margin: 1.0 },
        EblLoss::Perceptron,
    ] {
        let mut noise = Noise::host(options.seed);
        let tracked = device.clone().autodiff();
        let position = MlpConfig::new(2, vec![16], STATES).init(&mut noise, &tracked)?;
        let transitions = Param::from_tensor(Tensor::zeros([STATES, STATES], &tracked));
        let objective = EnergyBased::new(loss, Labellings)?;
        let batches = Circle { device: device.clone() };
        let mut trainer =
            Trainer::new(objective, batches, TrainerConfig::new(iterations)).with_learning_rate(0.02.into());
        let model = Tagger { position, transitions };
        let state = trainer.start(model, AdamConfig::new().init(), noise, &device)?;
        let (state, outcome) = trainer.train(state)?;
        outcome.into_result(state.iteration)?;

        let model = state.model.valid();
        let test = Circle { device: device.clone() }.batch(0, &mut Noise::host(options.seed + 1))?;
        let lengths: Vec<usize> = test.labels.iter().map(Vec::len).collect();
        let chain = model.chain(test.x.clone())?.with_lengths(lengths.clone())?;
        let alone = Chain::new(model.unary(test.x), Tensor::zeros([STATES, STATES], &device))?
            .with_lengths(lengths)?;
        let energies: Vec<f64> = model.transitions.val().into_data().iter::<f64>().collect();
        let energies: Vec<String> = energies.iter().map(|energy| format!("{energy:.2}")).collect();
        println!(
            "{:<26} {:>6.1} % {:>8.1} %   {}",
            loss.name(),
            100.0 * accuracy(&chain, &test.labels),
            100.0 * accuracy(&alone, &test.labels),
            energies.join(" ")
        );
    }
    Ok(())
}

/// Learn to label sequences with three losses.
#[derive(Debug, Parser)]
struct Options {
    /// Training iterations for each loss.
    #[arg(long, default_value_t = 200)]
    iterations: u64,
    /// Seed of all randomness.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// 10 iterations, to see that everything runs.
    #[arg(long)]
    quick: bool,
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
