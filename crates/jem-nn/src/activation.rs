//! Activations, alone and with a convolution behind them.

use burn::nn::conv::Conv2d;
use burn::tensor::{Tensor, activation};
use serde::{Deserialize, Serialize};

use jem_core::error::{Result, ensure};

/// max(x, 0) + a min(x, 0) for a slope a.
///
/// Burn's own leaky ReLU is differentiated through mask operations, which cost two to four times as much as the
/// same composed of scalings and a ReLU: a x + max((1 - a) x, 0), an order that lets a backend work in place. On
/// the CPU backend, with the feature `kernels`, it is one pass over the numbers each way.
///
/// # Shapes
/// Any, kept.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_nn::leaky_relu;
///
/// let x = Tensor::<1>::from_floats([-1.0, 0.0, 2.0], &Device::default());
/// assert_eq!(leaky_relu(x, 0.25).into_data().try_to_vec::<f32>().unwrap(), [-0.25, 0.0, 2.0]);
/// ```
///
/// Source: Maas et al., "Rectifier nonlinearities improve neural network acoustic models", 2013.
pub fn leaky_relu<const D: usize>(x: Tensor<D>, negative_slope: f64) -> Tensor<D> {
    #[cfg(feature = "kernels")]
    if let Some(y) = crate::kernels::leaky_relu(&x, negative_slope) {
        return y;
    }
    composed_leaky_relu(x, negative_slope)
}

fn composed_leaky_relu<const D: usize>(x: Tensor<D>, negative_slope: f64) -> Tensor<D> {
    let rest = 1.0 - negative_slope;
    let line = x.clone().mul_scalar(negative_slope);
    if rest >= 0.0 {
        line + activation::relu(x.mul_scalar(rest))
    } else {
        line + activation::relu(x).mul_scalar(rest)
    }
}

/// The gradient before a leaky ReLU of input `x` from that behind it: g where x > 0, a g elsewhere.
///
/// # Shapes
/// Any, kept; both of one shape.
pub(super) fn leaky_relu_gradient<const D: usize>(
    gradient: Tensor<D>,
    x: Tensor<D>,
    negative_slope: f64,
) -> Tensor<D> {
    #[cfg(feature = "kernels")]
    if let Some(gradient) = crate::kernels::leaky_relu_gradient(&gradient, &x, negative_slope) {
        return gradient;
    }
    composed_leaky_relu_gradient(gradient, x, negative_slope)
}

fn composed_leaky_relu_gradient<const D: usize>(
    gradient: Tensor<D>,
    x: Tensor<D>,
    negative_slope: f64,
) -> Tensor<D> {
    gradient * x.greater_scalar(0.0).float().mul_scalar(1.0 - negative_slope).add_scalar(negative_slope)
}

/// A convolution of Burn's; on the CPU backend, with the feature `kernels`, by code of this crate, which takes about
/// half the time. Use it where a network of your own would call [`Conv2d::forward`].
///
/// # Shapes
/// `[batch, channels_in, height, width]` to `[batch, channels_out, height_out, width_out]`.
///
/// # Panics
/// On shapes that do not fit, as [`Conv2d::forward`] does.
///
/// ```
/// use burn::nn::conv::Conv2dConfig;
/// use burn::tensor::{Device, Tensor};
/// use jem_nn::convolve;
///
/// let device = Device::default();
/// let conv = Conv2dConfig::new([3, 8], [3, 3]).init(&device);
/// let x = Tensor::ones([2, 3, 7, 5], &device);
/// let difference = (convolve(&conv, x.clone()) - conv.forward(x)).abs().max().into_scalar::<f32>();
/// assert!(difference < 1e-5);
/// ```
pub fn convolve(conv: &Conv2d, x: Tensor<4>) -> Tensor<4> {
    #[cfg(feature = "kernels")]
    if let Some(y) = crate::kernels::leaky_conv2d(conv, 1.0, &x) {
        return y;
    }
    conv.forward(x)
}

/// The activation between the layers of a network.
///
/// [`Activation::LeakyRelu`] makes energies that are piecewise smooth, as the JEM reference code does. An
/// objective that needs second derivatives in x, such as score matching, needs one of the smooth ones.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_nn::Activation;
///
/// let x = Tensor::<1>::from_floats([-1.0], &Device::default());
/// let y = Activation::default().forward(x).into_scalar::<f32>();
/// assert!((y + 0.2).abs() < 1e-6);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Activation {
    /// [`leaky_relu`].
    LeakyRelu {
        /// The slope below 0, from 0 to 1.
        negative_slope: f64,
    },
    /// x sigmoid(x).
    Silu,
    /// log(1 + e^x).
    Softplus,
    /// tanh(x).
    Tanh,
}

