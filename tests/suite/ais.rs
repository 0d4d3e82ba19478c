//! Annealed importance sampling against energies whose log Z is known.
//!
//! 128 chains in each direction at the default budget of 500 temperatures, 512 for the Gaussian in 64 dimensions,
//! whose weights vary most: the standard error of each estimate is then below 0.04 nats, which is asserted. Each end
//! of a bracket is one end of a 99 % interval, so that the truth is missed with a probability of 1 % at most per
//! bracket. Seeds are fixed.

use std::ops::ControlFlow;

use burn::tensor::{Device, Tensor};
use jem_core::energy::EnergyModel;
use jem_core::energy::analytic::{Gaussian, GaussianMixture};
use jem_core::noise::Noise;
use jem_eval::ais::{Ais, AisConfig, AisPlan, Base, Ladder, LogZBracket, UniformBox};
use jem_eval::unwatched;

const CHAINS: usize = 128;

fn both(
    ais: &Ais,
    base: &dyn Base<2>,
    target: &dyn EnergyModel<2>,
    exact: Tensor<2>,
    noise: &mut Noise,
) -> LogZBracket {
    let (device, dims) = (exact.device(), exact.dims());
    let plan = ais.pilot(base, target, [32, dims[1]], noise, &device).unwrap();
    let forward = ais.forward(&plan, base, target, dims, noise, &device, &mut unwatched).unwrap();
    let reverse = ais.reverse(&plan, base, target, exact, noise, &mut unwatched).unwrap();
    for run in [&forward, &reverse] {
        let mean = run.acceptance.iter().sum::<f64>() / run.acceptance.len() as f64;
        assert!(mean > 0.6 && mean < 0.95, "acceptance {mean}");
    }
    LogZBracket { forward: forward.log_z(noise).unwrap(), reverse: reverse.log_z(noise).unwrap() }
}

fn agrees(found: LogZBracket, truth: f64, what: &str) {
    println!("{what}: {found}, truth {truth:.3}, gap {:.3}", found.gap());
    assert!(found.contains(truth), "{what}: {truth} is not in {found}");
    for estimate in [found.forward.estimate, found.reverse.estimate] {
        assert!((estimate - truth).abs() < 0.1, "{what}: {estimate}, not {truth}");
    }
    assert!(found.forward.standard_error < 0.04 && found.reverse.standard_error < 0.04, "{found:?}");
    // Negative control: the bracket is narrow enough to refuse a wrong answer.
    assert!(!found.contains(truth + 0.4) && !found.contains(truth - 0.4), "{what}");
}

fn gaussian_in(dimension: usize, chains: usize) {
    let (device, mut noise) = (Device::default(), Noise::host(31));
    let target = Gaussian::new(0.4, 0.6).unwrap();
    let exact = target.sample([chains, dimension], &mut noise, &device);
    let ais = AisConfig::new().init().unwrap();
    let found = both(&ais, &Gaussian::standard(), &target, exact, &mut noise);
    agrees(found, target.log_normaliser(dimension), &format!("Gaussian in {dimension}"));
}

/// Three components at a distance of 2 from the origin, whatever the dimension.
fn mixture(dimension: usize) -> GaussianMixture {
    let scale = 2.0 / (dimension as f32).sqrt();
    let mean = |signs: fn(usize) -> f32| (0..dimension).map(|i| scale * signs(i)).collect::<Vec<f32>>();
    let means = vec![mean(|_| 1.0), mean(|_| -1.0), mean(|i| if i % 2 == 0 { 1.0 } else { -1.0 })];
    GaussianMixture::new(means, 0.7).unwrap()
}

fn mixture_in(dimension: usize) {
    let (device, mut noise) = (Device::default(), Noise::host(32));
    let target = mixture(dimension);
    let (exact, _) = target.sample(CHAINS, &mut noise, &device);
    let ais = AisConfig::new().init().unwrap();
    let found = both(&ais, &Gaussian::standard(), &target, exact, &mut noise);
    agrees(found, target.log_normaliser(), &format!("mixture in {dimension}"));
}

#[test]
fn log_z_of_a_gaussian_in_2_dimensions() {
    gaussian_in(2, CHAINS);
}

#[test]
fn log_z_of_a_gaussian_in_16_dimensions() {
    gaussian_in(16, CHAINS);
}

#[test]
fn log_z_of_a_gaussian_in_64_dimensions() {
    gaussian_in(64, 4 * CHAINS);
}

#[test]
fn log_z_of_a_mixture_in_2_dimensions() {
    mixture_in(2);
}

#[test]
fn log_z_of_a_mixture_in_16_dimensions() {
    mixture_in(16);
}

#[test]
fn log_z_of_a_mixture_in_64_dimensions() {
    mixture_in(64);
}

