//! Score matching against exact derivatives, and noise-contrastive estimation against a known normaliser.

use burn::module::{Module, Param};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{DType, Device, Tensor};
use jem_core::data::JointBatch;
use jem_core::energy::analytic::GaussianMixture;
use jem_core::energy::{Classifier, EnergyModel};
use jem_core::noise::{Noise, Stream};
use jem_core::objectives::score_matching::{
    DenoisingScoreMatchingConfig, SlicedScoreMatchingConfig, directional_differences, directional_slope,
    exact_score_matching, rademacher, score_terms,
};
use jem_core::objectives::{
    DiagonalGaussian, Loss, NoiseContrastive, Objective, Reference, WithNormaliser, nce_terms,
};

use crate::support::{Z, moments, values};

/// E(x) = Σ x⁴/4 + x_1 x_2 in the plane.
struct Quartic;

impl EnergyModel<2> for Quartic {
    fn energy(&self, x: Tensor<2>) -> Tensor<1> {
        let cross = x.clone().prod_dim(1).squeeze_dim::<1>(1);
        x.square().square().sum_dim(1).squeeze_dim::<1>(1).mul_scalar(0.25) + cross
    }
}

fn slope(x: &[f64], v: &[f64]) -> f64 {
    v[0] * (x[0].powi(3) + x[1]) + v[1] * (x[1].powi(3) + x[0])
}

