//! What is to be sampled: p(x), or p(x|y) for a class each.

use std::fmt;

use burn::tensor::{Device, Tensor};

use jem_core::data::label_tensor;
use jem_core::energy::{ConditionalEnergy, EnergyModel, Given};
use jem_core::error::{Result, ensure};
use jem_core::math::sample_extent;

/// So many samples of p(x), or one of p(x|y) for each label.
#[derive(Clone, Copy)]
pub enum Wanted<'a, const D: usize> {
    /// Samples of E(x).
    Any {
        /// The energy.
        model: &'a dyn EnergyModel<D>,
        /// How many.
        count: usize,
    },
    /// Samples of E(x, y), one for each label.
    OfClasses {
        /// The energy.
        model: &'a dyn ConditionalEnergy<D>,
        /// A class for each sample.
        labels: &'a [usize],
    },
}

impl<const D: usize> fmt::Debug for Wanted<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any { count, .. } => f.debug_struct("Any").field("count", count).finish_non_exhaustive(),
            Self::OfClasses { labels, .. } => {
                f.debug_struct("OfClasses").field("labels", labels).finish_non_exhaustive()
            }
        }
    }
}

impl<'a, const D: usize> Wanted<'a, D> {
    /// How many samples.
    pub fn count(&self) -> usize {
        match self {
            Self::Any { count, .. } => *count,
            Self::OfClasses { labels, .. } => labels.len(),
        }
    }

    /// The classes, if they are asked for.
    pub fn labels(&self) -> Option<&'a [usize]> {
        match self {
            Self::Any { .. } => None,
            Self::OfClasses { labels, .. } => Some(labels),
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        ensure(self.count() > 0, "samples wanted", self.count(), "at least 1")
    }

    /// Hands the energy to `with`, clamped to `labels` where classes are asked for.
    pub(super) fn with_energy<T>(
        &self,
        labels: Option<&[usize]>,
        device: &Device,
        with: impl FnOnce(&dyn EnergyModel<D>) -> T,
    ) -> T {
        match self {
            Self::Any { model, .. } => with(*model),
            Self::OfClasses { model, labels: all } => {
                with(&Given::new(*model, label_tensor(labels.unwrap_or(all), device)))
            }
        }
    }

    /// The energy of each of `x`, in batches; `labels` has one for each where classes are asked for.
    pub(super) fn energies(&self, x: &Tensor<D>, labels: Option<&[usize]>, batch: usize) -> Vec<f64> {
        let [count, _] = sample_extent(&x.dims());
        let mut energies = Vec::with_capacity(count);
        let mut from = 0;
        while from < count {
            let length = batch.min(count - from);
            let part = x.clone().narrow(0, from, length);
            let labels = labels.map(|labels| &labels[from..from + length]);
            let energy = self.with_energy(labels, &part.device(), |model| model.energy(part.clone()));
            energies.extend(energy.without_autodiff().into_data().iter::<f64>());
            from += length;
        }
        energies
    }
}
