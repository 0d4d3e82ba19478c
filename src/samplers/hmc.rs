//! Hamiltonian Monte Carlo: leapfrog trajectories behind a Metropolis test, whose law is exactly p(x).

use burn::tensor::Tensor;
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::Sampler;
use super::kernel::{Bounds, check_options};
use super::metropolis::{MetropolisInfo, MetropolisState, metropolis_test};
use crate::energy::EnergyModel;
use crate::error::{Result, ensure};
use crate::math::per_sample;
use crate::noise::{Noise, Stream};
use crate::schedule::Schedule;

/// Configuration of [`Hmc`].
///
/// ```
/// use jem_core::samplers::HmcConfig;
/// // Images in [0, 1], whose walls reflect; step sizes within 10 % of 0.05.
/// let hmc = HmcConfig::new(0.05).with_num_leapfrog(20).with_step_jitter(0.1).with_bounds(0.0, 1.0).init()?;
/// assert!(HmcConfig::new(0.05).with_num_leapfrog(0).init().is_err());
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HmcConfig {
    /// ε_t, the step of the leapfrog, as a function of the transition t.
    pub step_size: Schedule,
    /// L, leapfrog steps of one transition. Default 10.
    pub num_leapfrog: usize,
    /// j: each transition multiplies ε by a factor from U(1 - j, 1 + j), the same for all chains, so that no
    /// trajectory keeps being a whole number of periods. Default 0.
    pub step_jitter: f64,
    /// A box with reflecting walls: the law is p(x) restricted to it. Default none.
    pub bounds: Option<Bounds>,
}

impl HmcConfig {
    /// Ten leapfrog steps of size ε.
    pub fn new(step_size: impl Into<Schedule>) -> Self {
        Self { step_size: step_size.into(), num_leapfrog: 10, step_jitter: 0.0, bounds: None }
    }

    /// Sets ε.
    pub fn with_step_size(mut self, step_size: impl Into<Schedule>) -> Self {
        self.step_size = step_size.into();
        self
    }

    /// Sets L.
    pub fn with_num_leapfrog(mut self, num_leapfrog: usize) -> Self {
        self.num_leapfrog = num_leapfrog;
        self
    }

    /// Sets j.
    pub fn with_step_jitter(mut self, jitter: f64) -> Self {
        self.step_jitter = jitter;
        self
    }

    /// Restricts every coordinate to [low, high].
    pub fn with_bounds(mut self, low: f32, high: f32) -> Self {
        self.bounds = Some(Bounds { low, high });
        self
    }

    /// The sampler.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) naming the field that is not allowed.
    pub fn init(self) -> Result<Hmc> {
        self.step_size.check("HmcConfig.step_size")?;
        ensure(self.num_leapfrog > 0, "HmcConfig.num_leapfrog", self.num_leapfrog, "at least 1")?;
        let jitter = self.step_jitter;
        ensure((0.0..1.0).contains(&jitter), "HmcConfig.step_jitter", jitter, "in [0, 1)")?;
        check_options("HmcConfig", None, self.bounds)?;
        Ok(Hmc { config: self })
    }
}

/// Positions with the energy and the gradient there.
pub type HmcState<const D: usize> = MetropolisState<D>;

/// What became of the proposals of one transition, with exp(H(x, p) - H(x', p')) as the ratio.
pub type HmcInfo = MetropolisInfo;

/// Hamiltonian Monte Carlo with unit mass. With H(x, p) = E(x) + ‖p‖²/2 and L leapfrog steps of size ε,
///
/// ```text
/// p ~ N(0, I);   L times: p ← p - (ε/2) ∇E(x),  x ← x + ε p,  p ← p - (ε/2) ∇E(x)
/// move to the end with probability min(1, exp(H(start) - H(end))), each chain on its own
/// ```
///
/// Exact: the stationary law is p(x) for any ε. A large ε costs acceptance (aim at 0.6 to 0.9), not truth;
/// [`StepAdaptation`](super::StepAdaptation) finds one. p(x)^(1/T) is sampled by handing in an energy divided
/// by T. A trajectory that ends in a NaN or an infinity is refused. With bounds, a coordinate that meets a wall
/// is reflected and its momentum turned round, which keeps volume and reversibility; starts outside are
/// clamped to the box.
///
/// A transition costs L gradients; the gradient at the start is kept in the state.
///
/// # Shapes
/// Any rank; `[chains, ..]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{HmcConfig, run};
///
/// let hmc = HmcConfig::new(0.5).with_num_leapfrog(3).init()?;
/// let x = Tensor::<2>::zeros([100, 2], &Device::default());
/// let end = run(&hmc, &Gaussian::standard(), x, 10, &mut Noise::host(0));
/// let variance = end.square().mean().into_scalar::<f32>();
/// assert!(variance > 0.6 && variance < 1.4);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Duane et al. 1987; Neal, "MCMC using Hamiltonian dynamics", 2011, arXiv 1206.1901 (walls: section
/// 5.1; jitter: section 4.2).
#[derive(Debug, Clone, PartialEq)]
pub struct Hmc {
    config: HmcConfig,
}

