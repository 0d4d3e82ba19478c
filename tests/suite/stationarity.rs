//! Samplers against their closed forms: n independent chains, α = 1e-5 a statistic, and wrong samplers that fail.
//!
//! With n chains whose stationary law is normal with variance v, the sample mean has a standard error of √(v/n)
//! and the sample variance one of v √(2/n). n = 40,000 finds a variance that is off by 3.2 %.

use burn::tensor::{Device, Tensor};
use jem_core::energy::analytic::{Gaussian, GaussianMixture};
use jem_core::energy::{EnergyModel, JointEnergy};
use jem_core::noise::{Noise, Stream};
use jem_core::samplers::{
    HmcConfig, ImproperSgldConfig, Sampler, SgldConfig, StepAdaptationConfig, run, trace,
};
use jem_core::schedule::Schedule;

use crate::support::{Z, moments, values};

const CHAINS: usize = 40_000;

/// Whether the chains' mean and variance are those of a normal law.
fn is_normal(samples: &[f32], mean: f64, variance: f64) -> bool {
    let n = samples.len() as f64;
    let (found_mean, found_variance) = moments(samples);
    (found_mean - mean).abs() < Z * (variance / n).sqrt()
        && (found_variance - variance).abs() < Z * variance * (2.0 / n).sqrt()
}

/// Where 40,000 chains on N(0, 1) are after `steps`, starting from N(0, 1).
fn on_standard_normal<S: Sampler<2>>(sampler: &S, steps: usize) -> Vec<f32> {
    let device = Device::default();
    let mut noise = Noise::host(11);
    let start = noise.normal([CHAINS, 1], Stream::DATA, &device);
    values(run(sampler, &Gaussian::standard(), start, steps, &mut noise))
}

/// x ← x - drift ∇E(x) + scale ε: what a sampler with a mistake in it would do.
struct Wrong {
    drift: f64,
    scale: f64,
}

impl Sampler<2> for Wrong {
    type State = Tensor<2>;
    type Info = ();

    fn init(&self, _model: &dyn EnergyModel<2>, x: Tensor<2>) -> Tensor<2> {
        x
    }

    fn step(&self, model: &dyn EnergyModel<2>, x: Tensor<2>, noise: &mut Noise) -> (Tensor<2>, ()) {
        let (_, gradient) = model.energy_and_grad(x.clone());
        let draws = noise.normal(x.dims(), Stream::CHAIN, &x.device());
        (x - gradient.mul_scalar(self.drift) + draws.mul_scalar(self.scale), ())
    }

    fn position(&self, state: &Tensor<2>) -> Tensor<2> {
        state.clone()
    }
}

#[test]
fn improper_sgld_has_its_stationary_variance() {
    for (eta, sigma) in [(0.5, 0.5), (1.0, 0.3), (0.1, 0.2), (1.5, 0.4)] {
        let sampler = ImproperSgldConfig::new().with_step_size(eta).with_noise_scale(sigma).init().unwrap();
        let variance = sigma * sigma / (1.0 - (1.0 - eta) * (1.0 - eta));
        let samples = on_standard_normal(&sampler, 100);
        assert!(is_normal(&samples, 0.0, variance), "{eta} {sigma}: {:?}, not {variance}", moments(&samples));
        // Wrong samplers: noise of variance σ instead of σ², half the drift, no noise at all.
        for (drift, scale) in [(eta, sigma.sqrt()), (eta / 2.0, sigma), (eta, 0.0)] {
            assert!(!is_normal(&on_standard_normal(&Wrong { drift, scale }, 100), 0.0, variance));
        }
    }
}

