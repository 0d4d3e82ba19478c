//! One joint energy model trained by several processes, here or on several machines.
//!
//! ```text
//! cargo run --release --example data_parallel                        two processes on this machine
//! cargo run --release --example data_parallel -- --workers 1         the same work by one of them
//! cargo run --release --example data_parallel -- --resume            go on from the checkpoints of all
//! cargo run --example data_parallel -- --quick                       what CI runs: seconds
//!
//! on each of two machines, with --rank 0 and --rank 1:
//! cargo run --release --example data_parallel -- --addresses 10.0.0.1:7000,10.0.0.2:7000 --rank 0
//! ```
//!
//! The processes share the digits and the processor among them. Each prints its time for an iteration, how much of it
//! went into what they exchange, and a sum over its weights, which is the same for all.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use burn::module::Module;
use burn::optim::AdamConfig;
use burn::tensor::Device;
use clap::Parser;
use jem_core::data::{ImageLoader, ImageSet, LoaderConfig};
use jem_core::noise::Noise;
use jem_core::objectives::JemConfig;
use jem_core::samplers::{ImproperSgldConfig, ReplayConfig};
use jem_core::schedule::Schedule;
use jem_core::train::{CheckpointConfig, Checkpoints, Trainer, TrainerConfig, validate};
use jem_core::workers::{Workers, WorkersConfig};
use jem_core::{Error, Result};
use jem_data::digits;
use jem_nn::CnnConfig;

#[derive(Parser, Debug)]
#[command(about = "One joint energy model trained by several processes.")]
struct Options {
    /// Processes to start on this machine.
    #[arg(long, default_value_t = 2, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    workers: usize,
    /// host:port of every worker, where they are started by hand.
    #[arg(long, value_delimiter = ',', requires = "rank")]
    addresses: Vec<String>,
    /// Which of the addresses is this worker's.
    #[arg(long, requires = "addresses")]
    rank: Option<usize>,
    /// Samples in a batch, over all workers.
    #[arg(long, default_value_t = 64)]
    batch: usize,
    /// Iterations.
    #[arg(long, default_value_t = 200)]
    iterations: u64,
    /// Steps of a chain.
    #[arg(long, default_value_t = 20)]
    steps: usize,
    /// Channels of the convolutions.
    #[arg(long, value_delimiter = ',', default_values_t = [32, 64])]
    channels: Vec<usize>,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds that a worker may be silent.
    #[arg(long, default_value_t = 120.0)]
    timeout: f64,
    /// Where each worker has a folder for its checkpoints.
    #[arg(long, default_value = "runs/data_parallel")]
    out: PathBuf,
    /// Goes on from the newest checkpoint that all workers have.
    #[arg(long)]
    resume: bool,
    /// A few iterations.
    #[arg(long)]
    quick: bool,
}

impl Options {
    fn iterations(&self) -> u64 {
        if self.quick { 4 } else { self.iterations }
    }
}

