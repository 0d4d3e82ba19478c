//! The loss that both objectives share, once they know which energy each part of it asks for.

use burn::tensor::Tensor;

use super::config::{Checked, contrastive_terms};
use super::{Contrast, ContrastiveDivergenceConfig};
use crate::energy::EnergyModel;
use crate::error::{Error, Result};
use crate::noise::Noise;
use crate::objectives::{Loss, Watch, terms};
use crate::samplers::Negatives;

/// The energies that one loss is made of. Without labels all but the last are the same.
pub(super) struct Energies<'a, const D: usize> {
    /// Of the data, trainable.
    pub data: &'a dyn EnergyModel<D>,
    /// Of the samples, trainable.
    pub samples: &'a dyn EnergyModel<D>,
    /// Of the samples twice over, one batch after the other, trainable.
    pub pairs: &'a dyn EnergyModel<D>,
    /// Of the samples, without autodiff.
    pub frozen: &'a dyn EnergyModel<D>,
}

impl Checked {
    /// The loss on data and samples.
    pub fn loss<const D: usize>(
        &self,
        energies: &Energies<'_, D>,
        data: Tensor<D>,
        negatives: Negatives<D>,
        noise: &mut Noise,
    ) -> Loss {
        let ContrastiveDivergenceConfig { contrast, energy_magnitude, .. } = self.config;
        let Negatives { samples, restarted, non_finite } = negatives;
        let on_data = energies.data.energy(data.autodiff());
        let on_samples = energies.samples.energy(samples.clone().autodiff());
        let gap = on_data.clone().mean() - on_samples.clone().mean();
        let mut named = vec![
            (Some(Watch::Energy), terms::ENERGY_DATA, on_data.clone().mean()),
            (Some(Watch::Energy), terms::ENERGY_SAMPLES, on_samples.clone().mean()),
            (Some(Watch::Gap), terms::ENERGY_GAP, gap.clone()),
        ];
        let mut total = match contrast {
            Contrast::Difference => gap,
            _ => {
                let value = contrast.of(on_data.clone(), on_samples.clone());
                named.push((None, contrastive_terms::CONTRAST, value.clone()));
                value
            }
        };
        if energy_magnitude > 0.0 {
            let squares = on_data.square().mean() + on_samples.square().mean();
            named.push((None, terms::ENERGY_MAGNITUDE, squares.clone()));
            total = total + squares.mul_scalar(energy_magnitude);
        }
        if let Some(last_step) = &self.last_step {
            let energy = last_step.of(energies.pairs, energies.frozen, samples, noise);
            named.push((None, contrastive_terms::LAST_STEP, energy.clone()));
            total = total + energy.mul_scalar(last_step.config().weight);
        }
        let mut loss = Loss::new(total);
        for (watch, name, value) in named {
            match watch {
                Some(watch) => loss.add_watched(watch, name, value),
                None => loss.add_term(name, value),
            }
        }
        loss.add_count(terms::RESTARTED, restarted as f64);
        loss.add_watched_count(Watch::NonFiniteSamples, terms::NON_FINITE, non_finite as f64);
        loss
    }
}

/// The number of data, if there are any.
pub(super) fn count<const D: usize>(data: &Tensor<D>) -> Result<usize> {
    match data.dims()[0] {
        0 => Err(Error::shape("contrastive divergence batch", &data.dims(), "one sample at least")),
        count => Ok(count),
    }
}
