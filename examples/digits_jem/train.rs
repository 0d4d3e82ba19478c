//! The recipe: network, chains, objective and trainer.

use burn::optim::AdamConfig;
use burn::tensor::Device;
use jem_core::Result;
use jem_core::data::{Augmentation, ImageLoader, ImageSet, LoaderConfig};
use jem_core::noise::Noise;
use jem_core::objectives::{JemConfig, NegativeKind};
use jem_core::samplers::{ImproperSgld, ImproperSgldConfig, ReplayBuffer, ReplayConfig};
use jem_core::schedule::Schedule;
use jem_core::train::{JsonLines, TrainState, Trainer, TrainerConfig};
use jem_nn::{Activation, Mlp, MlpConfig};
use jem_plot::ProgressBar;

use crate::options::Options;

/// Samples of p(x), and labelled samples, in a batch.
const BATCH: usize = 64;
/// Samples in the replay buffer.
pub const BUFFER: usize = 1_000;

/// What a run ends with.
pub type State = TrainState<Mlp, ReplayBuffer<4>>;

/// The chains of the run, for training and for pictures.
pub fn sampler(options: &Options) -> Result<ImproperSgld> {
    let config = ImproperSgldConfig::new().with_step_size(options.step_size).with_noise_scale(options.noise);
    config.init()
}

/// Trains on `digits`.
pub fn train(digits: ImageSet, options: &Options, device: &Device) -> Result<State> {
    let mut noise = Noise::host(options.seed);
    let classes = digits.num_classes();
    let network = MlpConfig::new(digits.image_size(), vec![options.width; 2], classes)
        .with_activation(Activation::Silu)
        .init(&mut noise, &device.clone().autodiff())?;

    let mut replay = ReplayConfig::new(digits.image_shape())
        .with_capacity(BUFFER)
        .with_restart_probability(options.restart)
        .with_num_steps(options.steps);
    let mut objective = JemConfig::new().with_energy_magnitude(options.energy_magnitude);
    if options.class_conditional {
        replay = replay.with_class_blocks(classes);
        objective = objective.with_negatives(NegativeKind::Conditional { num_classes: classes });
    }
    let objective = objective.init(replay.init(sampler(options)?)?)?;

    let batches =
        LoaderConfig::new(BATCH).with_augmentation(Augmentation::none().with_noise(options.data_noise));
    let batches = ImageLoader::new(digits.clone(), digits, &batches, device)?;
    let iterations = options.iterations();
    let config = TrainerConfig::new(iterations).with_average_decay(options.average_decay);
    let rate = Schedule::Cosine { from: options.learning_rate, to: 0.0, steps: iterations };
    let mut trainer = Trainer::new(objective, batches, config)
        .with_learning_rate(rate)
        .with_observer(JsonLines::create(options.out.join("metrics.jsonl"))?)
        .with_observer(ProgressBar::new(BATCH));
    let state = trainer.start(network, AdamConfig::new().init(), noise, device)?;
    let (state, outcome) = trainer.train(state)?;
    outcome.into_result(state.iteration)?;
    Ok(state)
}
