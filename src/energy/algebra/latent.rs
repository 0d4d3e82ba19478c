//! Latent variables with finitely many values, summed or minimised out of an energy.

use burn::tensor::{Int, Tensor};

use crate::energy::{ConditionalEnergy, EnergyModel};
use crate::error::{Result, ensure, ensure_positive};
use crate::math::log_sum_exp;

/// An energy of a sample and a latent variable z that takes one of finitely many values.
///
/// # Shapes
/// `[batch, ..]` to `[batch, values]`.
pub trait LatentEnergy<const D: usize> {
    /// E(x, z) for every value of z.
    fn energies(&self, x: Tensor<D>) -> Tensor<2>;
}

impl<const D: usize, L: LatentEnergy<D> + ?Sized> LatentEnergy<D> for &L {
    fn energies(&self, x: Tensor<D>) -> Tensor<2> {
        (**self).energies(x)
    }
}

impl<const D: usize, L: LatentEnergy<D> + ?Sized> LatentEnergy<D> for Box<L> {
    fn energies(&self, x: Tensor<D>) -> Tensor<2> {
        (**self).energies(x)
    }
}

/// The label of a [`ConditionalEnergy`] as a latent variable: one evaluation per value.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::{FiniteLatent, JointEnergy, LatentEnergy};
/// use jem_core::energy::analytic::GaussianMixture;
///
/// let joint = JointEnergy::new(GaussianMixture::new(vec![vec![-2.0], vec![2.0]], 1.0)?);
/// let latent = FiniteLatent::new(joint, 2)?;
/// let x = Tensor::<2>::from_floats([[2.0]], &Device::default());
/// assert_eq!(latent.energies(x).into_data().try_to_vec::<f32>().unwrap(), [8.0, 0.0]);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FiniteLatent<M> {
    model: M,
    count: usize,
}

impl<M> FiniteLatent<M> {
    /// z in 0 .. `count`.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if there is no value.
    pub fn new(model: M, count: usize) -> Result<Self> {
        ensure(count > 0, "FiniteLatent.count", count, "at least 1")?;
        Ok(Self { model, count })
    }
}

impl<const D: usize, M: ConditionalEnergy<D>> LatentEnergy<D> for FiniteLatent<M> {
    fn energies(&self, x: Tensor<D>) -> Tensor<2> {
        let each = (0..self.count).map(|value| {
            let labels = Tensor::<1, Int>::full([x.dims()[0]], value as i64, &x.device());
            self.model.energy_given(x.clone(), labels)
        });
        Tensor::stack(each.collect(), 1)
    }
}

/// E(x) = min_z E(x, z): the latent variable at its best.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::{EnergyModel, FiniteLatent, JointEnergy, Minimum};
/// use jem_core::energy::analytic::GaussianMixture;
///
/// let joint = JointEnergy::new(GaussianMixture::new(vec![vec![-2.0], vec![2.0]], 1.0)?);
/// let nearest = Minimum::new(FiniteLatent::new(joint, 2)?);
/// let x = Tensor::<2>::from_floats([[1.0]], &Device::default());
/// assert_eq!(nearest.energy(x).into_scalar::<f32>(), 0.5);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: LeCun et al., "A tutorial on energy-based learning", 2006, section 1.4.
#[derive(Debug, Clone)]
pub struct Minimum<L> {
    latent: L,
}

impl<L> Minimum<L> {
    /// `latent` with z minimised out.
    pub fn new(latent: L) -> Self {
        Self { latent }
    }
}

impl<const D: usize, L: LatentEnergy<D>> EnergyModel<D> for Minimum<L> {
    fn energy(&self, x: Tensor<D>) -> Tensor<1> {
        self.latent.energies(x).min_dim(1).squeeze_dim(1)
    }
}

