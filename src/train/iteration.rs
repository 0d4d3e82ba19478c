//! One iteration of training: batch, loss, gradient, and a step only if all that is watched is within limits.

use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer};

use super::data_parallel::{average_gradients, average_numbers};
use super::ema::update_average;
use super::gradients::gradient_norm;
use super::guard::{Cause, GRADIENT_NORM, GuardState};
use super::record::Values;
use super::state::{Snapshot, TrainState};
use super::trainer::Trainer;
use crate::data::BatchSource;
use crate::error::{Error, Result};
use crate::objectives::{Objective, Reading, Watch};

/// What became of an iteration: its numbers, and what was wrong with them. If anything was, the weights are as
/// they were.
pub(super) struct Step {
    pub values: Values,
    pub cause: Option<Cause>,
}

impl<M, B, O, L> Trainer<M, B, O, L>
where
    M: Module,
    O: Objective<M, B>,
    L: BatchSource<B>,
{
    pub(super) fn step(
        &mut self,
        state: TrainState<M, O::State>,
        learning_rate: f64,
    ) -> Result<(TrainState<M, O::State>, Step)> {
        let _span = tracing::debug_span!("iteration", number = state.iteration).entered();
        let TrainState { model, mut optimizer, average, objective, mut noise, mut guard, iteration } = state;
        let batch = tracing::debug_span!("batch").in_scope(|| self.batches.batch(iteration, &mut noise))?;
        let (loss, objective) = tracing::debug_span!("loss")
            .in_scope(|| self.objective.loss(&model, &batch, objective, &mut noise))?;
        let mut numbers = loss.read();
        average_numbers(&mut self.workers, &mut numbers)?;
        let mut cause = self.guard.judge(&numbers);
        let mut updated = (model, average);
        if cause.is_none() {
            let (model, average) = updated;
            let span = tracing::debug_span!("update").entered();
            let gradients = GradientsParams::from_grads(loss.total().backward(), &model);
            let gradients = average_gradients(&mut self.workers, gradients, &model)?;
            let value = gradient_norm(&gradients, &model);
            numbers.push(Reading { name: GRADIENT_NORM, watch: Some(Watch::GradientNorm), value });
            cause = self.guard.judge(&numbers);
            updated = if cause.is_none() {
                self.remember(&model, average.as_ref(), &optimizer, iteration)?;
                guard.skipped_in_a_row = 0;
                let model = optimizer.step(learning_rate, model, gradients);
                let decay = self.config.average_decay.unwrap_or(0.0);
                let average = average.map(|average| update_average(average, &model, decay));
                (model, average)
            } else {
                (model, average)
            };
            drop(span);
        }
        let values = numbers.into_iter().map(|number| (number.name.to_owned(), number.value)).collect();
        let (model, average) = updated;
        let state = TrainState { model, optimizer, average, objective, noise, guard, iteration };
        Ok((state, Step { values, cause }))
    }

    /// The learning rate of an iteration, with the guard's scale.
    pub(super) fn rate(&mut self, iteration: u64, guard: &GuardState) -> f64 {
        self.learning_rate.at(iteration) * guard.learning_rate_scale
    }

    /// Remembers, now and then, weights that this iteration's losses have shown to be good.
    fn remember(
        &mut self,
        model: &M,
        average: Option<&M>,
        optimizer: &ModuleOptimizer,
        iteration: u64,
    ) -> Result<()> {
        let due = match &self.good {
            None => true,
            Some(good) => iteration.is_multiple_of(self.guard.snapshot_every) && good.iteration != iteration,
        };
        if due {
            let snapshot = Snapshot::of(model, average, optimizer, iteration);
            self.good = Some(snapshot.map_err(|reason| Error::checkpoint("(in memory)", reason))?);
        }
        Ok(())
    }
}
