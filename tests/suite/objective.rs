//! The joint objective against hand-computed losses, term by term.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use jem_core::Result;
use jem_core::data::JointBatch;
use jem_core::energy::{Classifier, EnergyModel};
use jem_core::noise::Noise;
use jem_core::objectives::{JemConfig, Loss, NegativeKind, Objective, Reading, terms};
use jem_core::samplers::{Negatives, Request, SampleSource};

/// f(x)[c] = w_c · x: logits of a scalar.
#[derive(Module, Debug)]
struct Lines {
    slopes: Param<Tensor<2>>,
}

impl Lines {
    fn new(slopes: [f32; 2], device: &Device) -> Self {
        Self { slopes: Param::from_tensor(Tensor::from_floats([slopes], &device.clone().autodiff())) }
    }
}

impl Classifier<2> for Lines {
    fn logits(&self, x: Tensor<2>) -> Tensor<2> {
        x.matmul(self.slopes.val())
    }
}

/// A source whose samples are all `value`, plus ten times the label where there is one.
struct Fixed(f32);

impl SampleSource<2> for Fixed {
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
        let samples: Vec<f32> =
            (0..request.count).map(|i| self.0 + request.labels.map_or(0.0, |l| 10.0 * l[i] as f32)).collect();
        let data = burn::tensor::TensorData::new(samples, [request.count, 1]);
        let samples = Tensor::from_data(data, request.device);
        assert!(!model.energy(samples.clone()).is_autodiff(), "the chain must not track parameters");
        Ok((Negatives { samples, restarted: 2, non_finite: 1 }, ()))
    }
}

fn batch(device: &Device) -> JointBatch<2> {
    JointBatch {
        unlabelled: Tensor::from_floats([[1.0], [2.0]], device),
        labelled: Tensor::from_floats([[1.0], [-1.0], [0.5]], device),
        labels: vec![0, 1, 1],
    }
}

fn lse(x: f64, slopes: [f64; 2]) -> f64 {
    ((slopes[0] * x).exp() + (slopes[1] * x).exp()).ln()
}

fn read(config: JemConfig) -> (Vec<Reading>, Loss, Lines) {
    let device = Device::default();
    let model = Lines::new([1.0, -0.5], &device);
    let objective = config.init(Fixed(0.5)).unwrap();
    let (loss, ()) = objective.loss(&model, &batch(&device), (), &mut Noise::host(0)).unwrap();
    (loss.read(), loss, model)
}

fn get(numbers: &[Reading], name: &str) -> f64 {
    numbers.iter().find(|number| number.name == name).unwrap_or_else(|| panic!("no {name}")).value
}

#[test]
fn every_term_and_weight_matches_the_formula() {
    let slopes = [1.0, -0.5];
    let e = |x: f64| -lse(x, slopes);
    let data = (e(1.0) + e(2.0)) / 2.0;
    let sample = e(0.5);
    let ce = [(1.0, 0), (-1.0, 1), (0.5, 1)].map(|(x, y)| lse(x, slopes) - slopes[y] * x).iter().sum::<f64>()
        / 3.0;
    // E(x, y) = -w_y x on data, and on samples that Fixed puts at 0.5 + 10 y.
    let joint_data = -[1.0, -0.5 * -1.0, -0.5 * 0.5].iter().sum::<f64>() / 3.0;
    let joint_samples = -[0.5, -0.5 * 10.5, -0.5 * 10.5].iter().sum::<f64>() / 3.0;
    let magnitude = (e(1.0).powi(2) + e(2.0).powi(2)) / 2.0 + sample.powi(2);

    let config = JemConfig::new()
        .with_classification_weight(0.7)
        .with_marginal_weight(1.3)
        .with_joint_weight(0.4)
        .with_energy_magnitude(0.1);
    let (numbers, _, _) = read(config);
    let near = |name, expected: f64| {
        let found = get(&numbers, name);
        assert!((found - expected).abs() < 1e-5 * expected.abs().max(1.0), "{name}: {found}, not {expected}");
    };
    near(terms::CROSS_ENTROPY, ce);
    near(terms::ENERGY_DATA, data);
    near(terms::ENERGY_SAMPLES, sample);
    near(terms::ENERGY_GAP, data - sample);
    near(terms::JOINT_GAP, joint_data - joint_samples);
    near(terms::ENERGY_MAGNITUDE, magnitude);
    near(terms::ACCURACY, 2.0 / 3.0);
    near(terms::RESTARTED, 4.0); // two draws, each of which reports 2
    near(terms::NON_FINITE, 2.0);
    let total = 0.7 * ce + 1.3 * (data - sample) + 0.4 * (joint_data - joint_samples) + 0.1 * magnitude;
    near(Loss::TOTAL, total);
    // The wrong sign of the contrastive term would be another number.
    assert!((get(&numbers, Loss::TOTAL) - (total - 2.6 * (data - sample))).abs() > 0.1);
}