impl Default for Activation {
    /// The leaky ReLU of the JEM reference code, whose slope is 0.2.
    fn default() -> Self {
        Self::LeakyRelu { negative_slope: 0.2 }
    }
}

impl Activation {
    /// The activation of every element.
    ///
    /// # Shapes
    /// Any, kept.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        match *self {
            Self::LeakyRelu { negative_slope } => leaky_relu(x, negative_slope),
            Self::Silu => activation::silu(x),
            Self::Softplus => activation::softplus(x, 1.0),
            Self::Tanh => activation::tanh(x),
        }
    }

    /// The activation of every element, and a convolution behind it, in one operation where [`convolve`] has one.
    ///
    /// # Shapes
    /// `[batch, channels_in, height, width]` to `[batch, channels_out, height_out, width_out]`.
    ///
    /// # Panics
    /// On shapes that do not fit, as [`Conv2d::forward`] does.
    pub fn then_conv(&self, conv: &Conv2d, x: Tensor<4>) -> Tensor<4> {
        #[cfg(feature = "kernels")]
        if let Self::LeakyRelu { negative_slope } = *self
            && let Some(y) = crate::kernels::leaky_conv2d(conv, negative_slope, &x)
        {
            return y;
        }
        convolve(conv, self.forward(x))
    }

    pub(super) fn check(&self, field: &str) -> Result<()> {
        match *self {
            Self::LeakyRelu { negative_slope } => ensure(
                (0.0..=1.0).contains(&negative_slope),
                &format!("{field}.negative_slope"),
                negative_slope,
                "from 0 to 1",
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::Device;

    fn value_and_slope(f: impl Fn(Tensor<1>) -> Tensor<1>, x: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let x = Tensor::<1>::from_floats(x, &Device::flex().autodiff()).require_grad();
        let y = f(x.clone());
        let slope = x.grad(&y.clone().sum().backward()).unwrap();
        (y.into_data().try_to_vec().unwrap(), slope.into_data().try_to_vec().unwrap())
    }

    #[test]
    fn the_composed_leaky_relu_is_burns_with_its_gradient() {
        let points = [-1e4, -3.0, -1e-6, 1e-6, 0.7, 1e4];
        for slope in [0.0, 0.2, 1.0, 1.5] {
            let (ours, slopes) = value_and_slope(|x| leaky_relu(x, slope), &points);
            let (burns, burns_slopes) = value_and_slope(|x| activation::leaky_relu(x, slope), &points);
            for (a, b) in ours.iter().chain(&slopes).zip(burns.iter().chain(&burns_slopes)) {
                assert!((a - b).abs() <= 3e-7 * b.abs(), "{a} != {b}");
            }
        }
    }

    #[test]
    fn the_gradient_of_the_leaky_relu_is_the_same_either_way() {
        let device = Device::flex();
        let x = Tensor::<1>::from_floats([-2.0, -0.0, 0.0, 1e-30, 3.0], &device);
        let g = Tensor::<1>::from_floats([1.0, -2.0, 3.0, 4.0, -5.0], &device);
        let expected = [0.25, -0.5, 0.75, 4.0, -5.0];
        for found in [
            leaky_relu_gradient(g.clone(), x.clone(), 0.25),
            composed_leaky_relu_gradient(g.clone(), x.clone(), 0.25),
        ] {
            assert_eq!(found.into_data().try_to_vec::<f32>().unwrap(), expected);
        }
    }

    #[test]
    fn activations_match_their_formulas() {
        let x = 0.5f32;
        let cases = [
            (Activation::LeakyRelu { negative_slope: 0.0 }, x),
            (Activation::Silu, x / (1.0 + (-x).exp())),
            (Activation::Softplus, (1.0 + x.exp()).ln()),
            (Activation::Tanh, x.tanh()),
        ];
        for (activation, expected) in cases {
            let found = value_and_slope(|x| activation.forward(x), &[x]).0[0];
            assert!((found - expected).abs() < 1e-6, "{activation:?}: {found} != {expected}");
        }
    }

    #[test]
    fn a_slope_outside_0_to_1_is_refused() {
        for negative_slope in [-0.1, 1.5, f64::NAN] {
            let error = Activation::LeakyRelu { negative_slope }.check("Net.activation").unwrap_err();
            assert!(error.to_string().starts_with("Net.activation.negative_slope ="));
        }
        assert!(Activation::default().check("").is_ok());
    }
}
