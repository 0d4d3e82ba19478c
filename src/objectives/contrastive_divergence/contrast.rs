//! The three forms in which the energies of data and of samples are set against each other.

use burn::tensor::{Tensor, activation};
use serde::{Deserialize, Serialize};

use crate::error::{Result, ensure_positive};
use crate::objectives::softplus::softplus;

/// How the energies E⁺ of data and E⁻ of samples are contrasted. T is an inverse temperature, which the authors' code
/// calls temperature.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::objectives::contrastive_divergence::Contrast;
/// let device = Device::default();
/// let data = Tensor::from_floats([0.0, 2.0], &device);
/// let samples = Tensor::from_floats([3.0, 5.0], &device);
/// let value = |contrast: Contrast| contrast.of(data.clone(), samples.clone()).into_scalar::<f32>();
/// assert_eq!(value(Contrast::Difference), -3.0);
/// // T is large: only the sample of the lowest energy counts.
/// assert!((value(Contrast::LogSumExp { inverse_temperature: 20.0 }) + 2.0).abs() < 1e-5);
/// ```
///
/// Source: Du & Mordatch 2019, arXiv 1903.08689, and its code.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contrast {
    /// mean E⁺ - mean E⁻: the gradient of maximum likelihood.
    Difference,
    /// mean log(1 + exp(T(E⁺ - E⁻))), datum i against sample i. A pair that is told apart already pulls no more, so
    /// that the energies stay bounded.
    Softplus {
        /// T.
        inverse_temperature: f64,
    },
    /// mean E⁺ - Σ w E⁻ with w = softmax(-T(E⁻ - min E⁻)) held fixed: samples of low energy count most.
    ///
    /// The weights carry no gradient, as in the authors' code, and that is what makes the gradient the one of
    /// mean E⁺ + (1/T) log mean exp(-T E⁻). With a gradient through the weights it would be that of no such function.
    /// The authors' code also multiplies both terms by T and adds 1e-4 to the normaliser of the weights; here the loss
    /// keeps the scale of the energies.
    LogSumExp {
        /// T.
        inverse_temperature: f64,
    },
}

impl Contrast {
    /// The contrast, one number.
    ///
    /// # Shapes
    /// `[data]` and `[samples]`, which are as many for [`Contrast::Softplus`].
    ///
    /// # Panics
    /// [`Contrast::Softplus`] panics if they are not as many.
    pub fn of(self, data: Tensor<1>, samples: Tensor<1>) -> Tensor<1> {
        match self {
            Self::Difference => data.mean() - samples.mean(),
            Self::Softplus { inverse_temperature } => {
                softplus((data - samples).mul_scalar(inverse_temperature)).mean()
            }
            Self::LogSumExp { inverse_temperature } => {
                // softmax subtracts the largest of -T E⁻, which is the smallest E⁻.
                let weights =
                    activation::softmax(samples.clone().detach().mul_scalar(-inverse_temperature), 0);
                data.mean() - (weights * samples).sum()
            }
        }
    }

    /// Checks T.
    pub(super) fn check(self, field: &str) -> Result<()> {
        match self {
            Self::Difference => Ok(()),
            Self::Softplus { inverse_temperature } | Self::LogSumExp { inverse_temperature } => {
                ensure_positive(&format!("{field}.inverse_temperature"), inverse_temperature)
            }
        }
    }
}