#[test]
fn constant_sgld_has_its_stated_bias() {
    for alpha in [0.2, 0.5, 0.8] {
        let sampler = SgldConfig::new(alpha).init().unwrap();
        let variance = 1.0 / (1.0 - alpha / 4.0);
        let samples = on_standard_normal(&sampler, 100);
        assert!(is_normal(&samples, 0.0, variance), "{alpha}: {:?}, not {variance}", moments(&samples));
        assert!(!Sampler::<2>::is_exact(&sampler));
        // Wrong samplers: noise scaled by the step and not its root, no ½ in the drift, noise of √2α.
        for (drift, scale) in
            [(alpha / 2.0, alpha), (alpha, alpha.sqrt()), (alpha / 2.0, (2.0 * alpha).sqrt())]
        {
            let wrong = on_standard_normal(&Wrong { drift, scale }, 100);
            assert!(!is_normal(&wrong, 0.0, variance), "{drift} {scale} passes for {alpha}");
        }
    }
}

#[test]
fn decaying_sgld_tends_to_the_exact_law() {
    // The step is 0.5 at first and 0.02 after 400 steps: the remaining bias of the variance, about 0.5 %, is
    // below what n = 40,000 can see; a constant step of 0.5 is not.
    let decaying = SgldConfig::new(Schedule::polynomial(2.0, 10.0, 0.75)).init().unwrap();
    assert!(is_normal(&on_standard_normal(&decaying, 400), 0.0, 1.0));
    let constant = SgldConfig::new(0.5).init().unwrap();
    assert!(!is_normal(&on_standard_normal(&constant, 400), 0.0, 1.0));
}

/// Quantiles of a two-component mixture: the share of chains below a point is binomial.
#[test]
fn sgld_has_the_quantiles_of_a_mixture() {
    let device = Device::default();
    let mixture = GaussianMixture::new(vec![vec![-1.5], vec![1.5]], 1.0).unwrap();
    let mut noise = Noise::host(13);
    let (exact, _) = mixture.sample(CHAINS, &mut noise, &device);
    let mut share = |sampler: &dyn Fn(Tensor<2>, &mut Noise) -> Tensor<2>| {
        let samples = values(sampler(exact.clone(), &mut noise));
        [-2.0, -0.5, 0.0, 1.0, 2.5]
            .map(|cut| samples.iter().filter(|x| **x < cut).count() as f64 / CHAINS as f64)
    };
    // Φ at (cut ± 1.5), averaged over the two components.
    let expected = [0.154_385, 0.432_047, 0.5, 0.651_164, 0.920_657];
    let agree = |found: [f64; 5]| {
        found.iter().zip(expected).all(|(found, expected)| {
            (found - expected).abs() < Z * (expected * (1.0 - expected) / CHAINS as f64).sqrt()
        })
    };
    let small = SgldConfig::new(0.02).init().unwrap();
    let model = JointEnergy::new(mixture.clone());
    assert!(agree(share(&|x, noise| run(&small, &model, x, 200, noise))));
    let wrong = Wrong { drift: 0.02, scale: 0.02f64.sqrt() };
    assert!(!agree(share(&|x, noise| run(&wrong, &model, x, 200, noise))));
}

/// Leapfrog trajectories whose ends are always taken: HMC without its test. On N(0, 1) it keeps
/// (1 - ε²/4) x² + p², so that its variance is 1 / (1 - ε²/4).
struct Untested {
    epsilon: f64,
    steps: usize,
}

impl Sampler<2> for Untested {
    type State = Tensor<2>;
    type Info = ();

    fn init(&self, _model: &dyn EnergyModel<2>, x: Tensor<2>) -> Tensor<2> {
        x
    }

    fn step(&self, model: &dyn EnergyModel<2>, mut x: Tensor<2>, noise: &mut Noise) -> (Tensor<2>, ()) {
        let kick = |x: &Tensor<2>| model.energy_and_grad(x.clone()).1.mul_scalar(self.epsilon / 2.0);
        let mut p = noise.normal(x.dims(), Stream::CHAIN, &x.device());
        for _ in 0..self.steps {
            p = p - kick(&x);
            x = x + p.clone().mul_scalar(self.epsilon);
            p = p - kick(&x);
        }
        (x, ())
    }

