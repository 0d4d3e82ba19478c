//! The divergence guard: three kinds of blow-up, each survived by rolling back and stopped cleanly by stopping.

use std::cell::Cell;
use std::path::Path;

use burn::optim::AdamConfig;
use burn::tensor::{Device, Tensor};
use jem_core::Result;
use jem_core::data::{JointBatch, VectorLoader};
use jem_core::energy::Classifier;
use jem_core::noise::Noise;
use jem_core::objectives::{Loss, Objective};
use jem_core::persist::Persist;
use jem_core::samplers::ReplayBuffer;
use jem_core::schedule::Schedule;
use jem_core::train::{
    CheckpointConfig, Checkpoints, Event, GuardConfig, JsonLines, Outcome, Policy, Record, TrainState,
    Trainer, TrainerConfig, read_records,
};
use jem_nn::Mlp;

use crate::support::{SmallObjective, moons, small_model, small_objective, values, weights};

/// What goes wrong, once, at iteration 7.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// The loss is finite and its gradient is NaN.
    NanGradient,
    /// Every chain of the next draw starts from an infinity.
    InfiniteSlot,
}

/// The joint objective with a fault in it.
struct Faulty {
    inner: SmallObjective,
    fault: Fault,
    calls: Cell<u64>,
}

impl Objective<Mlp, JointBatch<2>> for Faulty {
    type State = ReplayBuffer<2>;

    fn start(&self, noise: &mut Noise, device: &Device) -> Result<ReplayBuffer<2>> {
        Objective::<Mlp, JointBatch<2>>::start(&self.inner, noise, device)
    }

    fn loss(
        &self,
        model: &Mlp,
        batch: &JointBatch<2>,
        mut state: ReplayBuffer<2>,
        noise: &mut Noise,
    ) -> Result<(Loss, ReplayBuffer<2>)> {
        let now = self.calls.replace(self.calls.get() + 1) == 7;
        if now && self.fault == Fault::InfiniteSlot {
            let slots: Vec<usize> = (0..state.capacity()).collect();
            let device = Device::default();
            let mut poisoned = state.all(&device);
            poisoned = poisoned.slice_assign([3..4, 0..1], Tensor::full([1, 1], f32::INFINITY, &device));
            state.write(&slots, &poisoned);
        }
        let (loss, state) = self.inner.loss(model, batch, state, noise)?;
        if !(now && self.fault == Fault::NanGradient) {
            return Ok((loss, state));
        }
        // d√z/dz at 0 is infinite, and 0 · ∞ is NaN.
        let poison = model.logits(batch.labelled.clone().autodiff()).mul_scalar(0.0).sum().sqrt();
        Ok((Loss::new(loss.total().clone() + poison), state))
    }
}

type Run = Trainer<Mlp, JointBatch<2>, Faulty, VectorLoader>;

/// A run of 60 iterations in `folder`, and how it ended.
fn run(
    folder: &Path,
    fault: Fault,
    guard: GuardConfig,
    rate: f64,
) -> (TrainState<Mlp, ReplayBuffer<2>>, Outcome, Vec<Record>) {
    let device = Device::default();
    let mut noise = Noise::host(21);
    let model = small_model(&mut noise, &device);
    // A buffer of 8 slots and 32 chains a draw: slot 3 is drawn with probability 1 - (7/8)^32 = 0.986.
    let objective = Faulty { inner: small_objective(8), fault, calls: Cell::new(0) };
    let metrics = folder.join("metrics.jsonl");
    let mut trainer: Run = Trainer::new(objective, moons(&device), TrainerConfig::new(60))
        .with_learning_rate(Schedule::Constant(rate))
        .with_guard(guard.with_snapshot_every(5))
        .with_checkpoints(Checkpoints::open(CheckpointConfig::new(folder.join("checkpoints"))).unwrap())
        .with_observer(JsonLines::create(&metrics).unwrap());
    let state = trainer.start(model, AdamConfig::new().init(), noise, &device).unwrap();
    let (state, outcome) = trainer.train(state).unwrap();
    (state, outcome, read_records(&metrics).unwrap())
}

fn events(records: &[Record]) -> Vec<(Event, String, u64)> {
    records
        .iter()
        .filter_map(|record| match record {
            Record::Event(event) => Some((event.event, event.cause.clone(), event.iteration)),
            _ => None,
        })
        .collect()
}

fn is_healthy(state: &TrainState<Mlp, ReplayBuffer<2>>) -> bool {
    weights(&state.model).iter().all(|w| w.is_finite())
        && values(state.objective.all(&Device::default())).iter().all(|x| x.is_finite())
}

/// Energies of a healthy run of this size stay below 20.
fn limits(policy: Policy) -> GuardConfig {
    GuardConfig::new().with_max_energy(50.0).with_max_energy_gap(50.0).with_policy(policy)
}

const ROLL_BACK: Policy = Policy::RollBack { at_most: 8, learning_rate_factor: 0.1 };

const FAULTS: [(Fault, &str); 2] =
    [(Fault::NanGradient, "gradient_norm is not finite"), (Fault::InfiniteSlot, "non_finite_samples")];

