//! The samplers, every one with the same number of gradients and of draws.

use burn::tensor::{Device, Tensor};
use jem_core::Result;
use jem_core::noise::{Noise, Stream};
use jem_core::samplers::{
    AnnealedLangevinConfig, HmcConfig, ImproperSgldConfig, LangevinInfo, MalaConfig, MetropolisInfo,
    ParallelTemperingConfig, Sampler, SgldConfig, StepAdaptationConfig, TemperingInfo, UlaConfig,
    UnderdampedLangevinConfig,
};
use jem_core::schedule::Schedule;

use crate::Options;
use crate::targets::Target;

/// Where chains start: uniform on a square of this half side.
const START: f32 = 2.5;
/// Gradients between two draws: a trajectory of HMC, two transitions of four replicas, eight steps of the others.
pub const SPACING: usize = 8;
/// Replicas of parallel tempering.
const REPLICAS: usize = 4;
/// Levels of the annealed chains.
const LEVELS: usize = 5;

/// What one sampler drew from one energy.
pub struct Chains {
    /// The sampler.
    pub method: &'static str,
    /// Whether its law is that of the energy.
    pub exact: bool,
    /// Positions of all chains at each draw, chain after chain.
    pub draws: Vec<Vec<f32>>,
    /// Mean probability of acceptance, where there is a test.
    pub acceptance: Option<f64>,
}

/// Chains from `start`: `warm_up` gradients that are thrown away, and a draw after every [`SPACING`] of the rest.
struct Plan<'a> {
    target: &'a Target,
    start: Tensor<2>,
    warm_up: usize,
    draws: usize,
}

impl Plan<'_> {
    /// The chains of a sampler that takes `cost` gradients a step.
    fn record<S: Sampler<2>>(
        &self,
        method: &'static str,
        sampler: &S,
        cost: usize,
        acceptance: impl Fn(&S::Info) -> Option<Tensor<1>>,
        noise: &mut Noise,
    ) -> Chains {
        let energy = &*self.target.energy;
        let mut state = sampler.init(energy, self.start.clone());
        for _ in 0..self.warm_up / cost {
            state = sampler.step(energy, state, noise).0;
        }
        let mut draws = Vec::with_capacity(self.draws);
        let mut accepted = Vec::new();
        for _ in 0..self.draws {
            for step in 0..SPACING / cost {
                let (next, info) = sampler.step(energy, state, noise);
                state = next;
                if step == 0 {
                    accepted.extend(acceptance(&info).map(|a| f64::from(a.mean().into_scalar::<f32>())));
                }
            }
            draws.push(sampler.position(&state).into_data().iter::<f32>().collect());
        }
        let mean = accepted.iter().sum::<f64>() / accepted.len() as f64;
        let acceptance = (!accepted.is_empty()).then_some(mean);
        Chains { method, exact: sampler.is_exact(), draws, acceptance }
    }
}

fn untested(_: &LangevinInfo<2>) -> Option<Tensor<1>> {
    None
}

fn tested(info: &MetropolisInfo) -> Option<Tensor<1>> {
    Some(info.acceptance.clone())
}

/// The coldest replica's.
fn coldest(info: &TemperingInfo<MetropolisInfo>) -> Option<Tensor<1>> {
    info.replicas.first().map(|info| info.acceptance.clone())
}

/// All samplers on one energy. A quarter of the gradients is warm-up.
pub fn all(target: &Target, options: &Options, noise: &mut Noise, device: &Device) -> Result<Vec<Chains>> {
    let chains = options.shortened(options.chains, 16);
    let warm_up = options.budget() / 4;
    let draws = (options.budget() - warm_up) / SPACING;
    let start = noise.uniform([chains, 2], -START..START, Stream::new("samplers_2d/start"), device);
    let plan = Plan { target, start, warm_up, draws };

    let width = target.scale * options.step_factor;
    let step = width * width / 4.0; // the step of a Langevin chain, at which its bias can be seen
    let mut found = Vec::new();

    let ula = UlaConfig::new(step).init()?;
    found.push(plan.record("Ula", &ula, 1, untested, noise));

    // α = 2η; from twice the step of Ula down to about a third of it.
    let falling = Schedule::polynomial(4.0 * step * 10f64.cbrt(), 10.0, 1.0 / 3.0);
    let sgld = SgldConfig::new(falling).init()?;
    found.push(plan.record("Sgld", &sgld, 1, untested, noise));

    // Half of the noise that the step calls for: the law of a colder energy.
    let improper = ImproperSgldConfig::new().with_step_size(step).with_noise_scale((2.0 * step).sqrt() / 2.0);
    found.push(plan.record("ImproperSgld", &improper.init()?, 1, untested, noise));

    let annealed = AnnealedLangevinConfig::geometric(2.0, 1.0, LEVELS, step)
        .with_steps_per_level((warm_up / LEVELS).max(1) as u64);
    found.push(plan.record("AnnealedLangevin", &annealed.init()?, 1, untested, noise));

    let underdamped = UnderdampedLangevinConfig::new(width / 2.0).init()?;
    found.push(plan.record("UnderdampedLangevin", &underdamped, 1, untested, noise));

    let mala = MalaConfig::new(2.0 * step).init()?;
    found.push(plan.record("Mala", &mala, 1, tested, noise));

    // The step of HMC is found by the warm-up.
    let hmc = HmcConfig::new(width / 2.0).with_num_leapfrog(SPACING).with_step_jitter(0.2);
    let adaptation = StepAdaptationConfig::new().init()?;
    let steps = warm_up / SPACING;
    let (hmc, start) = adaptation.warm_up(hmc, &*target.energy, plan.start.clone(), steps, noise)?;
    let warm = Plan { target, start, warm_up: 0, draws };
    found.push(warm.record("Hmc", &hmc.init()?, SPACING, tested, noise));

    // Hot replicas see a flatter energy and take longer steps.
    let ladder = ParallelTemperingConfig::geometric(0.1, REPLICAS);
    let kernels = ladder.inverse_temperatures.iter().map(|beta| MalaConfig::new(2.0 * step / beta).init());
    let kernels = kernels.collect::<Result<Vec<_>>>()?;
    let tempering = ladder.init_each(kernels)?;
    found.push(plan.record("ParallelTempering", &tempering, REPLICAS, coldest, noise));
    Ok(found)
}
