//! Weighted sums of energies: products of densities, negation and tempering.

use burn::tensor::Tensor;

use crate::energy::EnergyModel;
use crate::error::{Result, ensure, ensure_not_negative, ensure_positive};

/// E(x) = Σ_i c_i E_i(x), the density Π_i p_i(x)^(c_i) up to a constant.
///
/// With coefficients below 0 there may be no density: the rest must rise faster.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::{EnergyModel, LinearCombination};
/// use jem_core::energy::analytic::{DoubleWell, Gaussian};
///
/// let parts: Vec<(f32, Box<dyn EnergyModel<2>>)> = vec![
///     (2.0, Box::new(Gaussian::standard())),
///     (0.5, Box::new(DoubleWell::new(1.0, 1.0)?)),
/// ];
/// let sum = LinearCombination::new(parts)?;
/// let x = Tensor::<2>::zeros([1, 1], &Device::default());
/// assert_eq!(sum.energy(x).into_scalar::<f32>(), 0.5);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LinearCombination<M> {
    pub(super) parts: Vec<(f32, M)>,
}

impl<M> LinearCombination<M> {
    /// Coefficients with their energies.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if there are none, or a coefficient is not finite.
    pub fn new(parts: Vec<(f32, M)>) -> Result<Self> {
        ensure(!parts.is_empty(), "LinearCombination: number of energies", 0, "at least 1")?;
        for (coefficient, _) in &parts {
            let finite = coefficient.is_finite();
            ensure(finite, "LinearCombination: coefficient", coefficient, "a finite number")?;
        }
        Ok(Self { parts })
    }
}

impl<const D: usize, M: EnergyModel<D>> EnergyModel<D> for LinearCombination<M> {
    fn energy(&self, x: Tensor<D>) -> Tensor<1> {
        let parts = self.parts.iter().map(|(c, model)| model.energy(x.clone()).mul_scalar(*c));
        parts.reduce(|sum, part| sum + part).unwrap_or_else(|| Tensor::zeros([x.dims()[0]], &x.device()))
    }

    fn energy_and_grad(&self, x: Tensor<D>) -> (Tensor<1>, Tensor<D>) {
        let parts = self.parts.iter().map(|(c, model)| {
            let (energy, gradient) = model.energy_and_grad(x.clone());
            (energy.mul_scalar(*c), gradient.mul_scalar(*c))
        });
        let sum = parts.reduce(|sum, part| (sum.0 + part.0, sum.1 + part.1));
        sum.unwrap_or_else(|| {
            let x = x.without_autodiff();
            (Tensor::zeros([x.dims()[0]], &x.device()), x.zeros_like())
        })
    }
}

/// E(x) = Σ_i E_i(x): the product of the densities, which all of them must find likely ("and").
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::{EnergyModel, Product};
/// use jem_core::energy::analytic::Gaussian;
///
/// // N(0, 1) times N(2, 1) is N(1, 1/2) up to a constant.
/// let product = Product::new(vec![Gaussian::standard(), Gaussian::new(2.0, 1.0)?])?;
/// let x = Tensor::<2>::from_floats([[1.0], [2.0]], &Device::default());
/// let e: Vec<f32> = product.energy(x).into_data().iter().collect();
/// assert_eq!(e[1] - e[0], 1.0); // (2 - 1)² / 2 · ½
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Hinton 2002, "Training products of experts by minimizing contrastive divergence"; Du, Li & Mordatch
/// 2020, "Compositional visual generation with energy based models", arXiv 2004.06030.
#[derive(Debug, Clone)]
pub struct Product<M>(pub(super) LinearCombination<M>);

impl<M> Product<M> {
    /// The product of these densities.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if there are none.
    pub fn new(models: Vec<M>) -> Result<Self> {
        ensure(!models.is_empty(), "Product: number of energies", 0, "at least 1")?;
        Ok(Self(LinearCombination { parts: models.into_iter().map(|model| (1.0, model)).collect() }))
    }
}

