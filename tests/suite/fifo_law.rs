//! The law of the replay queue: first in first out, whom chains start from, how bytes round, and exact resume.

use std::collections::HashSet;

use burn::optim::AdamConfig;
use burn::tensor::{Device, Tensor, TensorData};
use jem_core::energy::analytic::Gaussian;
use jem_core::noise::{Noise, Stream};
use jem_core::objectives::JemConfig;
use jem_core::persist::Persist;
use jem_core::samplers::{
    ChainStart, FifoBuffer, FifoReplay, FifoReplayConfig, ImproperSgldConfig, Request, SampleSource,
};
use jem_core::train::{CheckpointConfig, Checkpoints, Trainer, TrainerConfig};

use crate::support::{Add, Z, moons, small_model, values, weights};

/// Fresh starts at 0, or at ten times their label.
struct Marked;

impl ChainStart<2> for Marked {
    fn draw(&self, shape: [usize; 2], labels: Option<&[usize]>, _: &mut Noise, device: &Device) -> Tensor<2> {
        let of = |i: usize| labels.map_or(0.0, |labels| 10.0 * labels[i] as f32);
        let marks: Vec<f32> = (0..shape[0]).flat_map(|i| vec![of(i); shape[1]]).collect();
        Tensor::from_data(TensorData::new(marks, shape), device)
    }
}

/// Levels are the whole numbers 0 to 255.
fn replay(capacity: usize, rho: f64, step: f32) -> FifoReplay<Add, Marked> {
    FifoReplayConfig::new([2])
        .with_capacity(capacity)
        .with_restart_probability(rho)
        .with_num_steps(1)
        .with_bounds(0.0, 255.0)
        .init_from(Add(step), Marked)
        .unwrap()
}

fn start(replay: &FifoReplay<Add, Marked>) -> FifoBuffer<2> {
    SampleSource::<2>::start(replay, &mut Noise::host(0), &Device::default()).unwrap()
}

/// A queue that holds the numbers given, pushed in that order.
fn holding(replay: &FifoReplay<Add, Marked>, numbers: &[f32], labels: Option<&[usize]>) -> FifoBuffer<2> {
    let mut queue = start(replay);
    let data: Vec<f32> = numbers.iter().flat_map(|x| [*x; 2]).collect();
    queue.push(&Tensor::from_data(TensorData::new(data, [numbers.len(), 2]), &Device::default()), labels);
    queue
}

fn contents(queue: &FifoBuffer<2>) -> Vec<f32> {
    values(queue.read(&queue.by_age(), &Device::default())).chunks(2).map(|x| x[0]).collect()
}

fn draw(
    replay: &FifoReplay<Add, Marked>,
    queue: FifoBuffer<2>,
    count: usize,
    labels: Option<&[usize]>,
    noise: &mut Noise,
) -> (jem_core::samplers::Negatives<2>, FifoBuffer<2>) {
    let device = Device::default();
    let request = Request { count, labels, device: &device };
    replay.draw(&Gaussian::standard(), request, queue, noise).unwrap()
}

#[test]
fn what_comes_in_first_goes_out_first() {
    let replay = replay(5, 0.0, 1.0);
    let mut queue = start(&replay);
    assert!(queue.is_empty() && queue.capacity() == 5);
    for (push, expected) in [
        (vec![1.0, 2.0], vec![1.0, 2.0]),
        (vec![3.0, 4.0], vec![1.0, 2.0, 3.0, 4.0]),
        (vec![5.0, 6.0, 7.0], vec![3.0, 4.0, 5.0, 6.0, 7.0]),
        ((10..17).map(|x| x as f32).collect(), vec![12.0, 13.0, 14.0, 15.0, 16.0]), // more than there are slots
    ] {
        let n = push.len();
        let data: Vec<f32> = push.iter().flat_map(|x: &f32| [*x; 2]).collect();
        queue.push(&Tensor::from_data(TensorData::new(data, [n, 2]), &Device::default()), None);
        assert_eq!(contents(&queue), expected);
    }
    // The samples of a draw go in at the end, and those they came from stay as they were.
    let (negatives, queue) = draw(&replay, queue, 2, None, &mut Noise::host(1));
    let ends: Vec<f32> = values(negatives.samples).chunks(2).map(|x| x[0]).collect();
    assert!(ends.iter().all(|x| (13.0..=17.0).contains(x)), "{ends:?}");
    assert_eq!(contents(&queue), [14.0, 15.0, 16.0, ends[0], ends[1]]);
}

