//! Effective sample size: how many independent draws would tell as much, and the error that is left.

use super::ranks::{normal_scores, quantile};
use super::{ChainSet, Halves};
use crate::checks::{all_equal, mean, variance};
use jem_core::error::Result;

/// The shares whose quantiles the tail's effective sample size is about.
const TAILS: [f64; 2] = [0.05, 0.95];

impl ChainSet {
    /// The effective sample size of the bulk: that of the normal scores of the draws. It exists whatever the
    /// tails, and says whether the middle of the distribution is known; 100 a chain is a common wish.
    ///
    /// ```text
    /// ESS = N / (1 + 2 Σ_t ρ_t),    ρ_t = 1 - (W - mean_chain γ_t) / var⁺
    /// ```
    ///
    /// with γ_t the autocovariance at lag t, W the mean variance within the half-chains and var⁺ that of all
    /// draws. The sum ends with Geyer's initial positive sequence and is made monotone. Chains that alternate can
    /// have more than N, and N log₁₀ N at most.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) if all draws are the same number.
    ///
    /// Source: Vehtari et al. 2021, arXiv 1903.08008; Geyer 1992, "Practical Markov chain Monte Carlo".
    pub fn ess_bulk(&self) -> Result<f64> {
        Ok(effective_sample_size(&self.varying_halves()?.map(normal_scores)))
    }

    /// The effective sample size of the tails: the smaller one of x <= q for the 5 % and the 95 % quantile q.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) if all draws are the same number.
    pub fn ess_tail(&self) -> Result<f64> {
        let halves = self.varying_halves()?;
        let mut sorted = self.draws.clone();
        sorted.sort_by(f64::total_cmp);
        let of_share = |p: f64| {
            let bound = quantile(&sorted, p);
            let is_below = |value: &f64| if *value <= bound { 1.0 } else { 0.0 };
            effective_sample_size(&halves.map(|values| values.iter().map(is_below).collect()))
        };
        let [low, high] = TAILS.map(of_share);
        Ok(low.min(high))
    }

    /// The effective sample size of the mean: that of the draws as they are.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) if all draws are the same number.
    pub fn ess_mean(&self) -> Result<f64> {
        Ok(effective_sample_size(&self.varying_halves()?))
    }

    /// The Monte Carlo standard error of the mean, sd / √[`ess_mean`](Self::ess_mean), in the units of the draws.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) if all draws are the same number.
    pub fn mcse_mean(&self) -> Result<f64> {
        Ok(self.standard_deviation() / self.ess_mean()?.sqrt())
    }
}

/// The effective sample size of chains that are split already. As many as there are if all are the same number:
/// an event that never happens, or always, is not an autocorrelated one.
fn effective_sample_size(chains: &Halves) -> f64 {
    let total = chains.values.len() as f64;
    if all_equal(&chains.values) {
        return total;
    }
    let length = chains.length;
    let means: Vec<f64> = chains.chains().map(mean).collect();
    let centred: Vec<f64> = chains
        .chains()
        .zip(&means)
        .flat_map(|(chain, mean)| chain.iter().map(move |value| value - mean))
        .collect();
    // The mean over the chains of Σ_i x_i x_{i+lag} / n. Lags are asked for until the sum ends, mostly a few.
    let autocovariance = |lag: usize| {
        let products = |chain: &[f64]| -> f64 { chain.iter().zip(&chain[lag..]).map(|(a, b)| a * b).sum() };
        centred.chunks_exact(length).map(products).sum::<f64>() / total
    };
    let biased = autocovariance(0);
    let within = biased * length as f64 / (length - 1) as f64;
    let all = biased + variance(&means, 1);
    let rho = |lag: usize| 1.0 - (within - autocovariance(lag)) / all;

    // ρ in pairs of an even lag and the odd one after it; a pair with a negative sum is the last.
    let mut pairs = vec![(1.0, rho(1))];
    let sum = |(even, odd): (f64, f64)| even + odd;
    while sum(pairs[pairs.len() - 1]) > 0.0 && 2 * pairs.len() + 2 < length {
        let even = 2 * pairs.len();
        pairs.push((rho(even), rho(even + 1)));
    }
    let last = pairs.pop().unwrap_or((1.0, 0.0));
    let rest = if sum(last) >= 0.0 { last.0 } else { last.0.max(0.0) };
    let mut bound = f64::INFINITY;
    let mut monotone = 0.0;
    for pair in pairs {
        bound = sum(pair).min(bound);
        monotone += bound;
    }
    let time = (-1.0 + 2.0 * monotone + rest).max(1.0 / total.log10());
    total / time
}

#[cfg(test)]
mod tests {
    use super::*;
    use jem_core::noise::{Noise, Stream};
    use rand_distr::{Distribution, StandardNormal};

    /// Four chains x ← φ x + √(1-φ²) ε, started in their stationary distribution.
    fn autoregressive(phi: f64, num_draws: usize) -> ChainSet {
        let draws: Vec<f64> = (0..4)
            .flat_map(|chain| {
                let mut rng = Noise::host(2).derived(Stream::CHAIN, chain);
                let mut normal = move || -> f64 { StandardNormal.sample(&mut rng) };
                let start = normal();
                std::iter::successors(Some(start), move |x| {
                    Some(phi * x + (1.0 - phi * phi).sqrt() * normal())
                })
                .take(num_draws)
                .collect::<Vec<_>>()
            })
            .collect();
        ChainSet::new(&draws, 4).unwrap()
    }

    /// The autocorrelation time of these chains is (1 + φ)/(1 - φ). The estimate from N draws and W lags has the
    /// relative deviation √(2(2W + 1)/N), which at N = 80,000 is 5 % for the W = 50 of φ = 0.9 and less for the
    /// others: 22 % is 4.417 of it, two-sided α = 1e-5. Negative control: the time of another φ.
    #[test]
    fn autoregressive_chains_have_a_closed_form() {
        let within = |phi: f64, ess: f64| {
            let expected = 80_000.0 * (1.0 - phi) / (1.0 + phi);
            (ess / expected - 1.0).abs() < 0.22
        };
        for phi in [0.0, 0.5, 0.9, -0.3] {
            let set = autoregressive(phi, 20_000);
            assert!(within(phi, set.ess_mean().unwrap()), "{phi}: {}", set.ess_mean().unwrap());
            assert!(within(phi, set.ess_bulk().unwrap()), "{phi}: {}", set.ess_bulk().unwrap());
            assert!(!within(phi - 0.2, set.ess_mean().unwrap()));
        }
    }

    /// The Monte Carlo error of a mean of N independent draws is sd/√N. With N = 4,000 the effective sample size
    /// is known to 5 % and its root to 2.5 %, the deviation to 1.1 %: 12 % is 4.417 of both, α = 1e-5.
    #[test]
    fn the_error_of_independent_draws() {
        let set = autoregressive(0.0, 1000);
        let ratio = set.mcse_mean().unwrap() * 4000f64.sqrt();
        assert!((ratio - 1.0).abs() < 0.12, "{ratio}");
    }

    #[test]
    fn the_fewest_draws_have_a_value() {
        let set = ChainSet::new(&[0.0, 1.0, 3.0, 2.0], 1).unwrap();
        assert!((set.ess_mean().unwrap() - 4.0 * 4f64.log10()).abs() < 1e-12);
    }
}
