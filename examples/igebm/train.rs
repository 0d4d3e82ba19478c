//! The recipe: network, chains, objective and trainer.

use burn::tensor::Device;
use jem_core::data::{Augmentation, ImageLoader, ImageSet, LoaderConfig};
use jem_core::error::{Error, Result};
use jem_core::noise::Noise;
use jem_core::objectives::contrastive_divergence::{
    ContrastiveDivergenceConfig, LastStepConfig, NegativeLabels,
};
use jem_core::samplers::{FifoBuffer, FifoReplayConfig, ImproperSgld, ImproperSgldConfig, Langevin};
use jem_core::train::{
    CheckpointConfig, Checkpoints, ClippedAdamConfig, JsonLines, Saved, TrainState, Trainer, TrainerConfig,
};
use jem_nn::{EnergyResNet, EnergyResNetConfig, SpectralNormConfig};
use jem_plot::ProgressBar;

use crate::options::Options;

/// What a run ends with.
pub type State = TrainState<EnergyResNet, FifoBuffer<4>>;

/// The options of the run, those of the checkpoint if there is one to go on from.
pub fn continued(asked: Options) -> Result<(Options, Option<Saved>)> {
    if !asked.resume {
        return Ok((asked.shortened(), None));
    }
    let (saved, refused) = Checkpoints::latest(asked.out.join("checkpoints"))?;
    for error in refused {
        eprintln!("{error}");
    }
    eprintln!("going on from {}", saved.path.display());
    let options: Options = serde_json::from_value(saved.progress.configuration.clone())
        .map_err(|error| Error::checkpoint(&saved.path, format!("its configuration: {error}")))?;
    Ok((Options { out: asked.out, resume: true, iterations: asked.iterations, ..options }, Some(saved)))
}

/// The chains of the run, for training and for pictures: x ← clip(x - η clip(∇E, ±c) + σ ε, 0, 1).
pub fn sampler(options: &Options) -> Result<ImproperSgld> {
    ImproperSgldConfig::new()
        .with_step_size(options.step_size)
        .with_gradient_clip(options.gradient_clip)
        .with_noise_scale(options.noise)
        .with_bounds(0.0, 1.0)
        .init()
}

/// The residual network with a spectral norm on its weights. Second convolutions start at zero, so that theirs is
/// the form that only ever makes weights smaller.
fn network(set: &ImageSet, options: &Options, noise: &mut Noise, device: &Device) -> Result<EnergyResNet> {
    let network = EnergyResNetConfig::new(options.channels.clone())
        .with_blocks(options.blocks)
        .with_in_channels(set.image_shape()[0])
        .with_num_classes(set.num_classes())
        .init(noise, &device.clone().autodiff())?;
    SpectralNormConfig::new().with_lower_bounded(vec!["conv2.weight".to_owned()]).apply(network, noise)
}

/// Trains on `set`, from a checkpoint if there is one.
pub fn train(set: &ImageSet, options: &Options, saved: Option<Saved>, device: &Device) -> Result<State> {
    let mut noise = Noise::host(options.seed);
    let network = network(set, options, &mut noise, device)?;
    let chain = sampler(options)?;
    let mut objective = ContrastiveDivergenceConfig::new().with_energy_magnitude(options.energy_magnitude);
    if options.kl > 0.0 {
        objective = objective.with_last_step(LastStepConfig::new(chain.move_at(0)).with_weight(options.kl));
    }
    let queue = FifoReplayConfig::new(set.image_shape())
        .with_capacity(options.buffer)
        .with_restart_probability(options.restart)
        .with_num_steps(options.steps)
        .init(chain)?;
    let objective = objective.init_conditional(queue, NegativeLabels::OfBatch)?;

    let batches =
        LoaderConfig::new(options.batch).with_augmentation(Augmentation::none().with_flip_probability(0.5));
    let batches = ImageLoader::new(set.clone(), set.clone(), &batches, device)?;
    let configuration =
        serde_json::to_value(options).map_err(|error| Error::checkpoint(&options.out, error))?;
    let checkpoints =
        CheckpointConfig::new(options.out.join("checkpoints")).with_every(options.checkpoint_every);
    let from = saved.as_ref().map_or(0, |saved| saved.progress.iteration);
    let mut trainer = Trainer::new(objective, batches, TrainerConfig::new(options.iterations))
        .with_learning_rate(options.learning_rate.into())
        .with_checkpoints(Checkpoints::open(checkpoints)?)
        .with_configuration(configuration)
        .with_observer(JsonLines::resume(options.out.join("metrics.jsonl"), from)?)
        .with_observer(ProgressBar::new(options.batch));
    let optimizer = ClippedAdamConfig::new().init()?;
    let state = match saved {
        Some(saved) => trainer.resume(network, optimizer, saved, device)?,
        None => trainer.start(network, optimizer, noise, device)?,
    };
    let (state, outcome) = trainer.train(state)?;
    outcome.into_result(state.iteration)?;
    Ok(state)
}