impl Hmc {
    /// The configuration.
    pub fn config(&self) -> &HmcConfig {
        &self.config
    }

    /// ε of transition t, jittered if the configuration says so.
    fn step_size(&self, t: u64, noise: &mut Noise) -> f64 {
        let HmcConfig { step_size, step_jitter, .. } = &self.config;
        if *step_jitter == 0.0 {
            return step_size.value(t);
        }
        let factor = 1.0 + step_jitter * (2.0 * noise.rng(Stream::CHAIN).random::<f64>() - 1.0);
        step_size.value(t) * factor
    }

    /// Where L leapfrog steps lead, with energy, gradient and momentum there.
    fn trajectory<const D: usize>(
        &self,
        model: &dyn EnergyModel<D>,
        start: &HmcState<D>,
        momentum: Tensor<D>,
        epsilon: f64,
    ) -> (HmcState<D>, Tensor<D>) {
        let mut end = start.clone();
        let mut momentum = momentum - end.gradient.clone().mul_scalar(epsilon / 2.0);
        for number in 1..=self.config.num_leapfrog {
            let moved = end.x + momentum.clone().mul_scalar(epsilon);
            (end.x, momentum) = match self.config.bounds {
                Some(bounds) => reflect(moved, momentum, bounds),
                None => (moved, momentum),
            };
            (end.energy, end.gradient) = model.energy_and_grad(end.x.clone());
            let is_last = number == self.config.num_leapfrog;
            let kick = if is_last { epsilon / 2.0 } else { epsilon };
            momentum = momentum - end.gradient.clone().mul_scalar(kick);
        }
        (end, momentum)
    }
}

impl<const D: usize> Sampler<D> for Hmc {
    type State = HmcState<D>;
    type Info = HmcInfo;

    fn init(&self, model: &dyn EnergyModel<D>, x: Tensor<D>) -> HmcState<D> {
        MetropolisState::at(
            model,
            match self.config.bounds {
                Some(bounds) => bounds.clamp(x),
                None => x,
            },
        )
    }

    fn step(
        &self,
        model: &dyn EnergyModel<D>,
        state: HmcState<D>,
        noise: &mut Noise,
    ) -> (HmcState<D>, HmcInfo) {
        let (dims, device) = (state.x.dims(), state.x.device());
        let epsilon = self.step_size(state.t, noise);
        let momentum = noise.normal(dims, Stream::CHAIN, &device);
        let before = kinetic(momentum.clone());
        let (end, momentum) = self.trajectory(model, &state, momentum, epsilon);

        let log_ratio = state.energy.clone() - end.energy.clone() + before - kinetic(momentum);
        metropolis_test(state, end, log_ratio, noise)
    }

    fn position(&self, state: &HmcState<D>) -> Tensor<D> {
        state.x.clone()
    }

    fn moved_to(&self, model: &dyn EnergyModel<D>, state: HmcState<D>, x: Tensor<D>) -> HmcState<D> {
        HmcState { t: state.t, ..self.init(model, x) }
    }

    fn is_exact(&self) -> bool {
        true
    }
}

/// ‖p‖²/2 of each chain.
fn kinetic<const D: usize>(momentum: Tensor<D>) -> Tensor<1> {
    per_sample(momentum).square().sum_dim(1).squeeze_dim::<1>(1).mul_scalar(0.5)
}

