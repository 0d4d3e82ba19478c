//! The model: trained by the joint objective with samples given labels, or read from a run.

use std::path::Path;

use burn::module::Module;
use burn::optim::AdamConfig;
use burn::tensor::Device;
use jem_core::data::{Augmentation, ImageLoader, LoaderConfig, Split};
use jem_core::error::{Error, Result};
use jem_core::noise::Noise;
use jem_core::objectives::JemConfig;
use jem_core::samplers::{ImproperSgld, ImproperSgldConfig, ReplayConfig};
use jem_core::schedule::Schedule;
use jem_core::train::{CheckpointConfig, Checkpoints, JsonLines, Trainer, TrainerConfig, validate};
use jem_nn::{Activation, Mlp, MlpConfig};
use jem_plot::ProgressBar;

use crate::options::{Options, Recipe};

/// Labelled digits in a batch.
const BATCH: usize = 64;
/// Samples in the replay buffer, a tenth for each class.
const BUFFER: usize = 1_000;

/// A trained model and its chains.
pub struct Subject {
    /// In evaluation mode, without autodiff.
    pub model: Mlp,
    /// As in training.
    pub sampler: ImproperSgld,
    /// What it was trained with.
    pub recipe: Recipe,
    /// The share of test digits that it classifies right.
    pub accuracy: f64,
}

fn network(recipe: &Recipe, digits: &Split, noise: &mut Noise, device: &Device) -> Result<Mlp> {
    MlpConfig::new(digits.train.image_size(), vec![recipe.width; 2], digits.train.num_classes())
        .with_activation(Activation::Silu)
        .init(noise, device)
}

fn sampler(recipe: &Recipe) -> Result<ImproperSgld> {
    ImproperSgldConfig::new().with_step_size(recipe.step_size).with_noise_scale(recipe.noise).init()
}

/// Trains on L = CE + [mean E(x, y) - mean E(x', y)], x' from the block of y in the buffer.
pub fn train(digits: &Split, options: &Options, device: &Device) -> Result<Subject> {
    let recipe = Recipe {
        iterations: options.shortened(options.recipe.iterations, 20),
        steps: options.shortened(options.recipe.steps, 5),
        ..options.recipe.clone()
    };
    let mut noise = Noise::host(options.seed);
    let model = network(&recipe, digits, &mut noise, &device.clone().autodiff())?;
    let classes = digits.train.num_classes();
    let replay = ReplayConfig::new(digits.train.image_shape())
        .with_capacity(BUFFER)
        .with_class_blocks(classes)
        .with_restart_probability(recipe.restart)
        .with_num_steps(recipe.steps)
        .init(sampler(&recipe)?)?;
    let objective = JemConfig::new().with_marginal_weight(0.0).with_joint_weight(1.0).init(replay)?;
    let batches =
        LoaderConfig::new(BATCH).with_augmentation(Augmentation::none().with_noise(recipe.data_noise));
    let batches = ImageLoader::new(digits.train.clone(), digits.train.clone(), &batches, device)?;
    let rate = Schedule::Cosine { from: recipe.learning_rate, to: 0.0, steps: recipe.iterations };
    let config = TrainerConfig::new(recipe.iterations).with_average_decay(recipe.average_decay);
    let folder = options.out.join("checkpoints");
    let configuration =
        serde_json::to_value(&recipe).map_err(|error| Error::checkpoint(&options.out, error))?;
    let checkpoints = CheckpointConfig::new(&folder).with_every(recipe.iterations).with_keep(1);
    let mut trainer = Trainer::new(objective, batches, config)
        .with_learning_rate(rate)
        .with_checkpoints(Checkpoints::open(checkpoints)?)
        .with_configuration(configuration)
        .with_observer(JsonLines::create(options.out.join("metrics.jsonl"))?)
        .with_observer(ProgressBar::new(BATCH));
    let state = trainer.start(model, AdamConfig::new().init(), noise, device)?;
    let (state, outcome) = trainer.train(state)?;
    outcome.into_result(state.iteration)?;
    let model = state.average.unwrap_or_else(|| state.model.valid());
    subject(model, recipe, digits, device)
}

/// The model of a run of this example.
pub fn load(folder: &Path, digits: &Split, device: &Device) -> Result<Subject> {
    let (saved, _) = Checkpoints::latest(folder.join("checkpoints"))?;
    let recipe: Recipe = serde_json::from_value(saved.progress.configuration.clone())
        .map_err(|error| Error::checkpoint(&saved.path, format!("its configuration: {error}")))?;
    let model = saved.load_model(network(&recipe, digits, &mut Noise::host(0), device)?)?;
    subject(model.valid(), recipe, digits, device)
}

fn subject(model: Mlp, recipe: Recipe, digits: &Split, device: &Device) -> Result<Subject> {
    let accuracy = validate(&model, &digits.test, 100, device)?.accuracy;
    Ok(Subject { sampler: sampler(&recipe)?, model, recipe, accuracy })
}
