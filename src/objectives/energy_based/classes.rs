//! Answers that are labels: the classes of a classifier, or the labels of any energy of samples and labels.

use super::{AnswerEnergies, AnswerSet, EblLoss};
use crate::data::JointBatch;
use crate::energy::{Classifier, ConditionalEnergy};
use crate::error::{Error, Result, ensure};
use crate::inference::EnergyTable;
use crate::noise::Noise;

/// The classes of any [`Classifier`], with E(x, y) = -f(x)\[y\]. Of a batch the labelled part is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Classes;

impl<M: Classifier<D>, const D: usize> AnswerSet<M, JointBatch<D>> for Classes {
    fn energies(
        &self,
        model: &M,
        batch: &JointBatch<D>,
        loss: &EblLoss,
        _noise: &mut Noise,
    ) -> Result<AnswerEnergies> {
        check(batch)?;
        let table = EnergyTable::of_classifier(model, batch.labelled.clone().autodiff())?;
        of_table(&table, &batch.labels, loss)
    }
}

/// The labels 0 to n - 1 of any [`ConditionalEnergy`], one evaluation of the energy for each. Of a batch the
/// labelled part is used.
///
/// ```
/// use jem_core::objectives::energy_based::{EblLoss, EnergyBased, Labels};
/// let objective = EnergyBased::new(EblLoss::Log, Labels::new(10)?)?;
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Labels {
    count: usize,
}

impl Labels {
    /// `count` labels.
    ///
    /// # Errors
    /// [`Error::Config`] for fewer than two.
    pub fn new(count: usize) -> Result<Self> {
        ensure(count > 1, "Labels.count", count, "at least 2")?;
        Ok(Self { count })
    }
}

impl<M: ConditionalEnergy<D>, const D: usize> AnswerSet<M, JointBatch<D>> for Labels {
    fn energies(
        &self,
        model: &M,
        batch: &JointBatch<D>,
        loss: &EblLoss,
        _noise: &mut Noise,
    ) -> Result<AnswerEnergies> {
        check(batch)?;
        let table = EnergyTable::of_labels(model, batch.labelled.clone().autodiff(), self.count)?;
        of_table(&table, &batch.labels, loss)
    }
}

fn check<const D: usize>(batch: &JointBatch<D>) -> Result<()> {
    let count = batch.labelled.dims()[0];
    if batch.labels.len() == count {
        return Ok(());
    }
    Err(Error::shape("JointBatch.labels", &[batch.labels.len()], format!("[{count}]")))
}

/// What a loss needs of a table of energies in which every input has a correct answer.
fn of_table(table: &EnergyTable, correct: &[usize], loss: &EblLoss) -> Result<AnswerEnergies> {
    let offending = table.most_offending(correct)?.energy;
    let mut energies = AnswerEnergies::new(table.of_answers(correct)?, offending);
    if loss.needs_lowest() {
        energies = energies.with_lowest(table.lowest().energy);
    }
    if let Some(inverse_temperature) = loss.inverse_temperature() {
        energies = energies.with_free_energy(table.free_energy(inverse_temperature)?);
    }
    Ok(energies)
}
