//! Everything that a run carries from one iteration to the next.

use burn::module::Module;
use burn::optim::ModuleOptimizer;
use burn::store::ModuleRecord;
use burn::tensor::Bytes;

use super::guard::GuardState;
use crate::noise::Noise;

/// A run between two iterations: all of it, so that what is saved is what there is.
#[derive(Clone)]
pub struct TrainState<M, S> {
    /// The model, with autodiff.
    pub model: M,
    /// The optimiser and its moments.
    pub optimizer: ModuleOptimizer,
    /// The averaged weights, without autodiff.
    pub average: Option<M>,
    /// The memory of the objective, such as the replay buffer.
    pub objective: S,
    /// All random streams.
    pub noise: Noise,
    /// What the guard has done.
    pub guard: GuardState,
    /// Iterations done.
    pub iteration: u64,
}

impl<M: std::fmt::Debug, S: std::fmt::Debug> std::fmt::Debug for TrainState<M, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrainState")
            .field("model", &self.model)
            .field("guard", &self.guard)
            .field("iteration", &self.iteration)
            .finish_non_exhaustive()
    }
}

/// Weights, averaged weights and optimiser moments as bytes, independent of the tensors that they came from.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    pub model: Vec<u8>,
    pub average: Option<Vec<u8>>,
    pub optimizer: Vec<u8>,
    pub iteration: u64,
}

impl Snapshot {
    /// A snapshot at `iteration`. Fails only if Burn cannot serialise the weights.
    pub fn of<M: Module>(
        model: &M,
        average: Option<&M>,
        optimizer: &ModuleOptimizer,
        iteration: u64,
    ) -> Result<Self, String> {
        Ok(Self {
            model: record_bytes(model)?,
            average: average.map(record_bytes).transpose()?,
            optimizer: optimizer.into_bytes().map(|b| b.to_vec()).map_err(|e| e.to_string())?,
            iteration,
        })
    }

    /// Puts the weights back into `state`, whose iteration stays as it is.
    pub fn restore<M: Module, S>(&self, state: TrainState<M, S>) -> Result<TrainState<M, S>, String> {
        let average = match (state.average, &self.average) {
            (Some(average), Some(bytes)) => Some(load_record(average, bytes)?),
            (Some(_), None) => return Err("holds no averaged weights".to_owned()),
            (None, _) => None,
        };
        let optimizer = Bytes::from_bytes_vec(self.optimizer.clone());
        Ok(TrainState {
            model: load_record(state.model, &self.model)?,
            average,
            optimizer: state.optimizer.from_bytes(optimizer).map_err(|error| error.to_string())?,
            ..state
        })
    }
}

/// The record of a module: what [`load_record`] takes.
pub(super) fn record_bytes<M: Module>(module: &M) -> Result<Vec<u8>, String> {
    settle_running_statistics(module);
    module.clone().into_record().into_bytes().map(|bytes| bytes.to_vec()).map_err(|error| error.to_string())
}

/// A module with the weights of a record.
pub(super) fn load_record<M: Module>(module: M, bytes: &[u8]) -> Result<M, String> {
    settle_running_statistics(&module);
    ModuleRecord::from_bytes(Bytes::from_bytes_vec(bytes.to_vec()))
        .and_then(|record| module.try_load_record(record))
        .map_err(|error| error.to_string())
}

/// Burn keeps the last update of running statistics, such as those of batch norm, aside until someone asks for the
/// model in evaluation mode. A record taken before would lack that update, and one loaded before would be undone
/// by it.
fn settle_running_statistics<M: Module>(module: &M) {
    let _ = module.valid();
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::nn::BatchNorm;
    use burn::tensor::{Device, Tensor};

    fn after(norm: BatchNorm, batches: &[f32]) -> BatchNorm {
        for value in batches {
            let x = Tensor::<2>::from_floats([[*value], [value + 2.0]], &Device::flex().autodiff());
            let _ = norm.forward(x);
        }
        norm
    }

    fn mean(norm: &BatchNorm) -> f32 {
        norm.running_mean.value_sync().into_scalar()
    }

    #[test]
    fn running_statistics_are_saved_and_restored_whole() {
        let fresh = || burn::nn::BatchNormConfig::new(1).init(&Device::flex().autodiff());
        let norm = after(fresh(), &[1.0, 5.0]);
        let saved = norm.clone().into_record().into_bytes().unwrap().to_vec();
        settle_running_statistics(&norm);
        let settled = norm.clone().into_record().into_bytes().unwrap().to_vec();
        // Means of 2 and 6 with a momentum of 0.1.
        let expected = 0.9 * (0.1 * 2.0) + 0.1 * 6.0;
        assert!((mean(&load_record(fresh(), &settled).unwrap()) - expected).abs() < 1e-6);
        assert!(
            (mean(&load_record(fresh(), &saved).unwrap()) - expected).abs() > 0.1,
            "Burn settles by itself now"
        );
        // An update that waits in the target does not come through.
        let busy = load_record(after(fresh(), &[100.0]), &settled).unwrap();
        assert!((mean(&busy) - expected).abs() < 1e-6);
    }
}
