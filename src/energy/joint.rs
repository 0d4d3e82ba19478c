//! A classifier read as a joint energy model: E(x, y) = -f(x)\[y\] and E(x) = -log Σ_y exp f(x)\[y\].

use burn::tensor::{Int, Tensor, activation};

use super::{ConditionalEnergy, EnergyModel, Given};
use crate::error::{Result, ensure_positive};
use crate::math::log_sum_exp;

/// Anything with logits. This is all that a network needs to become an energy model.
///
/// # Shapes
/// `[batch, ..]` to `[batch, classes]`.
///
/// ```
/// use burn::nn::Linear;
/// use burn::tensor::Tensor;
/// use jem_core::energy::Classifier;
///
/// #[derive(burn::module::Module, Debug)]
/// struct Net { layer: Linear }
///
/// impl Classifier<2> for Net {
///     fn logits(&self, x: Tensor<2>) -> Tensor<2> {
///         self.layer.forward(x)
///     }
/// }
/// ```
pub trait Classifier<const D: usize> {
    /// The logits f(x) of every sample.
    fn logits(&self, x: Tensor<D>) -> Tensor<2>;

    /// The logits, and Σ_y c\[y\] ∇ₓf(x)\[y\] of every sample for the c that `cotangent` makes of the logits. Neither
    /// carries an autodiff graph.
    ///
    /// By automatic differentiation unless overridden: where the gradient is known, a chain spares the bookkeeping.
    ///
    /// # Shapes
    /// c is `[batch, classes]`, as the logits are; the sum is shaped as `x`.
    fn logits_and_pullback(
        &self,
        x: Tensor<D>,
        cotangent: &dyn Fn(Tensor<2>) -> Tensor<2>,
    ) -> (Tensor<2>, Tensor<D>) {
        logits_and_pullback_by_autodiff(|x| self.logits(x), x, cotangent)
    }
}

/// [`Classifier::logits_and_pullback`] by one backward pass through Σ c f(x).
pub fn logits_and_pullback_by_autodiff<const D: usize>(
    logits: impl FnOnce(Tensor<D>) -> Tensor<2>,
    x: Tensor<D>,
    cotangent: &dyn Fn(Tensor<2>) -> Tensor<2>,
) -> (Tensor<2>, Tensor<D>) {
    let x = x.without_autodiff().autodiff().require_grad();
    let logits = logits(x.clone());
    let values = logits.clone().without_autodiff();
    let gradient = if logits.is_tracked() {
        let c = cotangent(values.clone()).autodiff();
        x.grad_remove(&mut (logits * c).sum().backward())
    } else {
        None
    };
    (values, gradient.unwrap_or_else(|| x.zeros_like()).without_autodiff())
}

macro_rules! forward_classifier {
    ($($pointer:ty),*) => {$(
        impl<const D: usize, C: Classifier<D> + ?Sized> Classifier<D> for $pointer {
            fn logits(&self, x: Tensor<D>) -> Tensor<2> {
                (**self).logits(x)
            }
            fn logits_and_pullback(
                &self,
                x: Tensor<D>,
                cotangent: &dyn Fn(Tensor<2>) -> Tensor<2>,
            ) -> (Tensor<2>, Tensor<D>) {
                (**self).logits_and_pullback(x, cotangent)
            }
        }
    )*};
}
forward_classifier!(&C, Box<C>);

/// The joint energy model of a classifier, at an inverse temperature β (1 unless set).
///
/// ```text
/// E(x, y) = -f(x)[y]        p(y|x) = softmax(β f(x))        E(x) = -(1/β) log Σ_y exp(β f(x)[y])
/// ```
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::{Classifier, EnergyModel, JointEnergy};
///
/// struct Logits; // f(x) = x
/// impl Classifier<2> for Logits {
///     fn logits(&self, x: Tensor<2>) -> Tensor<2> { x }
/// }
/// let joint = JointEnergy::new(Logits);
/// let x = Tensor::from_floats([[0.0, 0.0]], &Device::default());
/// assert!((joint.energy(x.clone()).into_scalar::<f32>() + 2f32.ln()).abs() < 1e-6);
/// assert_eq!(joint.probabilities(x).into_data().try_to_vec::<f32>().unwrap(), [0.5, 0.5]);
/// ```
///
/// Source: Grathwohl et al. 2020, arXiv 1912.03263; β as in LeCun et al. 2006.
#[derive(Debug, Clone)]
pub struct JointEnergy<C> {
    classifier: C,
    inverse_temperature: f32,
}

impl<C> JointEnergy<C> {
    /// The joint energy of `classifier` at β = 1. A reference does as well as a value.
    pub fn new(classifier: C) -> Self {
        Self { classifier, inverse_temperature: 1.0 }
    }

    /// The same at another inverse temperature.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless β is finite and above 0.
    pub fn with_inverse_temperature(mut self, beta: f32) -> Result<Self> {
        ensure_positive("JointEnergy.inverse_temperature", beta)?;
        self.inverse_temperature = beta;
        Ok(self)
    }

    /// β.
    pub fn inverse_temperature(&self) -> f32 {
        self.inverse_temperature
    }

    /// The classifier.
    pub fn classifier(&self) -> &C {
        &self.classifier
    }

    /// The energy with its labels clamped: x ↦ E(x, y), whose samples come from p(x|y).
    pub fn given(&self, labels: Tensor<1, Int>) -> Given<&Self> {
        Given::new(self, labels)
    }