impl<const D: usize, M: EnergyModel<D>> EnergyModel<D> for Product<M> {
    fn energy(&self, x: Tensor<D>) -> Tensor<1> {
        self.0.energy(x)
    }

    fn energy_and_grad(&self, x: Tensor<D>) -> (Tensor<1>, Tensor<D>) {
        self.0.energy_and_grad(x)
    }
}

/// E(x) = E_1(x) - λ E_2(x): likely under the first and not under the second ("and not").
///
/// It is a density only where E_1 rises faster than λ E_2; far out E_2 would otherwise win. A bounded E_2, or a
/// λ well below 1, is safe.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::{EnergyModel, Negation};
/// use jem_core::energy::analytic::Gaussian;
///
/// let hollow = Negation::new(Gaussian::new(0.0, 2.0)?, Gaussian::standard(), 0.1)?;
/// let x = Tensor::<2>::from_floats([[2.0]], &Device::default());
/// assert!((hollow.energy(x).into_scalar::<f32>() - (0.5 - 0.2)).abs() < 1e-6);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Du, Li & Mordatch 2020, arXiv 2004.06030, section 3.3.
#[derive(Debug, Clone)]
pub struct Negation<A, B> {
    model: A,
    negated: B,
    strength: f32,
}

impl<A, B> Negation<A, B> {
    /// `model` and not `negated`, with `strength` λ.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless λ is finite and at least 0.
    pub fn new(model: A, negated: B, strength: f32) -> Result<Self> {
        ensure_not_negative("Negation.strength", strength)?;
        Ok(Self { model, negated, strength })
    }
}

impl<const D: usize, A: EnergyModel<D>, B: EnergyModel<D>> EnergyModel<D> for Negation<A, B> {
    fn energy(&self, x: Tensor<D>) -> Tensor<1> {
        self.model.energy(x.clone()) - self.negated.energy(x).mul_scalar(self.strength)
    }

    fn energy_and_grad(&self, x: Tensor<D>) -> (Tensor<1>, Tensor<D>) {
        let (energy, gradient) = self.model.energy_and_grad(x.clone());
        let (other, pull) = self.negated.energy_and_grad(x);
        (energy - other.mul_scalar(self.strength), gradient - pull.mul_scalar(self.strength))
    }
}

/// β E(x): the density p(x)^β, flatter for β < 1 and sharper for β > 1. β is one over a temperature.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::{EnergyModel, Tempered};
/// use jem_core::energy::analytic::Gaussian;
///
/// let cold = Tempered::new(Gaussian::standard(), 4.0)?; // N(0, 1/4)
/// let x = Tensor::<2>::from_floats([[1.0]], &Device::default());
/// assert_eq!(cold.energy(x).into_scalar::<f32>(), 2.0);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tempered<M> {
    pub(crate) model: M,
    pub(crate) inverse_temperature: f32,
}

impl<M> Tempered<M> {
    /// `model` at an inverse temperature of β.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless β is finite and above 0.
    pub fn new(model: M, beta: f32) -> Result<Self> {
        ensure_positive("Tempered.inverse_temperature", beta)?;
        Ok(Self { model, inverse_temperature: beta })
    }
}

impl<const D: usize, M: EnergyModel<D>> EnergyModel<D> for Tempered<M> {
    fn energy(&self, x: Tensor<D>) -> Tensor<1> {
        self.model.energy(x).mul_scalar(self.inverse_temperature)
    }

