//! A run from data to report.

use std::path::{Path, PathBuf};

use burn::optim::AdamConfig;
use burn::tensor::Device;
use jem_core::data::{Augmentation, ImageLoader, ImageSet, LoaderConfig, Split};
use jem_core::error::{Error, Result};
use jem_core::noise::{Noise, NoiseMode, Stream};
use jem_core::objectives::{Jem, JemConfig, NegativeKind};
use jem_core::samplers::{Replay, ReplayConfig};
use jem_core::schedule::Schedule;
use jem_core::train::{
    CheckpointConfig, Checkpoints, GuardConfig, JsonLines, Policy, Saved, Trainer, TrainerConfig, Validation,
};
use jem_data::{Archive, embedded};
use jem_plot::ProgressBar;

use crate::chains::{Chain, Start};
use crate::config::{Cli, OnDivergence, Recipe};
use crate::model::{Network, device};
use crate::report::Reporter;

/// The sets of a run.
struct Sets {
    train: ImageSet,
    /// Those of `train` whose labels are known.
    labelled: ImageSet,
    validation: Option<ImageSet>,
    test: ImageSet,
}

/// Runs what the command line asks for.
pub fn run(cli: Cli) -> Result<()> {
    let device = device(cli.device.as_deref())?;
    let checkpoints = cli.out.join("checkpoints");
    let saved = if cli.resume { Some(load(&checkpoints)?) } else { None };
    let recipe = match &saved {
        Some(saved) => Recipe::of(saved)?,
        None => Recipe::new(cli.preset, &cli.knobs)?,
    };
    std::fs::create_dir_all(&cli.out).map_err(|source| Error::io(&cli.out, source))?;

    let mode = if recipe.device_noise { NoiseMode::Device } else { NoiseMode::Host };
    let mut noise = Noise::new(recipe.seed, mode);
    let sets = sets(&cli, &recipe, &noise)?;
    let [channels, _, _] = sets.train.image_shape();
    let classes = sets.train.num_classes();
    let model = Network::new(&recipe, classes, channels, &mut noise, &device)?;
    let mut trainer =
        trainer(&cli, &recipe, &sets, &device, saved.as_ref().map_or(0, |s| s.progress.iteration))?;
    let optimizer = AdamConfig::new().with_epsilon(1e-8).init();
    let state = match saved {
        Some(saved) => trainer.resume(model, optimizer, saved, &device)?,
        None => trainer.start(model, optimizer, noise, &device)?,
    };
    let (state, outcome) = trainer.train(state)?;
    println!("{}", cli.out.join("report.html").display());
    outcome.into_result(state.iteration)
}

fn load(folder: &Path) -> Result<Saved> {
    let (saved, refused) = Checkpoints::latest(folder)?;
    for error in refused {
        eprintln!("{error}");
    }
    eprintln!("going on from {}", saved.path.display());
    Ok(saved)
}

/// The sets: the official files if a folder is given, else the embedded subset.
fn sets(cli: &Cli, recipe: &Recipe, noise: &Noise) -> Result<Sets> {
    let Split { mut train, test } = match &cli.data {
        Some(folder) if cli.download => jem_data::open(fetched(cli, folder)?)?,
        Some(folder) => jem_data::open(folder)?,
        None => embedded::cifar10()?,
    };
    if recipe.train_per_class > 0 {
        train = train.take_per_class(recipe.train_per_class)?;
    }
    let mut validation = None;
    if recipe.validation_per_class > 0 {
        let mut rng = noise.derived(Stream::new("validation"), 0);
        let (held_out, rest) = train.split_per_class(recipe.validation_per_class, &mut rng)?;
        train = rest;
        validation = Some(held_out);
    }
    let labelled = match recipe.labels_per_class {
        0 => train.clone(),
        count => train.take_per_class(count)?,
    };
    Ok(Sets { train, labelled, validation, test })
}

/// The folder of the official files, fetched into `folder` unless they are there.
fn fetched(cli: &Cli, folder: &Path) -> Result<PathBuf> {
    let mut archive = Archive::cifar10();
    if let Some(url) = &cli.url {
        archive = archive.with_url(url)?;
    }
    let bar = indicatif::ProgressBar::new(0);
    let style = indicatif::ProgressStyle::with_template("{msg} {bar:24} {bytes}/{total_bytes} {eta}");
    bar.set_style(style.unwrap_or_else(|_| indicatif::ProgressStyle::default_bar()));
    bar.set_message(archive.url().to_owned());
    let fetched = archive.fetch(folder, |done, total| {
        bar.set_length(total.unwrap_or(done));
        bar.set_position(done);
    });
    bar.finish_and_clear();
    fetched
}

