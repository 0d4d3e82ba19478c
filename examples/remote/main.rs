//! A joint energy model trained on a device of another machine, through Burn's remote device.
//!
//! ```text
//! cargo run --release --features remote-server --example remote                     both ends on this machine
//! cargo run --release --features remote-server --example remote -- --latency-ms 1   over a slower link
//! cargo run --features remote-server --example remote -- --quick                    seconds
//!
//! on the machine that has the device, and on the one that trains:
//! cargo run --release --features remote-server --example remote -- --serve 10.0.0.2:3000 --token SECRET
//! cargo run --release --features remote-server --example remote -- --connect ws://10.0.0.2:3000 --token SECRET
//! ```
//!
//! Without `--serve` and `--connect` it starts a server as a process of its own, trains on the device here and on the
//! one of the server with the same seed, and compares numbers and times. `--resume` goes on after a server was lost.

mod link;
mod server;
mod train;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use burn::remote::RemoteHost;
use burn::tensor::{Device, Tensor};
use clap::Parser;

use link::Link;
use train::{Run, largest_difference, train};

/// What goes wrong here comes from three crates.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// A joint energy model trained on a device of another machine.
#[derive(Parser, Debug)]
struct Options {
    /// Lends this machine's device at this address, until it is interrupted.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "connect")]
    serve: Option<String>,
    /// Trains on the device of the server at this address.
    #[arg(long, value_name = "URL")]
    connect: Option<String>,
    /// A word that the client must know. It goes over the network as it is.
    #[arg(long)]
    token: Option<String>,
    /// Samples in a batch.
    #[arg(long, default_value_t = 64)]
    batch: usize,
    /// Iterations.
    #[arg(long, default_value_t = 100)]
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
    /// Draws noise and keeps the replay buffer where the device is, so that neither crosses the network.
    #[arg(long)]
    all_remote: bool,
    /// Puts a link of so many milliseconds, each way, before the server that it starts.
    #[arg(long, value_name = "MS", conflicts_with_all = ["serve", "connect"])]
    latency_ms: Option<f64>,
    /// Puts a link of so many million bits per second, each way, before the server that it starts.
    #[arg(long, value_name = "MBIT", conflicts_with_all = ["serve", "connect"])]
    mbit: Option<f64>,
    /// Where metrics and checkpoints go.
    #[arg(long, default_value = "runs/remote")]
    out: PathBuf,
    /// Goes on from the newest checkpoint.
    #[arg(long, requires = "connect")]
    resume: bool,
    /// A few iterations.
    #[arg(long)]
    quick: bool,
}

impl Options {
    fn iterations(&self) -> u64 {
        if self.quick { self.iterations.min(4) } else { self.iterations }
    }
}

/// The first device of the server at `url`.
fn connect(url: &str, token: Option<&str>) -> Outcome<Device> {
    let mut host = RemoteHost::websocket(url);
    if let Some(token) = token {
        host = host.with_credential(token);
    }
    Ok(Device::remote_options(&host).init()?)
}

/// A run on a remote device. Burn has no error for a server that is gone: reading a number from it panics.
fn train_on(url: &str, options: &Options) -> Outcome<Run> {
    let device = connect(url, options.token.as_deref())?;
    println!("one number read from {url} takes {:.3} ms", 1e3 * time_of_a_read(&device));
    match catch_unwind(AssertUnwindSafe(|| train(options, &device, "remote"))) {
        Ok(run) => Ok(run?),
        Err(_) => Err(format!("training on {url} broke off: start the server again, then resume").into()),
    }
}

/// Seconds from asking for a number to having it.
fn time_of_a_read(device: &Device) -> f64 {
    const READS: u32 = 20;
    let number = Tensor::<1>::zeros([1], device);
    let read = || number.clone().into_scalar::<f32>();
    read();
    let started = Instant::now();
    for _ in 0..READS {
        read();
    }
    started.elapsed().as_secs_f64() / f64::from(READS)
}

/// A server on this machine that ends with whoever holds it.
struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    fn start(token: Option<&str>) -> Outcome<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--serve", &address.to_string()]);
        command.args(token.iter().flat_map(|token| ["--token", token]));
        let mut server = Self { process: command.spawn()?, address };
        // It listens once it answers; a link before it would break off a client that comes too early.
        while TcpStream::connect(address).is_err() {
            if let Some(status) = server.process.try_wait()? {
                return Err(format!("the server ended at once: {status}").into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The same run here and on a server's device.
fn compare(options: &Options) -> Outcome<()> {
    let server = Server::start(options.token.as_deref())?;
    let slower = options.latency_ms.is_some() || options.mbit.is_some();
    let latency = Duration::try_from_secs_f64(1e-3 * options.latency_ms.unwrap_or(0.0))?;
    let bytes_per_second = 1e6 / 8.0 * options.mbit.unwrap_or(f64::INFINITY);
    let link = slower.then(|| Link::to(server.address, latency, bytes_per_second)).transpose()?;
    let address = link.as_ref().map_or(server.address, Link::address);

    let remote = train_on(&format!("ws://{address}"), options)?;
    let iterations = options.iterations() as f64;
    if let Some((sent, received)) = link.as_ref().map(Link::bytes) {
        let [sent, received] = [sent, received].map(|bytes| bytes as f64 / 1e3 / iterations);
        println!(
            "over the link, an iteration: {sent:.0} kB to the server, {received:.0} kB back (start and end included)"
        );
    }
    drop((link, server));
    let local = train(options, &Device::default(), "local")?;

    for (name, run) in [("here", &local), ("remote", &remote)] {
        println!(
            "{name:>6}: {:.1} ms an iteration, test accuracy {:.1} %",
            1e3 * run.seconds,
            100.0 * run.accuracy
        );
    }
    println!("remote takes {:.2} times as long", remote.seconds / local.seconds);
    for iterations in [1, 10, 100].into_iter().filter(|count| *count as u64 <= options.iterations()) {
        let (name, difference) =
            largest_difference(&local.records[..iterations], &remote.records[..iterations]);
        println!("largest relative difference in {iterations} iterations: {difference:.1e}, in {name}");
    }
    Ok(())
}

fn run(options: &Options) -> Outcome<()> {
    match (&options.serve, &options.connect) {
        (Some(address), _) => server::serve(address, options.token.as_deref()),
        (None, Some(url)) => {
            let run = train_on(url, options)?;
            println!("{:.1} ms an iteration, test accuracy {:.1} %", 1e3 * run.seconds, 100.0 * run.accuracy);
            Ok(())
        }
        (None, None) => compare(options),
    }
}

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
