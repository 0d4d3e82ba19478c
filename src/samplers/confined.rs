//! Chains that stay near given points: any sampler, projected back into a ball after each step.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::Sampler;
use super::kernel::Bounds;
use crate::energy::EnergyModel;
use crate::error::{Result, ensure_not_negative};
use crate::math::{Norm, into_ball};
use crate::noise::Noise;

/// What is near a point: a ball round it, cut by a box if there is one.
///
/// Its numbers are in the units of the sampler's x: 8/255 of a \[0, 1\] pixel is 16/255 of one on \[-1, 1\].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Neighbourhood {
    /// How distances are measured.
    pub norm: Norm,
    /// r, the radius.
    pub radius: f64,
    /// The box of all possible samples. Default none.
    pub bounds: Option<Bounds>,
}

impl Neighbourhood {
    /// A ball of radius `radius`.
    pub fn new(norm: Norm, radius: f64) -> Self {
        Self { norm, radius, bounds: None }
    }

    /// Cuts the ball by the box \[low, high\] of every coordinate.
    pub fn with_bounds(mut self, low: f32, high: f32) -> Self {
        self.bounds = Some(Bounds { low, high });
        self
    }

    /// `Ok` if the radius is finite and not negative, and the box finite and not empty.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) naming the field that is not.
    pub fn check(&self) -> Result<()> {
        ensure_not_negative("Neighbourhood.radius", self.radius)?;
        self.bounds.map_or(Ok(()), |bounds| bounds.check("Neighbourhood.bounds"))
    }
}

/// A sampler whose chains never leave the neighbourhood of their centres:
///
/// ```text
/// x ← P(step(x)),   P(x) = the nearest point to x with ‖x - c‖ ≤ r and, if there is a box, low ≤ x ≤ high
/// ```
///
/// Starts are projected too. In L∞, P is exact: a position is never farther from its centre than r, not even by
/// the rounding of f32. In L2 it is the nearest point of the ball and then of the box, and the radius is kept up to
/// that rounding; in the box a position always is. A centre outside the box counts as the nearest point in it.
///
/// The state is the sampler's, with its clock and velocities ([`Sampler::moved_to`]). A sampler that keeps the
/// gradient of where it is, as MALA and HMC do, computes it once more after each projection. Projection piles chains
/// up at the walls, so that no sampler is exact in here. That is what refinement wants; for samples of p(x) within
/// a box see the reflecting walls of [`HmcConfig`](super::HmcConfig).
///
/// # Shapes
/// Any rank; `[chains, ..]`. Centres have the shape of the chains, or `[1, ..]` for one centre of all.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::math::Norm;
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{Confined, ImproperSgldConfig, Neighbourhood, run};
///
/// let x = Tensor::<2>::from_floats([[1.0, -1.0], [0.5, 0.0]], &Device::default());
/// let near = Neighbourhood::new(Norm::Linf, 0.25).with_bounds(-1.0, 1.0);
/// let descent = ImproperSgldConfig::new().with_step_size(0.1).with_noise_scale(0.0).init()?;
/// let sampler = Confined::new(descent, near, x.clone())?;
/// // Downhill towards 0, and no farther than a quarter in each coordinate.
/// let end = run(&sampler, &Gaussian::standard(), x, 50, &mut Noise::host(0));
/// for (found, expected) in end.into_data().iter::<f32>().zip([0.75, -0.75, 0.25, 0.0]) {
///     assert!((found - expected).abs() < 1e-6);
/// }
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Du & Mordatch 2019, arXiv 1903.08689: refinement within 8/255 before classifying.
#[derive(Debug, Clone)]
pub struct Confined<S, const D: usize> {
    sampler: S,
    neighbourhood: Neighbourhood,
    centres: Tensor<D>,
    low: Tensor<D>,
    high: Tensor<D>,
}

impl<S, const D: usize> Confined<S, D> {
    /// `sampler` in the `neighbourhood` of `centres`.
    ///
    /// # Errors
    /// As [`Neighbourhood::check`].
    pub fn new(sampler: S, neighbourhood: Neighbourhood, centres: Tensor<D>) -> Result<Self> {
        neighbourhood.check()?;
        Ok(Self::of_checked(sampler, neighbourhood, centres))
    }

