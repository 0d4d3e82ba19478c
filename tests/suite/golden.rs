//! The network, its energies, its gradients and a training step against numbers of the JEM reference code.
//!
//! `tests/golden/jem_wrn_10_1/README.md` says where the numbers come from. Tolerances are what 32-bit floats
//! allow across backends: 1e-4 of the largest entry for logits, energies and losses, 1e-3 in relative L2
//! distance for gradients and chains.

use std::path::{Path, PathBuf};

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::{AdamConfig, GradientsParams};
use burn::store::{ModuleSnapshot, PytorchStore};
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use jem_core::energy::{Classifier, ConditionalEnergy, EnergyModel, JointEnergy};
use jem_core::math::sample_norms;
use jem_core::noise::Noise;
use jem_nn::{WideResNet, WideResNetConfig};
use safetensors::{Dtype, SafeTensors};

use crate::backends::devices;

pub const VALUES: f64 = 1e-4;
const GRADIENTS: f64 = 1e-3;

pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/jem_wrn_10_1").join(name)
}

/// The expected numbers.
pub struct Golden(Vec<u8>);

impl Golden {
    pub fn open() -> Self {
        Self(std::fs::read(file("expected.safetensors")).unwrap())
    }

    fn entry(&self, key: &str) -> (Vec<usize>, Vec<f64>) {
        let tensors = SafeTensors::deserialize(&self.0).unwrap();
        let view = tensors.tensor(key).unwrap();
        let bytes = view.data();
        let values = match view.dtype() {
            Dtype::F32 => bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b).into()).collect(),
            Dtype::F64 => bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
            Dtype::I64 => bytes.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b) as f64).collect(),
            other => panic!("{key} has type {other:?}"),
        };
        (view.shape().to_vec(), values)
    }

    pub fn values(&self, key: &str) -> Vec<f64> {
        self.entry(key).1
    }

    pub fn tensor<const D: usize>(&self, key: &str, device: &Device) -> Tensor<D> {
        let (shape, values) = self.entry(key);
        let values: Vec<f32> = values.into_iter().map(|v| v as f32).collect();
        Tensor::from_data(TensorData::new(values, shape), device)
    }

    fn labels(&self, device: &Device) -> Tensor<1, Int> {
        let labels: Vec<i32> = self.values("y").into_iter().map(|v| v as i32).collect();
        Tensor::from_ints(labels.as_slice(), device)
    }
}

pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    let values: Vec<f32> = tensor.into_data().try_to_vec().unwrap();
    values.into_iter().map(f64::from).collect()
}

/// max |a - b| / max |b|, NaN if any entry is.
pub fn relative_maximum(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let larger = |a: f64, b: f64| if a.is_nan() || b.abs() <= a { a } else { b.abs() };
    let difference = found.iter().zip(expected).map(|(a, b)| a - b).fold(0.0, larger);
    difference / expected.iter().copied().fold(0.0, larger)
}

/// ‖a - b‖ / ‖b‖.
fn relative_distance(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let difference: f64 = found.iter().zip(expected).map(|(a, b)| (a - b).powi(2)).sum();
    (difference / expected.iter().map(|b| b * b).sum::<f64>()).sqrt()
}

/// Holds `residual` to `tolerance`; `--nocapture` shows it.
fn check(backend: &str, what: &str, residual: f64, tolerance: f64) {
    println!("{backend}: {what}: {residual:.1e} of {tolerance:.0e}");
    assert!(residual < tolerance, "{backend}: {what} is off by {residual:.1e}, allowed {tolerance:.0e}");
}

/// The reference checkpoint in a network of this crate. Two heads of the file have no place in it.
fn reference_network(device: &Device) -> WideResNet {
    let mut net = WideResNetConfig::new(10, 1, 10).init(&mut Noise::host(0), device).unwrap();
    let mut store = PytorchStore::from_file(file("checkpoint.pt"))
        .with_top_level_key("model_state_dict")
        .with_key_remapping(r"^f\.(conv1)", "$1")
        .with_key_remapping(r"^f\.layer", "group")
        .with_key_remapping(r"shortcut\.0", "shortcut");
    let result = net.load_from(&mut store).unwrap();
    assert!(result.missing.is_empty() && result.errors.is_empty(), "{result:?}");
    assert_eq!(result.unused.len(), 4, "{:?}", result.unused);
    net
}

