//! The law of the replay buffer: how often chains start afresh, where samples go back to, who draws from where.

use std::collections::HashSet;

use burn::tensor::{Device, Tensor, TensorData};
use jem_core::energy::analytic::Gaussian;
use jem_core::noise::Noise;
use jem_core::persist::Persist;
use jem_core::samplers::{
    BufferPlace, ChainStart, Replay, ReplayBuffer, ReplayConfig, Request, SampleSource,
};

use crate::support::{Add, Z, values};

const FRESH: f32 = -1000.0;

/// Fresh starts that can be told apart from all else, and that carry their label.
struct Marked;

impl ChainStart<2> for Marked {
    fn draw(&self, shape: [usize; 2], labels: Option<&[usize]>, _: &mut Noise, device: &Device) -> Tensor<2> {
        let of = |i: usize| FRESH - labels.map_or(0.0, |labels| labels[i] as f32);
        let marks: Vec<f32> = (0..shape[0]).flat_map(|i| vec![of(i); shape[1]]).collect();
        Tensor::from_data(TensorData::new(marks, shape), device)
    }
}

const CAPACITY: usize = 200;

fn replay(config: ReplayConfig, step: f32) -> Replay<Add, Marked> {
    config.with_capacity(CAPACITY).with_num_steps(1).init_from(Add(step), Marked).unwrap()
}

/// A buffer whose slot i holds (i, i).
fn numbered(replay: &Replay<Add, Marked>, noise: &mut Noise) -> ReplayBuffer<2> {
    let device = Device::default();
    let mut buffer = replay.start(noise, &device).unwrap();
    let numbers: Vec<f32> = (0..CAPACITY).flat_map(|slot| [slot as f32; 2]).collect();
    buffer.load([("replay_buffer".to_owned(), TensorData::new(numbers, [CAPACITY, 2]))].into()).unwrap();
    buffer
}

fn places() -> [ReplayConfig; 2] {
    [BufferPlace::Host, BufferPlace::Device].map(|place| ReplayConfig::new([2]).with_place(place))
}

/// n = 20,000 draws: the number of fresh starts is binomial(n, ρ); α = 1e-5.
#[test]
fn chains_start_afresh_with_probability_rho() {
    let device = Device::default();
    for config in places() {
        let (rho, n) = (0.05, 20_000);
        let replay = replay(config.with_restart_probability(rho), 0.0);
        let mut noise = Noise::host(3);
        let (mut fresh, mut reported) = (0, 0);
        for _ in 0..n / 100 {
            let buffer = numbered(&replay, &mut noise);
            let request = Request { count: 100, labels: None, device: &device };
            let (negatives, _) = replay.draw(&Gaussian::standard(), request, buffer, &mut noise).unwrap();
            fresh += values(negatives.samples).chunks(2).filter(|x| x[0] == FRESH).count();
            reported += negatives.restarted;
        }
        let consistent = |rho: f64| {
            let n = f64::from(n);
            (fresh as f64 - n * rho).abs() < Z * (n * rho * (1.0 - rho)).sqrt()
        };
        assert_eq!(fresh, reported);
        assert!(consistent(rho), "{fresh} of {n}");
        assert!(!consistent(0.06) && !consistent(0.04)); // another ρ would be found out
    }
}

/// After many draws with a kernel that adds 1/1024, slot i still holds i plus a few of those: samples went back
/// to where they came from. In a buffer whose slots were mixed up, they do not.
#[test]
fn samples_go_back_to_their_slots() {
    let device = Device::default();
    for config in places() {
        let replay = replay(config.with_restart_probability(0.0), 1.0 / 1024.0);
        let mut noise = Noise::host(4);
        let mut buffer = numbered(&replay, &mut noise);
        for _ in 0..50 {
            let request = Request { count: 32, labels: None, device: &device };
            buffer = replay.draw(&Gaussian::standard(), request, buffer, &mut noise).unwrap().1;
        }
        let in_place = |all: &[f32]| {
            all.chunks(2).enumerate().all(|(slot, x)| x[0].floor() == slot as f32 && x[0] == x[1])
        };
        let all = values(buffer.all(&device));
        assert!(in_place(&all));
        assert!(all.iter().filter(|x| x.fract() > 0.0).count() > CAPACITY, "most slots were drawn");
        let mut shifted = all.clone();
        shifted.rotate_left(2);
        assert!(!in_place(&shifted));
    }
}