    /// The same for a neighbourhood that has been checked.
    pub fn of_checked(sampler: S, neighbourhood: Neighbourhood, centres: Tensor<D>) -> Self {
        let Neighbourhood { radius, bounds, .. } = neighbourhood;
        let boxed = |x: Tensor<D>| match bounds {
            Some(bounds) => bounds.clamp(x),
            None => x,
        };
        let centres = boxed(centres.without_autodiff());
        // The walls lie inside the true ones by a few roundings of f32, and not beyond the centre.
        let inwards = centres.clone().abs().add_scalar(radius).mul_scalar(2.0 * f64::from(f32::EPSILON));
        let low = centres.clone().sub_scalar(radius) + inwards.clone();
        let high = centres.clone().add_scalar(radius) - inwards;
        let low = boxed(low.min_pair(centres.clone()));
        let high = boxed(high.max_pair(centres.clone()));
        Self { sampler, neighbourhood, centres, low, high }
    }

    /// The neighbourhood.
    pub fn neighbourhood(&self) -> Neighbourhood {
        self.neighbourhood
    }

    /// The nearest points in the neighbourhood.
    ///
    /// # Shapes
    /// `[chains, ..]` to the same.
    pub fn project(&self, x: Tensor<D>) -> Tensor<D> {
        let dims = x.dims();
        let inside = match self.neighbourhood.norm {
            Norm::Linf => x,
            Norm::L2 => into_ball(x, self.centres.clone().expand(dims), self.neighbourhood.radius, Norm::L2),
        };
        inside.max_pair(self.low.clone().expand(dims)).min_pair(self.high.clone().expand(dims))
    }
}

impl<const D: usize, S: Sampler<D>> Sampler<D> for Confined<S, D> {
    type State = S::State;
    type Info = S::Info;

    fn init(&self, model: &dyn EnergyModel<D>, x: Tensor<D>) -> S::State {
        self.sampler.init(model, self.project(x.without_autodiff()))
    }

    fn step(&self, model: &dyn EnergyModel<D>, state: S::State, noise: &mut Noise) -> (S::State, S::Info) {
        let (state, info) = self.sampler.step(model, state, noise);
        let x = self.sampler.position(&state);
        (self.moved_to(model, state, x), info)
    }

    fn position(&self, state: &S::State) -> Tensor<D> {
        self.sampler.position(state)
    }

    fn moved_to(&self, model: &dyn EnergyModel<D>, state: S::State, x: Tensor<D>) -> S::State {
        self.sampler.moved_to(model, state, self.project(x))
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::energy::analytic::Gaussian;
    use crate::noise::Stream;
    use crate::samplers::{
        HmcConfig, ImproperSgldConfig, MalaConfig, MppiConfig, ParallelTemperingConfig,
        UnderdampedLangevinConfig, run,
    };
    use crate::schedule::Schedule;
    use burn::tensor::Device;

    fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
        tensor.into_data().iter::<f64>().collect()
    }

    /// Every position of ten steps, and what went wrong in it.
    fn leaves<S: Sampler<2>>(sampler: S, centres: &Tensor<2>, radius: f64, norm: Norm) -> usize {
        let near = Neighbourhood::new(norm, radius).with_bounds(-1.0, 1.0);
        let confined = Confined::new(sampler, near, centres.clone()).unwrap();
        let (model, mut noise) = (Gaussian::new(0.3, 0.2).unwrap(), Noise::host(3));
        let mut state = confined.init(&model, centres.clone().add_scalar(0.5));
        let mut outside = 0;
        for _ in 0..10 {
            let x = values(confined.position(&state));
            let c = values(centres.clone());
            for (x, c) in x.chunks(5).zip(c.chunks(5)) {
                outside += x.iter().filter(|x| x.abs() > 1.0).count();
                let distances = || x.iter().zip(c).map(|(x, c)| (x - c).abs());
                outside += match norm {
                    Norm::Linf => distances().filter(|distance| *distance > radius).count(),
                    // Five coordinates of size 1, each rounded twice to 6e-8.
                    Norm::L2 => usize::from(distances().map(|d| d * d).sum::<f64>().sqrt() > radius + 3e-7),
                };
            }
            state = confined.step(&model, state, &mut noise).0;
        }
        outside
    }

