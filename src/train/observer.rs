//! Observers: they see a run and may end it, and they cannot touch it.

use super::record::{Record, Values};
use crate::error::Result;

/// The run as an observer sees it: by reference, so that looking never changes training.
#[derive(Debug)]
pub struct View<'a, M, S> {
    /// The model in training, with autodiff; call `valid()` on it to evaluate.
    pub model: &'a M,
    /// The averaged weights, without autodiff, where the run keeps them.
    pub average: Option<&'a M>,
    /// The memory of the objective, such as the replay buffer.
    pub objective: &'a S,
    /// Iterations done.
    pub iteration: u64,
    /// Iterations planned.
    pub iterations: u64,
    /// Epochs done.
    pub epoch: u64,
}

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// End after this iteration, with a checkpoint.
    Stop,
}

/// Something that watches a run.
pub trait Observer<M, S> {
    /// Called with every record, as it is written.
    ///
    /// # Errors
    /// An error ends the run.
    fn on_record(&mut self, _record: &Record, _view: &View<'_, M, S>) -> Result<Control> {
        Ok(Control::Continue)
    }

    /// Called at the end of each epoch, for numbers to write down.
    ///
    /// # Errors
    /// An error ends the run.
    fn on_epoch(&mut self, _view: &View<'_, M, S>) -> Result<Values> {
        Ok(Values::new())
    }
}

/// An observer that sees the steps of every n-th iteration only, and all other records.
///
/// ```
/// use jem_core::train::{Control, Every, Observer, Record, StepRecord, Values, View};
///
/// struct Count(usize);
/// impl Observer<(), ()> for Count {
///     fn on_record(&mut self, _: &Record, _: &View<'_, (), ()>) -> jem_core::Result<Control> {
///         self.0 += 1;
///         Ok(Control::Continue)
///     }
/// }
/// let mut every = Every::new(10, Count(0));
/// let view = View { model: &(), average: None, objective: &(), iteration: 0, iterations: 30, epoch: 0 };
/// for iteration in 0..30 {
///     let step = StepRecord { iteration, epoch: 0, learning_rate: 0.0, values: Values::new() };
///     every.on_record(&Record::Step(step), &view)?;
/// }
/// assert_eq!(every.into_inner().0, 3);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Every<O> {
    period: u64,
    inner: O,
}

impl<O> Every<O> {
    /// Every `period`-th iteration, from iteration 0 on. A period of 0 counts as 1.
    pub fn new(period: u64, inner: O) -> Self {
        Self { period: period.max(1), inner }
    }

    /// The observer.
    pub fn into_inner(self) -> O {
        self.inner
    }
}

impl<M, S, O: Observer<M, S>> Observer<M, S> for Every<O> {
    fn on_record(&mut self, record: &Record, view: &View<'_, M, S>) -> Result<Control> {
        match record {
            Record::Step(step) if !step.iteration.is_multiple_of(self.period) => Ok(Control::Continue),
            _ => self.inner.on_record(record, view),
        }
    }

    fn on_epoch(&mut self, view: &View<'_, M, S>) -> Result<Values> {
        self.inner.on_epoch(view)
    }
}
