//! Telling two sets apart by one score: ROC curve, AUROC, average precision, FPR at a TPR.

use super::checks::finite;
use jem_core::error::{Error, Result, ensure};

/// What a threshold does: everything with `score >= threshold` counts as positive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RocPoint {
    /// The threshold, in the units of the score. Infinite at the first point.
    pub threshold: f64,
    /// Share of the positives that pass.
    pub true_positive_rate: f64,
    /// Share of the negatives that pass.
    pub false_positive_rate: f64,
}

/// The receiver operating characteristic of a score between positives and negatives.
///
/// For detection, positives are in-distribution and a large score means in-distribution, as for log p(x) or
/// max_y p(y|x).
///
/// ```
/// use jem_eval::RocCurve;
///
/// let inside = [0.9f32, 0.8, 0.4]; // max p(y|x) on test images
/// let outside = [0.5f32, 0.3];     // and on another data set
/// let curve = RocCurve::new(&inside, &outside)?;
/// assert_eq!(curve.auroc(), 5.0 / 6.0); // of 6 pairs, one is in the wrong order
/// assert_eq!(curve.fpr95(), 0.5);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RocCurve {
    num_positives: usize,
    num_negatives: usize,
    steps: Vec<Step>,
}

/// How many positives and negatives reach a threshold. Thresholds fall from step to step.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    threshold: f64,
    true_positives: usize,
    false_positives: usize,
}

impl RocCurve {
    /// The curve of the scores of positives and negatives.
    ///
    /// # Errors
    /// [`Error::Shape`] if either side is empty, [`Error::NonFinite`] for a NaN or an infinity.
    pub fn new<T: Copy + Into<f64>>(positives: &[T], negatives: &[T]) -> Result<Self> {
        let mut scores = Vec::with_capacity(positives.len() + negatives.len());
        for (what, side, is_positive) in
            [("scores of positives", positives, true), ("scores of negatives", negatives, false)]
        {
            if side.is_empty() {
                return Err(Error::shape(what, &[0], "at least one score"));
            }
            scores.extend(finite(what, side)?.into_iter().map(|score| (score, is_positive)));
        }
        scores.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let mut steps: Vec<Step> = Vec::new();
        let (mut true_positives, mut false_positives) = (0, 0);
        for ties in scores.chunk_by(|(a, _), (b, _)| a == b) {
            let positives = ties.iter().filter(|(_, is_positive)| *is_positive).count();
            true_positives += positives;
            false_positives += ties.len() - positives;
            steps.push(Step { threshold: ties[0].0, true_positives, false_positives });
        }
        Ok(Self { num_positives: positives.len(), num_negatives: negatives.len(), steps })
    }

    /// The area under the curve: the probability that a positive scores above a negative, ties counting half
    /// (the Mann-Whitney statistic). 1 is perfect, 0.5 is no information.
    ///
    /// Source: Hanley & McNeil 1982, "The meaning and use of the area under a ROC curve".
    pub fn auroc(&self) -> f64 {
        let mut twice_the_wins = 0u128;
        let (mut positives, mut negatives) = (0, 0);
        for step in &self.steps {
            let new_negatives = step.false_positives - negatives;
            twice_the_wins += new_negatives as u128 * (positives + step.true_positives) as u128;
            (positives, negatives) = (step.true_positives, step.false_positives);
        }
        twice_the_wins as f64 / (2.0 * self.num_positives as f64 * self.num_negatives as f64)
    }

    /// Average precision, Σ_n (R_n - R_{n-1}) P_n over falling thresholds, with recall R and precision P: the
    /// step-wise area under the precision-recall curve.
    ///
    /// It depends on how many negatives there are: no information gives the share of positives.
    pub fn average_precision(&self) -> f64 {
        let mut before = 0;
        let mut sum = 0.0;
        for step in &self.steps {
            let passed = (step.true_positives + step.false_positives) as f64;
            sum += (step.true_positives - before) as f64 * step.true_positives as f64 / passed;
            before = step.true_positives;
        }
        sum / self.num_positives as f64
    }

    /// The false-positive rate at the highest threshold that lets at least the share `tpr` of the positives
    /// pass.
    ///
    /// # Errors
    /// [`Error::Config`] unless 0 < `tpr` <= 1.
    pub fn fpr_at_tpr(&self, tpr: f64) -> Result<f64> {
        ensure(tpr > 0.0 && tpr <= 1.0, "RocCurve.fpr_at_tpr.tpr", tpr, "in (0, 1]")?;
        Ok(self.first_reaching(tpr))
    }

    /// The false-positive rate at a true-positive rate of 0.95.
    pub fn fpr95(&self) -> f64 {
        self.first_reaching(0.95)
    }

    fn first_reaching(&self, tpr: f64) -> f64 {
        let reaches = |step: &&Step| step.true_positives as f64 / self.num_positives as f64 >= tpr;
        self.steps.iter().find(reaches).map_or(1.0, |step| self.false_positive_rate(step))
    }

    fn false_positive_rate(&self, step: &Step) -> f64 {
        step.false_positives as f64 / self.num_negatives as f64
    }

    /// The curve from (0, 0), where nothing passes, to (1, 1): one point for each distinct score.
    pub fn points(&self) -> Vec<RocPoint> {
        let nothing =
            RocPoint { threshold: f64::INFINITY, true_positive_rate: 0.0, false_positive_rate: 0.0 };
        let point = |step: &Step| RocPoint {
            threshold: step.threshold,
            true_positive_rate: step.true_positives as f64 / self.num_positives as f64,
            false_positive_rate: self.false_positive_rate(step),
        };
        std::iter::once(nothing).chain(self.steps.iter().map(point)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_scores_carry_no_information() {
        let curve = RocCurve::new(&[0.3; 5], &[0.3; 7]).unwrap();
        assert_eq!((curve.auroc(), curve.average_precision(), curve.fpr95()), (0.5, 5.0 / 12.0, 1.0));
        assert_eq!(curve.points().len(), 2);
        // The two zeros are one score.
        assert_eq!(RocCurve::new(&[0.0], &[-0.0]).unwrap().auroc(), 0.5);
    }

    #[test]
    fn perfect_and_reversed_scores_are_the_ends() {
        let (high, low) = ([2.0, 3.0], [0.0, 1.0, 1.0]);
        let curve = RocCurve::new(&high, &low).unwrap();
        assert_eq!((curve.auroc(), curve.average_precision(), curve.fpr95()), (1.0, 1.0, 0.0));
        let curve = RocCurve::new(&low, &high).unwrap();
        assert_eq!((curve.auroc(), curve.fpr95()), (0.0, 1.0));
        assert_eq!(RocCurve::new(&[1.0], &[0.0]).unwrap().fpr95(), 0.0); // one of each
    }

    #[test]
    fn bad_input_is_named() {
        let message = |a: &[f64], b: &[f64]| RocCurve::new(a, b).unwrap_err().to_string();
        assert_eq!(message(&[], &[1.0]), "scores of positives has shape [0], expected at least one score");
        assert_eq!(message(&[1.0], &[]), "scores of negatives has shape [0], expected at least one score");
        assert_eq!(message(&[1.0], &[0.0, f64::NAN]), "scores of negatives[1] is not finite: NaN");
        let curve = RocCurve::new(&[1.0], &[0.0]).unwrap();
        for tpr in [0.0, 1.1, f64::NAN] {
            assert!(curve.fpr_at_tpr(tpr).unwrap_err().to_string().contains("in (0, 1]"));
        }
    }
}
