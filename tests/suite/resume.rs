//! Resume: a run that is killed again and again ends where an uninterrupted one ends, bit for bit.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use burn::optim::AdamConfig;
use burn::tensor::Device;
use jem_core::Error;
use jem_core::noise::{Noise, Stream};
use jem_core::persist::Persist;
use jem_core::train::{
    CheckpointConfig, Checkpoints, Control, JsonLines, Observer, Outcome, Record, TrainState, TrainerConfig,
    Validation, View,
};
use rand::RngExt;

use crate::support::{SmallTrainer, small_model, small_objective, weights};

const FOLDER: &str = "JEM_CORE_TEST_RESUME_FOLDER";
const ITERATIONS: u64 = 150;
/// How long a killed process waits after each record: long enough to be killed in time on a busy machine.
const PAUSE: Duration = Duration::from_millis(20);

/// A pause after each iteration, so that a kill hits one.
struct Slow(Duration);

impl<M, S> Observer<M, S> for Slow {
    fn on_record(&mut self, _: &Record, _: &View<'_, M, S>) -> jem_core::Result<Control> {
        std::thread::sleep(self.0);
        Ok(Control::Continue)
    }
}

type State = TrainState<jem_nn::Mlp, jem_core::samplers::ReplayBuffer<2>>;

/// Runs to the end, from the newest checkpoint in the folder if there is one.
fn run(folder: &Path, pause: Duration) -> State {
    let device = Device::default();
    let checkpoints = folder.join("checkpoints");
    std::fs::create_dir_all(&checkpoints).unwrap();
    let saved = Checkpoints::latest(&checkpoints).ok().map(|(saved, _)| saved);
    let from = saved.as_ref().map_or(0, |saved| saved.progress.iteration);
    let moons = crate::support::moons(&device);
    let set = moons.labelled().clone();
    let mut trainer: SmallTrainer = jem_core::train::Trainer::new(
        small_objective(64),
        moons,
        TrainerConfig::new(ITERATIONS).with_average_decay(0.9),
    )
    .with_learning_rate(jem_core::schedule::Schedule::step(1e-2, 0.5, [60, 120]).with_warmup(20))
    .with_checkpoints(
        Checkpoints::open(CheckpointConfig::new(&checkpoints).with_every(7).with_best("test_accuracy"))
            .unwrap(),
    )
    .with_observer(Validation::new("test", set, 64, &device))
    .with_observer(JsonLines::resume(folder.join("metrics.jsonl"), from).unwrap())
    .with_observer(Slow(pause));
    let mut noise = Noise::host(31);
    let model = small_model(&mut noise, &device);
    let optimizer = AdamConfig::new().init();
    let state = match saved {
        Some(saved) => trainer.resume(model, optimizer, saved, &device).unwrap(),
        None => trainer.start(model, optimizer, noise, &device).unwrap(),
    };
    let (state, outcome) = trainer.train(state).unwrap();
    assert_eq!(outcome, Outcome::Finished);
    state
}

/// Not a test of its own: what the killed processes run.
#[test]
#[ignore = "run by killed_runs_end_where_an_uninterrupted_one_ends"]
fn child() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        run(&PathBuf::from(folder), PAUSE);
    }
}

