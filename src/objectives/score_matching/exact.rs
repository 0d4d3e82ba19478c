//! Score matching as Hyvärinen wrote it, for low dimensions: what the sliced objectives are checked against.

use burn::tensor::{Tensor, TensorData};

use crate::energy::EnergyModel;
use crate::math::{per_sample, sample_extent};

/// ½‖∇E(x)‖² - tr ∇²E(x) of every sample, with the gradient of the model itself and the Laplacian by central
/// differences of that gradient, one pair per coordinate:
///
/// ```text
/// tr ∇²E(x) ≈ Σ_i [∂_i E(x + δe_i) - ∂_i E(x - δe_i)] / 2δ
/// ```
///
/// It carries no gradient for parameters: it is for checks, and for watching a fit in few dimensions. A first
/// difference of a gradient bears a δ of about 0.01 in f32.
///
/// # Shapes
/// `[batch, ..]` to `[batch]`; 2d + 1 gradients for samples of d numbers.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::objectives::score_matching::exact_score_matching;
/// let x = Tensor::<2>::from_floats([[1.0, 2.0]], &Device::default());
/// let loss = exact_score_matching(&Gaussian::standard(), x, 0.01); // ½ ‖x‖² - 2
/// assert!((loss.into_scalar::<f32>() - 0.5).abs() < 1e-4);
/// ```
///
/// Source: Hyvärinen 2005, "Estimation of non-normalized statistical models by score matching".
pub fn exact_score_matching<const D: usize>(
    model: &dyn EnergyModel<D>,
    x: Tensor<D>,
    step: f64,
) -> Tensor<1> {
    let shape = x.dims();
    let [batch, dimension] = sample_extent(&shape);
    let x = x.without_autodiff();
    let gradient = per_sample(model.energy_and_grad(x.clone()).1);
    let mut loss = gradient.square().sum_dim(1).squeeze_dim::<1>(1).mul_scalar(0.5);
    for coordinate in 0..dimension {
        let shift: Vec<f64> =
            (0..batch * dimension).map(|at| if at % dimension == coordinate { step } else { 0.0 }).collect();
        let options = (&x.device(), x.dtype());
        let shift = Tensor::<D>::from_data(TensorData::new(shift, shape), options);
        let slope = |x: Tensor<D>| {
            per_sample(model.energy_and_grad(x).1).narrow(1, coordinate, 1).squeeze_dim::<1>(1)
        };
        let rise = slope(x.clone() + shift.clone()) - slope(x.clone() - shift);
        loss = loss - rise.div_scalar(2.0 * step);
    }
    loss
}
