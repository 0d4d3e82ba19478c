//! Whole training iterations of four workloads, timed one by one for `benches/compare`:
//! `cargo bench --bench workloads -- cnn --iterations 3`.
//!
//! Workloads are mlp, cnn and wrn-DEPTH-WIDTH; `--batch`, `--steps` and `--buffer` vary their size for
//! `benches/growth`. A line of JSON says the seconds of each iteration after the first. The work is that of
//! `benches/peers/jem_iteration.py`: a draw from a replay buffer, K chain steps, the joint loss, a backward pass and a
//! step of Adam. The backend is Burn's default.

mod support;

use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use burn::module::Module;
use burn::optim::AdamConfig;
use burn::tensor::Device;
use clap::Parser;
use jem_core::data::JointBatch;
use jem_core::energy::Classifier;
use jem_core::noise::{Noise, Stream};
use jem_core::objectives::JemConfig;
use jem_core::samplers::{ImproperSgldConfig, ReplayConfig};
use jem_core::train::{Control, Observer, Record, Trainer, TrainerConfig, View};
use jem_nn::{CnnConfig, MlpConfig, WideResNetConfig};
use support::Same;

#[derive(Parser)]
struct Options {
    /// mlp, cnn, or wrn-DEPTH-WIDTH.
    workload: String,
    /// Iterations that are timed, after one that is not.
    #[arg(long, default_value_t = 3)]
    iterations: usize,
    /// Samples in a batch, and chains. Default 256 for mlp, 64 for cnn and wrn-28-10, 32 for other wrn.
    #[arg(long)]
    batch: Option<usize>,
    /// K, the chain steps of an iteration. Default 40 for mlp, 20 for others.
    #[arg(long)]
    steps: Option<usize>,
    /// Samples in the replay buffer.
    #[arg(long, default_value_t = 10_000)]
    buffer: usize,
    /// What `cargo bench` adds.
    #[arg(long, hide = true)]
    bench: bool,
}

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
    default_steps: usize,
    options: &Options,
    device: &Device,
) -> jem_core::Result<Vec<f64>> {
    let sampler = ImproperSgldConfig::new().init()?;
    let replay = ReplayConfig::new(&shape[1..])
        .with_capacity(options.buffer)
        .with_num_steps(options.steps.unwrap_or(default_steps))
        .init(sampler)?;
    let x = Noise::host(1).uniform(shape, -1.0..1.0, Stream::DATA, device);
    let labels = (0..shape[0]).map(|index| index % classes).collect();
    let batches = Same(JointBatch { unlabelled: x.clone(), labelled: x, labels });
    let (sender, seconds) = channel();
    let left = options.iterations + 1;
    let clock = Clock { last: Instant::now(), seconds: sender, device: device.clone(), left };
    let mut trainer = Trainer::new(JemConfig::new().init(replay)?, batches, TrainerConfig::new(u64::MAX))
        .with_learning_rate(1e-4.into())
        .with_observer(clock);
    let state =
        trainer.start(network, AdamConfig::new().with_epsilon(1e-8).init(), Noise::host(2), device)?;
    trainer.train(state)?;
    drop(trainer);
    Ok(seconds.iter().skip(1).collect())
}

/// Depth and width of "wrn-DEPTH-WIDTH".
fn wide_resnet(workload: &str) -> Option<(usize, usize)> {
    let (depth, width) = workload.strip_prefix("wrn-")?.split_once('-')?;
    Some((depth.parse().ok()?, width.parse().ok()?))
}

fn main() -> jem_core::Result<()> {
    let options = Options::parse();
    let device = Device::default();
    let (trainable, mut noise) = (device.clone().autodiff(), Noise::host(0));
    let batch = |default| options.batch.unwrap_or(default);
    let image = |default| [batch(default), 3, 32, 32];
    let workload = options.workload.as_str();
    let seconds = match (workload, wide_resnet(workload)) {
        ("mlp", _) => {
            let network = MlpConfig::new(2, vec![128, 128], 1).init(&mut noise, &trainable)?;
            seconds(network, [batch(256), 2], 1, 40, &options, &device)?
        }
        ("cnn", _) => {
            let network = CnnConfig::new(vec![64, 128, 256], 10).init(&mut noise, &trainable)?;
            seconds(network, image(64), 10, 20, &options, &device)?
        }
        (_, Some((depth, width))) => {
            let network = WideResNetConfig::new(depth, width, 10).init(&mut noise, &trainable)?;
            let shape = image(if (depth, width) == (28, 10) { 64 } else { 32 });
            seconds(network, shape, 10, 20, &options, &device)?
        }
        _ => {
            eprintln!("workload = {workload:?} is not mlp, cnn or wrn-DEPTH-WIDTH");
            std::process::exit(2);
        }
    };
    println!(
        "{{\"workload\": {workload:?}, \"device\": {:?}, \"seconds\": {seconds:?}}}",
        format!("{device:?}")
    );
    Ok(())
}
