//! Markov chains by their draws: whether they agree, how much they tell, how fast they forget.

mod autocorrelation;
mod effective_sample_size;
mod ranks;
mod rhat;
mod summary;

pub use autocorrelation::autocorrelation;
pub use summary::{ChainSummary, Extreme};

use super::checks::{all_equal, finite, mean, num_rows, variance};
use jem_core::error::{Error, Result, ensure};

/// The draws of one scalar by several chains: a coordinate, or a function of the state such as the energy.
///
/// All diagnostics split each chain in halves (an odd number of draws loses the one in the middle), so that a
/// chain which has not settled disagrees with itself; one chain is enough. They agree with ArviZ.
///
/// # Shapes
/// `[chains, draws]`.
///
/// ```
/// use jem_eval::ChainSet;
/// use jem_core::noise::{Noise, Stream};
/// use rand::RngExt;
///
/// let mut noise = Noise::host(1);
/// let draws: Vec<f64> = (0..400).map(|_| noise.rng(Stream::CHAIN).random()).collect();
/// let chains = ChainSet::new(&draws, 4)?; // four chains of 100 draws, here independent ones
/// assert!(chains.rhat()? < 1.05);
/// assert!(chains.ess_bulk()? > 200.0);
/// println!("{:.3} ± {:.3}", chains.mean(), chains.mcse_mean()?);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Vehtari et al. 2021, arXiv 1903.08008.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainSet {
    draws: Vec<f64>, // chain after chain
    num_chains: usize,
}

impl ChainSet {
    /// The fewest draws that a chain may have.
    pub const MIN_DRAWS: usize = 4;

    /// Draws that lie chain after chain.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one or more whole chain, [`Error::Config`] for fewer than 4 draws in a
    /// chain, [`Error::NonFinite`] for a NaN or an infinity.
    pub fn new<T: Copy + Into<f64>>(draws: &[T], num_chains: usize) -> Result<Self> {
        ensure(num_chains > 0, "ChainSet.num_chains", num_chains, "at least 1")?;
        let num_draws = num_rows("draws of the chains", draws.len(), num_chains)?;
        let allowed = format!("at least {}", Self::MIN_DRAWS);
        ensure(num_draws >= Self::MIN_DRAWS, "draws in a chain", num_draws, &allowed)?;
        Ok(Self { draws: finite("draws of the chains", draws)?, num_chains })
    }

    /// Draws as they come while all chains run: at each step, one number of each chain.
    ///
    /// # Errors
    /// [`Error::Shape`] if the steps differ in length, else those of [`new`](Self::new).
    pub fn from_steps<T: Copy + Into<f64>, S: AsRef<[T]>>(steps: &[S]) -> Result<Self> {
        let num_chains = steps.first().map_or(0, |step| step.as_ref().len());
        let mut coordinates = Self::of_coordinates(steps, num_chains)?;
        Ok(coordinates.swap_remove(0)) // one number of each chain is one coordinate
    }

    /// One set for each coordinate, from the positions of all chains at each step.
    ///
    /// # Shapes
    /// Each step `[chains, coordinates]`, chain after chain.
    ///
    /// # Errors
    /// [`Error::Shape`] if the steps differ in length or do not divide by the number of chains, else those of
    /// [`new`](Self::new).
    pub fn of_coordinates<T: Copy + Into<f64>, S: AsRef<[T]>>(
        steps: &[S],
        num_chains: usize,
    ) -> Result<Vec<Self>> {
        ensure(num_chains > 0, "ChainSet.num_chains", num_chains, "at least 1")?;
        let size = steps.first().map_or(0, |step| step.as_ref().len());
        num_rows("positions at a step", size, num_chains)?;
        if let Some(number) = steps.iter().position(|step| step.as_ref().len() != size) {
            let found = [steps[number].as_ref().len()];
            return Err(Error::shape(
                format!("step {number} of the chains"),
                &found,
                format!("{size} numbers"),
            ));
        }
        let num_coordinates = size / num_chains;
        let set = |coordinate: usize| {
            let places = (0..num_chains).map(|chain| chain * num_coordinates + coordinate);
            let draws: Vec<T> =
                places.flat_map(|place| steps.iter().map(move |step| step.as_ref()[place])).collect();
            Self::new(&draws, num_chains)
        };
        (0..num_coordinates).map(set).collect()
    }

    /// How many chains, at least 1.
    pub fn num_chains(&self) -> usize {
        self.num_chains
    }

    /// How many draws each chain has, at least 4.
    pub fn num_draws(&self) -> usize {
        self.draws.len() / self.num_chains
    }

    /// The draws of each chain.
    pub fn chains(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.draws.chunks_exact(self.num_draws())
    }

