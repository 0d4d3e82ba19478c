//! The operations on the slices of the CPU backend in Rust.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::TensorData;
use rayon::prelude::*;

use super::convolution;
use super::extension::{Differentiable, Kernels, Saved};
use super::geometry::Geometry;
use super::planes::{leaky, leaky_slope};

type Values = FloatTensor<Flex>;

impl Kernels for Flex {
    fn leaky_conv2d(x: Values, weight: Values, bias: Values, geometry: Geometry, slope: f32) -> Values {
        let (x, weight, bias) = (x.to_contiguous(), weight.to_contiguous(), bias.to_contiguous());
        let batch = x.shape()[0];
        let [rows, columns] = geometry.output();
        computed([batch, geometry.channels[1], rows, columns], |output| {
            convolution::forward(&geometry, slope, slice(&x), slice(&weight), slice(&bias), output);
        })
    }

    fn leaky(x: Values, slope: f32) -> Values {
        changed(x, |value| leaky(value, slope))
    }

    fn leaky_gradient(gradient: Values, x: Values, slope: f32) -> Values {
        let mut gradient = contiguous(gradient);
        each(gradient.storage_mut(), slice(&x.to_contiguous()), |gradient, x| {
            *gradient *= leaky_slope(x, slope)
        });
        gradient
    }
}

impl Differentiable for Flex {
    /// The gradients start from what came in; nothing else is kept.
    type Tape = ();

    fn recorded(
        x: Values,
        weight: Values,
        bias: Values,
        geometry: Geometry,
        slope: f32,
    ) -> (Values, Self::Tape) {
        (Self::leaky_conv2d(x, weight, bias, geometry, slope), ())
    }

    fn gradients(
        saved: Saved<Self>,
        _: Option<()>,
        gradient: Values,
        wanted: [bool; 3],
    ) -> [Option<Values>; 3] {
        let Saved { x, weight, geometry, slope } = saved;
        let (x, weight, gradient) = (contiguous(x), contiguous(weight), contiguous(gradient));
        let [of_x, of_weight, of_bias] = wanted;
        let of_bias = of_bias.then(|| {
            computed([geometry.channels[1]], |result| {
                convolution::bias_gradient(&geometry, slice(&gradient), result);
            })
        });
        let of_weight = of_weight.then(|| {
            computed(weight.shape().dims::<4>(), |result| {
                convolution::weight_gradient(&geometry, slope, slice(&x), slice(&gradient), result);
            })
        });
        let of_x = of_x.then(|| {
            let (weight, gradient) = (slice(&weight), slice(&gradient));
            if slope == 1.0 {
                return computed(x.shape().dims::<4>(), |result| {
                    convolution::input_gradient(&geometry, weight, gradient, result);
                });
            }
            // Where nobody else holds the input by now, its gradient takes its place.
            let mut x = x;
            convolution::leaky_input_gradient(&geometry, slope, weight, gradient, x.storage_mut());
            x
        });
        [of_x, of_weight, of_bias]
    }
}

/// What a thread takes at a time of an operation on every element. To ask another thread costs as much as some ten
/// thousand of them.
const CHUNK: usize = 1 << 16;

fn each(to: &mut [f32], from: &[f32], change: impl Fn(&mut f32, f32) + Sync) {
    let all = |to: &mut [f32], from: &[f32]| to.iter_mut().zip(from).for_each(|(to, from)| change(to, *from));
    if to.len() <= CHUNK {
        return all(to, from);
    }
    to.par_chunks_mut(CHUNK).zip(from.par_chunks(CHUNK)).for_each(|(to, from)| all(to, from));
}

fn slice(values: &Values) -> &[f32] {
    values.as_slice().expect("contiguous numbers of 32 bits, as the caller made sure")
}

fn computed<const D: usize>(shape: [usize; D], compute: impl FnOnce(&mut [f32])) -> Values {
    let mut values = vec![0.0; shape.iter().product()];
    compute(&mut values);
    Values::from_data(TensorData::new(values, shape))
}

fn changed(x: Values, change: impl Fn(f32) -> f32 + Sync) -> Values {
    let x = contiguous(x);
    let from = slice(&x);
    let values: Vec<f32> = if from.len() <= CHUNK {
        from.iter().map(|value| change(*value)).collect()
    } else {
        from.par_iter().with_min_len(CHUNK).map(|value| change(*value)).collect()
    };
    Values::from_data(TensorData::new(values, x.shape().clone()))
}

/// The numbers in order. The tensor that came in is gone by then, so that a change need not copy what it alone held.
fn contiguous(x: Values) -> Values {
    x.to_contiguous()
}
