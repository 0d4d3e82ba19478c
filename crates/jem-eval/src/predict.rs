//! Logits of a whole set, in batches, on the host.

use burn::tensor::{Device, Tensor};

use super::Predictions;
use jem_core::data::{Augmentation, Examples};
use jem_core::energy::Classifier;
use jem_core::error::{Error, Result, ensure};
use jem_core::noise::Noise;

/// The logits and the labels of a set, example by example: what calibration starts from.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledLogits {
    logits: Vec<f32>,
    num_classes: usize,
    labels: Vec<usize>,
}

impl LabelledLogits {
    /// Logits `[examples, classes]`, row by row, with the label of each row.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no class, or a label is not below their number; [`Error::Shape`] if the
    /// logits are not labels times classes.
    pub fn new(logits: Vec<f32>, num_classes: usize, labels: Vec<usize>) -> Result<Self> {
        ensure(num_classes > 0, "LabelledLogits.num_classes", num_classes, "above 0")?;
        if labels.len().checked_mul(num_classes) != Some(logits.len()) {
            let expected = format!("{} labels times {num_classes}", labels.len());
            return Err(Error::shape("LabelledLogits.logits", &[logits.len()], expected));
        }
        if let Some(label) = labels.iter().find(|label| **label >= num_classes) {
            let allowed = format!("below the number of logits, {num_classes}");
            return Err(Error::config("LabelledLogits.labels", label, allowed));
        }
        Ok(Self { logits, num_classes, labels })
    }

    /// How many examples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// How many logits each example has.
    pub fn num_classes(&self) -> usize {
        self.num_classes
    }

    /// All logits, row by row.
    pub fn logits(&self) -> &[f32] {
        &self.logits
    }

    /// The true class of each example.
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }

    /// The logits of each example.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.logits.chunks_exact(self.num_classes)
    }

    /// p(y|x) of each example with its label: accuracy and calibration.
    ///
    /// # Errors
    /// As [`Predictions::from_logits`].
    pub fn predictions(&self) -> Result<Predictions> {
        Predictions::from_logits(&self.logits, self.num_classes, &self.labels)
    }
}

/// The logits of all of `set`, in batches of `batch`, without augmentation or noise.
///
/// Hand in `model.valid()`.
///
/// # Errors
/// [`Error::Config`] if the set or the batch is empty, or a label is not the index of a logit.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::data::VectorSet;
/// use jem_core::energy::Classifier;
/// use jem_eval::predict;
///
/// struct Logits; // f(x) = x
/// impl Classifier<2> for Logits {
///     fn logits(&self, x: Tensor<2>) -> Tensor<2> { x }
/// }
/// let set = VectorSet::new("three points", vec![1.0, 0.0, 0.0, 2.0, 3.0, 1.0], 2, vec![0, 1, 1], 2)?;
/// let logits = predict(&Logits, &set, 2, &Device::default())?;
/// let predictions = logits.predictions()?;
/// assert_eq!(predictions.probabilities().most_likely(), [0, 1, 0]);
/// assert!((predictions.accuracy() - 2.0 / 3.0).abs() < 1e-12);
/// # Ok::<(), jem_core::Error>(())
/// ```
pub fn predict<const D: usize, M: Classifier<D>, S: Examples<D>>(
    model: &M,
    set: &S,
    batch: usize,
    device: &Device,
) -> Result<LabelledLogits> {
    let (mut logits, mut num_classes) = (Vec::new(), 0);
    for_each_batch(set, batch, device, |x| {
        let rows = model.logits(x);
        num_classes = rows.dims()[1];
        logits.extend(rows.into_data().iter::<f32>());
        Ok(())
    })?;
    LabelledLogits::new(logits, num_classes, set.labels().to_vec())
}

/// Hands all examples of a set to `with`, in order, as they are.
pub(super) fn for_each_batch<const D: usize, S: Examples<D>>(
    set: &S,
    batch: usize,
    device: &Device,
    mut with: impl FnMut(Tensor<D>) -> Result<()>,
) -> Result<()> {
    ensure(batch > 0, "evaluation batch", batch, "at least 1")?;
    let count = set.labels().len();
    ensure(count > 0, &format!("examples in {}", set.name()), count, "at least 1")?;
    let all: Vec<usize> = (0..count).collect();
    for indices in all.chunks(batch) {
        // Without augmentation nothing is drawn, so this noise stays untouched.
        with(set.augmented(indices, &Augmentation::none(), &mut Noise::host(0), device)?)?;
    }
    Ok(())
}

/// The index of the largest number, the first of them where there are several, and 0 if none is a number.
pub(super) fn largest(row: &[f32]) -> usize {
    let mut best = 0;
    for (index, value) in row.iter().enumerate() {
        if *value > row[best] || (row[best].is_nan() && !value.is_nan()) {
            best = index;
        }
    }
    best
}

/// log Σ_y exp(β f\[y\]), with the largest logit taken out.
pub(super) fn log_sum_exp_of(row: &[f32], beta: f64) -> f64 {
    let max = beta * f64::from(row[largest(row)]);
    if max.is_infinite() {
        return max;
    }
    max + row.iter().map(|logit| (beta * f64::from(*logit) - max).exp()).sum::<f64>().ln()
}

/// max_y p(y|x) at inverse temperature β.
pub(super) fn confidence(row: &[f32], beta: f64) -> f64 {
    probability(row, largest(row), beta)
}

/// p(y|x) at inverse temperature β.
pub(super) fn probability(row: &[f32], label: usize, beta: f64) -> f64 {
    let own = f64::from(row[label]);
    1.0 / row.iter().map(|logit| (beta * (f64::from(*logit) - own)).exp()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_row_are_those_of_the_formulas() {
        let row = [1.0, 3.0, 3.0, -1.0];
        let sum: f64 = row.iter().map(|f| f64::from(*f).exp()).sum();
        assert_eq!(largest(&row), 1);
        assert_eq!((largest(&[f32::NAN, 2.0]), largest(&[f32::NAN; 2])), (1, 0));
        assert!((log_sum_exp_of(&row, 1.0) - sum.ln()).abs() < 1e-12);
        assert!((confidence(&row, 1.0) - 3f64.exp() / sum).abs() < 1e-12);
        let cold: f64 = row.iter().map(|f| (2.0 * f64::from(*f)).exp()).sum();
        assert!((probability(&row, 0, 2.0) - 2f64.exp() / cold).abs() < 1e-12);
        assert_eq!(log_sum_exp_of(&[1e4, 1e4], 1.0), 1e4 + 2f64.ln());
        assert!(confidence(&[f32::NAN, 1.0], 1.0).is_nan());
    }

    #[test]
    fn rows_that_do_not_fit_are_refused() {
        let message =
            |logits, classes, labels| LabelledLogits::new(logits, classes, labels).unwrap_err().to_string();
        assert!(message(vec![0.0; 3], 2, vec![0]).contains("1 labels times 2"));
        assert!(message(vec![0.0; 2], 2, vec![2]).contains("LabelledLogits.labels = 2"));
        assert!(message(vec![], 0, vec![]).contains("LabelledLogits.num_classes = 0"));
    }
}
