//! Latent variables: the energy of an answer, with what is not observed minimised or marginalised out.

use burn::tensor::Tensor;

use crate::error::{Result, ensure_positive};
use crate::math::log_sum_exp;

/// E(Y, X) = min_Z E(Y, Z, X). Gradients flow to the lowest entry, the first of equal ones.
///
/// # Shapes
/// `[batch, answers, latents]` to `[batch, answers]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::inference::{EnergyTable, minimise_latent};
/// let energies = Tensor::from_floats([[[3.0, 1.0], [2.0, 4.0]]], &Device::default());
/// let table = EnergyTable::new(minimise_latent(energies))?; // [[1, 2]]
/// assert_eq!(table.lowest().energy.into_scalar::<f32>(), 1.0);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: LeCun et al. 2006, section 1.2.
pub fn minimise_latent(energies: Tensor<3>) -> Tensor<2> {
    let index = energies.clone().without_autodiff().argmin(2);
    energies.gather(2, index).squeeze_dim(2)
}

/// E(Y, X) = -(1/β) log Σ_Z exp(-β E(Y, Z, X)).
///
/// # Shapes
/// `[batch, answers, latents]` to `[batch, answers]`.
///
/// # Errors
/// [`Error::Config`](crate::Error::Config) unless β is finite and above 0.
///
/// Source: LeCun et al. 2006, section 1.3.
pub fn marginalise_latent(energies: Tensor<3>, inverse_temperature: f64) -> Result<Tensor<2>> {
    ensure_positive("marginalise_latent.inverse_temperature", inverse_temperature)?;
    let [batch, answers, latents] = energies.dims();
    let rows = energies.reshape([batch * answers, latents]).mul_scalar(-inverse_temperature);
    Ok(log_sum_exp(rows).div_scalar(-inverse_temperature).reshape([batch, answers]))
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn both_reductions_agree_with_their_formulas() {
        let energies = [[[3.0f32, 1.0, 2.0], [0.5, 4.0, -1.0]]];
        let tensor = Tensor::<3>::from_floats(energies, &Device::flex());
        let lowest: Vec<f32> = minimise_latent(tensor.clone()).into_data().iter::<f32>().collect();
        assert_eq!(lowest, [1.0, -1.0]);
        let soft: Vec<f32> =
            marginalise_latent(tensor.clone(), 2.0).unwrap().into_data().iter::<f32>().collect();
        for (row, soft) in energies[0].iter().zip(soft) {
            let expected = -row.iter().map(|e| (-2.0 * e).exp()).sum::<f32>().ln() / 2.0;
            assert!((soft - expected).abs() < 1e-6);
        }
        assert!(marginalise_latent(tensor, 0.0).is_err());
    }
}
