//! An exponential moving average of weights.

use std::any::Any;
use std::collections::HashMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::Tensor;

/// Moves `average` towards `model`: a ← decay · a + (1 - decay) · w for every float parameter.
///
/// Parameters are matched by their id, so `average` starts as `model.valid()`. It carries no autodiff.
///
/// ```
/// use burn::nn::LinearConfig;
/// use burn::module::Module;
/// use burn::tensor::Device;
/// use jem_core::train::update_average;
///
/// let model = LinearConfig::new(2, 1).init(&Device::default().autodiff());
/// let average = update_average(model.valid(), &model, 0.99); // of equal weights: no change
/// assert!(average.weight.val().all_close(model.weight.val().inner(), None, Some(1e-6)));
/// ```
pub fn update_average<M: Module>(average: M, model: &M, decay: f64) -> M {
    let mut weights = Weights(HashMap::new());
    model.visit(&mut weights);
    average.map(&mut Mix { weights: weights.0, decay })
}

struct Weights(HashMap<ParamId, Box<dyn Any>>);

impl ModuleVisitor for Weights {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.insert(param.id, Box::new(param.val().without_autodiff()));
    }
}

struct Mix {
    weights: HashMap<ParamId, Box<dyn Any>>,
    decay: f64,
}

impl ModuleMapper for Mix {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(weight) = self.weights.remove(&param.id).and_then(|w| w.downcast::<Tensor<D>>().ok()) else {
            return param;
        };
        let decay = self.decay;
        param.map(|average| average.mul_scalar(decay) + weight.mul_scalar(1.0 - decay))
    }
}
