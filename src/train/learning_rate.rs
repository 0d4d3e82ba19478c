//! The learning rate as a pure function of the iteration, from a schedule of ours or any of Burn's.

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

/// Any scheduler of burn-optim. It is replayed from its first step where an iteration asks for it, which
/// makes it a function of the iteration and spares the checkpoint its state.
///
/// ```
/// use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
/// use jem_core::train::{BurnScheduler, LearningRate};
///
/// let cosine = CosineAnnealingLrSchedulerConfig::new(0.1, 10).init().unwrap();
/// let mut rate = BurnScheduler::new(cosine);
/// let fourth = rate.at(3);
/// assert_eq!(rate.at(9), { rate.at(0); rate.at(9) });
/// assert_eq!(rate.at(3), fourth);
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
