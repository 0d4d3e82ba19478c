//! Data-parallel training: what a trainer exchanges with the others, so that all weights stay the same.

use std::collections::VecDeque;
use std::path::Path;

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};

use super::checkpoint::Checkpoints;
use super::observer::Control;
use super::saved::Saved;
use super::state::{load_record, record_bytes};
use super::trainer::Trainer;
use crate::data::BatchSource;
use crate::error::{Error, Result};
use crate::noise::Noise;
use crate::objectives::{Objective, Reading};
use crate::workers::Workers;

impl<M, B, O, L> Trainer<M, B, O, L>
where
    M: Module,
    O: Objective<M, B>,
    L: BatchSource<B>,
{
    /// The model with the weights of worker 0.
    pub(super) fn share_weights(&mut self, model: M) -> Result<M> {
        if self.workers.size() == 1 {
            return Ok(model);
        }
        let failed = |reason| Error::checkpoint("(from worker 0)", reason);
        let shared = self.workers.broadcast(record_bytes(&model).map_err(failed)?)?;
        load_record(model, &shared).map_err(failed)
    }

    /// Random streams of this worker's own; those of worker 0 are those of a run without others.
    pub(super) fn own_noise(&self, noise: Noise) -> Noise {
        match self.workers.rank() {
            0 => noise,
            rank => noise.fork(rank as u64),
        }
    }

    /// Whether all workers go on from the same iteration.
    pub(super) fn check_iteration(&mut self, iteration: u64, path: &Path) -> Result<()> {
        let all = self.workers.gather(iteration)?;
        match all.iter().position(|other| *other != iteration) {
            None => Ok(()),
            Some(worker) => {
                let reason = format!("is of iteration {iteration}, worker {worker} has {}", all[worker]);
                Err(Error::checkpoint(path, reason))
            }
        }
    }

    /// Stop if any worker stops.
    pub(super) fn agree(&mut self, control: Control) -> Result<Control> {
        let stops = self.workers.gather(u64::from(control == Control::Stop))?;
        Ok(if stops.iter().any(|stop| *stop > 0) { Control::Stop } else { Control::Continue })
    }
}

impl Checkpoints {
    /// The newest checkpoint that is whole for every worker, as each finds it in its own folder, with the errors of the
    /// newer ones that are not.
    ///
    /// # Errors
    /// As [`latest`](Self::latest), for all workers if for one; [`Error::Worker`] if one is gone.
    pub fn latest_of_all(folder: impl AsRef<Path>, workers: &mut Workers) -> Result<(Saved, Vec<Error>)> {
        let mut refused = Vec::new();
        let mut whole = Self::list(&folder)?.into_iter().rev().filter_map(|path| match Self::read(&path) {
            Ok(saved) => Some(saved),
            Err(error) => {
                refused.push(error);
                None
            }
        });
        let mut found = whole.next();
        loop {
            // 0 for none: no checkpoint is of iteration 0.
            let own = found.as_ref().map_or(0, |saved| saved.progress.iteration);
            let all = workers.gather(own)?;
            let oldest = all.iter().copied().min().unwrap_or(own);
            if oldest == 0 {
                let without = all.iter().position(|iteration| *iteration == 0).unwrap_or_default();
                let reason = format!("worker {without} has no checkpoint that all workers have");
                return Err(Error::checkpoint(folder.as_ref(), reason));
            }
            match found {
                Some(saved) if all.iter().all(|iteration| *iteration == oldest) => {
                    drop(whole);
                    return Ok((saved, refused));
                }
                Some(saved) if own == oldest => found = Some(saved),
                _ => found = whole.find(|saved| saved.progress.iteration <= oldest),
            }
        }
    }
}

/// Replaces the numbers of a step by their means over the workers.
pub(super) fn average_numbers(workers: &mut Workers, numbers: &mut [Reading]) -> Result<()> {
    if workers.size() == 1 {
        return Ok(());
    }
    let mut values: Vec<f32> = numbers.iter().map(|number| number.value as f32).collect();
    workers.mean(&mut values)?;
    numbers.iter_mut().zip(values).for_each(|(number, mean)| number.value = f64::from(mean));
    Ok(())
}

/// The means of the gradients over the workers. A parameter that no worker has a gradient for has none afterwards.
pub(super) fn average_gradients<M: Module>(
    workers: &mut Workers,
    gradients: GradientsParams,
    model: &M,
) -> Result<GradientsParams> {
    if workers.size() == 1 {
        return Ok(gradients);
    }
    let mut gathered = Gathered { gradients: &gradients, parts: Vec::new(), present: Vec::new() };
    model.visit(&mut gathered);
    let Gathered { parts, present, .. } = gathered;
    let mut values: Vec<f32> = match parts.is_empty() {
        true => Vec::new(),
        false => Tensor::cat(parts, 0).into_data().iter::<f32>().collect(),
    };
    let count = values.len();
    values.extend(present);
    workers.mean(&mut values)?;
    let present = values.split_off(count).into();
    let mut spread = Spread { values: &values, present, gradients: GradientsParams::new() };
    model.visit(&mut spread);
    Ok(spread.gradients)
}

/// Every gradient as a row, zeros where there is none, and whether there is one.
struct Gathered<'a> {
    gradients: &'a GradientsParams,
    parts: Vec<Tensor<1>>,
    present: Vec<f32>,
}

impl ModuleVisitor for Gathered<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val().without_autodiff();
        let gradient = self.gradients.get::<D>(param.id);
        self.present.push(f32::from(u8::from(gradient.is_some())));
        let gradient = gradient.map_or_else(|| value.zeros_like(), Tensor::without_autodiff);
        let count = gradient.shape().num_elements();
        self.parts.push(gradient.reshape([count]));
    }
}

/// Gradients from the numbers of [`Gathered`].
struct Spread<'a> {
    values: &'a [f32],
    present: VecDeque<f32>,
    gradients: GradientsParams,
}

impl ModuleVisitor for Spread<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val().without_autodiff();
        let (own, rest) = self.values.split_at(value.shape().num_elements());
        self.values = rest;
        if self.present.pop_front().is_some_and(|share| share > 0.0) {
            self.gradients.register(param.id, filled(own, &value.dims(), &value.device()));
        }
    }
}

fn filled<const D: usize>(values: &[f32], dims: &[usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), *dims), device)
}
