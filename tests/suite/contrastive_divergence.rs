//! Contrastive divergence against double precision: three contrasts, the gradient through the last step, and training.

use std::sync::atomic::{AtomicUsize, Ordering};

use burn::module::{Module, Param, Reparameterization, Reparameterizer};
use burn::optim::AdamConfig;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use jem_core::Result;
use jem_core::data::{JointBatch, LoaderConfig, Toy, VectorLoader, label_tensor};
use jem_core::energy::{ConditionalEnergy, EnergyModel};
use jem_core::noise::{Noise, Stream};
use jem_core::objectives::contrastive_divergence::{
    Contrast, ContrastiveDivergenceConfig, LastStepConfig, NegativeLabels, contrastive_terms,
};
use jem_core::objectives::{Loss, Objective, Reading, terms};
use jem_core::samplers::{
    Bounds, FifoReplayConfig, Force, ImproperSgldConfig, Langevin, LangevinMove, Negatives, Request,
    SampleSource, ShortRunConfig,
};
use jem_core::schedule::Schedule;
use jem_core::train::{Outcome, Trainer, TrainerConfig};
use jem_eval::RocCurve;
use jem_nn::{Activation, Mlp, MlpConfig};
use rand::RngExt;

use crate::support::values;

/// E(x) = ½ θ₁ ‖x‖² + ¼ θ₂ Σ x⁴, and E(x, y) = E(x - y).
#[derive(Module, Debug)]
struct Quartic {
    theta: Param<Tensor<1>>,
}

impl Quartic {
    fn new(theta: [f64; 2], precision: DType) -> Self {
        let device = Device::default().autodiff();
        let theta = Tensor::from_data(TensorData::from(theta), (&device, precision));
        Self { theta: Param::from_tensor(theta) }
    }

    fn slope(&self, loss: Tensor<1>) -> [f64; 2] {
        let slope = self.theta.val().grad(&loss.backward()).unwrap();
        let slope: Vec<f64> = slope.into_data().iter::<f64>().collect();
        [slope[0], slope[1]]
    }
}

impl EnergyModel<2> for Quartic {
    fn energy(&self, x: Tensor<2>) -> Tensor<1> {
        let theta = self.theta.val();
        let squares = x.clone().square().sum_dim(1).squeeze_dim::<1>(1).mul_scalar(0.5);
        let fourths = x.square().square().sum_dim(1).squeeze_dim::<1>(1).mul_scalar(0.25);
        squares * theta.clone().narrow(0, 0, 1) + fourths * theta.narrow(0, 1, 1)
    }
}

impl ConditionalEnergy<2> for Quartic {
    fn energy_given(&self, x: Tensor<2>, labels: Tensor<1, Int>) -> Tensor<1> {
        self.energy(x - labels.float().unsqueeze_dim(1))
    }
}

/// The two powers of x that E is linear in.
fn powers(x: &[f64]) -> [f64; 2] {
    [0.5 * x.iter().map(|x| x * x).sum::<f64>(), 0.25 * x.iter().map(|x| x.powi(4)).sum::<f64>()]
}

fn energy(theta: [f64; 2], x: &[f64]) -> f64 {
    let [a, b] = powers(x);
    theta[0] * a + theta[1] * b
}

fn force(theta: [f64; 2], x: f64) -> f64 {
    theta[0] * x + theta[1] * x.powi(3)
}

/// Hands out the samples that it was made with, whatever the model, less what the label shifts them by.
#[derive(Debug)]
struct Given(Vec<f64>, DType);

impl SampleSource<2> for Given {
    type State = ();
    fn start(&self, _: &mut Noise, _: &Device) -> Result<()> {
        Ok(())
    }
    fn draw(
        &self,
        model: &dyn EnergyModel<2>,
        request: Request<'_>,
        (): (),
        _: &mut Noise,
    ) -> Result<(Negatives<2>, ())> {
        assert_eq!(request.count * 2, self.0.len());
        let samples = points(&self.0, self.1);
        assert!(!model.energy(samples.clone()).is_autodiff(), "the chain must not track parameters");
        Ok((Negatives { samples, restarted: 2, non_finite: 1 }, ()))
    }
}

