//! The contract that every sampler keeps, as one table.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use jem_core::energy::analytic::Gaussian;
use jem_core::energy::{Clamp, EnergyModel, JointEnergy};
use jem_core::math::Norm;
use jem_core::noise::{Noise, Stream};
use jem_core::samplers::{
    AnnealedLangevinConfig, Confined, HmcConfig, ImproperSgldConfig, Inpainting, MalaConfig, MppiConfig,
    Neighbourhood, NormalizedGradientConfig, ParallelTemperingConfig, ProximalSgldConfig, Sampler,
    SgldConfig, UlaConfig, UnderdampedLangevinConfig, run,
};
use jem_nn::{CnnConfig, MlpConfig};

use crate::support::{values, weights};

/// Whether a sampler draws anything: a descent is the same chain for every seed.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Random,
    Deterministic,
}

fn keeps_the_contract<S: Sampler<2> + Sampler<4>>(name: &str, sampler: &S) {
    both_keep_the_contract(name, sampler, sampler, Kind::Random);
}

/// The same of a sampler of points and one of images.
fn both_keep_the_contract(
    name: &str,
    sampler: &impl Sampler<2>,
    sampler_of_images: &impl Sampler<4>,
    kind: Kind,
) {
    let device = Device::default();
    let points = Noise::host(1).normal([6, 3], Stream::DATA, &device);
    let images = Noise::host(2).normal([3, 1, 5, 4], Stream::DATA, &device);
    let mlp = MlpConfig::new(3, vec![8], 2).init(&mut Noise::host(3), &device.clone().autodiff()).unwrap();
    let cnn = CnnConfig::new(vec![4], 2)
        .with_in_channels(1)
        .init(&mut Noise::host(3), &device.clone().autodiff())
        .unwrap();

    // Ranks 2 and 4: the shape stays, the chain moves, everything is finite and carries no autodiff.
    let of_points =
        |seed| run(sampler, &JointEnergy::new(mlp.valid()), points.clone(), 3, &mut Noise::host(seed));
    let end = of_points(7);
    assert_eq!(end.dims(), points.dims(), "{name}");
    assert!(!end.is_autodiff(), "{name}");
    let of_images =
        run(sampler_of_images, &JointEnergy::new(cnn.valid()), images.clone(), 3, &mut Noise::host(7));
    assert_eq!(of_images.dims(), images.dims(), "{name}");
    for (before, after) in
        [(values(points.clone()), values(end.clone())), (values(images), values(of_images))]
    {
        assert!(after.iter().all(|v| v.is_finite()) && before != after, "{name}");
    }

    // Same seed, same chain; another seed, another chain.
    assert_eq!(values(end.clone()), values(of_points(7)), "{name}");
    assert_eq!(values(end) == values(of_points(8)), kind == Kind::Deterministic, "{name}");

    // A state goes on as it would have: 5 steps are 2 and 3 with the state handed over.
    let model = Gaussian::standard();
    let steps = |state, noise: &mut Noise, n| {
        (0..n).fold(state, |state, _| Sampler::<2>::step(sampler, &model, state, noise).0)
    };
    let mut noise = Noise::host(4);
    let whole = steps(Sampler::<2>::init(sampler, &model, points.clone()), &mut noise, 5);
    let mut noise = Noise::host(4);
    let part = steps(Sampler::<2>::init(sampler, &model, points.clone()), &mut noise, 2);
    let mut noise: Noise = serde_json::from_str(&serde_json::to_string(&noise).unwrap()).unwrap();
    let parts = steps(part.clone(), &mut noise, 3);
    assert_eq!(values::<2>(sampler.position(&whole)), values::<2>(sampler.position(&parts)), "{name}");

    // Moved elsewhere, chains are where a start there would be.
    let target = points.clone().mul_scalar(0.5).add_scalar(0.1);
    let moved = sampler.moved_to(&model, whole, target.clone());
    let start = Sampler::<2>::init(sampler, &model, target);
    assert_eq!(values::<2>(sampler.position(&moved)), values::<2>(sampler.position(&start)), "{name}");

    // A chain's numbers do not depend on where its neighbours are.
    let moved =
        Tensor::cat(vec![points.clone().narrow(0, 0, 3), points.clone().narrow(0, 3, 3).mul_scalar(5.0)], 0);
    let one = run(sampler, &model, points.clone(), 4, &mut Noise::host(5)).narrow(0, 0, 3);
    let other = run(sampler, &model, moved, 4, &mut Noise::host(5)).narrow(0, 0, 3);
    assert_eq!(values(one), values(other), "{name}");

    // Parameters are as they were, and still trainable, even if the tracked model itself is sampled.
    let before = weights(&mlp);
    run(sampler, &JointEnergy::new(&mlp), points.clone(), 3, &mut Noise::host(7));
    assert_eq!(before, weights(&mlp), "{name}");
    let gradients = JointEnergy::new(&mlp).energy(points.autodiff()).sum().backward();
    let gradients = burn::optim::GradientsParams::from_grads(gradients, &mlp);
    assert_eq!(gradients.len(), 4, "{name}: two weights and two biases have gradients");
}

