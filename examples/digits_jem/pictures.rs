//! Digits that the model draws, and digits that it is shown.

use burn::tensor::{Device, Tensor};
use jem_core::Result;
use jem_core::data::{ImageSet, PixelRange, label_tensor};
use jem_core::energy::{Classifier, EnergyModel, JointEnergy};
use jem_core::noise::{Noise, Stream};
use jem_core::samplers::{ReplayBuffer, Sampler, run};
use jem_plot::{Picture, grid};
use rand::seq::SliceRandom;

/// What is drawn for pictures and comparisons, apart from training.
const PICTURES: Stream = Stream::new("digits_jem/pictures");

/// Images `[n, 1, 8, 8]` in rows of `columns`.
pub fn rows(images: &Tensor<4>, columns: usize) -> Result<Picture> {
    grid(images, (PixelRange::Symmetric.low(), PixelRange::Symmetric.high()), columns, 8, 2)
}

/// Uniform noise of the shape of digits.
pub fn uniform(count: usize, noise: &mut Noise, device: &Device) -> Tensor<4> {
    noise.uniform([count, 1, 8, 8], -1.0..1.0, PICTURES, device)
}

/// The digits of `set` with the pixels of each in an order of its own: the same grey levels, and no digit.
pub fn shuffled(set: &ImageSet, noise: &mut Noise, device: &Device) -> Result<Tensor<4>> {
    let mut bytes = set.bytes(&(0..set.len()).collect::<Vec<_>>())?;
    for image in bytes.chunks_exact_mut(set.image_size()) {
        image.shuffle(noise.rng(PICTURES));
    }
    let set =
        ImageSet::new("shuffled digits", bytes, set.image_shape(), set.labels().to_vec(), set.num_classes())?;
    set.all(device)
}

/// Chains from uniform noise under E(x, y), `per_class` for each y: after each of `steps`, all samples, a row
/// per class. No sample is picked or left out.
pub fn given_labels<C: Classifier<4>>(
    joint: &JointEnergy<C>,
    sampler: &impl Sampler<4>,
    (classes, per_class): (usize, usize),
    steps: &[usize],
    noise: &mut Noise,
    device: &Device,
) -> Vec<Tensor<4>> {
    let labels: Vec<usize> = (0..classes * per_class).map(|chain| chain / per_class).collect();
    let given = joint.given(label_tensor(&labels, device));
    let mut x = uniform(labels.len(), noise, device);
    let mut done = 0;
    let mut seen = Vec::new();
    for &until in steps {
        x = run(sampler, &given, x, until.saturating_sub(done), noise);
        done = until;
        seen.push(x.clone());
    }
    seen
}

/// One chain of each class through its `stages`: a row per class, a column per stage.
pub fn journeys(stages: &[Tensor<4>], classes: usize) -> Tensor<4> {
    let of_class = |class: usize| {
        stages.iter().map(move |x| {
            let per_class = x.dims()[0] / classes;
            x.clone().narrow(0, class * per_class, 1)
        })
    };
    Tensor::cat((0..classes).flat_map(of_class).collect(), 0)
}

/// The first `per_class` slots of the buffer that the model gives each class, a row per class, and how many
/// slots each class has. A class with too few slots has no row.
pub fn by_class<C: Classifier<4>>(
    joint: &JointEnergy<C>,
    buffer: &ReplayBuffer<4>,
    (classes, per_class): (usize, usize),
    device: &Device,
) -> (Option<Tensor<4>>, Vec<usize>) {
    let all = buffer.all(device);
    let best = joint.probabilities(all).argmax(1).into_data();
    let mut slots = vec![Vec::new(); classes];
    for (slot, class) in best.iter::<i64>().enumerate() {
        if let Some(of_class) = slots.get_mut(class as usize) {
            of_class.push(slot);
        }
    }
    let counts = slots.iter().map(Vec::len).collect();
    let shown: Vec<usize> =
        slots.iter().filter(|s| s.len() >= per_class).flat_map(|s| &s[..per_class]).copied().collect();
    ((!shown.is_empty()).then(|| buffer.read(&shown, device)), counts)
}

/// log p(x) up to a constant, of every image.
pub fn log_density<C: Classifier<4>>(joint: &JointEnergy<C>, x: Tensor<4>) -> Vec<f64> {
    joint.energy(x).neg().into_data().iter::<f64>().collect()
}
