//! Configurations that cannot work are refused by name before any work; odd ones that can, do.

use burn::optim::AdamConfig;
use burn::tensor::Device;
use jem_core::data::{BatchSource, ImageLoader, ImageSet, JointBatch, LastBatch, LoaderConfig};
use jem_core::energy::analytic::Gaussian;
use jem_core::noise::Noise;
use jem_core::objectives::JemConfig;
use jem_core::samplers::{
    ImproperSgldConfig, ReplayConfig, Request, SampleSource, SgldConfig, ShortRunConfig, UniformStart,
};
use jem_core::schedule::Schedule;
use jem_core::train::{
    CheckpointConfig, Checkpoints, GuardConfig, Outcome, Policy, Trainer, TrainerConfig, validate,
};
use jem_nn::{CnnConfig, WideResNetConfig};

use crate::support::{small_model, small_trainer};

fn sampler() -> jem_core::samplers::ImproperSgld {
    ImproperSgldConfig::new().init().unwrap()
}

fn says<T>(result: jem_core::Result<T>, part: &str) {
    match result {
        Ok(_) => panic!("accepted, where it should say {part:?}"),
        Err(error) => assert!(error.to_string().contains(part), "{error} does not say {part:?}"),
    }
}

#[test]
fn samplers_and_sources() {
    let replay = || ReplayConfig::new([2]);
    says(replay().with_capacity(0).init(sampler()), "ReplayConfig.capacity = 0");
    says(replay().with_num_steps(0).init(sampler()), "ReplayConfig.num_steps = 0");
    says(replay().with_restart_probability(1.5).init(sampler()), "ReplayConfig.restart_probability = 1.5");
    says(
        replay().with_restart_probability(f64::NAN).init(sampler()),
        "ReplayConfig.restart_probability = NaN",
    );
    says(replay().with_class_blocks(0).init(sampler()), "ReplayConfig.class_blocks = 0");
    says(replay().with_class_blocks(3).init(sampler()), "a divisor of the capacity, 10000");
    says(ReplayConfig::new([]).init(sampler()), "ReplayConfig.sample_shape = []");
    says(ReplayConfig::new([3, 0, 2]).init(sampler()), "ReplayConfig.sample_shape = [3, 0, 2]");
    says(ShortRunConfig::new([2]).with_num_steps(0).init(sampler()), "ShortRunConfig.num_steps = 0");
    says(UniformStart::new(1.0, f32::INFINITY), "UniformStart = [1, inf]");
    says(SgldConfig::new(Schedule::polynomial(1.0, -1.0, 0.6)).init(), "SgldConfig.step_size.offset = -1");

    // Shapes that only the rank of the run shows to be wrong.
    let device = Device::default();
    let images = ReplayConfig::new([3, 8, 8]).with_capacity(4).init(sampler()).unwrap();
    says(
        SampleSource::<2>::start(&images, &mut Noise::host(0), &device),
        "sample_shape has shape [3, 8, 8], expected 1",
    );
    let points = ShortRunConfig::new([2]).with_num_steps(1).init(sampler()).unwrap();
    let request = Request { count: 3, labels: Some(&[0, 1]), device: &device };
    says(
        points
            .draw(&Gaussian::standard(), request, (), &mut Noise::host(0))
            .map(|(n, ())| n.samples as burn::tensor::Tensor<2>),
        "labels has shape [2], expected [3]",
    );
}

