//! What a trainer does when an iteration goes wrong, and the checkpoints that it leaves.

use burn::module::Module;

use super::checkpoint::{Best, Checkpoints, Progress, Staged};
use super::gradients::is_finite;
use super::guard::{Cause, GuardState, Policy};
use super::record::{Event, EventRecord, Record};
use super::state::{Snapshot, TrainState};
use super::trainer::Trainer;
use crate::data::BatchSource;
use crate::error::{Error, Result};
use crate::objectives::Objective;
use crate::persist::Persist;

/// The state after a divergence, and its cause if the run ends with it.
type Handled<M, S> = (TrainState<M, S>, Option<Cause>);

/// A checkpoint that waits for the iteration that begins with its weights.
pub(super) struct Pending {
    staged: Staged,
    snapshot: Snapshot,
    /// The best value before this checkpoint, in case that it is not put in place.
    best_before: Option<Best>,
}

impl<M, B, O, L> Trainer<M, B, O, L>
where
    M: Module,
    O: Objective<M, B>,
    L: BatchSource<B>,
{
    /// Applies the policy. The second part is the cause, if the run ends.
    pub(super) fn handle(
        &mut self,
        mut state: TrainState<M, O::State>,
        iteration: u64,
        cause: Cause,
    ) -> Result<Handled<M, O::State>> {
        let GuardState { skipped_in_a_row, roll_backs, .. } = state.guard;
        let event = match self.guard.policy {
            Policy::Skip { at_most } if skipped_in_a_row < at_most => {
                state.guard.skipped_in_a_row += 1;
                Event::Skipped
            }
            Policy::RollBack { at_most, learning_rate_factor } if roll_backs < at_most => {
                state = self.back_to_good(state)?;
                state.guard.roll_backs += 1;
                state.guard.learning_rate_scale *= learning_rate_factor;
                Event::RolledBack
            }
            _ => {
                state = self.back_to_good(state)?;
                Event::Stopped
            }
        };
        tracing::warn!(iteration, ?event, %cause, "divergence");
        let record = EventRecord { iteration, event, cause: cause.to_string() };
        self.tell(&Record::Event(record), &state)?;
        Ok((state, (event == Event::Stopped).then_some(cause)))
    }

    /// The last good weights, with the objective's memory forgotten. Before there are any, the weights stay.
    fn back_to_good(&mut self, mut state: TrainState<M, O::State>) -> Result<TrainState<M, O::State>> {
        if let Some(device) = &self.device {
            state.objective = self.objective.start(&mut state.noise, device)?;
        }
        match &self.good {
            Some(good) => good.restore(state).map_err(|reason| Error::checkpoint("(in memory)", reason)),
            None => Ok(state),
        }
    }

    /// Writes a checkpoint aside if the next iteration is to begin with one: every n, and where the best value
    /// was just measured. A resumed run does not write again what it came from.
    pub(super) fn stage_if_due(&self, state: &TrainState<M, O::State>) -> Result<Option<Pending>> {
        let Some(checkpoints) = &self.checkpoints else { return Ok(None) };
        let at = state.iteration;
        let is_best = self.best.as_ref().is_some_and(|best| best.iteration == at);
        let is_new = at > 0 && self.good.as_ref().is_none_or(|good| good.iteration != at);
        if !is_new || !(is_best || at.is_multiple_of(checkpoints.config().every)) {
            return Ok(None);
        }
        let (snapshot, staged) = self.staged(checkpoints, state)?;
        Ok(Some(Pending { staged, snapshot, best_before: self.best_before.clone() }))
    }

    /// Puts a staged checkpoint in place if the iteration found its weights good, else removes it.
    pub(super) fn settle(&mut self, pending: Option<Pending>, good: bool) -> Result<()> {
        let (Some(checkpoints), Some(pending)) = (&self.checkpoints, pending) else { return Ok(()) };
        let Pending { staged, snapshot, best_before } = pending;
        if !good {
            if self.best.as_ref().is_some_and(|best| best.iteration == snapshot.iteration) {
                self.best = best_before;
            }
            return checkpoints.discard(&staged);
        }
        checkpoints.commit(staged)?;
        self.good = Some(snapshot);
        Ok(())
    }

    /// The last checkpoint of a run that ends here.
    pub(super) fn save(&self, state: &TrainState<M, O::State>) -> Result<()> {
        let Some(checkpoints) = &self.checkpoints else { return Ok(()) };
        if !is_finite(&state.model) {
            tracing::warn!(iteration = state.iteration, "the weights are not finite: no last checkpoint");
            return Ok(());
        }
        let (_, staged) = self.staged(checkpoints, state)?;
        checkpoints.commit(staged).map(|_| ())
    }

    fn staged(
        &self,
        checkpoints: &Checkpoints,
        state: &TrainState<M, O::State>,
    ) -> Result<(Snapshot, Staged)> {
        let snapshot = Snapshot::of(&state.model, state.average.as_ref(), &state.optimizer, state.iteration)
            .map_err(|reason| Error::checkpoint("(in memory)", reason))?;
        let staged = checkpoints.stage(&snapshot, &state.objective.save(), &self.progress(state))?;
        Ok((snapshot, staged))
    }

    fn progress(&self, state: &TrainState<M, O::State>) -> Progress {
        let per_epoch = self.per_epoch();
        Progress {
            crate_version: env!("CARGO_PKG_VERSION").to_owned(),
            iteration: state.iteration,
            epoch: state.iteration / per_epoch,
            position: state.iteration % per_epoch,
            noise: state.noise.clone(),
            guard: state.guard.clone(),
            best: self.best.clone(),
            configuration: self.configuration.clone(),
        }
    }
}
