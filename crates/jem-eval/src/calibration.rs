//! Calibration: whether a confidence of 0.8 is right eight times in ten.

use serde::{Deserialize, Serialize};

use super::predictions::Predictions;
use jem_core::error::{Result, ensure};

/// How confidences are put into bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Binning {
    /// (0, 1/M\], (1/M, 2/M\], and so on up to 1.
    EqualWidth {
        /// M, at least 1.
        num_bins: usize,
    },
    /// As many examples in each bin. Examples of the same confidence stay in one bin, so that their order does
    /// not matter; a value that many examples share then makes one bin of what would have been several.
    EqualMass {
        /// M, at least 1.
        num_bins: usize,
    },
}

impl Default for Binning {
    /// 20 bins of equal width.
    fn default() -> Self {
        Self::EqualWidth { num_bins: 20 }
    }
}

/// The examples of one range of confidence. There is at least one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReliabilityBin {
    /// Lower end of the range: excluded for equal width, the smallest confidence in the bin for equal mass.
    pub lower: f64,
    /// Upper end of the range, included.
    pub upper: f64,
    /// How many examples.
    pub count: usize,
    /// Their mean confidence, max_y p(y|x).
    pub confidence: f64,
    /// The share of them that is classified right.
    pub accuracy: f64,
}

impl ReliabilityBin {
    fn of(lower: f64, upper: f64, members: &[(f64, bool)]) -> Self {
        let count = members.len() as f64;
        let confidence = members.iter().map(|(confidence, _)| confidence).sum::<f64>() / count;
        let accuracy = members.iter().filter(|(_, correct)| *correct).count() as f64 / count;
        Self { lower, upper, count: members.len(), confidence, accuracy }
    }

    /// |accuracy - confidence|.
    pub fn gap(&self) -> f64 {
        (self.accuracy - self.confidence).abs()
    }
}

/// A reliability diagram: the bins that hold examples, from low confidence to high.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reliability {
    bins: Vec<ReliabilityBin>,
}

impl Reliability {
    /// The bins. Empty ones are left out.
    pub fn bins(&self) -> &[ReliabilityBin] {
        &self.bins
    }

    /// The expected calibration error, Σ_b (n_b/n) |acc_b - conf_b|.
    ///
    /// Source: Naeini, Cooper & Hauskrecht 2015, "Obtaining well calibrated probabilities using Bayesian binning";
    /// Guo et al. 2017, arXiv 1706.04599.
    pub fn expected_calibration_error(&self) -> f64 {
        let examples: usize = self.bins.iter().map(|bin| bin.count).sum();
        self.bins.iter().map(|bin| bin.count as f64 * bin.gap()).sum::<f64>() / examples as f64
    }

    /// The maximum calibration error, max_b |acc_b - conf_b|.
    pub fn maximum_calibration_error(&self) -> f64 {
        self.bins.iter().map(ReliabilityBin::gap).fold(0.0, f64::max)
    }
}

impl Predictions {
    /// Accuracy against confidence, bin by bin.
    ///
    /// ```
    /// use jem_eval::{Binning, Predictions};
    /// // Sure of all, right about half.
    /// let predictions = Predictions::from_probabilities(&[0.0, 1.0, 0.0, 1.0], 2, &[1, 0])?;
    /// let reliability = predictions.reliability(Binning::EqualWidth { num_bins: 10 })?;
    /// let [bin] = reliability.bins() else { panic!("one bin") };
    /// assert_eq!((bin.lower, bin.upper, bin.count, bin.accuracy), (0.9, 1.0, 2, 0.5));
    /// assert_eq!(reliability.expected_calibration_error(), 0.5);
    /// # Ok::<(), jem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) for no bins.
    pub fn reliability(&self, binning: Binning) -> Result<Reliability> {
        let confidences = self.probabilities().confidences();
        let mut members: Vec<_> = confidences.into_iter().zip(self.correct()).collect();
        members.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let bins = match binning {
            Binning::EqualWidth { num_bins } => {
                ensure(num_bins > 0, "Binning::EqualWidth.num_bins", num_bins, "at least 1")?;
                equal_width(&members, num_bins)
            }
            Binning::EqualMass { num_bins } => {
                ensure(num_bins > 0, "Binning::EqualMass.num_bins", num_bins, "at least 1")?;
                equal_mass(&members, num_bins)
            }
        };
        Ok(Reliability { bins })
    }
}