    /// E(x) of logits that are at hand already.
    pub fn energy_of_logits(&self, logits: Tensor<2>) -> Tensor<1> {
        let beta = self.inverse_temperature;
        if logits.dims()[1] == 1 {
            return logits.squeeze_dim::<1>(1).neg(); // at any β
        }
        if beta == 1.0 {
            return log_sum_exp(logits).neg();
        }
        log_sum_exp(logits.mul_scalar(beta)).div_scalar(-beta)
    }

    /// p(y|x).
    ///
    /// # Shapes
    /// `[batch, ..]` to `[batch, classes]`, each row summing to 1.
    pub fn probabilities<const D: usize>(&self, x: Tensor<D>) -> Tensor<2>
    where
        C: Classifier<D>,
    {
        activation::softmax(self.classifier.logits(x).mul_scalar(self.inverse_temperature), 1)
    }
}

impl<const D: usize, C: Classifier<D>> EnergyModel<D> for JointEnergy<C> {
    fn energy(&self, x: Tensor<D>) -> Tensor<1> {
        self.energy_of_logits(self.classifier.logits(x))
    }

    /// ∇ₓE(x) = -Σ_y p(y|x) ∇ₓf(x)\[y\].
    fn energy_and_grad(&self, x: Tensor<D>) -> (Tensor<1>, Tensor<D>) {
        let beta = self.inverse_temperature;
        let (logits, gradient) = self.classifier.logits_and_pullback(x, &|logits| match logits.dims()[1] {
            1 => logits.ones_like().neg(),
            _ => activation::softmax(logits.mul_scalar(beta), 1).neg(),
        });
        (self.energy_of_logits(logits), gradient)
    }
}

impl<const D: usize, C: Classifier<D>> ConditionalEnergy<D> for JointEnergy<C> {
    fn energy_given(&self, x: Tensor<D>, labels: Tensor<1, Int>) -> Tensor<1> {
        chosen(self.classifier.logits(x), labels).neg()
    }
}

/// Entry `labels[i]` of row i: `[batch, classes]` and `[batch]` to `[batch]`.
pub fn chosen(rows: Tensor<2>, labels: Tensor<1, Int>) -> Tensor<1> {
    rows.gather(1, labels.unsqueeze_dim(1)).squeeze_dim(1)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[derive(Debug)]
    struct Square;
    impl Classifier<2> for Square {
        fn logits(&self, x: Tensor<2>) -> Tensor<2> {
            x.square().neg()
        }
    }

    fn values(tensor: Tensor<1>) -> Vec<f32> {
        tensor.into_data().try_to_vec().unwrap()
    }

    #[test]
    fn energies_match_hand_computed_numbers_at_two_temperatures() {
        let device = Device::flex();
        let x = Tensor::from_floats([[0.0, 1.0, 2.0]], &device); // logits 0, -1, -4
        let joint = JointEnergy::new(Square);
        let lse = (1.0 + (-1f32).exp() + (-4f32).exp()).ln();
        assert!((values(joint.energy(x.clone()))[0] + lse).abs() < 1e-6);
        let label = Tensor::from_ints([2], &device);
        assert_eq!(values(joint.given(label).energy(x.clone())), vec![4.0]);

        let cold = JointEnergy::new(Square).with_inverse_temperature(2.0).unwrap();
        let lse = (1.0 + (-2f32).exp() + (-8f32).exp()).ln() / 2.0;
        assert!((values(cold.energy(x.clone()))[0] + lse).abs() < 1e-6);
        let p: Vec<f32> = cold.probabilities(x).into_data().try_to_vec().unwrap();
        assert!((p[0] - 1.0 / (1.0 + (-2f32).exp() + (-8f32).exp())).abs() < 1e-6);
    }

    #[test]
    fn the_partition_function_cancels() {
        // log p(y|x) = E(x) - E(x, y)
        let device = Device::flex();
        let x = Tensor::from_floats([[0.3, -1.0], [2.0, 0.1]], &device);
        let joint = JointEnergy::new(Square);
        let labels = Tensor::from_ints([1, 0], &device);
        let difference = joint.energy(x.clone()) - joint.energy_given(x.clone(), labels.clone());
        let expected = chosen(joint.probabilities(x).log(), labels);
        for (a, b) in values(difference).iter().zip(values(expected)) {
            assert!((a - b).abs() < 1e-5, "{a} != {b}");
        }
    }

    #[test]
    fn the_gradient_is_that_of_the_energy_at_any_temperature_and_for_one_class() {
        let device = Device::flex();
        for (x, beta) in [
            (Tensor::<2>::from_floats([[0.3, -1.0, 0.8], [2.0, 0.1, -0.4]], &device), 1.0),
            (Tensor::<2>::from_floats([[0.3, -1.0, 0.8], [2.0, 0.1, -0.4]], &device), 2.5),
            (Tensor::<2>::from_floats([[0.3], [-2.0]], &device), 0.5),
        ] {
            let joint = JointEnergy::new(Square).with_inverse_temperature(beta).unwrap();
            let (energy, gradient) = joint.energy_and_grad(x.clone().autodiff());
            let (slow, expected) = crate::energy::energy_and_grad_by_autodiff(|x| joint.energy(x), x.clone());
            assert!(!energy.is_autodiff() && !gradient.is_autodiff());
            assert!(energy.sub(slow).abs().max().into_scalar::<f32>() < 1e-6);
            assert!(gradient.sub(expected).abs().max().into_scalar::<f32>() < 1e-6);
        }
    }

    #[test]
    fn a_bad_temperature_is_refused() {
        for beta in [0.0, -1.0, f32::NAN] {
            let error = JointEnergy::new(Square).with_inverse_temperature(beta).unwrap_err();
            assert!(error.to_string().starts_with("JointEnergy.inverse_temperature ="));
        }
    }
}