/// E(x) = -(1/β) log Σ_z exp(-β E(x, z)): the latent variable summed out. It tends to [`Minimum`] as β grows.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::{EnergyModel, FiniteLatent, FreeEnergy, JointEnergy};
/// use jem_core::energy::analytic::GaussianMixture;
///
/// let mixture = GaussianMixture::new(vec![vec![-2.0], vec![2.0]], 1.0)?;
/// let free = FreeEnergy::new(FiniteLatent::new(JointEnergy::new(mixture.clone()), 2)?);
/// let x = Tensor::<2>::from_floats([[1.0]], &Device::default());
/// let gap = free.energy(x.clone()) - mixture.energy(x);
/// assert!(gap.into_scalar::<f32>().abs() < 1e-6);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: LeCun et al., "A tutorial on energy-based learning", 2006, section 1.4.
#[derive(Debug, Clone)]
pub struct FreeEnergy<L> {
    latent: L,
    inverse_temperature: f32,
}

impl<L> FreeEnergy<L> {
    /// `latent` with z summed out at β = 1.
    pub fn new(latent: L) -> Self {
        Self { latent, inverse_temperature: 1.0 }
    }

    /// The same at another inverse temperature.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless β is finite and above 0.
    pub fn with_inverse_temperature(mut self, beta: f32) -> Result<Self> {
        ensure_positive("FreeEnergy.inverse_temperature", beta)?;
        self.inverse_temperature = beta;
        Ok(self)
    }
}

impl<const D: usize, L: LatentEnergy<D>> EnergyModel<D> for FreeEnergy<L> {
    fn energy(&self, x: Tensor<D>) -> Tensor<1> {
        let beta = self.inverse_temperature;
        log_sum_exp(self.latent.energies(x).mul_scalar(-beta)).div_scalar(-beta)
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::energy::JointEnergy;
    use crate::energy::analytic::GaussianMixture;
    use crate::noise::{Noise, Stream};
    use burn::tensor::Device;

    #[test]
    fn the_free_energy_is_the_joint_models_and_tends_to_the_minimum() {
        let means = vec![vec![-1.0, 0.0], vec![1.0, 0.5], vec![0.0, 2.0]];
        let joint = JointEnergy::new(GaussianMixture::new(means, 0.8).unwrap());
        let latent = FiniteLatent::new(&joint, 3).unwrap();
        let x = Noise::host(8).normal([30, 2], Stream::DATA, &Device::flex());
        let free = FreeEnergy::new(&latent);
        let (energy, gradient) = free.energy_and_grad(x.clone());
        let (expected, slope) = joint.energy_and_grad(x.clone());
        assert!(energy.clone().all_close(expected, Some(1e-5), Some(1e-5)));
        assert!(gradient.all_close(slope, Some(1e-4), Some(1e-4)));
        // 0 <= min - free <= log(3)/β.
        let minimum = Minimum::new(&latent).energy(x.clone());
        for beta in [1.0f32, 1000.0] {
            let free = FreeEnergy::new(&latent).with_inverse_temperature(beta).unwrap();
            let gap = minimum.clone() - free.energy(x.clone());
            let (low, high) = (gap.clone().min().into_scalar::<f32>(), gap.max().into_scalar::<f32>());
            assert!(low > -1e-4 && high < 3f32.ln() / beta + 1e-4, "{beta}: {low} {high}");
        }
        // The gradient of the minimum is that of the nearest component.
        let near = Tensor::<2>::from_floats([[1.0, 0.6]], &Device::flex());
        let (_, gradient) = Minimum::new(&latent).energy_and_grad(near);
        let gradient: Vec<f32> = gradient.into_data().iter::<f32>().collect();
        assert!(gradient[0].abs() < 1e-6 && (gradient[1] - 0.1 / 0.64).abs() < 1e-5, "{gradient:?}");
    }

    #[test]
    fn bad_settings_are_named() {
        assert!(FiniteLatent::new((), 0).unwrap_err().to_string().contains("FiniteLatent.count = 0"));
        let message = FreeEnergy::new(()).with_inverse_temperature(f32::NAN).unwrap_err().to_string();
        assert!(message.contains("FreeEnergy.inverse_temperature = NaN"), "{message}");
    }
}
