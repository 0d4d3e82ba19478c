//! What an attack ascends, and when it has what it wants.

use burn::tensor::{Bool, Int, Tensor, activation};
use serde::{Deserialize, Serialize};

use crate::predict::largest;
use jem_core::data::label_tensor;
use jem_core::error::{Error, Result};

/// What an attack ascends, for a sample of label y (untargeted) or towards a class t (targeted).
///
/// | loss | untargeted | targeted |
/// | --- | --- | --- |
/// | `CrossEntropy` | LSE f - f_y | f_t - LSE f |
/// | `Margin` | max_{j≠y} f_j - f_y | f_t - max_{j≠t} f_j |
///
/// Cross-entropy is what the papers use. Where a model is so sure that softmax rounds to 0 and 1, its gradient
/// is distorted or vanishes, and a model looks robust that is not; the margin has no such place.
///
/// Source: Madry et al. 2018, arXiv 1706.06083; Carlini & Wagner 2017, arXiv 1608.04644.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttackLoss {
    /// -log p(y|x).
    #[default]
    CrossEntropy,
    /// The lead of the best wrong class.
    Margin,
}

/// Away from a label, or towards one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    Away,
    Towards,
}

impl Aim {
    /// Whether the decision made from `row` is what the attack wants. A row that holds no numbers is a wrong
    /// decision, and none for any class.
    pub fn reached(self, row: &[f32], label: usize) -> bool {
        let decided = !row.iter().any(|logit| logit.is_nan()) && largest(row) == label;
        decided == (self == Self::Towards)
    }
}

impl AttackLoss {
    /// The loss of each row: `[batch, classes]` and `[batch]` to `[batch]`.
    pub(super) fn of(self, logits: Tensor<2>, labels: Tensor<1, Int>, aim: Aim) -> Tensor<1> {
        let away = match self {
            Self::CrossEntropy => activation::log_softmax(logits, 1).gather(1, labels.unsqueeze_dim(1)).neg(),
            Self::Margin => {
                let own: Tensor<2, Int> = labels.unsqueeze_dim(1);
                let mask = of_class(own.clone(), logits.dims());
                let rival = logits.clone().mask_fill(mask, -1e30).max_dim(1);
                rival - logits.gather(1, own)
            }
        };
        let away = away.squeeze_dim(1);
        match aim {
            Aim::Away => away,
            Aim::Towards => away.neg(),
        }
    }
}

/// Where the column is the row's label.
fn of_class(labels: Tensor<2, Int>, dims: [usize; 2]) -> Tensor<2, Bool> {
    let columns: Vec<usize> = (0..dims[1]).collect();
    let columns: Tensor<2, Int> = label_tensor(&columns, &labels.device()).unsqueeze_dim(0);
    columns.expand(dims).equal(labels.expand(dims))
}

/// `Ok` if there is one label per sample, each the index of a logit, and a rival to each.
pub(super) fn right_labels(labels: &[usize], batch: usize, classes: usize) -> Result<()> {
    if labels.len() != batch {
        return Err(Error::shape("labels", &[labels.len()], format!("[{batch}], one per sample")));
    }
    if classes < 2 {
        return Err(Error::shape("logits of the attacked model", &[batch, classes], "two classes at least"));
    }
    match labels.iter().find(|label| **label >= classes) {
        Some(label) => Err(Error::config("labels", label, format!("below the number of logits, {classes}"))),
        None => Ok(()),
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn losses_are_their_formulas() {
        let device = Device::flex();
        let logits = Tensor::<2>::from_floats([[1.0, 3.0, 2.0], [0.0, -1.0, 4.0]], &device);
        let labels = label_tensor(&[1, 0], &device);
        let of = |loss: AttackLoss, aim| -> Vec<f32> {
            loss.of(logits.clone(), labels.clone(), aim).into_data().iter::<f32>().collect()
        };
        assert_eq!(of(AttackLoss::Margin, Aim::Away), [-1.0, 4.0]);
        assert_eq!(of(AttackLoss::Margin, Aim::Towards), [1.0, -4.0]);
        let expected = [((-2f32).exp() + 1.0 + (-1f32).exp()).ln(), (1.0 + (-1f32).exp() + 4f32.exp()).ln()];
        for (found, expected) in of(AttackLoss::CrossEntropy, Aim::Away).iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5);
        }
        for (found, expected) in of(AttackLoss::CrossEntropy, Aim::Towards).iter().zip(expected) {
            assert!((found + expected).abs() < 1e-5);
        }
    }

    /// Where cross-entropy has lost its gradient, the margin still has it.
    #[test]
    fn the_margin_has_a_gradient_where_cross_entropy_has_none() {
        let device = Device::flex();
        let gradient = |loss: AttackLoss| {
            let x = Tensor::<2>::from_floats([[300.0, 0.0]], &device).autodiff().require_grad();
            let labels = label_tensor(&[0], &device.clone().autodiff());
            let mut gradients = loss.of(x.clone(), labels, Aim::Away).sum().backward();
            x.grad_remove(&mut gradients).unwrap().into_data().iter::<f32>().collect::<Vec<f32>>()
        };
        assert_eq!(gradient(AttackLoss::CrossEntropy), [0.0, 0.0]);
        assert_eq!(gradient(AttackLoss::Margin), [-1.0, 1.0]);
    }

    #[test]
    fn a_decision_needs_numbers() {
        assert!(Aim::Away.reached(&[0.0, 1.0], 0) && !Aim::Away.reached(&[0.0, 1.0], 1));
        assert!(Aim::Towards.reached(&[0.0, 1.0], 1) && !Aim::Towards.reached(&[0.0, 1.0], 0));
        assert!(Aim::Away.reached(&[f32::NAN, 1.0], 1) && !Aim::Towards.reached(&[f32::NAN, 1.0], 1));
    }
}
