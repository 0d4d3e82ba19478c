//! Energies written as sums: a box with operators.

use std::fmt;
use std::ops::{Add, Mul, Sub};

use burn::tensor::Tensor;

use super::{LinearCombination, Mixture, Product};
use crate::energy::EnergyModel;

/// Any energy as a value that can be added, subtracted and multiplied by a number.
///
/// | written | means | energy |
/// | --- | --- | --- |
/// | `a + b` | a and b: [`Product`] | E_a + E_b |
/// | `a - 0.5 * b` | a and not b: [`Negation`](super::Negation) | E_a - E_b / 2 |
/// | `2.0 * a` | a, sharper: [`Tempered`](super::Tempered) | 2 E_a |
/// | `a.or(b)` | a or b: [`Mixture`] of weights 1 | -log(exp(-E_a) + exp(-E_b)) |
///
/// It holds a model or a reference to one.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::{Energy, EnergyModel};
/// use jem_core::energy::analytic::{Banana, Rings};
///
/// let (banana, rings) = (Banana::new(1.0, 0.5, 0.5)?, Rings::new(vec![2.0], 0.3)?);
/// let mixed = Energy::new(&banana) + 0.5 * Energy::new(&rings);
/// let x = Tensor::<2>::from_floats([[0.0, 1.0]], &Device::default());
/// let expected = banana.energy(x.clone()) + rings.energy(x.clone()).mul_scalar(0.5);
/// assert_eq!(mixed.energy(x).into_scalar::<f32>(), expected.into_scalar::<f32>());
/// # Ok::<(), jem_core::Error>(())
/// ```
pub struct Energy<'a, const D: usize>(Box<dyn EnergyModel<D> + 'a>);

impl<'a, const D: usize> Energy<'a, D> {
    /// `model` as a value.
    pub fn new(model: impl EnergyModel<D> + 'a) -> Self {
        Self(Box::new(model))
    }

    /// This or `other`, with weights of 1. The share of each is in proportion to its Z.
    pub fn or(self, other: Self) -> Self {
        Self::new(Mixture { log_weights: vec![0.0, 0.0], models: vec![self, other] })
    }

    fn combined(parts: Vec<(f32, Self)>) -> Self {
        Self::new(LinearCombination { parts })
    }
}

impl<const D: usize> fmt::Debug for Energy<'_, D> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Energy").finish_non_exhaustive()
    }
}

impl<const D: usize> EnergyModel<D> for Energy<'_, D> {
    fn energy(&self, x: Tensor<D>) -> Tensor<1> {
        self.0.energy(x)
    }

    fn energy_and_grad(&self, x: Tensor<D>) -> (Tensor<1>, Tensor<D>) {
        self.0.energy_and_grad(x)
    }
}

impl<const D: usize> Add for Energy<'_, D> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::new(Product(LinearCombination { parts: vec![(1.0, self), (1.0, other)] }))
    }
}

impl<const D: usize> Sub for Energy<'_, D> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self::combined(vec![(1.0, self), (-1.0, other)])
    }
}

impl<const D: usize> Mul<f32> for Energy<'_, D> {
    type Output = Self;

    fn mul(self, factor: f32) -> Self {
        Self::combined(vec![(factor, self)])
    }
}

impl<'a, const D: usize> Mul<Energy<'a, D>> for f32 {
    type Output = Energy<'a, D>;

    fn mul(self, energy: Energy<'a, D>) -> Energy<'a, D> {
        energy * self
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::energy::analytic::{Gaussian, Rings};
    use crate::energy::{Negation, Tempered};
    use crate::noise::{Noise, Stream};
    use burn::tensor::Device;

    #[test]
    fn operators_are_the_named_combinations() {
        let x = Noise::host(9).normal([10, 2], Stream::DATA, &Device::flex());
        let (a, b) = (Gaussian::new(0.5, 0.8).unwrap(), Rings::new(vec![1.0], 0.4).unwrap());
        let (one, two): (&dyn EnergyModel<2>, &dyn EnergyModel<2>) = (&a, &b);
        let pairs: Vec<(Energy<2>, Box<dyn EnergyModel<2> + '_>)> = vec![
            (Energy::new(one) + Energy::new(two), Box::new(Product::new(vec![one, two]).unwrap())),
            (Energy::new(one) - 0.5 * Energy::new(two), Box::new(Negation::new(one, two, 0.5).unwrap())),
            (Energy::new(one) * 3.0, Box::new(Tempered::new(one, 3.0).unwrap())),
            (Energy::new(one).or(Energy::new(two)), {
                Box::new(Mixture::new(vec![(0.0, one), (0.0, two)]).unwrap())
            }),
        ];
        for (written, named) in pairs {
            let (found, expected) = (written.energy_and_grad(x.clone()), named.energy_and_grad(x.clone()));
            assert!(found.0.all_close(expected.0, Some(1e-5), Some(1e-6)));
            assert!(found.1.all_close(expected.1, Some(1e-5), Some(1e-6)));
            assert!(written.energy(x.clone()).all_close(named.energy(x.clone()), Some(1e-5), Some(1e-6)));
        }
    }
}
