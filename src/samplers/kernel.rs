//! The one move of all Langevin samplers: x ← clamp(x - η force(∇E(x)) + σ ε), and what it needs.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::Sampler;
use crate::energy::EnergyModel;
use crate::error::{Result, ensure, ensure_positive};
use crate::math::{per_chain, per_sample, sample_norms};
use crate::noise::{Noise, Stream};

/// Chains, and the number of steps that they have made, which is where the schedules are read.
#[derive(Debug, Clone)]
pub struct ChainState<const D: usize> {
    /// Positions, `[chains, ..]`.
    pub x: Tensor<D>,
    /// Steps made.
    pub t: u64,
}

/// Energy and gradient at the position that a step started from.
#[derive(Debug, Clone)]
pub struct LangevinInfo<const D: usize> {
    /// E(x), `[chains]`.
    pub energy: Tensor<1>,
    /// ∇E(x) as the model gave it, before any clipping, `[chains, ..]`.
    pub gradient: Tensor<D>,
}

impl<const D: usize> LangevinInfo<D> {
    /// ‖∇E(x)‖₂ of each chain, computed when asked for.
    pub fn gradient_norm(&self) -> Tensor<1> {
        sample_norms(self.gradient.clone())
    }
}

/// The box that samples are clamped to after each step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Lower bound of every coordinate.
    pub low: f32,
    /// Upper bound of every coordinate.
    pub high: f32,
}

impl Bounds {
    /// `x` with every coordinate clamped to the box.
    pub fn clamp<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        x.clamp(self.low, self.high)
    }

    /// `Ok` if the box is finite and not empty.
    pub(crate) fn check(&self, field: &str) -> Result<()> {
        let Self { low, high } = *self;
        let allowed = low.is_finite() && high.is_finite() && low < high;
        ensure(allowed, field, format!("[{low}, {high}]"), "finite, the lower below the upper")
    }
}

/// Checks the two options that Langevin samplers have in common.
pub(super) fn check_options(owner: &str, clip: Option<f32>, bounds: Option<Bounds>) -> Result<()> {
    if let Some(clip) = clip {
        ensure_positive(&format!("{owner}.gradient_clip"), clip)?;
    }
    bounds.map_or(Ok(()), |bounds| bounds.check(&format!("{owner}.bounds")))
}

/// What a chain follows downhill.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Force {
    /// ∇E(x) as it is.
    Gradient,
    /// ∇E(x) with each element clamped to ± this.
    Clipped(f32),
    /// ∇E(x) / ‖∇E(x)‖₂ of each chain; 0 where the gradient is 0.
    Normalized,
}

impl Force {
    /// Clipped if there is a clip.
    pub(super) fn clipped(clip: Option<f32>) -> Self {
        clip.map_or(Self::Gradient, Self::Clipped)
    }

    /// The force of a gradient, both `[chains, ..]`.
    pub fn of<const D: usize>(self, gradient: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Gradient => gradient,
            Self::Clipped(clip) => gradient.clamp(-clip, clip),
            Self::Normalized => {
                // Divided by the largest element first, so that squares neither vanish nor overflow.
                let largest = per_sample(gradient.clone()).abs().max_dim(1).squeeze_dim::<1>(1);
                let largest = largest.clone().mask_fill(largest.equal_scalar(0.0), 1.0);
                let scaled = gradient / per_chain(largest);
                let norm = sample_norms(scaled.clone()).clamp_min(1.0);
                scaled / per_chain(norm)
            }
        }
    }
}

/// One Langevin move: x ← clamp(x - η force(∇E(x)) + σ ε), ε ~ N(0, I).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LangevinMove {
    /// η, the factor of the force.
    pub drift: f64,
    /// σ, the standard deviation of the noise. At 0 nothing is drawn.
    pub noise_scale: f64,
    /// What is made of the gradient.
    pub force: Force,
    /// The box that every coordinate is clamped to, if any.
    pub bounds: Option<Bounds>,
}