/// With 4 blocks of 50 slots, draws for label y come from slots 50y to 50y + 49, all of them; fresh starts carry
/// their label.
#[test]
fn conditional_draws_come_from_the_block_of_their_label() {
    let device = Device::default();
    for config in places() {
        let replay = replay(config.with_restart_probability(0.1).with_class_blocks(4), 0.0);
        let mut noise = Noise::host(5);
        let labels: Vec<usize> = (0..64).map(|i| [2, 0, 3, 1][i % 4]).collect();
        let mut seen = HashSet::new();
        for _ in 0..40 {
            let buffer = numbered(&replay, &mut noise);
            let request = Request { count: 64, labels: Some(&labels), device: &device };
            let (negatives, _) = replay.draw(&Gaussian::standard(), request, buffer, &mut noise).unwrap();
            for (x, label) in values(negatives.samples).chunks(2).zip(&labels) {
                if x[0] <= FRESH {
                    assert_eq!(FRESH - x[0], *label as f32);
                } else {
                    assert_eq!(x[0] as usize / 50, *label);
                    seen.insert(x[0] as usize);
                }
            }
        }
        assert_eq!(seen.len(), CAPACITY);
        let request = Request { count: 1, labels: Some(&[4]), device: &device };
        let buffer = numbered(&replay, &mut noise);
        let error = replay.draw(&Gaussian::standard(), request, buffer, &mut noise).unwrap_err();
        assert!(error.to_string().contains("Request.labels = 4"), "{error}");
    }
}

/// A slot that holds an infinity ends in a fresh start, is counted, and the buffer is finite again.
#[test]
fn non_finite_samples_are_counted_and_never_written_back() {
    let device = Device::default();
    for config in places() {
        for poison in [f32::INFINITY, f32::NAN] {
            let replay = replay(config.clone().with_restart_probability(0.0), 0.0);
            let mut noise = Noise::host(6);
            let mut buffer = numbered(&replay, &mut noise);
            buffer.write(&[17], &Tensor::from_floats([[0.0, poison]], &device));
            let mut found = 0;
            for _ in 0..60 {
                let request = Request { count: 32, labels: None, device: &device };
                let (negatives, next) =
                    replay.draw(&Gaussian::standard(), request, buffer, &mut noise).unwrap();
                found += negatives.non_finite;
                buffer = next;
                assert!(values(negatives.samples).iter().all(|x| x.is_finite()));
            }
            assert!(found >= 1);
            let all = values(buffer.all(&device));
            assert!(all.iter().all(|x| x.is_finite()));
            assert_eq!(all[34], FRESH);
        }
    }
}

/// Looking at the buffer does not advance it, and a buffer smaller than the batch works.
#[test]
fn looking_changes_nothing_and_small_buffers_work() {
    let device = Device::default();
    let replay =
        ReplayConfig::new([2]).with_capacity(3).with_num_steps(1).init_from(Add(1.0), Marked).unwrap();
    let mut noise = Noise::host(8);
    let buffer = SampleSource::<2>::start(&replay, &mut noise, &device).unwrap();
    let before = values(buffer.all(&device));
    buffer.read(&[0, 1], &device);
    assert_eq!(before, values(buffer.all(&device)));
    let request = Request { count: 8, labels: None, device: &device };
    let (negatives, _) = replay.draw(&Gaussian::standard(), request, buffer, &mut noise).unwrap();
    assert_eq!(negatives.samples.dims(), [8, 2]);
}
