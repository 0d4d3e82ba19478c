//! PYLD as JEM++ writes it, step by step, against the sampler that makes its inner steps in one.

use burn::tensor::{Device, Tensor};
use jem_core::energy::JointEnergy;
use jem_core::math::log_sum_exp;
use jem_core::noise::{Noise, Stream};
use jem_core::samplers::{ProximalSgldConfig, run};
use jem_nn::{Activation, Cnn, CnnConfig, convolve};

use crate::support::values;

const OUTER: usize = 10;
const INNER: u32 = 5;
const STEP: f64 = 0.2;

/// E behind the first layer, of what that layer gives.
fn behind(net: &Cnn, h: Tensor<4>) -> Tensor<1> {
    let activation = Activation::default();
    let y = net.convs[1..].iter().fold(h, |y, conv| activation.then_conv(conv, y));
    let features = activation.forward(y).mean_dim(3).mean_dim(2).squeeze_dims::<2>(&[2, 3]);
    log_sum_exp(net.class_output.forward(features)).neg()
}

/// The gradient of Σ c·f(x), by autodiff.
fn pullback(f: impl Fn(Tensor<4>) -> Tensor<4>, x: Tensor<4>, c: Option<Tensor<4>>) -> Tensor<4> {
    let x = x.autodiff().require_grad();
    let y = f(x.clone());
    let y = match c {
        Some(c) => y * c.autodiff(),
        None => y,
    };
    x.grad_remove(&mut y.sum().backward()).unwrap().without_autodiff()
}

/// PYLD, with `first` as the first layer.
fn pyld(net: &Cnn, first: impl Fn(Tensor<4>) -> Tensor<4>, mut x: Tensor<4>) -> Tensor<4> {
    for _ in 0..OUTER {
        let frozen = pullback(|h| behind(net, h).reshape([-1, 1, 1, 1]), first(x.clone()), None);
        for _ in 0..INNER {
            let gradient = pullback(&first, x.clone(), Some(frozen.clone()));
            x = (x - gradient.clamp(-1.0, 1.0).mul_scalar(STEP)).clamp(-1.0, 1.0);
        }
    }
    x
}

fn gap(a: Tensor<4>, b: Tensor<4>) -> f32 {
    values(a - b).into_iter().map(f32::abs).fold(0.0, f32::max)
}

#[test]
fn behind_a_linear_layer_the_inner_steps_are_one_step() {
    let device = Device::default();
    let mut noise = Noise::host(3);
    let net = CnnConfig::new(vec![6, 8], 4).init(&mut noise, &device).unwrap();
    let scale = 300.0; // so that clip and box hold some elements and leave others
    let mut net = net;
    net.class_output.weight = net.class_output.weight.map(|weight| weight.mul_scalar(scale));
    let x: Tensor<4> = noise.uniform([5, 3, 8, 8], -1.0..1.0, Stream::DATA, &device);

    let written_out = pyld(&net, |x| convolve(&net.convs[0], x), x.clone());
    let sampler = ProximalSgldConfig::pyld(STEP, INNER).init().unwrap();
    let model = JointEnergy::new(&net);
    let found = run(&sampler, &model, x.clone(), OUTER, &mut noise);
    let moved = gap(found.clone(), x.clone());
    let at_the_walls = values(found.clone()).iter().filter(|value| value.abs() == 1.0).count();
    let all = 5 * 3 * 8 * 8;
    assert!(moved > 0.1 && at_the_walls > all / 20 && at_the_walls < all, "{moved} {at_the_walls}");
    assert!(gap(found.clone(), written_out) < 1e-4);

    // Behind a layer that is not linear it is another sampler.
    let bent = |x: Tensor<4>| convolve(&net.convs[0], x.clone() + x.powi_scalar(3));
    let model = pyld(&net, bent, x);
    assert!(gap(found, model) > 1e-2);
}