    /// The mean of all draws.
    pub fn mean(&self) -> f64 {
        mean(&self.draws)
    }

    /// The standard deviation of all draws (n - 1).
    pub fn standard_deviation(&self) -> f64 {
        variance(&self.draws, 1).sqrt()
    }

    /// The autocorrelation of each chain, see [`autocorrelation`].
    ///
    /// # Errors
    /// Those of [`autocorrelation`]; a chain that does not move is one.
    pub fn autocorrelation(&self, max_lag: usize) -> Result<Vec<Vec<f64>>> {
        self.chains().map(|chain| autocorrelation(chain, max_lag)).collect()
    }

    /// Whether every draw that the diagnostics see is the same number. They are refused then.
    pub fn is_constant(&self) -> bool {
        all_equal(&self.halves().values)
    }

    /// The halves of all chains.
    fn halves(&self) -> Halves {
        let length = self.num_draws() / 2;
        let values =
            self.chains().flat_map(|chain| chain[..length].iter().chain(&chain[chain.len() - length..]));
        Halves { values: values.copied().collect(), length }
    }

    /// The halves, or an error if there is nothing to compare.
    fn varying_halves(&self) -> Result<Halves> {
        let halves = self.halves();
        if all_equal(&halves.values) {
            let found = format!("{} in all {} chains", halves.values[0], self.num_chains);
            return Err(Error::config("draws of the chains", found, "draws that vary"));
        }
        Ok(halves)
    }
}

/// Chains of one length, one after the other, once they are split.
#[derive(Debug)]
struct Halves {
    values: Vec<f64>,
    length: usize,
}

impl Halves {
    fn chains(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.values.chunks_exact(self.length)
    }

    /// The same chains with other values.
    fn map(&self, values: impl FnOnce(&[f64]) -> Vec<f64>) -> Self {
        Self { values: values(&self.values), length: self.length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_coordinates_are_transposed() {
        let steps: Vec<Vec<f32>> =
            (0..4).map(|t| (0..6).map(|place| (10 * t + place) as f32).collect()).collect();
        let sets = ChainSet::of_coordinates(&steps, 2).unwrap(); // 2 chains of 3 coordinates
        assert_eq!(sets.len(), 3);
        let chains: Vec<&[f64]> = sets[1].chains().collect();
        assert_eq!(chains, [[1.0, 11.0, 21.0, 31.0], [4.0, 14.0, 24.0, 34.0]]);
        let set = ChainSet::from_steps(&steps).unwrap();
        assert_eq!((set.num_chains(), set.num_draws()), (6, 4));
        assert_eq!(set.chains().nth(5).unwrap(), [5.0, 15.0, 25.0, 35.0]);
    }

    #[test]
    fn bad_chains_are_named() {
        let message = |draws: &[f64], chains| ChainSet::new(draws, chains).unwrap_err().to_string();
        assert!(message(&[1.0; 3], 1).starts_with("draws in a chain = 3"));
        assert!(message(&[1.0; 9], 2).starts_with("draws of the chains has shape [9]"));
        assert!(message(&[1.0; 4], 0).starts_with("ChainSet.num_chains = 0"));
        assert!(message(&[], 2).starts_with("draws of the chains has shape [0]"));
        assert!(message(&[1.0, f64::NAN, 0.0, 0.0], 1).starts_with("draws of the chains[1] is not finite"));
        let ragged = ChainSet::from_steps(&[vec![0.0, 1.0], vec![0.0]]).unwrap_err().to_string();
        assert!(ragged.starts_with("step 1 of the chains has shape [1]"), "{ragged}");
        assert!(ChainSet::from_steps::<f64, Vec<f64>>(&[]).is_err());
    }

    #[test]
    fn constant_draws_are_refused() {
        for (draws, chains) in [(vec![0.1; 8], 2), (vec![0.1, 0.1, 9.0, 0.1, 0.1], 1)] {
            let set = ChainSet::new(&draws, chains).unwrap();
            assert!(set.is_constant());
            for result in [set.rhat(), set.ess_bulk(), set.ess_tail(), set.ess_mean(), set.mcse_mean()] {
                assert!(result.unwrap_err().to_string().starts_with("draws of the chains = 0.1 in all"));
            }
        }
    }

    #[test]
    fn chains_stuck_in_different_places_never_agree() {
        let draws: Vec<f64> = [0.1, 0.7].iter().flat_map(|place| [*place; 50]).collect();
        let set = ChainSet::new(&draws, 2).unwrap();
        assert_eq!(set.rhat().unwrap(), f64::INFINITY);
        assert!(set.ess_bulk().unwrap() < 5.0 && set.ess_mean().unwrap() < 5.0);
        assert!(set.autocorrelation(3).is_err());
    }
}
