//! The ladder of inverse temperatures from the base, β = 0, to the target, β = 1.

use serde::{Deserialize, Serialize};

use jem_core::error::{Result, ensure, ensure_positive};

/// How inverse temperatures are spread over [0, 1].
///
/// | ladder | β_t, t = 0, …, T |
/// | --- | --- |
/// | `Linear` | t/T |
/// | `Sigmoid` | σ(δ(2t/T - 1)), shifted and scaled so that it goes from 0 to 1 |
///
/// The sigmoid spends more temperatures near both ends, where the density often changes fastest.
///
/// ```
/// use jem_eval::ais::Ladder;
/// assert_eq!(Ladder::Linear.betas(4)?, [0.0, 0.25, 0.5, 0.75, 1.0]);
/// let sigmoid = Ladder::Sigmoid { delta: 4.0 }.betas(4)?;
/// assert!(sigmoid[1] < 0.25 && (sigmoid[2] - 0.5).abs() < 1e-12);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Neal 2001, arXiv physics/9803008; the sigmoid from Grosse et al. 2015, arXiv 1511.02543.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ladder {
    /// Equal steps.
    Linear,
    /// Small steps at both ends.
    Sigmoid {
        /// δ: 4 is usual; towards 0 it becomes linear.
        delta: f64,
    },
}

impl Ladder {
    /// β_0 = 0, …, β_T = 1.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) if T is 0, or δ is not above 0 or so large that steps vanish.
    pub fn betas(self, num_temperatures: usize) -> Result<Vec<f64>> {
        ensure(num_temperatures > 0, "number of temperatures", num_temperatures, "at least 1")?;
        let position = |t: usize| t as f64 / num_temperatures as f64;
        let betas: Vec<f64> = match self {
            Self::Linear => (0..=num_temperatures).map(position).collect(),
            Self::Sigmoid { delta } => {
                ensure_positive("Ladder::Sigmoid.delta", delta)?;
                let sigmoid = |u: f64| 1.0 / (1.0 + (-u).exp());
                let (low, high) = (sigmoid(-delta), sigmoid(delta));
                let beta = |t| (sigmoid(delta * (2.0 * position(t) - 1.0)) - low) / (high - low);
                (0..=num_temperatures).map(beta).collect()
            }
        };
        let ascending = betas.windows(2).all(|pair| pair[0] < pair[1]);
        ensure(
            ascending,
            "Ladder",
            format!("{self:?}"),
            "such that every temperature differs from the next",
        )?;
        Ok(betas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ladders_go_from_0_to_1_and_bad_ones_are_refused() {
        for ladder in [Ladder::Linear, Ladder::Sigmoid { delta: 0.1 }, Ladder::Sigmoid { delta: 6.0 }] {
            for n in [1, 2, 7, 1000] {
                let betas = ladder.betas(n).unwrap();
                assert_eq!(betas.len(), n + 1);
                assert!(betas[0] == 0.0 && (betas[n] - 1.0).abs() < 1e-12);
            }
        }
        let message = |ladder: Ladder, n| ladder.betas(n).unwrap_err().to_string();
        assert!(message(Ladder::Linear, 0).starts_with("number of temperatures = 0"));
        for delta in [0.0, -1.0, f64::NAN] {
            assert!(message(Ladder::Sigmoid { delta }, 5).starts_with("Ladder::Sigmoid.delta ="));
        }
        assert!(message(Ladder::Sigmoid { delta: 500.0 }, 100).contains("Ladder = Sigmoid"));
    }
}
