//! Dual averaging: the step size that gives Hamiltonian Monte Carlo a wished acceptance.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{HmcConfig, Sampler};
use crate::energy::EnergyModel;
use crate::error::{Result, ensure, ensure_positive};
use crate::noise::Noise;

/// Configuration of [`StepAdaptation`]; the defaults are those of Hoffman and Gelman.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepAdaptationConfig {
    /// δ, the mean acceptance wished for. Default 0.8.
    pub target_acceptance: f64,
    /// γ: small values move the step far for a given error. Default 0.05.
    pub gain: f64,
    /// t₀: damps the first updates. Default 10.
    pub delay: f64,
    /// κ: how fast the average forgets, in (0.5, 1]. Default 0.75.
    pub decay: f64,
}

impl Default for StepAdaptationConfig {
    fn default() -> Self {
        Self { target_acceptance: 0.8, gain: 0.05, delay: 10.0, decay: 0.75 }
    }
}

impl StepAdaptationConfig {
    /// Towards an acceptance of 0.8.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets δ.
    pub fn with_target_acceptance(mut self, target: f64) -> Self {
        self.target_acceptance = target;
        self
    }

    /// The adaptation.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) naming the field that is not allowed.
    pub fn init(self) -> Result<StepAdaptation> {
        let target = self.target_acceptance;
        let allowed = target > 0.0 && target < 1.0;
        ensure(allowed, "StepAdaptationConfig.target_acceptance", target, "in (0, 1)")?;
        ensure_positive("StepAdaptationConfig.gain", self.gain)?;
        ensure_positive("StepAdaptationConfig.delay", self.delay)?;
        let allowed = self.decay > 0.5 && self.decay <= 1.0;
        ensure(allowed, "StepAdaptationConfig.decay", self.decay, "in (0.5, 1]")?;
        Ok(StepAdaptation { config: self })
    }
}

/// What an adaptation remembers between updates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AdaptationState {
    centre: f64,
    error: f64,
    log_step: f64,
    log_average: f64,
    updates: u64,
}

impl AdaptationState {
    /// ε to use for the next transition.
    pub fn step_size(&self) -> f64 {
        self.log_step.exp()
    }

    /// ε̄, the average to keep when adaptation ends; the starting value before the first update.
    pub fn averaged(&self) -> f64 {
        self.log_average.exp()
    }

    /// Updates made.
    pub fn updates(&self) -> u64 {
        self.updates
    }
}

/// Nesterov's dual averaging on log ε. With α_t the mean acceptance of transition t = 1, 2, …
///
/// ```text
/// H̄_t = (1 - 1/(t + t₀)) H̄_{t-1} + (δ - α_t)/(t + t₀)
/// log ε_{t+1} = μ - (√t/γ) H̄_t,      log ε̄_{t+1} = t^-κ log ε_{t+1} + (1 - t^-κ) log ε̄_t
/// ```
///
/// While it runs the chain is not exact, since its kernel depends on its past: adapt first, then fix ε̄ and
/// sample. State goes in and comes out; [`warm_up`](Self::warm_up) does the whole of it for HMC.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{HmcConfig, StepAdaptationConfig};
///
/// let adaptation = StepAdaptationConfig::new().init()?;
/// let state = adaptation.start(0.1)?;
/// // All accepted: the step grows. All refused: it shrinks.
/// assert!(adaptation.update(state, 1.0).step_size() > adaptation.update(state, 0.0).step_size());
///
/// let x = Tensor::<2>::zeros([50, 8], &Device::default());
/// let config = HmcConfig::new(1e-3).with_num_leapfrog(4);
/// let (config, _) = adaptation.warm_up(config, &Gaussian::standard(), x, 40, &mut Noise::host(0))?;
/// assert!(config.step_size.value(0) > 0.1); // the first guess was far too small
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Hoffman & Gelman 2014, "The No-U-Turn sampler", arXiv 1111.4246, section 3.2; Nesterov 2009.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepAdaptation {
    config: StepAdaptationConfig,
}

impl StepAdaptation {
    /// Adaptation from a first guess, with μ = log 10ε: it tries large steps first, since those are cheap to
    /// find wrong.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless the step is finite and above 0.
    pub fn start(&self, step_size: f64) -> Result<AdaptationState> {
        let state = self.resume(step_size)?;
        Ok(AdaptationState { centre: state.centre + 10f64.ln(), ..state })
    }

