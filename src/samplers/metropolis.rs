//! The Metropolis test that makes a proposal exact, chain by chain, and the state that it chooses between.

use burn::tensor::{Bool, Tensor};

use crate::energy::EnergyModel;
use crate::noise::{Noise, Stream};

/// Positions with the energy and the gradient there, and the number of transitions made.
#[derive(Debug, Clone)]
pub struct MetropolisState<const D: usize> {
    /// Positions, `[chains, ..]`.
    pub x: Tensor<D>,
    /// E(x), `[chains]`.
    pub energy: Tensor<1>,
    /// ∇E(x), `[chains, ..]`.
    pub gradient: Tensor<D>,
    /// Transitions made, which is where the schedules are read.
    pub t: u64,
}

impl<const D: usize> MetropolisState<D> {
    /// Chains at `x` that have made no transition yet.
    pub fn at(model: &dyn EnergyModel<D>, x: Tensor<D>) -> Self {
        let x = x.without_autodiff();
        let (energy, gradient) = model.energy_and_grad(x.clone());
        Self { x, energy, gradient, t: 0 }
    }

    /// For each chain `other` where `mask` holds, else this one.
    pub(super) fn replaced(self, mask: &Tensor<1, Bool>, other: &Self) -> Self {
        let dims = self.x.dims();
        let mut one_per_chain = [1; D];
        one_per_chain[0] = dims[0];
        let wide: Tensor<D, Bool> = mask.clone().reshape(one_per_chain).expand(dims);
        Self {
            x: self.x.mask_where(wide.clone(), other.x.clone()),
            energy: self.energy.mask_where(mask.clone(), other.energy.clone()),
            gradient: self.gradient.mask_where(wide, other.gradient.clone()),
            t: self.t,
        }
    }

    /// The same chains under an energy that is `factor` times as large.
    pub(super) fn scaled(self, factor: f32) -> Self {
        Self { energy: self.energy.mul_scalar(factor), gradient: self.gradient.mul_scalar(factor), ..self }
    }
}

/// What became of the proposals of one transition.
#[derive(Debug, Clone)]
pub struct MetropolisInfo {
    /// Which chains moved, `[chains]`.
    pub accepted: Tensor<1, Bool>,
    /// min(1, ratio), the probability of moving, `[chains]`; 0 for a proposal that left the finite numbers.
    pub acceptance: Tensor<1>,
    /// E(x) after the test, `[chains]`.
    pub energy: Tensor<1>,
}

/// Moves each chain to its proposal with probability min(1, exp(`log_ratio`)).
///
/// A NaN compares as false, and an infinite energy is no place to be: both are refused.
pub(super) fn metropolis_test<const D: usize>(
    state: MetropolisState<D>,
    proposal: MetropolisState<D>,
    log_ratio: Tensor<1>,
    noise: &mut Noise,
) -> (MetropolisState<D>, MetropolisInfo) {
    let t = state.t + 1;
    let finite = proposal.energy.clone().is_finite();
    let (accepted, acceptance) = accept(log_ratio, &finite, noise);
    let state = MetropolisState { t, ..state.replaced(&accepted, &proposal) };
    let energy = state.energy.clone();
    (state, MetropolisInfo { accepted, acceptance, energy })
}

/// Draws who moves, and with what probability; where `allowed` is false nobody does.
pub(super) fn accept(
    log_ratio: Tensor<1>,
    allowed: &Tensor<1, Bool>,
    noise: &mut Noise,
) -> (Tensor<1, Bool>, Tensor<1>) {
    let uniform = noise.uniform(log_ratio.dims(), 0.0..1.0, Stream::CHAIN, &log_ratio.device());
    let accepted = uniform.log().lower(log_ratio.clone()).bool_and(allowed.clone());
    let acceptance = log_ratio.exp().clamp_max(1.0).mask_fill(allowed.clone().bool_not(), 0.0);
    let acceptance = acceptance.clone().mask_fill(acceptance.is_nan(), 0.0);
    (accepted, acceptance)
}