fn points(x: &[f64], precision: DType) -> Tensor<2> {
    Tensor::from_data(TensorData::new(x.to_vec(), [x.len() / 2, 2]), (&Device::default(), precision))
}

/// A random case: θ and n points each of data and samples.
fn case(seed: u64, n: usize) -> ([f64; 2], Vec<f64>, Vec<f64>) {
    let mut noise = Noise::host(seed);
    let rng = noise.rng(Stream::DATA);
    let mut numbers = |count: usize, scale: f64| -> Vec<f64> {
        // f32 numbers, so that both precisions see the same points.
        (0..count).map(|_| f64::from((scale * (rng.random::<f64>() * 2.0 - 1.0)) as f32)).collect()
    };
    let theta = numbers(2, 0.5);
    let theta = [f64::from((theta[0] + 1.0) as f32), f64::from((theta[1] + 0.6) as f32)];
    (theta, numbers(2 * n, 1.5), numbers(2 * n, 1.5))
}

fn batch(x: &[f64], labels: Vec<usize>, precision: DType) -> JointBatch<2> {
    let x = points(x, precision);
    JointBatch { unlabelled: x.clone(), labelled: x, labels }
}

fn get(numbers: &[Reading], name: &str) -> f64 {
    numbers.iter().find(|number| number.name == name).unwrap_or_else(|| panic!("no {name}")).value
}

/// Value and gradient of a contrast with α, by sums over samples in f64.
fn by_hand(
    contrast: Contrast,
    alpha: f64,
    theta: [f64; 2],
    data: &[f64],
    samples: &[f64],
) -> (f64, [f64; 2]) {
    let of = |points: &[f64]| -> Vec<(f64, [f64; 2])> {
        points.chunks(2).map(|x| (energy(theta, x), powers(x))).collect()
    };
    let (plus, minus) = (of(data), of(samples));
    let n = plus.len() as f64;
    // How strongly each energy pulls: ∂L/∂E.
    let (value, pull_plus, pull_minus): (f64, Vec<f64>, Vec<f64>) = match contrast {
        Contrast::Difference => {
            let value =
                plus.iter().map(|p| p.0).sum::<f64>() / n - minus.iter().map(|m| m.0).sum::<f64>() / n;
            (value, vec![1.0 / n; plus.len()], vec![-1.0 / n; plus.len()])
        }
        Contrast::Softplus { inverse_temperature: t } => {
            let gaps: Vec<f64> = plus.iter().zip(&minus).map(|(p, m)| t * (p.0 - m.0)).collect();
            let pull: Vec<f64> = gaps.iter().map(|g| t / (1.0 + (-g).exp()) / n).collect();
            let value = gaps.iter().map(|g| g.exp().ln_1p()).sum::<f64>() / n;
            (value, pull.clone(), pull.iter().map(|p| -p).collect())
        }
        Contrast::LogSumExp { inverse_temperature: t } => {
            let least = minus.iter().map(|m| m.0).fold(f64::INFINITY, f64::min);
            let weights: Vec<f64> = minus.iter().map(|m| (-t * (m.0 - least)).exp()).collect();
            let sum: f64 = weights.iter().sum();
            let value = plus.iter().map(|p| p.0).sum::<f64>() / n
                - weights.iter().zip(&minus).map(|(w, m)| w / sum * m.0).sum::<f64>();
            (value, vec![1.0 / n; plus.len()], weights.iter().map(|w| -w / sum).collect())
        }
    };
    let mut slope = [0.0; 2];
    let squares: f64 = plus.iter().chain(&minus).map(|e| e.0 * e.0).sum::<f64>() / n;
    for ((e, p), pull) in
        plus.iter().zip(&pull_plus).chain(minus.iter().zip(&pull_minus)).map(|(a, b)| (*a, b))
    {
        for j in 0..2 {
            slope[j] += (pull + alpha * 2.0 * e / n) * p[j];
        }
    }
    (value + alpha * squares, slope)
}

