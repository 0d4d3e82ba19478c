//! Whole training iterations of four workloads, timed one by one for `benches/compare`:
//! `cargo bench --bench workloads -- cnn --iterations 3`.
//!
//! A line of JSON says the seconds of each iteration after the first. The work is that of
//! `benches/peers/jem_iteration.py`: a draw from a replay buffer of 10,000, K chain steps, the joint loss, a backward
//! pass and a step of Adam. The backend is Burn's default.

mod support;

use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use burn::module::Module;
use burn::optim::AdamConfig;
use burn::tensor::Device;
use jem_core::data::JointBatch;
use jem_core::energy::Classifier;
use jem_core::nn::{CnnConfig, MlpConfig, WideResNetConfig};
use jem_core::noise::{Noise, Stream};
use jem_core::objectives::JemConfig;
use jem_core::samplers::{ImproperSgldConfig, ReplayConfig};
use jem_core::train::{Control, Observer, Record, Trainer, TrainerConfig, View};
use support::Same;

/// Tells the time that every iteration took, and ends the run after so many.
struct Clock {
    last: Instant,
    seconds: Sender<f64>,
    device: Device,
    left: usize,
}

impl<M, S> Observer<M, S> for Clock {
    fn on_record(&mut self, record: &Record, _: &View<'_, M, S>) -> jem_core::Result<Control> {
        if let Record::Step(_) = record {
            self.device.sync().expect("a device that answers");
            self.seconds.send(self.last.elapsed().as_secs_f64()).expect("someone listens");
            self.last = Instant::now();
            self.left -= 1;
        }
        Ok(if self.left == 0 { Control::Stop } else { Control::Continue })
    }
}

/// Seconds of each iteration after the first, which makes what is made once.
fn seconds<const D: usize, M: Classifier<D> + Module + 'static>(
    network: M,
    shape: [usize; D],
    classes: usize,
    num_steps: usize,
    iterations: usize,
    device: &Device,
) -> jem_core::Result<Vec<f64>> {
    let sampler = ImproperSgldConfig::new().init()?;
    let replay = ReplayConfig::new(&shape[1..]).with_num_steps(num_steps).init(sampler)?;
    let x = Noise::host(1).uniform(shape, -1.0..1.0, Stream::DATA, device);
    let labels = (0..shape[0]).map(|index| index % classes).collect();
    let batches = Same(JointBatch { unlabelled: x.clone(), labelled: x, labels });
    let (sender, seconds) = channel();
    let clock = Clock { last: Instant::now(), seconds: sender, device: device.clone(), left: iterations + 1 };
    let mut trainer = Trainer::new(JemConfig::new().init(replay)?, batches, TrainerConfig::new(u64::MAX))
        .with_learning_rate(1e-4.into())
        .with_observer(clock);
    let state =
        trainer.start(network, AdamConfig::new().with_epsilon(1e-8).init(), Noise::host(2), device)?;
    trainer.train(state)?;
    drop(trainer);
    Ok(seconds.iter().skip(1).collect())
}

fn main() -> jem_core::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let iterations = arguments.iter().position(|argument| argument == "--iterations");
    let iterations = iterations.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(3);
    let device = Device::default();
    let (trainable, mut noise) = (device.clone().autodiff(), Noise::host(0));
    let image = |batch| [batch, 3, 32, 32];
    let workload = arguments.first().map_or("", String::as_str);
    let seconds = match workload {
        "mlp" => {
            let network = MlpConfig::new(2, vec![128, 128], 1).init(&mut noise, &trainable)?;
            seconds(network, [256, 2], 1, 40, iterations, &device)?
        }
        "cnn" => {
            let network = CnnConfig::new(vec![64, 128, 256], 10).init(&mut noise, &trainable)?;
            seconds(network, image(64), 10, 20, iterations, &device)?
        }
        "wrn-10-1" | "wrn-16-1" | "wrn-28-10" => {
            let (depth, width, batch) = match workload {
                "wrn-10-1" => (10, 1, 32),
                "wrn-16-1" => (16, 1, 32),
                _ => (28, 10, 64),
            };
            let network = WideResNetConfig::new(depth, width, 10).init(&mut noise, &trainable)?;
            seconds(network, image(batch), 10, 20, iterations, &device)?
        }
        _ => {
            eprintln!("usage: workloads mlp|cnn|wrn-10-1|wrn-16-1|wrn-28-10 [--iterations N]");
            return Ok(());
        }
    };
    println!(
        "{{\"workload\": {workload:?}, \"device\": {:?}, \"seconds\": {seconds:?}}}",
        format!("{device:?}")
    );
    Ok(())
}