    fn position(&self, state: &Tensor<2>) -> Tensor<2> {
        state.clone()
    }
}

/// Whether the share of samples below each cut is binomial with the probability given.
fn has_quantiles(samples: &[f32], expected: &[(f32, f64)]) -> bool {
    let n = samples.len() as f64;
    expected.iter().all(|(cut, share)| {
        let found = samples.iter().filter(|x| *x < cut).count() as f64 / n;
        (found - share).abs() < Z * (share * (1.0 - share) / n).sqrt()
    })
}

/// Φ at some points.
const NORMAL: [(f32, f64); 5] =
    [(-2.0, 0.022_750), (-0.5, 0.308_538), (0.0, 0.5), (1.0, 0.841_345), (2.5, 0.993_790)];

/// The step is so large that a third of the trajectories is refused, and the law is exact all the same: from the
/// law itself, and from a point far out.
#[test]
fn hmc_is_exact_on_a_gaussian_at_a_large_step() {
    let device = Device::default();
    let (epsilon, steps) = (1.6, 3);
    let hmc = HmcConfig::new(epsilon).with_num_leapfrog(steps).init().unwrap();
    assert!(Sampler::<2>::is_exact(&hmc));
    let from_the_law = on_standard_normal(&hmc, 15);
    let mut noise = Noise::host(12);
    let far = Tensor::<2>::full([CHAINS, 1], 3.0, &device);
    let mut acceptance = 0.0;
    let end = trace(&hmc, &Gaussian::standard(), far, 40, &mut noise, |number, info| {
        if number >= 20 {
            acceptance += info.acceptance.mean().into_scalar::<f32>() / 20.0;
        }
    });
    assert!(acceptance > 0.4 && acceptance < 0.9, "{acceptance}");
    for samples in [from_the_law, values(end)] {
        assert!(is_normal(&samples, 0.0, 1.0), "{:?}", moments(&samples));
        assert!(has_quantiles(&samples, &NORMAL));
    }
    // Without the test the variance is 1 / (1 - 0.64) = 2.8, as the formula says, and not 1.
    let wrong = on_standard_normal(&Untested { epsilon, steps }, 40);
    assert!(!is_normal(&wrong, 0.0, 1.0) && !has_quantiles(&wrong, &NORMAL));
    let variance = 1.0 / (1.0 - epsilon * epsilon / 4.0);
    assert!(is_normal(&wrong, 0.0, variance), "{:?}, not {variance}", moments(&wrong));
}

/// N(0, [[1, 0.9], [0.9, 1]]): the precision is [[1, -0.9], [-0.9, 1]] / 0.19.
struct Correlated;

impl EnergyModel<2> for Correlated {
    fn energy(&self, x: Tensor<2>) -> Tensor<1> {
        self.energy_and_grad(x).0
    }

    fn energy_and_grad(&self, x: Tensor<2>) -> (Tensor<1>, Tensor<2>) {
        let precision = Tensor::<2>::from_floats([[1.0, -0.9], [-0.9, 1.0]], &x.device()).div_scalar(0.19);
        let gradient = x.clone().matmul(precision);
        ((gradient.clone() * x).sum_dim(1).squeeze_dim(1).mul_scalar(0.5), gradient)
    }
}

