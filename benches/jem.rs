//! What a training iteration is made of, and what each part costs: `cargo bench`.
//!
//! ```text
//! cargo bench --bench jem                             a minute or two
//! cargo bench --bench jem -- chain replay             some of them
//! cargo bench --profile dev --bench jem -- --test     what CI runs: each once, without a release build
//! BURN_DEVICE=wgpu cargo bench --bench jem --features wgpu
//! ```
//!
//! The backend is Burn's default; every measurement waits for the device. Two benchmarks in one module differ
//! by what their names say, and by nothing else.

mod support;

use std::time::Duration;

use burn::optim::AdamConfig;
use burn::tensor::{Device, Tensor};
use divan::counter::ItemsCount;
use divan::{Bencher, Divan};
use jem_core::data::JointBatch;
use jem_core::energy::{Classifier, EnergyModel, JointEnergy};
use jem_core::noise::{Noise, Stream};
use jem_nn::{CnnConfig, MlpConfig, WideResNetConfig};

fn main() {
    Divan::default().max_time(Duration::from_secs(4)).sample_count(50).config_with_args().main();
}

/// An MLP in the plane, 2-128-128-2, with 256 points.
fn mlp(device: &Device) -> (impl Classifier<2> + burn::module::Module + use<>, [usize; 2]) {
    let network = MlpConfig::new(2, vec![128, 128], 2).init(&mut Noise::host(0), device);
    (network.expect("a valid configuration"), [256, 2])
}

/// A small CNN, 3-32-64-128, with 16 images of 3x32x32.
fn cnn(device: &Device) -> (impl Classifier<4> + burn::module::Module + use<>, [usize; 4]) {
    let network = CnnConfig::new(vec![32, 64, 128], 10).init(&mut Noise::host(0), device);
    (network.expect("a valid configuration"), [16, 3, 32, 32])
}

/// WideResNet-10-1 with 16 images of 3x32x32.
fn wide_resnet(device: &Device) -> (impl Classifier<4> + burn::module::Module + use<>, [usize; 4]) {
    let network = WideResNetConfig::new(10, 1, 10).init(&mut Noise::host(0), device);
    (network.expect("a valid configuration"), [16, 3, 32, 32])
}

/// Uniform noise on [-1, 1].
fn batch<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Noise::host(1).uniform(shape, -1.0..1.0, Stream::DATA, device)
}

/// Waits until everything on the device is done.
fn wait(device: &Device) {
    device.sync().expect("a device that answers");
}

/// E(x).
mod energy {
    use super::*;

    fn measure<const D: usize>(bencher: Bencher<'_, '_>, (network, shape): (impl Classifier<D>, [usize; D])) {
        let device = Device::default();
        let (joint, x) = (JointEnergy::new(network), batch(shape, &device));
        bencher.counter(ItemsCount::new(shape[0])).bench_local(|| {
            let energy = joint.energy(x.clone());
            wait(&device);
            energy
        });
    }

    #[divan::bench]
    fn mlp(bencher: Bencher<'_, '_>) {
        measure(bencher, super::mlp(&Device::default()));
    }

    #[divan::bench]
    fn cnn(bencher: Bencher<'_, '_>) {
        measure(bencher, super::cnn(&Device::default()));
    }

    #[divan::bench]
    fn wide_resnet(bencher: Bencher<'_, '_>) {
        measure(bencher, super::wide_resnet(&Device::default()));
    }
}

/// E(x) and its gradient in x.
mod energy_and_grad {
    use super::*;

    fn measure<const D: usize>(bencher: Bencher<'_, '_>, (network, shape): (impl Classifier<D>, [usize; D])) {
        let device = Device::default();
        let (joint, x) = (JointEnergy::new(network), batch(shape, &device));
        bencher.counter(ItemsCount::new(shape[0])).bench_local(|| {
            let found = joint.energy_and_grad(x.clone());
            wait(&device);
            found
        });
    }

    #[divan::bench]
    fn mlp(bencher: Bencher<'_, '_>) {
        measure(bencher, super::mlp(&Device::default()));
    }

    #[divan::bench]
    fn cnn(bencher: Bencher<'_, '_>) {
        measure(bencher, super::cnn(&Device::default()));
    }

    #[divan::bench]
    fn wide_resnet(bencher: Bencher<'_, '_>) {
        measure(bencher, super::wide_resnet(&Device::default()));
    }
}

