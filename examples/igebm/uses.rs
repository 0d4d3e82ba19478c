//! What the energy is good for: samples by class, images turned into another class, detection, classification.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use jem_core::Result;
use jem_core::data::{ImageSet, label_tensor};
use jem_core::energy::{EnergyClassifier, Given, JointEnergy};
use jem_core::noise::{Noise, Stream};
use jem_core::samplers::{FifoBuffer, ImproperSgld, Neighbourhood, run};
use jem_eval::attack::{Defence, Norm, RefinedGivenConfig};
use jem_eval::{RocCurve, Score, interpolated, score_set};
use jem_nn::EnergyResNet;
use rand::RngExt;

/// How far refinement may go in each pixel.
const RADIUS: f64 = 8.0 / 255.0;
/// What is drawn for comparisons, apart from training.
const COMPARISONS: Stream = Stream::new("igebm/comparisons");

/// The trained energy, with its weights worked out.
pub fn fixed(model: &EnergyResNet) -> EnergyResNet {
    model.valid().materialize()
}

/// The newest samples of each class in the queue, a row per class; a class with too few is left out.
pub fn from_queue(
    queue: &FifoBuffer<4>,
    classes: usize,
    per_class: usize,
    device: &Device,
) -> Option<Tensor<4>> {
    let newest: Vec<usize> = queue.by_age().into_iter().rev().collect();
    let of = |class: usize| -> Vec<usize> {
        newest.iter().copied().filter(|slot| queue.labels()[*slot] == Some(class)).take(per_class).collect()
    };
    let slots: Vec<usize> = (0..classes).map(of).filter(|slots| slots.len() == per_class).flatten().collect();
    (!slots.is_empty()).then(|| queue.read(&slots, device))
}

/// Chains from uniform noise under E(x, y), a row per class. None is picked.
pub fn from_noise(
    model: &EnergyResNet,
    sampler: &ImproperSgld,
    set: &ImageSet,
    (per_class, steps): (usize, usize),
    noise: &mut Noise,
    device: &Device,
) -> Tensor<4> {
    let labels: Vec<usize> = (0..set.num_classes() * per_class).map(|chain| chain / per_class).collect();
    let [channels, height, width] = set.image_shape();
    let x = noise.uniform([labels.len(), channels, height, width], 0.0..1.0, COMPARISONS, device);
    run(sampler, &Given::new(model, label_tensor(&labels, device)), x, steps, noise)
}

/// Cross-class sampling: the first test image of each class, and where chains from it end under each label. A row per
/// class that they start from: the image, then a column per label.
pub fn across(
    model: &EnergyResNet,
    sampler: &ImproperSgld,
    set: &ImageSet,
    steps: usize,
    noise: &mut Noise,
    device: &Device,
) -> Result<Tensor<4>> {
    let classes = set.num_classes();
    let firsts: Vec<usize> =
        (0..classes).filter_map(|class| set.labels().iter().position(|label| *label == class)).collect();
    let starts: Vec<usize> = firsts.iter().flat_map(|index| vec![*index; classes]).collect();
    let labels: Vec<usize> = firsts.iter().flat_map(|_| 0..classes).collect();
    let given = Given::new(model, label_tensor(&labels, device));
    let ends = run(sampler, &given, set.tensor(&starts, device)?, steps, noise);
    let images = set.tensor(&firsts, device)?;
    let row = |at: usize| [images.clone().narrow(0, at, 1), ends.clone().narrow(0, at * classes, classes)];
    Ok(Tensor::cat((0..firsts.len()).flat_map(row).collect(), 0))
}

/// What the test images are told apart from, and how well -log Σ_y exp(-E(x, y)) does it.
pub struct Detection {
    /// Names, AUROC and mean energies.
    pub rows: Vec<(String, f64, f64)>,
    /// Mean energy of the test images.
    pub test: f64,
    /// Mean energy of the training images, as many.
    pub train: f64,
}

/// Energies of test images against those of what is no photograph.
pub fn detect(
    model: &EnergyResNet,
    train: &ImageSet,
    test: &ImageSet,
    noise: &mut Noise,
    device: &Device,
) -> Result<Detection> {
    let joint = JointEnergy::new(EnergyClassifier::new(model, test.num_classes())?);
    let log_density = |set: &ImageSet| -> Result<Vec<f64>> {
        let table = score_set(&joint, set, &[Score::LogDensity], 20, device)?;
        Ok(table.get(Score::LogDensity).unwrap_or_default().to_vec())
    };
    let (count, size) = (test.len(), test.image_size());
    let rng = noise.rng(COMPARISONS);
    let uniform: Vec<u8> = (0..count * size).map(|_| rng.random()).collect();
    let pixels = size / test.image_shape()[0];
    let constant: Vec<u8> =
        (0..count * test.image_shape()[0]).flat_map(|_| vec![rng.random::<u8>(); pixels]).collect();
    let set = |name: &str, bytes: Vec<u8>| -> Result<ImageSet> {
        let labels = test.labels().to_vec();
        Ok(ImageSet::new(name, bytes, test.image_shape(), labels, test.num_classes())?
            .with_range(test.range()))
    };
    let others = [
        set("uniform noise", uniform)?,
        set("images of one colour", constant)?,
        interpolated(test)?.with_name("means of two test images"),
    ];
    let mean = |values: &[f64]| -values.iter().sum::<f64>() / values.len().max(1) as f64;
    let inside = log_density(test)?;
    let mut rows = Vec::new();
    for other in others {
        let outside = log_density(&other)?;
        rows.push((other.name().to_owned(), RocCurve::new(&inside, &outside)?.auroc(), mean(&outside)));
    }
    let seen: Vec<usize> = (0..count.min(train.len())).collect();
    Ok(Detection { rows, test: mean(&inside), train: mean(&log_density(&train.subset(&seen)?)?) })
}

/// Share of `set` for which argmin_y E(x_y, y) is the label, x_y being `steps` steps from x under y, within 8/255.
pub fn accuracy(
    model: &EnergyResNet,
    sampler: &ImproperSgld,
    set: &ImageSet,
    steps: usize,
    noise: &mut Noise,
    device: &Device,
) -> Result<f64> {
    let near = Neighbourhood::new(Norm::Linf, RADIUS).with_bounds(0.0, 1.0);
    let refined = RefinedGivenConfig::new(steps, set.num_classes())
        .with_neighbourhood(near)
        .init(model, sampler.clone())?;
    let mut right = 0;
    let all: Vec<usize> = (0..set.len()).collect();
    for part in all.chunks(20) {
        let found = refined.classify(set.tensor(part, device)?, noise).argmax(1).into_data();
        right += found.iter::<i64>().zip(part).filter(|(y, i)| set.labels()[**i] == *y as usize).count();
    }
    Ok(right as f64 / set.len().max(1) as f64)
}
