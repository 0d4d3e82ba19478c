//! Change of class: chains that start from digits of one class and run under the energy of another.

use burn::tensor::{Device, Tensor};
use jem_core::Result;
use jem_core::data::{ImageSet, label_tensor};
use jem_core::energy::{Classifier, JointEnergy};
use jem_core::noise::Noise;
use jem_core::samplers::{Sampler, run};

use crate::guesses::{Known, PIXELS, Pixels, errors, mean, pixels};
use crate::options::Options;

/// Steps after which a chain is looked at.
const STEPS: [usize; 9] = [0, 2, 5, 10, 20, 40, 80, 160, 320];

/// The digits after so many steps, and what they are taken for.
pub struct Stage {
    pub steps: usize,
    pub digits: Vec<Pixels>,
    /// The share that the model reads as the class that was asked for.
    pub by_model: f64,
    /// The share whose nearest training digit is of that class.
    pub by_neighbour: f64,
    /// The share whose nearest training digit is still of the class that the chain came from.
    pub by_neighbour_before: f64,
    /// Mean squared distance from the digit that the chain started from, in units of [0, 1] pixels.
    pub distance: f64,
}

/// Every test digit of class a under E(·, a + 1), and 9 under E(·, 0).
pub fn all<C: Classifier<4>>(
    joint: &JointEnergy<C>,
    sampler: &impl Sampler<4>,
    known: &Known,
    test: &ImageSet,
    options: &Options,
    noise: &mut Noise,
    device: &Device,
) -> Result<Vec<Stage>> {
    let wanted: Vec<usize> = test.labels().iter().map(|label| (label + 1) % test.num_classes()).collect();
    let given = joint.given(label_tensor(&wanted, device));
    let mut x: Tensor<4> = test.all(device)?;
    let start = pixels(&x);
    let mut done = 0;
    let mut stages = Vec::new();
    let share = |found: &[usize], wanted: &[usize]| {
        found.iter().zip(wanted).filter(|(found, wanted)| found == wanted).count() as f64
            / wanted.len() as f64
    };
    for steps in STEPS {
        let until = options.shortened(steps, 10);
        x = run(sampler, &given, x, until - done, noise);
        done = until;
        let digits = pixels(&x);
        let best = joint.classifier().logits(x.clone()).argmax(1).into_data();
        let by_model: Vec<usize> = best.iter::<i64>().map(|class| class as usize).collect();
        let by_neighbour: Vec<usize> = digits.iter().map(|digit| known.judge(digit)).collect();
        stages.push(Stage {
            steps: until,
            by_model: share(&by_model, &wanted),
            by_neighbour: share(&by_neighbour, &wanted),
            by_neighbour_before: share(&by_neighbour, test.labels()),
            distance: mean(&errors(&digits, &start, &[true; PIXELS])),
            digits,
        });
    }
    stages.dedup_by_key(|stage| stage.steps);
    Ok(stages)
}
