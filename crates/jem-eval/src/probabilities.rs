//! Class probabilities of many examples, checked once.

use super::checks::{argmax, finite, num_rows};
use jem_core::error::{Error, Result};

/// A row of probabilities may miss 1 by this much, which is rounding in f32 over thousands of classes.
const SUM_TOLERANCE: f64 = 1e-4;

/// p(y|x) of one or more examples, in f64.
///
/// # Shapes
/// `[examples, classes]`, row after row.
///
/// ```
/// use jem_eval::ClassProbabilities;
///
/// // Three generated images, two classes; logits in f32 or f64.
/// let generated = ClassProbabilities::from_logits(&[2.0f32, 0.0, 1.0, 0.0, -1.0, 3.0], 2)?;
/// assert_eq!(generated.most_likely(), [0, 0, 1]);
/// assert_eq!(generated.class_counts(), [2, 1]);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ClassProbabilities {
    values: Vec<f64>,
    num_classes: usize,
}

impl ClassProbabilities {
    /// Probabilities that are at hand, row after row.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are one or more whole rows, [`Error::NonFinite`] for a NaN or an infinity,
    /// [`Error::Config`] for a negative probability or a row whose sum is off 1 by more than 1e-4.
    pub fn new<T: Copy + Into<f64>>(values: &[T], num_classes: usize) -> Result<Self> {
        num_rows("probabilities", values.len(), num_classes)?;
        let values = finite("probabilities", values)?;
        for (number, row) in values.chunks_exact(num_classes).enumerate() {
            if let Some(value) = row.iter().find(|value| **value < 0.0) {
                return Err(Error::config(format!("probabilities in row {number}"), value, "at least 0"));
            }
            let sum: f64 = row.iter().sum();
            if (sum - 1.0).abs() > SUM_TOLERANCE {
                let field = format!("sum of the probabilities in row {number}");
                return Err(Error::config(field, sum, "1, give or take 1e-4"));
            }
        }
        Ok(Self { values, num_classes })
    }

    /// softmax of logits, row after row.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are one or more whole rows, [`Error::NonFinite`] for a NaN or an infinity.
    pub fn from_logits<T: Copy + Into<f64>>(logits: &[T], num_classes: usize) -> Result<Self> {
        num_rows("logits", logits.len(), num_classes)?;
        let logits = finite("logits", logits)?;
        let values = logits.chunks_exact(num_classes).flat_map(|row| {
            let (max, sum) = max_and_sum(row);
            row.iter().map(move |logit| (logit - max).exp() / sum)
        });
        Ok(Self { values: values.collect(), num_classes })
    }

    /// How many examples, at least 1.
    #[allow(clippy::len_without_is_empty)] // there is always one
    pub fn len(&self) -> usize {
        self.values.len() / self.num_classes
    }

    /// How many classes.
    pub fn num_classes(&self) -> usize {
        self.num_classes
    }

    /// The probabilities of each example.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.values.chunks_exact(self.num_classes)
    }

    /// argmax_y p(y|x) of each example; the lowest class on ties.
    pub fn most_likely(&self) -> Vec<usize> {
        self.rows().map(argmax).collect()
    }

    /// max_y p(y|x) of each example.
    pub fn confidences(&self) -> Vec<f64> {
        self.rows().map(|row| row[argmax(row)]).collect()
    }

    /// How many examples are most likely of each class: for generated samples, which classes come out, and
    /// which do not.
    pub fn class_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.num_classes];
        for class in self.most_likely() {
            counts[class] += 1;
        }
        counts
    }

    /// The rows from `start` up to but without `end`, one after the other.
    pub(super) fn slice(&self, start: usize, end: usize) -> &[f64] {
        &self.values[start * self.num_classes..end * self.num_classes]
    }
}

/// The largest logit of a row, and Σ exp of the distances from it.
pub(super) fn max_and_sum(row: &[f64]) -> (f64, f64) {
    let max = row[argmax(row)];
    (max, row.iter().map(|logit| (logit - max).exp()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logits_of_any_size_give_probabilities() {
        let p = ClassProbabilities::from_logits(&[1000.0, 1000.0, -1000.0, 0.0], 2).unwrap();
        let expected = [0.5, 0.5, 0.0, 1.0];
        for (found, expected) in p.rows().flatten().zip(expected) {
            assert!((found - expected).abs() < 1e-12);
        }
        assert_eq!((p.len(), p.most_likely(), p.confidences()), (2, vec![0, 1], vec![0.5, 1.0]));
    }

    #[test]
    fn bad_rows_are_named() {
        let message =
            |values: &[f64], classes| ClassProbabilities::new(values, classes).unwrap_err().to_string();
        assert!(message(&[0.5, 0.5, 0.2], 2).contains("probabilities has shape [3]"));
        assert!(message(&[], 2).contains("one or more rows of 2"));
        assert!(message(&[1.0], 0).starts_with("numbers in a row of probabilities = 0"));
        assert!(message(&[0.5, 0.5, 0.5, 0.6], 2).starts_with("sum of the probabilities in row 1 = 1.1"));
        assert!(message(&[1.5, -0.5], 2).starts_with("probabilities in row 0 = -0.5"));
        assert_eq!(message(&[0.5, f64::NAN], 2), "probabilities[1] is not finite: NaN");
        let logits = ClassProbabilities::from_logits(&[0.0, f64::INFINITY], 2).unwrap_err();
        assert_eq!(logits.to_string(), "logits[1] is not finite: inf");
    }
}
