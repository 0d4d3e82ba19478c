//! The temperatures of a run with a step size for each, found in a pilot run.

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::config::AisConfig;
use super::run::filled;
use super::{Base, GeometricPath};
use jem_core::energy::EnergyModel;
use jem_core::error::{Result, ensure_positive};
use jem_core::noise::Noise;
use jem_core::samplers::HmcConfig;

/// β_0 = 0, …, β_T = 1 and the step size of the kernel at each. Runs leave it as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AisPlan {
    betas: Vec<f64>,
    step_sizes: Vec<f64>,
}

impl AisPlan {
    /// The ladder with `step_size` of each position in it.
    pub(super) fn new(betas: Vec<f64>, step_size: impl Fn(usize) -> f64) -> Result<Self> {
        let step_sizes: Vec<f64> = (0..betas.len()).map(step_size).collect();
        step_sizes.iter().try_for_each(|step| ensure_positive("AisPlan: step size", *step))?;
        Ok(Self { betas, step_sizes })
    }

    /// The inverse temperatures.
    pub fn betas(&self) -> &[f64] {
        &self.betas
    }

    /// The step size at each.
    pub fn step_sizes(&self) -> &[f64] {
        &self.step_sizes
    }
}

/// The kernel of a base: in its box, if it has one.
pub(super) fn kernel<const D: usize>(config: &AisConfig, base: &dyn Base<D>) -> HmcConfig {
    let hmc = config.hmc();
    match base.bounds() {
        Some(bounds) => hmc.with_bounds(bounds.low, bounds.high),
        None => hmc,
    }
}

/// Anneals pilot chains over a part of the ladder, adapting the step at each temperature of it. In between the
/// logarithm of the step is linear in the position.
pub(super) fn pilot<const D: usize>(
    config: &AisConfig,
    base: &dyn Base<D>,
    target: &dyn EnergyModel<D>,
    shape: [usize; D],
    noise: &mut Noise,
    device: &Device,
) -> Result<AisPlan> {
    filled(&shape)?;
    let betas = config.ladder.betas(config.num_temperatures)?;
    let adaptation = config.adaptation.init()?;
    let hmc = kernel(config, base);
    let last = betas.len() - 1;
    let count = config.pilot_temperatures.min(last);
    let mut state = adaptation.start(config.first_step_size)?;
    let mut x: Tensor<D> = base.draw(shape, noise, device);
    let mut found: Vec<(usize, f64)> = Vec::with_capacity(count);
    for number in 1..=count {
        let position = number * last / count;
        let path = GeometricPath::new(as_energy(base), target, betas[position]);
        (state, x) = adaptation.adapt(&hmc, state, &path, x, config.pilot_transitions, noise)?;
        found.push((position, state.averaged()));
        state = adaptation.resume(state.averaged())?;
    }
    AisPlan::new(betas, |position| interpolated(&found, position))
}

/// A base as an energy.
pub(super) fn as_energy<const D: usize>(base: &dyn Base<D>) -> &dyn EnergyModel<D> {
    base
}

/// The step at `position`, between those that were found.
fn interpolated(found: &[(usize, f64)], position: usize) -> f64 {
    let after = found.partition_point(|(at, _)| *at < position);
    let Some((right, step_right)) = found.get(after) else {
        return found.last().map_or(f64::NAN, |(_, step)| *step);
    };
    let Some((left, step_left)) = after.checked_sub(1).map(|before| found[before]) else {
        return *step_right;
    };
    let share = (position - left) as f64 / (right - left) as f64;
    (step_left.ln() * (1.0 - share) + step_right.ln() * share).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_between_two_are_geometric_means() {
        let found = [(2, 1.0), (4, 4.0), (8, 0.25)];
        let steps: Vec<f64> = (0..=9).map(|position| interpolated(&found, position)).collect();
        for (found, expected) in steps.iter().zip([1.0, 1.0, 1.0, 2.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.25]) {
            assert!((found - expected).abs() < 1e-12, "{steps:?}");
        }
    }
}
