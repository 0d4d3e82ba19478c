//! The best that an attack has found so far for each sample, and which samples it still works on.

use burn::tensor::{Bool, Int, Tensor, TensorData};

use super::loss::{Aim, AttackLoss, right_labels};
use super::pgd::{Adversarial, Goal};
use jem_core::data::label_tensor;
use jem_core::error::Result;
use jem_core::math::sample_extent;

/// An attack in progress. Samples that are broken leave it, so that no more is computed for them.
pub(super) struct Search<const D: usize> {
    aim: Aim,
    loss: AttackLoss,
    /// Which samples of the batch are still worked on, with their labels.
    active: Vec<usize>,
    labels: Vec<usize>,
    /// The active samples as they came, and the best of each so far.
    clean: Tensor<D>,
    best: Tensor<D>,
    /// What is known of all samples of the batch.
    found: Found,
    dims: [usize; D],
}

/// What is known of every sample of the batch.
struct Found {
    examples: Vec<f32>,
    succeeded: Vec<bool>,
    losses: Vec<f32>,
    restarts: Vec<Option<usize>>,
    non_finite: usize,
}

impl<const D: usize> Search<D> {
    /// An attack on all samples of `clean`; `labels` are those of the goal, not checked yet.
    pub fn new(clean: Tensor<D>, goal: Goal<'_>, loss: AttackLoss) -> Self {
        let dims = clean.dims();
        let [batch, elements] = sample_extent(&dims);
        let (aim, labels) = match goal {
            Goal::Untargeted(labels) => (Aim::Away, labels),
            Goal::Targeted(labels) => (Aim::Towards, labels),
        };
        let found = Found {
            examples: vec![0.0; batch * elements],
            succeeded: vec![false; batch],
            losses: vec![f32::NEG_INFINITY; batch],
            restarts: vec![None; batch],
            non_finite: 0,
        };
        let (active, labels) = ((0..batch).collect(), labels.to_vec());
        Self { aim, loss, active, labels, best: clean.clone(), clean, found, dims }
    }

    /// Whether there is nothing left to do.
    pub fn is_done(&self) -> bool {
        self.active.is_empty()
    }

    /// The active samples as they came.
    pub fn clean(&self) -> Tensor<D> {
        self.clean.clone()
    }

    /// The loss of the active samples as a function of their logits.
    pub fn loss(&self) -> impl Fn(Tensor<2>) -> Tensor<1> + use<D> {
        let (loss, aim) = (self.loss, self.aim);
        let labels: Tensor<1, Int> = label_tensor(&self.labels, &self.clean.device());
        move |logits| loss.of(logits, labels.clone(), aim)
    }

    /// Takes note of the samples as they came. Must be called first, since it checks the labels.
    pub fn observe_clean(&mut self, logits: Tensor<2>) -> Result<()> {
        right_labels(&self.labels, self.dims[0], logits.dims()[1])?;
        let loss = self.loss()(logits.clone());
        self.observe(&self.clean(), logits, loss, None, &mut []);
        Ok(())
    }

    /// Takes note of the active samples at `x`: where a sample is broken there, or has a higher loss than ever, `x`
    /// is its best. Broken ones leave the search, and the rows of `with` that belong to them are dropped too.
    pub fn observe(
        &mut self,
        x: &Tensor<D>,
        logits: Tensor<2>,
        loss: Tensor<1>,
        restart: Option<usize>,
        with: &mut [&mut Tensor<D>],
    ) {
        let width = logits.dims()[1] + 1;
        let numbers: Tensor<2> = Tensor::cat(vec![loss.unsqueeze_dim(1), logits], 1);
        let numbers: Vec<f32> = numbers.into_data().iter::<f32>().collect();
        let mut improved = vec![false; self.active.len()];
        let mut kept = Vec::new();
        for (row, numbers) in numbers.chunks_exact(width).enumerate() {
            let (loss, logits) = (numbers[0], &numbers[1..]);
            let sample = self.active[row];
            let broken = self.aim.reached(logits, self.labels[row]);
            self.found.non_finite += usize::from(logits.iter().any(|logit| !logit.is_finite()));
            if broken || loss > self.found.losses[sample] {
                improved[row] = true;
                self.found.losses[sample] = loss;
                self.found.restarts[sample] = restart;
            }
            self.found.succeeded[sample] = broken;
            if !broken {
                kept.push(row);
            }
        }
        if improved.contains(&true) {
            let mask: Tensor<1, Bool> =
                Tensor::from_data(TensorData::new(improved, [self.active.len()]), &x.device());
            let mut one_each = [1; D];
            one_each[0] = self.active.len();
            let mask = mask.reshape(one_each).expand(x.dims());
            self.best = self.best.clone().mask_where(mask, x.clone());
        }
        if kept.len() < self.active.len() {
            self.keep(&kept, with);
        }
    }

    /// Writes down the rows that are not kept, and drops them.
    fn keep(&mut self, kept: &[usize], with: &mut [&mut Tensor<D>]) {
        let done: Vec<usize> =
            (0..self.active.len()).filter(|row| kept.binary_search(row).is_err()).collect();
        self.write_down(&done);
        let of = |values: &[usize]| kept.iter().map(|row| values[*row]).collect::<Vec<usize>>();
        (self.active, self.labels) = (of(&self.active), of(&self.labels));
        if kept.is_empty() {
            return; // no tensor of no rows
        }
        let rows = label_tensor(kept, &self.clean.device());
        for tensor in [&mut self.clean, &mut self.best].into_iter().chain(with.iter_mut().map(|t| &mut **t)) {
            *tensor = tensor.clone().select(0, rows.clone());
        }
    }

    /// Copies the best of these active rows to where their samples belong.
    fn write_down(&mut self, rows: &[usize]) {
        if rows.is_empty() {
            return;
        }
        let [_, elements] = sample_extent(&self.dims);
        let chosen = self.best.clone().select(0, label_tensor(rows, &self.best.device()));
        let values: Vec<f32> = chosen.into_data().iter::<f32>().collect();
        for (row, values) in rows.iter().zip(values.chunks_exact(elements)) {
            let start = self.active[*row] * elements;
            self.found.examples[start..start + elements].copy_from_slice(values);
        }
    }

    /// The best of every sample.
    pub fn finish(mut self) -> Adversarial<D> {
        self.write_down(&(0..self.active.len()).collect::<Vec<_>>());
        let Found { examples, succeeded, losses, restarts, non_finite } = self.found;
        let examples = Tensor::from_data(TensorData::new(examples, self.dims), &self.clean.device());
        Adversarial { examples, succeeded, losses, restarts, non_finite }
    }
}
