//! In-painting: chains on the hidden half of a digit, given the visible half and the class.

use burn::tensor::{Device, Tensor};
use jem_core::Result;
use jem_core::data::{ImageSet, label_tensor};
use jem_core::energy::{Clamp, Classifier, JointEnergy};
use jem_core::noise::{Noise, Stream};
use jem_core::samplers::{Inpainting, Sampler, run};

use crate::guesses::{Known, PIXELS, Pixels, errors, images, mean, pixels};
use crate::options::Options;

/// Where chains begin in the hidden pixels.
const START: Stream = Stream::new("inpaint/start");

/// The name of the guess that others are compared with.
pub const CLASS_MEAN: &str = "mean image of the class";

/// One way to fill in, on every test digit.
pub struct Guess {
    pub name: String,
    /// Mean squared error in the hidden half, digit by digit, in units of [0, 1] pixels.
    pub errors: Vec<f64>,
}

/// All that was found of one hidden half.
pub struct Fill {
    pub name: &'static str,
    pub seen: [bool; PIXELS],
    /// The first is the mean of the chains, the second a single chain (the mean over the chains of its error).
    pub guesses: Vec<Guess>,
    /// The digits that each chain ended with.
    pub chains: Vec<Vec<Pixels>>,
    pub mean_of_chains: Vec<Pixels>,
    pub class_means: Vec<Pixels>,
    /// Visible pixels in all chains, and how many of them are not what they were, bit by bit.
    pub clamped: usize,
    pub changed: usize,
}

/// Hides the lower and the right half of each digit in turn.
pub fn all<C: Classifier<4>>(
    joint: &JointEnergy<C>,
    sampler: &(impl Sampler<4> + Clone),
    known: &Known,
    test: &ImageSet,
    options: &Options,
    noise: &mut Noise,
    device: &Device,
) -> Result<Vec<Fill>> {
    type IsSeen = fn(usize) -> bool;
    let halves: [(&'static str, IsSeen); 2] =
        [("lower half", |pixel| pixel / 8 < 4), ("right half", |pixel| pixel % 8 < 4)];
    let mut fills = Vec::new();
    for (name, is_seen) in halves {
        let seen: [bool; PIXELS] = std::array::from_fn(is_seen);
        let chains = chains(joint, sampler, test, &seen, options, noise, device)?;
        fills.push(measured(name, seen, chains, known, test, device)?);
    }
    Ok(fills)
}

/// The ends of the chains of all digits, a list for each of m chains.
fn chains<C: Classifier<4>>(
    joint: &JointEnergy<C>,
    sampler: &(impl Sampler<4> + Clone),
    test: &ImageSet,
    seen: &[bool; PIXELS],
    options: &Options,
    noise: &mut Noise,
    device: &Device,
) -> Result<Vec<Vec<Pixels>>> {
    let digits = test.all(device)?;
    let mask: Pixels = std::array::from_fn(|pixel| f32::from(u8::from(seen[pixel])));
    let mask = images(&[mask], device).expand(digits.dims()).bool();
    let inpainting = Inpainting::new(sampler.clone(), Clamp::new(mask, digits.clone())?);
    let given = joint.given(label_tensor(test.labels(), device));
    let (count, steps) = (options.shortened(options.chains, 3), options.shortened(options.fill_steps, 10));
    let chain = |_| {
        let start: Tensor<4> = noise.uniform(digits.dims(), -1.0..1.0, START, device);
        pixels(&run(&inpainting, &given, start, steps, noise))
    };
    Ok((0..count).map(chain).collect())
}

fn measured(
    name: &'static str,
    seen: [bool; PIXELS],
    chains: Vec<Vec<Pixels>>,
    known: &Known,
    test: &ImageSet,
    device: &Device,
) -> Result<Fill> {
    let (truth, labels) = (pixels(&test.all(device)?), test.labels());
    let hidden = seen.map(|seen| !seen);
    let changed = chains.iter().map(|chain| changed(chain, &truth, &seen)).sum();
    let clamped = chains.len() * truth.len() * seen.iter().filter(|seen| **seen).count();

    let count = chains.len() as f32;
    let clamp = |value: f32| value.clamp(-1.0, 1.0);
    let average = |digit: usize| -> Pixels {
        std::array::from_fn(|pixel| {
            chains.iter().map(|chain| clamp(chain[digit][pixel])).sum::<f32>() / count
        })
    };
    let mean_of_chains: Vec<Pixels> = (0..truth.len()).map(average).collect();
    let of_chains: Vec<Vec<f64>> = chains.iter().map(|chain| errors(chain, &truth, &hidden)).collect();
    let single = |digit: usize| mean(&of_chains.iter().map(|chain| chain[digit]).collect::<Vec<_>>());
    let class_means: Vec<Pixels> = labels.iter().map(|label| known.mean(Some(*label))).collect();

    let each = |guess: &dyn Fn(&Pixels, usize) -> Pixels| -> Vec<Pixels> {
        truth.iter().zip(labels).map(|(digit, label)| guess(digit, *label)).collect()
    };
    let overall = known.mean(None);
    let guess = |name: &str, guesses: &[Pixels]| Guess {
        name: name.to_owned(),
        errors: errors(guesses, &truth, &hidden),
    };
    let guesses = vec![
        guess(&format!("energy, mean of {} chains", chains.len()), &mean_of_chains),
        Guess { name: "energy, a single chain".to_owned(), errors: (0..truth.len()).map(single).collect() },
        guess(CLASS_MEAN, &class_means),
        guess("mean image of all digits", &each(&|_, _| overall)),
        guess("nearest training digit in the visible half", &each(&|x, _| known.neighbour(x, &seen, None))),
        guess("the same of its class", &each(&|x, label| known.neighbour(x, &seen, Some(label)))),
        guess("ridge regression of its class", &known.lines(&truth, labels, &seen)),
    ];
    Ok(Fill { name, seen, guesses, chains, mean_of_chains, class_means, clamped, changed })
}

/// Visible pixels whose bits are not those of the digit.
fn changed(found: &[Pixels], truth: &[Pixels], seen: &[bool; PIXELS]) -> usize {
    let of_digit = |(found, truth): (&Pixels, &Pixels)| {
        (0..PIXELS).filter(|pixel| seen[*pixel] && found[*pixel].to_bits() != truth[*pixel].to_bits()).count()
    };
    found.iter().zip(truth).map(of_digit).sum()
}
