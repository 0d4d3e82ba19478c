//! Classification: by argmin_y E(x, y) as an image came, and after refinement within a box round it.

use burn::tensor::{Device, Tensor};
use jem_core::Result;
use jem_core::data::ImageSet;
use jem_core::energy::{Classifier, JointEnergy};
use jem_core::noise::Noise;
use jem_core::samplers::{Neighbourhood, Sampler};
use jem_eval::attack::{Defence, Norm, PgdConfig, RefinedConfig, RefinedGivenConfig, RobustAccuracyConfig};

use crate::guesses::{Pixels, images};
use crate::options::Options;

/// The half-width of the box, in units of [0, 1] pixels.
pub const RADIUS: f64 = 8.0 / 255.0;
/// Sampler steps in the box.
pub const STEPS: usize = 10;
/// Radii of the attacks, in units of [0, 1] pixels.
pub const ATTACKS: [f64; 2] = [8.0 / 255.0, 32.0 / 255.0];
/// Digits of each class that are attacked.
pub const ATTACKED: usize = 10;
/// Steps of an attack, from one random start.
pub const ATTACK_STEPS: usize = 20;

/// What one rule gets right.
pub struct Rule {
    pub name: &'static str,
    /// Of the digits as they are.
    pub clean: f64,
    /// Of each kind of corrupted digits.
    pub corrupted: Vec<f64>,
    /// Of some of them under attack at each of [`ATTACKS`].
    pub attacked: Vec<f64>,
}

/// Three rules: as the image came, refined under each label, refined under E(x).
pub fn all<C: Classifier<4>>(
    joint: &JointEnergy<C>,
    sampler: &(impl Sampler<4> + Clone),
    test: &ImageSet,
    corrupted: &[&[Pixels]],
    options: &Options,
    noise: &mut Noise,
    device: &Device,
) -> Result<Vec<Rule>> {
    // The range of pixels is 2 wide for the model.
    let range = test.range();
    let near = Neighbourhood::new(Norm::Linf, 2.0 * RADIUS).with_bounds(range.low(), range.high());
    let steps = options.shortened(STEPS, 2);
    let per_label = RefinedGivenConfig::new(steps, test.num_classes()).with_neighbourhood(near);
    let per_label = per_label.init(joint, sampler.clone())?;
    let marginal = RefinedConfig::new(steps).with_repeats(1).with_noise_scale(0.0).with_neighbourhood(near);
    let marginal = marginal.init(JointEnergy::new(joint.classifier()), sampler.clone())?;
    let attack =
        PgdConfig::linf(ATTACKS[0]).with_num_steps(options.shortened(ATTACK_STEPS, 2)).with_restarts(1);
    let attack = RobustAccuracyConfig::new(attack, ATTACKS).init()?;

    let rules: [(&'static str, &dyn Defence<4>); 3] = [
        ("argmin E(x, y)", joint.classifier()),
        ("argmin E(x_y, y), refined under each y", &per_label),
        ("argmin E(x', y), refined under E(x)", &marginal),
    ];
    let digits: Tensor<4> = test.all(device)?;
    let victims = test.take_per_class(options.shortened(ATTACKED, 2))?;
    let mut found = Vec::new();
    for (name, rule) in rules {
        let mut right = |x: Tensor<4>| {
            let best = rule.classify(x, noise).argmax(1).into_data();
            let hits = best.iter::<i64>().zip(test.labels()).filter(|(y, label)| *y == **label as i64);
            hits.count() as f64 / test.len() as f64
        };
        let clean = right(digits.clone());
        let of_corrupted = corrupted.iter().map(|digits| right(images(digits, device))).collect();
        let curve = attack.run_batch(rule, victims.all(device)?, victims.labels(), range, noise)?;
        let attacked = curve.points.iter().map(|point| point.accuracy).collect();
        found.push(Rule { name, clean, corrupted: of_corrupted, attacked });
    }
    Ok(found)
}
