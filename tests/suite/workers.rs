//! Workers: what they compute together, and what becomes of the others when one is gone.

use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use burn::optim::AdamConfig;
use burn::tensor::{Device, Tensor, TensorData};
use jem_core::data::{BatchSource, JointBatch, LoaderConfig, VectorLoader};
use jem_core::energy::EnergyModel;
use jem_core::noise::{Noise, Stream};
use jem_core::objectives::{Jem, JemConfig};
use jem_core::persist::{NamedTensors, Persist, take};
use jem_core::samplers::{ImproperSgld, ImproperSgldConfig, Negatives, Request, SampleSource, run};
use jem_core::train::{
    CheckpointConfig, Checkpoints, Control, Observer, Outcome, Record, Trainer, TrainerConfig, View,
};
use jem_core::workers::{Workers, WorkersConfig};
use jem_core::{Error, Result};
use jem_nn::Mlp;
use rand::RngExt;

use crate::support::{moons, small_model, small_objective, weights};

/// Runs one closure per worker in threads, and gives their results in the order of ranks.
fn together<T: Send>(size: usize, work: impl Fn(Workers) -> T + Sync) -> Vec<T> {
    apart(Workers::local(size).unwrap(), work)
}

fn apart<T: Send>(workers: Vec<Workers>, work: impl Fn(Workers) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = workers.into_iter().map(|workers| scope.spawn(move || work(workers))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn means_have_the_right_value_and_the_same_bits_for_all() {
    for size in [1, 2, 3, 5] {
        // Fewer numbers than workers, and more than fit into what the system holds for a connection.
        for count in [0, 1, 4, 1_000, 3_000_000 / size] {
            let values = |rank: usize| -> Vec<f32> {
                let mut rng = Noise::host(rank as u64).derived(Stream::DATA, 0);
                (0..count).map(|_| rng.random_range(-1.0..1.0)).collect()
            };
            let found = together(size, |mut workers| {
                let mut values = values(workers.rank());
                workers.mean(&mut values).unwrap();
                values
            });
            let all: Vec<_> = (0..size).map(values).collect();
            for at in 0..count {
                let exact = all.iter().map(|values| f64::from(values[at])).sum::<f64>() / size as f64;
                assert!((f64::from(found[0][at]) - exact).abs() < 1e-6, "{size} workers, number {at}");
            }
            let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            assert!(found.iter().all(|values| bits(values) == bits(&found[0])));
        }
    }
}

#[test]
fn words_and_bytes_reach_all() {
    for size in [1, 2, 4] {
        let found = together(size, |mut workers| {
            let rank = workers.rank();
            let words = workers.gather(u64::MAX - rank as u64).unwrap();
            (words, workers.broadcast(vec![rank as u8; rank + 3]).unwrap())
        });
        let words: Vec<u64> = (0..size).map(|rank| u64::MAX - rank as u64).collect();
        assert!(found.iter().all(|(found, bytes)| *found == words && *bytes == [0; 3]));
    }
}

#[test]
fn whoever_is_missing_is_named_by_all() {
    // Worker 2 of 4 leaves; its neighbours and their neighbours hear of it.
    let errors = together(4, |mut workers| {
        workers.mean(&mut [1.0]).unwrap();
        match workers.rank() {
            2 => None,
            _ => Some(workers.mean(&mut [1.0; 8]).unwrap_err()),
        }
    });
    for (rank, error) in errors.iter().enumerate().filter(|(rank, _)| *rank != 2) {
        let error = error.as_ref().unwrap();
        let told = error.to_string();
        // Who writes to it may see a closed connection before its farewell has gone round.
        let known = told == "worker 2 has ended its run" || told.starts_with("worker 2 is gone");
        assert!(known, "worker {rank}: {told}");
        assert!(error.is_recoverable());
    }
    let panics = apart(Workers::local(2).unwrap(), |mut workers| {
        let rank = workers.rank();
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || match rank {
            0 => std::panic::resume_unwind(Box::new("on purpose")),
            _ => {
                let first = workers.gather(1).unwrap_err().to_string();
                // The group is over, and says so again.
                assert_eq!(workers.gather(1).unwrap_err().to_string(), first);
                first
            }
        }))
    });
    assert!(panics[1].as_ref().unwrap().starts_with("worker 0 "), "{:?}", panics[1]);
}

