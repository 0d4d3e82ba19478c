//! Rings in the plane: a mixture that is Gaussian in the radius.

use std::f64::consts::{PI, TAU};

use burn::tensor::{Device, Tensor, TensorData, activation};
use rand::RngExt;
use rand_distr::StandardNormal;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::energy::EnergyModel;
use crate::error::{Error, Result, ensure_positive};
use crate::math::log_sum_exp;
use crate::noise::{Noise, Stream};

/// E(x) = -log Σ_k exp(-(‖x‖ - r_k)² / 2s²), x in the plane, with
///
/// ```text
/// Z = Σ_k 2π [ s² exp(-r_k² / 2s²) + r_k s √(2π) Φ(r_k/s) ]
/// ```
///
/// # Shapes
/// `[batch, 2]` to `[batch]`. The gradient at the origin, where there is none, is 0.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::EnergyModel;
/// use jem_core::energy::analytic::Rings;
///
/// let ring = Rings::new(vec![5.0], 0.5)?;
/// let x = Tensor::<2>::from_floats([[3.0, 4.0], [0.0, 6.0]], &Device::default()); // on it, and two deviations out
/// assert_eq!(ring.energy(x).into_data().try_to_vec::<f32>().unwrap(), [0.0, 2.0]);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Rings {
    radii: Vec<f32>,
    thickness: f32,
}

impl Rings {
    /// Rings of these radii, all of the same thickness s.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no radius, one is negative or not finite, or the thickness is not above 0.
    pub fn new(radii: Vec<f32>, thickness: f32) -> Result<Self> {
        ensure_positive("Rings.thickness", thickness)?;
        if radii.is_empty() || radii.iter().any(|radius| !(radius.is_finite() && *radius >= 0.0)) {
            let allowed = "at least one finite number >= 0";
            return Err(Error::config("Rings.radii", format!("{radii:?}"), allowed));
        }
        Ok(Self { radii, thickness })
    }

    /// ∫ of exp(-(‖x‖ - r)² / 2s²) over the plane.
    fn mass(&self, radius: f32) -> f64 {
        let (r, s) = (f64::from(radius), f64::from(self.thickness));
        let within = Normal::standard().cdf(r / s);
        TAU * (s * s * (-0.5 * (r / s).powi(2)).exp() + r * s * (2.0 * PI).sqrt() * within)
    }

    /// log ∫ exp(-E(x)) dx.
    pub fn log_normaliser(&self) -> f64 {
        self.radii.iter().map(|radius| self.mass(*radius)).sum::<f64>().ln()
    }

    /// Exact samples, drawn from [`Stream::DATA`]: a ring by its mass, a radius by rejection, an angle.
    ///
    /// # Shapes
    /// `[count, 2]`.
    pub fn sample(&self, count: usize, noise: &mut Noise, device: &Device) -> Tensor<2> {
        let masses: Vec<f64> = self.radii.iter().map(|radius| self.mass(*radius)).collect();
        let total: f64 = masses.iter().sum();
        let s = f64::from(self.thickness);
        let rng = noise.rng(Stream::DATA);
        let mut values = Vec::with_capacity(2 * count);
        for _ in 0..count {
            let mut place = total * rng.random::<f64>();
            let ring = masses.iter().position(|mass| {
                place -= mass;
                place < 0.0
            });
            let r = f64::from(self.radii[ring.unwrap_or(masses.len() - 1)]);
            // The radius has the density ρ exp(-(ρ - r)² / 2s²). Its mode m obeys m = r + s²/m, and ρ/m is at most
            // exp(ρ/m - 1), so that proposals from N(m, s²) are taken with probability (ρ/m) exp(1 - ρ/m).
            let mode = (r + (r * r + 4.0 * s * s).sqrt()) / 2.0;
            let radius = loop {
                let share = 1.0 + s / mode * rng.sample::<f64, _>(StandardNormal);
                if share > 0.0 && rng.random::<f64>() < share * (1.0 - share).exp() {
                    break share * mode;
                }
            };
            let angle = TAU * rng.random::<f64>();
            values.extend([(radius * angle.cos()) as f32, (radius * angle.sin()) as f32]);
        }
        Tensor::from_data(TensorData::new(values, [count, 2]), device)
    }

    /// ‖x‖ - r_k, `[batch, rings]`, and ‖x‖, `[batch, 1]`.
    fn distances(&self, x: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let radius = x.clone().square().sum_dim(1).sqrt();
        let radii = TensorData::new(self.radii.clone(), [1, self.radii.len()]);
        (radius.clone() - Tensor::<2>::from_data(radii, &x.device()), radius)
    }

    /// -(‖x‖ - r_k)² / 2s².
    fn logits(&self, distances: Tensor<2>) -> Tensor<2> {
        distances.square().div_scalar(-2.0 * self.thickness * self.thickness)
    }
}

impl EnergyModel<2> for Rings {
    fn energy(&self, x: Tensor<2>) -> Tensor<1> {
        log_sum_exp(self.logits(self.distances(x).0)).neg()
    }

    fn energy_and_grad(&self, x: Tensor<2>) -> (Tensor<1>, Tensor<2>) {
        let x = x.without_autodiff();
        let (distances, radius) = self.distances(x.clone());
        let logits = self.logits(distances.clone());
        let pull = (activation::softmax(logits.clone(), 1) * distances).sum_dim(1);
        let slope = pull.div_scalar(self.thickness * self.thickness);
        let outward = x / radius.clamp_min(f32::MIN_POSITIVE);
        (log_sum_exp(logits).neg(), outward * slope)
    }
}