/// N(0.5, 0.8²) within [-1, 2]: Z is that of the Gaussian times Φ(1.875) - Φ(-1.875) = 0.939_208 for each dimension.
/// Exact samples by rejection.
#[test]
fn a_uniform_base_measures_the_target_within_its_box() {
    let (device, mut noise) = (Device::default(), Noise::host(33));
    let target = Gaussian::new(0.5, 0.8).unwrap();
    let drawn: Vec<f32> = target.sample([1000], &mut noise, &device).into_data().iter::<f32>().collect();
    let inside: Vec<f32> = drawn.into_iter().filter(|x| (-1.0..=2.0).contains(x)).take(2 * CHAINS).collect();
    let exact = Tensor::<2>::from_data(burn::tensor::TensorData::new(inside, [CHAINS, 2]), &device);
    let base = UniformBox::new(-1.0, 2.0).unwrap();
    let config = AisConfig::new().with_temperatures(200).with_ladder(Ladder::Sigmoid { delta: 3.0 });
    let truth = target.log_normaliser(2) + 2.0 * 0.939_208f64.ln();
    let found = both(&config.init().unwrap(), &base, &target, exact, &mut noise);
    agrees(found, truth, "Gaussian in a box");
}

/// Three temperatures in 64 dimensions: both estimates are wrong by nats, and say so by their gap.
#[test]
fn too_few_temperatures_show_as_a_gap() {
    let (device, mut noise) = (Device::default(), Noise::host(34));
    let target = Gaussian::new(0.4, 0.6).unwrap();
    let truth = target.log_normaliser(64);
    let ais = AisConfig::new().with_temperatures(3).init().unwrap();
    let base = Gaussian::standard();
    let plan = ais.pilot(&base, &target, [32, 64], &mut noise, &device).unwrap();
    let shape = [CHAINS, 64];
    let forward = ais.forward(&plan, &base, &target, shape, &mut noise, &device, &mut unwatched).unwrap();
    let exact = target.sample(shape, &mut noise, &device);
    let reverse = ais.reverse(&plan, &base, &target, exact, &mut noise, &mut unwatched).unwrap();
    let (forward, reverse) = (forward.log_z(&mut noise).unwrap(), reverse.log_z(&mut noise).unwrap());
    let found = LogZBracket { forward, reverse };
    println!("3 temperatures: {found}, truth {truth:.3}, gap {:.3}", found.gap());
    assert!(found.gap() > 3.0 && found.contains(truth), "{found}");
    assert!((forward.estimate - truth).abs() > 1.0);
    assert!(forward.effective_sample_size < 0.1 * CHAINS as f64);
}

#[test]
fn runs_can_be_watched_ended_repeated_and_refused() {
    let device = Device::default();
    let target = Gaussian::new(0.0, 0.5).unwrap();
    let base = Gaussian::standard();
    let ais = AisConfig::new().with_temperatures(12).with_num_leapfrog(3).init().unwrap();
    let plan = ais.fixed_plan(0.3).unwrap();
    let plan: AisPlan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    assert_eq!((plan.betas().len(), plan.step_sizes()), (13, &[0.3; 13][..]));
    let run = |watch: &mut jem_eval::Watch<'_>| {
        ais.forward(&plan, &base, &target, [8, 3], &mut Noise::host(35), &device, watch).unwrap()
    };
    let whole = run(&mut unwatched);
    assert!(whole.is_complete() && whole.acceptance.len() == 11);
    assert_eq!(whole.log_weights, run(&mut unwatched).log_weights);
    let mut seen = Vec::new();
    let part = run(&mut |progress| {
        seen.push(progress.done);
        if progress.done == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((seen, part.temperatures, part.planned), (vec![1, 2, 3, 4, 5], 5, 12));
    let message = part.log_z(&mut Noise::host(0)).unwrap_err().to_string();
    assert!(message.starts_with("AisRun.temperatures = 5 is not allowed: it must be all 12"), "{message}");

    /// An energy that is no number.
    struct Broken;
    impl EnergyModel<2> for Broken {
        fn energy(&self, x: Tensor<2>) -> Tensor<1> {
            Tensor::full([x.dims()[0]], f32::NAN, &x.device())
        }
    }
    let mut noise = Noise::host(36);
    let error = ais.forward(&plan, &base, &Broken, [4, 3], &mut noise, &device, &mut unwatched).unwrap_err();
    assert!(error.to_string().contains("log weight of chain 0"), "{error}");
    let error = ais.forward(&plan, &base, &target, [0, 3], &mut noise, &device, &mut unwatched).unwrap_err();
    assert!(error.to_string().contains("annealed chains"), "{error}");
}
