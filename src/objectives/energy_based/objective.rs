//! The objective of energy-based learning: a loss, and the set of answers that it is taken over.

use burn::tensor::Device;

use super::{AnswerSet, EblLoss, Margin};
use crate::error::Result;
use crate::noise::Noise;
use crate::objectives::{Loss, Objective, Watch};

/// The names of the terms that [`EnergyBased`] reports.
pub mod ebl_terms {
    /// Mean E_C, the energy of correct answers.
    pub const ENERGY_CORRECT: &str = "energy_correct";
    /// Mean E_I, the energy of the most offending incorrect answers.
    pub const ENERGY_OFFENDING: &str = "energy_offending";
    /// Share of the batch where E_I does not exceed E_C by more than the loss's margin (0 where it has none).
    pub const MARGIN_VIOLATIONS: &str = "margin_violations";
    /// Share of the batch where E_I does not exceed E_C: wrong, or undecided.
    pub const ERRORS: &str = "errors";
}

/// Energy-based learning: the mean of an [`EblLoss`] over the batch.
///
/// It has no memory, and reports the terms of [`ebl_terms`] beside the total. A collapse shows as
/// `energy_correct` and `energy_offending` meeting while `errors` goes to 1.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::data::JointBatch;
/// use jem_nn::MlpConfig;
/// use jem_core::noise::Noise;
/// use jem_core::objectives::Objective;
/// use jem_core::objectives::energy_based::{Classes, EblLoss, EnergyBased, ebl_terms};
///
/// let device = Device::default();
/// let mut noise = Noise::host(0);
/// let model = MlpConfig::new(2, vec![16], 3).init(&mut noise, &device.clone().autodiff())?;
/// let x = Tensor::<2>::ones([4, 2], &device);
/// let batch = JointBatch { unlabelled: x.clone(), labelled: x, labels: vec![0, 1, 2, 0] };
/// let objective = EnergyBased::new(EblLoss::Hinge { margin: 1.0 }, Classes)?;
/// let (loss, ()) = objective.loss(&model, &batch, (), &mut noise)?;
/// assert!(loss.read().iter().any(|number| number.name == ebl_terms::MARGIN_VIOLATIONS));
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: LeCun et al., "A tutorial on energy-based learning", 2006.
#[derive(Debug, Clone, PartialEq)]
pub struct EnergyBased<A> {
    loss: EblLoss,
    answers: A,
}

impl<A> EnergyBased<A> {
    /// A loss over a set of answers.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if the parameter of the loss is not finite or not above 0.
    pub fn new(loss: EblLoss, answers: A) -> Result<Self> {
        loss.check()?;
        Ok(Self { loss, answers })
    }

    /// The loss.
    pub fn kind(&self) -> &EblLoss {
        &self.loss
    }

    /// The set of answers.
    pub fn answers(&self) -> &A {
        &self.answers
    }
}

impl<M, B, A: AnswerSet<M, B>> Objective<M, B> for EnergyBased<A> {
    type State = ();

    fn start(&self, _noise: &mut Noise, _device: &Device) -> Result<()> {
        Ok(())
    }

    fn loss(&self, model: &M, batch: &B, (): (), noise: &mut Noise) -> Result<(Loss, ())> {
        let energies = self.answers.energies(model, batch, &self.loss, noise)?;
        let mut loss = Loss::new(self.loss.per_sample(&energies)?.mean());
        let correct = energies.correct.without_autodiff();
        let offending = energies.offending.without_autodiff();
        let margin = match self.loss.margin() {
            Margin::Of(margin) => margin,
            Margin::None | Margin::Zero | Margin::Positive => 0.0,
        };
        let excess = offending.clone() - correct.clone();
        loss.add_watched(Watch::Energy, ebl_terms::ENERGY_CORRECT, correct.mean());
        loss.add_watched(Watch::Energy, ebl_terms::ENERGY_OFFENDING, offending.mean());
        let violated = excess.clone().lower_equal_elem(margin);
        loss.add_term(ebl_terms::MARGIN_VIOLATIONS, violated.float().mean());
        loss.add_term(ebl_terms::ERRORS, excess.lower_equal_elem(0.0).float().mean());
        Ok((loss, ()))
    }
}