fn close(found: f64, expected: f64, tolerance: f64) -> bool {
    (found - expected).abs() < tolerance * expected.abs().max(1.0)
}

/// 20 random cases of each form, in f32, against sums in f64: values and gradients to 1e-4.
#[test]
fn contrasts_and_their_gradients_match_double_precision() {
    let forms = [
        Contrast::Difference,
        Contrast::Softplus { inverse_temperature: 1.7 },
        Contrast::LogSumExp { inverse_temperature: 0.6 },
    ];
    for (seed, contrast) in (0..20).flat_map(|seed| forms.map(|form| (seed, form))) {
        let (theta, data, samples) = case(seed, 7);
        let alpha = if seed % 2 == 0 { 0.3 } else { 0.0 };
        let config = ContrastiveDivergenceConfig::new().with_contrast(contrast).with_energy_magnitude(alpha);
        let model = Quartic::new(theta, DType::F32);
        let objective = config.init(Given(samples.clone(), DType::F32)).unwrap();
        let batch = batch(&data, vec![0; 7], DType::F32);
        let (loss, ()) = objective.loss(&model, &batch, (), &mut Noise::host(0)).unwrap();
        let (value, slope) = by_hand(contrast, alpha, theta, &data, &samples);
        let numbers = loss.read();
        assert!(
            close(get(&numbers, Loss::TOTAL), value, 1e-4),
            "{contrast:?} {seed}: {numbers:?}, not {value}"
        );
        let mean = |x: &[f64]| x.chunks(2).map(|x| energy(theta, x)).sum::<f64>() / 7.0;
        let gap = mean(&data) - mean(&samples);
        assert!(close(get(&numbers, terms::ENERGY_GAP), gap, 1e-4));
        assert!(close(get(&numbers, terms::ENERGY_DATA), mean(&data), 1e-4));
        assert!(close(get(&numbers, terms::ENERGY_SAMPLES), mean(&samples), 1e-4));
        assert_eq!((get(&numbers, terms::RESTARTED), get(&numbers, terms::NON_FINITE)), (2.0, 1.0));
        assert_eq!(numbers.iter().any(|n| n.name == terms::ENERGY_MAGNITUDE), alpha > 0.0);
        assert_eq!(
            numbers.iter().any(|n| n.name == contrastive_terms::CONTRAST),
            contrast != Contrast::Difference
        );
        let found = model.slope(loss.total().clone());
        for j in 0..2 {
            assert!(close(found[j], slope[j], 1e-4), "{contrast:?} {seed}: {found:?}, not {slope:?}");
        }
        // Data and samples the other way round would be found out.
        let (_, wrong) = by_hand(contrast, alpha, theta, &samples, &data);
        assert!((0..2).any(|j| !close(found[j], wrong[j], 1e-2)), "{contrast:?} {seed}");
    }
}

