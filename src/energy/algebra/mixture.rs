//! Mixtures of energies: what any of them finds likely.

use burn::tensor::{Tensor, TensorData, activation};

use crate::energy::EnergyModel;
use crate::error::{Result, ensure};
use crate::math::{log_sum_exp, per_chain};

/// E(x) = -log Σ_i exp(log w_i - E_i(x)): the density Σ_i w_i exp(-E_i(x)) up to a constant ("or").
///
/// The share of component i in the mixture is w_i Z_i / Σ_j w_j Z_j: for components of equal share, hand in
/// log w_i = -log Z_i.
///
/// # Shapes
/// `[batch, ..]` to `[batch]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::{EnergyModel, Mixture};
/// use jem_core::energy::analytic::{Gaussian, GaussianMixture};
///
/// let parts = vec![(0.0, Gaussian::new(-2.0, 1.0)?), (0.0, Gaussian::new(2.0, 1.0)?)];
/// let either = Mixture::new(parts)?;
/// let same = GaussianMixture::new(vec![vec![-2.0], vec![2.0]], 1.0)?;
/// let x = Tensor::<2>::from_floats([[0.5]], &Device::default());
/// let gap = either.energy(x.clone()) - same.energy(x);
/// assert!(gap.into_scalar::<f32>().abs() < 1e-6);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Du, Li & Mordatch 2020, arXiv 2004.06030, section 3.2; Du & Mordatch 2019, arXiv 1903.08689.
#[derive(Debug, Clone)]
pub struct Mixture<M> {
    pub(super) log_weights: Vec<f32>,
    pub(super) models: Vec<M>,
}

impl<M> Mixture<M> {
    /// Components with the logarithms of their weights, which need not sum to anything.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if there are none, or a weight is not finite.
    pub fn new(parts: Vec<(f32, M)>) -> Result<Self> {
        ensure(!parts.is_empty(), "Mixture: number of energies", 0, "at least 1")?;
        let (log_weights, models): (Vec<f32>, Vec<M>) = parts.into_iter().unzip();
        for weight in &log_weights {
            ensure(weight.is_finite(), "Mixture: log weight", weight, "a finite number")?;
        }
        Ok(Self { log_weights, models })
    }

    /// log w_i - E_i of the energies, `[batch, components]`.
    fn logits(&self, energies: Vec<Tensor<1>>) -> Tensor<2> {
        let energies: Tensor<2> = Tensor::stack(energies, 1);
        let weights = TensorData::new(self.log_weights.clone(), [1, self.log_weights.len()]);
        Tensor::<2>::from_data(weights, &energies.device()) - energies
    }
}

impl<const D: usize, M: EnergyModel<D>> EnergyModel<D> for Mixture<M> {
    fn energy(&self, x: Tensor<D>) -> Tensor<1> {
        let energies = self.models.iter().map(|model| model.energy(x.clone()));
        log_sum_exp(self.logits(energies.collect())).neg()
    }

    /// ∇E(x) = Σ_i p(i|x) ∇E_i(x).
    fn energy_and_grad(&self, x: Tensor<D>) -> (Tensor<1>, Tensor<D>) {
        let parts = self.models.iter().map(|model| model.energy_and_grad(x.clone()));
        let (energies, gradients): (Vec<_>, Vec<_>) = parts.unzip();
        let logits = self.logits(energies);
        let shares = activation::softmax(logits.clone(), 1);
        let gradient = gradients
            .into_iter()
            .enumerate()
            .map(|(i, gradient)| gradient * per_chain(shares.clone().narrow(1, i, 1).squeeze_dim::<1>(1)));
        let gradient = gradient.reduce(|sum, part| sum + part);
        let gradient = gradient.unwrap_or_else(|| x.without_autodiff().zeros_like());
        (log_sum_exp(logits).neg(), gradient)
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::energy::analytic::{Banana, Gaussian, Rings};
    use crate::energy::energy_and_grad_by_autodiff;
    use crate::noise::{Noise, Stream};
    use burn::tensor::Device;

    #[test]
    fn energy_and_gradient_are_those_of_the_formula() {
        let device = Device::flex();
        let x = Noise::host(6).normal([20, 2], Stream::DATA, &device).mul_scalar(2.0);
        let (a, b) = (Banana::new(1.0, 0.5, 0.7).unwrap(), Rings::new(vec![2.0], 0.5).unwrap());
        let models: Vec<(f32, &dyn EnergyModel<2>)> = vec![(0.7, &a), (-0.2, &b)];
        let mixture = Mixture::new(models).unwrap();
        let (energy, gradient) = mixture.energy_and_grad(x.clone());
        let likely = a.energy(x.clone()).neg().exp().mul_scalar(0.7f32.exp())
            + b.energy(x.clone()).neg().exp().mul_scalar((-0.2f32).exp());
        let near = likely.clone().greater_scalar(1e-30);
        let gap = (energy.clone() + likely.log()).abs().mask_fill(near.bool_not(), 0.0);
        assert!(gap.max().into_scalar::<f32>() < 1e-4);
        let (same, auto) = energy_and_grad_by_autodiff(|x| mixture.energy(x), x);
        assert!(energy.all_close(same, Some(1e-5), Some(1e-5)));
        assert!(gradient.all_close(auto, Some(1e-3), Some(1e-3)));
    }

    #[test]
    fn images_are_weighed_each_by_its_own_share() {
        let device = Device::flex();
        let x = Noise::host(6).normal([5, 2, 3, 2], Stream::DATA, &device);
        let parts = vec![(0.3, Gaussian::new(-0.5, 1.0).unwrap()), (0.0, Gaussian::new(0.5, 0.8).unwrap())];
        let mixture = Mixture::new(parts).unwrap();
        let (energy, gradient) = EnergyModel::<4>::energy_and_grad(&mixture, x.clone());
        let (same, auto) = energy_and_grad_by_autodiff(|x| mixture.energy(x), x);
        assert!(energy.all_close(same, Some(1e-5), Some(1e-5)));
        assert!(gradient.all_close(auto, Some(1e-4), Some(1e-4)));
    }

    /// At weights of 1/Z_i the mixture has Z = the number of components.
    #[test]
    fn weights_of_one_over_z_make_a_density_of_equal_shares() {
        let device = Device::flex();
        let parts = [Gaussian::new(-2.0, 0.5).unwrap(), Gaussian::new(2.0, 1.5).unwrap()];
        let parts = parts.map(|part| (-part.log_normaliser(1) as f32, part));
        let mixture = Mixture::new(parts.to_vec()).unwrap();
        let grid: Vec<f32> = (0..4000).map(|i| -10.0 + (i as f32 + 0.5) * 0.005).collect();
        let grid = Tensor::<2>::from_data(TensorData::new(grid, [4000, 1]), &device);
        let z = mixture.energy(grid).neg().exp().sum().into_scalar::<f32>() * 0.005;
        assert!((z - 2.0).abs() < 1e-3, "{z}");
    }

    #[test]
    fn bad_parts_are_named() {
        assert!(Mixture::<Gaussian>::new(vec![]).unwrap_err().to_string().starts_with("Mixture:"));
        let message = Mixture::new(vec![(f32::INFINITY, Gaussian::standard())]).unwrap_err().to_string();
        assert!(message.contains("log weight = inf"), "{message}");
    }
}