#[test]
fn residuals_notice_a_wrong_sign_and_a_nan() {
    for residual in [relative_maximum, relative_distance] {
        assert_eq!(residual(&[1.0, -2.0], &[1.0, -2.0]), 0.0);
        assert!(residual(&[1.0, 2.0], &[1.0, -2.0]) > 1.0);
        assert!(residual(&[f64::NAN, -2.0], &[1.0, -2.0]).is_nan());
        assert!(residual(&[1.0, f64::NAN], &[1.0, -2.0]).is_nan());
    }
}

#[test]
fn logits_energies_and_scores() {
    let golden = Golden::open();
    for (backend, device) in devices() {
        let joint = JointEnergy::new(reference_network(&device));
        let x: Tensor<4> = golden.tensor("x", &device);
        let labels = golden.labels(&device);
        let logits = joint.classifier().logits(x.clone());
        let f_xy = joint.energy_given(x.clone(), labels.clone()).neg();
        let (energy, grad) = joint.energy_and_grad(x.clone());
        let best = joint.probabilities(x).max_dim(1).squeeze_dim(1);
        for (key, found) in [
            ("logits", values(logits)),
            ("f_x", values(energy.clone().neg())),
            ("f_xy", values(f_xy)),
            ("score_px", values(energy.neg())),
            ("score_py", values::<1>(best)),
            ("score_pxgrad", values(sample_norms(grad).neg())),
        ] {
            check(backend, key, relative_maximum(&found, &golden.values(key)), VALUES);
        }
        // Negative control: the labels of other images.
        let x = golden.tensor::<4>("x", &device);
        let shuffled = values(joint.energy_given(x, labels.flip([0])).neg());
        assert!(relative_maximum(&shuffled, &golden.values("f_xy")) > 100.0 * VALUES);
    }
}

#[test]
fn gradients_in_x() {
    let golden = Golden::open();
    for (backend, device) in devices() {
        let joint = JointEnergy::new(reference_network(&device));
        let x: Tensor<4> = golden.tensor("x", &device);
        let (_, marginal) = joint.energy_and_grad(x.clone());
        let (_, conditional) = joint.given(golden.labels(&device)).energy_and_grad(x);
        let (marginal, conditional) = (values(marginal.neg()), values(conditional.neg()));
        let expected = golden.values("grad_f_x");
        check(backend, "grad_f_x", relative_distance(&marginal, &expected), GRADIENTS);
        let residual = relative_distance(&conditional, &golden.values("grad_f_xy"));
        check(backend, "grad_f_xy", residual, GRADIENTS);
        // Negative control: one for the other.
        assert!(relative_distance(&conditional, &expected) > 100.0 * GRADIENTS);
    }
}

/// x ← x + rate ∇f(x) + 0.01 noise, from the reference's start with the reference's noise.
fn chain(golden: &Golden, device: &Device, num_steps: usize, rate: f32) -> Tensor<4> {
    let joint = JointEnergy::new(reference_network(&device.clone().autodiff()).valid());
    let noise: Tensor<5> = golden.tensor("sgld_noise", device);
    (0..num_steps).fold(golden.tensor("sgld_x0", device), |x, step| {
        let (_, grad) = joint.energy_and_grad(x.clone());
        let noise = noise.clone().narrow(0, step, 1).squeeze_dim(0);
        x - grad.mul_scalar(rate) + noise.mul_scalar(0.01)
    })
}

#[test]
fn chains_with_given_noise() {
    let golden = Golden::open();
    let start = golden.values("sgld_x0");
    for (backend, device) in devices() {
        for (num_steps, key) in [(1, "sgld_x1"), (5, "sgld_x5")] {
            let expected = golden.values(key);
            let found = values(chain(&golden, &device, num_steps, 1.0));
            check(backend, key, relative_distance(&found, &expected), GRADIENTS);
            // The way from the start is short, so that it must be right says more.
            let way = |to: &[f64]| to.iter().zip(&start).map(|(to, from)| to - from).collect::<Vec<_>>();
            let residual = relative_distance(&way(&found), &way(&expected));
            check(backend, &format!("{key} - sgld_x0"), residual, GRADIENTS);
            // Negative control: uphill in energy.
            let uphill = values(chain(&golden, &device, num_steps, -1.0));
            assert!(relative_distance(&way(&uphill), &way(&expected)) > 10.0 * GRADIENTS);
        }
    }
}

