//! The settings of annealed importance sampling, and the runs that they make.

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::plan::{self, AisPlan};
use super::run::{AisRun, Annealing, Direction};
use super::{Base, Ladder};
use crate::Watch;
use jem_core::energy::EnergyModel;
use jem_core::error::{Result, ensure, ensure_positive};
use jem_core::noise::Noise;
use jem_core::samplers::{HmcConfig, StepAdaptationConfig};

/// Configuration of [`Ais`].
///
/// ```
/// use jem_eval::ais::{AisConfig, Ladder};
/// let ais = AisConfig::new().with_temperatures(1_000).with_ladder(Ladder::Sigmoid { delta: 4.0 }).init()?;
/// assert!(AisConfig::new().with_temperatures(0).init().is_err());
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AisConfig {
    /// T, temperatures between the base and the target. Default 500.
    pub num_temperatures: usize,
    /// How they are spread. Default linear.
    pub ladder: Ladder,
    /// L, leapfrog steps of one transition. Default 10.
    pub num_leapfrog: usize,
    /// Transitions at each temperature. Default 1.
    pub transitions: usize,
    /// Jitter of the step size, see [`HmcConfig::step_jitter`]. Default 0.2.
    pub step_jitter: f64,
    /// How the pilot run finds its steps; the acceptance aimed at is 0.8.
    pub adaptation: StepAdaptationConfig,
    /// Temperatures at which the pilot run finds a step. Default 20.
    pub pilot_temperatures: usize,
    /// Transitions of the pilot run at each of them. Default 20.
    pub pilot_transitions: usize,
    /// The step that the pilot run begins with. Default 0.1.
    pub first_step_size: f64,
}

impl Default for AisConfig {
    fn default() -> Self {
        Self {
            num_temperatures: 500,
            ladder: Ladder::Linear,
            num_leapfrog: 10,
            transitions: 1,
            step_jitter: 0.2,
            adaptation: StepAdaptationConfig::default(),
            pilot_temperatures: 20,
            pilot_transitions: 20,
            first_step_size: 0.1,
        }
    }
}

impl AisConfig {
    /// 500 temperatures, one transition of 10 leapfrog steps at each.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets T.
    pub fn with_temperatures(mut self, num_temperatures: usize) -> Self {
        self.num_temperatures = num_temperatures;
        self
    }

    /// Sets how they are spread.
    pub fn with_ladder(mut self, ladder: Ladder) -> Self {
        self.ladder = ladder;
        self
    }

    /// Sets L.
    pub fn with_num_leapfrog(mut self, num_leapfrog: usize) -> Self {
        self.num_leapfrog = num_leapfrog;
        self
    }

    /// Sets the transitions at each temperature.
    pub fn with_transitions(mut self, transitions: usize) -> Self {
        self.transitions = transitions;
        self
    }

    /// Sets the temperatures and transitions of the pilot run.
    pub fn with_pilot(mut self, temperatures: usize, transitions: usize) -> Self {
        (self.pilot_temperatures, self.pilot_transitions) = (temperatures, transitions);
        self
    }

    /// Sets the step that the pilot run begins with.
    pub fn with_first_step_size(mut self, step_size: f64) -> Self {
        self.first_step_size = step_size;
        self
    }

    /// The method.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) naming the field that is not allowed.
    pub fn init(self) -> Result<Ais> {
        self.ladder.betas(self.num_temperatures)?;
        for (field, value) in [
            ("transitions", self.transitions),
            ("pilot_temperatures", self.pilot_temperatures),
            ("pilot_transitions", self.pilot_transitions),
        ] {
            ensure(value > 0, &format!("AisConfig.{field}"), value, "at least 1")?;
        }
        ensure_positive("AisConfig.first_step_size", self.first_step_size)?;
        self.adaptation.init()?;
        self.hmc().init()?;
        Ok(Ais { config: self })
    }

    /// The kernel, with the first step.
    pub(super) fn hmc(&self) -> HmcConfig {
        HmcConfig::new(self.first_step_size)
            .with_num_leapfrog(self.num_leapfrog)
            .with_step_jitter(self.step_jitter)
    }
}

