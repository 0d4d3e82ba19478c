//! Small numerics that several rooms need: stable log-sum-exp and per-sample norms.

use burn::tensor::Tensor;

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