impl LangevinMove {
    /// The chains after this move, with energy and gradient where it started.
    pub fn apply<const D: usize>(
        &self,
        model: &dyn EnergyModel<D>,
        state: ChainState<D>,
        noise: &mut Noise,
    ) -> (ChainState<D>, LangevinInfo<D>) {
        let ChainState { x, t } = state;
        let (energy, gradient) = model.energy_and_grad(x.clone());
        let mut x = x - self.force.of(gradient.clone()).mul_scalar(self.drift);
        if self.noise_scale > 0.0 {
            let draws = noise.normal(x.dims(), Stream::CHAIN, &x.device());
            x = x + draws.mul_scalar(self.noise_scale);
        }
        let x = match self.bounds {
            Some(bounds) => bounds.clamp(x),
            None => x,
        };
        (ChainState { x, t: t + 1 }, LangevinInfo { energy, gradient })
    }
}

/// A sampler whose every step is one [`LangevinMove`]. To say which move is all there is to do: whatever
/// implements this is a [`Sampler`] of any rank.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{Force, Langevin, LangevinMove, run};
///
/// /// Gradient descent: x ← x - ∇E(x)/2.
/// struct Descent;
/// impl Langevin for Descent {
///     fn move_at(&self, _t: u64) -> LangevinMove {
///         LangevinMove { drift: 0.5, noise_scale: 0.0, force: Force::Gradient, bounds: None }
///     }
/// }
/// let x = Tensor::<2>::ones([1, 1], &Device::default());
/// let end = run(&Descent, &Gaussian::standard(), x, 3, &mut Noise::host(0));
/// assert_eq!(end.into_scalar::<f32>(), 0.125);
/// ```
pub trait Langevin {
    /// The move of step t = 0, 1, 2, …
    fn move_at(&self, t: u64) -> LangevinMove;
}

impl<const D: usize, L: Langevin> Sampler<D> for L {
    type State = ChainState<D>;
    type Info = LangevinInfo<D>;

    fn init(&self, _model: &dyn EnergyModel<D>, x: Tensor<D>) -> ChainState<D> {
        ChainState { x: x.without_autodiff(), t: 0 }
    }

    fn step(
        &self,
        model: &dyn EnergyModel<D>,
        state: ChainState<D>,
        noise: &mut Noise,
    ) -> (ChainState<D>, LangevinInfo<D>) {
        self.move_at(state.t).apply(model, state, noise)
    }

    fn position(&self, state: &ChainState<D>) -> Tensor<D> {
        state.x.clone()
    }

    fn moved_to(&self, _model: &dyn EnergyModel<D>, state: ChainState<D>, x: Tensor<D>) -> ChainState<D> {
        ChainState { x: x.without_autodiff(), t: state.t }
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn normalized_forces_have_length_one_at_any_scale_and_zero_stays_zero() {
        let device = Device::flex();
        let gradient =
            Tensor::<2>::from_floats([[3.0, 4.0], [3e-30, 4e-30], [-3e30, 4e30], [0.0, 0.0]], &device);
        let force: Vec<f32> = Force::Normalized.of(gradient).into_data().try_to_vec().unwrap();
        for (found, expected) in force.iter().zip([0.6, 0.8, 0.6, 0.8, -0.6, 0.8, 0.0, 0.0]) {
            assert!((found - expected).abs() < 1e-6, "{force:?}");
        }
    }

    #[test]
    fn norms_are_per_chain_whatever_the_rank() {
        let gradient = Tensor::<3>::from_floats([[[3.0], [4.0]], [[0.0], [-2.0]]], &Device::flex());
        let force: Vec<f32> = Force::Normalized.of(gradient).into_data().try_to_vec().unwrap();
        assert_eq!(force, [0.6, 0.8, 0.0, -1.0]);
    }
}