/// A chain of 20 steps, and the 20 gradients that it cannot do without: the difference is the sampler's own.
mod chain_of_20 {
    use super::*;
    use jem_core::samplers::{ImproperSgldConfig, run};

    fn chain<const D: usize>(bencher: Bencher<'_, '_>, (network, shape): (impl Classifier<D>, [usize; D])) {
        let device = Device::default();
        let (joint, x) = (JointEnergy::new(network), batch(shape, &device));
        let sampler = ImproperSgldConfig::new().init().expect("a valid configuration");
        let mut noise = Noise::host(2);
        bencher.bench_local(|| {
            let end = run(&sampler, &joint, x.clone(), 20, &mut noise);
            wait(&device);
            end
        });
    }

    fn gradients<const D: usize>(
        bencher: Bencher<'_, '_>,
        (network, shape): (impl Classifier<D>, [usize; D]),
    ) {
        let device = Device::default();
        let (joint, x) = (JointEnergy::new(network), batch(shape, &device));
        bencher.bench_local(|| {
            for _ in 0..20 {
                divan::black_box(joint.energy_and_grad(x.clone()));
            }
            wait(&device);
        });
    }

    #[divan::bench]
    fn mlp(bencher: Bencher<'_, '_>) {
        chain(bencher, super::mlp(&Device::default()));
    }

    #[divan::bench]
    fn mlp_gradients_alone(bencher: Bencher<'_, '_>) {
        gradients(bencher, super::mlp(&Device::default()));
    }

    #[divan::bench]
    fn cnn(bencher: Bencher<'_, '_>) {
        chain(bencher, super::cnn(&Device::default()));
    }

    #[divan::bench]
    fn cnn_gradients_alone(bencher: Bencher<'_, '_>) {
        gradients(bencher, super::cnn(&Device::default()));
    }
}

/// 64 images of 3x32x32 out of a replay buffer of 100,000, and back.
mod replay {
    use super::*;
    use jem_core::energy::analytic::Gaussian;
    use jem_core::samplers::{BufferPlace, ReplayBuffer, ReplayConfig, Request, SampleSource, Sampler};

    const PLACES: [BufferPlace; 2] = [BufferPlace::Host, BufferPlace::Device];
    const IMAGE: [usize; 3] = [3, 32, 32];

    /// A chain that stays where it is, and costs nothing.
    struct Still;
    impl<const D: usize> Sampler<D> for Still {
        type State = Tensor<D>;
        type Info = ();

        fn init(&self, _: &dyn EnergyModel<D>, x: Tensor<D>) -> Tensor<D> {
            x
        }

        fn step(&self, _: &dyn EnergyModel<D>, x: Tensor<D>, _: &mut Noise) -> (Tensor<D>, ()) {
            (x, ())
        }

        fn position(&self, x: &Tensor<D>) -> Tensor<D> {
            x.clone()
        }
    }

    fn buffer(place: BufferPlace, device: &Device) -> ReplayBuffer<4> {
        ReplayBuffer::new(Tensor::zeros([100_000, 3, 32, 32], device), place)
    }

    /// 64 slots all over the buffer.
    fn slots() -> Vec<usize> {
        (0..64).map(|i| i * 7_919 % 100_000).collect()
    }

    #[divan::bench(args = PLACES)]
    fn read(bencher: Bencher<'_, '_>, place: BufferPlace) {
        let device = Device::default();
        let (buffer, slots) = (buffer(place, &device), slots());
        bencher.counter(ItemsCount::new(slots.len())).bench_local(|| {
            let images = buffer.read(&slots, &device);
            wait(&device);
            images
        });
    }

    #[divan::bench(args = PLACES)]
    fn write(bencher: Bencher<'_, '_>, place: BufferPlace) {
        let device = Device::default();
        let (mut buffer, slots) = (buffer(place, &device), slots());
        let images = batch([64, 3, 32, 32], &device);
        bencher.counter(ItemsCount::new(slots.len())).bench_local(|| {
            buffer.write(&slots, &images);
            wait(&device);
        });
    }