/// The labels shift the energies: data by theirs, samples by those that were drawn.
#[test]
fn conditional_contrasts_take_the_labels_of_data_and_of_samples() {
    for seed in 0..20 {
        let (theta, data, samples) = case(seed, 6);
        let labels: Vec<usize> = (0..6).map(|i| (i + seed as usize) % 3).collect();
        let shifted = |x: &[f64], labels: &[usize]| -> Vec<f64> {
            x.iter().enumerate().map(|(i, x)| x - labels[i / 2] as f64).collect()
        };
        let model = Quartic::new(theta, DType::F32);
        let last = LastStepConfig::new(kernel(Force::Gradient, None));
        let config = ContrastiveDivergenceConfig::new().with_energy_magnitude(0.1);
        let with_last = config.clone().with_last_step(last);
        let batch = batch(&data, labels.clone(), DType::F32);
        for uniform in [false, true] {
            // What the objective will draw, from the same stream.
            let mut noise = Noise::host(seed);
            let rng = noise.rng(Stream::LABELS);
            let drawn: Vec<usize> =
                if uniform { (0..6).map(|_| rng.random_range(0..3)).collect() } else { labels.clone() };
            let kind =
                if uniform { NegativeLabels::Uniform { num_classes: 3 } } else { NegativeLabels::OfBatch };
            let (at_data, at_samples) = (shifted(&data, &labels), shifted(&samples, &drawn));
            let (value, slope) = by_hand(Contrast::Difference, 0.1, theta, &at_data, &at_samples);
            let mut total = value;
            let mut gradient = slope;
            for (config, has_last) in [(&config, false), (&with_last, true)] {
                let source = Given(samples.clone(), DType::F32);
                let objective = config.clone().init_conditional(source, kind).unwrap();
                let (loss, ()) = objective.loss(&model, &batch, (), &mut Noise::host(seed)).unwrap();
                if has_last {
                    // E(x, y) is E(x - y), so that the step of x is the step of x - y.
                    let step = exact(theta, &at_samples, kernel(Force::Gradient, None));
                    total += step.0;
                    gradient = [slope[0] + step.1[0], slope[1] + step.1[1]];
                }
                let numbers = loss.read();
                assert!(
                    close(get(&numbers, Loss::TOTAL), total, 1e-4),
                    "{seed} {kind:?} {numbers:?} {total}"
                );
                let found = model.slope(loss.total().clone());
                for j in 0..2 {
                    assert!(close(found[j], gradient[j], 1e-3), "{seed} {kind:?}: {found:?} {gradient:?}");
                }
            }
        }
    }
    let objective = ContrastiveDivergenceConfig::new()
        .init_conditional(Given(vec![0.0; 4], DType::F32), NegativeLabels::OfBatch)
        .unwrap();
    let model = Quartic::new([1.0, 1.0], DType::F32);
    let short = batch(&[0.0; 4], vec![0], DType::F32);
    let error = objective.loss(&model, &short, (), &mut Noise::host(0)).unwrap_err().to_string();
    assert!(error.contains("JointBatch.labels"), "{error}");
}

const DRIFT: f64 = 0.1;

fn kernel(force: Force, bounds: Option<Bounds>) -> LangevinMove {
    LangevinMove { drift: DRIFT, noise_scale: 0.0, force, bounds }
}

/// Where a step with the parameters θ ends.
fn step_of(theta: [f64; 2], x: f64, kernel: LangevinMove) -> f64 {
    let force = match kernel.force {
        Force::Clipped(clip) => force(theta, x).clamp(-f64::from(clip), f64::from(clip)),
        _ => force(theta, x),
    };
    let end = x - kernel.drift * force;
    kernel.bounds.map_or(end, |bounds| end.clamp(bounds.low.into(), bounds.high.into()))
}

/// Mean E_fixed(x_K(θ)) and its gradient: central differences in θ of the step itself, in double precision, with the
/// energy at its end held fixed. Clip and box are taken as they are; nothing is derived by hand.
fn exact(theta: [f64; 2], x: &[f64], kernel: LangevinMove) -> (f64, [f64; 2]) {
    let n = x.len() as f64 / 2.0;
    let value = |by: [f64; 2]| -> f64 {
        x.chunks(2)
            .map(|x| energy(theta, &[step_of(by, x[0], kernel), step_of(by, x[1], kernel)]))
            .sum::<f64>()
            / n
    };
    let h = 1e-6;
    let slope = [0, 1].map(|j| {
        let moved = |by: f64| {
            let mut theta = theta;
            theta[j] += by;
            value(theta)
        };
        (moved(h) - moved(-h)) / (2.0 * h)
    });
    (value(theta), slope)
}

/// Relative error of the gradient, and value, of the term.
fn error(
    theta: [f64; 2],
    x: &[f64],
    kernel: LangevinMove,
    delta: f64,
    precision: DType,
    sign: f64,
) -> (f64, f64) {
    let model = Quartic::new(theta, precision);
    let last = LastStepConfig::new(kernel).with_step(delta).init().unwrap();
    let frozen = model.valid();
    let energy = last.of(&model, &frozen, points(x, precision), &mut Noise::host(0));
    let value: Vec<f64> = energy.clone().into_data().iter::<f64>().collect();
    let found = model.slope(energy);
    let (_, expected) = exact(theta, x, kernel);
    let norm = |v: [f64; 2]| v[0].hypot(v[1]);
    let wrong = norm([found[0] - sign * expected[0], found[1] - sign * expected[1]]) / norm(expected);
    (wrong, value[0])
}