#[test]
fn the_gradient_is_that_of_maximum_likelihood() {
    // d/dw_c [mean E(x) - E(x')] = -mean p(c|x) x + p(c|x') x'
    let (_, loss, model) = read(JemConfig::new().with_classification_weight(0.0));
    let gradients = loss.total().backward();
    let found: Vec<f32> = model.slopes.val().grad(&gradients).unwrap().into_data().iter::<f32>().collect();
    let p = |x: f64| {
        let (a, b) = (x.exp(), (-0.5 * x).exp());
        [a / (a + b), b / (a + b)]
    };
    for (c, found) in found.into_iter().enumerate() {
        let expected = -(p(1.0)[c] * 1.0 + p(2.0)[c] * 2.0) / 2.0 + p(0.5)[c] * 0.5;
        assert!((f64::from(found) - expected).abs() < 1e-5, "{c}: {found} != {expected}");
    }
}

#[test]
fn zero_weights_leave_their_terms_out() {
    let (numbers, _, _) = read(JemConfig::new().with_marginal_weight(0.0));
    assert!(numbers.iter().all(|number| number.name != terms::ENERGY_DATA));
    let (numbers, _, _) = read(JemConfig::new().with_classification_weight(0.0));
    assert!(numbers.iter().all(|number| number.name != terms::CROSS_ENTROPY));
}

#[test]
fn conditional_negatives_are_drawn_for_uniform_labels() {
    let config = JemConfig::new().with_negatives(NegativeKind::Conditional { num_classes: 2 });
    let (numbers, _, _) = read(config);
    let sample = get(&numbers, terms::ENERGY_SAMPLES);
    let each = [0.5, 10.5].map(|x| -lse(x, [1.0, -0.5]));
    let possible = [each[0], each[1], (each[0] + each[1]) / 2.0];
    assert!(possible.iter().any(|p| (p - sample).abs() < 1e-4), "{sample} is none of {possible:?}");
}

#[test]
fn misfits_are_named() {
    let device = Device::default();
    let model = Lines::new([1.0, -0.5], &device);
    let objective = JemConfig::new().init(Fixed(0.5)).unwrap();
    let mut wrong = batch(&device);
    wrong.labels[1] = 2;
    let error = objective.loss(&model, &wrong, (), &mut Noise::host(0)).unwrap_err().to_string();
    assert!(error.contains("JointBatch.labels = 2") && error.contains("number of logits, 2"), "{error}");
    wrong.labels.pop();
    let error = objective.loss(&model, &wrong, (), &mut Noise::host(0)).unwrap_err().to_string();
    assert!(error.contains("JointBatch.labels has shape [2]"), "{error}");
    for (config, field) in [
        (JemConfig::new().with_marginal_weight(-1.0), "JemConfig.marginal_weight = -1"),
        (JemConfig::new().with_energy_magnitude(f64::NAN), "JemConfig.energy_magnitude = NaN"),
        (JemConfig::new().with_marginal_weight(0.0).with_classification_weight(0.0), "all weights 0"),
        (JemConfig::new().with_negatives(NegativeKind::Conditional { num_classes: 0 }), "num_classes = 0"),
    ] {
        let error = config.init(Fixed(0.0)).err().unwrap().to_string();
        assert!(error.contains(field), "{error}");
    }
}
