//! What several tests share: small models, data, and the arithmetic of statistical tests.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use jem_core::data::{JointBatch, LoaderConfig, Toy, VectorLoader};
use jem_core::energy::EnergyModel;
use jem_core::noise::{Noise, Stream};
use jem_core::objectives::{Jem, JemConfig};
use jem_core::samplers::{ImproperSgld, ImproperSgldConfig, Replay, ReplayConfig, Sampler};
use jem_core::train::{Trainer, TrainerConfig};
use jem_nn::{Mlp, MlpConfig};

/// The objective of the small runs.
pub type SmallObjective = Jem<Replay<ImproperSgld>>;
/// A small run: two moons and an MLP.
pub type SmallTrainer = Trainer<Mlp, JointBatch<2>, SmallObjective, VectorLoader>;

/// Two moons in batches of 32.
pub fn moons(device: &Device) -> VectorLoader {
    let set = Toy::TwoMoons.sample(256, &mut Noise::host(5).derived(Stream::DATA, 0)).unwrap();
    VectorLoader::new(set.clone(), set, &LoaderConfig::new(32), device).unwrap()
}

/// JEM on points, with chains of five steps and a buffer of `capacity`.
pub fn small_objective(capacity: usize) -> SmallObjective {
    let sampler = ImproperSgldConfig::new().with_step_size(0.1).with_noise_scale(0.05).init().unwrap();
    let replay = ReplayConfig::new([2]).with_capacity(capacity).with_num_steps(5).init(sampler).unwrap();
    JemConfig::new().init(replay).unwrap()
}

/// A trainable MLP on points.
pub fn small_model(noise: &mut Noise, device: &Device) -> Mlp {
    MlpConfig::new(2, vec![16], 2).init(noise, &device.clone().autodiff()).unwrap()
}

/// A run of so many iterations on two moons.
pub fn small_trainer(iterations: u64, device: &Device) -> SmallTrainer {
    Trainer::new(small_objective(64), moons(device), TrainerConfig::new(iterations))
}

/// A sampler that adds a constant, so that a sample tells where it came from and how often it moved.
pub struct Add(pub f32);

impl Sampler<2> for Add {
    type State = Tensor<2>;
    type Info = ();
    fn init(&self, _: &dyn EnergyModel<2>, x: Tensor<2>) -> Tensor<2> {
        x
    }
    fn step(&self, _: &dyn EnergyModel<2>, x: Tensor<2>, _: &mut Noise) -> (Tensor<2>, ()) {
        (x + self.0, ())
    }
    fn position(&self, x: &Tensor<2>) -> Tensor<2> {
        x.clone()
    }
}

/// Every parameter of a module, in the order of its fields.
pub fn weights<M: Module>(module: &M) -> Vec<f32> {
    use burn::module::{ModuleVisitor, Param};
    struct Collect(Vec<f32>);
    impl ModuleVisitor for Collect {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.extend(param.val().into_data().iter::<f32>());
        }
    }
    let mut collect = Collect(Vec::new());
    module.visit(&mut collect);
    collect.0
}

/// The numbers of a tensor.
pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

/// Mean and variance in double precision.
pub fn moments(values: &[f32]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / n;
    let variance = values.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, variance)
}

/// The two-sided 1 - 1e-5 quantile of the standard normal: every statistical test here has α = 1e-5.
pub const Z: f64 = 4.417;
