//! R̂: whether chains agree, by the variance between them against the variance within them.

use super::ranks::{folded, normal_scores};
use super::{ChainSet, Halves};
use crate::checks::{mean, variance};
use jem_core::error::Result;

impl ChainSet {
    /// The rank-normalised split R̂: the larger of R̂ on the normal scores of the draws, which sees chains in
    /// different places, and of their distances from the median, which sees chains of different width.
    ///
    /// ```text
    /// R̂ = √( ((n-1)/n W + B/n) / W )
    /// ```
    ///
    /// with W the mean variance within the half-chains, B/n the variance of their means, n their length. Near 1
    /// if they agree; above 1.01 is reason to run longer. Infinite if no chain moves and they are in different
    /// places.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) if all draws are the same number.
    ///
    /// Source: Vehtari et al. 2021, arXiv 1903.08008; ArviZ's `rhat(method="rank")`.
    pub fn rhat(&self) -> Result<f64> {
        let halves = self.varying_halves()?;
        let bulk = plain(&halves.map(normal_scores));
        // Not a number if all draws are as far from the median: no width differs then, and `max` passes it over.
        let tail = plain(&halves.map(|values| normal_scores(&folded(values))));
        Ok(bulk.max(tail))
    }
}

/// R̂ of chains that are split already.
fn plain(chains: &Halves) -> f64 {
    let length = chains.length as f64;
    let within: Vec<f64> = chains.chains().map(|chain| variance(chain, 1)).collect();
    let means: Vec<f64> = chains.chains().map(mean).collect();
    (variance(&means, 1) / mean(&within) + (length - 1.0) / length).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two chains of 200 that go round their interval, the second moved and stretched.
    fn pair(shift: f64, width: f64) -> ChainSet {
        let round = |i: i32| f64::from(i * 89 % 200) / 200.0 - 0.5;
        let draws: Vec<f64> = (0..200).map(round).chain((0..200).map(|i| shift + width * round(i))).collect();
        ChainSet::new(&draws, 2).unwrap()
    }

    #[test]
    fn it_sees_place_and_width_and_nothing_else() {
        assert!(pair(0.0, 1.0).rhat().unwrap() < 1.01);
        assert!(pair(0.5, 1.0).rhat().unwrap() > 1.2);
        assert!(pair(0.0, 4.0).rhat().unwrap() > 1.2);
    }

    #[test]
    fn two_values_are_as_far_from_the_median() {
        let draws: Vec<f64> = (0..40).map(|i| if i % 2 == 0 { -1.0 } else { 1.0 }).collect();
        assert!(ChainSet::new(&draws, 2).unwrap().rhat().unwrap() < 1.05);
    }
}
