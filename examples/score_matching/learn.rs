//! The four methods, and the recipe that they share.

use std::time::Instant;

use burn::module::Module;
use burn::optim::AdamConfig;
use burn::tensor::Device;
use jem_core::Result;
use jem_core::data::{Augmentation, JointBatch, LoaderConfig, VectorLoader, VectorSet};
use jem_core::noise::Noise;
use jem_core::objectives::score_matching::{DenoisingScoreMatchingConfig, SlicedScoreMatchingConfig};
use jem_core::objectives::{DiagonalGaussian, JemConfig, NoiseContrastive, Objective, WithNormaliser};
use jem_core::samplers::{ImproperSgldConfig, ReplayConfig, UniformStart};
use jem_core::schedule::Schedule;
use jem_core::train::{Trainer, TrainerConfig};
use jem_nn::{Activation, Mlp, MlpConfig};

use crate::Options;

/// Half the side of the square that everything happens in.
pub const SIDE: f32 = 4.5;

/// A trained network, without autodiff.
pub struct Fitted {
    pub name: &'static str,
    pub net: Mlp,
    /// c, where it was learnt.
    pub log_normaliser: Option<f64>,
    /// Seconds of training.
    pub seconds: f64,
}

/// Trains the same network in every way, from the same weights.
pub fn all(train: &VectorSet, noise: &Noise, options: &Options, device: &Device) -> Result<Vec<Fitted>> {
    let tracked = device.clone().autodiff();
    let net = || {
        let config = MlpConfig::new(2, vec![options.width; 3], 1).with_activation(Activation::Silu);
        config.init(&mut noise.fork(1), &tracked)
    };
    let fit = |name, (net, seconds): (Mlp, f64)| Fitted { name, net, log_normaliser: None, seconds };
    let mut fitted = Vec::new();

    let sliced = SlicedScoreMatchingConfig::new().with_num_projections(2).init()?;
    fitted.push(fit("sliced score matching", learn(net()?, sliced, 0.0, train, noise, options, device)?));

    let denoising = DenoisingScoreMatchingConfig::new(options.noise).with_num_projections(3).init()?;
    fitted
        .push(fit("denoising score matching", learn(net()?, denoising, 0.0, train, noise, options, device)?));

    let reference = DiagonalGaussian::fit(train.all(device)?, 1.5)?;
    let contrastive = NoiseContrastive::new(reference, 5)?;
    let with_normaliser = WithNormaliser::new(net()?, 0.0, &tracked)?;
    let (model, seconds) = learn(with_normaliser, contrastive, 0.0, train, noise, options, device)?;
    let log_normaliser = Some(model.log_normaliser.val().into_scalar::<f32>().into());
    fitted.push(Fitted { name: "noise contrast", net: model.classifier, log_normaliser, seconds });

    // Proper Langevin steps; what is narrower than their own noise cannot be learnt, so the points have noise too.
    let step = options.noise.powi(2);
    let chain = ImproperSgldConfig::new().with_step_size(step / 2.0).with_noise_scale(step.sqrt());
    let chain = chain.with_gradient_clip(20.0).with_bounds(-SIDE, SIDE).init()?;
    let replay = ReplayConfig::new([2]).with_num_steps(options.shortened(20, 5));
    let replay = replay.init_from(chain, UniformStart::new(-SIDE, SIDE)?)?;
    let chains = JemConfig::new().with_classification_weight(0.0).init(replay)?;
    let smoothed = options.noise as f32;
    fitted.push(fit("chains", learn(net()?, chains, smoothed, train, noise, options, device)?));
    Ok(fitted)
}

/// One run: averaged weights and seconds.
fn learn<M: Module, O: Objective<M, JointBatch<2>>>(
    model: M,
    objective: O,
    data_noise: f32,
    train: &VectorSet,
    noise: &Noise,
    options: &Options,
    device: &Device,
) -> Result<(M, f64)> {
    let started = Instant::now();
    let augmentation = Augmentation::none().with_noise(data_noise);
    let loader = LoaderConfig::new(options.batch).with_augmentation(augmentation);
    let batches = VectorLoader::new(train.clone(), train.clone(), &loader, device)?;
    let iterations = options.shortened(options.iterations, 20);
    let rate = Schedule::Cosine { from: options.learning_rate, to: 0.0, steps: iterations };
    let config = TrainerConfig::new(iterations).with_average_decay(0.99);
    let mut trainer = Trainer::new(objective, batches, config).with_learning_rate(rate);
    let state = trainer.start(model, AdamConfig::new().init(), noise.fork(2), device)?;
    let (state, outcome) = trainer.train(state)?;
    outcome.into_result(state.iteration)?;
    Ok((state.average.unwrap_or_else(|| state.model.valid()), started.elapsed().as_secs_f64()))
}