#[test]
fn a_healthy_run_has_no_events() {
    let folder = tempfile::tempdir().unwrap();
    let (state, outcome, records) = run(folder.path(), Fault::None, limits(ROLL_BACK), 1e-2);
    assert_eq!(outcome, Outcome::Finished);
    assert!(events(&records).is_empty() && is_healthy(&state));
    let steps = records.iter().filter(|record| matches!(record, Record::Step(_))).count();
    let epochs = records.iter().filter(|record| matches!(record, Record::Epoch(_))).count();
    assert_eq!((steps, epochs), (60, 7)); // 256 points in batches of 32
}

#[test]
fn faults_are_survived_by_rolling_back() {
    for (fault, cause) in FAULTS {
        let folder = tempfile::tempdir().unwrap();
        let (state, outcome, records) = run(folder.path(), fault, limits(ROLL_BACK), 1e-2);
        let events = events(&records);
        assert_eq!(outcome, Outcome::Finished);
        assert_eq!(events.len(), 1, "{events:?}");
        assert_eq!((events[0].0, events[0].2), (Event::RolledBack, 7));
        assert!(events[0].1.contains(cause), "{events:?}");
        assert!(is_healthy(&state));
        assert_eq!((state.guard.roll_backs, state.guard.learning_rate_scale), (1, 0.1));
        let Record::Step(last) = &records[records.len() - 1] else { panic!("no step at the end") };
        assert!((last.learning_rate - 1e-3).abs() < 1e-12, "the rate is a tenth: {}", last.learning_rate);
    }
}

#[test]
fn faults_are_skipped_where_the_policy_says_so() {
    for (fault, cause) in FAULTS {
        let folder = tempfile::tempdir().unwrap();
        let policy = Policy::Skip { at_most: 1 };
        let (state, outcome, records) = run(folder.path(), fault, limits(policy), 1e-2);
        let events = events(&records);
        assert_eq!(outcome, Outcome::Finished);
        assert_eq!((events.len(), events[0].0), (1, Event::Skipped));
        assert!(events[0].1.contains(cause) && is_healthy(&state));
    }
}

#[test]
fn faults_end_the_run_cleanly_under_the_stop_policy() {
    for (fault, cause) in FAULTS {
        let folder = tempfile::tempdir().unwrap();
        let (state, outcome, records) = run(folder.path(), fault, limits(Policy::Stop), 1e-2);
        let Outcome::Diverged(found) = outcome else { panic!("not stopped: {outcome:?}") };
        assert!(found.to_string().contains(cause), "{found}");
        assert_eq!(events(&records)[0].0, Event::Stopped);
        assert_eq!(state.iteration, 8);
        assert!(is_healthy(&state));
        let (saved, refused) = Checkpoints::latest(folder.path().join("checkpoints")).unwrap();
        assert!(refused.is_empty());
        assert_eq!(saved.progress.iteration, 8);
    }
}

#[test]
fn a_learning_rate_a_thousand_times_too_high_is_survived_or_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let (state, outcome, records) = run(folder.path(), Fault::None, limits(ROLL_BACK), 10.0);
    assert_eq!(outcome, Outcome::Finished);
    assert!(state.guard.roll_backs >= 1 && is_healthy(&state), "{:?}", events(&records));
    let Record::Step(last) = &records[records.len() - 1] else { panic!("no step at the end") };
    assert!(last.values["energy_data"].abs() < 50.0);

    let folder = tempfile::tempdir().unwrap();
    let (state, outcome, _) = run(folder.path(), Fault::None, limits(Policy::Stop), 10.0);
    assert!(matches!(outcome, Outcome::Diverged(_)) && is_healthy(&state));

    // Negative control: without limits the same run leaves them by far.
    let folder = tempfile::tempdir().unwrap();
    let unguarded = GuardConfig::new()
        .with_max_loss(f64::INFINITY)
        .with_max_energy(f64::INFINITY)
        .with_max_energy_gap(f64::INFINITY)
        .with_max_gradient_norm(f64::INFINITY);
    let (_, _, records) = run(folder.path(), Fault::None, unguarded, 10.0);
    let beyond = |record: &Record| match record {
        Record::Step(step) => step.values["energy_data"].abs() > 50.0,
        _ => false,
    };
    assert!(records.iter().any(beyond));
}

#[test]
fn rolling_back_has_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let policy = Policy::RollBack { at_most: 2, learning_rate_factor: 1.0 };
    let (state, outcome, records) = run(folder.path(), Fault::None, limits(policy), 10.0);
    assert!(matches!(outcome, Outcome::Diverged(_)));
    let kinds: Vec<Event> = events(&records).into_iter().map(|(event, ..)| event).collect();
    assert_eq!(kinds, [Event::RolledBack, Event::RolledBack, Event::Stopped]);
    assert!(is_healthy(&state));
    // What is left is a checkpoint that a new run starts from.
    let (saved, _) = Checkpoints::latest(folder.path().join("checkpoints")).unwrap();
    assert_eq!(saved.progress.guard.roll_backs, 2);
    assert!(!state.objective.save().is_empty());
}
