//! The Metropolis-adjusted Langevin algorithm: Langevin proposals behind a test that makes them exact.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::Sampler;
use super::metropolis::{MetropolisInfo, MetropolisState, metropolis_test};
use crate::energy::EnergyModel;
use crate::error::Result;
use crate::math::per_sample;
use crate::noise::{Noise, Stream};
use crate::schedule::Schedule;

/// Configuration of [`Mala`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MalaConfig {
    /// ε_t. At 0 a chain stays where it is.
    pub step_size: Schedule,
}

impl MalaConfig {
    /// Steps of size ε.
    pub fn new(step_size: impl Into<Schedule>) -> Self {
        Self { step_size: step_size.into() }
    }

    /// The sampler.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if a step can be negative or not finite.
    pub fn init(self) -> Result<Mala> {
        self.step_size.check("MalaConfig.step_size")?;
        Ok(Mala { config: self })
    }
}

/// The Metropolis-adjusted Langevin algorithm:
///
/// ```text
/// y = x - ε_t ∇E(x) + √(2ε_t) ξ,   ξ ~ N(0, I)
/// move to y with probability min(1, exp(E(x) - E(y) + [ ‖y - x + ε∇E(x)‖² - ‖x - y + ε∇E(y)‖² ] / 4ε)),
/// each chain on its own
/// ```
///
/// Exact: the stationary law is p(x) for any ε. A large ε costs acceptance (0.574 is best in many dimensions),
/// not truth. It is [`Hmc`](super::Hmc) with one leapfrog step of √(2ε). A transition costs one gradient. A
/// proposal whose energy is not finite is refused.
///
/// # Shapes
/// Any rank; `[chains, ..]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{MalaConfig, trace};
///
/// let mala = MalaConfig::new(0.5).init()?;
/// let x = Tensor::<2>::zeros([200, 2], &Device::default());
/// let mut acceptance = 0.0;
/// trace(&mala, &Gaussian::standard(), x, 20, &mut Noise::host(0), |_, info| {
///     acceptance += info.acceptance.mean().into_scalar::<f32>() / 20.0; // one read from the device per step
/// });
/// assert!(acceptance > 0.6 && acceptance < 0.95, "{acceptance}");
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Roberts & Tweedie, "Exponential convergence of Langevin distributions and their discrete
/// approximations", Bernoulli 2, 1996, doi 10.2307/3318418; 0.574: Roberts & Rosenthal 1998.
#[derive(Debug, Clone, PartialEq)]
pub struct Mala {
    config: MalaConfig,
}

impl<const D: usize> Sampler<D> for Mala {
    type State = MetropolisState<D>;
    type Info = MetropolisInfo;

    fn init(&self, model: &dyn EnergyModel<D>, x: Tensor<D>) -> MetropolisState<D> {
        MetropolisState::at(model, x)
    }

    fn step(
        &self,
        model: &dyn EnergyModel<D>,
        state: MetropolisState<D>,
        noise: &mut Noise,
    ) -> (MetropolisState<D>, MetropolisInfo) {
        let epsilon = self.config.step_size.value(state.t);
        let draws = noise.normal(state.x.dims(), Stream::CHAIN, &state.x.device());
        let y = state.x.clone() - state.gradient.clone().mul_scalar(epsilon)
            + draws.mul_scalar((2.0 * epsilon).sqrt());
        let proposal = MetropolisState::at(model, y);
        let cost = cost_of_way(&proposal, &state, epsilon) - cost_of_way(&state, &proposal, epsilon);
        let log_ratio = state.energy.clone() - proposal.energy.clone() + cost;
        metropolis_test(state, proposal, log_ratio, noise)
    }

    fn position(&self, state: &MetropolisState<D>) -> Tensor<D> {
        state.x.clone()
    }

    fn moved_to(
        &self,
        model: &dyn EnergyModel<D>,
        state: MetropolisState<D>,
        x: Tensor<D>,
    ) -> MetropolisState<D> {
        MetropolisState { t: state.t, ..MetropolisState::at(model, x) }
    }

    fn is_exact(&self) -> bool {
        true
    }
}

/// -log q(to | from) up to a constant: ‖to - from + ε∇E(from)‖² / 4ε.
fn cost_of_way<const D: usize>(
    to: &MetropolisState<D>,
    from: &MetropolisState<D>,
    epsilon: f64,
) -> Tensor<1> {
    let noise = to.x.clone() - from.x.clone() + from.gradient.clone().mul_scalar(epsilon);
    per_sample(noise).square().sum_dim(1).squeeze_dim::<1>(1).div_scalar(4.0 * epsilon)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::energy::analytic::DoubleWell;
    use crate::samplers::HmcConfig;
    use burn::tensor::Device;

    fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    /// One leapfrog step of √(2ε) is the Langevin proposal, and the two tests are the same number.
    #[test]
    fn it_is_hmc_with_one_leapfrog_step() {
        let device = Device::flex();
        let x = Noise::host(1).normal([50, 2], Stream::DATA, &device);
        let model = DoubleWell::new(2.0, 1.0).unwrap();
        let epsilon = 0.08f64;
        let mala = MalaConfig::new(epsilon).init().unwrap();
        let hmc = HmcConfig::new((2.0 * epsilon).sqrt()).with_num_leapfrog(1).init().unwrap();
        let (a, info_a) =
            mala.step(&model, Sampler::<2>::init(&mala, &model, x.clone()), &mut Noise::host(2));
        let (b, info_b) = hmc.step(&model, Sampler::<2>::init(&hmc, &model, x.clone()), &mut Noise::host(2));
        for (found, expected) in values(info_a.acceptance).iter().zip(values(info_b.acceptance)) {
            assert!((found - expected).abs() < 1e-4, "{found} != {expected}");
        }
        let accepted = values(info_a.accepted.clone().float());
        assert_eq!(accepted, values(info_b.accepted.float()));
        assert!(accepted.contains(&0.0) && accepted.contains(&1.0));
        assert!(a.x.clone().all_close(b.x, Some(1e-4), Some(1e-5)));
        // Where a chain stayed, it stayed exactly; the state's energy is that of where it is.
        for (chain, moved) in accepted.iter().enumerate() {
            let same = values(a.x.clone().narrow(0, chain, 1)) == values(x.clone().narrow(0, chain, 1));
            assert_eq!(same, *moved == 0.0);
        }
        let energy = EnergyModel::<2>::energy(&model, a.x.clone());
        assert!(a.energy.all_close(energy, Some(1e-5), Some(1e-6)) && a.t == 1);
    }

    #[test]
    fn a_step_of_zero_stays_and_bad_steps_are_refused() {
        let x = Tensor::<2>::ones([3, 1], &Device::flex());
        let still = MalaConfig::new(0.0).init().unwrap();
        let model = DoubleWell::new(1.0, 2.0).unwrap();
        let end = crate::samplers::run(&still, &model, x.clone(), 2, &mut Noise::host(0));
        assert_eq!(end.to_data(), x.to_data());
        let message = MalaConfig::new(-0.1).init().unwrap_err().to_string();
        assert!(message.contains("MalaConfig.step_size ="), "{message}");
    }
}
