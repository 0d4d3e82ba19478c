//! The ten losses of energy-based learning, as functions of the energies of a few answers.

use burn::tensor::{Tensor, activation};
use serde::{Deserialize, Serialize};

use super::AnswerEnergies;
use crate::error::{Result, ensure_positive};
use crate::objectives::softplus::softplus;

/// A loss of energy-based learning. It pulls the energy of the correct answer C down and pushes that of others
/// up, in particular of I, the most offending incorrect one; which others, and how far, is the difference.
///
/// | loss | formula | margin | a flat surface is optimal |
/// | --- | --- | --- | --- |
/// | [`Energy`](Self::Energy) | E_C | none | yes: collapses unless the architecture forbids it |
/// | [`Perceptron`](Self::Perceptron) | E_C - min_Y E | 0 | yes |
/// | [`Hinge`](Self::Hinge) | max(0, m + E_C - E_I) | m | no |
/// | [`Log`](Self::Log) | log(1 + e^(E_C - E_I)) | > 0 | no |
/// | [`Lvq2`](Self::Lvq2) | min(M, max(0, E_C - E_I)) | 0 | yes |
/// | [`MinimumClassificationError`](Self::MinimumClassificationError) | 1 / (1 + e^-(E_C - E_I)) | > 0 | no |
/// | [`SquareSquare`](Self::SquareSquare) | E_C² + max(0, m - E_I)² | m | no |
/// | [`SquareExponential`](Self::SquareExponential) | E_C² + γ e^(-E_I) | > 0 | no |
/// | [`NegativeLogLikelihood`](Self::NegativeLogLikelihood) | E_C + (1/β) log Σ_Y e^(-βE) | > 0 | no |
/// | [`MinimumEmpiricalError`](Self::MinimumEmpiricalError) | 1 - e^(-βE_C) / Σ_Y e^(-βE) | > 0 | no |
///
/// The margin is by how much E_I must exceed E_C before the loss no longer pulls; > 0 means that it always
/// pulls. With margin 0, equal energies for all answers have the smallest loss there is, so that training may
/// end at a surface that tells nothing. The square losses and the energy loss see the energies themselves, the
/// others only differences: for the former the energy should be bounded below, by 0 best of all.
///
/// With E(x, y) = -f(x)\[y\] and β = 1 the negative log-likelihood is the cross-entropy of softmax, and the log
/// loss of two classes is logistic regression.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::objectives::energy_based::{AnswerEnergies, EblLoss};
///
/// let device = Device::default();
/// let (correct, offending) = (Tensor::from_floats([1.0, 0.0], &device), Tensor::from_floats([1.5, 3.0], &device));
/// let energies = AnswerEnergies::new(correct, offending);
/// let loss = EblLoss::Hinge { margin: 1.0 }.per_sample(&energies)?;
/// assert_eq!(loss.into_data().try_to_vec::<f32>().unwrap(), [0.5, 0.0]);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: LeCun et al. 2006, section 2.2 and table 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EblLoss {
    /// E_C: pulls down, and pushes nothing up.
    Energy,
    /// E_C - min_Y E, the generalised perceptron: pushes up what inference finds (LeCun et al. 1998, Collins
    /// 2002).
    Perceptron,
    /// max(0, m + E_C - E_I) (Altun et al. 2003; Taskar et al. 2003).
    Hinge {
        /// m, above 0.
        margin: f64,
    },
    /// log(1 + e^(E_C - E_I)): a soft hinge without an end.
    Log,
    /// min(M, max(0, E_C - E_I)) (Kohonen et al. 1988; Driancourt 1994): hopeless samples do not pull. Without the
    /// division by E_I of the source.
    Lvq2 {
        /// M, above 0.
        cap: f64,
    },
    /// 1 / (1 + e^-(E_C - E_I)) (Juang et al. 1997): a soft count of errors.
    MinimumClassificationError,
    /// E_C² + max(0, m - E_I)² (LeCun & Huang 2005).
    SquareSquare {
        /// m, above 0.
        margin: f64,
    },
    /// E_C² + γ e^(-E_I) (Osadchy et al. 2005).
    SquareExponential {
        /// γ, above 0.
        gamma: f64,
    },
    /// E_C - F_β, with the free energy F_β = -(1/β) log Σ_Y e^(-βE): maximum likelihood, which pushes every
    /// answer up by its probability.
    NegativeLogLikelihood {
        /// β, above 0.
        inverse_temperature: f64,
    },
    /// 1 - e^(-βE_C) / Σ_Y e^(-βE): the probability of error.
    MinimumEmpiricalError {
        /// β, above 0.
        inverse_temperature: f64,
    },
}

/// By how much E_I must exceed E_C before a loss no longer pulls: a column of the table of [`EblLoss`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Margin {
    /// It does not look at incorrect answers.
    None,
    /// By nothing.
    Zero,
    /// By this much.
    Of(f64),
    /// It always pulls, ever less.
    Positive,
}

impl EblLoss {
    /// One of each, with every parameter 1.
    pub const ALL: [Self; 10] = [
        Self::Energy,
        Self::Perceptron,
        Self::Hinge { margin: 1.0 },
        Self::Log,
        Self::Lvq2 { cap: 1.0 },
        Self::MinimumClassificationError,
        Self::SquareSquare { margin: 1.0 },
        Self::SquareExponential { gamma: 1.0 },
        Self::NegativeLogLikelihood { inverse_temperature: 1.0 },
        Self::MinimumEmpiricalError { inverse_temperature: 1.0 },
    ];