/// n = 20,000 chains: the number of fresh starts is binomial(n, ρ); α = 1e-5. While the queue is empty all are fresh.
#[test]
fn chains_start_afresh_with_probability_rho() {
    let (rho, n) = (0.05, 20_000);
    let replay = replay(100, rho, 0.0);
    let mut noise = Noise::host(3);
    let (mut fresh, mut reported, mut seen) = (0, 0, HashSet::new());
    for _ in 0..n / 100 {
        let numbers: Vec<f32> = (1..=100).map(|x| x as f32).collect();
        let (negatives, _) = draw(&replay, holding(&replay, &numbers, None), 100, None, &mut noise);
        let samples = values(negatives.samples);
        fresh += samples.chunks(2).filter(|x| x[0] == 0.0).count();
        reported += negatives.restarted;
        seen.extend(samples.chunks(2).map(|x| x[0] as usize));
    }
    let consistent =
        |rho: f64| (fresh as f64 - f64::from(n) * rho).abs() < Z * (f64::from(n) * rho * (1.0 - rho)).sqrt();
    assert_eq!(fresh, reported);
    assert!(consistent(rho), "{fresh} of {n}");
    assert!(!consistent(0.06) && !consistent(0.04)); // another ρ would be found out
    assert_eq!(seen.len(), 101, "every sample is drawn some time");
    let (negatives, queue) = draw(&replay, start(&replay), 30, None, &mut noise);
    assert_eq!((negatives.restarted, queue.len()), (30, 30));
}

/// Samples carry their label: a chain for y starts from a sample of y, or afresh where there is none.
#[test]
fn conditional_chains_start_from_their_own_class() {
    let replay = replay(40, 0.2, 1.0);
    let numbers: Vec<f32> = (0..40).map(|i| 100.0 + i as f32).collect();
    let of: Vec<usize> = (0..40).map(|i| i % 2).collect();
    let queue = holding(&replay, &numbers, Some(&of));
    let mut noise = Noise::host(5);
    let labels: Vec<usize> = (0..30).map(|i| [1, 0, 2][i % 3]).collect();
    let mut seen = HashSet::new();
    for _ in 0..60 {
        let (negatives, after) = draw(&replay, queue.clone(), 30, Some(&labels), &mut noise);
        for (x, label) in values(negatives.samples).chunks(2).zip(&labels) {
            let from = x[0] - 1.0; // one step
            if from < 100.0 {
                assert_eq!(from, 10.0 * *label as f32, "a fresh start of another class");
            } else {
                assert!(*label < 2, "class 2 has no sample");
                assert_eq!((from as usize - 100) % 2, *label);
                seen.insert(from as usize);
            }
        }
        assert!((10..=30).contains(&negatives.restarted)); // all ten of class 2 at least
        let newest: Vec<Option<usize>> =
            after.by_age()[10..].iter().map(|slot| after.labels()[*slot]).collect();
        assert_eq!(newest, labels.iter().map(|label| Some(*label)).collect::<Vec<_>>());
    }
    assert_eq!(seen.len(), 40);
    // Labelled and unlabelled draws may share a queue: those with a label leave the others alone.
    let plain = holding(&replay, &numbers, None);
    let (negatives, _) = draw(&replay, plain, 30, Some(&labels), &mut noise);
    assert_eq!(negatives.restarted, 30);
}

/// 4,000 numbers in the box come back within half a level, and some are as far as that; outside, the edge is stored.
#[test]
fn bytes_are_off_by_half_a_level_at_most() {
    let device = Device::default();
    for (low, high) in [(0.0f32, 1.0f32), (-1.0, 1.0), (-3.0, 0.5)] {
        let config = FifoReplayConfig::new([2]).with_capacity(2_000).with_bounds(low, high);
        let replay = config.init_from(Add(0.0), Marked).unwrap();
        let mut queue = start(&replay);
        let x = Noise::host(9).uniform([2_000, 2], low..high, Stream::DATA, &device);
        queue.push(&x, None);
        let back = values(queue.read(&queue.by_age(), &device));
        let off = values(x).iter().zip(&back).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let half = (high - low) / 510.0;
        assert!(off <= half * 1.0001 && off > 0.95 * half, "{off} of {half}");
        // What has been rounded is rounded no more.
        let again = queue.read(&queue.by_age(), &device);
        queue.push(&again, None);
        assert_eq!(values(queue.read(&queue.by_age(), &device)), back);
        queue.push(&Tensor::from_floats([[low - 1.0, high + 7.0], [low, high]], &device), None);
        let newest = &queue.by_age()[1_998..];
        for (found, expected) in values(queue.read(newest, &device)).iter().zip([low, high, low, high]) {
            assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
        }
    }
}

