//! An energy of samples and labels read as a classifier: f(x)\[y\] = -E(x, y).

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};

use super::{Classifier, ConditionalEnergy};
use crate::error::{self, ensure};

/// The classifier of an energy E(x, y) with the labels 0 to C - 1; [`JointEnergy`](super::JointEnergy) the other
/// way round.
///
/// ```text
/// f(x)[y] = -E(x, y)        p(y|x) = softmax(-E(x, ·))        E(x) = -log Σ_y exp(-E(x, y))
/// ```
///
/// So all that is written for classifiers works with an energy that is given by label: accuracy and calibration,
/// attacks, training as a JEM. `JointEnergy` of it is the energy of the samples alone. With one label the logit is
/// -E(x), and `JointEnergy` gives E(x) back.
///
/// The energies of all labels are computed in one batch, of C times as many samples. A given label costs one
/// evaluation: ask [`energy_given`](ConditionalEnergy::energy_given) of this type, not of a `JointEnergy`.
///
/// If the energy is a module, this is one, with the same parameters.
///
/// # Shapes
/// `[batch, ..]` to `[batch, C]`.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use jem_core::energy::{Classifier, ConditionalEnergy, EnergyClassifier, EnergyModel, JointEnergy};
///
/// /// A unit Gaussian around the label.
/// struct Around;
/// impl ConditionalEnergy<2> for Around {
///     fn energy_given(&self, x: Tensor<2>, y: Tensor<1, Int>) -> Tensor<1> {
///         (x - y.float().unsqueeze_dim(1)).square().sum_dim(1).squeeze_dim(1).mul_scalar(0.5)
///     }
/// }
/// let classifier = EnergyClassifier::new(Around, 3)?;
/// let x = Tensor::from_floats([[1.0], [2.0]], &Device::default());
/// let logits: Vec<f32> = classifier.logits(x.clone()).into_data().iter().collect();
/// assert_eq!(logits, [-0.5, 0.0, -0.5, -2.0, -0.5, 0.0]);
/// let marginal = JointEnergy::new(classifier).energy(x).into_data().iter::<f32>().next().unwrap();
/// assert!((marginal + (1.0 + 2.0 * (-0.5f32).exp()).ln()).abs() < 1e-6);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Du and Mordatch 2019, arXiv 1903.08689 (classification by the label of lowest energy).
#[derive(Module, Debug)]
pub struct EnergyClassifier<M> {
    /// The energy.
    pub model: M,
    #[module(skip)]
    num_classes: usize,
}

impl<M> EnergyClassifier<M> {
    /// The classifier of `model` with the labels 0 to `num_classes - 1`. A reference does as well as a value.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if there is no class.
    pub fn new(model: M, num_classes: usize) -> error::Result<Self> {
        ensure(num_classes > 0, "EnergyClassifier.num_classes", num_classes, "a number > 0")?;
        Ok(Self { model, num_classes })
    }

    /// The number of labels.
    pub fn num_classes(&self) -> usize {
        self.num_classes
    }
}

impl<const D: usize, M: ConditionalEnergy<D>> Classifier<D> for EnergyClassifier<M> {
    fn logits(&self, x: Tensor<D>) -> Tensor<2> {
        energies(&self.model, x, self.num_classes).neg()
    }
}

impl<const D: usize, M: ConditionalEnergy<D>> ConditionalEnergy<D> for EnergyClassifier<M> {
    fn energy_given(&self, x: Tensor<D>, labels: Tensor<1, Int>) -> Tensor<1> {
        self.model.energy_given(x, labels)
    }
}

/// E(x, y) of every sample with every label: `[batch, ..]` to `[batch, classes]`.
fn energies<const D: usize>(
    model: &impl ConditionalEnergy<D>,
    x: Tensor<D>,
    num_classes: usize,
) -> Tensor<2> {
    let batch = x.dims()[0];
    let labels = repeated_labels(num_classes, batch, &x.device());
    let energies = model.energy_given(x.repeat_dim(0, num_classes), labels);
    energies.reshape([num_classes, batch]).transpose()
}

/// 0 for every sample, then 1 for every sample, and so on: `[classes * batch]`.
fn repeated_labels(num_classes: usize, batch: usize, device: &Device) -> Tensor<1, Int> {
    Tensor::arange(0..num_classes as i64, &device.clone().without_autodiff())
        .reshape([num_classes, 1])
        .repeat_dim(1, batch)
        .reshape([num_classes * batch])
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::energy::{EnergyModel, JointEnergy};

    /// f(x) = x A for a fixed A.
    #[derive(Debug)]
    struct Linear(Tensor<2>);

    impl Classifier<2> for Linear {
        fn logits(&self, x: Tensor<2>) -> Tensor<2> {
            x.matmul(self.0.clone())
        }
    }

    fn linear(device: &Device) -> Linear {
        Linear(Tensor::from_floats([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]], device))
    }

    fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter().collect()
    }

    #[test]
    fn a_classifier_made_an_energy_and_a_classifier_again_is_the_same() {
        let device = Device::flex();
        let x = Tensor::from_floats([[1.0, 2.0], [-3.0, 0.5], [0.0, 0.1], [4.0, -1.0]], &device);
        let original = JointEnergy::new(linear(&device));
        let again = JointEnergy::new(EnergyClassifier::new(&original, 3).unwrap());
        assert_eq!(
            values(again.classifier().logits(x.clone())),
            values(original.classifier().logits(x.clone()))
        );
        let labels = Tensor::from_ints([2, 0, 1, 1], &device);
        assert_eq!(
            values(again.classifier().energy_given(x.clone(), labels.clone())),
            values(original.energy_given(x.clone(), labels))
        );
        let ((e1, g1), (e2, g2)) = (original.energy_and_grad(x.clone()), again.energy_and_grad(x));
        for (a, b) in values(e1).iter().chain(&values(g1)).zip(values(e2).iter().chain(&values(g2))) {
            assert!((a - b).abs() < 1e-5, "{a} != {b}");
        }
    }

    #[test]
    fn one_label_gives_the_energy_back_and_no_label_is_refused() {
        let device = Device::flex();
        let model = JointEnergy::new(linear(&device));
        let x = Tensor::from_floats([[1.0, 2.0], [-30.0, 50.0]], &device);
        let zeros = Tensor::zeros([2], &device);
        let one = JointEnergy::new(EnergyClassifier::new(&model, 1).unwrap());
        assert_eq!(values(one.energy(x.clone())), values(model.energy_given(x, zeros)));
        let error = EnergyClassifier::new(&model, 0).unwrap_err().to_string();
        assert!(error.starts_with("EnergyClassifier.num_classes = 0 "), "{error}");
    }
}