    /// The loss's name in words.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Energy => "energy",
            Self::Perceptron => "generalised perceptron",
            Self::Hinge { .. } => "hinge",
            Self::Log => "log",
            Self::Lvq2 { .. } => "LVQ2",
            Self::MinimumClassificationError => "minimum classification error",
            Self::SquareSquare { .. } => "square-square",
            Self::SquareExponential { .. } => "square-exponential",
            Self::NegativeLogLikelihood { .. } => "negative log-likelihood",
            Self::MinimumEmpiricalError { .. } => "minimum empirical error",
        }
    }

    /// The margin that it asks for.
    pub fn margin(&self) -> Margin {
        match self {
            Self::Energy => Margin::None,
            Self::Perceptron | Self::Lvq2 { .. } => Margin::Zero,
            Self::Hinge { margin } | Self::SquareSquare { margin } => Margin::Of(*margin),
            _ => Margin::Positive,
        }
    }

    /// Whether no surface has a smaller loss than a flat one (at the lowest energy that there is, for
    /// [`Energy`](Self::Energy)), so that training may collapse.
    pub fn flat_is_optimal(&self) -> bool {
        matches!(self.margin(), Margin::None | Margin::Zero)
    }

    /// Whether it needs min_Y E.
    pub fn needs_lowest(&self) -> bool {
        matches!(self, Self::Perceptron)
    }

    /// The β at which it needs the free energy, if it does.
    pub fn inverse_temperature(&self) -> Option<f64> {
        match self {
            Self::NegativeLogLikelihood { inverse_temperature }
            | Self::MinimumEmpiricalError { inverse_temperature } => Some(*inverse_temperature),
            _ => None,
        }
    }

    /// Checks its parameter.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless it is finite and above 0.
    pub fn check(&self) -> Result<()> {
        let (field, value) = match self {
            Self::Hinge { margin } => ("EblLoss.Hinge.margin", margin),
            Self::SquareSquare { margin } => ("EblLoss.SquareSquare.margin", margin),
            Self::Lvq2 { cap } => ("EblLoss.Lvq2.cap", cap),
            Self::SquareExponential { gamma } => ("EblLoss.SquareExponential.gamma", gamma),
            Self::NegativeLogLikelihood { inverse_temperature } => {
                ("EblLoss.NegativeLogLikelihood.inverse_temperature", inverse_temperature)
            }
            Self::MinimumEmpiricalError { inverse_temperature } => {
                ("EblLoss.MinimumEmpiricalError.inverse_temperature", inverse_temperature)
            }
            Self::Energy | Self::Perceptron | Self::Log | Self::MinimumClassificationError => return Ok(()),
        };
        ensure_positive(field, *value)
    }

    /// The loss of each sample. It carries the gradients of the energies.
    ///
    /// # Shapes
    /// `[batch]`.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if it needs an energy that is not there.
    pub fn per_sample(&self, energies: &AnswerEnergies) -> Result<Tensor<1>> {
        let correct = energies.correct.clone();
        let offending = energies.offending.clone();
        let gap = || energies.correct.clone() - energies.offending.clone();
        Ok(match self {
            Self::Energy => correct,
            Self::Perceptron => correct - energies.need_lowest(self)?,
            Self::Hinge { margin } => activation::relu(gap().add_scalar(*margin)),
            Self::Log => softplus(gap()),
            Self::Lvq2 { cap } => activation::relu(gap()).clamp_max(*cap),
            Self::MinimumClassificationError => activation::sigmoid(gap()),
            Self::SquareSquare { margin } => {
                correct.square() + activation::relu(offending.neg().add_scalar(*margin)).square()
            }
            Self::SquareExponential { gamma } => correct.square() + offending.neg().exp().mul_scalar(*gamma),
            Self::NegativeLogLikelihood { .. } => correct - energies.need_free_energy(self)?,
            Self::MinimumEmpiricalError { inverse_temperature } => {
                let log_p = (energies.need_free_energy(self)? - correct).mul_scalar(*inverse_temperature);
                log_p.exp().neg().add_scalar(1.0)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_checked_by_name_and_survive_the_round_trip() {
        for loss in EblLoss::ALL {
            loss.check().unwrap();
            let text = serde_json::to_string(&loss).unwrap();
            assert_eq!(serde_json::from_str::<EblLoss>(&text).unwrap(), loss, "{text}");
        }
        for (loss, field) in [
            (EblLoss::Hinge { margin: 0.0 }, "EblLoss.Hinge.margin = 0"),
            (EblLoss::SquareSquare { margin: -1.0 }, "EblLoss.SquareSquare.margin"),
            (EblLoss::Lvq2 { cap: f64::NAN }, "EblLoss.Lvq2.cap"),
            (EblLoss::SquareExponential { gamma: 0.0 }, "EblLoss.SquareExponential.gamma"),
            (EblLoss::NegativeLogLikelihood { inverse_temperature: 0.0 }, "NegativeLogLikelihood.inverse"),
            (EblLoss::MinimumEmpiricalError { inverse_temperature: f64::INFINITY }, "EmpiricalError.inverse"),
        ] {
            let message = loss.check().unwrap_err().to_string();
            assert!(message.contains(field), "{message}");
        }
    }
}
