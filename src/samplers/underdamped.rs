//! Underdamped Langevin dynamics: positions with velocities, friction and the noise that balances it (BAOAB).

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{LangevinInfo, Sampler};
use crate::energy::EnergyModel;
use crate::error::Result;
use crate::noise::{Noise, Stream};
use crate::schedule::Schedule;

/// Configuration of [`UnderdampedLangevin`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnderdampedLangevinConfig {
    /// h_t, the step in time.
    pub step_size: Schedule,
    /// γ_t, the friction: velocities are forgotten in a time of 1/γ. Default 1.
    pub friction: Schedule,
}

impl UnderdampedLangevinConfig {
    /// Steps of h at a friction of 1.
    pub fn new(step_size: impl Into<Schedule>) -> Self {
        Self { step_size: step_size.into(), friction: Schedule::Constant(1.0) }
    }

    /// Sets γ.
    pub fn with_friction(mut self, friction: impl Into<Schedule>) -> Self {
        self.friction = friction.into();
        self
    }

    /// The sampler.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if a step or a friction can be negative or not finite.
    pub fn init(self) -> Result<UnderdampedLangevin> {
        self.step_size.check("UnderdampedLangevinConfig.step_size")?;
        self.friction.check("UnderdampedLangevinConfig.friction")?;
        Ok(UnderdampedLangevin { config: self })
    }
}

/// Positions and velocities, with energy and gradient at the positions.
#[derive(Debug, Clone)]
pub struct UnderdampedState<const D: usize> {
    /// Positions, `[chains, ..]`.
    pub x: Tensor<D>,
    /// Velocities, `[chains, ..]`; 0 before the first step, which draws them from N(0, I).
    pub velocity: Tensor<D>,
    /// E(x), `[chains]`.
    pub energy: Tensor<1>,
    /// ∇E(x), `[chains, ..]`.
    pub gradient: Tensor<D>,
    /// Steps made, which is where the schedules are read.
    pub t: u64,
}

/// Langevin dynamics with inertia, dx = v dt, dv = -∇E(x) dt - γ v dt + √(2γ) dW, split as B A O A B:
///
/// ```text
/// v ← v - (h/2) ∇E(x);   x ← x + (h/2) v
/// v ← c v + √(1 - c²) ξ,   c = exp(-γh),   ξ ~ N(0, I)
/// x ← x + (h/2) v;   v ← v - (h/2) ∇E(x)
/// ```
///
/// Velocities carry a chain over small bumps, and a long way in one direction. It is biased by O(h²), but not in
/// the positions of a Gaussian: there the law of x is exact for any stable h (h² c < 4 at a curvature c), while
/// the velocities have variance 1 - h²c/4. A step costs one gradient.
///
/// # Shapes
/// Any rank; `[chains, ..]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{UnderdampedLangevinConfig, run};
///
/// let sampler = UnderdampedLangevinConfig::new(0.8).with_friction(1.5).init()?;
/// let x = Tensor::<2>::full([500, 2], 3.0, &Device::default());
/// let end = run(&sampler, &Gaussian::standard(), x, 30, &mut Noise::host(0));
/// let variance = end.square().mean().into_scalar::<f32>();
/// assert!(variance > 0.85 && variance < 1.15);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Leimkuhler & Matthews 2013, "Rational construction of stochastic numerical methods for molecular
/// sampling", arXiv 1203.5428.
#[derive(Debug, Clone, PartialEq)]
pub struct UnderdampedLangevin {
    config: UnderdampedLangevinConfig,
}

impl<const D: usize> Sampler<D> for UnderdampedLangevin {
    type State = UnderdampedState<D>;
    type Info = LangevinInfo<D>;

    fn init(&self, model: &dyn EnergyModel<D>, x: Tensor<D>) -> UnderdampedState<D> {
        let x = x.without_autodiff();
        let (energy, gradient) = model.energy_and_grad(x.clone());
        UnderdampedState { velocity: x.zeros_like(), x, energy, gradient, t: 0 }
    }

