//! Small numerics that several rooms need: stable log-sum-exp, per-sample norms, the nearest points of balls.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// How the distance of two samples is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Norm {
    /// The largest difference of a coordinate (of a pixel), L∞.
    Linf,
    /// The Euclidean length of the difference, L2.
    L2,
}

/// log Σ_j exp(x\[i, j\]) for each row i, stable for large entries.
///
/// # Shapes
/// `[batch, classes]` to `[batch]`.
pub fn log_sum_exp(x: Tensor<2>) -> Tensor<1> {
    let max = x.clone().detach().max_dim(1);
    let shifted = x - max.clone();
    (shifted.exp().sum_dim(1).log() + max).squeeze_dim(1)
}

/// ‖x\[i\]‖₂ for each sample i.
///
/// # Shapes
/// `[batch, ..]` to `[batch]`.
pub fn sample_norms<const D: usize>(x: Tensor<D>) -> Tensor<1> {
    per_sample(x).square().sum_dim(1).sqrt().squeeze_dim(1)
}

/// Every sample as one row.
///
/// # Shapes
/// `[batch, ..]` to `[batch, elements]`.
pub fn per_sample<const D: usize>(x: Tensor<D>) -> Tensor<2> {
    let [batch, elements] = sample_extent(&x.dims());
    x.reshape([batch, elements])
}

/// One number per sample, shaped to combine with a batch of rank `D`.
///
/// # Shapes
/// `[batch]` to `[batch, 1, ..]`.
pub fn per_chain<const D: usize>(values: Tensor<1>) -> Tensor<D> {
    let mut shape = [1; D];
    shape[0] = values.dims()[0];
    values.reshape(shape)
}

/// The nearest point to each sample within `radius` of its centre, up to the rounding of f32.
///
/// # Shapes
/// Samples and centres are `[batch, ..]`.
pub fn into_ball<const D: usize>(x: Tensor<D>, centres: Tensor<D>, radius: f64, norm: Norm) -> Tensor<D> {
    match norm {
        Norm::Linf => {
            let low = centres.clone().sub_scalar(radius);
            x.max_pair(low).min_pair(centres.add_scalar(radius))
        }
        Norm::L2 => {
            let offset = x - centres.clone();
            let norms = sample_norms(offset.clone()).clamp_min(f32::MIN_POSITIVE);
            let factors = norms.recip().mul_scalar(radius).clamp_max(1.0);
            centres + offset * per_chain(factors)
        }
    }
}

/// The number of samples and of elements in one sample.
pub fn sample_extent(dims: &[usize]) -> [usize; 2] {
    let batch = dims.first().copied().unwrap_or(1);
    [batch, dims.iter().skip(1).product()]
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn log_sum_exp_is_right_and_does_not_overflow() {
        let x = Tensor::<2>::from_floats([[0.0, 0.0], [1000.0, 999.0], [-1000.0, -1000.0]], &Device::flex());
        let y: Vec<f32> = log_sum_exp(x).into_data().try_to_vec().unwrap();
        for (found, expected) in y.iter().zip([2f32.ln(), 1_000.313_3, -1000.0 + 2f32.ln()]) {
            assert!((found - expected).abs() < 1e-3, "{found} != {expected}");
        }
    }

    #[test]
    fn norms_are_per_sample() {
        let x = Tensor::<3>::from_floats([[[3.0], [4.0]], [[0.0], [0.0]]], &Device::flex());
        let y: Vec<f32> = sample_norms(x).into_data().try_to_vec().unwrap();
        assert_eq!(y, vec![5.0, 0.0]);
    }
}
