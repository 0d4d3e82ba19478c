//! The chains of many coordinates, by the worst of them.

use serde::{Deserialize, Serialize};

use super::ChainSet;
use jem_core::error::{Error, Result, ensure};

/// The coordinate with the worst value of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Extreme {
    /// Which coordinate, counted from 0.
    pub coordinate: usize,
    /// Its value.
    pub value: f64,
}

/// What the coordinates of one run have in common: none is worse than this.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChainSummary {
    /// The largest [`rhat`](ChainSet::rhat).
    pub worst_rhat: Extreme,
    /// The smallest [`ess_bulk`](ChainSet::ess_bulk).
    pub smallest_ess_bulk: Extreme,
    /// The smallest [`ess_tail`](ChainSet::ess_tail).
    pub smallest_ess_tail: Extreme,
    /// Coordinates that never move in any chain, such as a pixel that is clamped to its bound. The other fields
    /// leave them out.
    pub constant: Vec<usize>,
}

impl ChainSummary {
    /// Summarises the coordinates of a run.
    ///
    /// ```
    /// use jem_eval::{ChainSet, ChainSummary};
    /// // Two chains of eight steps in the plane; they have not met in the second coordinate.
    /// let steps: Vec<[f32; 4]> = (0..8).map(|t| {
    ///     let wave = [0.0, 1.0, -1.0, 0.5, -0.5, 0.8, -0.8, 0.1][t];
    ///     [wave, wave, -wave, wave + 5.0]
    /// }).collect();
    /// let coordinates = ChainSet::of_coordinates(&steps, 2)?;
    /// let summary = ChainSummary::new(&coordinates)?;
    /// assert_eq!(summary.worst_rhat.coordinate, 1);
    /// assert!(summary.worst_rhat.value > 1.5);
    /// # Ok::<(), jem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] if there is no coordinate, or none that varies.
    pub fn new(coordinates: &[ChainSet]) -> Result<Self> {
        ensure(!coordinates.is_empty(), "coordinates of the chains", 0, "at least 1")?;
        let (constant, moving): (Vec<usize>, Vec<usize>) =
            (0..coordinates.len()).partition(|coordinate| coordinates[*coordinate].is_constant());
        let extreme = |value: &dyn Fn(&ChainSet) -> Result<f64>, is_worse: fn(f64, f64) -> bool| {
            let mut worst: Option<Extreme> = None;
            for &coordinate in &moving {
                let value = value(&coordinates[coordinate])?;
                if worst.is_none_or(|worst| is_worse(value, worst.value)) {
                    worst = Some(Extreme { coordinate, value });
                }
            }
            let found = format!("all {} constant", coordinates.len());
            worst.ok_or_else(|| Error::config("coordinates of the chains", found, "at least one that varies"))
        };
        Ok(Self {
            worst_rhat: extreme(&ChainSet::rhat, |new, old| new > old)?,
            smallest_ess_bulk: extreme(&ChainSet::ess_bulk, |new, old| new < old)?,
            smallest_ess_tail: extreme(&ChainSet::ess_tail, |new, old| new < old)?,
            constant,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(draws: impl Fn(f64) -> f64) -> ChainSet {
        let draws: Vec<f64> = (0..40).map(|i| draws(f64::from(i * 17 % 40))).collect();
        ChainSet::new(&draws, 2).unwrap()
    }

    #[test]
    fn the_worst_coordinate_is_found_and_constant_ones_are_set_apart() {
        let trend: Vec<f64> = (0..40).map(f64::from).collect();
        let trend = ChainSet::new(&trend, 2).unwrap();
        let all = [set(|_| 1.0), set(|x| x), trend.clone(), set(|x| x.sin())];
        let summary = ChainSummary::new(&all).unwrap();
        assert_eq!(summary.constant, [0]);
        assert_eq!(summary.worst_rhat, Extreme { coordinate: 2, value: trend.rhat().unwrap() });
        assert_eq!(summary.smallest_ess_bulk, Extreme { coordinate: 2, value: trend.ess_bulk().unwrap() });
        let smallest = all[1..].iter().map(|set| set.ess_tail().unwrap()).fold(f64::INFINITY, f64::min);
        assert_eq!(summary.smallest_ess_tail.value, smallest);
    }

    #[test]
    fn nothing_to_summarise_is_an_error() {
        assert!(ChainSummary::new(&[]).unwrap_err().to_string().starts_with("coordinates of the chains = 0"));
        let error = ChainSummary::new(&[set(|_| 1.0)]).unwrap_err().to_string();
        assert!(error.starts_with("coordinates of the chains = all 1 constant"), "{error}");
    }
}