fn curvature(x: &[f64], v: &[f64]) -> f64 {
    3.0 * (v[0] * x[0]).powi(2) + 3.0 * (v[1] * x[1]).powi(2) + 2.0 * v[0] * v[1]
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// Root mean square error relative to the root mean square of the exact values.
fn relative_error(found: &[f64], exact: &[f64]) -> f64 {
    let square = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
    let wrong = square(&mut found.iter().zip(exact).map(|(a, b)| a - b));
    (wrong / square(&mut exact.iter().copied())).sqrt()
}

/// Errors of slope and curvature with numbers of one precision.
fn errors(step: f64, precision: DType) -> (f64, f64) {
    let device = Device::default();
    let mut noise = Noise::host(3);
    let x = noise.normal([256, 2], Stream::DATA, &device);
    let v = rademacher([256, 2], &mut noise, &device);
    let (points, directions) = (numbers(x.clone()), numbers(v.clone()));
    let pairs: Vec<(&[f64], &[f64])> = points.chunks(2).zip(directions.chunks(2)).collect();
    let exact_slope: Vec<f64> = pairs.iter().map(|(x, v)| slope(x, v)).collect();
    let exact_curvature: Vec<f64> = pairs.iter().map(|(x, v)| curvature(x, v)).collect();
    let along = directional_differences(&Quartic, x.clone().cast(precision), v.clone().cast(precision), step);
    let alone = directional_slope(&Quartic, x.cast(precision), v.cast(precision), step);
    assert_eq!(numbers(alone), numbers(along.slope.clone()));
    (
        relative_error(&numbers(along.slope), &exact_slope),
        relative_error(&numbers(along.curvature), &exact_curvature),
    )
}

const STEPS: [f64; 9] = [1.0, 0.3, 0.1, 0.05, 0.03, 0.01, 3e-3, 1e-3, 1e-4];

/// The table in the documentation of `directional_differences`; `--nocapture` prints it.
#[test]
fn the_step_has_a_best_size_in_single_precision() {
    let mut single = Vec::new();
    for step in STEPS {
        let (s32, c32) = errors(step, DType::F32);
        let (s64, c64) = errors(step, DType::F64);
        println!("    /// | {step} | {s32:.1e} | {c32:.1e} | {s64:.1e} | {c64:.1e} |");
        single.push((step, s32, c32));
    }
    let best = |of: &dyn Fn(&(f64, f64, f64)) -> f64| {
        single.iter().min_by(|a, b| of(a).total_cmp(&of(b))).map(|row| (row.0, of(row))).unwrap()
    };
    let ((slope_step, slope_error), (curvature_step, curvature_error)) =
        (best(&|row| row.1), best(&|row| row.2));
    assert!((1e-3..=0.03).contains(&slope_step) && slope_error < 1e-4, "{slope_step}: {slope_error}");
    assert!(
        (0.01..=0.1).contains(&curvature_step) && curvature_error < 1e-3,
        "{curvature_step}: {curvature_error}"
    );
    // The defaults of the objectives, and a step that is too small.
    assert!(errors(0.02, DType::F32).0 < 1e-3 && errors(0.05, DType::F32).1 < 2e-3);
    assert!(errors(1e-4, DType::F32).1 > 0.1, "rounding should have ruined the second difference");
}

#[test]
fn in_double_precision_the_differences_are_the_derivatives() {
    let (slope, curvature) = errors(0.01, DType::F64);
    assert!(slope < 1e-3 && curvature < 1e-3, "{slope} {curvature}");
    // Second order: a tenth of the step, a hundredth of the error.
    let (coarse, fine) = (errors(0.1, DType::F64), errors(0.01, DType::F64));
    for ratio in [coarse.0 / fine.0, coarse.1 / fine.1] {
        assert!((ratio / 100.0 - 1.0).abs() < 1e-3, "{ratio}");
    }
}

#[test]
fn the_bias_is_the_stated_one() {
    // A twelfth of the fourth derivative: δ²/12 · Σ 6 v_i⁴ = δ² for this energy and v of ±1.
    let device = Device::default();
    let mut noise = Noise::host(1);
    let x = noise.normal([64, 2], Stream::DATA, &device);
    let v = rademacher([64, 2], &mut noise, &device);
    let (points, directions) = (numbers(x.clone()), numbers(v.clone()));
    let along = directional_differences(&Quartic, x.cast(DType::F64), v.cast(DType::F64), 0.2);
    let (slopes, curvatures) = (numbers(along.slope), numbers(along.curvature));
    for (i, (x, v)) in points.chunks(2).zip(directions.chunks(2)).enumerate() {
        assert!((curvatures[i] - curvature(x, v) - 0.04).abs() < 1e-9);
        // A sixth of the third: δ²/6 · Σ 6 x_i v_i³.
        let bias = 0.04 * (x[0] * v[0] + x[1] * v[1]);
        assert!((slopes[i] - slope(x, v) - bias).abs() < 1e-9);
    }
}

#[test]
fn directions_are_plus_and_minus_one_half_and_half() {
    // n = 10,000, α = 1e-5.
    let v = values(rademacher([10_000], &mut Noise::host(2), &Device::default()));
    assert!(v.iter().all(|v| v.abs() == 1.0));
    let (mean, _) = moments(&v);
    assert!(mean.abs() < Z / 100.0, "{mean}");
}

/// n = 4,000 points of a mixture: the mean of sliced less exact losses is 0 within 4.417 standard errors (α = 1e-5),
/// and is not with the curvature's sign wrong.
#[test]
fn the_sliced_loss_is_the_exact_one_on_average() {
    let device = Device::default();
    let mixture = GaussianMixture::new(vec![vec![-1.0, 0.0], vec![1.0, 0.5]], 0.8).unwrap();
    let mut noise = Noise::host(6);
    let (x, _) = mixture.sample(4_000, &mut noise, &device);
    let exact = values(exact_score_matching(&mixture, x.clone(), 0.01));
    let v = rademacher(x.dims(), &mut noise, &device);
    let along = directional_differences(&mixture, x, v, 0.05);
    let (slope, curvature) = (values(along.slope), values(along.curvature));
    let score = |sign: f32| {
        let difference: Vec<f32> =
            (0..exact.len()).map(|i| 0.5 * slope[i].powi(2) - sign * curvature[i] - exact[i]).collect();
        let (mean, variance) = moments(&difference);
        mean.abs() / (variance / exact.len() as f64).sqrt()
    };
    assert!(score(1.0) < Z, "{}", score(1.0));
    assert!(score(-1.0) > 3.0 * Z);
    // The data's own energy minimises it, with the value -½ E‖∇ log p‖²: a wider mixture has a larger loss.
    let wide = GaussianMixture::new(vec![vec![-1.0, 0.0], vec![1.0, 0.5]], 1.2).unwrap();
    let (x, _) = mixture.sample(4_000, &mut Noise::host(7), &device);
    let loss = |model: &GaussianMixture| moments(&values(exact_score_matching(model, x.clone(), 0.01))).0;
    assert!(loss(&mixture) < loss(&wide) && loss(&mixture) < 0.0);
}

/// E(x) = a x² / 2 as a classifier of one class.
#[derive(Module, Debug)]
struct Bowl {
    a: Param<Tensor<1>>,
}

impl Bowl {
    fn new(a: f32) -> Self {
        Self { a: Param::from_tensor(Tensor::from_floats([a], &Device::default().autodiff())) }
    }
}

impl Classifier<2> for Bowl {
    fn logits(&self, x: Tensor<2>) -> Tensor<2> {
        x.square() * self.a.val().unsqueeze_dim::<2>(0) * -0.5
    }
}

fn batch(x: Tensor<2>) -> JointBatch<2> {
    JointBatch { labelled: x.clone(), labels: vec![0; x.dims()[0]], unlabelled: x }
}

/// The loss of a bowl, and its slope in a.
fn at(
    objective: &impl Objective<Bowl, JointBatch<2>, State = ()>,
    a: f32,
    x: Tensor<2>,
    seed: u64,
) -> (Loss, f64) {
    let model = Bowl::new(a);
    let (loss, ()) = objective.loss(&model, &batch(x), (), &mut Noise::host(seed)).unwrap();
    let gradient = model.a.val().grad(&loss.total().backward()).unwrap();
    (loss, f64::from(gradient.into_scalar::<f32>()))
}

#[test]
fn sliced_score_matching_finds_the_precision_of_the_data() {
    // ½ a² x² - a is what remains of the loss in one dimension: its minimum is at a = n / Σ x², exactly.
    let x = Noise::host(4).normal([500, 1], Stream::DATA, &Device::default()).mul_scalar(1.5);
    let squares: f64 = values(x.clone()).iter().map(|x| f64::from(*x).powi(2)).sum();
    let best = 500.0 / squares;
    let objective = SlicedScoreMatchingConfig::new().with_num_projections(2).init().unwrap();
    let (loss, slope) = at(&objective, best as f32, x.clone(), 0);
    let total = f64::from(loss.total().clone().into_scalar::<f32>());
    assert!((total + best / 2.0).abs() < 1e-3 && slope.abs() < 1e-3, "{total} {slope}");
    let terms = loss.read();
    let term = |name| terms.iter().find(|number| number.name == name).unwrap().value;
    assert!((term(score_terms::CURVATURE) - best).abs() < 1e-3);
    assert!((term(score_terms::SQUARED_SLOPE) - best).abs() < 1e-3);
    // Elsewhere it pulls: the slope is a Σx²/n - 1.
    let (_, slope) = at(&objective, 2.0 * best as f32, x, 0);
    assert!((slope - 1.0).abs() < 1e-2, "{slope}");
}

/// n = 20,000: the minimiser is 1 / (s² + σ²) within 4.417 of its standard errors (α = 1e-5), and not 1 / s².
#[test]
fn denoising_score_matching_finds_the_precision_of_noisy_data() {
    let (n, s, sigma, device) = (20_000, 0.7f64, 0.5f64, Device::default());
    let x = Noise::host(4).normal([n, 1], Stream::DATA, &device).mul_scalar(s);
    // The draws of the objective, from its own stream: (σ v a x̃ - v ε)² = (σ a x̃ - ε)².
    let draws = values(Noise::host(5).normal([n, 1], Stream::new("score_matching/noise"), &device));
    let noisy: Vec<f64> =
        values(x.clone()).iter().zip(&draws).map(|(x, e)| f64::from(*x) + sigma * f64::from(*e)).collect();
    let squares: f64 = noisy.iter().map(|x| x * x).sum();
    let best = noisy.iter().zip(&draws).map(|(x, e)| x * f64::from(*e)).sum::<f64>() / (sigma * squares);
    let objective = DenoisingScoreMatchingConfig::new(sigma).init().unwrap();
    let (loss, slope) = at(&objective, best as f32, x.clone(), 5);
    let residuals: Vec<f64> =
        noisy.iter().zip(&draws).map(|(x, e)| sigma * best * x - f64::from(*e)).collect();
    let expected = 0.5 * residuals.iter().map(|r| r * r).sum::<f64>() / n as f64;
    let total = f64::from(loss.total().clone().into_scalar::<f32>());
    assert!((total - expected).abs() < 1e-3 && slope.abs() < 1e-3, "{total}, not {expected}; slope {slope}");
    let spread = residuals.iter().zip(&noisy).map(|(r, x)| (r * x).powi(2)).sum::<f64>().sqrt();
    let error = spread / (sigma * squares);
    let target = 1.0 / (s.powi(2) + sigma.powi(2));
    assert!((best - target).abs() < Z * error, "{best}, not {target} ± {error}");
    assert!((best - 1.0 / s.powi(2)).abs() > 5.0 * Z * error);
}

/// n = 4,000 data and as many samples of q = N(0, 1.5²): c is log Z within 4.417 standard errors (α = 1e-5) of the
/// theory, √((1/J - 2) / n) with J = ∫ pq / (p + q), and is not log Z of another scale.
#[test]
fn noise_contrastive_estimation_finds_log_z() {
    let (n, device) = (4_000usize, Device::default());
    let x = Noise::host(8).normal([n, 1], Stream::DATA, &device);
    let q = DiagonalGaussian::new(vec![0.0], vec![1.5]).unwrap();
    let objective = NoiseContrastive::new(q, 1).unwrap();
    let bowl = Bowl::new(1.0).no_grad(); // E(x) = x² / 2 is right; only c is to be learnt
    let mut model = WithNormaliser::new(bowl, 0.0, &device.clone().autodiff()).unwrap();
    let mut optimizer = AdamConfig::new().init();
    let batch = batch(x);
    let mut last = Vec::new();
    for step in 0..150 {
        // The same noise each time: one fixed sample of q.
        let (loss, ()) = objective.loss(&model, &batch, (), &mut Noise::host(9)).unwrap();
        let gradients = GradientsParams::from_grads(loss.total().backward(), &model);
        model = optimizer.step(if step < 100 { 0.05 } else { 0.005 }, model, gradients);
        last = loss.read();
    }
    let c = f64::from(model.log_normaliser.val().into_scalar::<f32>());
    let log_z = |s: f64| 0.5 * (2.0 * std::f64::consts::PI).ln() + s.ln();
    let density = |x: f64, s: f64| (-0.5 * (x / s).powi(2) - log_z(s)).exp();
    let overlap: f64 = (0..4_000)
        .map(|i| {
            let x = -10.0 + f64::from(i) * 5e-3;
            let (p, q) = (density(x, 1.0), density(x, 1.5));
            5e-3 * p * q / (p + q)
        })
        .sum();
    let error = ((1.0 / overlap - 2.0) / n as f64).sqrt();
    println!("c = {c:.4}, log Z = {:.4} ± {error:.4}", log_z(1.0));
    assert!((c - log_z(1.0)).abs() < Z * error, "{c}, not {} ± {error}", log_z(1.0));
    assert!((c - log_z(1.5)).abs() > 3.0 * Z * error && c.abs() > Z * error);
    let accuracy = last.iter().find(|number| number.name == nce_terms::ACCURACY).unwrap().value;
    assert!((0.5..0.8).contains(&accuracy), "{accuracy}");
    let log_p = model.log_density(Tensor::<2>::zeros([1, 1], &device.autodiff())).into_scalar::<f32>();
    assert!((f64::from(log_p) + c).abs() < 1e-6);
}

#[test]
fn references_have_their_moments_and_densities() {
    let device = Device::default();
    let q = DiagonalGaussian::new(vec![1.0, -2.0], vec![0.5, 2.0]).unwrap();
    let x: Tensor<2> = q.sample([20_000, 2], &mut Noise::host(1), &device).unwrap();
    let n = 20_000f64;
    for (column, (mean, deviation)) in [(1.0, 0.5), (-2.0, 2.0)].into_iter().enumerate() {
        let (found, variance) = moments(&values(x.clone().narrow(1, column, 1)));
        assert!((found - mean).abs() < Z * deviation / n.sqrt(), "{found}");
        let spread: f64 = deviation * deviation;
        assert!((variance - spread).abs() < Z * spread * (2.0 / n).sqrt(), "{variance}");
    }
    let fitted = DiagonalGaussian::fit(x, 1.0).unwrap();
    let at = Tensor::<2>::from_floats([[0.5, 1.0]], &device);
    let log_q = |q: &DiagonalGaussian| f64::from(q.log_density(at.clone()).unwrap().into_scalar::<f32>());
    let expected = -0.5 - 1.125 - (2.0 * std::f64::consts::PI).ln() - 1f64.ln();
    assert!((log_q(&q) - expected).abs() < 1e-5 && (log_q(&fitted) - expected).abs() < 0.1);
    assert!(Reference::<2>::sample(&q, [3, 3], &mut Noise::host(0), &device).is_err());
    assert!(q.log_density(Tensor::<2>::zeros([1, 3], &device)).is_err());
    assert!(DiagonalGaussian::new(vec![0.0], vec![0.0]).is_err());
    assert!(DiagonalGaussian::fit(Tensor::<2>::ones([4, 1], &device), 1.0).is_err());
}

#[test]
fn bad_configurations_are_named() {
    let named = |message: String, field: &str| assert!(message.contains(field), "{message}");
    let sliced = SlicedScoreMatchingConfig::new;
    named(sliced().with_step(0.0).init().unwrap_err().to_string(), "SlicedScoreMatchingConfig.step = 0");
    named(sliced().with_num_projections(0).init().unwrap_err().to_string(), "num_projections = 0");
    let denoising = DenoisingScoreMatchingConfig::new;
    named(denoising(-1.0).init().unwrap_err().to_string(), "DenoisingScoreMatchingConfig.noise_scale = -1");
    named(denoising(0.1).with_step(f64::NAN).init().unwrap_err().to_string(), "Config.step = NaN");
    let q = DiagonalGaussian::new(vec![0.0], vec![1.0]).unwrap();
    named(NoiseContrastive::new(q, 0).unwrap_err().to_string(), "NoiseContrastive.ratio = 0");
}