    fn energy_and_grad(&self, x: Tensor<D>) -> (Tensor<1>, Tensor<D>) {
        let (energy, gradient) = self.model.energy_and_grad(x);
        (energy.mul_scalar(self.inverse_temperature), gradient.mul_scalar(self.inverse_temperature))
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::energy::analytic::{Banana, DoubleWell, Gaussian, Rings};
    use crate::energy::energy_and_grad_by_autodiff;
    use crate::noise::{Noise, Stream};
    use burn::tensor::Device;

    fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    fn points() -> Tensor<2> {
        Noise::host(5).normal([20, 2], Stream::DATA, &Device::flex()).mul_scalar(2.0)
    }

    /// Energy against `expected`, and gradient against autodiff through the energy.
    fn agrees(model: &dyn EnergyModel<2>, expected: Tensor<1>) {
        let (energy, gradient) = model.energy_and_grad(points());
        assert!(energy.clone().all_close(expected, Some(1e-5), Some(1e-5)));
        assert!(model.energy(points()).all_close(energy, Some(1e-5), Some(1e-5)));
        let (_, auto) = energy_and_grad_by_autodiff(|x| model.energy(x), points());
        assert!(gradient.all_close(auto, Some(1e-3), Some(1e-3)));
    }

    #[test]
    fn sums_are_sums_with_their_gradients() {
        let (a, b) = (Banana::new(1.0, 0.5, 0.7).unwrap(), Rings::new(vec![1.0, 2.0], 0.5).unwrap());
        let (ea, eb) = (a.energy(points()), b.energy(points()));
        let models: Vec<&dyn EnergyModel<2>> = vec![&a, &b];
        agrees(&Product::new(models.clone()).unwrap(), ea.clone() + eb.clone());
        let weighted = vec![(0.5, models[0]), (-0.25, models[1])];
        let expected = ea.clone().mul_scalar(0.5) - eb.clone().mul_scalar(0.25);
        agrees(&LinearCombination::new(weighted).unwrap(), expected);
        agrees(&Negation::new(&a, &b, 0.3).unwrap(), ea.clone() - eb.mul_scalar(0.3));
        agrees(&Tempered::new(&a, 0.2).unwrap(), ea.mul_scalar(0.2));
    }

    /// N(μ_1, s_1²) N(μ_2, s_2²) ∝ N((μ_1/s_1² + μ_2/s_2²)/c, 1/c) with c = 1/s_1² + 1/s_2²; and an image is as good.
    #[test]
    fn a_product_of_gaussians_is_the_gaussian_of_the_closed_form() {
        let parts = vec![Gaussian::new(1.0, 0.5).unwrap(), Gaussian::new(-2.0, 2.0).unwrap()];
        let precision = 4.0f32 + 0.25;
        let closed = Gaussian::new((4.0 - 0.5) / precision, precision.sqrt().recip()).unwrap();
        let x = Noise::host(5).normal([6, 1, 2, 2], Stream::DATA, &Device::flex());
        let product = Product::new(parts).unwrap();
        let gap = values(EnergyModel::<4>::energy(&product, x.clone()) - closed.energy(x.clone()));
        assert!(gap.iter().all(|g| (g - gap[0]).abs() < 1e-4), "{gap:?}");
        let (found, expected) = (product.energy_and_grad(x.clone()).1, closed.energy_and_grad(x).1);
        assert!(found.all_close(expected, Some(1e-4), Some(1e-4)));
    }

    #[test]
    fn bad_parts_are_named() {
        let well = || DoubleWell::new(1.0, 1.0).unwrap();
        for (message, part) in [
            (Product::<DoubleWell>::new(vec![]).unwrap_err().to_string(), "Product"),
            (LinearCombination::<DoubleWell>::new(vec![]).unwrap_err().to_string(), "LinearCombination"),
            (LinearCombination::new(vec![(f32::NAN, well())]).unwrap_err().to_string(), "coefficient = NaN"),
            (Negation::new(well(), well(), -1.0).unwrap_err().to_string(), "Negation.strength = -1"),
            (Tempered::new(well(), 0.0).unwrap_err().to_string(), "Tempered.inverse_temperature = 0"),
        ] {
            assert!(message.contains(part), "{message}");
        }
    }
}