#[test]
fn every_sampler_keeps_the_contract() {
    keeps_the_contract("Sgld", &SgldConfig::new(0.1).init().unwrap());
    keeps_the_contract("ImproperSgld", &ImproperSgldConfig::new().with_step_size(0.1).init().unwrap());
    let igebm = ImproperSgldConfig::new()
        .with_step_size(10.0)
        .with_noise_scale(0.005)
        .with_gradient_clip(0.01)
        .with_bounds(-3.0, 3.0);
    keeps_the_contract("ImproperSgld, as IGEBM has it", &igebm.init().unwrap());
    keeps_the_contract("Hmc", &HmcConfig::new(0.2).with_num_leapfrog(3).init().unwrap());
    let walled = HmcConfig::new(0.2).with_num_leapfrog(3).with_step_jitter(0.5).with_bounds(-4.0, 4.0);
    keeps_the_contract("Hmc in a box", &walled.init().unwrap());
    keeps_the_contract("Ula", &UlaConfig::new(0.05).init().unwrap());
    let mala = MalaConfig::new(0.1).init().unwrap();
    keeps_the_contract("Mala", &mala);
    keeps_the_contract("UnderdampedLangevin", &UnderdampedLangevinConfig::new(0.2).init().unwrap());
    let annealed = AnnealedLangevinConfig::geometric(2.0, 1.0, 3, 0.02).with_steps_per_level(2);
    keeps_the_contract("AnnealedLangevin", &annealed.init().unwrap());
    keeps_the_contract("Mppi", &MppiConfig::new(0.3).with_num_candidates(4).init().unwrap());
    let ladder = || ParallelTemperingConfig::geometric(0.2, 3);
    keeps_the_contract("ParallelTempering of Mala", &ladder().init(mala.clone()).unwrap());
    let hmc = HmcConfig::new(0.2).with_num_leapfrog(2).init().unwrap();
    keeps_the_contract("ParallelTempering of Hmc", &ladder().with_steps_per_swap(2).init(hmc).unwrap());

    let proximal = ProximalSgldConfig::new(0.1).init().unwrap();
    both_keep_the_contract("ProximalSgld", &proximal, &proximal, Kind::Deterministic);
    let normalized = NormalizedGradientConfig::new().init().unwrap();
    both_keep_the_contract("NormalizedGradient", &normalized, &normalized, Kind::Deterministic);

    let device = Device::default();
    let first = Tensor::<2>::from_floats([[1.0, 0.0, 0.0]], &device);
    let of_points = Clamp::new(first.bool(), Tensor::full([1, 3], 0.5, &device)).unwrap();
    let rows =
        Tensor::<4>::from_floats([[[[1.0], [0.0], [0.0], [1.0], [0.0]]]], &device).expand([1, 1, 5, 4]);
    let of_images = Clamp::new(rows.bool(), Tensor::full([1, 1, 5, 4], -0.5, &device)).unwrap();
    let on_points = Inpainting::new(mala.clone(), of_points);
    let on_images = Inpainting::new(mala.clone(), of_images);
    both_keep_the_contract("Inpainting", &on_points, &on_images, Kind::Random);

    // One centre of all chains; some of them start outside.
    fn confined<const D: usize, S: Clone>(sampler: &S, norm: Norm, device: &Device) -> Confined<S, D> {
        let near = Neighbourhood::new(norm, 1.5).with_bounds(-1.0, 2.0);
        Confined::new(sampler.clone(), near, Tensor::full([1; D], 0.5, device)).unwrap()
    }
    let sgld = ImproperSgldConfig::new().with_step_size(0.1).with_noise_scale(0.1).init().unwrap();
    let (points, images) = (confined(&sgld, Norm::Linf, &device), confined(&sgld, Norm::Linf, &device));
    both_keep_the_contract("Confined, L-infinity", &points, &images, Kind::Random);
    let (points, images) = (confined(&mala, Norm::L2, &device), confined(&mala, Norm::L2, &device));
    both_keep_the_contract("Confined Mala, L2", &points, &images, Kind::Random);
}
