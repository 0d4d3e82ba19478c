//! Predictions of a classifier beside the truth, and the scores that need no bins.

use super::checks::{check_labels, finite, num_rows};
use super::probabilities::{ClassProbabilities, max_and_sum};
use jem_core::error::Result;

/// p(y|x) of examples whose labels are known.
///
/// ```
/// use jem_eval::{Binning, Predictions};
///
/// let logits = [2.0f32, 0.0, 0.5, 0.0, 0.0, 1.0]; // three examples, two classes
/// let predictions = Predictions::from_logits(&logits, 2, &[0, 1, 1])?;
/// assert_eq!(predictions.accuracy(), 2.0 / 3.0);
/// let calibration = predictions.reliability(Binning::default())?;
/// println!("ECE {:.3}", calibration.expected_calibration_error());
/// println!("Brier score {:.3}", predictions.brier_score());
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    probabilities: ClassProbabilities,
    labels: Vec<usize>,
    log_likelihoods: Vec<f64>, // log p(label|x)
}

impl Predictions {
    /// Probabilities with a label for each row.
    ///
    /// # Errors
    /// [`Error::Shape`](jem_core::Error::Shape) unless there are as many labels as rows,
    /// [`Error::Config`](jem_core::Error::Config) for a label that is not a class.
    pub fn new(probabilities: ClassProbabilities, labels: &[usize]) -> Result<Self> {
        check_labels(labels, probabilities.len(), probabilities.num_classes())?;
        let log_likelihoods = probabilities.rows().zip(labels).map(|(row, label)| row[*label].ln()).collect();
        Ok(Self { probabilities, labels: labels.to_vec(), log_likelihoods })
    }

    /// Logits, row after row, with a label for each row. The likelihood of a label is computed from the logits,
    /// and stays finite where its probability is too small for a number.
    ///
    /// # Errors
    /// Those of [`new`](Self::new) and of [`ClassProbabilities::from_logits`].
    pub fn from_logits<T: Copy + Into<f64>>(
        logits: &[T],
        num_classes: usize,
        labels: &[usize],
    ) -> Result<Self> {
        let rows = num_rows("logits", logits.len(), num_classes)?;
        let logits = finite("logits", logits)?;
        check_labels(labels, rows, num_classes)?;
        let probabilities = ClassProbabilities::from_logits(&logits, num_classes)?;
        let log_likelihood = |(row, label): (&[f64], &usize)| {
            let (max, sum) = max_and_sum(row);
            row[*label] - max - sum.ln()
        };
        let log_likelihoods = logits.chunks_exact(num_classes).zip(labels).map(log_likelihood).collect();
        Ok(Self { probabilities, labels: labels.to_vec(), log_likelihoods })
    }

    /// Probabilities, row after row, with a label for each row.
    ///
    /// # Errors
    /// Those of [`new`](Self::new) and of [`ClassProbabilities::new`].
    pub fn from_probabilities<T: Copy + Into<f64>>(
        probabilities: &[T],
        num_classes: usize,
        labels: &[usize],
    ) -> Result<Self> {
        Self::new(ClassProbabilities::new(probabilities, num_classes)?, labels)
    }

    /// How many examples, at least 1.
    #[allow(clippy::len_without_is_empty)] // there is always one
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// p(y|x).
    pub fn probabilities(&self) -> &ClassProbabilities {
        &self.probabilities
    }

    /// The true classes.
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }

    /// Whether the most likely class of each example is its label.
    pub fn correct(&self) -> Vec<bool> {
        let predicted = self.probabilities.most_likely();
        predicted.iter().zip(&self.labels).map(|(predicted, label)| predicted == label).collect()
    }

    /// Share of examples whose most likely class is their label.
    pub fn accuracy(&self) -> f64 {
        let correct = self.correct().into_iter().filter(|correct| *correct).count();
        correct as f64 / self.len() as f64
    }

    /// Mean of -log p(y|x), in nats. Infinite if a label was given the probability 0.
    pub fn negative_log_likelihood(&self) -> f64 {
        -self.log_likelihoods.iter().sum::<f64>() / self.len() as f64
    }

    /// The Brier score, mean Σ_c (p(c|x) - \[c = y\])², from 0 to 2.
    ///
    /// For two classes this is twice the score of the positive class alone.
    ///
    /// Source: Brier 1950, "Verification of forecasts expressed in terms of probability".
    pub fn brier_score(&self) -> f64 {
        let score = |(row, label): (&[f64], &usize)| -> f64 {
            let truth = |class| if class == *label { 1.0 } else { 0.0 };
            row.iter().enumerate().map(|(class, p)| (p - truth(class)).powi(2)).sum()
        };
        self.probabilities.rows().zip(&self.labels).map(score).sum::<f64>() / self.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_match_hand_computed_numbers() {
        let p = Predictions::from_probabilities(&[0.8, 0.2, 0.6, 0.4], 2, &[0, 1]).unwrap();
        assert_eq!((p.accuracy(), p.correct()), (0.5, vec![true, false]));
        assert!((p.brier_score() - (2.0 * 0.04 + 2.0 * 0.36) / 2.0).abs() < 1e-15);
        assert!((p.negative_log_likelihood() + (0.8f64.ln() + 0.4f64.ln()) / 2.0).abs() < 1e-15);
    }

    #[test]
    fn likelihoods_from_logits_do_not_underflow() {
        let p = Predictions::from_logits(&[2000.0f32, 0.0], 2, &[1]).unwrap();
        assert_eq!(p.negative_log_likelihood(), 2000.0);
        let p = Predictions::from_probabilities(&[1.0, 0.0], 2, &[1]).unwrap();
        assert_eq!(p.negative_log_likelihood(), f64::INFINITY);
    }

    #[test]
    fn labels_must_fit() {
        for (labels, part) in [(&[0, 2][..], "labels[1] = 2"), (&[0], "labels has shape [1]")] {
            let error = Predictions::from_logits(&[0.0; 4], 2, labels).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
            assert!(Predictions::from_probabilities(&[0.5; 4], 2, labels).is_err());
        }
    }
}
