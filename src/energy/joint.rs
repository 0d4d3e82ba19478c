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
}

impl<const D: usize, C: Classifier<D> + ?Sized> Classifier<D> for &C {
    fn logits(&self, x: Tensor<D>) -> Tensor<2> {
        (**self).logits(x)
    }
}

impl<const D: usize, C: Classifier<D> + ?Sized> Classifier<D> for Box<C> {
    fn logits(&self, x: Tensor<D>) -> Tensor<2> {
        (**self).logits(x)
    }
}

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
}

impl<const D: usize, C: Classifier<D>> ConditionalEnergy<D> for JointEnergy<C> {
    fn energy_given(&self, x: Tensor<D>, labels: Tensor<1, Int>) -> Tensor<1> {
        chosen(self.classifier.logits(x), labels).neg()
    }
}

/// Entry `labels[i]` of row i: `[batch, classes]` and `[batch]` to `[batch]`.
pub(crate) fn chosen(rows: Tensor<2>, labels: Tensor<1, Int>) -> Tensor<1> {
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
    fn a_bad_temperature_is_refused() {
        for beta in [0.0, -1.0, f32::NAN] {
            let error = JointEnergy::new(Square).with_inverse_temperature(beta).unwrap_err();
            assert!(error.to_string().starts_with("JointEnergy.inverse_temperature ="));
        }
    }
}
