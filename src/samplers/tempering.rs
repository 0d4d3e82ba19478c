//! Parallel tempering: replicas at a ladder of inverse temperatures that exchange their positions.

use burn::tensor::{Bool, Tensor};
use serde::{Deserialize, Serialize};

use super::Sampler;
use super::metropolis::{MetropolisState, accept};
use crate::energy::{EnergyModel, Tempered};
use crate::error::{Error, Result, ensure};
use crate::noise::Noise;

/// Configuration of [`ParallelTempering`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParallelTemperingConfig {
    /// 1 = β_0 > β_1 > … > 0.
    pub inverse_temperatures: Vec<f64>,
    /// Transitions of every replica between two rounds of swaps. Default 1.
    pub steps_per_swap: u64,
}

impl ParallelTemperingConfig {
    /// Replicas at these inverse temperatures, which descend from 1.
    pub fn new(inverse_temperatures: impl Into<Vec<f64>>) -> Self {
        Self { inverse_temperatures: inverse_temperatures.into(), steps_per_swap: 1 }
    }

    /// A geometric ladder of `replicas` from 1 down to `lowest`, both included.
    pub fn geometric(lowest: f64, replicas: usize) -> Self {
        let share = |k: usize| k as f64 / replicas.saturating_sub(1).max(1) as f64;
        Self::new((0..replicas).map(|k| lowest.powf(share(k))).collect::<Vec<_>>())
    }

    /// Sets the transitions between swaps.
    pub fn with_steps_per_swap(mut self, steps: u64) -> Self {
        self.steps_per_swap = steps;
        self
    }

    /// The sampler, with `kernel` moving every replica.
    ///
    /// # Errors
    /// [`Error::Config`] naming the field that is not allowed.
    pub fn init<S: Clone>(self, kernel: S) -> Result<ParallelTempering<S>> {
        let kernels = vec![kernel; self.inverse_temperatures.len()];
        self.init_each(kernels)
    }

    /// The sampler, with a kernel for each replica: hot ones can take longer steps, such as ε/β.
    ///
    /// # Errors
    /// As [`init`](Self::init), and if there is not one kernel per inverse temperature.
    pub fn init_each<S>(self, kernels: Vec<S>) -> Result<ParallelTempering<S>> {
        let betas = &self.inverse_temperatures;
        let descends = betas.windows(2).all(|pair| pair[0] > pair[1]);
        // The last is not above 0 if it is a NaN.
        if betas.first() != Some(&1.0) || !descends || !betas.last().is_some_and(|beta| *beta > 0.0) {
            let field = "ParallelTemperingConfig.inverse_temperatures";
            return Err(Error::config(field, format!("{betas:?}"), "descending from 1, all above 0"));
        }
        let steps = self.steps_per_swap;
        ensure(steps > 0, "ParallelTemperingConfig.steps_per_swap", steps, "at least 1")?;
        let allowed = format!("{}, one per inverse temperature", betas.len());
        let count = kernels.len();
        ensure(count == betas.len(), "ParallelTemperingConfig: number of kernels", count, &allowed)?;
        Ok(ParallelTempering { config: self, kernels })
    }
}

/// The replicas, from cold (β = 1) to hot.
#[derive(Debug, Clone)]
pub struct TemperingState<const D: usize> {
    /// One batch of chains per inverse temperature; energies and gradients are those of β E.
    pub replicas: Vec<MetropolisState<D>>,
    /// Transitions made.
    pub t: u64,
}

/// An exchange between two neighbouring replicas.
#[derive(Debug, Clone)]
pub struct Swap {
    /// The colder of the two; the other is the next.
    pub replica: usize,
    /// Which chains changed places, `[chains]`.
    pub accepted: Tensor<1, Bool>,
    /// The probability of that, `[chains]`.
    pub acceptance: Tensor<1>,
}

/// What the kernels say, from cold to hot, and the swaps after them.
#[derive(Debug, Clone)]
pub struct TemperingInfo<I> {
    /// One info per replica.
    pub replicas: Vec<I>,
    /// The swaps of this transition; none between two rounds.
    pub swaps: Vec<Swap>,
}

