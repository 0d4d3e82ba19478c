//! Proper SGLD: Langevin dynamics whose noise matches its step, with a decaying step.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::Sampler;
use super::langevin::{ChainState, LangevinInfo, langevin_step};
use crate::energy::EnergyModel;
use crate::error::Result;
use crate::noise::Noise;
use crate::schedule::Schedule;

/// Configuration of [`Sgld`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SgldConfig {
    /// α_t. A constant gives the unadjusted Langevin algorithm; the theory asks for
    /// [`Schedule::polynomial`] with an exponent in (0.5, 1].
    pub step_size: Schedule,
}

impl SgldConfig {
    /// Steps of size α_t.
    pub fn new(step_size: impl Into<Schedule>) -> Self {
        Self { step_size: step_size.into() }
    }

    /// The sampler.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if a step can be negative or not finite.
    pub fn init(self) -> Result<Sgld> {
        self.step_size.check("SgldConfig.step_size")?;
        Ok(Sgld { config: self })
    }
}

/// Stochastic gradient Langevin dynamics with proper scaling:
///
/// ```text
/// x ← x - (α_t/2) ∇E(x) + ε,   ε ~ N(0, α_t)
/// ```
///
/// With α_t → 0 slowly enough the chain converges to p(x); with a constant step it is biased by O(α): on
/// N(0, 1) its variance is 1 / (1 - α/4).
///
/// # Shapes
/// Any rank; `[chains, ..]`.
///
/// ```
/// use jem_core::samplers::SgldConfig;
/// use jem_core::schedule::Schedule;
/// let sampler = SgldConfig::new(Schedule::polynomial(0.1, 1.0, 0.55)).init()?;
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Welling & Teh 2011, "Bayesian learning via stochastic gradient Langevin dynamics"; Grathwohl et
/// al. 2020, arXiv 1912.03263, equation 5.
#[derive(Debug, Clone, PartialEq)]
pub struct Sgld {
    config: SgldConfig,
}

impl<const D: usize> Sampler<D> for Sgld {
    type State = ChainState<D>;
    type Info = LangevinInfo<D>;

    fn init(&self, _model: &dyn EnergyModel<D>, x: Tensor<D>) -> Self::State {
        ChainState { x: x.without_autodiff(), t: 0 }
    }

    fn step(
        &self,
        model: &dyn EnergyModel<D>,
        state: Self::State,
        noise: &mut Noise,
    ) -> (Self::State, Self::Info) {
        let alpha = self.config.step_size.value(state.t);
        langevin_step(model, state, alpha / 2.0, alpha.sqrt(), None, noise)
    }

    fn position(&self, state: &Self::State) -> Tensor<D> {
        state.x.clone()
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::energy::analytic::Gaussian;
    use crate::noise::Stream;
    use burn::tensor::Device;

    #[test]
    fn noise_scales_with_the_root_of_the_step() {
        let device = Device::flex();
        let x = Tensor::<2>::from_floats([[2.0, -1.0]], &device);
        let mut noise = Noise::host(4);
        let draws = noise.clone().normal([1, 2], Stream::CHAIN, &device);
        let sampler = SgldConfig::new(0.16).init().unwrap();
        let state = sampler.init(&Gaussian::standard(), x.clone());
        let (state, _) = sampler.step(&Gaussian::standard(), state, &mut noise);
        let expected = x.clone() - x.mul_scalar(0.08) + draws.mul_scalar(0.4);
        assert!(state.x.all_close(expected, Some(1e-6), Some(1e-6)));
        assert!(SgldConfig::new(-0.1).init().is_err());
    }
}
