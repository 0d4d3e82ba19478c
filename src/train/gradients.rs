//! The global norm of the parameter gradients, in one read from the device.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

/// The L2 norm over all parameters that have a gradient; 0 if none has.
///
/// # Shapes
/// Any; the result is on the host.
pub fn gradient_norm<M: Module>(gradients: &GradientsParams, model: &M) -> f64 {
    struct Squares<'a> {
        gradients: &'a GradientsParams,
        sums: Vec<Tensor<1>>,
    }
    impl ModuleVisitor for Squares<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = self.gradients.get::<D>(param.id) {
                self.sums.push(gradient.without_autodiff().square().sum());
            }
        }
    }
    let mut visitor = Squares { gradients, sums: Vec::new() };
    model.visit(&mut visitor);
    if visitor.sums.is_empty() {
        return 0.0;
    }
    Tensor::cat(visitor.sums, 0).into_data().iter::<f64>().sum::<f64>().sqrt()
}

/// Whether every parameter is finite.
pub(super) fn is_finite<M: Module>(model: &M) -> bool {
    struct Finite(Vec<Tensor<1>>);
    impl ModuleVisitor for Finite {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            // 0 · x is 0 where x is finite and NaN elsewhere, and so is the sum.
            self.0.push(param.val().without_autodiff().mul_scalar(0.0).sum());
        }
    }
    let mut visitor = Finite(Vec::new());
    model.visit(&mut visitor);
    visitor.0.is_empty() || Tensor::cat(visitor.0, 0).into_data().iter::<f32>().all(|sum| sum == 0.0)
}