/// The three losses of the reference: of p(x), cross-entropy, and their sum.
fn losses(golden: &Golden, net: &WideResNet, device: &Device, labels: Tensor<1, Int>) -> [Tensor<1>; 3] {
    let logits = net.logits(golden.tensor("x", device));
    let energy_data = JointEnergy::new(net).energy_of_logits(logits.clone());
    let energy_samples = JointEnergy::new(net).energy(golden.tensor::<4>("sgld_x5", device));
    let loss_p_x = energy_data.mean() - energy_samples.mean();
    let log_p = activation::log_softmax(logits, 1).gather(1, labels.unsqueeze_dim(1));
    let loss_ce = log_p.mean().neg();
    [loss_p_x.clone(), loss_ce.clone(), loss_p_x + loss_ce]
}

#[test]
fn losses_and_gradients_in_the_parameters() {
    let golden = Golden::open();
    for (backend, device) in devices() {
        let device = device.autodiff();
        let net = reference_network(&device);
        let [loss_p_x, loss_ce, loss_total] = losses(&golden, &net, &device, golden.labels(&device));
        let mut gradients = loss_total.clone().backward();
        for (key, loss) in [("loss_p_x", loss_p_x), ("loss_ce", loss_ce), ("loss_total", loss_total)] {
            check(backend, key, relative_maximum(&values(loss), &golden.values(key)), VALUES);
        }
        let conv1 = values(net.conv1.weight.grad(&gradients).unwrap());
        let residual = relative_distance(&conv1, &golden.values("grad_conv1_weight"));
        check(backend, "grad_conv1_weight", residual, GRADIENTS);
        // Burn's linear weights are [inputs, outputs].
        let head = values(net.class_output.weight.grad(&gradients).unwrap().transpose());
        let residual = relative_distance(&head, &golden.values("grad_class_output_weight"));
        check(backend, "grad_class_output_weight", residual, GRADIENTS);

        let gradients = GradientsParams::from_module(&mut gradients, &net);
        let mut total = SumOfSquares { gradients: &gradients, sum: 0.0, missing: 0 };
        net.visit(&mut total);
        assert_eq!(total.missing, 0, "every parameter has a gradient");
        let residual = relative_maximum(&[total.sum.sqrt()], &golden.values("grad_norm"));
        check(backend, "grad_norm", residual, GRADIENTS);

        // Negative control: the labels of other images.
        let [_, shuffled, _] = losses(&golden, &net, &device, golden.labels(&device).flip([0]));
        assert!(relative_maximum(&values(shuffled), &golden.values("loss_ce")) > 100.0 * VALUES);
    }
}

struct SumOfSquares<'a> {
    gradients: &'a GradientsParams,
    sum: f64,
    missing: usize,
}

impl ModuleVisitor for SumOfSquares<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        match self.gradients.get::<D>(param.id) {
            Some(gradient) => self.sum += values(gradient).iter().map(|g| g * g).sum::<f64>(),
            None => self.missing += 1,
        }
    }
}

#[test]
fn one_adam_step() {
    let golden = Golden::open();
    let expected = golden.values("logits_after_adam_step");
    for (backend, device) in devices() {
        let device = device.autodiff();
        let after = |rate: f64| {
            let net = reference_network(&device);
            let [_, _, loss] = losses(&golden, &net, &device, golden.labels(&device));
            let gradients = GradientsParams::from_grads(loss.backward(), &net);
            let mut adam = AdamConfig::new().with_epsilon(1e-8).init();
            let net = adam.step(rate, net, gradients);
            values(net.valid().logits(golden.tensor("x", &device.clone().inner())))
        };
        let residual = relative_maximum(&after(1e-4), &expected);
        check(backend, "logits_after_adam_step", residual, VALUES);
        // Negative controls: no step, and a step twice as long.
        assert!(relative_maximum(&golden.values("logits"), &expected) > 10.0 * VALUES);
        assert!(relative_maximum(&after(2e-4), &expected) > 10.0 * VALUES);
    }
}
