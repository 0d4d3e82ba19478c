//! The operations as Burn's backends see them: on slices of the CPU backend, and with their gradients for autodiff.

use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Flex, TensorMetadata, backend_extension};
use burn::tensor::TensorData;
use rayon::prelude::*;

use super::convolution;
use super::geometry::Geometry;
use super::planes::{leaky, leaky_slope};

/// What is added to the backend.
#[backend_extension(Flex, Autodiff)]
pub trait Kernels: Backend {
    /// bias + weight * leaky(x).
    fn leaky_conv2d(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        geometry: Geometry,
        slope: f32,
    ) -> FloatTensor<Self>;

    /// leaky(x).
    fn leaky_relu(x: FloatTensor<Self>, slope: f32) -> FloatTensor<Self>;

    /// The gradient before a leaky ReLU of input `x` from that behind it; autodiff takes it for a constant.
    fn leaky_relu_gradient(
        gradient: FloatTensor<Self>,
        x: FloatTensor<Self>,
        slope: f32,
    ) -> FloatTensor<Self>;
}

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

    fn leaky_relu(x: Values, slope: f32) -> Values {
        changed(x, |value| leaky(value, slope))
    }

    fn leaky_relu_gradient(gradient: Values, x: Values, slope: f32) -> Values {
        let mut gradient = contiguous(gradient);
        each(gradient.storage_mut(), slice(&x.to_contiguous()), |gradient, x| {
            *gradient *= leaky_slope(x, slope)
        });
        gradient
    }
}

impl<C: CheckpointStrategy> Kernels for Autodiff<Flex, C> {
    fn leaky_conv2d(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        geometry: Geometry,
        slope: f32,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node(), bias.node()];
        let run = |x: FloatTensor<Self>, weight: FloatTensor<Self>, bias: FloatTensor<Self>| {
            let (x, weight, bias) = (x.into_primitive(), weight.into_primitive(), bias.into_primitive());
            Flex::leaky_conv2d(x, weight, bias, geometry, slope)
        };
        match ConvBackward.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let state = (prep.checkpoint(&x), prep.checkpoint(&weight), geometry, slope);
                prep.finish(state, run(x, weight, bias))
            }
            OpsKind::UnTracked(prep) => prep.finish(run(x, weight, bias)),
        }
    }

    fn leaky_relu(x: FloatTensor<Self>, slope: f32) -> FloatTensor<Self> {
        match LeakyBackward.prepare::<C>([x.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let state = (prep.checkpoint(&x), slope);
                prep.finish(state, Flex::leaky_relu(x.into_primitive(), slope))
            }
            OpsKind::UnTracked(prep) => prep.finish(Flex::leaky_relu(x.into_primitive(), slope)),
        }
    }

    fn leaky_relu_gradient(
        gradient: FloatTensor<Self>,
        x: FloatTensor<Self>,
        slope: f32,
    ) -> FloatTensor<Self> {
        let gradient = Flex::leaky_relu_gradient(gradient.into_primitive(), x.into_primitive(), slope);
        FloatTensor::<Self>::new(gradient)
    }
}

#[derive(Debug)]
struct ConvBackward;

impl Backward<Flex, 3> for ConvBackward {
    type State = (NodeId, NodeId, Geometry, f32);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let (x, weight, geometry, slope) = ops.state;
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let x = checkpointer.retrieve_node_output::<Values>(x).to_contiguous();
        let weight = checkpointer.retrieve_node_output::<Values>(weight).to_contiguous();
        let [of_x, of_weight, of_bias] = ops.parents;
        if let Some(node) = of_bias {
            let value = computed([geometry.channels[1]], |result| {
                convolution::bias_gradient(&geometry, slice(&gradient), result);
            });
            grads.register::<Flex>(node.id, value);
        }
        if let Some(node) = of_weight {
            let shape = weight.shape().dims::<4>();
            let value = computed(shape, |result| {
                convolution::weight_gradient(&geometry, slope, slice(&x), slice(&gradient), result);
            });
            grads.register::<Flex>(node.id, value);
        }
        if let Some(node) = of_x {
            let value = computed(x.shape().dims::<4>(), |result| {
                let (weight, gradient) = (slice(&weight), slice(&gradient));
                convolution::input_gradient(&geometry, slope, slice(&x), weight, gradient, result);
            });
            grads.register::<Flex>(node.id, value);
        }
    }
}

#[derive(Debug)]
struct LeakyBackward;

impl Backward<Flex, 1> for LeakyBackward {
    type State = (NodeId, f32);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let (x, slope) = ops.state;
        let gradient = grads.consume::<Flex>(&ops.node);
        let x = checkpointer.retrieve_node_output::<Values>(x);
        let [of_x] = ops.parents;
        if let Some(node) = of_x {
            grads.register::<Flex>(node.id, Flex::leaky_relu_gradient(gradient, x, slope));
        }
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
    let values = if from.len() <= CHUNK {
        from.iter().map(|value| change(*value)).collect()
    } else {
        let mut values = vec![0.0; from.len()];
        each(&mut values, from, |to, from| *to = change(from));
        values
    };
    Values::from_data(TensorData::new(values, x.shape().clone()))
}

/// The numbers in order. The tensor that came in is gone by then, so that a change need not copy what it alone held.
fn contiguous(x: Values) -> Values {
    x.to_contiguous()
}