const THETA: [f64; 2] = [0.800_000_011_920_929, 0.300_000_011_920_928_96]; // as f32 has them

fn cloud(n: usize) -> Vec<f64> {
    values(Noise::host(3).normal([n, 2], Stream::DATA, &Device::default()))
        .into_iter()
        .map(f64::from)
        .collect()
}

/// The table in the documentation of `LastStep`; `--nocapture` prints it.
#[test]
fn the_gradient_through_the_last_step_has_a_best_difference() {
    let (x, kernel) = (cloud(256), kernel(Force::Gradient, None));
    let mut single = Vec::new();
    for delta in [1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4, 1e-5] {
        let (f32, f64) = (
            error(THETA, &x, kernel, delta, DType::F32, 1.0).0,
            error(THETA, &x, kernel, delta, DType::F64, 1.0).0,
        );
        println!("/// | {delta} | {f32:.0e} | {f64:.0e} |");
        single.push((delta, f32));
    }
    let best = single.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert!((1e-3..=0.03).contains(&best.0) && best.1 < 1e-4, "{best:?}");
    // Second order in double precision, and ruined by rounding in single.
    let double = |delta| error(THETA, &x, kernel, delta, DType::F64, 1.0).0;
    assert!((double(0.1) / double(0.01) / 100.0 - 1.0).abs() < 0.05, "{} {}", double(0.1), double(0.01));
    assert!(single.last().unwrap().1 > 10.0 * best.1);
}

/// 20 random cases, with and without clip and box: the gradient to 1e-3 with the default δ, the value to 1e-5. A term
/// with the wrong sign is off by 2, one without the masks is off as well.
#[test]
fn the_last_step_trains_what_it_should() {
    let tight = Bounds { low: -0.6, high: 0.7 };
    let kinds = [
        kernel(Force::Gradient, None),
        kernel(Force::Clipped(0.5), None),
        kernel(Force::Gradient, Some(tight)),
        kernel(Force::Clipped(0.5), Some(tight)),
    ];
    let mut unmasked = [0.0f64; 4];
    for seed in 0..20 {
        let (theta, _, x) = case(seed, 9);
        for (kind, kernel) in kinds.into_iter().enumerate() {
            let (value, _) = exact(theta, &x, kernel);
            let (wrong, found) = error(theta, &x, kernel, 0.01, DType::F32, 1.0);
            assert!(wrong < 1e-3, "{seed} {kernel:?}: {wrong}");
            assert!(close(found, value, 1e-5), "{seed} {kernel:?}: {found}, not {value}");
            assert!(error(theta, &x, kernel, 0.01, DType::F32, -1.0).0 > 1.9, "the wrong sign");
            // The derivative as if nothing were held: v from the true end, all elements.
            let n = x.len() as f64 / 2.0;
            let naive = [1, 3].map(|power| {
                x.iter()
                    .map(|x| force(theta, step_of(theta, *x, kernel)) * -DRIFT * x.powi(power))
                    .sum::<f64>()
                    / n
            });
            let (_, expected) = exact(theta, &x, kernel);
            let off = (naive[0] - expected[0]).hypot(naive[1] - expected[1]) / expected[0].hypot(expected[1]);
            unmasked[kind] = unmasked[kind].max(off);
        }
    }
    assert!(unmasked[0] < 1e-5 && unmasked[1..].iter().all(|off| *off > 0.1), "{unmasked:?}");
}

