//! The joint objective: cross-entropy for p(y|x) and contrastive terms for p(x) and p(x|y).

use std::cell::LazyCell;

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, activation};
use rand::RngExt;

use super::jem_config::{JemConfig, NegativeKind, terms};
use super::{Loss, Objective, Watch};
use crate::data::{JointBatch, label_tensor};
use crate::energy::{Classifier, ConditionalEnergy, EnergyModel, JointEnergy};
use crate::error::{Error, Result};
use crate::noise::{Noise, Stream};
use crate::samplers::{Negatives, Request, SampleSource};

/// The objective of a joint energy model:
///
/// ```text
/// L = w_yx · CE(f(x_lab), y_lab) + w_x · [ mean E(x) - mean E(x') ]
///   + w_xy · [ mean E(x_lab, y_lab) - mean E(x'|y_lab, y_lab) ] + α · [ mean E(x)² + mean E(x')² ]
/// ```
///
/// x' are samples drawn through the [`SampleSource`] from a snapshot of the model without autodiff
/// (`model.valid()`, its reparameterised weights worked out once), so no gradient flows through the chain and nothing
/// in the model changes. Data and
/// samples pass the model in batches of their own, so that batch norm does not mix them.
///
/// # Shapes
/// Batches are [`JointBatch`]es of any rank; the two parts may differ in size.
///
/// ```
/// use burn::tensor::Device;
/// use jem_core::samplers::{ImproperSgldConfig, ReplayConfig};
/// use jem_core::objectives::JemConfig;
///
/// let replay = ReplayConfig::new([3, 32, 32]).init(ImproperSgldConfig::new().init()?)?;
/// let objective = JemConfig::new().with_energy_magnitude(0.1).init(replay)?;
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Grathwohl et al. 2020, arXiv 1912.03263, equation 12 and algorithm 1; the squared energies from
/// Du & Mordatch 2019, arXiv 1903.08689.
#[derive(Debug, Clone)]
pub struct Jem<S> {
    config: JemConfig,
    source: S,
}

impl<S> Jem<S> {
    /// Only a checked configuration makes an objective: [`JemConfig::init`].
    pub(super) fn new(config: JemConfig, source: S) -> Self {
        Self { config, source }
    }

    /// The source of the negatives.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The configuration.
    pub fn config(&self) -> &JemConfig {
        &self.config
    }

    fn negatives<M, const D: usize>(
        &self,
        sampled: &JointEnergy<M>,
        count: usize,
        device: &Device,
        state: S::State,
        noise: &mut Noise,
    ) -> Result<(Negatives<D>, S::State)>
    where
        M: Classifier<D>,
        S: SampleSource<D>,
    {
        let NegativeKind::Conditional { num_classes } = self.config.negatives else {
            return self.source.draw(sampled, Request { count, labels: None, device }, state, noise);
        };
        let rng = noise.rng(Stream::LABELS);
        let labels: Vec<usize> = (0..count).map(|_| rng.random_range(0..num_classes)).collect();
        self.given_labels(sampled, &labels, device, state, noise)
    }

    fn given_labels<M, const D: usize>(
        &self,
        model: &JointEnergy<M>,
        labels: &[usize],
        device: &Device,
        state: S::State,
        noise: &mut Noise,
    ) -> Result<(Negatives<D>, S::State)>
    where
        M: Classifier<D>,
        S: SampleSource<D>,
    {
        let given = model.given(label_tensor(labels, device));
        let request = Request { count: labels.len(), labels: Some(labels), device };
        self.source.draw(&given, request, state, noise)
    }
}

