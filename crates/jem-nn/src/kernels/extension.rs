//! The operations as Burn's backends see them, and their gradients for its autodiff.
#![cfg_attr(feature = "tch", allow(deprecated))] // Burn takes libtorch out after 0.22.

use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, backend_extension};

use super::geometry::Geometry;

/// What is added to the backends.
#[backend_extension(Flex, LibTorch: cfg(feature = "tch"), Autodiff)]
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
    fn leaky(x: FloatTensor<Self>, slope: f32) -> FloatTensor<Self>;

    /// The gradient before a leaky ReLU of input `x` from that behind it; autodiff takes it for a constant.
    fn leaky_gradient(gradient: FloatTensor<Self>, x: FloatTensor<Self>, slope: f32) -> FloatTensor<Self>;
}

/// The convolution's gradients on a backend itself.
pub trait Differentiable: Kernels {
    /// What the forward pass leaves for the gradient in a weight that is trained.
    type Tape: Clone + Send + std::fmt::Debug + 'static;

    /// [`Kernels::leaky_conv2d`], and its tape.
    fn recorded(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        geometry: Geometry,
        slope: f32,
    ) -> (FloatTensor<Self>, Self::Tape);

    /// Those of the gradients in x, weight and bias that are wanted, from the one in the output. There is a tape if the
    /// weight is a leaf that is trained.
    fn gradients(
        saved: Saved<Self>,
        tape: Option<Self::Tape>,
        gradient: FloatTensor<Self>,
        wanted: [bool; 3],
    ) -> [Option<FloatTensor<Self>>; 3];
}

/// What a backward pass goes back to.
pub struct Saved<B: Differentiable> {
    /// Before the leaky ReLU.
    pub x: FloatTensor<B>,
    pub weight: FloatTensor<B>,
    pub geometry: Geometry,
    pub slope: f32,
}

impl<B: Differentiable, C: CheckpointStrategy> Kernels for Autodiff<B, C> {
    fn leaky_conv2d(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        geometry: Geometry,
        slope: f32,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node(), bias.node()];
        let trained = Self::float_is_require_grad(&weight);
        match ConvBackward.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let (x_node, weight_node) = (prep.checkpoint(&x), prep.checkpoint(&weight));
                let (x, weight, bias) = (x.into_primitive(), weight.into_primitive(), bias.into_primitive());
                let (output, tape) = match trained {
                    true => {
                        let (output, tape) = B::recorded(x, weight, bias, geometry, slope);
                        (output, Some(tape))
                    }
                    false => (B::leaky_conv2d(x, weight, bias, geometry, slope), None),
                };
                prep.finish((x_node, weight_node, geometry, slope, tape), output)
            }
            OpsKind::UnTracked(prep) => {
                let (x, weight, bias) = (x.into_primitive(), weight.into_primitive(), bias.into_primitive());
                prep.finish(B::leaky_conv2d(x, weight, bias, geometry, slope))
            }
        }
    }

    fn leaky(x: FloatTensor<Self>, slope: f32) -> FloatTensor<Self> {
        match LeakyBackward.prepare::<C>([x.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let state = (prep.checkpoint(&x), slope);
                prep.finish(state, B::leaky(x.into_primitive(), slope))
            }
            OpsKind::UnTracked(prep) => prep.finish(B::leaky(x.into_primitive(), slope)),
        }
    }

    fn leaky_gradient(gradient: FloatTensor<Self>, x: FloatTensor<Self>, slope: f32) -> FloatTensor<Self> {
        let gradient = B::leaky_gradient(gradient.into_primitive(), x.into_primitive(), slope);
        FloatTensor::<Self>::new(gradient)
    }
}

#[derive(Debug)]
struct ConvBackward;

impl<B: Differentiable> Backward<B, 3> for ConvBackward {
    type State = (NodeId, NodeId, Geometry, f32, Option<B::Tape>);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let (x, weight, geometry, slope, tape) = ops.state;
        let gradient = grads.consume::<B>(&ops.node);
        let x = checkpointer.retrieve_node_output::<FloatTensor<B>>(x);
        let weight = checkpointer.retrieve_node_output::<FloatTensor<B>>(weight);
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let found = B::gradients(Saved { x, weight, geometry, slope }, tape, gradient, wanted);
        for (node, value) in ops.parents.into_iter().zip(found) {
            if let (Some(node), Some(value)) = (node, value) {
                grads.register::<B>(node.id, value);
            }
        }
    }
}

#[derive(Debug)]
struct LeakyBackward;

impl<B: Differentiable> Backward<B, 1> for LeakyBackward {
    type State = (NodeId, f32);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let (x, slope) = ops.state;
        let gradient = grads.consume::<B>(&ops.node);
        let x = checkpointer.retrieve_node_output::<FloatTensor<B>>(x);
        let [of_x] = ops.parents;
        if let Some(node) = of_x {
            grads.register::<B>(node.id, B::leaky_gradient(gradient, x, slope));
        }
    }
}
