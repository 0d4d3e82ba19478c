//! Samplers: Markov kernels that move samples towards low energy, and the sources of negatives built on them.
//!
//! A [`Sampler`] is one kernel: what the next step needs is its `State`, what a person may want to know is its
//! `Info`. A sampler that makes one [`LangevinMove`] a step need only say which: [`Langevin`]. A [`SampleSource`]
//! owns chains across training iterations: [`Replay`] keeps them in a buffer, [`FifoReplay`] in a queue of bytes,
//! [`ShortRun`] starts them afresh each time.

mod annealed;
mod chain_start;
mod class_gaussian_start;
mod confined;
mod data_start;
mod fifo;
mod hmc;
mod inpainting;
mod kernel;
mod langevin;
mod mala;
mod metropolis;
mod mppi;
mod normalized_gradient;
mod proximal;
mod replay;
mod sgld;
mod source;
mod step_adaptation;
mod tempering;
mod ula;
mod underdamped;

pub use annealed::{AnnealedLangevin, AnnealedLangevinConfig};
pub use chain_start::{ChainStart, GaussianStart, UniformStart};
pub use class_gaussian_start::ClassGaussianStart;
pub use confined::{Confined, Neighbourhood};
pub use data_start::DataStart;
pub use fifo::{FifoBuffer, FifoReplay, FifoReplayConfig};
pub use hmc::{Hmc, HmcConfig, HmcInfo, HmcState};
pub use inpainting::Inpainting;
pub use kernel::{Bounds, ChainState, Force, Langevin, LangevinInfo, LangevinMove};
pub use langevin::{ImproperSgld, ImproperSgldConfig};
pub use mala::{Mala, MalaConfig};
pub use metropolis::{MetropolisInfo, MetropolisState};
pub use mppi::{Mppi, MppiConfig, MppiInfo};
pub use normalized_gradient::{NormalizedGradient, NormalizedGradientConfig};
pub use proximal::{ProximalSgld, ProximalSgldConfig};
pub use replay::{BufferPlace, Replay, ReplayBuffer, ReplayConfig};
pub use sgld::{Sgld, SgldConfig};
pub use source::{Negatives, Request, SampleSource, ShortRun, ShortRunConfig};
pub use step_adaptation::{AdaptationState, StepAdaptation, StepAdaptationConfig};
pub use tempering::{ParallelTempering, ParallelTemperingConfig, Swap, TemperingInfo, TemperingState};
pub use ula::{Ula, UlaConfig};
pub use underdamped::{UnderdampedLangevin, UnderdampedLangevinConfig, UnderdampedState};

use burn::tensor::Tensor;

use crate::energy::EnergyModel;
use crate::noise::Noise;

/// A Markov kernel on batches of samples, one chain per sample.
///
/// A sampler is configuration only: everything that changes is in the state, and everything random comes
/// from the noise that is handed in. It never tracks parameters and never changes the model.
///
/// # Shapes
/// Positions are `[chains, ..]`, whatever the rank; a chain's numbers do not depend on its neighbours'
/// positions.
pub trait Sampler<const D: usize> {
    /// What the next step needs.
    type State: Clone;
    /// What a person may want to know of a step. It stays on the device until it is read.
    type Info;

    /// The state of chains that start at `x`.
    fn init(&self, model: &dyn EnergyModel<D>, x: Tensor<D>) -> Self::State;

    /// One transition.
    fn step(
        &self,
        model: &dyn EnergyModel<D>,
        state: Self::State,
        noise: &mut Noise,
    ) -> (Self::State, Self::Info);

    /// Where the chains are.
    fn position(&self, state: &Self::State) -> Tensor<D>;

    /// `state` with its chains at `x`, for a wrapper that moves them between steps, as [`Confined`] does. What else
    /// the state remembers (steps made, velocities) stays.
    ///
    /// Chains that start afresh at `x` unless overridden: right where a state is its position, and a schedule that
    /// begins anew where it counts steps.
    fn moved_to(&self, model: &dyn EnergyModel<D>, state: Self::State, x: Tensor<D>) -> Self::State {
        let _ = state;
        self.init(model, x)
    }

    /// Whether the stationary distribution is exactly p(x) ∝ exp(-E(x)). If not, the documentation of the
    /// sampler states the bias.
    fn is_exact(&self) -> bool {
        false
    }
}

/// Runs chains from `x` for `num_steps` and returns where they end.
///
/// # Shapes
/// `[chains, ..]` to the same.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{ImproperSgldConfig, run};
///
/// // Without noise, a step of 1 on N(0, I) lands on the mode.
/// let sampler = ImproperSgldConfig::new().with_step_size(1.0).with_noise_scale(0.0).init()?;
/// let x = Tensor::<2>::ones([4, 3], &Device::default());
/// let end = run(&sampler, &Gaussian::standard(), x, 1, &mut Noise::host(0));
/// assert_eq!(end.abs().max().into_scalar::<f32>(), 0.0);
/// # Ok::<(), jem_core::Error>(())
/// ```
pub fn run<const D: usize, S: Sampler<D>>(
    sampler: &S,
    model: &dyn EnergyModel<D>,
    x: Tensor<D>,
    num_steps: usize,
    noise: &mut Noise,
) -> Tensor<D> {
    trace(sampler, model, x, num_steps, noise, |_, _| ())
}

/// [`run`], handing the number and the info of every step to `observe`.
pub fn trace<const D: usize, S: Sampler<D>>(
    sampler: &S,
    model: &dyn EnergyModel<D>,
    x: Tensor<D>,
    num_steps: usize,
    noise: &mut Noise,
    mut observe: impl FnMut(usize, S::Info),
) -> Tensor<D> {
    let mut state = sampler.init(model, x);
    for number in 0..num_steps {
        let (next, info) = sampler.step(model, state, noise);
        state = next;
        observe(number, info);
    }
    sampler.position(&state)
}
