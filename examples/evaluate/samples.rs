//! What the model generates, and how far from data it is.

use burn::tensor::{Device, Tensor};
use jem_core::data::ImageSet;
use jem_core::energy::{Classifier, EnergyModel, JointEnergy};
use jem_core::error::Result;
use jem_core::noise::Noise;
use jem_core::samplers::{ChainStart, Sampler};
use jem_eval::generate::{BufferChoice, FromBufferConfig, Wanted, fresh_chains};
use jem_eval::{
    ChainSet, ClassProbabilities, EnergyTrace, FeatureExtractor, Features, GaussianFit, KernelDistanceConfig,
    frechet_distance, inception_score, nearest_neighbours,
};
use jem_plot::grid;
use serde::{Deserialize, Serialize};

use crate::detection::BATCH;
use crate::options::Settings;
use crate::subject::{Model, Subject};

/// Chains of each class.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ByClass {
    pub per_class: usize,
    pub origin: String,
    /// A grid with a row for each class, as a data URI.
    pub images: String,
    /// The nearest training image of the first sample of each class, in pixels.
    pub neighbours: String,
    /// Share of samples that the classifier puts into the class that they were made for.
    pub agreement: f64,
}

pub fn by_class(
    subject: &Subject,
    joint: &JointEnergy<&Model>,
    train: &ImageSet,
    settings: &Settings,
    device: &Device,
) -> Result<ByClass> {
    let (classes, per_class) = (train.num_classes(), settings.samples_per_class);
    let labels: Vec<usize> = (0..classes * per_class).map(|index| index / per_class).collect();
    let wanted = Wanted::OfClasses { model: joint, labels: &labels };
    let range = train.range();
    let mut noise = Noise::host(settings.seed);
    let shape = train.image_shape();
    let made = fresh_chains(
        wanted,
        &subject.sampler,
        &subject.start,
        &shape,
        settings.sample_steps,
        &mut noise,
        device,
    )?;
    let drawn =
        |images: &Tensor<4>, columns| grid(images, (range.low(), range.high()), columns, 2, 1)?.to_data_uri();
    let labels = made.labels.clone().unwrap_or_default();
    let logits = joint.classifier().logits(made.samples.clone()).into_data();
    let probabilities = ClassProbabilities::from_logits(&logits.iter::<f32>().collect::<Vec<_>>(), classes)?;
    let right = probabilities.most_likely().iter().zip(&labels).filter(|(found, made)| found == made).count();

    let firsts: Vec<usize> =
        (0..classes).filter_map(|class| labels.iter().position(|label| *label == class)).collect();
    let bytes = range.to_bytes(made.samples.clone());
    let size = train.image_size();
    let pixels =
        |bytes: &[u8]| Features::new(&bytes.iter().map(|byte| f32::from(*byte)).collect::<Vec<_>>(), size);
    let queries: Vec<u8> = firsts.iter().flat_map(|at| bytes[at * size..(at + 1) * size].to_vec()).collect();
    let all: Vec<usize> = (0..train.len()).collect();
    let nearest = nearest_neighbours(&pixels(&queries)?, &pixels(&train.bytes(&all)?)?, 1)?;
    let nearest: Vec<usize> = nearest.iter().map(|found| found[0].index).collect();
    Ok(ByClass {
        per_class,
        origin: made.origin.to_string(),
        images: drawn(&made.samples, per_class)?,
        neighbours: drawn(&train.tensor(&nearest, device)?, classes)?,
        agreement: right as f64 / labels.len() as f64,
    })
}

/// Distances between samples of the replay buffer and test images.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Distances {
    pub origin: String,
    pub features: String,
    pub images: usize,
    pub frechet: f64,
    /// Between two halves of the test images, of half the number: what sampling alone gives.
    pub frechet_of_data: f64,
    pub kernel: f64,
    pub kernel_standard_error: f64,
    /// By the model's own probabilities.
    pub inception_score: f64,
    /// Samples that the model puts into each class.
    pub class_counts: Vec<usize>,
}