    #[test]
    fn no_position_is_ever_outside() {
        let centres = Noise::host(1).uniform([40, 5], -1.0..1.0, Stream::DATA, &Device::flex());
        for radius in [0.3, 8.0 / 255.0, 1e-3] {
            for norm in [Norm::Linf, Norm::L2] {
                let sgld = ImproperSgldConfig::new().with_noise_scale(0.2).init().unwrap();
                let hmc = HmcConfig::new(0.2).with_num_leapfrog(2).with_bounds(-2.0, 2.0).init().unwrap();
                let mala = MalaConfig::new(0.02).init().unwrap();
                let ladder = ParallelTemperingConfig::geometric(0.1, 2).init(mala.clone()).unwrap();
                let underdamped = UnderdampedLangevinConfig::new(0.1).init().unwrap();
                let mppi = MppiConfig::new(0.3).with_num_candidates(3).init().unwrap();
                assert_eq!(leaves(sgld, &centres, radius, norm), 0);
                assert_eq!(leaves(hmc, &centres, radius, norm), 0);
                assert_eq!(leaves(mala, &centres, radius, norm), 0);
                assert_eq!(leaves(ladder, &centres, radius, norm), 0);
                assert_eq!(leaves(underdamped, &centres, radius, norm), 0);
                assert_eq!(leaves(mppi, &centres, radius, norm), 0);
            }
        }
        // The count can find something: walls at twice the radius let chains out.
        let sgld = ImproperSgldConfig::new().with_noise_scale(0.2).init().unwrap();
        let near = Neighbourhood::new(Norm::Linf, 0.6);
        let end = run(
            &Confined::new(sgld, near, centres.clone()).unwrap(),
            &Gaussian::standard(),
            centres.clone(),
            1,
            &mut Noise::host(3),
        );
        assert!(values(end - centres).iter().any(|offset| offset.abs() > 0.3));
    }

    #[test]
    fn a_step_is_the_samplers_and_then_the_nearest_point_with_the_clock_kept() {
        let device = Device::flex();
        let centre = Tensor::<2>::from_floats([[0.5, 0.5]], &device);
        let schedule = Schedule::Linear { from: 1.0, to: 0.0, steps: 2 };
        let descent =
            ImproperSgldConfig::new().with_step_size(schedule).with_noise_scale(0.0).init().unwrap();
        let start = Tensor::<2>::from_floats([[0.5, 0.45]], &device);
        let model = Gaussian::standard();
        for (norm, expected) in [(Norm::Linf, 0.4), (Norm::L2, 0.5 - 0.1 / 2f64.sqrt())] {
            let near = Neighbourhood::new(norm, 0.1);
            let confined = Confined::new(descent.clone(), near, centre.clone()).unwrap();
            let state = confined.init(&model, start.clone());
            let (state, _) = confined.step(&model, state, &mut Noise::host(0)); // to 0, and back to the ball
            assert_eq!(state.t, 1);
            assert!(values(state.x.clone()).iter().all(|x| (x - expected).abs() < 1e-6));
            // The schedule goes on: at t = 2 it is at 0, and a chain that was put elsewhere stays there.
            let (state, _) = confined.step(&model, state, &mut Noise::host(0));
            let state = confined.moved_to(&model, state, start.clone());
            let (state, _) = confined.step(&model, state, &mut Noise::host(0));
            assert!(state.x.all_close(start.clone(), Some(1e-6), Some(1e-6)));
        }
    }

    #[test]
    fn metropolis_states_hold_the_energy_of_where_they_were_put() {
        let centres = Noise::host(1).normal([20, 3], Stream::DATA, &Device::flex());
        let near = Neighbourhood::new(Norm::L2, 0.2);
        let confined = Confined::new(MalaConfig::new(0.3).init().unwrap(), near, centres.clone()).unwrap();
        let model = Gaussian::standard();
        let state = confined.init(&model, centres);
        let (state, _) = confined.step(&model, state, &mut Noise::host(2));
        let (energy, gradient) = model.energy_and_grad(state.x.clone());
        assert_eq!(values(state.energy), values(energy));
        assert_eq!(values(state.gradient), values(gradient));
    }

    #[test]
    fn bad_neighbourhoods_are_named() {
        let x = Tensor::<2>::zeros([1, 1], &Device::flex());
        let sampler = || ImproperSgldConfig::new().init().unwrap();
        for (near, field) in [
            (Neighbourhood::new(Norm::L2, -0.1), "radius = -0.1 "),
            (Neighbourhood::new(Norm::Linf, f64::NAN), "radius = NaN "),
            (Neighbourhood::new(Norm::Linf, 0.1).with_bounds(1.0, 0.0), "bounds = [1, 0] "),
        ] {
            let message = Confined::new(sampler(), near, x.clone()).unwrap_err().to_string();
            assert!(message.starts_with(&format!("Neighbourhood.{field}")), "{message}");
        }
        // A radius of 0 is a chain that does not move.
        let still = Confined::new(sampler(), Neighbourhood::new(Norm::L2, 0.0), x.clone()).unwrap();
        let end = run(&still, &Gaussian::standard(), x.clone().add_scalar(1.0), 3, &mut Noise::host(1));
        assert_eq!(values(end), values(x));
    }
}
