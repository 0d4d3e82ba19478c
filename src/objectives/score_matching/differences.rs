//! Directional derivatives of an energy by finite differences, with gradients to its parameters.

use burn::tensor::{Device, Tensor};

use crate::energy::EnergyModel;
use crate::error::{Error, Result, ensure, ensure_positive};
use crate::noise::{Noise, Stream};

/// What v is drawn from.
const DIRECTIONS: Stream = Stream::new("score_matching/directions");

/// The first two derivatives of E at x along v, by differences.
///
/// # Shapes
/// Each `[batch]`.
#[derive(Debug, Clone)]
pub struct DirectionalDifferences {
    /// E(x).
    pub energy: Tensor<1>,
    /// v·∇E(x) ≈ \[E(x+δv) - E(x-δv)\] / 2δ.
    pub slope: Tensor<1>,
    /// vᵀ∇²E(x)v ≈ \[E(x+δv) - 2E(x) + E(x-δv)\] / δ².
    pub curvature: Tensor<1>,
}

/// Slope and curvature of the energy along v, from three energies in one batch.
///
/// # Step size
/// The differences leave out terms in δ² (a sixth of the third derivative along v, a twelfth of the fourth), and
/// rounding adds about u|E|/δ to the slope and 4u|E|/δ² to the curvature, with u = 6e-8 in f32. The best δ is
/// near (3u)^⅓ = 0.006 for the slope and (48u)^¼ = 0.04 for the curvature, times the scale of x on which the
/// energy changes. Root mean square errors on E(x) = Σ x⁴/4 + x_1 x_2 in the plane, for 256 points of N(0, 1) and
/// v of length √2, relative to the root mean square of the exact values:
///
/// | δ | slope, f32 | curvature, f32 | slope, f64 | curvature, f64 |
/// | --- | --- | --- | --- | --- |
/// | 1 | 2e-1 | 1e-1 | 2e-1 | 1e-1 |
/// | 0.3 | 2e-2 | 1e-2 | 2e-2 | 1e-2 |
/// | 0.1 | 2e-3 | 1e-3 | 2e-3 | 1e-3 |
/// | 0.05 | 5e-4 | 3e-4 | 5e-4 | 3e-4 |
/// | 0.03 | 2e-4 | 1e-4 | 2e-4 | 1e-4 |
/// | 0.01 | 2e-5 | 5e-4 | 2e-5 | 1e-5 |
/// | 0.003 | 1e-5 | 6e-3 | 2e-6 | 1e-6 |
/// | 0.001 | 6e-5 | 5e-2 | 2e-7 | 1e-7 |
/// | 0.0001 | 8e-4 | 10 | 2e-9 | 8e-9 |
///
/// A constant added to all energies costs accuracy as well: |E| is the size of the numbers, not their spread.
///
/// # Shapes
/// `x` and `v` are `[batch, ..]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::objectives::score_matching::directional_differences;
///
/// let device = Device::default();
/// let x = Tensor::<2>::from_floats([[1.0, 2.0]], &device);
/// let v = Tensor::<2>::from_floats([[1.0, -1.0]], &device);
/// let along = directional_differences(&Gaussian::standard(), x, v, 0.1); // ∇E(x) = x, ∇²E = I
/// assert!((along.slope.into_scalar::<f32>() + 1.0).abs() < 1e-4);
/// assert!((along.curvature.into_scalar::<f32>() - 2.0).abs() < 1e-3);
/// ```
///
/// Source: Pang et al. 2020, arXiv 2007.03317.
pub fn directional_differences<const D: usize>(
    model: &dyn EnergyModel<D>,
    x: Tensor<D>,
    v: Tensor<D>,
    step: f64,
) -> DirectionalDifferences {
    let batch = x.dims()[0];
    let shift = v.mul_scalar(step);
    let points = vec![x.clone() + shift.clone(), x.clone() - shift, x];
    let energies = model.energy(Tensor::cat(points, 0));
    let part = |at: usize| energies.clone().narrow(0, at * batch, batch);
    let (ahead, behind, energy) = (part(0), part(1), part(2));
    // Neighbours are subtracted before the sums, where they are close.
    let (rise, fall) = (ahead.clone() - energy.clone(), energy.clone() - behind.clone());
    DirectionalDifferences {
        slope: (ahead - behind).div_scalar(2.0 * step),
        curvature: (rise - fall).div_scalar(step * step),
        energy,
    }
}

/// The slope v·∇E(x) alone, from two energies in one batch.
///
/// # Shapes
/// `[batch, ..]` to `[batch]`.
pub fn directional_slope<const D: usize>(
    model: &dyn EnergyModel<D>,
    x: Tensor<D>,
    v: Tensor<D>,
    step: f64,
) -> Tensor<1> {
    let batch = x.dims()[0];
    let shift = v.mul_scalar(step);
    let energies = model.energy(Tensor::cat(vec![x.clone() + shift.clone(), x - shift], 0));
    let (ahead, behind) = (energies.clone().narrow(0, 0, batch), energies.narrow(0, batch, batch));
    (ahead - behind).div_scalar(2.0 * step)
}

/// Directions whose coordinates are ±1 with equal probability: E\[vvᵀ\] = I, as sliced and denoising score matching
/// ask for, the same length √d for all, and less variance in vᵀ∇²E v than normal ones have.
///
/// # Shapes
/// As asked for.
pub fn rademacher<const D: usize>(shape: [usize; D], noise: &mut Noise, device: &Device) -> Tensor<D> {
    let uniform = noise.uniform(shape, -1.0..1.0, DIRECTIONS, device);
    let ones = uniform.ones_like();
    ones.clone().mask_where(uniform.lower_elem(0.0), ones.neg())
}

/// Checks δ and the number of directions of `config`.
pub(super) fn check_directions(config: &str, step: f64, num_projections: usize) -> Result<()> {
    ensure_positive(&format!("{config}.step"), step)?;
    ensure(num_projections > 0, &format!("{config}.num_projections"), num_projections, "at least 1")
}

/// Every sample as often as there are directions for it; an empty batch is an error.
pub(super) fn one_per_direction<const D: usize>(x: Tensor<D>, num_projections: usize) -> Result<Tensor<D>> {
    if x.dims()[0] == 0 {
        return Err(Error::shape("score matching batch", &x.dims(), "one sample at least"));
    }
    Ok(x.repeat_dim(0, num_projections))
}