/// Free flight between walls: positions folded back into the box, and momenta turned round once for each wall.
fn reflect<const D: usize>(x: Tensor<D>, momentum: Tensor<D>, bounds: Bounds) -> (Tensor<D>, Tensor<D>) {
    let Bounds { low, high } = bounds;
    let width = high - low;
    let position = x.sub_scalar(low).div_scalar(width); // in widths of the box
    let walls = position.clone().floor();
    let odd = walls.clone() - walls.clone().div_scalar(2.0).floor().mul_scalar(2.0); // 0 or 1
    let part = position - walls;
    let mirrored = odd.clone() * part.clone().mul_scalar(-2.0).add_scalar(1.0);
    let x = (part + mirrored).mul_scalar(width).add_scalar(low).clamp(low, high);
    (x, momentum * odd.mul_scalar(-2.0).add_scalar(1.0))
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::energy::analytic::Gaussian;
    use crate::error::Error;
    use burn::tensor::Device;

    fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    fn at(hmc: &Hmc, x: Tensor<2>) -> HmcState<2> {
        hmc.init(&Gaussian::standard(), x)
    }

    #[test]
    fn the_leapfrog_is_the_formula_and_runs_backwards() {
        let device = Device::flex();
        let x = Tensor::<2>::from_floats([[1.0, -2.0]], &device);
        let p = Tensor::<2>::from_floats([[0.5, 0.25]], &device);
        let model = Gaussian::standard();
        let one = HmcConfig::new(0.1).with_num_leapfrog(1).init().unwrap();
        let (end, momentum) = one.trajectory(&model, &at(&one, x.clone()), p.clone(), 0.1);
        // By hand: p½ = p - 0.05 x, x' = x + 0.1 p½, p' = p½ - 0.05 x'.
        for (found, expected) in values(end.x).iter().zip([1.045, -1.965]) {
            assert!((found - expected).abs() < 1e-6, "{found} != {expected}");
        }
        for (found, expected) in values(momentum).iter().zip([0.45 - 0.05 * 1.045, 0.35 + 0.05 * 1.965]) {
            assert!((found - expected).abs() < 1e-6, "{found} != {expected}");
        }
        // Turned round, a trajectory leads back to where it began, through walls too.
        for config in [HmcConfig::new(0.3), HmcConfig::new(0.3).with_bounds(-2.1, 1.1)] {
            let hmc = config.with_num_leapfrog(17).init().unwrap();
            let (end, momentum) = hmc.trajectory(&model, &at(&hmc, x.clone()), p.clone(), 0.3);
            assert!(!end.x.clone().all_close(x.clone(), Some(1e-2), Some(1e-2)));
            let (back, momentum) = hmc.trajectory(&model, &end, momentum.neg(), 0.3);
            assert!(back.x.all_close(x.clone(), Some(1e-4), Some(1e-5)));
            assert!(momentum.neg().all_close(p.clone(), Some(1e-4), Some(1e-5)));
        }
    }

    #[test]
    fn walls_reflect_as_often_as_they_are_met() {
        let device = Device::flex();
        let x = Tensor::<1>::from_floats([0.25, 1.25, 2.25, -0.25, -1.25, 5.5], &device);
        let bounds = Bounds { low: 0.0, high: 1.0 };
        let (x, p) = reflect(x.clone(), x.ones_like(), bounds);
        assert_eq!(values(x), [0.25, 0.75, 0.25, 0.25, 0.75, 0.5]);
        assert_eq!(values(p), [1.0, -1.0, 1.0, -1.0, 1.0, -1.0]);
    }

    /// E = ‖x‖²/2, and infinite or NaN right of 1.
    struct Cliff(f32);
    impl EnergyModel<2> for Cliff {
        fn energy(&self, x: Tensor<2>) -> Tensor<1> {
            let beyond = x.clone().greater_scalar(1.0).any_dim(1).squeeze_dim::<1>(1);
            Gaussian::standard().energy(x).mask_fill(beyond, self.0)
        }
        fn energy_and_grad(&self, x: Tensor<2>) -> (Tensor<1>, Tensor<2>) {
            (self.energy(x.clone()), x)
        }
    }

    #[test]
    fn what_is_not_finite_is_refused_and_counted_as_refused() {
        let device = Device::flex();
        for poison in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let hmc = HmcConfig::new(0.5).with_num_leapfrog(4).init().unwrap();
            let model = Cliff(poison);
            let mut noise = Noise::host(2);
            let mut state = hmc.init(&model, Tensor::<2>::zeros([200, 1], &device));
            let (mut refused, mut probability) = (0, 0.0);
            for _ in 0..10 {
                let (next, info) = hmc.step(&model, state, &mut noise);
                state = next;
                refused += values(info.accepted.float()).iter().filter(|moved| **moved == 0.0).count();
                let acceptance = values(info.acceptance);
                assert!(acceptance.iter().all(|p| (0.0..=1.0).contains(p)));
                probability += acceptance.iter().sum::<f32>() / 2000.0;
            }
            assert!(values(state.x).iter().all(|x| *x <= 1.0));
            assert!(values(state.energy).iter().all(|e| e.is_finite()));
            assert!(refused > 100 && probability < 0.95, "{poison}: {refused}, {probability}");
        }
    }

    #[test]
    fn starts_outside_the_box_are_clamped_and_no_chain_leaves_it() {
        let device = Device::flex();
        let hmc = HmcConfig::new(0.7).with_bounds(-0.5, 0.5).init().unwrap();
        let mut noise = Noise::host(3);
        let start = noise.normal([64, 3], Stream::DATA, &device);
        let end = crate::samplers::run(&hmc, &Gaussian::standard(), start, 5, &mut noise);
        assert!(values(end).iter().all(|x| x.abs() <= 0.5));
    }

    #[test]
    fn bad_configurations_are_named() {
        let new = || HmcConfig::new(0.1);
        for (config, field) in [
            (HmcConfig::new(f64::NAN), "step_size"),
            (HmcConfig::new(-0.1), "step_size"),
            (new().with_num_leapfrog(0), "num_leapfrog"),
            (new().with_step_jitter(1.0), "step_jitter"),
            (new().with_step_jitter(f64::NAN), "step_jitter"),
            (new().with_bounds(1.0, 0.0), "bounds"),
            (new().with_bounds(0.0, f32::INFINITY), "bounds"),
        ] {
            let error = config.init().unwrap_err();
            assert!(matches!(error, Error::Config { .. }));
            assert!(error.to_string().contains(&format!("HmcConfig.{field} =")), "{error}");
        }
    }
}
