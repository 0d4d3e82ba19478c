//! The energies, each with exact samples, the window that shows it and the width of its narrowest part.

use burn::tensor::{Device, Tensor};
use jem_core::Result;
use jem_core::energy::EnergyModel;
use jem_core::energy::analytic::{
    Banana, Checkerboard, DoubleWell, Funnel, Gaussian, GaussianMixture, Rings,
};
use jem_core::noise::Noise;

type Draw = Box<dyn Fn(usize, &mut Noise, &Device) -> Tensor<2>>;

/// An energy in the plane with a known law.
pub struct Target {
    /// What the tables call it.
    pub name: &'static str,
    /// E(x).
    pub energy: Box<dyn EnergyModel<2>>,
    /// log Z.
    pub log_normaliser: f64,
    /// The part of the plane that pictures show.
    pub window: [(f64, f64); 2],
    /// ℓ: about 1/√c for the largest curvature c that matters. All steps follow from it.
    pub scale: f64,
    draw: Draw,
}

impl Target {
    /// Exact samples, `[count, 2]`.
    pub fn exact(&self, count: usize, noise: &mut Noise, device: &Device) -> Tensor<2> {
        (self.draw)(count, noise, device)
    }
}

/// Seven energies, the easiest first.
pub fn all() -> Result<Vec<Target>> {
    let square = |side: f64| [(-side, side); 2];
    let mut targets = Vec::new();
    let mut add = |name, energy: Box<dyn EnergyModel<2>>, log_normaliser, window, scale, draw: Draw| {
        targets.push(Target { name, energy, log_normaliser, window, scale, draw });
    };

    let it = Gaussian::standard();
    let (z, own) = (it.log_normaliser(2), it.clone());
    add("Gaussian", Box::new(it), z, square(4.0), 1.0, Box::new(move |n, r, d| own.sample([n, 2], r, d)));

    let it = GaussianMixture::new(vec![vec![-2.0, -1.2], vec![2.0, -1.2], vec![0.0, 2.2]], 0.6)?;
    let (z, own) = (it.log_normaliser(), it.clone());
    add("mixture", Box::new(it), z, square(4.5), 0.6, Box::new(move |n, r, d| own.sample(n, r, d).0));

    let it = DoubleWell::new(3.0, 1.5)?;
    let (z, own) = (it.log_normaliser(2), it.clone());
    add("wells", Box::new(it), z, square(3.0), 0.31, Box::new(move |n, r, d| own.sample([n, 2], r, d)));

    let it = Banana::new(1.2, 0.5, 0.5)?;
    let (z, own) = (it.log_normaliser(), it.clone());
    let window = [(-4.5, 4.5), (-2.5, 6.5)];
    add("banana", Box::new(it), z, window, 0.3, Box::new(move |n, r, d| own.sample(n, r, d)));

    let it = Funnel::new(1.0)?;
    let (z, own) = (it.log_normaliser(2), it.clone());
    let window = [(-4.0, 4.0), (-6.0, 6.0)];
    add("funnel", Box::new(it), z, window, 0.4, Box::new(move |n, r, d| own.sample([n, 2], r, d)));

    let it = Rings::new(vec![1.5, 3.0], 0.25)?;
    let (z, own) = (it.log_normaliser(), it.clone());
    add("rings", Box::new(it), z, square(4.2), 0.25, Box::new(move |n, r, d| own.sample(n, r, d)));

    let it = Checkerboard::new(3.0, 12.0)?;
    let (z, own) = (it.log_normaliser(), it.clone());
    add("board", Box::new(it), z, square(4.8), 0.36, Box::new(move |n, r, d| own.sample(n, r, d)));
    Ok(targets)
}
