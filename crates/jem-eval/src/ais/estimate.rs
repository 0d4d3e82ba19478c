//! log Z from weights: the estimate, its error bar, and the two directions together.

use std::fmt;

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::{BOOTSTRAP, Direction};
use jem_core::error::{Result, ensure};
use jem_core::noise::Noise;

/// Bootstrap draws of an error bar.
const DRAWS: usize = 2_000;
/// What is left out at each end of an interval: 99 % stay.
const TAIL: f64 = 0.005;

/// log Z as one direction estimates it, in nats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LogZ {
    /// The estimate: log Z_0 plus (forward) or minus (reverse) the logarithm of the mean weight.
    pub estimate: f64,
    /// Lower end of the 99 % interval, by the percentile bootstrap over chains.
    pub low: f64,
    /// Upper end of the 99 % interval.
    pub high: f64,
    /// Standard error by the delta method, √(Var w / n) / mean w.
    pub standard_error: f64,
    /// Effective sample size of the weights, (Σw)² / Σw². Where it is a small part of the chains, neither the
    /// estimate nor its error bar can be trusted.
    pub effective_sample_size: f64,
    /// n, the number of chains.
    pub chains: usize,
}

impl LogZ {
    pub(super) fn new(
        direction: Direction,
        log_weights: &[f64],
        base_log_z: f64,
        noise: &mut Noise,
    ) -> Result<Self> {
        let n = log_weights.len();
        ensure(n >= 2, "chains of an estimate of log Z", n, "at least 2")?;
        let max = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        ensure(max.is_finite(), "largest log weight", max, "finite: no chain has any weight")?;
        let weights: Vec<f64> = log_weights.iter().map(|log_weight| (log_weight - max).exp()).collect();
        let of = |mean: f64| match direction {
            Direction::Forward => base_log_z + max + mean.ln(),
            Direction::Reverse => base_log_z - max - mean.ln(),
        };
        let count = n as f64;
        let mean = weights.iter().sum::<f64>() / count;
        let squares = weights.iter().map(|w| w * w).sum::<f64>();
        let variance = weights.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / (count - 1.0);

        let rng = noise.rng(BOOTSTRAP);
        let mut draws: Vec<f64> = (0..DRAWS)
            .map(|_| of((0..n).map(|_| weights[rng.random_range(0..n)]).sum::<f64>() / count))
            .collect();
        draws.sort_by(f64::total_cmp);
        let at = |share: f64| draws[((DRAWS - 1) as f64 * share).round() as usize];
        Ok(Self {
            estimate: of(mean),
            low: at(TAIL),
            high: at(1.0 - TAIL),
            standard_error: (variance / count).sqrt() / mean,
            effective_sample_size: count * count * mean * mean / squares,
            chains: n,
        })
    }
}

/// Both directions: the truth is expected between the lower end of the forward interval and the upper end of the
/// reverse one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LogZBracket {
    /// The estimate that is low on average.
    pub forward: LogZ,
    /// The estimate that is high on average.
    pub reverse: LogZ,
}

impl LogZBracket {
    /// The lower end.
    pub fn low(&self) -> f64 {
        self.forward.low
    }

    /// The upper end. Below the lower one if the samples that the reverse run began with are not of the target.
    pub fn high(&self) -> f64 {
        self.reverse.high
    }

    /// How far the two estimates are apart: about 0 where there are temperatures enough, large and positive where
    /// there are too few.
    pub fn gap(&self) -> f64 {
        self.reverse.estimate - self.forward.estimate
    }

    /// Whether a value is in the bracket.
    pub fn contains(&self, log_z: f64) -> bool {
        self.low() <= log_z && log_z <= self.high()
    }
}

impl fmt::Display for LogZBracket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { forward, reverse } = self;
        write!(
            f,
            "log Z in [{:.3}, {:.3}] (forward {:.3}, reverse {:.3}, effective chains {:.0} and {:.0} of {} and {})",
            self.low(),
            self.high(),
            forward.estimate,
            reverse.estimate,
            forward.effective_sample_size,
            reverse.effective_sample_size,
            forward.chains,
            reverse.chains
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_distr::StandardNormal;

    fn of(direction: Direction, log_weights: &[f64]) -> LogZ {
        LogZ::new(direction, log_weights, 10.0, &mut Noise::host(1)).unwrap()
    }

    #[test]
    fn estimates_are_their_formulas_and_do_not_overflow() {
        let found = of(Direction::Forward, &[2000.0, 2000.0 + 3f64.ln()]);
        assert!((found.estimate - (2010.0 + 2f64.ln())).abs() < 1e-9); // the mean of 1 and 3
        assert!((found.effective_sample_size - 16.0 / 10.0).abs() < 1e-9);
        assert!((found.standard_error - 1f64 / 2.0).abs() < 1e-9); // √(2/2) / 2
        let found = of(Direction::Reverse, &[-5.0, -5.0]);
        assert_eq!((found.estimate, found.low, found.high, found.standard_error), (15.0, 15.0, 15.0, 0.0));
        let with_a_zero = of(Direction::Forward, &[0.0, f64::NEG_INFINITY]);
        assert!((with_a_zero.estimate - (10.0 - 2f64.ln())).abs() < 1e-9);
        assert!(LogZ::new(Direction::Forward, &[0.0], 0.0, &mut Noise::host(1)).is_err());
        assert!(LogZ::new(Direction::Forward, &[f64::NEG_INFINITY; 3], 0.0, &mut Noise::host(1)).is_err());
    }

    /// Log-normal weights of known mean: of 400 intervals at 99 % from 200 chains, binomially many miss the truth:
    /// 4 are expected, and with α = 1e-5 at most 13. The percentile bootstrap is a little short for skewed weights,
    /// hence twice the nominal rate: 8 expected, at most 22.
    #[test]
    fn intervals_cover_the_truth_as_often_as_they_say() {
        let mut noise = Noise::host(2);
        let (sigma, repeats, n) = (0.5, 400, 200);
        let mut missed = [0, 0];
        for _ in 0..repeats {
            let weights: Vec<f64> = {
                let rng = noise.rng(jem_core::noise::Stream::DATA);
                (0..n).map(|_| sigma * rng.sample::<f64, _>(StandardNormal)).collect()
            };
            let found = LogZ::new(Direction::Forward, &weights, 0.0, &mut noise).unwrap();
            let truth = sigma * sigma / 2.0;
            missed[0] += usize::from(truth < found.low || truth > found.high);
            // Negative control: an interval of one standard error to each side.
            missed[1] += usize::from((found.estimate - truth).abs() > found.standard_error);
        }
        assert!(missed[0] <= 22, "{missed:?}");
        assert!(missed[1] > 80, "{missed:?}");
    }
}