/// The total is the true value, its gradient the sum of the parts; the noise of the step comes from the chains' stream.
#[test]
fn the_last_step_joins_the_total_with_its_weight() {
    let (theta, data, samples) = case(4, 8);
    let noisy = LangevinMove { noise_scale: 0.2, ..kernel(Force::Gradient, None) };
    let model = Quartic::new(theta, DType::F32);
    let run = |config: ContrastiveDivergenceConfig| {
        let objective = config.init(Given(samples.clone(), DType::F32)).unwrap();
        let batch = batch(&data, vec![0; 8], DType::F32);
        let (loss, ()) = objective.loss(&model, &batch, (), &mut Noise::host(6)).unwrap();
        (loss.read(), model.slope(loss.total().clone()))
    };
    let config = ContrastiveDivergenceConfig::new().with_energy_magnitude(0.0);
    let (without, slope_without) = run(config.clone());
    let last = LastStepConfig::new(noisy).with_weight(0.7);
    let (with, slope_with) = run(config.with_last_step(last));
    let draws = values(Noise::host(6).normal([8, 2], Stream::CHAIN, &Device::default()));
    let end: Vec<f64> =
        samples.iter().zip(draws).map(|(x, e)| x - DRIFT * force(theta, *x) + 0.2 * f64::from(e)).collect();
    let expected = end.chunks(2).map(|x| energy(theta, x)).sum::<f64>() / 8.0;
    assert!(close(get(&with, contrastive_terms::LAST_STEP), expected, 1e-5));
    assert!(close(get(&with, Loss::TOTAL), get(&without, Loss::TOTAL) + 0.7 * expected, 1e-5));
    for j in 0..2 {
        let power = [1, 3][j];
        let term =
            samples.iter().zip(&end).map(|(x, end)| force(theta, *end) * -DRIFT * x.powi(power)).sum::<f64>();
        let expected = slope_without[j] + 0.7 * term / 8.0;
        assert!(close(slope_with[j], expected, 1e-3), "{slope_with:?}, not {expected}");
        assert!((slope_with[j] - slope_without[j]).abs() > 1e-2, "without the gradient of the step");
    }
}

#[test]
fn what_is_not_allowed_is_named() {
    let new = ContrastiveDivergenceConfig::new;
    let fails = |config: ContrastiveDivergenceConfig| {
        config.init(Given(Vec::new(), DType::F32)).map(|_| ()).unwrap_err().to_string()
    };
    let last = |kernel| new().with_last_step(LastStepConfig::new(kernel));
    let plain = kernel(Force::Gradient, None);
    for (config, part) in [
        (new().with_energy_magnitude(-1.0), "ContrastiveDivergenceConfig.energy_magnitude = -1"),
        (
            new().with_contrast(Contrast::Softplus { inverse_temperature: 0.0 }),
            "contrast.inverse_temperature = 0",
        ),
        (last(kernel(Force::Normalized, None)), "LastStepConfig.kernel.force = Normalized"),
        (last(kernel(Force::Clipped(0.0), None)), "LastStepConfig.kernel.force.clip = 0"),
        (
            last(kernel(Force::Gradient, Some(Bounds { low: 1.0, high: 0.0 }))),
            "LastStepConfig.kernel.bounds =",
        ),
        (last(LangevinMove { drift: 0.0, ..plain }), "LastStepConfig.kernel.drift = 0"),
        (last(LangevinMove { noise_scale: -1.0, ..plain }), "LastStepConfig.kernel.noise_scale = -1"),
        (new().with_last_step(LastStepConfig::new(plain).with_step(0.0)), "LastStepConfig.step = 0"),
        (
            new().with_last_step(LastStepConfig::new(plain).with_weight(f64::NAN)),
            "LastStepConfig.weight = NaN",
        ),
    ] {
        let message = fails(config);
        assert!(message.contains(part), "{message}");
    }
    let labels = NegativeLabels::Uniform { num_classes: 0 };
    let error = new().init_conditional(Given(Vec::new(), DType::F32), labels).unwrap_err().to_string();
    assert!(error.contains("num_classes = 0"), "{error}");
    let model = Quartic::new([1.0, 1.0], DType::F32);
    let empty = batch(&[], Vec::new(), DType::F32);
    let objective = new().init(Given(Vec::new(), DType::F32)).unwrap();
    assert!(objective.loss(&model, &empty, (), &mut Noise::host(0)).is_err());
    // A configuration with all in it survives being written down.
    let config = last(kernel(Force::Clipped(0.01), Some(Bounds { low: 0.0, high: 1.0 })))
        .with_contrast(Contrast::LogSumExp { inverse_temperature: 2.0 });
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<ContrastiveDivergenceConfig>(&text).unwrap(), config);
}