/// Along the diagonals the variances are 1.9 and 0.1.
#[test]
fn hmc_is_exact_on_a_correlated_gaussian() {
    let device = Device::default();
    let across = |samples: &[f32]| -> [Vec<f32>; 2] {
        let along = |sign: f32| samples.chunks(2).map(|x| (x[0] + sign * x[1]) / 2f32.sqrt()).collect();
        [along(1.0), along(-1.0)]
    };
    let right = |samples: &[f32]| {
        let of = |k: usize| samples.iter().skip(k).step_by(2).copied().collect::<Vec<f32>>();
        let [wide, narrow] = across(samples);
        let scaled = |x: &[f32], s: f32| x.iter().map(|x| x / s).collect::<Vec<f32>>();
        [of(0), of(1)].iter().all(|x| is_normal(x, 0.0, 1.0) && has_quantiles(x, &NORMAL))
            && is_normal(&wide, 0.0, 1.9)
            && is_normal(&narrow, 0.0, 0.1)
            && has_quantiles(&scaled(&wide, 1.9f32.sqrt()), &NORMAL)
            && has_quantiles(&scaled(&narrow, 0.1f32.sqrt()), &NORMAL)
    };
    let samples_of = |sampler: &dyn Fn(Tensor<2>, &mut Noise) -> Tensor<2>| {
        let mut noise = Noise::host(14);
        let start = noise.uniform([CHAINS, 2], -2.0..2.0, Stream::DATA, &device);
        values(sampler(start, &mut noise))
    };
    let hmc = HmcConfig::new(0.4).with_num_leapfrog(6).with_step_jitter(0.2).init().unwrap();
    let samples = samples_of(&|x, noise| run(&hmc, &Correlated, x, 25, noise));
    assert!(right(&samples), "{:?}", across(&samples).map(|x| moments(&x)));
    let wrong = Untested { epsilon: 0.4, steps: 6 };
    assert!(!right(&samples_of(&|x, noise| run(&wrong, &Correlated, x, 25, noise))));
}

/// N(0, 1) within [-1, 0.5]: (Φ(cut) - Φ(-1)) / (Φ(0.5) - Φ(-1)).
#[test]
fn hmc_with_walls_is_exact_in_the_box() {
    let device = Device::default();
    let expected = [(-0.75, 0.127_574), (-0.5, 0.281_307), (0.0, 0.640_653), (0.25, 0.825_911)];
    let mut noise = Noise::host(15);
    let start = noise.uniform([CHAINS, 1], -1.0..0.5, Stream::DATA, &device);
    let hmc = HmcConfig::new(0.9).with_num_leapfrog(3).with_bounds(-1.0, 0.5).init().unwrap();
    let samples = values(run(&hmc, &Gaussian::standard(), start.clone(), 20, &mut noise));
    assert!(has_quantiles(&samples, &expected));
    // Clamping instead of reflecting heaps the chains up at the walls.
    let free = HmcConfig::new(0.9).with_num_leapfrog(3).init().unwrap();
    let clamped = run(&free, &Gaussian::standard(), start, 20, &mut noise).clamp(-1.0, 0.5);
    assert!(!has_quantiles(&values(clamped), &expected));
}

/// 200 chains in 16 dimensions: the mean acceptance over 50 transitions has a standard error of about 0.003.
#[test]
fn adapted_steps_have_the_acceptance_wished_for() {
    let device = Device::default();
    let model = Gaussian::new(0.0, 0.3).unwrap();
    for target in [0.65, 0.8] {
        let adaptation = StepAdaptationConfig::new().with_target_acceptance(target).init().unwrap();
        let mut noise = Noise::host(16);
        let start = model.sample([200, 16], &mut noise, &device);
        let config = HmcConfig::new(1e-3).with_num_leapfrog(5);
        let (config, x) = adaptation.warm_up(config, &model, start, 100, &mut noise).unwrap();
        let acceptance = |config: HmcConfig, x: Tensor<2>, noise: &mut Noise| {
            let mut sum = 0.0;
            trace(&config.init().unwrap(), &model, x, 50, noise, |_, info| {
                sum += info.acceptance.mean().into_scalar::<f32>() / 50.0;
            });
            f64::from(sum)
        };
        let found = acceptance(config.clone(), x.clone(), &mut noise);
        assert!((found - target).abs() < 0.04, "{found}, not {target}");
        let larger = config.step_size.value(0) * 1.3;
        assert!((acceptance(config.with_step_size(larger), x, &mut noise) - target).abs() > 0.04);
    }
}
