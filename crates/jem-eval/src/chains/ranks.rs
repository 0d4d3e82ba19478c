//! Normal scores of ranks, which make a diagnostic independent of the scale and the tails of the draws.

use statrs::distribution::{ContinuousCDF, Normal};

/// Φ⁻¹((r - 3/8)/(n + 1/4)) of the rank r of each value among all n; ties share their mean rank (Blom 1958).
pub(super) fn normal_scores(values: &[f64]) -> Vec<f64> {
    let normal = Normal::standard();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut scores = vec![0.0; values.len()];
    let mut before = 0;
    for ties in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = before as f64 + (ties.len() + 1) as f64 / 2.0;
        let score = normal.inverse_cdf((rank - 0.375) / (values.len() as f64 + 0.25));
        for index in ties {
            scores[*index] = score;
        }
        before += ties.len();
    }
    scores
}

/// |x - median| of each value: large in both tails.
pub(super) fn folded(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median = if sorted.len().is_multiple_of(2) {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    } else {
        sorted[middle]
    };
    values.iter().map(|value| (value - median).abs()).collect()
}

/// The quantile of a share p of sorted values, linear between neighbours (type 7 of Hyndman & Fan).
pub(super) fn quantile(sorted: &[f64], p: f64) -> f64 {
    let place = (sorted.len() - 1) as f64 * p;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - place.floor()) * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_symmetric_and_ties_share_one() {
        let scores = normal_scores(&[3.0, -7.0, 100.0, 3.0]);
        assert_eq!(scores[0], scores[3]);
        assert!(scores[0].abs() < 1e-12 && (scores[1] + scores[2]).abs() < 1e-12);
        // Φ⁻¹(0.625/4.25)
        assert!((scores[2] - 1.049_131_397_963_971).abs() < 1e-9, "{}", scores[2]);
    }

    #[test]
    fn medians_and_quantiles() {
        assert_eq!(folded(&[1.0, 4.0, 2.0]), [1.0, 2.0, 0.0]);
        assert_eq!(folded(&[1.0, 4.0, 2.0, 3.0]), [1.5, 1.5, 0.5, 0.5]);
        let sorted = [0.0, 1.0, 3.0];
        assert_eq!([0.0, 0.25, 0.75, 1.0].map(|p| quantile(&sorted, p)), [0.0, 0.5, 2.0, 3.0]);
        assert_eq!(quantile(&[0.1; 9], 0.05), 0.1);
    }
}