/// Bins of sorted members at i/M.
fn equal_width(members: &[(f64, bool)], num_bins: usize) -> Vec<ReliabilityBin> {
    let edge = |index: usize| index as f64 / num_bins as f64;
    // Rounding in f32 may put a confidence a little above 1.
    let cut = |index: usize| {
        if index == num_bins {
            return members.len();
        }
        members.partition_point(|(confidence, _)| *confidence <= edge(index))
    };
    let occupied = (0..num_bins).filter_map(|index| {
        let inside = &members[cut(index)..cut(index + 1)];
        (!inside.is_empty()).then(|| ReliabilityBin::of(edge(index), edge(index + 1), inside))
    });
    occupied.collect()
}

/// Sorted members, cut where the shares k/M begin, or before the members that are as confident as the first
/// one there.
fn equal_mass(members: &[(f64, bool)], num_bins: usize) -> Vec<ReliabilityBin> {
    let cut = |share: usize| {
        let (first, _) = members[share * members.len() / num_bins];
        members.partition_point(|(confidence, _)| *confidence < first)
    };
    let mut cuts: Vec<usize> = (0..num_bins).map(cut).chain([members.len()]).collect();
    cuts.dedup();
    let bin = |ends: &[usize]| {
        let inside = &members[ends[0]..ends[1]];
        ReliabilityBin::of(inside[0].0, inside[inside.len() - 1].0, inside)
    };
    cuts.windows(2).map(bin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two classes; confidence c means p = \[c, 1 - c\] and a prediction of class 0.
    fn of(confidences: &[f64], labels: &[usize]) -> Predictions {
        let p: Vec<f64> = confidences.iter().flat_map(|c| [*c, 1.0 - c]).collect();
        Predictions::from_probabilities(&p, 2, labels).unwrap()
    }

    #[test]
    fn an_edge_belongs_to_the_bin_below_it() {
        let p = of(&[0.5, 0.6, 0.61, 1.0], &[0, 0, 1, 0]);
        let reliability = p.reliability(Binning::EqualWidth { num_bins: 10 }).unwrap();
        let found: Vec<_> = reliability.bins().iter().map(|bin| (bin.lower, bin.upper, bin.count)).collect();
        assert_eq!(found, [(0.4, 0.5, 1), (0.5, 0.6, 1), (0.6, 0.7, 1), (0.9, 1.0, 1)]);
        let expected = (0.5 + 0.4 + 0.61 + 0.0) / 4.0;
        assert!((reliability.expected_calibration_error() - expected).abs() < 1e-15);
        assert!((reliability.maximum_calibration_error() - 0.61).abs() < 1e-15);
    }

    #[test]
    fn equal_mass_does_not_tear_ties_apart() {
        let p = of(&[0.9, 0.6, 0.7, 0.7, 0.7, 0.8], &[0; 6]);
        let counts = |num_bins| -> Vec<usize> {
            let reliability = p.reliability(Binning::EqualMass { num_bins }).unwrap();
            reliability.bins().iter().map(|bin| bin.count).collect()
        };
        assert_eq!(counts(1), [6]);
        assert_eq!(counts(2), [1, 5]); // the second half would begin within the 0.7s
        assert_eq!(counts(6), [1, 3, 1, 1]);
        assert_eq!(counts(100), [1, 3, 1, 1]);
        assert!(p.reliability(Binning::EqualMass { num_bins: 0 }).is_err());
        assert!(p.reliability(Binning::EqualWidth { num_bins: 0 }).is_err());
    }
}
