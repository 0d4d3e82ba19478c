//! The KL term of contrastive divergence: the energy after one more step of the chain, with a gradient through it.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::energy::EnergyModel;
use crate::error::{Result, ensure, ensure_not_negative, ensure_positive};
use crate::math::{per_chain, per_sample};
use crate::noise::Noise;
use crate::objectives::score_matching::directional_slope;
use crate::samplers::{ChainState, Force, LangevinMove};

/// Configuration of [`LastStep`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastStepConfig {
    /// The step: as a rule that of the chains, `sampler.move_at(0)` of a [`Langevin`](crate::samplers::Langevin).
    pub kernel: LangevinMove,
    /// The weight of the term. Default 1.
    pub weight: f64,
    /// δ, the step of the difference: how far the coordinate moves that moves most. Default 0.01, for data of order 1.
    pub step: f64,
}

impl LastStepConfig {
    /// One step of `kernel`, weight 1, δ = 0.01.
    pub fn new(kernel: LangevinMove) -> Self {
        Self { kernel, weight: 1.0, step: 0.01 }
    }

    /// Sets the weight.
    pub fn with_weight(mut self, weight: f64) -> Self {
        self.weight = weight;
        self
    }

    /// Sets δ.
    pub fn with_step(mut self, step: f64) -> Self {
        self.step = step;
        self
    }

    /// The term.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) naming the field that is not allowed. A force that is normalised is not:
    /// its derivative is not that of the gradient alone.
    pub fn init(self) -> Result<LastStep> {
        let LangevinMove { drift, noise_scale, force, bounds } = self.kernel;
        ensure_positive("LastStepConfig.kernel.drift", drift)?;
        ensure_not_negative("LastStepConfig.kernel.noise_scale", noise_scale)?;
        match force {
            Force::Gradient => {}
            Force::Clipped(clip) => ensure_positive("LastStepConfig.kernel.force.clip", clip)?,
            Force::Normalized => ensure(
                false,
                "LastStepConfig.kernel.force",
                "Normalized",
                "Gradient or Clipped: the term has no gradient through a norm",
            )?,
        }
        if let Some(bounds) = bounds {
            bounds.check("LastStepConfig.kernel.bounds")?;
        }
        ensure_not_negative("LastStepConfig.weight", self.weight)?;
        ensure_positive("LastStepConfig.step", self.step)?;
        Ok(LastStep { config: self })
    }
}

/// The energy after one more step, as a function of the parameters θ that the step was made with:
///
/// ```text
/// L(θ) = mean E_fixed(x_K),   x_K = clamp(x - η force(∇E_θ(x)) + σ ε)
/// ∂L/∂θ = -η mean ∂/∂θ [ v·∇E_θ(x) ],   v = ∇E(x_K) held fixed
///       ≈ -η mean ‖v‖_∞ ∂/∂θ [ E_θ(x + δu) - E_θ(x - δu) ] / 2δ,   u = v / ‖v‖_∞
/// ```
///
/// Maximum likelihood takes the samples as given, although they come from a chain on the model. This is the term that
/// it leaves out: it trains the model so that its chains arrive at low energies. x are the samples of the source, so
/// that this step is one more than the source has made.
///
/// Burn differentiates once, so that v·∇E is a difference of two energies whose gradient in θ is taken. Where the
/// clip of the force or the box holds an element fixed, it does not depend on θ, and v is set to 0 there: with a
/// clip as tight as IGEBM's 0.01 little may be left.
///
/// The value is the true mean E(x_K), while its gradient is the one above. The price is two gradients in x and two
/// energies per sample beyond those of the contrast.
///
/// # Step size
/// u has 1 as its largest element, so that δ is on the scale of x. Its square times a sixth of the third derivative
/// along u is left out, and rounding adds about 6e-8 |E|/δ in f32. Relative errors of the gradient in
/// θ = (0.8, 0.3) for E(x) = ½ θ₁ ‖x‖² + ¼ θ₂ Σ x⁴ in the plane, 256 points of N(0, 1), η = 0.1:
///
/// | δ | f32 | f64 |
/// | --- | --- | --- |
/// | 1 | 3e-1 | 3e-1 |
/// | 0.3 | 2e-2 | 2e-2 |
/// | 0.1 | 3e-3 | 3e-3 |
/// | 0.03 | 2e-4 | 2e-4 |
/// | 0.01 | 3e-5 | 3e-5 |
/// | 0.003 | 7e-6 | 2e-6 |
/// | 0.001 | 2e-5 | 2e-7 |
/// | 0.0001 | 4e-4 | 2e-9 |
/// | 0.00001 | 6e-4 | 6e-10 |
///
/// The sweet spot in f32 is near 0.003, where both errors meet. The default of 0.01 lies on the side that is safe where
/// |E| is larger, as it is in networks. Scale δ with the data.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::noise::Noise;
/// use jem_core::objectives::contrastive_divergence::LastStepConfig;
/// use jem_core::samplers::{Force, LangevinMove};
///
/// let kernel = LangevinMove { drift: 0.5, noise_scale: 0.0, force: Force::Gradient, bounds: None };
/// let last = LastStepConfig::new(kernel).init()?;
/// let x = Tensor::<2>::from_floats([[2.0, 0.0]], &Device::default());
/// let model = Gaussian::standard(); // x_K = x / 2
/// let energy = last.of(&model, &model, x, &mut Noise::host(0));
/// assert_eq!(energy.into_scalar::<f32>(), 0.5);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Du et al. 2021, arXiv 2012.01316, section 3; the gradient there is by automatic differentiation through
/// the step.
#[derive(Debug, Clone, PartialEq)]
pub struct LastStep {
    config: LastStepConfig,
}

impl LastStep {
    /// The configuration.
    pub fn config(&self) -> &LastStepConfig {
        &self.config
    }

    /// Mean E(x_K) without its weight, with the gradient in the parameters of `model`.
    ///
    /// `frozen` is the same energy without autodiff. `model` is asked for the energies of 2n samples at once, x + δu
    /// and x - δu one after the other: clamped labels must come twice over.
    ///
    /// # Shapes
    /// `[n, ..]` to `[1]`.
    pub fn of<const D: usize>(
        &self,
        model: &dyn EnergyModel<D>,
        frozen: &dyn EnergyModel<D>,
        x: Tensor<D>,
        noise: &mut Noise,
    ) -> Tensor<1> {
        let LastStepConfig { kernel, step, .. } = self.config;
        let unbounded = LangevinMove { bounds: None, ..kernel };
        let (moved, info) = unbounded.apply(frozen, ChainState { x: x.clone(), t: 0 }, noise);
        let end = match kernel.bounds {
            Some(bounds) => bounds.clamp(moved.x.clone()),
            None => moved.x.clone(),
        };
        let (energy, slope_at_end) = frozen.energy_and_grad(end.clone());
        let held_by_box = end.not_equal(moved.x);
        let held_by_clip = kernel.force.of(info.gradient.clone()).not_equal(info.gradient);
        let v = slope_at_end.mask_fill(held_by_box, 0.0).mask_fill(held_by_clip, 0.0);

        let size = per_sample(v.clone()).abs().max_dim(1).squeeze_dim::<1>(1);
        let divisor = size.clone().mask_fill(size.clone().equal_scalar(0.0), 1.0);
        let direction = v / per_chain(divisor);
        let slope = directional_slope(model, x.autodiff(), direction.autodiff(), step);
        let surrogate = (slope * size.autodiff()).mean().mul_scalar(-kernel.drift);
        energy.mean().autodiff() + (surrogate.clone() - surrogate.detach())
    }
}