/// Annealed importance sampling with Hamiltonian transitions. With p_β ∝ exp(-(1-β) E_0 - β E_1),
///
/// ```text
/// forward:  x ~ p_0,  log w = Σ_t (β_t - β_{t-1}) (E_0 - E_1)(x_{t-1}),  x_t ~ kernel of p_{β_t}
///           log Z = log Z_0 + log mean w            low on average
/// reverse:  x ~ p_1,  the same steps backwards,  log w = Σ_t (β_t - β_{t-1}) (E_1 - E_0)(x_t)
///           log Z = log Z_0 - log mean w            high on average
/// ```
///
/// mean w is an unbiased estimate of a ratio of normalisers for any kernels that leave p_{β_t} as it is, however
/// slowly they mix; slow mixing and few temperatures show as a large variance and as a gap between the two
/// directions. Steps are found in a [pilot run](Self::pilot) and fixed, so that the kernels of the real runs
/// depend on nothing that these draw.
///
/// The reverse direction needs samples of the target. With samples that are exact it is an upper bound on
/// average; with those of a long chain it is as good as the chain.
///
/// # Shapes
/// `[chains, ..]`, any rank; 100 chains or more give usable error bars.
///
/// ```
/// use burn::tensor::Device;
/// use jem_core::energy::analytic::Gaussian;
/// use jem_eval::ais::{AisConfig, LogZBracket};
/// use jem_eval::unwatched;
/// use jem_core::noise::Noise;
///
/// let (base, target) = (Gaussian::standard(), Gaussian::new(0.5, 0.8)?);
/// let (mut noise, device) = (Noise::host(0), Device::default());
/// let ais = AisConfig::new().with_temperatures(40).with_pilot(4, 10).init()?;
/// let plan = ais.pilot(&base, &target, [32, 3], &mut noise, &device)?;
/// let forward = ais.forward(&plan, &base, &target, [100, 3], &mut noise, &device, &mut unwatched)?;
/// let exact = target.sample([100, 3], &mut noise, &device);
/// let reverse = ais.reverse(&plan, &base, &target, exact, &mut noise, &mut unwatched)?;
/// let log_z = LogZBracket { forward: forward.log_z(&mut noise)?, reverse: reverse.log_z(&mut noise)? };
/// println!("{log_z}");
/// assert!(log_z.contains(target.log_normaliser(3)));
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Neal 2001, "Annealed importance sampling", arXiv physics/9803008; both directions: Grosse et al. 2015,
/// arXiv 1511.02543; for energy models: Du & Mordatch 2019, arXiv 1903.08689.
#[derive(Debug, Clone, PartialEq)]
pub struct Ais {
    config: AisConfig,
}

impl Ais {
    /// The configuration.
    pub fn config(&self) -> &AisConfig {
        &self.config
    }

    /// The temperatures, all with this step size.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) unless the step is finite and above 0.
    pub fn fixed_plan(&self, step_size: f64) -> Result<AisPlan> {
        AisPlan::new(self.config.ladder.betas(self.config.num_temperatures)?, |_| step_size)
    }

    /// The temperatures with the step that dual averaging finds for each, in a run of its own. `shape` is
    /// `[chains, ..]`; 32 chains do.
    ///
    /// # Errors
    /// [`Error::Shape`](jem_core::Error::Shape) if `shape` is empty.
    pub fn pilot<const D: usize>(
        &self,
        base: &dyn Base<D>,
        target: &dyn EnergyModel<D>,
        shape: [usize; D],
        noise: &mut Noise,
        device: &Device,
    ) -> Result<AisPlan> {
        plan::pilot(&self.config, base, target, shape, noise, device)
    }

    /// From the base to the target: a lower bound of log Z on average. `shape` is `[chains, ..]`. `watch` hears of
    /// every temperature.
    ///
    /// # Errors
    /// [`Error::Shape`](jem_core::Error::Shape) if `shape` is empty; [`Error::NonFinite`](jem_core::Error::NonFinite) if a
    /// weight is not a number or infinite.
    #[expect(clippy::too_many_arguments, reason = "each is one thing, and all are needed")]
    pub fn forward<const D: usize>(
        &self,
        plan: &AisPlan,
        base: &dyn Base<D>,
        target: &dyn EnergyModel<D>,
        shape: [usize; D],
        noise: &mut Noise,
        device: &Device,
        watch: &mut Watch<'_>,
    ) -> Result<AisRun<D>> {
        super::run::filled(&shape)?;
        let x = base.draw(shape, noise, device);
        Annealing { config: &self.config, plan, base, target }.run(Direction::Forward, x, noise, watch)
    }

    /// From samples of the target, `[chains, ..]`, to the base: an upper bound of log Z on average.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn reverse<const D: usize>(
        &self,
        plan: &AisPlan,
        base: &dyn Base<D>,
        target: &dyn EnergyModel<D>,
        samples: Tensor<D>,
        noise: &mut Noise,
        watch: &mut Watch<'_>,
    ) -> Result<AisRun<D>> {
        super::run::filled(&samples.dims())?;
        let annealing = Annealing { config: &self.config, plan, base, target };
        annealing.run(Direction::Reverse, samples.without_autodiff(), noise, watch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_settings_are_named() {
        let new = AisConfig::new;
        for (config, message) in [
            (new().with_temperatures(0), "number of temperatures = 0"),
            (new().with_ladder(Ladder::Sigmoid { delta: -1.0 }), "Ladder::Sigmoid.delta = -1"),
            (new().with_num_leapfrog(0), "HmcConfig.num_leapfrog = 0"),
            (new().with_transitions(0), "AisConfig.transitions = 0"),
            (new().with_pilot(0, 5), "AisConfig.pilot_temperatures = 0"),
            (new().with_pilot(5, 0), "AisConfig.pilot_transitions = 0"),
            (new().with_first_step_size(f64::NAN), "AisConfig.first_step_size = NaN"),
            (AisConfig { step_jitter: 1.5, ..new() }, "HmcConfig.step_jitter = 1.5"),
        ] {
            let error = config.init().unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let ais = new().init().unwrap();
        assert!(ais.fixed_plan(0.0).is_err() && ais.fixed_plan(0.1).is_ok());
    }
}
