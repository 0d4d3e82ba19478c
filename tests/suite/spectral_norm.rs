//! Spectral normalisation in training: a run keeps its weights at norm 1, and goes on from a checkpoint bit for bit.

use std::path::Path;

use burn::module::{Module, RunningState};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};
use jem_core::energy::Classifier;
use jem_core::noise::{Noise, Stream};
use jem_core::persist::Persist;
use jem_core::samplers::ReplayBuffer;
use jem_core::train::{
    CheckpointConfig, Checkpoints, ClippedAdamConfig, Outcome, Saved, TrainState, Trainer, TrainerConfig,
};
use jem_nn::{Mlp, SpectralNorm, SpectralNormConfig};

use crate::support::{SmallTrainer, moons, small_model, small_objective, values, weights};

type State = TrainState<Mlp, ReplayBuffer<2>>;

/// The normalised MLP, or the same as it is.
fn model(seed: u64, normalised: bool, device: &Device) -> Mlp {
    let mut noise = Noise::host(seed);
    let plain = small_model(&mut noise, device);
    if normalised {
        SpectralNormConfig::new().with_warm_up(0).apply(plain, &mut noise).unwrap()
    } else {
        plain
    }
}

fn newest(folder: &Path) -> Option<Saved> {
    Checkpoints::latest(folder).ok().map(|(saved, _)| saved)
}

/// Runs to so many iterations, from the newest checkpoint in the folder if there is one, after `change` has had its
/// way with the state.
fn run(folder: &Path, iterations: u64, change: impl Fn(&State)) -> State {
    let device = Device::default();
    let checkpoints = Checkpoints::open(CheckpointConfig::new(folder).with_every(5)).unwrap();
    let config = TrainerConfig::new(iterations).with_average_decay(0.9);
    let mut trainer: SmallTrainer = Trainer::new(small_objective(64), moons(&device), config)
        .with_learning_rate(3e-4.into())
        .with_checkpoints(checkpoints);
    let optimizer = ClippedAdamConfig::new().init().unwrap();
    let state = match newest(folder) {
        // Built from another seed: all that matters is in the checkpoint.
        Some(saved) => trainer.resume(model(9, true, &device), optimizer, saved, &device).unwrap(),
        None => trainer.start(model(4, true, &device), optimizer, Noise::host(3), &device).unwrap(),
    };
    change(&state);
    let (state, outcome) = trainer.train(state).unwrap();
    assert_eq!(outcome, Outcome::Finished);
    state
}

fn vector(layer: &Linear) -> &RunningState<Tensor<1>> {
    &layer.weight.reparameterization::<SpectralNorm>().unwrap().u
}

fn all_bits(state: &State) -> (Vec<u32>, Vec<u32>, Vec<u8>, String) {
    let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
    let buffer = state.objective.save().remove("replay_buffer").unwrap();
    let average = state.average.as_ref().unwrap();
    let noise = serde_json::to_string(&state.noise).unwrap();
    (bits(weights(&state.model)), bits(weights(average)), buffer.as_bytes().to_vec(), noise)
}

/// By 100 power iterations in double precision.
fn largest_singular_value(weight: Tensor<2>) -> f64 {
    let [rows, columns] = weight.dims();
    let w = values(weight);
    let mut v = vec![1.0; columns];
    let mut sigma = 0.0;
    for _ in 0..100 {
        let wv: Vec<f64> =
            (0..rows).map(|i| (0..columns).map(|j| f64::from(w[i * columns + j]) * v[j]).sum()).collect();
        v = (0..columns).map(|j| (0..rows).map(|i| f64::from(w[i * columns + j]) * wv[i]).sum()).collect();
        let length = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        sigma = length.sqrt();
        v.iter_mut().for_each(|x| *x /= length);
    }
    sigma
}

#[test]
fn a_run_with_normalised_weights_is_resumed_bit_for_bit() {
    let folder = || tempfile::tempdir().unwrap();
    let (whole, broken, moved) = (folder(), folder(), folder());
    let expected = run(whole.path(), 24, |_| {});
    let half = run(broken.path(), 11, |_| {});
    assert_ne!(all_bits(&half), all_bits(&expected));
    assert_eq!(newest(broken.path()).unwrap().progress.iteration, 11);
    let found = run(broken.path(), 24, |_| {});
    assert_eq!(all_bits(&found), all_bits(&expected));

    // The vectors have moved, and the weights that evaluation sees have norm 1.
    let device = Device::default();
    let start = model(4, true, &device);
    assert_ne!(values(vector(&start.layers[0]).value()), values(vector(&found.model.layers[0]).value()));
    let fixed = found.model.valid().materialize();
    for layer in [&fixed.layers[0], &fixed.class_output] {
        let sigma = largest_singular_value(layer.weight.val());
        assert!((sigma - 1.0).abs() < 0.01, "{sigma}");
    }
    // Negative control: before the run, the head's was far off.
    let before = largest_singular_value(start.valid().class_output.weight.val());
    assert!((before - 1.0).abs() > 0.1, "{before}");

    // Negative control: a run that went on from another vector would differ.
    run(moved.path(), 11, |_| {});
    let other = run(moved.path(), 24, |state| {
        let u = vector(&state.model.layers[0]);
        u.update(u.value() * 0.5 + 0.1);
    });
    assert_ne!(all_bits(&other), all_bits(&expected));
}

#[test]
fn a_checkpoint_of_a_normalised_model_loads_for_evaluation_and_into_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let state = run(folder.path(), 7, |_| {});
    let device = Device::default();
    let x = Noise::host(1).normal([8, 2], Stream::DATA, &device);
    let logits = |model: &Mlp| values(model.logits(x.clone()));
    let loaded = newest(folder.path()).unwrap().load_model(model(9, true, &device).valid()).unwrap();
    let average = state.average.unwrap();
    assert_eq!(logits(&loaded), logits(&average));
    assert_eq!(logits(&loaded.materialize()), logits(&average));
    // A model without the normalisation would compute something else with these weights.
    let error = newest(folder.path()).unwrap().load_model(model(9, false, &device).valid());
    assert!(error.is_err());
}
