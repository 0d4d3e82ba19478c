//! Concepts in the plane, combined: what samples of "and", "or" and "and not" look like after short chains.
//!
//! 500 chains of a few hundred Langevin steps from U(-3, 3)². At least 95 % must obey; the parts on their own do not.

use burn::tensor::{Device, Tensor, activation};
use jem_core::energy::analytic::{Gaussian, GaussianMixture, Rings};
use jem_core::energy::{Energy, EnergyModel, Mixture, Negation, Product};
use jem_core::noise::{Noise, Stream};
use jem_core::samplers::{UlaConfig, run};

use crate::support::values;

/// Right of the vertical axis, learnt by whatever gives no gradient of its own: it comes by autodiff.
struct Right;

impl EnergyModel<2> for Right {
    fn energy(&self, x: Tensor<2>) -> Tensor<1> {
        activation::softplus(x.narrow(1, 0, 1).mul_scalar(-3.0), 1.0).mul_scalar(8.0).squeeze_dim(1)
    }
}

/// Near a point: a well of depth 8 there, and flat far away, so that it can be negated.
struct Near([f32; 2]);

impl EnergyModel<2> for Near {
    fn energy(&self, x: Tensor<2>) -> Tensor<1> {
        let way = x.clone() - Tensor::<2>::from_floats([self.0], &x.device());
        way.square().sum_dim(1).mul_scalar(-0.5).exp().mul_scalar(-8.0).squeeze_dim(1)
    }
}

/// Where chains on `model` end.
fn samples(model: &dyn EnergyModel<2>) -> Vec<[f32; 2]> {
    let mut noise = Noise::host(41);
    let start = noise.uniform([500, 2], -3.0..3.0, Stream::BUFFER, &Device::default());
    let ula = UlaConfig::new(0.01).init().unwrap();
    values(run(&ula, model, start, 300, &mut noise)).chunks(2).map(|x| [x[0], x[1]]).collect()
}

fn share(samples: &[[f32; 2]], holds: impl Fn([f32; 2]) -> bool) -> f64 {
    samples.iter().filter(|x| holds(**x)).count() as f64 / samples.len() as f64
}

fn on_ring([x, y]: [f32; 2]) -> bool {
    (x.hypot(y) - 2.0).abs() < 0.6
}

fn is_right([x, _]: [f32; 2]) -> bool {
    x > 0.0
}

#[test]
fn a_product_obeys_both_of_its_factors() {
    let ring = Rings::new(vec![2.0], 0.2).unwrap();
    let parts: Vec<&dyn EnergyModel<2>> = vec![&ring, &Right];
    let both = samples(&Product::new(parts).unwrap());
    let (in_ring, to_the_right) = (share(&both, on_ring), share(&both, is_right));
    assert!(in_ring >= 0.95 && to_the_right >= 0.95, "{in_ring} {to_the_right}");
    // As an expression it is the same, and neither factor does it alone.
    assert_eq!(samples(&(Energy::new(&ring) + Energy::new(&Right))), both);
    assert!(share(&samples(&ring), is_right) < 0.95 && share(&samples(&Right), on_ring) < 0.95);
}

#[test]
fn a_negation_keeps_out_of_what_is_negated() {
    let (wide, near) = (Gaussian::standard(), Near([0.5, 0.0]));
    let outside = |[x, y]: [f32; 2]| (x - 0.5).hypot(y) > 0.8;
    let without = samples(&Negation::new(&wide, &near, 1.0).unwrap());
    let found = share(&without, outside);
    assert!(found >= 0.95, "{found}");
    assert!(share(&without, |[x, y]| x.hypot(y) < 4.0) >= 0.95); // and still a Gaussian further out
    assert!(share(&samples(&wide), outside) < 0.9);
    // With the sign turned round it gathers there.
    let with = samples(&(Energy::new(&wide) + Energy::new(&near)));
    assert!(share(&with, outside) < 0.5);
}

#[test]
fn a_mixture_obeys_one_or_the_other_and_finds_both() {
    let [left, right] = [-2.0, 2.0].map(|x| GaussianMixture::new(vec![vec![x, 0.0]], 0.5).unwrap());
    let found = samples(&Mixture::new(vec![(0.0, &left), (0.0, &right)]).unwrap());
    let near = |centre: f32| move |[x, y]: [f32; 2]| (x - centre).hypot(y) < 1.5;
    let (at_left, at_right) = (share(&found, near(-2.0)), share(&found, near(2.0)));
    assert!(at_left > 0.3 && at_right > 0.3 && at_left + at_right >= 0.95, "{at_left} {at_right}");
    assert!(share(&samples(&left), near(-2.0)) >= 0.95); // one component alone finds one place
}