#[test]
fn another_program_is_told_from_this_one() {
    let errors = together(2, |mut workers| match workers.rank() {
        0 => workers.mean(&mut [1.0; 4]).unwrap_err().to_string(),
        _ => workers.mean(&mut [1.0; 6]).unwrap_err().to_string(),
    });
    assert!(errors.iter().any(|error| error.contains("does not run the same program")), "{errors:?}");
    let errors = together(2, |mut workers| match workers.rank() {
        0 => workers.gather(1).map(|_| ()).unwrap_err().to_string(),
        _ => workers.mean(&mut [1.0; 2]).unwrap_err().to_string(),
    });
    assert!(errors.iter().any(|error| error.contains("is a mean of") || error.contains("is a gathering of")));
}

/// Ports that were free a moment ago.
fn addresses(count: usize) -> Vec<String> {
    let listeners: Vec<_> = (0..count).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect()
}

#[test]
fn workers_find_each_other_in_any_order_and_past_strangers() {
    let addresses = addresses(3);
    let found: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|rank| {
                let addresses = addresses.clone();
                scope.spawn(move || {
                    std::thread::sleep(Duration::from_millis(60 * ((rank as u64 + 1) % 3)));
                    let mut workers =
                        WorkersConfig::new(addresses, rank).with_timeout_seconds(20.0).join().unwrap();
                    workers.gather(rank as u64).unwrap()
                })
            })
            .collect();
        // Someone who is no worker comes first, says something, and goes.
        let mut stranger = loop {
            match TcpStream::connect(&addresses[2]) {
                Ok(stream) => break stream,
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        drop(stranger);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(found, vec![vec![0, 1, 2]; 3]);
}

#[test]
fn who_does_not_come_or_counts_differently_is_named_in_time() {
    let start = Instant::now();
    let config = WorkersConfig::new(addresses(2), 0).with_timeout_seconds(0.3);
    let error = config.join().unwrap_err().to_string();
    assert!(error.starts_with("worker 1 cannot be reached at 127.0.0.1:"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(10));

    // One believes in two workers, the others in three.
    let all = addresses(3);
    let errors: Vec<String> = std::thread::scope(|scope| {
        let join = |addresses: Vec<String>, rank| {
            scope.spawn(move || WorkersConfig::new(addresses, rank).with_timeout_seconds(2.0).join())
        };
        let threads = [join(all[..2].to_vec(), 0), join(all.clone(), 1), join(all.clone(), 2)];
        threads.into_iter().filter_map(|thread| thread.join().unwrap().err()).map(|e| e.to_string()).collect()
    });
    assert!(
        errors.iter().any(|error| error.contains("is worker 0 of 2; this is worker 1 of 3")),
        "{errors:?}"
    );

    for (config, field) in [
        (WorkersConfig::new(Vec::<String>::new(), 0), "WorkersConfig.addresses"),
        (WorkersConfig::new(addresses(2), 2), "WorkersConfig.rank = 2"),
        (WorkersConfig::new(addresses(2), 0).with_timeout_seconds(0.0), "WorkersConfig.timeout_seconds = 0"),
        (WorkersConfig::new(["127.0.0.1:0", "no port"], 0), "WorkersConfig.addresses[1] = no port"),
    ] {
        let error = config.join().unwrap_err().to_string();
        assert!(error.starts_with(field), "{error}");
    }
    assert!(Workers::local(0).is_err());
}

#[test]
fn a_silent_worker_is_an_error_after_the_time_agreed() {
    let addresses = addresses(2);
    let errors: Vec<Option<String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|rank| {
                let addresses = addresses.clone();
                scope.spawn(move || {
                    let mut workers =
                        WorkersConfig::new(addresses, rank).with_timeout_seconds(1.0).join().unwrap();
                    if rank == 1 {
                        std::thread::sleep(Duration::from_secs(2)); // there, and saying nothing
                        return None;
                    }
                    workers.mean(&mut [0.0]).err().map(|error| error.to_string())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(errors[0].as_deref(), Some("worker 1 has been silent for 1 s"));
}

/// Part `rank` of `of` of chains and batches that depend on the iteration alone.
#[derive(Clone, Copy)]
struct Part {
    rank: usize,
    of: usize,
}

const WHOLE_BATCH: usize = 32;

impl Part {
    fn slice<const D: usize>(self, whole: Tensor<D>) -> Tensor<D> {
        let width = WHOLE_BATCH / self.of;
        whole.narrow(0, self.rank * width, width)
    }

    fn rows(self, seed: u64, iteration: u64, device: &Device) -> Tensor<2> {
        let mut noise = Noise::host(seed).fork(iteration);
        self.slice(noise.normal([WHOLE_BATCH, 2], Stream::DATA, device))
    }
}

/// Labels by the side of a line that a point is on.
impl BatchSource<JointBatch<2>> for Part {
    fn batches_per_epoch(&self) -> u64 {
        10
    }

    fn batch(&mut self, iteration: u64, _: &mut Noise) -> Result<JointBatch<2>> {
        let device = Device::default();
        let x = self.rows(1, iteration, &device);
        let values: Vec<f32> = x.clone().into_data().iter().collect();
        let labels = values.chunks(2).map(|point| usize::from(point[0] > point[1])).collect();
        Ok(JointBatch { unlabelled: x.clone(), labelled: x, labels })
    }
}

/// Iterations so far.
#[derive(Debug, Clone)]
struct Count(f32);

impl Persist for Count {
    fn save(&self) -> NamedTensors {
        [("count".to_owned(), TensorData::from([self.0]))].into()
    }

    fn load(&mut self, mut saved: NamedTensors) -> Result<()> {
        self.0 = take(&mut saved, "count", &[1])?.iter::<f32>().next().unwrap();
        Ok(())
    }
}

/// Noiseless chains from starts that depend on the iteration alone.
#[derive(Clone)]
struct Chains {
    part: Part,
    sampler: ImproperSgld,
}

impl SampleSource<2> for Chains {
    type State = Count;

    fn start(&self, _: &mut Noise, _: &Device) -> Result<Count> {
        Ok(Count(0.0))
    }

    fn draw(
        &self,
        model: &dyn EnergyModel<2>,
        request: Request<'_>,
        Count(at): Count,
        noise: &mut Noise,
    ) -> Result<(Negatives<2>, Count)> {
        let x = self.part.rows(2, at as u64, request.device);
        let samples = run(&self.sampler, model, x, 5, noise);
        Ok((Negatives { samples, restarted: 0, non_finite: 0 }, Count(at + 1.0)))
    }
}

/// The weights after 20 steps of Adam of one part of the work.
fn train_part(part: Part, workers: Workers) -> Vec<f32> {
    let device = Device::default();
    let sampler = ImproperSgldConfig::new().with_step_size(0.2).with_noise_scale(0.0).init().unwrap();
    let objective: Jem<Chains> =
        JemConfig::new().with_energy_magnitude(0.1).init(Chains { part, sampler }).unwrap();
    let mut trainer = Trainer::new(objective, part, TrainerConfig::new(20))
        .with_learning_rate(1e-2.into())
        .with_workers(workers);
    // The weights of worker 0 count, whatever the others begin with.
    let mut noise = Noise::host(5 + part.rank as u64);
    let model: Mlp = small_model(&mut noise, &device);
    let state = trainer.start(model, AdamConfig::new().init(), noise, &device).unwrap();
    let (state, outcome) = trainer.train(state).unwrap();
    assert_eq!(outcome, Outcome::Finished);
    weights(&state.model)
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn two_workers_are_one_with_twice_the_batch() {
    let alone = train_part(Part { rank: 0, of: 1 }, Workers::alone());
    let of = 2;
    let both = together(of, |workers| train_part(Part { rank: workers.rank(), of }, workers));
    assert_eq!(both[0], both[1]);
    let difference = largest_difference(&both[0], &alone);
    assert!(difference < 1e-5, "{difference:e}");
    // Half the work alone is something else.
    let half = train_part(Part { rank: 0, of }, Workers::alone());
    assert!(largest_difference(&half, &alone) > 1e-3);
}

/// Ends the run of its worker after so many iterations.
struct StopAfter(u64);

impl<M, S> Observer<M, S> for StopAfter {
    fn on_record(&mut self, _: &Record, view: &View<'_, M, S>) -> Result<Control> {
        Ok(if view.iteration == self.0 { Control::Stop } else { Control::Continue })
    }
}

/// Kills this process at an iteration, or goes on.
struct Slow(Duration);

impl<M, S> Observer<M, S> for Slow {
    fn on_record(&mut self, _: &Record, _: &View<'_, M, S>) -> Result<Control> {
        std::thread::sleep(self.0);
        Ok(Control::Continue)
    }
}

/// A worker's run on its share of two moons, from the newest checkpoint that all have if `resume` says so.
fn train(
    folder: &Path,
    mut workers: Workers,
    resume: bool,
    stop: u64,
    pause: Duration,
) -> Result<(u64, Vec<f32>)> {
    let device = Device::default();
    let (rank, size) = (workers.rank(), workers.size());
    let folder = folder.join(format!("worker-{rank}"));
    let checkpoints = Checkpoints::open(CheckpointConfig::new(&folder).with_every(5))?;
    let saved = if resume { Some(Checkpoints::latest_of_all(&folder, &mut workers)?.0) } else { None };
    let share = moons(&device).labelled().share(rank, size)?;
    let batches = VectorLoader::new(share.clone(), share, &LoaderConfig::new(16), &device)?;
    let mut trainer = Trainer::new(small_objective(64), batches, TrainerConfig::new(30))
        .with_learning_rate(1e-2.into())
        .with_checkpoints(checkpoints)
        .with_observer(StopAfter(if rank == 0 { stop } else { u64::MAX }))
        .with_observer(Slow(pause))
        .with_workers(workers);
    let mut noise = Noise::host(9);
    let model = small_model(&mut noise, &device);
    let optimizer = AdamConfig::new().init();
    let state = match saved {
        Some(saved) => trainer.resume(model, optimizer, saved, &device)?,
        None => trainer.start(model, optimizer, noise, &device)?,
    };
    let (state, _) = trainer.train(state)?;
    Ok((state.iteration, weights(&state.model)))
}

#[test]
fn the_whole_resumes_from_what_all_workers_have_bit_for_bit() {
    let (whole, parted) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let run = |folder: &Path, resume, stop| {
        together(2, |workers| train(folder, workers, resume, stop, Duration::ZERO).unwrap())
    };
    let expected = run(whole.path(), false, u64::MAX);
    assert_eq!(expected[0], expected[1]);

    // One worker's observer ends the run for both, after 18 iterations; then one loses what it wrote last.
    let stopped = run(parted.path(), false, 18);
    assert_eq!(stopped.iter().map(|(iteration, _)| *iteration).collect::<Vec<_>>(), [18, 18]);
    let newest = parted.path().join("worker-1/iteration-00000018/manifest.json");
    std::fs::remove_file(newest).unwrap();
    assert_eq!(run(parted.path(), true, u64::MAX), expected);

    // What only some have is no checkpoint of the whole.
    std::fs::remove_dir_all(parted.path().join("worker-1")).unwrap();
    let errors = together(2, |workers| {
        train(parted.path(), workers, true, u64::MAX, Duration::ZERO).unwrap_err().to_string()
    });
    for error in errors {
        assert!(error.contains("worker 1 has no checkpoint that all workers have"), "{error}");
    }
}

const CHILD: &str = "JEM_CORE_TEST_WORKER";

/// Not a test of its own: the processes of the next one. Leaves its error in a file.
#[test]
#[ignore = "run by killing_a_worker_ends_the_others_with_an_error"]
fn child() {
    let Some(arguments) = std::env::var_os(CHILD) else { return };
    let arguments = arguments.into_string().unwrap();
    let mut parts = arguments.split(' ');
    let rank: usize = parts.next().unwrap().parse().unwrap();
    let folder = PathBuf::from(parts.next().unwrap());
    let workers = WorkersConfig::new(parts, rank).with_timeout_seconds(60.0).join().unwrap();
    // Thirty iterations of 100 ms, were it not for the kill.
    let error = train(&folder, workers, false, u64::MAX, Duration::from_millis(100)).unwrap_err();
    let lost = matches!(error, Error::Worker { worker: 1, .. });
    std::fs::write(folder.join(format!("error-{rank}")), format!("{lost} {error}")).unwrap();
}

#[test]
fn killing_a_worker_ends_the_others_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let addresses = addresses(3).join(" ");
    let mut children: Vec<_> = (0..3)
        .map(|rank| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "workers::child", "--ignored"])
                .env(CHILD, format!("{rank} {} {addresses}", folder.path().display()))
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let started = Instant::now();
    while !folder.path().join("worker-1/iteration-00000005").exists() {
        assert!(started.elapsed() < Duration::from_secs(120), "no checkpoint after two minutes");
        std::thread::sleep(Duration::from_millis(5));
    }
    children[1].kill().unwrap(); // SIGKILL
    let killed = Instant::now();
    assert!(!children[1].wait().unwrap().success());
    for rank in [0, 2] {
        assert!(children[rank].wait().unwrap().success());
        let error = std::fs::read_to_string(folder.path().join(format!("error-{rank}"))).unwrap();
        assert!(error.starts_with("true worker 1 is gone"), "worker {rank}: {error}");
    }
    // Long before the 60 s of silence that were agreed on.
    assert!(killed.elapsed() < Duration::from_secs(30), "{:?}", killed.elapsed());
}