/// Replica exchange: replica k samples p(x)^β_k, and neighbours change places chain by chain,
///
/// ```text
/// swap x_k and x_{k+1} with probability min(1, exp((β_k - β_{k+1}) (E(x_k) - E(x_{k+1}))))
/// ```
///
/// pairs that begin at an even replica and pairs that begin at an odd one in turn. The hot replicas cross the
/// barriers and hand what they find down to the cold one, which is the position of this sampler. Exact if its
/// kernels are. Neighbours should be so close that a fifth of the swaps or more are made.
///
/// A kernel is any exact sampler whose state is a [`MetropolisState`], such as [`Mala`](super::Mala) and
/// [`Hmc`](super::Hmc). Swaps cost no evaluation. A transition costs as many as the kernel's, times the number
/// of replicas.
///
/// # Shapes
/// Any rank; `[chains, ..]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::DoubleWell;
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{MalaConfig, ParallelTemperingConfig, run};
///
/// // Wells at ±1 with a barrier of 8 between them; all chains start in the left one.
/// let model = DoubleWell::new(8.0, 1.0)?;
/// let x = Tensor::<2>::full([200, 1], -1.0, &Device::default());
/// let right = |end: Tensor<2>| end.greater_scalar(0.0).float().mean().into_scalar::<f32>();
/// let mala = MalaConfig::new(0.01).init()?;
/// assert!(right(run(&mala, &model, x.clone(), 60, &mut Noise::host(0))) < 0.05);
/// let kernels = vec![mala, MalaConfig::new(0.05).init()?, MalaConfig::new(0.2).init()?];
/// let tempering = ParallelTemperingConfig::new([1.0, 0.3, 0.05]).init_each(kernels)?;
/// assert!(right(run(&tempering, &model, x, 60, &mut Noise::host(0))) > 0.25);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Swendsen & Wang 1986, doi 10.1103/PhysRevLett.57.2607; Geyer 1991; even and odd rounds: Syed et al.
/// 2022, arXiv 1905.02939.
#[derive(Debug, Clone, PartialEq)]
pub struct ParallelTempering<S> {
    config: ParallelTemperingConfig,
    kernels: Vec<S>,
}

impl<S> ParallelTempering<S> {
    /// The configuration.
    pub fn config(&self) -> &ParallelTemperingConfig {
        &self.config
    }

    /// The energy of replica k.
    fn tempered<'a, const D: usize>(
        &self,
        model: &'a dyn EnergyModel<D>,
        k: usize,
    ) -> Tempered<&'a dyn EnergyModel<D>> {
        Tempered { model, inverse_temperature: self.config.inverse_temperatures[k] as f32 }
    }

    /// Exchanges replicas k and k + 1 where the test says so.
    fn swap<const D: usize>(&self, replicas: &mut [MetropolisState<D>], k: usize, noise: &mut Noise) -> Swap {
        let betas = &self.config.inverse_temperatures;
        let ratio = (betas[k + 1] / betas[k]) as f32;
        let (cold, hot) = (replicas[k].clone(), replicas[k + 1].clone());
        // Each position as the other replica would hold it.
        let (warmed, cooled) = (cold.clone().scaled(ratio), hot.clone().scaled(ratio.recip()));
        let log_ratio =
            cold.energy.clone() + hot.energy.clone() - cooled.energy.clone() - warmed.energy.clone();
        let finite = cooled.energy.clone().is_finite().bool_and(warmed.energy.clone().is_finite());
        let (accepted, acceptance) = accept(log_ratio, &finite, noise);
        replicas[k] = cold.replaced(&accepted, &cooled);
        replicas[k + 1] = hot.replaced(&accepted, &warmed);
        Swap { replica: k, accepted, acceptance }
    }
}

impl<const D: usize, S: Sampler<D, State = MetropolisState<D>>> Sampler<D> for ParallelTempering<S> {
    type State = TemperingState<D>;
    type Info = TemperingInfo<S::Info>;

    fn init(&self, model: &dyn EnergyModel<D>, x: Tensor<D>) -> TemperingState<D> {
        let replicas = self.kernels.iter().enumerate();
        let replicas = replicas.map(|(k, kernel)| kernel.init(&self.tempered(model, k), x.clone()));
        TemperingState { replicas: replicas.collect(), t: 0 }
    }

    fn step(
        &self,
        model: &dyn EnergyModel<D>,
        state: TemperingState<D>,
        noise: &mut Noise,
    ) -> (TemperingState<D>, TemperingInfo<S::Info>) {
        let moved = self.kernels.iter().zip(state.replicas).enumerate();
        let moved = moved.map(|(k, (kernel, replica))| kernel.step(&self.tempered(model, k), replica, noise));
        let (mut replicas, infos): (Vec<_>, Vec<_>) = moved.collect();
        let t = state.t + 1;
        let mut swaps = Vec::new();
        if t.is_multiple_of(self.config.steps_per_swap) {
            let first = (t / self.config.steps_per_swap + 1) % 2; // even pairs first
            for k in (first as usize..replicas.len() - 1).step_by(2) {
                swaps.push(self.swap(&mut replicas, k, noise));
            }
        }
        (TemperingState { replicas, t }, TemperingInfo { replicas: infos, swaps })
    }