type Objective = Jem<Replay<Chain, Start>>;
type CifarTrainer = Trainer<Network, jem_core::data::JointBatch<4>, Objective, ImageLoader>;

fn trainer(cli: &Cli, recipe: &Recipe, sets: &Sets, device: &Device, from: u64) -> Result<CifarTrainer> {
    let mut augmentation =
        Augmentation::none().with_padding(recipe.crop_padding).with_noise(recipe.data_noise);
    if recipe.flip {
        augmentation = augmentation.with_flip_probability(0.5);
    }
    let loader = LoaderConfig::new(recipe.batch)
        .with_labelled_batch(recipe.labelled_batch)
        .with_augmentation(augmentation);
    let loader = ImageLoader::new(sets.train.clone(), sets.labelled.clone(), &loader, device)?;
    let per_epoch = jem_core::data::BatchSource::<_>::batches_per_epoch(&loader);
    let iterations = match recipe.iterations {
        0 => recipe.epochs * per_epoch,
        iterations => iterations.min(recipe.epochs * per_epoch),
    };
    let milestones: Vec<u64> = recipe.decay_epochs.0.iter().map(|epoch| epoch * per_epoch).collect();
    let rate =
        Schedule::step(recipe.learning_rate, recipe.decay_factor, milestones).with_warmup(recipe.warmup);

    let mut config = TrainerConfig::new(iterations);
    if recipe.average_decay > 0.0 {
        config = config.with_average_decay(recipe.average_decay);
    }
    let policy = match recipe.on_divergence {
        OnDivergence::Stop => Policy::Stop,
        OnDivergence::Skip => Policy::Skip { at_most: 20 },
        OnDivergence::Rollback => Policy::RollBack { at_most: 5, learning_rate_factor: 0.5 },
    };
    let checkpoints = CheckpointConfig::new(cli.out.join("checkpoints"))
        .with_every(recipe.checkpoint_every)
        .with_keep(recipe.keep);
    let checkpoints = match &sets.validation {
        Some(_) => checkpoints.with_best("validation_accuracy"),
        None => checkpoints,
    };
    let configuration = serde_json::to_value(recipe).map_err(|error| Error::checkpoint(&cli.out, error))?;
    write_config(&cli.out.join("config.json"), &configuration)?;
    let data =
        cli.data.as_ref().map_or("the embedded subset".to_owned(), |folder| folder.display().to_string());
    let data = format!("{data}: {} to train on, {} to test on", sets.train.len(), sets.test.len());
    let names = match sets.train.class_names() {
        Some(names) => names.to_vec(),
        None => (0..sets.train.num_classes()).map(|class| class.to_string()).collect(),
    };
    let reporter = Reporter::new(&cli.out, recipe, data, names, sets.train.range(), device)?;
    let mut trainer = Trainer::new(objective(recipe, sets, device)?, loader, config)
        .with_learning_rate(rate)
        .with_guard(GuardConfig::new().with_policy(policy))
        .with_checkpoints(Checkpoints::open(checkpoints)?)
        .with_configuration(configuration)
        .with_observer(Validation::new("test", sets.test.clone(), 100, device));
    if let Some(validation) = &sets.validation {
        trainer = trainer.with_observer(Validation::new("validation", validation.clone(), 100, device));
    }
    Ok(trainer
        .with_observer(JsonLines::resume(cli.out.join("metrics.jsonl"), from)?)
        .with_observer(reporter)
        .with_observer(ProgressBar::new(recipe.batch)))
}

fn write_config(path: &Path, configuration: &serde_json::Value) -> Result<()> {
    std::fs::write(path, format!("{configuration:#}\n")).map_err(|source| Error::io(path, source))
}

fn objective(recipe: &Recipe, sets: &Sets, device: &Device) -> Result<Objective> {
    let classes = sets.train.num_classes();
    let blocks = if recipe.class_conditional { classes } else { 1 };
    let replay = ReplayConfig::new(sets.train.image_shape())
        .with_capacity(recipe.buffer)
        .with_restart_probability(recipe.restart)
        .with_num_steps(recipe.steps)
        .with_class_blocks(blocks)
        .init_from(Chain::new(recipe, sets.train.range())?, Start::new(recipe, &sets.labelled, device)?)?;
    let negatives = match recipe.class_conditional {
        true => NegativeKind::Conditional { num_classes: classes },
        false => NegativeKind::Marginal,
    };
    JemConfig::new()
        .with_classification_weight(recipe.weight_yx)
        .with_marginal_weight(recipe.weight_x)
        .with_joint_weight(recipe.weight_xy)
        .with_energy_magnitude(recipe.energy_magnitude)
        .with_negatives(negatives)
        .init(replay)
}