/// Starts one process per worker, each with its share of the processor, and waits for all.
fn start_all(options: &Options) -> Result<ExitCode> {
    let failed = |error: std::io::Error| Error::worker(0, format!("cannot be started: {error}"));
    let size = options.workers;
    let addresses = free_addresses(size).map_err(failed)?.join(",");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut children = Vec::new();
    for rank in 0..size {
        let child = Command::new(std::env::current_exe().map_err(failed)?)
            .args(std::env::args_os().skip(1))
            .args(["--addresses", &addresses, "--rank", &rank.to_string()])
            .env("RAYON_NUM_THREADS", (cores / size).max(1).to_string())
            .spawn();
        children.push(child.map_err(failed)?);
    }
    let mut code = ExitCode::SUCCESS;
    for child in &mut children {
        if !child.wait().map_err(failed)?.success() {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Ports of the loopback device that are free at this moment.
fn free_addresses(count: usize) -> std::io::Result<Vec<String>> {
    let listeners: Vec<_> =
        (0..count).map(|_| std::net::TcpListener::bind("127.0.0.1:0")).collect::<std::io::Result<_>>()?;
    listeners.iter().map(|listener| listener.local_addr().map(|address| address.to_string())).collect()
}

/// One worker, from joining the others to its last checkpoint.
fn work(options: &Options, mut workers: Workers) -> Result<()> {
    let (rank, size) = (workers.rank(), workers.size());
    let device = Device::default();
    let split = digits::digits()?;
    let share = split.train.share(rank, size)?;
    let batches = ImageLoader::new(share.clone(), share, &LoaderConfig::new(options.batch / size), &device)?;

    let sampler = ImproperSgldConfig::new().with_step_size(1.0).with_noise_scale(0.01).init()?;
    let replay = ReplayConfig::new(split.train.image_shape())
        .with_capacity(1_000usize.div_ceil(size))
        .with_num_steps(options.steps)
        .init(sampler)?;
    let objective = JemConfig::new().with_energy_magnitude(0.1).init(replay)?;
    let mut noise = Noise::host(options.seed);
    let model = CnnConfig::new(options.channels.clone(), split.train.num_classes())
        .with_in_channels(1)
        .init(&mut noise, &device.clone().autodiff())?;

    let folder = options.out.join(format!("worker-{rank}"));
    let checkpoints = Checkpoints::open(CheckpointConfig::new(&folder).with_every(50))?;
    let saved = match options.resume {
        true => Some(Checkpoints::latest_of_all(&folder, &mut workers)?.0),
        false => None,
    };
    let exchange = time_of_an_exchange(&mut workers, model.num_params())?;
    let mut trainer = Trainer::new(objective, batches, TrainerConfig::new(options.iterations()))
        .with_learning_rate(Schedule::Constant(1e-3).with_warmup(20))
        .with_checkpoints(checkpoints)
        .with_workers(workers);
    let state = match saved {
        Some(saved) => trainer.resume(model, AdamConfig::new().init(), saved, &device)?,
        None => trainer.start(model, AdamConfig::new().init(), noise, &device)?,
    };
    let (before, started) = (state.iteration, Instant::now());
    let (state, outcome) = trainer.train(state)?;
    let iteration = started.elapsed().as_secs_f64() / (state.iteration - before).max(1) as f64;
    outcome.into_result(state.iteration)?;

    let sum = sum_of_weights(&state.model);
    println!(
        "worker {rank} of {size}: {:.1} ms an iteration, {:.2} ms of them for the gradients of {} weights; \
         sum of weights {sum:.9}",
        1e3 * iteration,
        1e3 * exchange,
        state.model.num_params(),
    );
    if rank == 0 {
        report(&state.model.valid(), &split.test, &device)?;
    }
    Ok(())
}

/// Seconds for a mean of so many numbers, once the others are there.
fn time_of_an_exchange(workers: &mut Workers, count: usize) -> Result<f64> {
    const ROUNDS: u32 = 10;
    let mut numbers = vec![0.0; count];
    workers.gather(0)?;
    let started = Instant::now();
    (0..ROUNDS).try_for_each(|_| workers.mean(&mut numbers))?;
    Ok(started.elapsed().as_secs_f64() / f64::from(ROUNDS))
}

fn sum_of_weights<M: Module>(model: &M) -> f64 {
    use burn::module::{ModuleVisitor, Param};
    struct Sum(f64);
    impl ModuleVisitor for Sum {
        fn visit_float<const D: usize>(&mut self, param: &Param<burn::tensor::Tensor<D>>) {
            self.0 += param.val().into_data().iter::<f64>().sum::<f64>();
        }
    }
    let mut sum = Sum(0.0);
    model.visit(&mut sum);
    sum.0
}

fn report(model: &jem_nn::Cnn, test: &ImageSet, device: &Device) -> Result<()> {
    let measured = validate(model, test, 256, device)?;
    println!("test accuracy {:.1} % on {} digits", 100.0 * measured.accuracy, test.len());
    Ok(())
}

fn run(options: &Options) -> Result<ExitCode> {
    let Some(rank) = options.rank else {
        return match options.workers {
            1 => work(options, Workers::alone()).map(|()| ExitCode::SUCCESS),
            _ => start_all(options),
        };
    };
    let config = WorkersConfig::new(options.addresses.clone(), rank).with_timeout_seconds(options.timeout);
    work(options, config.join()?).map(|()| ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    run(&Options::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}
