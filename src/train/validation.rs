//! Validation: accuracy, cross-entropy and energy on a held-out set at the end of each epoch.

use burn::module::Module;
use burn::tensor::{Device, Tensor, activation};

use super::observer::{Observer, View};
use super::record::Values;
use crate::data::{Augmentation, Examples, label_tensor};
use crate::energy::{Classifier, JointEnergy};
use crate::error::{Error, Result, ensure};
use crate::noise::Noise;

/// What [`validate`] measures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Share of examples whose largest logit is that of their label.
    pub accuracy: f64,
    /// Mean of -log p(y|x), in nats.
    pub cross_entropy: f64,
    /// Mean of E(x).
    pub energy: f64,
}

/// Measures `model` on all of `set`, in batches of `batch`, without augmentation or noise.
///
/// Hand in `model.valid()`.
///
/// # Errors
/// [`Error::Config`] if the set or the batch is empty or a label is not the index of a logit.
pub fn validate<const D: usize, M: Classifier<D>, S: Examples<D>>(
    model: &M,
    set: &S,
    batch: usize,
    device: &Device,
) -> Result<Measured> {
    let labels = set.labels();
    ensure(batch > 0, "validation batch", batch, "at least 1")?;
    ensure(!labels.is_empty(), &format!("examples in {}", set.name()), 0, "at least 1")?;
    let joint = JointEnergy::new(model);
    let all: Vec<usize> = (0..labels.len()).collect();
    let mut sums = [0.0; 3];
    for indices in all.chunks(batch) {
        // Without augmentation nothing is drawn, so this noise stays untouched.
        let x = set.augmented(indices, &Augmentation::none(), &mut Noise::host(0), device)?;
        let logits = model.logits(x);
        let classes = logits.dims()[1];
        let labels: Vec<usize> = indices.iter().map(|&index| labels[index]).collect();
        if let Some(label) = labels.iter().find(|label| **label >= classes) {
            let field = format!("labels of {}", set.name());
            return Err(Error::config(field, label, format!("below the number of logits, {classes}")));
        }
        let target = label_tensor(&labels, device);
        let right = logits.clone().argmax(1).squeeze_dim(1).equal(target.clone()).float().sum();
        let log_p = activation::log_softmax(logits.clone(), 1).gather(1, target.unsqueeze_dim(1));
        let energy = joint.energy_of_logits(logits).sum();
        let numbers: Tensor<1> = Tensor::cat(vec![right, log_p.sum().neg(), energy], 0);
        for (sum, value) in sums.iter_mut().zip(numbers.into_data().iter::<f64>()) {
            *sum += value;
        }
    }
    let [accuracy, cross_entropy, energy] = sums.map(|sum| sum / labels.len() as f64);
    Ok(Measured { accuracy, cross_entropy, energy })
}

/// An observer that validates at the end of each epoch: the averaged weights where the run keeps them, else the
/// model's. It writes `NAME_accuracy`, `NAME_cross_entropy` and `NAME_energy`, and draws no random number.
#[derive(Debug, Clone)]
pub struct Validation<S> {
    name: String,
    set: S,
    batch: usize,
    device: Device,
}

impl<S> Validation<S> {
    /// Validation on `set`, whose values are called after `name`.
    pub fn new(name: impl Into<String>, set: S, batch: usize, device: &Device) -> Self {
        Self { name: name.into(), set, batch, device: device.clone() }
    }

    fn values<const D: usize, M>(&self, model: &M) -> Result<Values>
    where
        M: Classifier<D>,
        S: Examples<D>,
    {
        let measured = validate(model, &self.set, self.batch, &self.device)?;
        let name = |value| format!("{}_{value}", self.name);
        Ok([
            (name("accuracy"), measured.accuracy),
            (name("cross_entropy"), measured.cross_entropy),
            (name("energy"), measured.energy),
        ]
        .into())
    }
}

macro_rules! validate_each_epoch {
    ($($rank:literal => $set:ty),*) => {$(
        impl<M: Module + Classifier<$rank>, T> Observer<M, T> for Validation<$set> {
            fn on_epoch(&mut self, view: &View<'_, M, T>) -> Result<Values> {
                match view.average {
                    Some(average) => self.values(average),
                    None => self.values(&view.model.valid()),
                }
            }
        }
    )*};
}
validate_each_epoch!(4 => crate::data::ImageSet, 2 => crate::data::VectorSet);