static WORKED_OUT: AtomicUsize = AtomicUsize::new(0);

/// Twice the weight, and a count of how often that is worked out.
#[derive(Module, Debug)]
struct Twice {
    factor: Param<Tensor<1>>,
}

impl Reparameterization for Twice {
    const NAME: &'static str = "twice";
    fn apply<const D: usize>(&self, base: Tensor<D>) -> Tensor<D> {
        WORKED_OUT.fetch_add(1, Ordering::SeqCst);
        base * self.factor.val().reshape([1; D])
    }
}

struct MakeTwice;

impl Reparameterizer for MakeTwice {
    type Reparam = Twice;
    fn reparameterize<const D: usize>(
        &mut self,
        _: &str,
        param: Param<Tensor<D>>,
    ) -> (Param<Tensor<D>>, Option<Twice>) {
        let factor = Tensor::from_floats([2.0], &Device::default().autodiff());
        (param, Some(Twice { factor: Param::from_tensor(factor) }))
    }
}

/// A chain of 30 steps works out parametrised weights once; data and samples do so once each.
#[test]
fn chains_work_out_parametrised_weights_once() {
    let model = Quartic::new([0.5, 0.2], DType::F32).apply_reparameterization(MakeTwice);
    let sampler = ImproperSgldConfig::new().with_step_size(0.1).with_noise_scale(0.0).init().unwrap();
    let source = ShortRunConfig::new([2]).with_num_steps(30).init(sampler).unwrap();
    let objective = ContrastiveDivergenceConfig::new().init(source).unwrap();
    WORKED_OUT.store(0, Ordering::SeqCst);
    let batch = batch(&[1.0, 0.0], vec![0], DType::F32);
    let (loss, ()) = objective.loss(&model, &batch, (), &mut Noise::host(0)).unwrap();
    assert_eq!(WORKED_OUT.load(Ordering::SeqCst), 3);
    assert!(close(get(&loss.read(), terms::ENERGY_DATA), 0.5 + 0.1, 1e-6), "twice the weights");
}

/// A scalar energy, and one per class.
#[derive(Module, Debug)]
struct Net {
    net: Mlp,
}

impl Net {
    fn new(outputs: usize, noise: &mut Noise, device: &Device) -> Self {
        let config = MlpConfig::new(2, vec![32, 32], outputs).with_activation(Activation::Silu);
        Self { net: config.init(noise, &device.clone().autodiff()).unwrap() }
    }

    fn outputs(&self, x: Tensor<2>) -> Tensor<2> {
        self.net.class_output.forward(self.net.features(x))
    }
}

impl EnergyModel<2> for Net {
    fn energy(&self, x: Tensor<2>) -> Tensor<1> {
        self.outputs(x).squeeze_dim(1)
    }
}

impl ConditionalEnergy<2> for Net {
    fn energy_given(&self, x: Tensor<2>, labels: Tensor<1, Int>) -> Tensor<1> {
        self.outputs(x).gather(1, labels.unsqueeze_dim(1)).squeeze_dim(1)
    }
}

fn chain() -> jem_core::samplers::ImproperSgld {
    ImproperSgldConfig::new().with_step_size(0.1).with_noise_scale(0.3).with_bounds(-4.0, 4.0).init().unwrap()
}

fn queue() -> jem_core::samplers::FifoReplay<jem_core::samplers::ImproperSgld> {
    let config = FifoReplayConfig::new([2]).with_bounds(-4.0, 4.0).with_capacity(600).with_num_steps(10);
    config.init(chain()).unwrap()
}

