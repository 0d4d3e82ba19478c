//! The banana: a Gaussian bent along a parabola, narrow and curved.

use burn::tensor::{Device, Tensor};

use crate::energy::EnergyModel;
use crate::error::{Result, ensure, ensure_positive};
use crate::noise::{Noise, Stream};

/// E(x, y) = x² / 2a² + (y - b (x² - a²))² / 2s²: a Gaussian of widths a and s, bent by b.
///
/// The bend keeps areas, so that log Z = log(2π a s), and (a u, b a² (u² - 1) + s v) with u, v from N(0, 1) is an
/// exact sample.
///
/// # Shapes
/// `[batch, 2]` to `[batch]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::EnergyModel;
/// use jem_core::energy::analytic::Banana;
///
/// let banana = Banana::new(1.0, 1.0, 0.5)?;
/// let x = Tensor::<2>::from_floats([[2.0, 3.0]], &Device::default()); // on the spine
/// assert_eq!(banana.energy(x).into_scalar::<f32>(), 2.0);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Haario, Saksman & Tamminen 1999, "Adaptive proposal distribution for random walk Metropolis
/// algorithm", doi 10.1007/s001800050022.
#[derive(Debug, Clone, PartialEq)]
pub struct Banana {
    width: f32,
    bend: f32,
    thickness: f32,
}

impl Banana {
    /// Width a, bend b and thickness s.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless all are finite, the width and the thickness above 0.
    pub fn new(width: f32, bend: f32, thickness: f32) -> Result<Self> {
        ensure_positive("Banana.width", width)?;
        ensure(bend.is_finite(), "Banana.bend", bend, "a finite number")?;
        ensure_positive("Banana.thickness", thickness)?;
        Ok(Self { width, bend, thickness })
    }

    /// log ∫ exp(-E(x)) dx.
    pub fn log_normaliser(&self) -> f64 {
        (2.0 * std::f64::consts::PI * f64::from(self.width) * f64::from(self.thickness)).ln()
    }

    /// Exact samples, drawn from [`Stream::DATA`].
    ///
    /// # Shapes
    /// `[count, 2]`.
    pub fn sample(&self, count: usize, noise: &mut Noise, device: &Device) -> Tensor<2> {
        let draws = noise.normal([count, 2], Stream::DATA, device);
        let x = draws.clone().narrow(1, 0, 1).mul_scalar(self.width);
        let y = self.spine(x.clone()) + draws.narrow(1, 1, 1).mul_scalar(self.thickness);
        Tensor::cat(vec![x, y], 1)
    }

    /// b (x² - a²).
    fn spine(&self, x: Tensor<2>) -> Tensor<2> {
        x.square().sub_scalar(self.width * self.width).mul_scalar(self.bend)
    }

    /// x/a and (y - b (x² - a²))/s, both `[batch, 1]`.
    fn straightened(&self, x: Tensor<2>) -> [Tensor<2>; 2] {
        let along = x.clone().narrow(1, 0, 1);
        let across = x.narrow(1, 1, 1) - self.spine(along.clone());
        [along.div_scalar(self.width), across.div_scalar(self.thickness)]
    }
}

impl EnergyModel<2> for Banana {
    fn energy(&self, x: Tensor<2>) -> Tensor<1> {
        let [along, across] = self.straightened(x);
        (along.square() + across.square()).mul_scalar(0.5).squeeze_dim(1)
    }

    fn energy_and_grad(&self, x: Tensor<2>) -> (Tensor<1>, Tensor<2>) {
        let [along, across] = self.straightened(x.without_autodiff());
        let energy = (along.clone().square() + across.clone().square()).mul_scalar(0.5).squeeze_dim(1);
        let in_y = across.div_scalar(self.thickness);
        let in_x = along.clone().div_scalar(self.width)
            - in_y.clone() * along.mul_scalar(2.0 * self.bend * self.width);
        (energy, Tensor::cat(vec![in_x, in_y], 1))
    }
}
