//! A smooth checkerboard in the plane: eight dark squares with soft edges, and walls round the board.

use std::f64::consts::PI;

use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;
use rand_distr::StandardNormal;

use super::bessel::ln_bessel_i_scaled;
use crate::energy::EnergyModel;
use crate::error::{Result, ensure_positive};
use crate::noise::{Noise, Stream};

/// Half the width of the board: four squares of width 2 to each side.
const HALF: f32 = 4.0;

/// E(x, y) = -h sin(π x̄/2) sin(π ȳ/2) + (k/2) (|x - x̄|² + |y - ȳ|²), where x̄ and ȳ are x and y clamped to \[-4, 4\]:
/// the dark squares are those of the data set of that name, and outside the board the energy rises as a parabola.
///
/// ```text
/// Z = 64 I_0(h/2)² + 16 t + t²,   t = √(2π/k)
/// ```
///
/// with the modified Bessel function I_0. The gradient jumps at the edge of the board.
///
/// # Shapes
/// `[batch, 2]` to `[batch]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::EnergyModel;
/// use jem_core::energy::analytic::Checkerboard;
///
/// let board = Checkerboard::new(3.0, 10.0)?;
/// let x = Tensor::<2>::from_floats([[1.0, 1.0], [1.0, -1.0]], &Device::default()); // a dark and a light centre
/// assert_eq!(board.energy(x).into_data().try_to_vec::<f32>().unwrap(), [-3.0, 3.0]);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Checkerboard {
    contrast: f32,
    wall: f32,
}

impl Checkerboard {
    /// Contrast h and stiffness k of the wall.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless both are finite and above 0.
    pub fn new(contrast: f32, wall: f32) -> Result<Self> {
        ensure_positive("Checkerboard.contrast", contrast)?;
        ensure_positive("Checkerboard.wall", wall)?;
        Ok(Self { contrast, wall })
    }

    /// The masses of the board, of the four strips beside it, and of the four corners.
    fn masses(&self) -> [f64; 3] {
        let h = f64::from(self.contrast);
        let tails = (2.0 * PI / f64::from(self.wall)).sqrt();
        let board = 64.0 * (2.0 * ln_bessel_i_scaled(0.0, h / 2.0) + h).exp();
        [board, 16.0 * tails, tails * tails]
    }

    /// log ∫ exp(-E(x)) dx.
    pub fn log_normaliser(&self) -> f64 {
        self.masses().iter().sum::<f64>().ln()
    }

    /// Exact samples, drawn from [`Stream::DATA`] by rejection on the board; a contrast above 20 takes long.
    ///
    /// # Shapes
    /// `[count, 2]`.
    pub fn sample(&self, count: usize, noise: &mut Noise, device: &Device) -> Tensor<2> {
        let masses = self.masses();
        let (h, half) = (f64::from(self.contrast), f64::from(HALF));
        let tail = f64::from(self.wall).sqrt().recip();
        let rng = noise.rng(Stream::DATA);
        let mut values = Vec::with_capacity(2 * count);
        for _ in 0..count {
            let place = masses.iter().sum::<f64>() * rng.random::<f64>();
            let mut inside = || half * (2.0 * rng.random::<f64>() - 1.0);
            let mut point = [inside(), inside()];
            if place < masses[0] {
                let dark = |p: [f64; 2]| (PI * p[0] / 2.0).sin() * (PI * p[1] / 2.0).sin();
                while rng.random::<f64>().ln() >= h * (dark(point) - 1.0) {
                    point = [0, 1].map(|_| half * (2.0 * rng.random::<f64>() - 1.0));
                }
            } else {
                let corner = place >= masses[0] + masses[1];
                let first = usize::from(rng.random::<bool>());
                for (axis, value) in point.iter_mut().enumerate() {
                    if corner || axis == first {
                        let beyond = tail * rng.sample::<f64, _>(StandardNormal);
                        *value = beyond + half.copysign(beyond);
                    }
                }
            }
            values.extend(point.map(|value| value as f32));
        }
        Tensor::from_data(TensorData::new(values, [count, 2]), device)
    }
}

/// Places on the board, π/2 times, and how far beyond its edge; both `[batch, 2]`.
fn on_board(x: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
    let inside = x.clone().clamp(-HALF, HALF);
    (inside.clone().mul_scalar(PI / 2.0), x - inside)
}

impl EnergyModel<2> for Checkerboard {
    fn energy(&self, x: Tensor<2>) -> Tensor<1> {
        let (angle, beyond) = on_board(x);
        let sine = angle.sin();
        let dark = sine.clone().narrow(1, 0, 1) * sine.narrow(1, 1, 1);
        let wall = beyond.square().sum_dim(1).mul_scalar(0.5 * self.wall);
        (wall - dark.mul_scalar(self.contrast)).squeeze_dim(1)
    }

    fn energy_and_grad(&self, x: Tensor<2>) -> (Tensor<1>, Tensor<2>) {
        let x = x.without_autodiff();
        let energy = self.energy(x.clone());
        let (angle, beyond) = on_board(x);
        let sine = angle.clone().sin();
        let other = Tensor::cat(vec![sine.clone().narrow(1, 1, 1), sine.narrow(1, 0, 1)], 1);
        let outside = beyond.clone().not_equal_scalar(0.0);
        let slope = (angle.cos() * other).mul_scalar(-f64::from(self.contrast) * PI / 2.0);
        (energy, slope.mask_fill(outside, 0.0) + beyond.mul_scalar(self.wall))
    }
}