/// How many iterations the log of a run has.
fn iterations(folder: &Path) -> u64 {
    let log = std::fs::read_to_string(folder.join("metrics.jsonl")).unwrap_or_default();
    log.lines().filter(|line| line.starts_with(r#"{"kind":"step""#)).count() as u64
}

fn all_bits(state: &State) -> (Vec<u32>, Vec<u32>, Vec<u8>, String) {
    let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
    let buffer = state.objective.save().remove("replay_buffer").unwrap();
    let average = state.average.as_ref().unwrap();
    let noise = serde_json::to_string(&state.noise).unwrap();
    (bits(weights(&state.model)), bits(weights(average)), buffer.as_bytes().to_vec(), noise)
}

#[test]
fn killed_runs_end_where_an_uninterrupted_one_ends() {
    let (whole, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let expected = run(whole.path(), Duration::ZERO);

    // Ten random iterations, and a random moment within each: where the kill comes does not depend on the machine.
    let mut rng = Noise::host(77).derived(Stream::new("kills"), 0);
    let mut moments: Vec<u64> = (0..10).map(|part| 12 * part + rng.random_range(1..12)).collect();
    moments.sort_unstable();
    for moment in moments {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "resume::child", "--ignored"])
            .env(FOLDER, killed.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while iterations(killed.path()) <= moment {
            assert!(child.try_wait().unwrap().is_none(), "the run ended before iteration {moment}");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(PAUSE.mul_f64(rng.random()));
        child.kill().unwrap(); // SIGKILL
        assert!(!child.wait().unwrap().success(), "the run ended before it could be killed");
    }
    let (saved, _) = Checkpoints::latest(killed.path().join("checkpoints")).unwrap();
    assert!(saved.progress.iteration > 0);
    let found = run(killed.path(), Duration::ZERO);

    assert_eq!(all_bits(&found), all_bits(&expected));
    let read = |folder: &Path| std::fs::read(folder.join("metrics.jsonl")).unwrap();
    assert_eq!(read(killed.path()), read(whole.path()));
    // Negative control: a run that went on without its noise streams would differ.
    let mut moved = found.clone();
    moved.noise.rng(Stream::CHAIN).random::<u64>();
    assert_ne!(all_bits(&moved), all_bits(&expected));
}

#[test]
fn broken_checkpoints_are_refused_and_the_one_before_is_used() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), Duration::ZERO);
    let checkpoints = folder.path().join("checkpoints");
    let names = |all: Vec<PathBuf>| -> Vec<String> {
        all.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    };
    let all = Checkpoints::list(&checkpoints).unwrap();
    let kept = names(all.clone());
    assert!(kept.len() <= 4 && kept.contains(&"iteration-00000150".to_owned()), "{kept:?}");

    // What a crash leaves beside them is not taken for a checkpoint.
    std::fs::create_dir(checkpoints.join(".partial-00000154")).unwrap();
    let newest = &all[all.len() - 1];
    let before = &all[all.len() - 2];
    let original = std::fs::read(newest.join("model.bpk")).unwrap();
    let mut flipped = original.clone();
    flipped[original.len() / 2] ^= 1;
    type Break<'a> = (&'a str, Box<dyn Fn() + 'a>);
    let breaks: [Break; 5] = [
        (
            "model.bpk does not have the SHA-256",
            Box::new(|| std::fs::write(newest.join("model.bpk"), &flipped).unwrap()),
        ),
        (
            "bytes, the manifest says",
            Box::new(|| std::fs::write(newest.join("model.bpk"), &original[..100]).unwrap()),
        ),
        ("model.bpk: No such file", Box::new(|| std::fs::remove_file(newest.join("model.bpk")).unwrap())),
        (
            "manifest.json is not readable",
            Box::new(|| std::fs::write(newest.join("manifest.json"), "{").unwrap()),
        ),
        (
            "manifest.json: No such file",
            Box::new(|| std::fs::remove_file(newest.join("manifest.json")).unwrap()),
        ),
    ];
    for (reason, break_it) in breaks {
        break_it();
        let (saved, refused) = Checkpoints::latest(&checkpoints).unwrap();
        assert_eq!(&saved.path, before);
        assert_eq!(refused.len(), 1);
        assert!(refused[0].to_string().contains(reason), "{} does not say {reason}", refused[0]);
        assert!(refused[0].is_recoverable());
    }
    for path in &all {
        let _ = std::fs::remove_file(path.join("manifest.json"));
    }
    assert!(matches!(Checkpoints::latest(&checkpoints), Err(Error::Checkpoint { .. })));
}

#[test]
fn a_checkpoint_of_another_network_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), Duration::ZERO);
    let device = Device::default();
    let resume = |hidden: Vec<usize>, capacity: usize| {
        let (saved, _) = Checkpoints::latest(folder.path().join("checkpoints")).unwrap();
        let mut noise = Noise::host(1);
        let config = jem_nn::MlpConfig::new(2, hidden, 2);
        let model = config.init(&mut noise, &device.clone().autodiff()).unwrap();
        let mut trainer: SmallTrainer = jem_core::train::Trainer::new(
            small_objective(capacity),
            crate::support::moons(&device),
            TrainerConfig::new(ITERATIONS).with_average_decay(0.9),
        );
        trainer.resume(model, AdamConfig::new().init(), saved, &device).map(|state| state.iteration)
    };
    assert_eq!(resume(vec![16], 64).unwrap(), ITERATIONS);
    let error = resume(vec![17], 64).unwrap_err().to_string();
    assert!(error.contains("shape") || error.contains("Validation"), "{error}");
    let error = resume(vec![16], 65).unwrap_err().to_string();
    assert!(error.contains("replay_buffer") && error.contains("[64, 2]"), "{error}");
}