    /// Adaptation from a step that is nearly right, with μ = log ε.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn resume(&self, step_size: f64) -> Result<AdaptationState> {
        ensure_positive("StepAdaptation: first step size", step_size)?;
        let log_step = step_size.ln();
        Ok(AdaptationState { centre: log_step, error: 0.0, log_step, log_average: log_step, updates: 0 })
    }

    /// The state after a transition with this mean acceptance. A NaN counts as 0.
    pub fn update(&self, state: AdaptationState, acceptance: f64) -> AdaptationState {
        let StepAdaptationConfig { target_acceptance, gain, delay, decay } = self.config;
        let acceptance = if acceptance.is_nan() { 0.0 } else { acceptance.clamp(0.0, 1.0) };
        let updates = state.updates + 1;
        let t = updates as f64;
        let share = 1.0 / (t + delay);
        let error = (1.0 - share) * state.error + share * (target_acceptance - acceptance);
        let log_step = state.centre - t.sqrt() / gain * error;
        let forget = t.powf(-decay);
        let log_average = forget * log_step + (1.0 - forget) * state.log_average;
        AdaptationState { centre: state.centre, error, log_step, log_average, updates }
    }

    /// Runs `num_steps` transitions of HMC from `x`, one update each, and returns the configuration with its
    /// step fixed at the average, and where the chains are. Reads the acceptance from the device each time.
    ///
    /// # Shapes
    /// `[chains, ..]`; all chains share one step.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if the configuration is not valid or its first step is 0.
    pub fn warm_up<const D: usize>(
        &self,
        config: HmcConfig,
        model: &dyn EnergyModel<D>,
        x: Tensor<D>,
        num_steps: usize,
        noise: &mut Noise,
    ) -> Result<(HmcConfig, Tensor<D>)> {
        let state = self.start(config.step_size.value(0))?;
        let (state, x) = self.adapt(&config, state, model, x, num_steps, noise)?;
        Ok((config.with_step_size(state.averaged()), x))
    }

    /// [`warm_up`](Self::warm_up) from a state, to which it can be continued.
    ///
    /// # Errors
    /// As [`warm_up`](Self::warm_up).
    pub fn adapt<const D: usize>(
        &self,
        config: &HmcConfig,
        mut state: AdaptationState,
        model: &dyn EnergyModel<D>,
        x: Tensor<D>,
        num_steps: usize,
        noise: &mut Noise,
    ) -> Result<(AdaptationState, Tensor<D>)> {
        let mut chains = config.clone().init()?.init(model, x);
        for _ in 0..num_steps {
            let hmc = config.clone().with_step_size(state.step_size()).init()?;
            let (next, info) = hmc.step(model, chains, noise);
            chains = next;
            state = self.update(state, info.acceptance.mean().into_scalar::<f32>().into());
        }
        Ok((state, chains.x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_updates_are_the_formulas() {
        let adaptation = StepAdaptationConfig::new().init().unwrap();
        let state = adaptation.start(0.5).unwrap();
        assert!((state.step_size() - 0.5).abs() < 1e-12 && state.updates() == 0);
        // H̄₁ = (0.8 - 0.3)/11; log ε₂ = log 5 - H̄₁/0.05; the average is ε₂ itself.
        let state = adaptation.update(state, 0.3);
        let error = 0.5 / 11.0;
        let step = 5f64.ln() - error / 0.05;
        assert!((state.step_size().ln() - step).abs() < 1e-12);
        assert!((state.averaged().ln() - step).abs() < 1e-12);
        let state = adaptation.update(state, 1.0);
        let error = (1.0 - 1.0 / 12.0) * error - 0.2 / 12.0;
        let next = 5f64.ln() - 2f64.sqrt() / 0.05 * error;
        let forget = 2f64.powf(-0.75);
        assert!((state.step_size().ln() - next).abs() < 1e-12);
        assert!((state.averaged().ln() - (forget * next + (1.0 - forget) * step)).abs() < 1e-12);
        assert_eq!(adaptation.update(state, f64::NAN), adaptation.update(state, 0.0));
    }

    /// Acceptance as a falling function of the step: the average converges to where it is δ.
    #[test]
    fn it_finds_the_step_of_the_wished_acceptance() {
        for target in [0.6, 0.8] {
            let config = StepAdaptationConfig::new().with_target_acceptance(target);
            let adaptation = config.init().unwrap();
            for first in [1e-3, 1.0, 50.0] {
                let mut state = adaptation.start(first).unwrap();
                for _ in 0..300 {
                    state = adaptation.update(state, (-state.step_size()).exp());
                }
                let reached = (-state.averaged()).exp();
                assert!((reached - target).abs() < 0.02, "{first}: {reached}, not {target}");
            }
        }
    }

    #[test]
    fn bad_settings_are_named() {
        let new = StepAdaptationConfig::new;
        for (config, field) in [
            (new().with_target_acceptance(1.0), "target_acceptance"),
            (new().with_target_acceptance(f64::NAN), "target_acceptance"),
            (StepAdaptationConfig { gain: 0.0, ..new() }, "gain"),
            (StepAdaptationConfig { delay: -1.0, ..new() }, "delay"),
            (StepAdaptationConfig { decay: 0.5, ..new() }, "decay"),
        ] {
            let message = config.init().unwrap_err().to_string();
            assert!(message.contains(&format!("StepAdaptationConfig.{field} =")), "{message}");
        }
        let adaptation = new().init().unwrap();
        for step in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(adaptation.start(step).unwrap_err().to_string().contains("first step size ="));
        }
    }
}