    fn position(&self, state: &TemperingState<D>) -> Tensor<D> {
        self.kernels[0].position(&state.replicas[0])
    }

    /// Moves the coldest replica; the others stay where they are.
    fn moved_to(
        &self,
        model: &dyn EnergyModel<D>,
        mut state: TemperingState<D>,
        x: Tensor<D>,
    ) -> TemperingState<D> {
        let cold = state.replicas[0].clone();
        state.replicas[0] = self.kernels[0].moved_to(&self.tempered(model, 0), cold, x);
        state
    }

    fn is_exact(&self) -> bool {
        self.kernels.iter().all(Sampler::<D>::is_exact)
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::energy::analytic::Gaussian;
    use crate::noise::Stream;
    use crate::samplers::{Mala, MalaConfig};
    use burn::tensor::Device;

    fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    fn ladder(betas: &[f64]) -> ParallelTempering<Mala> {
        ParallelTemperingConfig::new(betas).init(MalaConfig::new(0.2).init().unwrap()).unwrap()
    }

    #[test]
    fn a_swap_is_the_formula_and_each_replica_keeps_its_own_energy() {
        let device = Device::flex();
        let sampler = ladder(&[1.0, 0.25]);
        let model = Gaussian::standard();
        let mut noise = Noise::host(1);
        let [cold, hot] = [0, 1].map(|k| {
            let x = noise.normal([40, 2], Stream::DATA, &device);
            MetropolisState::at(&sampler.tempered(&model, k), x)
        });
        let mut replicas = vec![cold.clone(), hot.clone()];
        let swap = sampler.swap(&mut replicas, 0, &mut noise);
        let (a, b) = (values(model.energy(cold.x.clone())), values(model.energy(hot.x.clone())));
        for (chain, found) in values(swap.acceptance).iter().enumerate() {
            let expected = (0.75 * (a[chain] - b[chain])).exp().min(1.0);
            assert!((found - expected).abs() < 1e-5, "{found} != {expected}");
        }
        let accepted = values(swap.accepted.float());
        assert!(accepted.contains(&0.0) && accepted.contains(&1.0));
        for (chain, swapped) in accepted.iter().enumerate() {
            let at = |state: &MetropolisState<2>| values(state.x.clone().narrow(0, chain, 1));
            let (first, second) = if *swapped == 1.0 { (&hot, &cold) } else { (&cold, &hot) };
            assert_eq!((at(&replicas[0]), at(&replicas[1])), (at(first), at(second)));
        }
        for (k, replica) in replicas.into_iter().enumerate() {
            let fresh = MetropolisState::at(&sampler.tempered(&model, k), replica.x.clone());
            assert!(replica.energy.all_close(fresh.energy, Some(1e-5), Some(1e-6)));
            assert!(replica.gradient.all_close(fresh.gradient, Some(1e-5), Some(1e-6)));
        }
    }

    #[test]
    fn pairs_take_turns_and_wait_for_their_round() {
        let config = ParallelTemperingConfig::geometric(0.1, 4).with_steps_per_swap(2);
        let sampler = config.init(MalaConfig::new(0.2).init().unwrap()).unwrap();
        let x = Tensor::<2>::zeros([3, 1], &Device::flex());
        let (model, mut noise) = (Gaussian::standard(), Noise::host(2));
        let mut state = sampler.init(&model, x);
        let mut rounds = Vec::new();
        for _ in 0..4 {
            let (next, info) = sampler.step(&model, state, &mut noise);
            state = next;
            rounds.push(info.swaps.iter().map(|swap| swap.replica).collect::<Vec<_>>());
        }
        assert_eq!(rounds, [vec![], vec![0, 2], vec![], vec![1]]);
    }

    #[test]
    fn bad_configurations_are_named() {
        let mala = || MalaConfig::new(0.2).init().unwrap();
        for betas in
            [vec![], vec![0.5], vec![1.0, 1.0], vec![1.0, 0.0], vec![1.0, f64::NAN], vec![1.0, 0.2, 0.5]]
        {
            let message = ParallelTemperingConfig::new(betas).init(mala()).unwrap_err().to_string();
            assert!(message.contains("ParallelTemperingConfig.inverse_temperatures ="), "{message}");
        }
        let config = ParallelTemperingConfig::new([1.0, 0.5]);
        let message = config.clone().with_steps_per_swap(0).init(mala()).unwrap_err().to_string();
        assert!(message.contains("steps_per_swap = 0"), "{message}");
        let message = config.init_each(vec![mala()]).unwrap_err().to_string();
        assert!(message.contains("number of kernels = 1"), "{message}");
    }
}
