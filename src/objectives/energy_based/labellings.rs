//! Answers that are the labellings of a chain: learning to label sequences.

use burn::tensor::Tensor;

use super::{AnswerEnergies, AnswerSet, EblLoss};
use crate::error::{Error, Result};
use crate::inference::{Chain, ChainEnergy, Labelling};
use crate::noise::Noise;

/// Sequences with their correct labellings.
///
/// # Shapes
/// `x` is `[batch, ..]`. Labellings may be shorter than the chains of the model: positions behind the last label
/// are padding.
#[derive(Debug, Clone)]
pub struct SequenceBatch<const X: usize> {
    /// The inputs.
    pub x: Tensor<X>,
    /// The correct labels of each.
    pub labels: Vec<Vec<usize>>,
}

/// All labellings of the chains of a [`ChainEnergy`], by min-sum and the forward algorithm.
///
/// The perceptron loss on it is Collins' structured perceptron, the hinge loss a max-margin Markov network with
/// a constant margin, and the negative log-likelihood at β = 1 a conditional random field.
///
/// ```
/// use burn::module::{Module, Param};
/// use burn::tensor::{Device, Tensor};
/// use jem_core::Result;
/// use jem_core::inference::{Chain, ChainEnergy};
/// use jem_core::noise::Noise;
/// use jem_core::objectives::Objective;
/// use jem_core::objectives::energy_based::{EblLoss, EnergyBased, Labellings, SequenceBatch};
///
/// /// U[t, k] = -x[t, k], with a matrix of transitions to be learnt.
/// #[derive(Module, Debug)]
/// struct Tagger { transitions: Param<Tensor<2>> }
/// impl ChainEnergy<3> for Tagger {
///     fn chain(&self, x: Tensor<3>) -> Result<Chain> {
///         Chain::new(x.neg(), self.transitions.val())
///     }
/// }
/// let device = Device::default();
/// let model = Tagger { transitions: Param::from_tensor(Tensor::zeros([2, 2], &device.clone().autodiff())) };
/// let batch = SequenceBatch { x: Tensor::<3>::zeros([1, 4, 2], &device), labels: vec![vec![0, 1, 1]] };
/// let likelihood = EblLoss::NegativeLogLikelihood { inverse_temperature: 1.0 };
/// let objective = EnergyBased::new(likelihood, Labellings)?;
/// let (loss, ()) = objective.loss(&model, &batch, (), &mut Noise::host(0))?;
/// // Eight labellings of three positions, all alike.
/// assert!((loss.total().clone().into_scalar::<f32>() - 8f32.ln()).abs() < 1e-5);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: LeCun et al. 2006, section 6; Collins 2002; Taskar et al. 2003; Lafferty et al. 2001.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Labellings;

impl<M: ChainEnergy<X>, const X: usize> AnswerSet<M, SequenceBatch<X>> for Labellings {
    fn energies(
        &self,
        model: &M,
        batch: &SequenceBatch<X>,
        loss: &EblLoss,
        _noise: &mut Noise,
    ) -> Result<AnswerEnergies> {
        let count = batch.x.dims()[0];
        if batch.labels.len() != count {
            return Err(Error::shape("SequenceBatch.labels", &[batch.labels.len()], format!("[{count}]")));
        }
        let lengths = batch.labels.iter().map(Vec::len).collect();
        let chain: Chain = model.chain(batch.x.clone().autodiff())?.with_lengths(lengths)?;
        let energy = |found: Vec<Labelling>| {
            chain.energy(&found.into_iter().map(|labelling| labelling.labels).collect::<Vec<_>>())
        };
        let offending = energy(chain.most_offending(&batch.labels)?)?;
        let mut energies = AnswerEnergies::new(chain.energy(&batch.labels)?, offending);
        if loss.needs_lowest() {
            energies = energies.with_lowest(energy(chain.lowest())?);
        }
        if let Some(inverse_temperature) = loss.inverse_temperature() {
            energies = energies.with_free_energy(chain.free_energy(inverse_temperature)?);
        }
        Ok(energies)
    }
}