/// A chain that ends in a NaN is replaced by a fresh start of its class, counted, and not stored.
#[test]
fn non_finite_samples_are_counted_and_never_stored() {
    for poison in [f32::NAN, f32::INFINITY] {
        let replay = replay(20, 0.0, poison);
        let queue = holding(&replay, &[50.0, 51.0], Some(&[0, 1]));
        let (negatives, queue) = draw(&replay, queue, 4, Some(&[1, 0, 1, 1]), &mut Noise::host(2));
        assert_eq!((negatives.non_finite, negatives.restarted), (4, 0));
        assert_eq!(values(negatives.samples), [10.0, 10.0, 0.0, 0.0, 10.0, 10.0, 10.0, 10.0]);
        assert_eq!(contents(&queue), [50.0, 51.0, 10.0, 0.0, 10.0, 10.0]);
    }
}

#[test]
fn a_saved_queue_goes_on_as_the_one_that_was_saved() {
    let replay = replay(7, 0.3, 1.0);
    let mut noise = Noise::host(8);
    let mut queue = start(&replay);
    for _ in 0..3 {
        queue = draw(&replay, queue, 3, Some(&[0, 2, 1]), &mut noise).1;
    }
    let mut loaded = start(&replay);
    loaded.load(queue.save()).unwrap();
    let mut noises = [noise.clone(), noise];
    let mut queues = [queue, loaded];
    for _ in 0..4 {
        let mut drawn = Vec::new();
        for (queue, noise) in queues.iter_mut().zip(&mut noises) {
            let (negatives, next) = draw(&replay, queue.clone(), 3, Some(&[1, 1, 2]), noise);
            *queue = next;
            drawn.push(values(negatives.samples));
        }
        assert_eq!(drawn[0], drawn[1]);
        assert_eq!(queues[0].save(), queues[1].save());
        assert_eq!(queues[0].by_age(), queues[1].by_age());
    }
    // Another capacity, and a place that cannot be, are refused.
    let saved = queues[0].save();
    let other = self::replay(8, 0.3, 1.0);
    assert!(start(&other).load(saved.clone()).unwrap_err().to_string().contains("fifo_replay"));
    let mut broken = saved;
    broken.insert("fifo_filled_and_next".to_owned(), TensorData::new(vec![7.0f32, 7.0], [2]));
    let mut whole = start(&replay);
    assert!(whole.load(broken).unwrap_err().to_string().contains("fifo_filled_and_next"));
    assert!(whole.is_empty(), "a refused state changes nothing");
}

/// A run of 12 iterations, and one of 7 that goes on to 12 from its files: the same weights, queue and noise.
#[test]
fn a_run_with_a_queue_resumes_exactly() {
    let device = Device::default();
    let run = |folder: &std::path::Path, iterations: u64, resume: bool| {
        let sampler = ImproperSgldConfig::new().with_step_size(0.1).with_bounds(-4.0, 4.0).init().unwrap();
        let source = FifoReplayConfig::new([2])
            .with_bounds(-4.0, 4.0)
            .with_capacity(100)
            .with_num_steps(3)
            .init(sampler)
            .unwrap();
        let objective = JemConfig::new().init(source).unwrap();
        let mut trainer = Trainer::new(objective, moons(&device), TrainerConfig::new(iterations))
            .with_checkpoints(Checkpoints::open(CheckpointConfig::new(folder)).unwrap());
        let mut noise = Noise::host(4);
        let model = small_model(&mut noise, &device);
        let optimizer = AdamConfig::new().init();
        let state = if resume {
            let (saved, _) = Checkpoints::latest(folder).unwrap();
            assert_eq!(saved.progress.iteration, 7);
            trainer.resume(model, optimizer, saved, &device).unwrap()
        } else {
            trainer.start(model, optimizer, noise, &device).unwrap()
        };
        trainer.train(state).unwrap().0
    };
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let expected = run(whole.path(), 12, false);
    let half = run(parts.path(), 7, false);
    let found = run(parts.path(), 12, true);
    assert_eq!(weights(&found.model), weights(&expected.model));
    assert_eq!(found.objective.save(), expected.objective.save());
    assert_eq!(serde_json::to_string(&found.noise).unwrap(), serde_json::to_string(&expected.noise).unwrap());
    assert_ne!(half.objective.save(), expected.objective.save());
}

#[test]
fn what_is_not_allowed_is_named() {
    let new = || FifoReplayConfig::new([2]);
    for (config, part) in [
        (FifoReplayConfig::new([]), "sample_shape"),
        (new().with_capacity(0), "capacity = 0"),
        (new().with_restart_probability(1.5), "restart_probability = 1.5"),
        (new().with_num_steps(0), "num_steps = 0"),
        (new().with_bounds(1.0, 1.0), "bounds = [1, 1]"),
    ] {
        let message = config.init(Add(0.0)).map(|_| ()).unwrap_err().to_string();
        assert!(message.starts_with("FifoReplayConfig.") && message.contains(part), "{message}");
    }
    let replay = FifoReplayConfig::new([2, 2]).init(Add(0.0)).unwrap();
    assert!(SampleSource::<2>::start(&replay, &mut Noise::host(0), &Device::default()).is_err());
}
