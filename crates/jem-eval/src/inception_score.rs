//! The Inception Score: whether samples are each of one class, and together of all.

use serde::{Deserialize, Serialize};

use super::checks::{mean, variance};
use super::probabilities::ClassProbabilities;
use jem_core::error::{Result, ensure};

/// An Inception Score over splits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct InceptionScore {
    /// Mean over the splits, from 1 to the number of classes.
    pub mean: f64,
    /// Standard deviation over the splits (divided by n, as the score is published).
    pub standard_deviation: f64,
}

/// The Inception Score of generated samples from p(y|x) of a classifier, over `splits` equal parts in order.
///
/// ```text
/// IS = exp( mean_x KL(p(y|x) ‖ p(y)) ),    p(y) = mean_x p(y|x)
/// ```
///
/// Published scores use Inception-v3, 50,000 samples and 10 splits; scores of another classifier, or of another
/// number of samples per split, cannot be compared with them. A JEM's own p(y|x) judges its own samples kindly.
///
/// ```
/// use jem_eval::{ClassProbabilities, inception_score};
/// let sure = ClassProbabilities::new(&[1.0, 0.0, 0.0, 1.0], 2)?;
/// assert_eq!(inception_score(&sure, 1)?.mean, 2.0);
/// let unsure = ClassProbabilities::new(&[0.5, 0.5, 0.5, 0.5], 2)?;
/// assert_eq!(inception_score(&unsure, 1)?.mean, 1.0);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`](jem_core::Error::Config) for no splits, or for fewer than 2 samples in one.
///
/// Source: Salimans et al. 2016, arXiv 1606.03498.
pub fn inception_score(probabilities: &ClassProbabilities, splits: usize) -> Result<InceptionScore> {
    let samples = probabilities.len();
    ensure(samples >= 2, "samples for an Inception Score", samples, "at least 2")?;
    let allowed = format!("at least 1, and at most half of the {samples} samples");
    ensure(splits >= 1 && splits <= samples / 2, "splits of the Inception Score", splits, &allowed)?;
    let part = |index: usize| (index * samples / splits, (index + 1) * samples / splits);
    let scores: Vec<f64> = (0..splits)
        .map(part)
        .map(|(start, end)| score(probabilities.slice(start, end), probabilities.num_classes()))
        .collect();
    Ok(InceptionScore { mean: mean(&scores), standard_deviation: variance(&scores, 0).sqrt() })
}

/// The score of one split.
fn score(rows: &[f64], num_classes: usize) -> f64 {
    let count = (rows.len() / num_classes) as f64;
    let mut marginal = vec![0.0; num_classes];
    for row in rows.chunks_exact(num_classes) {
        marginal.iter_mut().zip(row).for_each(|(sum, p)| *sum += p / count);
    }
    let term = |(p, q): (&f64, &f64)| if *p > 0.0 { p * (p / q).ln() } else { 0.0 };
    let divergence: f64 =
        rows.chunks_exact(num_classes).flat_map(|row| row.iter().zip(&marginal)).map(term).sum();
    (divergence / count).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_one_and_the_number_of_classes() {
        let one_hot: Vec<f64> =
            (0..12).flat_map(|i| [0, 1, 2].map(|c| f64::from(u8::from(i % 3 == c)))).collect();
        let all = ClassProbabilities::new(&one_hot, 3).unwrap();
        for splits in [1, 2, 4] {
            let score = inception_score(&all, splits).unwrap();
            assert!((score.mean - 3.0).abs() < 1e-12 && score.standard_deviation < 1e-12);
        }
        let one_class = ClassProbabilities::new(&[0.0, 1.0].repeat(5), 2).unwrap();
        assert!((inception_score(&one_class, 1).unwrap().mean - 1.0).abs() < 1e-12);
    }

    #[test]
    fn bad_input_is_named() {
        let p = |rows| ClassProbabilities::new(&[0.5, 0.5].repeat(rows), 2).unwrap();
        let message = |rows, splits| inception_score(&p(rows), splits).unwrap_err().to_string();
        assert!(message(1, 1).starts_with("samples for an Inception Score = 1"));
        assert!(message(5, 0).starts_with("splits of the Inception Score = 0"));
        assert!(message(5, 3).contains("at most half of the 5 samples"));
        assert!(inception_score(&p(5), 2).is_ok());
    }
}