    fn step(
        &self,
        model: &dyn EnergyModel<D>,
        state: UnderdampedState<D>,
        noise: &mut Noise,
    ) -> (UnderdampedState<D>, LangevinInfo<D>) {
        let UnderdampedState { x, velocity, energy, gradient, t } = state;
        let info = LangevinInfo { energy, gradient: gradient.clone() };
        let (h, kept) = (self.config.step_size.value(t), self.kept(t));
        let mut draw = || noise.normal(x.dims(), Stream::CHAIN, &x.device());
        let velocity = if t == 0 { draw() } else { velocity };
        let draws = draw();

        let velocity = velocity - gradient.mul_scalar(h / 2.0);
        let x = x + velocity.clone().mul_scalar(h / 2.0);
        let velocity = velocity.mul_scalar(kept) + draws.mul_scalar((1.0 - kept * kept).sqrt());
        let x = x + velocity.clone().mul_scalar(h / 2.0);
        let (energy, gradient) = model.energy_and_grad(x.clone());
        let velocity = velocity - gradient.clone().mul_scalar(h / 2.0);
        (UnderdampedState { x, velocity, energy, gradient, t: t + 1 }, info)
    }

    fn position(&self, state: &UnderdampedState<D>) -> Tensor<D> {
        state.x.clone()
    }

    fn moved_to(
        &self,
        model: &dyn EnergyModel<D>,
        state: UnderdampedState<D>,
        x: Tensor<D>,
    ) -> UnderdampedState<D> {
        UnderdampedState { velocity: state.velocity, t: state.t, ..self.init(model, x) }
    }
}

impl UnderdampedLangevin {
    /// c, the share of a velocity that friction leaves in step t.
    fn kept(&self, t: u64) -> f64 {
        (-self.config.friction.value(t) * self.config.step_size.value(t)).exp()
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::energy::analytic::Gaussian;
    use burn::tensor::Device;

    #[test]
    fn one_step_is_the_formula() {
        let device = Device::flex();
        let x = Tensor::<2>::from_floats([[1.0, -2.0]], &device);
        let v = Tensor::<2>::from_floats([[0.5, 0.25]], &device);
        let sampler = UnderdampedLangevinConfig::new(0.1).with_friction(2.0).init().unwrap();
        let state = Sampler::<2>::init(&sampler, &Gaussian::standard(), x);
        let state = UnderdampedState { velocity: v, t: 1, ..state };
        let mut noise = Noise::host(3);
        let draws: Vec<f32> =
            noise.clone().normal([1, 2], Stream::CHAIN, &device).into_data().iter::<f32>().collect();
        let (state, info) = sampler.step(&Gaussian::standard(), state, &mut noise);
        let found: Vec<f32> =
            Tensor::cat(vec![state.x, state.velocity], 1).into_data().iter::<f32>().collect();
        for k in 0..2 {
            let (x, v, draw) = ([1.0, -2.0][k], [0.5, 0.25][k], f64::from(draws[k]));
            let half = v - 0.05 * x;
            let kept = (-0.2f64).exp();
            let after = kept * half + (1.0 - kept * kept).sqrt() * draw;
            let end = x + 0.05 * half + 0.05 * after;
            assert!((f64::from(found[k]) - end).abs() < 1e-6);
            assert!((f64::from(found[k + 2]) - (after - 0.05 * end)).abs() < 1e-6);
        }
        assert_eq!(info.energy.into_scalar::<f32>(), 2.5); // where the step started
    }

    #[test]
    fn bad_configurations_are_named() {
        for (config, field) in [
            (UnderdampedLangevinConfig::new(-0.1), "step_size"),
            (UnderdampedLangevinConfig::new(0.1).with_friction(f64::NAN), "friction"),
        ] {
            let message = config.init().unwrap_err().to_string();
            assert!(message.contains(&format!("UnderdampedLangevinConfig.{field} =")), "{message}");
        }
    }
}