#[test]
fn trainers() {
    let device = Device::default();
    let start = |change: &dyn Fn(crate::support::SmallTrainer) -> crate::support::SmallTrainer,
                 iterations| {
        let mut noise = Noise::host(0);
        let model = small_model(&mut noise, &device);
        let mut trainer = change(small_trainer(iterations, &device));
        trainer.start(model, AdamConfig::new().init(), noise, &device).map(|state| state.iteration)
    };
    says(start(&|t| t, 0), "TrainerConfig.iterations = 0");
    says(start(&|t| t.with_learning_rate(Schedule::Constant(-1.0)), 1), "learning_rate = -1");
    let descending = Schedule::step(0.1, 0.5, [9, 3]);
    says(start(&move |t| t.with_learning_rate(descending.clone()), 1), "learning_rate.milestones = [9, 3]");
    let factor = GuardConfig::new().with_policy(Policy::RollBack { at_most: 1, learning_rate_factor: 2.0 });
    says(start(&move |t| t.with_guard(factor.clone()), 1), "learning_rate_factor = 2");
    says(
        start(&|t| t.with_guard(GuardConfig::new().with_max_gradient_norm(-3.0)), 1),
        "max_gradient_norm = -3",
    );
    // A warm-up of 0 iterations is no warm-up.
    let no_warmup = Schedule::Constant(0.1).with_warmup(0);
    assert_eq!(start(&move |t| t.with_learning_rate(no_warmup.clone()), 1).unwrap(), 0);

    let mut noise = Noise::host(0);
    let model = small_model(&mut noise, &device);
    let loader = crate::support::moons(&device);
    let objective = crate::support::small_objective(8);
    let config = TrainerConfig::new(1).with_average_decay(1.0);
    let mut trainer: crate::support::SmallTrainer = Trainer::new(objective, loader, config);
    says(trainer.start(model, AdamConfig::new().init(), noise, &device), "TrainerConfig.average_decay = 1");
}

#[test]
fn checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let config = || CheckpointConfig::new(folder.path());
    says(Checkpoints::open(config().with_every(0)), "CheckpointConfig.every = 0");
    says(Checkpoints::open(config().with_keep(0)), "CheckpointConfig.keep = 0");
    says(Checkpoints::latest(folder.path()), "holds no checkpoint");
    says(Checkpoints::latest(folder.path().join("absent")), "absent: No such file");
    says(Checkpoints::read(folder.path().join("iteration-00000001")), "manifest.json: No such file");
}

#[test]
fn networks() {
    let device = Device::default();
    for depth in [0, 4, 11, 27] {
        says(
            WideResNetConfig::new(depth, 1, 10).init(&mut Noise::host(0), &device),
            "WideResNetConfig.depth",
        );
    }
    says(WideResNetConfig::new(10, 0, 10).init(&mut Noise::host(0), &device), "WideResNetConfig.width = 0");
    says(CnnConfig::new(vec![], 10).init(&mut Noise::host(0), &device), "CnnConfig.channels = []");
}

/// One channel, 17x23 pixels, 100 classes, a batch of one and a short last batch, through a whole run.
#[test]
fn odd_images_train() {
    let device = Device::default();
    let count = 7;
    let pixels: Vec<u8> = (0..count * 17 * 23).map(|i| (i * 37 % 256) as u8).collect();
    let labels: Vec<usize> = (0..count).map(|i| i * 14).collect();
    let set = ImageSet::new("odd", pixels, [1, 17, 23], labels, 100).unwrap();
    for (batch, last, expected) in [(1, LastBatch::Drop, 7), (3, LastBatch::Keep, 3)] {
        let config = LoaderConfig::new(batch).with_last_batch(last);
        let loader = ImageLoader::new(set.clone(), set.clone(), &config, &device).unwrap();
        assert_eq!(BatchSource::<JointBatch<4>>::batches_per_epoch(&loader), expected);
        let replay =
            ReplayConfig::new([1, 17, 23]).with_capacity(2).with_num_steps(1).init(sampler()).unwrap();
        let mut noise = Noise::host(3);
        let config = CnnConfig::new(vec![2, 2], 100).with_in_channels(1);
        let model = config.init(&mut noise, &device.clone().autodiff()).unwrap();
        let objective = JemConfig::new().init(replay).unwrap();
        let mut trainer = Trainer::new(objective, loader, TrainerConfig::new(2 * expected));
        let state = trainer.start(model, AdamConfig::new().init(), noise, &device).unwrap();
        let (state, outcome) = trainer.train(state).unwrap();
        assert_eq!(outcome, Outcome::Finished);
        let valid = burn::module::Module::valid(&state.model);
        assert!(validate(&valid, &set, 2, &device).unwrap().cross_entropy.is_finite());
        says(validate(&valid, &set, 0, &device), "validation batch = 0");
    }
}
