//! Samplers against their closed forms: n independent chains, α = 1e-5 a statistic, and wrong samplers that fail.
//!
//! With n chains whose stationary law is normal with variance v, the sample mean has a standard error of √(v/n)
//! and the sample variance one of v √(2/n). n = 40,000 finds a variance that is off by 3.2 %.

use burn::tensor::{Device, Tensor};
use jem_core::energy::analytic::{Gaussian, GaussianMixture};
use jem_core::energy::{EnergyModel, JointEnergy};
use jem_core::noise::{Noise, Stream};
use jem_core::samplers::{ImproperSgldConfig, Sampler, SgldConfig, run};
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
