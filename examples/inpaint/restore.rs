//! Restoration: chains that start from corrupted digits.

use burn::tensor::{Device, Tensor};
use jem_core::Result;
use jem_core::data::{ImageSet, label_tensor};
use jem_core::energy::{Classifier, EnergyModel, JointEnergy};
use jem_core::noise::{Noise, Stream};
use jem_core::samplers::{Sampler, run};
use rand::RngExt;

use crate::guesses::{Known, PIXELS, Pixels, errors, images, mean, pixels};
use crate::options::Options;

/// What spoils the digits.
const CORRUPTION: Stream = Stream::new("inpaint/corruption");
/// The share of pixels that become black or white.
const SALT_AND_PEPPER: f64 = 0.2;
/// The deviation of the noise, on [-1, 1].
const DEVIATION: f32 = 0.5;
/// Steps after which a chain is looked at.
pub const STEPS: [usize; 9] = [0, 1, 2, 5, 10, 20, 40, 80, 160];

/// One chain of all digits: what was seen of it after each of [`STEPS`].
pub struct Course {
    pub name: &'static str,
    /// Whether the chain was told the class.
    pub given: bool,
    /// Mean squared error against the clean digits.
    pub errors: Vec<f64>,
    /// The share that the model classifies right.
    pub accuracy: Vec<f64>,
    /// Which of the steps has the lowest error on corrupted training digits.
    pub chosen: usize,
    /// The digits there.
    pub restored: Vec<Pixels>,
}

/// All that was found of one kind of corruption.
pub struct Restoration {
    pub name: String,
    pub corrupted: Vec<Pixels>,
    pub courses: Vec<Course>,
    /// Guesses without an energy, and their mean squared errors.
    pub others: Vec<(&'static str, f64)>,
}

/// Salt and pepper, and Gaussian noise. The number of steps is chosen on digits of the first set, training digits,
/// and measured on those of the second.
pub fn all<C: Classifier<4>>(
    joint: &JointEnergy<C>,
    sampler: &impl Sampler<4>,
    known: &Known,
    (train, test): (&ImageSet, &ImageSet),
    options: &Options,
    noise: &mut Noise,
    device: &Device,
) -> Result<Vec<Restoration>> {
    type Corrupt = fn(Pixels, &mut Noise) -> Pixels;
    let kinds: [(String, Corrupt); 2] = [
        (format!("salt and pepper on {:.0} % of the pixels", 100.0 * SALT_AND_PEPPER), salt_and_pepper),
        (format!("noise of deviation {:.2} of the range", DEVIATION / 2.0), gaussian),
    ];
    let mut found = Vec::new();
    for (name, corrupt) in kinds {
        let mut spoilt = |set: &ImageSet| -> Result<Vec<Pixels>> {
            Ok(pixels(&set.all(device)?).into_iter().map(|digit| corrupt(digit, noise)).collect())
        };
        let (of_train, of_test) = (spoilt(train)?, spoilt(test)?);
        let mut courses = Vec::new();
        for given in [true, false] {
            let mut follow = |set: &ImageSet, corrupted: &[Pixels]| {
                follow(joint, sampler, given, set, corrupted, options, noise, device)
            };
            let train_errors = follow(train, &of_train)?.errors;
            let Seen { errors, accuracy, mut stages } = follow(test, &of_test)?;
            let best = |a: &usize, b: &usize| train_errors[*a].total_cmp(&train_errors[*b]);
            let chosen = (0..STEPS.len()).min_by(best).unwrap_or(0);
            let name = if given { "chain on E(x, y)" } else { "chain on E(x)" };
            courses.push(Course {
                name,
                given,
                errors,
                accuracy,
                chosen,
                restored: stages.swap_remove(chosen),
            });
        }
        let truth = pixels(&test.all(device)?);
        let error = |guesses: &[Pixels]| mean(&errors(guesses, &truth, &[true; PIXELS]));
        let medians: Vec<Pixels> = of_test.iter().map(median).collect();
        let class_means: Vec<Pixels> = test.labels().iter().map(|y| known.mean(Some(*y))).collect();
        let neighbours: Vec<Pixels> =
            of_test.iter().map(|digit| known.neighbour(digit, &[true; PIXELS], None)).collect();
        let others = vec![
            ("median of 3x3 pixels", error(&medians)),
            (crate::fill::CLASS_MEAN, error(&class_means)),
            ("nearest training digit", error(&neighbours)),
        ];
        found.push(Restoration { name, corrupted: of_test, courses, others });
    }
    Ok(found)
}

/// What was seen of a chain after each of [`STEPS`].
struct Seen {
    errors: Vec<f64>,
    accuracy: Vec<f64>,
    stages: Vec<Vec<Pixels>>,
}

/// One chain of all digits of a set.
#[allow(clippy::too_many_arguments)] // one call site
fn follow<C: Classifier<4>>(
    joint: &JointEnergy<C>,
    sampler: &impl Sampler<4>,
    given: bool,
    set: &ImageSet,
    corrupted: &[Pixels],
    options: &Options,
    noise: &mut Noise,
    device: &Device,
) -> Result<Seen> {
    let truth = pixels(&set.all(device)?);
    let with_labels = joint.given(label_tensor(set.labels(), device));
    let model: &dyn EnergyModel<4> = if given { &with_labels } else { joint };
    let mut x: Tensor<4> = images(corrupted, device);
    let (mut done, mut wrong, mut right, mut stages) = (0, Vec::new(), Vec::new(), Vec::new());
    for until in STEPS {
        let until = options.shortened(until, 10);
        x = run(sampler, model, x, until - done, noise);
        done = until;
        let best = joint.classifier().logits(x.clone()).argmax(1).into_data();
        let hits = best.iter::<i64>().zip(set.labels()).filter(|(y, label)| *y == **label as i64).count();
        right.push(hits as f64 / set.len() as f64);
        stages.push(pixels(&x));
        wrong.push(mean(&errors(&pixels(&x), &truth, &[true; PIXELS])));
    }
    Ok(Seen { errors: wrong, accuracy: right, stages })
}

fn salt_and_pepper(digit: Pixels, noise: &mut Noise) -> Pixels {
    let rng = noise.rng(CORRUPTION);
    digit.map(|pixel| match rng.random_bool(SALT_AND_PEPPER) {
        true if rng.random_bool(0.5) => 1.0,
        true => -1.0,
        false => pixel,
    })
}

fn gaussian(digit: Pixels, noise: &mut Noise) -> Pixels {
    let draws: Tensor<1> = noise.normal([PIXELS], CORRUPTION, &Device::default());
    let mut draws = draws.into_data().iter::<f32>().collect::<Vec<_>>().into_iter();
    digit.map(|pixel| pixel + DEVIATION * draws.next().unwrap_or(0.0))
}

/// The median of the pixels round each, without those beyond the edge.
fn median(digit: &Pixels) -> Pixels {
    std::array::from_fn(|pixel| {
        let (row, column) = (pixel / 8, pixel % 8);
        let range = |at: usize| at.saturating_sub(1)..=(at + 1).min(7);
        let mut near: Vec<f32> =
            range(row).flat_map(|r| range(column).map(move |c| digit[8 * r + c])).collect();
        near.sort_by(f32::total_cmp);
        let middle = near.len() / 2;
        if near.len() % 2 == 1 { near[middle] } else { (near[middle - 1] + near[middle]) / 2.0 }
    })
}