    /// A whole draw with a chain that costs nothing: slots, restarts, the check for what is not finite, and back.
    #[divan::bench(args = PLACES)]
    fn draw_without_chain(bencher: Bencher<'_, '_>, place: BufferPlace) {
        let device = Device::default();
        let replay = ReplayConfig::new(IMAGE).with_place(place).with_num_steps(1).init(Still);
        let replay = replay.expect("a valid configuration");
        let mut noise = Noise::host(3);
        let mut buffer = Some(buffer(place, &device));
        bencher.counter(ItemsCount::new(64usize)).bench_local(|| {
            let request = Request { count: 64, labels: None, device: &device };
            let before = buffer.take().expect("a buffer is always put back");
            let (negatives, after) = replay
                .draw(&Gaussian::standard(), request, before, &mut noise)
                .expect("a request that fits the buffer");
            buffer = Some(after);
            wait(&device);
            negatives
        });
    }
}

/// 4 million elements forward and backward: the leaky ReLU of this crate, and Burn's.
mod leaky_relu {
    use super::*;
    use burn::tensor::activation;

    fn measure(bencher: Bencher<'_, '_>, function: impl Fn(Tensor<4>) -> Tensor<4>) {
        let device = Device::default();
        let x = batch([64, 64, 32, 32], &device);
        bencher.bench_local(|| {
            let x = x.clone().autodiff().require_grad();
            let gradient = x.grad(&function(x.clone()).sum().backward());
            wait(&device);
            gradient
        });
    }

    #[divan::bench]
    fn ours(bencher: Bencher<'_, '_>) {
        measure(bencher, |x| jem_nn::leaky_relu(x, 0.2));
    }

    #[divan::bench]
    fn burn(bencher: Bencher<'_, '_>) {
        measure(bencher, |x| activation::leaky_relu(x, 0.2));
    }
}

/// Standard normal numbers for 64 images of 3x32x32.
mod noise {
    use super::*;
    use jem_core::noise::NoiseMode;

    #[divan::bench(args = [NoiseMode::Host, NoiseMode::Device])]
    fn normal(bencher: Bencher<'_, '_>, mode: NoiseMode) {
        let device = Device::default();
        let mut noise = Noise::new(4, mode);
        bencher.counter(ItemsCount::new(64usize)).bench_local(|| {
            let draws = noise.normal([64, 3, 32, 32], Stream::CHAIN, &device);
            wait(&device);
            draws
        });
    }
}

/// A whole iteration of the trainer: batch, 20 steps of a chain, loss, backward pass, Adam.
mod training_iteration {
    use super::*;
    use burn::module::Module;
    use jem_core::objectives::JemConfig;
    use jem_core::samplers::{ImproperSgldConfig, ReplayConfig};
    use jem_core::train::{Control, Observer, Record, Trainer, TrainerConfig, View};

    use crate::support::Same;

    /// Ends the run after every iteration.
    struct OneAtATime;
    impl<M, S> Observer<M, S> for OneAtATime {
        fn on_record(&mut self, _: &Record, _: &View<'_, M, S>) -> jem_core::Result<Control> {
            Ok(Control::Stop)
        }
    }

    fn measure<const D: usize, M: Classifier<D> + Module + 'static>(
        bencher: Bencher<'_, '_>,
        (network, shape): (M, [usize; D]),
    ) {
        let device = Device::default();
        let sampler = ImproperSgldConfig::new().init().expect("a valid configuration");
        let replay = ReplayConfig::new(&shape[1..]).with_capacity(1_000).init(sampler);
        let objective = JemConfig::new().init(replay.expect("a valid configuration"));
        let x = batch(shape, &device);
        let labels = (0..shape[0]).map(|index| index % 2).collect();
        let batches = Same(JointBatch { unlabelled: x.clone(), labelled: x, labels });
        let objective = objective.expect("a valid configuration");
        let mut trainer = Trainer::new(objective, batches, TrainerConfig::new(u64::MAX))
            .with_observer(OneAtATime)
            .with_learning_rate(1e-4.into());
        let start = trainer.start(network, AdamConfig::new().init(), Noise::host(5), &device);
        let mut state = Some(start.expect("a valid configuration"));
        bencher.counter(ItemsCount::new(shape[0])).bench_local(|| {
            let before = state.take().expect("a state is always put back");
            let (after, _) = trainer.train(before).expect("an iteration without fault");
            state = Some(after);
            wait(&device);
        });
    }

    #[divan::bench]
    fn mlp(bencher: Bencher<'_, '_>) {
        measure(bencher, super::mlp(&Device::default().autodiff()));
    }

    #[divan::bench]
    fn cnn(bencher: Bencher<'_, '_>) {
        measure(bencher, super::cnn(&Device::default().autodiff()));
    }
}
