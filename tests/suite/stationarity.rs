//! Samplers against their closed forms: n independent chains, α = 1e-5 a statistic, and wrong samplers that fail.
//!
//! With n chains whose stationary law is normal with variance v, the sample mean has a standard error of √(v/n)
//! and the sample variance one of v √(2/n). n = 40,000 finds a variance that is off by 3.2 %.

use burn::tensor::{Device, Tensor};
use jem_core::energy::analytic::{DoubleWell, Gaussian, GaussianMixture};
use jem_core::energy::{Clamp, EnergyModel, JointEnergy, Tempered};
use jem_core::noise::{Noise, Stream};
use jem_core::samplers::{
    AnnealedLangevinConfig, HmcConfig, ImproperSgldConfig, Inpainting, MalaConfig, MetropolisState,
    MppiConfig, NormalizedGradientConfig, ParallelTemperingConfig, ProximalSgldConfig, Sampler, SgldConfig,
    StepAdaptationConfig, UlaConfig, UnderdampedLangevinConfig, run, trace,
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

// The table: four targets with their laws, samplers of every kind, and a wrong version of each kind.

/// A law on the line: mean, variance, fourth central moment, and the points below which some shares lie.
struct Law {
    mean: f64,
    variance: f64,
    fourth: f64,
    quantiles: Vec<(f32, f64)>,
}

impl Law {
    /// The law p ∝ exp(-E), by the midpoint rule on [-12, 12].
    fn of(energy: impl Fn(f64) -> f64) -> Self {
        let cells = 48_000;
        let width = 24.0 / f64::from(cells);
        let places: Vec<f64> = (0..cells).map(|i| -12.0 + (f64::from(i) + 0.5) * width).collect();
        let weights: Vec<f64> = places.iter().map(|x| (-energy(*x)).exp()).collect();
        let total: f64 = weights.iter().sum();
        let mean_of =
            |f: &dyn Fn(f64) -> f64| places.iter().zip(&weights).map(|(x, w)| w * f(*x)).sum::<f64>() / total;
        let mean = mean_of(&|x| x);
        let mut below = 0.0;
        let mut quantiles = Vec::new();
        for (place, weight) in places.iter().zip(&weights) {
            below += weight / total;
            let wanted = [0.02, 0.2, 0.4, 0.6, 0.8, 0.98].get(quantiles.len());
            if wanted.is_some_and(|share| below >= *share) {
                quantiles.push(((place + width / 2.0) as f32, below));
            }
        }
        let (variance, fourth) = (mean_of(&|x| (x - mean).powi(2)), mean_of(&|x| (x - mean).powi(4)));
        Self { mean, variance, fourth, quantiles }
    }

    fn normal(mean: f64, variance: f64) -> Self {
        Self::of(move |x| (x - mean).powi(2) / (2.0 * variance))
    }

    /// Whether mean, variance and quantiles are those of this law, each within 4.417 standard errors.
    fn holds(&self, samples: &[f32]) -> bool {
        let n = samples.len() as f64;
        let (mean, variance) = moments(samples);
        (mean - self.mean).abs() < Z * (self.variance / n).sqrt()
            && (variance - self.variance).abs() < Z * ((self.fourth - self.variance.powi(2)) / n).sqrt()
            && has_quantiles(samples, &self.quantiles)
    }
}

/// Where samples of a target are looked at: one number per sample, whose law is known.
struct View {
    look: fn(&[f32]) -> f32,
    law: Law,
}

/// An energy, exact samples of it, and what is known of its law.
struct Target {
    name: &'static str,
    model: Box<dyn EnergyModel<2>>,
    exact: Tensor<2>,
    views: Vec<View>,
}

fn view(look: fn(&[f32]) -> f32, law: Law) -> View {
    View { look, law }
}

/// The views of N(0, [[1, 0.9], [0.9, 1]]) with the variances along the diagonals.
fn across(wide: f64, narrow: f64) -> Vec<View> {
    vec![
        view(|x| (x[0] + x[1]) / 2f32.sqrt(), Law::normal(0.0, wide)),
        view(|x| (x[0] - x[1]) / 2f32.sqrt(), Law::normal(0.0, narrow)),
        view(|x| x[0], Law::normal(0.0, (wide + narrow) / 2.0)),
        view(|x| x[1], Law::normal(0.0, (wide + narrow) / 2.0)),
    ]
}

/// A Gaussian, a correlated Gaussian, a mixture and a double well, in this order.
fn targets(noise: &mut Noise) -> [Target; 4] {
    let device = Device::default();
    let normal = noise.normal([CHAINS, 1], Stream::DATA, &device);
    let draws = noise.normal([CHAINS, 2], Stream::DATA, &device);
    let turn = Tensor::<2>::from_floats(
        [[0.95f32.sqrt(), 0.95f32.sqrt()], [0.05f32.sqrt(), -0.05f32.sqrt()]],
        &device,
    );
    let mixture = GaussianMixture::new(vec![vec![-1.5], vec![1.5]], 1.0).unwrap();
    let of_mixture = mixture.sample(CHAINS, noise, &device).0;
    let well = DoubleWell::new(2.0, 1.0).unwrap();
    let of_well = well.sample([CHAINS, 1], noise, &device);
    let two = |x: f64| -((-0.5 * (x - 1.5).powi(2)).exp() + (-0.5 * (x + 1.5).powi(2)).exp()).ln();
    let target = |name, model: Box<dyn EnergyModel<2>>, exact, views| Target { name, model, exact, views };
    [
        target("normal", Box::new(Gaussian::standard()), normal, vec![view(|x| x[0], Law::normal(0.0, 1.0))]),
        target("correlated", Box::new(Correlated), draws.matmul(turn), across(1.9, 0.1)),
        target("mixture", Box::new(mixture), of_mixture, vec![view(|x| x[0], Law::of(two))]),
        target(
            "double well",
            Box::new(well),
            of_well,
            vec![view(|x| x[0], Law::of(|x| 2.0 * (x * x - 1.0).powi(2)))],
        ),
    ]
}

/// Whether samples `[n, d]` have the laws of all views.
fn have_the_laws(samples: Tensor<2>, views: &[View]) -> bool {
    let dimension = samples.dims()[1];
    let samples = values(samples);
    views.iter().all(|View { look, law }| law.holds(&samples.chunks(dimension).map(look).collect::<Vec<_>>()))
}

/// Whether chains that start from the target's law stay there.
fn keeps<S: Sampler<2>>(target: &Target, sampler: &S, steps: usize) -> bool {
    let end = run(sampler, target.model.as_ref(), target.exact.clone(), steps, &mut Noise::host(17));
    have_the_laws(end, &target.views)
}

#[test]
fn exact_samples_have_the_laws_of_the_table_and_no_others() {
    let targets = targets(&mut Noise::host(18));
    for target in &targets {
        assert!(have_the_laws(target.exact.clone(), &target.views), "{}", target.name);
        assert!(!have_the_laws(target.exact.clone().mul_scalar(1.04), &target.views), "{}", target.name);
    }
    assert!(!have_the_laws(targets[0].exact.clone(), &targets[2].views));
}

/// MALA without a bias on all of the targets; the same proposals with the test dropped fail on all of them.
#[test]
fn mala_is_exact_and_needs_its_test() {
    for (target, epsilon) in targets(&mut Noise::host(18)).iter().zip([1.0, 0.1, 1.0, 0.1]) {
        let mala = MalaConfig::new(epsilon).init().unwrap();
        assert!(Sampler::<2>::is_exact(&mala));
        assert!(keeps(target, &mala, 25), "{}", target.name);
        let dropped = Wrong { drift: epsilon, scale: (2.0 * epsilon).sqrt() };
        assert!(!keeps(target, &dropped, 25), "{}", target.name);
    }
    // From far out it arrives too, with a share of refusals that is stated.
    let far = Tensor::<2>::full([CHAINS, 1], 3.0, &Device::default());
    let mala = MalaConfig::new(0.8).init().unwrap();
    let mut acceptance = 0.0;
    let end = trace(&mala, &Gaussian::standard(), far, 40, &mut Noise::host(19), |number, info| {
        if number >= 20 {
            acceptance += info.acceptance.mean().into_scalar::<f32>() / 20.0;
        }
    });
    assert!(Law::normal(0.0, 1.0).holds(&values(end)));
    assert!(acceptance > 0.5 && acceptance < 0.95, "{acceptance}");
}

/// HMC on the same targets, beside the same trajectories without the test.
#[test]
fn hmc_is_exact_on_every_target() {
    let settings = [(1.2, 3), (0.4, 6), (1.2, 3), (0.3, 3)];
    for (target, (epsilon, steps)) in targets(&mut Noise::host(18)).iter().zip(settings) {
        let hmc = HmcConfig::new(epsilon).with_num_leapfrog(steps).init().unwrap();
        assert!(keeps(target, &hmc, 12), "{}", target.name);
        assert!(!keeps(target, &Untested { epsilon, steps }, 12), "{}", target.name);
    }
}

/// The bias of ULA is that of its closed form where there is one: (1/c) / (1 - εc/2) at a curvature c. Where there is
/// none ε is so small that n = 40,000 cannot see it. Noise scaled by the step and not by its root is seen everywhere.
#[test]
fn ula_has_its_stated_bias() {
    let mut targets = targets(&mut Noise::host(18));
    let epsilons = [0.4, 0.05, 0.01, 0.002];
    let biased = |c: f64, epsilon: f64| 1.0 / c / (1.0 - epsilon * c / 2.0);
    for (k, views) in [
        (0, vec![view(|x| x[0], Law::normal(0.0, biased(1.0, epsilons[0])))]),
        (1, across(biased(1.0 / 1.9, epsilons[1]), biased(10.0, epsilons[1]))),
    ] {
        // The bias is large enough to be seen.
        let ula = UlaConfig::new(epsilons[k]).init().unwrap();
        assert!(!keeps(&targets[k], &ula, 60), "{}", targets[k].name);
        targets[k].views = views;
    }
    for (target, epsilon) in targets.iter().zip(epsilons) {
        let ula = UlaConfig::new(epsilon).init().unwrap();
        assert!(!Sampler::<2>::is_exact(&ula));
        assert!(keeps(target, &ula, 60), "{}", target.name);
        let wrong = Wrong { drift: epsilon, scale: 2.0 * epsilon };
        assert!(!keeps(target, &wrong, 60), "{}", target.name);
    }
}

/// B A O A B with the noise multiplied by `factor`: 0 is friction without noise.
struct WrongFriction {
    step: f64,
    factor: f64,
}

impl Sampler<2> for WrongFriction {
    type State = [Tensor<2>; 2];
    type Info = ();

    fn init(&self, _model: &dyn EnergyModel<2>, x: Tensor<2>) -> Self::State {
        [x.clone(), x.zeros_like()]
    }

    fn step(&self, model: &dyn EnergyModel<2>, [x, v]: Self::State, noise: &mut Noise) -> (Self::State, ()) {
        let kick = |x: &Tensor<2>| model.energy_and_grad(x.clone()).1.mul_scalar(self.step / 2.0);
        let kept = (-self.step).exp();
        let v = v - kick(&x);
        let x = x + v.clone().mul_scalar(self.step / 2.0);
        let draws = noise.normal(x.dims(), Stream::CHAIN, &x.device());
        let v = v.mul_scalar(kept) + draws.mul_scalar(self.factor * (1.0 - kept * kept).sqrt());
        let x = x + v.clone().mul_scalar(self.step / 2.0);
        let v = v - kick(&x);
        ([x, v], ())
    }

    fn position(&self, state: &Self::State) -> Tensor<2> {
        state[0].clone()
    }
}

/// On Gaussians the positions are exact at any stable step, here large ones; elsewhere the bias is O(h²), which at
/// h = 0.1 n = 40,000 cannot see. Velocities on N(0, 1) have variance 1 - h²/4.
#[test]
fn underdamped_langevin_is_exact_on_gaussians_and_needs_its_noise() {
    for (target, step) in targets(&mut Noise::host(18)).iter().zip([1.2, 0.4, 0.2, 0.1]) {
        let sampler = UnderdampedLangevinConfig::new(step).init().unwrap();
        assert!(!Sampler::<2>::is_exact(&sampler));
        assert!(keeps(target, &sampler, 30), "{}", target.name);
        for factor in [0.0, 2f64.sqrt()] {
            assert!(!keeps(target, &WrongFriction { step, factor }, 30), "{} {factor}", target.name);
        }
    }
    let sampler = UnderdampedLangevinConfig::new(1.2).with_friction(2.0).init().unwrap();
    let mut noise = Noise::host(20);
    let start = Tensor::<2>::full([CHAINS, 1], 3.0, &Device::default());
    let mut state = Sampler::<2>::init(&sampler, &Gaussian::standard(), start);
    for _ in 0..40 {
        state = sampler.step(&Gaussian::standard(), state, &mut noise).0;
    }
    assert!(Law::normal(0.0, 1.0).holds(&values(state.x)));
    let velocity = values(state.velocity);
    assert!(Law::normal(0.0, 1.0 - 0.36).holds(&velocity) && !Law::normal(0.0, 1.0).holds(&velocity));
}

/// After the ladder the law is that of the last level, τ² / (1 - ε/2); a chain that stops a level early has another.
#[test]
fn annealed_langevin_ends_in_the_law_of_its_last_level() {
    let targets = targets(&mut Noise::host(18));
    for factor in [1.0, 0.5] {
        let config = AnnealedLangevinConfig::geometric(3.0, 1.0, 3, 0.1).with_steps_per_level(30);
        let annealed = config.with_noise_factor(factor).init().unwrap();
        let law = Law::normal(0.0, factor * factor / (1.0 - 0.05));
        let after = |steps: usize| {
            let start = targets[0].exact.clone().add_scalar(2.0);
            values(run(&annealed, targets[0].model.as_ref(), start, steps, &mut Noise::host(20)))
        };
        assert!(law.holds(&after(annealed.num_steps())), "{factor}");
        assert!(!law.holds(&after(annealed.num_steps() - 30)), "{factor}");
    }
}

/// Two MALA chains at β = 1 and β = 0.3 that change places every time, whatever their energies.
struct AlwaysSwap {
    epsilon: f64,
}

impl Sampler<2> for AlwaysSwap {
    type State = [Tensor<2>; 2];
    type Info = ();

    fn init(&self, _model: &dyn EnergyModel<2>, x: Tensor<2>) -> Self::State {
        [x.clone(), x]
    }

    fn step(
        &self,
        model: &dyn EnergyModel<2>,
        [cold, hot]: Self::State,
        noise: &mut Noise,
    ) -> (Self::State, ()) {
        let mut moved = |beta: f64, x: Tensor<2>| {
            let model = Tempered::new(model, beta as f32).unwrap();
            let mala = MalaConfig::new(self.epsilon / beta).init().unwrap();
            let state: MetropolisState<2> = mala.init(&model, x);
            mala.step(&model, state, noise).0.x
        };
        let (cold, hot) = (moved(1.0, cold), moved(0.3, hot));
        ([hot, cold], ())
    }

    fn position(&self, state: &Self::State) -> Tensor<2> {
        state[0].clone()
    }
}

/// The hot replica starts from the law of the cold one, so that the chains have to be long enough for it to forget
/// that. On the correlated Gaussian MALA would take hundreds of steps for it, and HMC is the kernel.
#[test]
fn parallel_tempering_is_exact_and_needs_its_test() {
    let ladder = || ParallelTemperingConfig::new([1.0, 0.3]);
    for (target, epsilon) in targets(&mut Noise::host(18)).iter().zip([0.8, 0.08, 0.8, 0.06]) {
        let kept = if target.name == "correlated" {
            let kernel =
                |step: f64| HmcConfig::new(step).with_num_leapfrog(6).with_step_jitter(0.2).init().unwrap();
            let tempering = ladder().init_each(vec![kernel(0.4), kernel(0.7)]).unwrap();
            assert!(Sampler::<2>::is_exact(&tempering));
            keeps(target, &tempering, 30)
        } else {
            let kernel = |step: f64| MalaConfig::new(step).init().unwrap();
            let tempering = ladder().init_each(vec![kernel(epsilon), kernel(epsilon / 0.3)]).unwrap();
            assert!(Sampler::<2>::is_exact(&tempering));
            keeps(target, &tempering, 60)
        };
        assert!(kept, "{}", target.name);
        assert!(!keeps(target, &AlwaysSwap { epsilon }, 20), "{}", target.name);
    }
}

/// Given the second coordinate, the first of the correlated Gaussian is N(0.9 x_2, 0.19).
#[test]
fn inpainting_samples_the_conditional_law() {
    let device = Device::default();
    let target = &targets(&mut Noise::host(18))[1];
    let mask = Tensor::<2>::from_floats([[0.0, 1.0]], &device).bool();
    let clamp = Clamp::new(mask, Tensor::full([1, 2], 1.1, &device)).unwrap();
    let sampler = Inpainting::new(MalaConfig::new(0.15).init().unwrap(), clamp);
    assert!(sampler.is_exact());
    let end = run(&sampler, target.model.as_ref(), target.exact.clone(), 40, &mut Noise::host(20));
    let samples = values(end);
    let of = |k: usize| samples.iter().skip(k).step_by(2).copied().collect::<Vec<f32>>();
    assert!(of(1).iter().all(|x| *x == 1.1));
    assert!(Law::normal(0.99, 0.19).holds(&of(0)));
    assert!(!Law::normal(0.0, 1.0).holds(&of(0)) && !Law::normal(0.99, 0.21).holds(&of(0)));
}

/// n = 2,000 chains of K = 200 candidates: the formula of the documentation holds up to O(1/K), well below the 14 %
/// that the test sees. Weights at another temperature have another variance.
#[test]
fn mppi_has_its_stated_variance() {
    let (n, candidates, sigma) = (2_000, 200usize, 1.0);
    let stated = |lambda: f64| {
        let squared: f64 = sigma * sigma;
        let kept = lambda / (lambda + squared);
        let narrow = lambda / (lambda + 2.0 * squared);
        let v = squared * narrow * narrow.sqrt() * (lambda + squared) / lambda / candidates as f64;
        v / (1.0 - kept * kept)
    };
    let start = Tensor::<2>::full([n, 1], 1.0, &Device::default());
    let mppi = MppiConfig::new(sigma).with_temperature(0.5).with_num_candidates(candidates).init().unwrap();
    let samples = values(run(&mppi, &Gaussian::standard(), start, 10, &mut Noise::host(20)));
    assert!(is_normal(&samples, 0.0, stated(0.5)), "{:?}, not {}", moments(&samples), stated(0.5));
    assert!(!is_normal(&samples, 0.0, stated(2.0)) && !is_normal(&samples, 0.0, 1.0));
}

/// The descents have no law: they end where their documentation says, from wherever they start.
#[test]
fn descents_end_where_they_say() {
    let device = Device::default();
    let start = Noise::host(20).normal([500, 2], Stream::DATA, &device).mul_scalar(3.0);
    // Proximal steps halve what is left within the box; the way to it is one step of projection.
    let proximal = ProximalSgldConfig::new(0.5).init().unwrap();
    let end = run(&proximal, &Gaussian::standard(), start.clone(), 11, &mut Noise::host(0));
    assert!(end.abs().max().into_scalar::<f32>() < 1.1 / 1024.0);
    // In a double well every chain ends in the well of its own side.
    let well = DoubleWell::new(1.0, 0.8).unwrap();
    let slow = ProximalSgldConfig::new(0.1).init().unwrap();
    let end = values(run(&slow, &well, start.clone(), 60, &mut Noise::host(0)));
    for (from, to) in values(start.clone()).iter().zip(end) {
        assert!(from.abs() < 1e-3 || (to - 0.8f32.copysign(*from)).abs() < 1e-3, "{from} to {to}");
    }
    // Steps of length 0.1: 0.1 t of the way after t steps, and within 0.1 of the mode in the end.
    let normalized = NormalizedGradientConfig::new().init().unwrap();
    let distance = |x: Tensor<2>| values(jem_core::math::sample_norms(x));
    let after =
        |steps| distance(run(&normalized, &Gaussian::standard(), start.clone(), steps, &mut Noise::host(0)));
    for ((from, early), late) in distance(start.clone()).into_iter().zip(after(3)).zip(after(150)) {
        assert!(from < 0.4 || (from - early - 0.3).abs() < 1e-4, "{from} {early}");
        assert!(late < 0.1 + 1e-4, "{late}");
    }
}
