//! The operations on libtorch: its own leaky ReLU and its own gradients, where Burn composes both of other operations.
#![allow(deprecated)] // Burn takes this backend out after 0.22.

use burn::backend::LibTorch;
use burn::backend::ops::{ConvOptions, ModuleOps};
use burn::backend::tensor::FloatTensor;

use super::extension::{Differentiable, Kernels, Saved};
use super::geometry::Geometry;

type Values = FloatTensor<LibTorch>;

impl Kernels for LibTorch {
    fn leaky_conv2d(x: Values, weight: Values, bias: Values, geometry: Geometry, slope: f32) -> Values {
        Self::conv2d(leaky(x, slope), weight, Some(bias), options(&geometry))
    }

    fn leaky(x: Values, slope: f32) -> Values {
        leaky(x, slope)
    }

    fn leaky_gradient(gradient: Values, x: Values, slope: f32) -> Values {
        leaky_gradient(gradient, &x, slope)
    }
}

/// libtorch's own record of a convolution. Its gradient in the weight is no operation by itself, and Burn's takes up to five
/// times as long.
#[derive(Debug, Clone)]
pub struct Tape {
    /// As libtorch differentiates it.
    output: Values,
    weight: Values,
    bias: Values,
    /// What the record points to; Burn would write into it if nobody else held it.
    _held: [Values; 3],
}

impl Differentiable for LibTorch {
    type Tape = Tape;

    fn recorded(x: Values, weight: Values, bias: Values, geometry: Geometry, slope: f32) -> (Values, Tape) {
        let x = leaky(x, slope);
        let leaf = |values: &Values| Values::new(values.tensor.detach().set_requires_grad(true));
        let (weight_leaf, bias_leaf) = (leaf(&weight), leaf(&bias));
        let output =
            Self::conv2d(x.clone(), weight_leaf.clone(), Some(bias_leaf.clone()), options(&geometry));
        let found = Values::new(output.tensor.detach());
        (found, Tape { output, weight: weight_leaf, bias: bias_leaf, _held: [x, weight, bias] })
    }

    fn gradients(
        saved: Saved<Self>,
        tape: Option<Tape>,
        gradient: Values,
        wanted: [bool; 3],
    ) -> [Option<Values>; 3] {
        let Saved { x, weight, geometry, slope } = saved;
        let [of_x, of_weight, of_bias] = wanted;
        let [mut in_weight, mut in_bias] = [None, None];
        match tape {
            Some(Tape { output, weight, bias, .. }) if of_weight => {
                // d(output · gradient) is what goes back through the record.
                output.tensor.reshape([-1]).dot(&gradient.tensor.reshape([-1])).backward();
                in_weight = Some(Values::new(weight.tensor.grad()));
                in_bias = of_bias.then(|| Values::new(bias.tensor.grad()));
            }
            _ => {
                if of_weight {
                    let activated = leaky(x.clone(), slope);
                    let (weight, options) = (weight.clone(), options(&geometry));
                    in_weight =
                        Some(Self::conv2d_weight_backward(activated, weight, gradient.clone(), options));
                }
                if of_bias {
                    let all = [0, 2, 3].as_slice();
                    in_bias = Some(Values::new(gradient.tensor.sum_dim_intlist(
                        all,
                        false,
                        gradient.tensor.kind(),
                    )));
                }
            }
        }
        let in_x = of_x.then(|| {
            let behind = Self::conv2d_x_backward(x.clone(), weight, gradient, options(&geometry));
            leaky_gradient(behind, &x, slope)
        });
        [in_x, in_weight, in_bias]
    }
}

/// With a slope of 1 there is nothing to do.
fn leaky(x: Values, slope: f32) -> Values {
    if slope == 1.0 {
        return x;
    }
    let place = (x.tensor.kind(), x.tensor.device());
    Values::new(x.tensor.prelu(&x.tensor.new_full([1], f64::from(slope), place)))
}

fn leaky_gradient(gradient: Values, x: &Values, slope: f32) -> Values {
    if slope == 1.0 {
        return gradient;
    }
    Values::new(x.tensor.leaky_relu_backward(&gradient.tensor, f64::from(slope), false))
}

fn options(geometry: &Geometry) -> ConvOptions<2> {
    ConvOptions::new(geometry.stride, geometry.padding, [1, 1], 1)
}
