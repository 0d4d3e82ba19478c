//! The training loop: one iteration after the other, and what to do when one goes wrong.

use std::marker::PhantomData;

use burn::module::Module;
use burn::optim::ModuleOptimizer;
use burn::tensor::Device;

use super::checkpoint::{Best, Checkpoints};
use super::guard::{GuardConfig, GuardState};
use super::iteration::Step;
use super::learning_rate::LearningRate;
use super::observer::{Control, Observer, View};
use super::plan::{Outcome, TrainerConfig};
use super::record::{EpochRecord, Record, StepRecord, Values};
use super::saved::Saved;
use super::state::{Snapshot, TrainState};
use crate::data::BatchSource;
use crate::error::{Error, Result};
use crate::noise::Noise;
use crate::objectives::Objective;
use crate::persist::Persist;
use crate::schedule::Schedule;
use crate::workers::Workers;

/// Trains a model: batches in, an objective, an optimiser, and a guard over all of it.
///
/// The trainer holds configuration and observers; what changes from one iteration to the next is a
/// [`TrainState`], which comes from [`start`](Self::start) or [`resume`](Self::resume) and goes through
/// [`train`](Self::train).
///
/// ```
/// use burn::optim::AdamConfig;
/// use burn::tensor::Device;
/// use jem_core::data::{LoaderConfig, Toy, VectorLoader};
/// use jem_nn::MlpConfig;
/// use jem_core::noise::{Noise, Stream};
/// use jem_core::objectives::JemConfig;
/// use jem_core::samplers::{ImproperSgldConfig, ReplayConfig};
/// use jem_core::schedule::Schedule;
/// use jem_core::train::{Outcome, Trainer, TrainerConfig};
///
/// let device = Device::default();
/// let mut noise = Noise::host(0);
/// let moons = Toy::TwoMoons.sample(200, noise.rng(Stream::DATA))?;
/// let batches = VectorLoader::new(moons.clone(), moons, &LoaderConfig::new(32), &device)?;
/// let sampler = ImproperSgldConfig::new().with_step_size(0.1).init()?;
/// let objective = JemConfig::new().init(ReplayConfig::new([2]).with_capacity(100).init(sampler)?)?;
/// let model = MlpConfig::new(2, vec![16], 2).init(&mut noise, &device.clone().autodiff())?;
///
/// let mut trainer = Trainer::new(objective, batches, TrainerConfig::new(10))
///     .with_learning_rate(Schedule::Constant(1e-3).with_warmup(5));
/// let state = trainer.start(model, AdamConfig::new().init(), noise, &device)?;
/// let (state, outcome) = trainer.train(state)?;
/// assert_eq!((outcome, state.iteration), (Outcome::Finished, 10));
/// # Ok::<(), jem_core::Error>(())
/// ```
pub struct Trainer<M, B, O: Objective<M, B>, L> {
    pub(super) objective: O,
    pub(super) batches: L,
    pub(super) config: TrainerConfig,
    pub(super) learning_rate: Box<dyn LearningRate>,
    pub(super) guard: GuardConfig,
    pub(super) checkpoints: Option<Checkpoints>,
    pub(super) configuration: serde_json::Value,
    pub(super) observers: Vec<Box<dyn Observer<M, O::State>>>,
    pub(super) good: Option<Snapshot>,
    pub(super) best: Option<Best>,
    pub(super) best_before: Option<Best>,
    pub(super) device: Option<Device>,
    pub(super) workers: Workers,
    _batch: PhantomData<B>,
}

impl<M, B, O: Objective<M, B>, L> std::fmt::Debug for Trainer<M, B, O, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer")
            .field("config", &self.config)
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