impl<M, S, const D: usize> Objective<M, JointBatch<D>> for Jem<S>
where
    M: Module + Classifier<D>,
    S: SampleSource<D>,
{
    type State = S::State;

    fn start(&self, noise: &mut Noise, device: &Device) -> Result<S::State> {
        self.source.start(noise, device)
    }

    fn loss(
        &self,
        model: &M,
        batch: &JointBatch<D>,
        mut state: S::State,
        noise: &mut Noise,
    ) -> Result<(Loss, S::State)> {
        let JemConfig { classification_weight, marginal_weight, joint_weight, energy_magnitude, .. } =
            self.config;
        let joint = JointEnergy::new(model);
        let sampled = LazyCell::new(|| JointEnergy::new(model.valid().materialize()));
        let device = batch.unlabelled.device().without_autodiff();
        let mut sum = WeightedSum::default();

        if classification_weight > 0.0 {
            let logits = model.logits(batch.labelled.clone().autodiff());
            let labels = checked_labels(batch, logits.dims()[1])?;
            let right = logits.clone().argmax(1).squeeze_dim(1).equal(labels.clone());
            let log_p = activation::log_softmax(logits, 1).gather(1, labels.unsqueeze_dim(1));
            sum.add(None, terms::CROSS_ENTROPY, classification_weight, log_p.mean().neg());
            sum.note(Some(Watch::Accuracy), terms::ACCURACY, right.float().mean());
        }
        if marginal_weight > 0.0 {
            let count = batch.unlabelled.dims()[0];
            let (negatives, next) = self.negatives(&sampled, count, &device, state, noise)?;
            state = next;
            let data = joint.energy(batch.unlabelled.clone().autodiff());
            let samples = joint.energy(negatives.samples.autodiff());
            sum.note(Some(Watch::Energy), terms::ENERGY_DATA, data.clone().mean());
            sum.note(Some(Watch::Energy), terms::ENERGY_SAMPLES, samples.clone().mean());
            sum.add(
                Some(Watch::Gap),
                terms::ENERGY_GAP,
                marginal_weight,
                data.clone().mean() - samples.clone().mean(),
            );
            if energy_magnitude > 0.0 {
                let squares = data.square().mean() + samples.square().mean();
                sum.add(None, terms::ENERGY_MAGNITUDE, energy_magnitude, squares);
            }
            sum.restarted += negatives.restarted;
            sum.non_finite += negatives.non_finite;
        }
        if joint_weight > 0.0 {
            let (negatives, next) = self.given_labels(&sampled, &batch.labels, &device, state, noise)?;
            state = next;
            let labels = batch.label_tensor();
            let data = joint.energy_given(batch.labelled.clone().autodiff(), labels.clone());
            let samples = joint.energy_given(negatives.samples.autodiff(), labels);
            sum.add(Some(Watch::Gap), terms::JOINT_GAP, joint_weight, data.mean() - samples.mean());
            sum.restarted += negatives.restarted;
            sum.non_finite += negatives.non_finite;
        }
        Ok((sum.into_loss()?, state))
    }
}

/// The labels of the batch on its device, if each is the index of a logit.
fn checked_labels<const D: usize>(batch: &JointBatch<D>, classes: usize) -> Result<Tensor<1, Int>> {
    let count = batch.labelled.dims()[0];
    if batch.labels.len() != count {
        return Err(Error::shape("JointBatch.labels", &[batch.labels.len()], format!("[{count}]")));
    }
    if let Some(label) = batch.labels.iter().find(|label| **label >= classes) {
        return Err(Error::config(
            "JointBatch.labels",
            label,
            format!("below the number of logits, {classes}"),
        ));
    }
    Ok(batch.label_tensor())
}

/// A loss under construction.
#[derive(Default)]
struct WeightedSum {
    total: Option<Tensor<1>>,
    terms: Vec<(Option<Watch>, &'static str, Tensor<1>)>,
    restarted: usize,
    non_finite: usize,
}

impl WeightedSum {
    fn add(&mut self, watch: Option<Watch>, name: &'static str, weight: f64, value: Tensor<1>) {
        self.note(watch, name, value.clone());
        let weighted = if weight == 1.0 { value } else { value.mul_scalar(weight) };
        self.total = Some(match self.total.take() {
            Some(total) => total + weighted,
            None => weighted,
        });
    }

    fn note(&mut self, watch: Option<Watch>, name: &'static str, value: Tensor<1>) {
        self.terms.push((watch, name, value));
    }

    fn into_loss(self) -> Result<Loss> {
        let total = self.total.ok_or_else(|| Error::config("JemConfig", "all weights 0", "one above 0"))?;
        let mut loss = Loss::new(total);
        for (watch, name, value) in self.terms {
            match watch {
                Some(watch) => loss.add_watched(watch, name, value),
                None => loss.add_term(name, value),
            }
        }
        loss.add_count(terms::RESTARTED, self.restarted as f64);
        loss.add_watched_count(Watch::NonFiniteSamples, terms::NON_FINITE, self.non_finite as f64);
        Ok(loss)
    }
}