fn rate(iterations: u64) -> Schedule {
    Schedule::Cosine { from: 0.02, to: 0.0, steps: iterations }
}

/// Area under the curve by which `high` lies above `low`.
fn auroc(high: Tensor<1>, low: Tensor<1>) -> f64 {
    RocCurve::new(&values(high), &values(low)).unwrap().auroc()
}

/// Moons against uniform noise, n = 512 each: an untrained network does not know them, a trained one does, also with the
/// KL term.
#[test]
fn training_separates_data_from_noise() {
    let device = Device::default();
    let moons = Toy::TwoMoons.sample(512, Noise::host(1).rng(Stream::DATA)).unwrap();
    let x: Tensor<2> = moons.tensor(&(0..512).collect::<Vec<_>>(), &device).unwrap();
    let uniform = Noise::host(2).uniform([512, 2], -4.0..4.0, Stream::DATA, &device);
    let apart = |model: &Net| auroc(model.energy(uniform.clone()), model.energy(x.clone()));
    for last in [None, Some(LastStepConfig::new(chain().move_at(0)).with_weight(0.1))] {
        let mut config = ContrastiveDivergenceConfig::new().with_energy_magnitude(0.05);
        config.last_step = last;
        let objective = config.init(queue()).unwrap();
        let batches =
            VectorLoader::new(moons.clone(), moons.clone(), &LoaderConfig::new(64), &device).unwrap();
        let mut trainer =
            Trainer::new(objective, batches, TrainerConfig::new(200)).with_learning_rate(rate(200));
        let mut noise = Noise::host(3);
        let model = Net::new(1, &mut noise, &device);
        let before = apart(&model.valid());
        let state = trainer.start(model, AdamConfig::new().init(), noise, &device).unwrap();
        let (state, outcome) = trainer.train(state).unwrap();
        assert_eq!((outcome, state.guard.roll_backs), (Outcome::Finished, 0));
        let after = apart(&state.model.valid());
        println!("AUROC of E, noise above moons: {before:.3} before, {after:.3} after");
        assert!(before < 0.65 && after > 0.84, "{before} {after}");
    }
}

/// Three rings: after training E(x, y) is lowest for the ring that x lies on more often than not.
#[test]
fn conditional_training_tells_the_classes_apart() {
    let device = Device::default();
    let rings = Toy::Rings.sample(600, Noise::host(1).rng(Stream::DATA)).unwrap();
    let x: Tensor<2> = rings.tensor(&(0..600).collect::<Vec<_>>(), &device).unwrap();
    let right = |model: &Net| {
        let energies: Vec<Vec<f32>> =
            (0..3).map(|y| values(model.energy_given(x.clone(), label_tensor(&[y; 600], &device)))).collect();
        let best = |i: usize| (0..3).min_by(|a, b| energies[*a][i].total_cmp(&energies[*b][i])).unwrap();
        (0..600).filter(|i| best(*i) == rings.labels()[*i]).count() as f64 / 600.0
    };
    let objective = ContrastiveDivergenceConfig::new()
        .with_energy_magnitude(0.05)
        .init_conditional(queue(), NegativeLabels::OfBatch)
        .unwrap();
    let batches = VectorLoader::new(rings.clone(), rings.clone(), &LoaderConfig::new(60), &device).unwrap();
    let mut trainer = Trainer::new(objective, batches, TrainerConfig::new(250)).with_learning_rate(rate(250));
    let mut noise = Noise::host(5);
    let model = Net::new(3, &mut noise, &device);
    let before = right(&model.valid());
    let state = trainer.start(model, AdamConfig::new().init(), noise, &device).unwrap();
    let (state, outcome) = trainer.train(state).unwrap();
    assert_eq!((outcome, state.guard.roll_backs), (Outcome::Finished, 0));
    let after = right(&state.model.valid());
    println!("right: {before:.3} before, {after:.3} after");
    assert!(before < 0.7 && after > 0.9, "{before} {after}");
    let labels = state.objective.labels();
    assert!(labels.len() == 600 && (0..3).all(|y| labels.contains(&Some(y))));
}