impl<M, B, O, L> Trainer<M, B, O, L>
where
    M: Module,
    O: Objective<M, B>,
    L: BatchSource<B>,
{
    /// A trainer with a learning rate of 1e-4, the default guard, and neither checkpoints nor observers.
    pub fn new(objective: O, batches: L, config: TrainerConfig) -> Self {
        Self {
            objective,
            batches,
            config,
            learning_rate: Box::new(Schedule::Constant(1e-4)),
            guard: GuardConfig::new(),
            checkpoints: None,
            configuration: serde_json::Value::Null,
            observers: Vec::new(),
            good: None,
            best: None,
            best_before: None,
            device: None,
            workers: Workers::alone(),
            _batch: PhantomData,
        }
    }

    /// Sets the learning rate to a [`Schedule`].
    pub fn with_learning_rate(self, schedule: Schedule) -> Self {
        self.with_scheduler(schedule)
    }

    /// Sets the learning rate, from anything that gives one for each iteration.
    pub fn with_scheduler(mut self, learning_rate: impl LearningRate + 'static) -> Self {
        self.learning_rate = Box::new(learning_rate);
        self
    }

    /// Sets the guard.
    pub fn with_guard(mut self, guard: GuardConfig) -> Self {
        self.guard = guard;
        self
    }

    /// Writes checkpoints.
    pub fn with_checkpoints(mut self, checkpoints: Checkpoints) -> Self {
        self.checkpoints = Some(checkpoints);
        self
    }

    /// Describes the run, for its checkpoints.
    pub fn with_configuration(mut self, configuration: serde_json::Value) -> Self {
        self.configuration = configuration;
        self
    }

    /// Adds an observer. They are called in the order in which they came.
    pub fn with_observer(mut self, observer: impl Observer<M, O::State> + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Trains together with others, each of which runs a trainer of its own: see [`crate::workers`].
    ///
    /// Losses, other numbers and gradients are means over the workers, so that all take the same steps with the same
    /// weights, and the same guard sees the same numbers. Chains, replay buffers, random streams, observers and
    /// checkpoints are each worker's own: give each a share of the data ([`ImageSet::share`](crate::data::ImageSet::share))
    /// and a folder. Batches of one size make the mean that of one worker with all of them. An observer of any worker
    /// may end the run for all.
    pub fn with_workers(mut self, workers: Workers) -> Self {
        self.workers = workers;
        self
    }

    /// The state of a new run. `device` is where the objective keeps its memory.
    ///
    /// # Errors
    /// [`Error::Config`] for anything in the configuration that is not allowed.
    pub fn start(
        &mut self,
        model: M,
        optimizer: ModuleOptimizer,
        noise: Noise,
        device: &Device,
    ) -> Result<TrainState<M, O::State>> {
        self.config.check()?;
        self.guard.check()?;
        self.learning_rate.check()?;
        self.device = Some(device.clone());
        let model = self.share_weights(model)?;
        let mut noise = self.own_noise(noise);
        let objective = self.objective.start(&mut noise, device)?;
        let average = self.config.average_decay.map(|_| model.valid());
        let guard = GuardState::default();
        Ok(TrainState { model, optimizer, average, objective, noise, guard, iteration: 0 })
    }

    /// The state of a saved run. `model` and `optimizer` are built as for a new one; all that they hold is
    /// replaced by what was saved, and no random number is drawn.
    ///
    /// # Errors
    /// As [`start`](Self::start), and [`Error::Checkpoint`] if what was saved does not fit them.
    pub fn resume(
        &mut self,
        model: M,
        optimizer: ModuleOptimizer,
        saved: Saved,
        device: &Device,
    ) -> Result<TrainState<M, O::State>> {
        let Saved { snapshot, objective, progress, path } = saved;
        // A generator of its own: the start is overwritten, and must not move the saved streams.
        let mut state = self.start(model, optimizer, Noise::new(0, progress.noise.mode()), device)?;
        state.objective.load(objective).map_err(|error| Error::checkpoint(&path, error))?;
        let state = TrainState {
            noise: progress.noise,
            guard: progress.guard,
            iteration: progress.iteration,
            ..state
        };
        self.best = progress.best;
        let state = snapshot.restore(state).map_err(|reason| Error::checkpoint(&path, reason))?;
        self.check_iteration(state.iteration, &path)?;
        self.good = Some(snapshot);
        Ok(state)
    }

    /// Runs the iterations that are left.
    ///
    /// # Errors
    /// Those of the objective, the batches, the observers and the file system. A divergence is no error but an
    /// [`Outcome`].
    pub fn train(
        &mut self,
        mut state: TrainState<M, O::State>,
    ) -> Result<(TrainState<M, O::State>, Outcome)> {
        let per_epoch = self.per_epoch();
        while state.iteration < self.config.iterations {
            let iteration = state.iteration;
            let staged = self.stage_if_due(&state)?;
            let learning_rate = self.rate(iteration, &state.guard);
            let (next, Step { values, cause }) = self.step(state, learning_rate)?;
            state = next;
            state.iteration += 1;
            self.settle(staged, cause.is_none())?;
            let epoch = iteration / per_epoch;
            let record = Record::Step(StepRecord { iteration, epoch, learning_rate, values });
            let mut control = self.tell(&record, &state)?;
            if let Some(cause) = cause {
                let (next, ended) = self.handle(state, iteration, cause)?;
                state = next;
                if let Some(cause) = ended {
                    self.save(&state)?;
                    return Ok((state, Outcome::Diverged(cause)));
                }
            }
            if state.iteration.is_multiple_of(per_epoch) && self.end_epoch(&state, epoch)? == Control::Stop {
                control = Control::Stop;
            }
            if self.agree(control)? == Control::Stop {
                self.save(&state)?;
                return Ok((state, Outcome::Interrupted));
            }
        }
        self.save(&state)?;
        Ok((state, Outcome::Finished))
    }

    fn end_epoch(&mut self, state: &TrainState<M, O::State>, epoch: u64) -> Result<Control> {
        let mut values = Values::new();
        let mut observers = std::mem::take(&mut self.observers);
        let measured = observers.iter_mut().try_for_each(|observer| {
            values.extend(observer.on_epoch(&self.view(state))?);
            Ok(())
        });
        self.observers = observers;
        measured?;
        let wanted = self.checkpoints.as_ref().and_then(|checkpoints| checkpoints.config().best.as_ref());
        if let Some(&value) = wanted.and_then(|name| values.get(name))
            && self.best.as_ref().is_none_or(|best| value > best.value)
        {
            let best = Best { value, iteration: state.iteration };
            self.best_before = self.best.replace(best);
        }
        let iteration = state.iteration - 1;
        self.tell(&Record::Epoch(EpochRecord { iteration, epoch, values }), state)
    }

    /// Hands a record to every observer.
    pub(super) fn tell(&mut self, record: &Record, state: &TrainState<M, O::State>) -> Result<Control> {
        let mut observers = std::mem::take(&mut self.observers);
        let told = observers.iter_mut().try_fold(Control::Continue, |control, observer| {
            let said = observer.on_record(record, &self.view(state))?;
            Ok(if said == Control::Stop { said } else { control })
        });
        self.observers = observers;
        told
    }

    fn view<'a>(&self, state: &'a TrainState<M, O::State>) -> View<'a, M, O::State> {
        View {
            model: &state.model,
            average: state.average.as_ref(),
            objective: &state.objective,
            iteration: state.iteration,
            iterations: self.config.iterations,
            epoch: state.iteration / self.per_epoch(),
        }
    }

    pub(super) fn per_epoch(&self) -> u64 {
        self.batches.batches_per_epoch().max(1)
    }
}
