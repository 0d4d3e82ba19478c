//! The learning rate as a pure function of the iteration, from a schedule of ours or one in Burn's shape.

use burn::lr_scheduler::LrScheduler;

use crate::error::Result;
use crate::schedule::Schedule;

/// A learning rate for each iteration.
///
/// It must depend on the iteration alone, so that a resumed run reads what it would have read.
pub trait LearningRate {
    /// The rate of iteration `iteration`, counted from 0.
    fn at(&mut self, iteration: u64) -> f64;

    /// Checks the configuration before any work.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if a rate is negative or not finite.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

impl LearningRate for Schedule {
    fn at(&mut self, iteration: u64) -> f64 {
        self.value(iteration)
    }

    fn check(&self) -> Result<()> {
        Schedule::check(self, "learning_rate")
    }
}

/// Anything that implements burn-optim's [`LrScheduler`]. It is replayed from its first step where an iteration
/// asks for it, which makes it a function of the iteration and spares the checkpoint its state.
///
/// What the configurations of Burn 0.22 make is a `ModuleLrScheduler`, with a rate for each group of parameters.
/// That is no `LrScheduler`; [`Schedule`] has the usual shapes.
///
/// ```
/// use burn::lr_scheduler::{LrScheduler, LrSchedulerRecord};
/// use jem_core::train::{BurnScheduler, LearningRate};
///
/// /// Half of the rate before, starting from 1.
/// #[derive(Clone)]
/// struct Halving(f64);
/// impl LrScheduler for Halving {
///     fn step(&mut self) -> f64 {
///         self.0 /= 2.0;
///         2.0 * self.0
///     }
///     fn to_record(&self) -> LrSchedulerRecord { LrSchedulerRecord::new().with_scalar("rate", self.0) }
///     fn load_record(&mut self, record: LrSchedulerRecord) {
///         self.0 = record.scalar("rate").unwrap_or(self.0);
///     }
/// }
/// let mut rate = BurnScheduler::new(Halving(1.0));
/// assert_eq!([0, 3, 1].map(|iteration| rate.at(iteration)), [1.0, 0.125, 0.5]);
/// ```
pub struct BurnScheduler {
    fresh: Box<dyn LrScheduler>,
    current: Box<dyn LrScheduler>,
    steps: u64,
    rate: f64,
}

impl BurnScheduler {
    /// A scheduler that has made no step yet.
    pub fn new(scheduler: impl LrScheduler + Clone + 'static) -> Self {
        Self { fresh: Box::new(scheduler.clone()), current: Box::new(scheduler), steps: 0, rate: 0.0 }
    }
}

impl std::fmt::Debug for BurnScheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BurnScheduler").field("steps", &self.steps).field("rate", &self.rate).finish()
    }
}

impl LearningRate for BurnScheduler {
    fn at(&mut self, iteration: u64) -> f64 {
        if iteration + 1 < self.steps {
            self.current = self.fresh.clone();
            self.steps = 0;
        }
        while self.steps <= iteration {
            self.rate = self.current.step();
            self.steps += 1;
        }
        self.rate
    }
}
