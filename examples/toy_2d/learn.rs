//! The recipe: an MLP, proper Langevin chains in a box, and the joint objective.

use burn::module::Module;
use burn::optim::AdamConfig;
use burn::tensor::Device;
use jem_core::Result;
use jem_core::data::{Augmentation, LoaderConfig, VectorLoader, VectorSet};
use jem_core::noise::{Noise, Stream};
use jem_core::objectives::JemConfig;
use jem_core::samplers::{ImproperSgld, ImproperSgldConfig, ReplayBuffer, ReplayConfig, UniformStart};
use jem_core::schedule::Schedule;
use jem_core::train::{JsonLines, Trainer, TrainerConfig};
use jem_nn::{Activation, Mlp, MlpConfig};
use jem_plot::ProgressBar;

use crate::Options;

/// Half the side of the square that everything happens in.
pub const SIDE: f32 = 4.5;
/// Points in a batch.
const BATCH: usize = 128;
/// Points to learn from, and points to judge by.
const POINTS: (usize, usize) = (20_000, 4_000);

/// A finished run.
pub struct Learnt {
    /// The averaged weights, without autodiff.
    pub model: Mlp,
    /// The chains that it was trained with.
    pub buffer: ReplayBuffer<2>,
    /// Points that it has not seen.
    pub test: VectorSet,
    /// Streams that training has not touched.
    pub noise: Noise,
}

/// Langevin dynamics with the noise that its step calls for, so that p(x) is what is learnt and not a colder
/// or warmer relative of it. The clip keeps a chain from leaping across a valley that is narrow for its step, and
/// the walls keep it from leaving for where there are no data.
pub fn sampler(options: &Options) -> Result<ImproperSgld> {
    ImproperSgldConfig::new()
        .with_step_size(options.step_size / 2.0)
        .with_noise_scale(options.step_size.max(0.0).sqrt())
        .with_gradient_clip(20.0)
        .with_bounds(-SIDE, SIDE)
        .init()
}

/// Trains on points of the distribution.
pub fn learn(options: &Options, device: &Device) -> Result<Learnt> {
    let mut noise = Noise::host(options.seed);
    let mut points = noise.fork(0);
    let train = options.data.sample(POINTS.0, points.rng(Stream::new("train")))?;
    let test = options.data.sample(POINTS.1, points.rng(Stream::new("test")))?;
    let network = MlpConfig::new(2, vec![options.width; 2], train.num_classes())
        .with_activation(Activation::Silu)
        .init(&mut noise, &device.clone().autodiff())?;

    let replay = ReplayConfig::new([2])
        .with_num_steps(options.steps)
        .with_restart_probability(options.restart)
        .init_from(sampler(options)?, UniformStart::new(-SIDE, SIDE)?)?;
    let augmentation = Augmentation::none().with_noise(options.data_noise);
    let batches = LoaderConfig::new(BATCH).with_augmentation(augmentation);
    let batches = VectorLoader::new(train.clone(), train, &batches, device)?;
    let iterations = options.shortened(options.iterations, 20);
    let config = TrainerConfig::new(iterations).with_average_decay(options.average_decay);
    let rate = Schedule::Cosine { from: options.learning_rate, to: 0.0, steps: iterations };
    let mut trainer = Trainer::new(JemConfig::new().init(replay)?, batches, config)
        .with_learning_rate(rate)
        .with_observer(JsonLines::create(options.out.join("metrics.jsonl"))?)
        .with_observer(ProgressBar::new(BATCH));
    let state = trainer.start(network, AdamConfig::new().init(), noise, device)?;
    let (state, outcome) = trainer.train(state)?;
    outcome.into_result(state.iteration)?;
    let model = state.average.unwrap_or_else(|| state.model.valid());
    Ok(Learnt { model, buffer: state.objective, test, noise: points })
}
