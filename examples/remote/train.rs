//! The run: digits, a convolutional network, persistent chains. Nothing in it knows what kind of device it is given.

use std::time::Instant;

use burn::module::Module;
use burn::optim::AdamConfig;
use burn::tensor::Device;
use jem_core::data::{ImageLoader, LoaderConfig};
use jem_core::noise::{Noise, NoiseMode};
use jem_core::objectives::JemConfig;
use jem_core::samplers::{BufferPlace, ImproperSgldConfig, ReplayConfig};
use jem_core::schedule::Schedule;
use jem_core::train::{
    CheckpointConfig, Checkpoints, JsonLines, Record, StepRecord, Trainer, TrainerConfig, read_records,
    validate,
};
use jem_core::{Error, Result};
use jem_data::digits;
use jem_nn::CnnConfig;

use crate::Options;

/// A finished run.
pub struct Run {
    /// Seconds an iteration.
    pub seconds: f64,
    /// On the test digits.
    pub accuracy: f64,
    /// The numbers of every iteration.
    pub records: Vec<StepRecord>,
}

/// Trains on `device`, with metrics and checkpoints in the folder `name`.
pub fn train(options: &Options, device: &Device, name: &str) -> Result<Run> {
    let folder = options.out.join(name);
    std::fs::create_dir_all(&folder).map_err(|source| Error::io(&folder, source))?;
    let split = digits::digits()?;
    let batches = ImageLoader::new(
        split.train.clone(),
        split.train.clone(),
        &LoaderConfig::new(options.batch),
        device,
    )?;
    let (place, mode) = match options.all_remote {
        true => (BufferPlace::Device, NoiseMode::Device),
        false => (BufferPlace::Host, NoiseMode::Host),
    };
    let replay = ReplayConfig::new(split.train.image_shape())
        .with_capacity(1_000)
        .with_num_steps(options.steps)
        .with_place(place)
        .init(ImproperSgldConfig::new().with_step_size(1.0).with_noise_scale(0.01).init()?)?;
    let objective = JemConfig::new().with_energy_magnitude(0.1).init(replay)?;
    let mut noise = Noise::new(options.seed, mode);
    let model = CnnConfig::new(options.channels.clone(), split.train.num_classes())
        .with_in_channels(1)
        .init(&mut noise, &device.clone().autodiff())?;

    let kept = folder.join("checkpoints");
    let saved = options.resume.then(|| Checkpoints::latest(&kept)).transpose()?.map(|(saved, _)| saved);
    let metrics = folder.join("metrics.jsonl");
    let from = saved.as_ref().map_or(0, |saved| saved.progress.iteration);
    let mut trainer = Trainer::new(objective, batches, TrainerConfig::new(options.iterations()))
        .with_learning_rate(Schedule::Constant(1e-3).with_warmup(20))
        .with_checkpoints(Checkpoints::open(CheckpointConfig::new(&kept).with_every(25))?)
        .with_observer(JsonLines::resume(&metrics, from)?);
    let state = match saved {
        Some(saved) => trainer.resume(model, AdamConfig::new().init(), saved, device)?,
        None => trainer.start(model, AdamConfig::new().init(), noise, device)?,
    };
    let started = Instant::now();
    let (state, outcome) = trainer.train(state)?;
    let seconds = started.elapsed().as_secs_f64() / (state.iteration - from).max(1) as f64;
    outcome.into_result(state.iteration)?;

    let accuracy = validate(&state.model.valid(), &split.test, 256, device)?.accuracy;
    let steps = |record| match record {
        Record::Step(step) => Some(step),
        _ => None,
    };
    Ok(Run { seconds, accuracy, records: read_records(&metrics)?.into_iter().filter_map(steps).collect() })
}

/// The largest relative difference between two runs' numbers, and the name of that number. Numbers below 1 count
/// as 1: where an energy crosses zero, a relative difference says nothing.
pub fn largest_difference(a: &[StepRecord], b: &[StepRecord]) -> (String, f64) {
    let pairs = a.iter().zip(b).flat_map(|(a, b)| a.values.iter().zip(b.values.values()));
    pairs
        .map(|((name, a), b)| (name.clone(), (a - b).abs() / a.abs().max(1.0)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or_default()
}
