//! Neal's funnel: a Gaussian whose width is itself a random number, narrow at one end and wide at the other.

use burn::tensor::{Device, Tensor};

use crate::energy::EnergyModel;
use crate::error::{Result, ensure_positive};
use crate::noise::{Noise, Stream};

/// v ~ N(0, s²) in the first coordinate and N(0, e^v) in each of the others:
///
/// ```text
/// E(v, x) = v² / 2s² + e^(-v) ‖x‖² / 2 + n v / 2,   log Z = log s + ((n + 1)/2) log 2π
/// ```
///
/// with n the number of the others. No single step suits both ends: in the neck (v < 0) the curvature is e^(-v).
///
/// # Shapes
/// `[batch, 1 + n]` to `[batch]`, with n of 1 or more.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::EnergyModel;
/// use jem_core::energy::analytic::Funnel;
///
/// let funnel = Funnel::new(3.0)?;
/// let x = Tensor::<2>::from_floats([[0.0, 1.0, 2.0]], &Device::default());
/// assert_eq!(funnel.energy(x).into_scalar::<f32>(), 2.5);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Neal 2003, "Slice sampling", doi 10.1214/aos/1056562461, section 8, where s = 3 and n = 9.
#[derive(Debug, Clone, PartialEq)]
pub struct Funnel {
    deviation: f32,
}

impl Funnel {
    /// The funnel whose first coordinate has this deviation.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless it is finite and above 0.
    pub fn new(deviation: f32) -> Result<Self> {
        ensure_positive("Funnel.deviation", deviation)?;
        Ok(Self { deviation })
    }

    /// log ∫ exp(-E(x)) dx in `dimension` dimensions, the first included.
    pub fn log_normaliser(&self, dimension: usize) -> f64 {
        f64::from(self.deviation).ln() + 0.5 * dimension as f64 * (2.0 * std::f64::consts::PI).ln()
    }

    /// Exact samples, drawn from [`Stream::DATA`].
    ///
    /// # Shapes
    /// `[count, 1 + n]`, as asked for.
    pub fn sample(&self, shape: [usize; 2], noise: &mut Noise, device: &Device) -> Tensor<2> {
        let draws = noise.normal(shape, Stream::DATA, device);
        let v = draws.clone().narrow(1, 0, 1).mul_scalar(self.deviation);
        let x = draws.narrow(1, 1, shape[1] - 1) * v.clone().mul_scalar(0.5).exp();
        Tensor::cat(vec![v, x], 1)
    }

    /// v, x and e^(-v).
    fn parts(x: Tensor<2>) -> [Tensor<2>; 3] {
        let others = x.dims()[1] - 1;
        let v = x.clone().narrow(1, 0, 1);
        [v.clone(), x.narrow(1, 1, others), v.neg().exp()]
    }
}

impl EnergyModel<2> for Funnel {
    fn energy(&self, x: Tensor<2>) -> Tensor<1> {
        let [v, x, precision] = Self::parts(x);
        let others = x.dims()[1] as f32;
        let first = v.clone().div_scalar(self.deviation).square().mul_scalar(0.5);
        let rest = precision * x.square().sum_dim(1).mul_scalar(0.5) + v.mul_scalar(0.5 * others);
        (first + rest).squeeze_dim(1)
    }

    fn energy_and_grad(&self, x: Tensor<2>) -> (Tensor<1>, Tensor<2>) {
        let x = x.without_autodiff();
        let energy = self.energy(x.clone());
        let [v, x, precision] = Self::parts(x);
        let others = x.dims()[1] as f32;
        let pull = precision.clone() * x.clone().square().sum_dim(1).mul_scalar(0.5);
        let in_v = v.div_scalar(self.deviation * self.deviation) - pull.sub_scalar(0.5 * others);
        (energy, Tensor::cat(vec![in_v, x * precision], 1))
    }
}
