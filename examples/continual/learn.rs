//! The ways to learn: a network, a set of labels that the loss names, and one pair of digits after the other.

use burn::module::Module;
use burn::optim::AdamConfig;
use burn::tensor::Device;
use jem_core::data::{ImageLoader, JointBatch, LoaderConfig, Split, label_tensor};
use jem_core::energy::Classifier;
use jem_core::inference::EnergyTable;
use jem_core::noise::Noise;
use jem_core::objectives::energy_based::{AnswerEnergies, AnswerSet, EblLoss, EnergyBased};
use jem_core::train::{Trainer, TrainerConfig};
use jem_core::{Error, Result};
use jem_nn::{Activation, Mlp, MlpConfig};

use crate::model::ConditionalMlp;
use crate::{BATCH, CLASSES, Options, PAIRS};

/// Some of the classes as the set of answers: all others are left out of the loss.
struct Among(Vec<usize>);

impl<M: Classifier<4>> AnswerSet<M, JointBatch<4>> for Among {
    fn energies(
        &self,
        model: &M,
        batch: &JointBatch<4>,
        loss: &EblLoss,
        _noise: &mut Noise,
    ) -> Result<AnswerEnergies> {
        let logits = model.logits(batch.labelled.clone().autodiff());
        let device = batch.labelled.device().without_autodiff();
        let columns = label_tensor(&self.0, &device);
        let table = EnergyTable::new(logits.neg().select(1, columns))?;
        let place = |label: &usize| self.0.iter().position(|other| other == label);
        let missing = |label: &usize| Error::config("label", label, format!("one of {:?}", self.0));
        let correct: Vec<usize> = (batch.labels.iter())
            .map(|label| place(label).ok_or_else(|| missing(label)))
            .collect::<Result<_>>()?;
        let energies =
            AnswerEnergies::new(table.of_answers(&correct)?, table.most_offending(&correct)?.energy);
        let beta = loss.inverse_temperature().unwrap_or(1.0);
        Ok(energies.with_lowest(table.lowest().energy).with_free_energy(table.free_energy(beta)?))
    }
}

/// One way to learn.
#[derive(Clone, Copy)]
pub struct Method {
    pub name: &'static str,
    pub key: &'static str,
    conditional: bool,
    /// Whether the loss names the labels of the present pair only.
    present_only: bool,
}

pub const METHODS: [Method; 4] = [
    Method { name: "energy, labels of the pair", key: "energy_pair", conditional: true, present_only: true },
    Method { name: "softmax, all ten labels", key: "softmax_all", conditional: false, present_only: false },
    Method {
        name: "softmax, labels of the pair",
        key: "softmax_pair",
        conditional: false,
        present_only: true,
    },
    Method { name: "energy, all ten labels", key: "energy_all", conditional: true, present_only: false },
];

/// What one run left: accuracy over all digits after each pair, and at the end that over the digits of each pair.
pub struct Learnt {
    pub over_all: Vec<f64>,
    pub at_end: Vec<f64>,
    pub parameters: usize,
}

/// Shares of right answers over all test digits and over those of each pair, argmin_y E(x, y) over all ten labels.
fn accuracies(model: &impl Classifier<4>, data: &Split, device: &Device) -> Result<(f64, Vec<f64>)> {
    let best = EnergyTable::of_classifier(model, data.test.all(device)?)?.lowest().index.into_data();
    let right: Vec<bool> =
        best.iter::<i64>().zip(data.test.labels()).map(|(found, label)| found == *label as i64).collect();
    let share = |of: &dyn Fn(usize) -> bool| {
        let chosen: Vec<bool> =
            right.iter().zip(data.test.labels()).filter(|(_, label)| of(**label)).map(|(r, _)| *r).collect();
        chosen.iter().filter(|right| **right).count() as f64 / chosen.len() as f64
    };
    let of_pairs = PAIRS.iter().map(|pair| share(&|label| pair.contains(&label))).collect();
    Ok((share(&|_| true), of_pairs))
}

/// Trains on the digits of each of `parts` in turn.
fn learn<M: Module + Classifier<4>>(
    mut model: M,
    parts: &[Vec<usize>],
    present_only: bool,
    options: &Options,
    data: &Split,
    noise: &Noise,
    device: &Device,
) -> Result<Learnt> {
    let (mut over_all, mut at_end) = (Vec::new(), Vec::new());
    // The same number of iterations, whatever the number of parts.
    let iterations = options.iterations() * (PAIRS.len() / parts.len()) as u64;
    for (number, part) in parts.iter().enumerate() {
        let images = data.train.subset(&of_classes(data.train.labels(), part))?;
        let batches = ImageLoader::new(images.clone(), images, &LoaderConfig::new(BATCH), device)?;
        let answers = Among(if present_only { part.clone() } else { (0..CLASSES).collect() });
        let loss = EblLoss::NegativeLogLikelihood { inverse_temperature: 1.0 };
        let mut trainer =
            Trainer::new(EnergyBased::new(loss, answers)?, batches, TrainerConfig::new(iterations))
                .with_learning_rate(options.learning_rate.into());
        // Another order of examples for each pair, and the same for every method.
        let state = trainer.start(model, AdamConfig::new().init(), noise.fork(number as u64), device)?;
        let (state, outcome) = trainer.train(state)?;
        outcome.into_result(state.iteration)?;
        model = state.model;
        let (all, of_pairs) = accuracies(&model.valid(), data, device)?;
        over_all.push(all);
        at_end = of_pairs;
    }
    Ok(Learnt { over_all, at_end, parameters: model.num_params() })
}

fn of_classes(labels: &[usize], classes: &[usize]) -> Vec<usize> {
    (0..labels.len()).filter(|index| classes.contains(&labels[*index])).collect()
}

/// A network of either kind, drawn from the seed.
pub fn run_method(
    method: Method,
    parts: &[Vec<usize>],
    seed: u64,
    options: &Options,
    data: &Split,
    device: &Device,
) -> Result<Learnt> {
    let mut noise = Noise::host(seed);
    let (inputs, tracked) = (data.train.image_size(), device.clone().autodiff());
    if method.conditional {
        let model = ConditionalMlp::init(inputs, options.width, &mut noise, &tracked)?;
        return learn(model, parts, method.present_only, options, data, &noise, device);
    }
    let model: Mlp = MlpConfig::new(inputs, vec![options.width; 2], CLASSES)
        .with_activation(Activation::Silu)
        .init(&mut noise, &tracked)?;
    learn(model, parts, method.present_only, options, data, &noise, device)
}
