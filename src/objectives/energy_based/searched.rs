//! Answers that are continuous, found by chains in y.

use burn::module::Module;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{AnswerEnergies, AnswerSet, EblLoss, PairBatch};
use crate::error::{Error, Result, ensure, ensure_positive};
use crate::inference::{AnswerSearch, PairEnergy};
use crate::noise::{Noise, Stream};
use crate::samplers::Sampler;

/// Where chains start: uniform over the answers.
const STARTS: Stream = Stream::new("energy_based/starts");

/// Configuration of [`Searched`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchedConfig {
    /// ε: an answer at a distance (in L2) above this from the correct one is incorrect.
    pub epsilon: f64,
    /// Chains start uniformly in this box in every coordinate of y.
    pub start: (f32, f32),
    /// Chains per input. Default 4. For answers of one number, enough of them that some start on either side
    /// of the correct one.
    pub num_starts: usize,
}

impl SearchedConfig {
    /// Incorrect beyond ε; chains that start anywhere in [low, high].
    pub fn new(epsilon: f64, low: f32, high: f32) -> Self {
        Self { epsilon, start: (low, high), num_starts: 4 }
    }

    /// Sets the number of chains per input.
    pub fn with_num_starts(mut self, num_starts: usize) -> Self {
        self.num_starts = num_starts;
        self
    }

    /// The answer set, searched by `search`.
    ///
    /// # Errors
    /// [`Error::Config`] naming the field that is not allowed.
    pub fn init<S>(self, search: AnswerSearch<S>) -> Result<Searched<S>> {
        ensure_positive("SearchedConfig.epsilon", self.epsilon)?;
        let (low, high) = self.start;
        let allowed = low.is_finite() && high.is_finite() && low < high;
        ensure(
            allowed,
            "SearchedConfig.start",
            format!("({low}, {high})"),
            "finite, the lower below the upper",
        )?;
        ensure(self.num_starts > 0, "SearchedConfig.num_starts", self.num_starts, "at least 1")?;
        Ok(Searched { config: self, search })
    }
}

/// Continuous answers, the most offending of which a search finds: descent, annealed Langevin dynamics or any
/// other sampler in y, on a snapshot of the model without autodiff.
///
/// It gives no free energy, which would be an integral: the negative log-likelihood and the minimum empirical
/// error want [`Candidates`](super::Candidates). For the lowest energy the correct answer is one more start.
///
/// ```
/// use jem_core::inference::AnswerSearch;
/// use jem_core::objectives::energy_based::{EblLoss, EnergyBased, SearchedConfig};
///
/// let answers = SearchedConfig::new(0.2, -1.0, 1.0).init(AnswerSearch::annealed(0.05, 0.1, 20)?)?;
/// let objective = EnergyBased::new(EblLoss::Hinge { margin: 1.0 }, answers)?;
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Searched<S> {
    config: SearchedConfig,
    search: AnswerSearch<S>,
}

impl<M, S, const X: usize, const Y: usize> AnswerSet<M, PairBatch<X, Y>> for Searched<S>
where
    M: Module + PairEnergy<X, Y>,
    S: Sampler<Y>,
{
    fn energies(
        &self,
        model: &M,
        batch: &PairBatch<X, Y>,
        loss: &EblLoss,
        noise: &mut Noise,
    ) -> Result<AnswerEnergies> {
        batch.check()?;
        if loss.inverse_temperature().is_some() {
            let allowed = "a loss that does without the free energy; `Candidates` over a grid has one";
            return Err(Error::config("EblLoss", loss.name(), allowed));
        }
        let SearchedConfig { epsilon, start: (low, high), num_starts } = self.config;
        let snapshot = model.valid().materialize();
        let (x, y) = (batch.x.clone().without_autodiff(), batch.y.clone().without_autodiff());
        let mut shape = y.dims();
        shape[0] *= num_starts;
        let starts: Tensor<Y> = noise.uniform(shape, low..high, STARTS, &y.device());
        let tracked = |y: Tensor<Y>| model.pair_energy(x.clone().autodiff(), y.autodiff());
        let search = &self.search;
        let offending =
            search.find_most_offending(&snapshot, x.clone(), y.clone(), epsilon, starts.clone(), noise)?;
        let mut energies = AnswerEnergies::new(tracked(y.clone()), tracked(offending.y));
        if loss.needs_lowest() {
            let starts = Tensor::cat(vec![y, starts], 0);
            energies = energies.with_lowest(tracked(search.find(&snapshot, x.clone(), starts, noise)?.y));
        }
        Ok(energies)
    }
}
