//! The learning rate as a pure function of the iteration, from a schedule of ours or one in Burn's shape.

use burn::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;

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

/// Any scheduler of burn-optim, of which it takes the base rate. It is replayed from its first step where an
/// iteration asks for it, which makes it a function of the iteration and spares the checkpoint its state.
///
/// ```
/// use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
/// use jem_core::train::{BurnScheduler, LearningRate};
///
/// let mut rate = BurnScheduler::new(CosineAnnealingLrSchedulerConfig::new(0.1, 10).init()?);
/// let (first, fourth, tenth) = (rate.at(0), rate.at(3), rate.at(9));
/// assert!(first > fourth && fourth > tenth);
/// assert_eq!(rate.at(3), fourth); // whatever was asked before
/// # Ok::<(), String>(())
/// ```
pub struct BurnScheduler {
    fresh: ModuleLrScheduler,
    current: ModuleLrScheduler,
    steps: u64,
    rate: f64,
}

impl BurnScheduler {
    /// A scheduler that has made no step yet: what the `init()` of Burn's configurations gives, or
    /// `ModuleLrScheduler::new` of a scheduler of your own.
    pub fn new(scheduler: ModuleLrScheduler) -> Self {
        Self { fresh: scheduler.clone(), current: scheduler, steps: 0, rate: 0.0 }
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
            self.rate = self.current.step().base();
            self.steps += 1;
        }
        self.rate
    }
}