pub fn distances(
    subject: &Subject,
    joint: &JointEnergy<&Model>,
    extractor: &dyn FeatureExtractor,
    name: &str,
    test: &ImageSet,
    settings: &Settings,
    device: &Device,
) -> Result<Option<Distances>> {
    let Some(buffer) = &subject.buffer else { return Ok(None) };
    let count = settings.distance_images.min(buffer.capacity()).min(test.len());
    let mut noise = Noise::host(settings.seed);
    let from = FromBufferConfig::new(BufferChoice::Random).init()?;
    let made = from.take(buffer, Wanted::Any { model: joint, count }, &mut noise, device)?;

    let data = test.tensor(&(0..count).collect::<Vec<_>>(), device)?;
    let features = |images: Tensor<4>| Features::extract(extractor, images, BATCH);
    let (of_samples, of_data) = (features(made.samples.clone())?, features(data.clone())?);
    let half = count / 2;
    let halves = [features(data.clone().narrow(0, 0, half))?, features(data.narrow(0, half, half))?];
    let distance =
        |a: &Features, b: &Features| frechet_distance(&GaussianFit::new(a)?, &GaussianFit::new(b)?);
    let kernel = KernelDistanceConfig::new()
        .with_subset_size(100.min(count))
        .with_num_subsets(20)
        .init()?
        .estimate(&of_samples, &of_data, &mut noise)?;
    let logits = joint.classifier().logits(made.samples).into_data();
    let probabilities =
        ClassProbabilities::from_logits(&logits.iter::<f32>().collect::<Vec<_>>(), test.num_classes())?;
    Ok(Some(Distances {
        origin: made.origin.to_string(),
        features: name.to_owned(),
        images: count,
        frechet: distance(&of_samples, &of_data)?,
        frechet_of_data: distance(&halves[0], &halves[1])?,
        kernel: kernel.mean,
        kernel_standard_error: kernel.standard_error,
        inception_score: inception_score(&probabilities, 1)?.mean,
        class_counts: probabilities.class_counts(),
    }))
}

/// Fresh chains, watched.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Chains {
    pub chains: usize,
    pub steps: usize,
    pub energies: EnergyTrace,
    /// Of the energy, over the second half of the steps; 1 for chains that have forgotten their starts.
    pub rhat: f64,
    /// Effective draws of the mean energy among `chains · steps / 2`.
    pub effective_sample_size: f64,
}

pub fn chains(
    subject: &Subject,
    joint: &JointEnergy<&Model>,
    test: &ImageSet,
    settings: &Settings,
    device: &Device,
) -> Result<Chains> {
    let (chains, steps) = (16, settings.sample_steps);
    let mut noise = Noise::host(settings.seed);
    let energies = |x: Tensor<4>| -> Vec<f32> { joint.energy(x).into_data().iter::<f32>().collect() };
    let data = energies(test.tensor(&(0..test.len().min(200)).collect::<Vec<_>>(), device)?);
    let [channels, height, width] = test.image_shape();
    let x = subject.start.draw([chains, channels, height, width], None, &mut noise, device);
    let mut state = subject.sampler.init(joint, x);
    let mut by_step = vec![energies(Sampler::<4>::position(&subject.sampler, &state))];
    for _ in 0..steps {
        state = subject.sampler.step(joint, state, &mut noise).0;
        by_step.push(energies(subject.sampler.position(&state)));
    }
    let mut trace = EnergyTrace::new();
    for (step, values) in by_step.iter().enumerate() {
        trace.push(step as u64, values, &data)?;
    }
    let late = ChainSet::from_steps(&by_step[by_step.len() / 2..])?;
    Ok(Chains { chains, steps, energies: trace, rhat: late.rhat()?, effective_sample_size: late.ess_mean()? })
}
