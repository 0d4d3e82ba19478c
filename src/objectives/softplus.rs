//! log(1 + eˣ) without overflow, with the logistic function as its gradient everywhere.

use burn::tensor::Tensor;

use crate::math::log_sum_exp;

/// log(1 + exp x) = log(exp x + exp 0).
///
/// # Shapes
/// `[n]`, kept.
pub(super) fn softplus(x: Tensor<1>) -> Tensor<1> {
    let zero = x.zeros_like();
    log_sum_exp(Tensor::stack(vec![x, zero], 1))
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn value_and_gradient_hold_at_the_kink_and_far_out() {
        let at = [0.0f32, 1.5, -3.0, 200.0, -200.0];
        let x = Tensor::<1>::from_floats(at, &Device::flex().autodiff()).require_grad();
        let y = softplus(x.clone());
        let slope: Vec<f32> =
            x.grad(&y.clone().sum().backward()).unwrap().into_data().iter::<f32>().collect();
        let y: Vec<f32> = y.into_data().iter::<f32>().collect();
        for ((x, y), slope) in at.into_iter().zip(y).zip(slope) {
            let exact = f64::from(x).max(0.0) + (-f64::from(x).abs()).exp().ln_1p();
            let logistic = 1.0 / (1.0 + (-f64::from(x)).exp());
            assert!((f64::from(y) - exact).abs() < 1e-6 * exact.max(1.0), "{x}: {y}");
            assert!((f64::from(slope) - logistic).abs() < 1e-6, "{x}: {slope}");
        }
    }
}
