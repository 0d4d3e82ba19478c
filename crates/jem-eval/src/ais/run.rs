//! One run of annealed chains, in either direction, and the weights that come of it.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::config::AisConfig;
use super::plan::{AisPlan, as_energy, kernel};
use super::{Base, GeometricPath, LogZ};
use crate::{Progress, Watch};
use jem_core::energy::EnergyModel;
use jem_core::error::{Error, Result};
use jem_core::math::sample_extent;
use jem_core::noise::Noise;
use jem_core::samplers::Sampler;

/// Which way the chains went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the base to the target.
    Forward,
    /// From the target to the base.
    Reverse,
}

/// The chains of one direction after their last temperature.
#[derive(Debug, Clone)]
pub struct AisRun<const D: usize> {
    /// Which way they went.
    pub direction: Direction,
    /// log w of each chain.
    pub log_weights: Vec<f64>,
    /// The mean acceptance at each temperature, in the order in which they were met.
    pub acceptance: Vec<f64>,
    /// Where the chains ended, `[chains, ..]`: near the target in a forward run, weighted by w.
    pub samples: Tensor<D>,
    /// Temperatures met; fewer than planned if the run was ended early.
    pub temperatures: usize,
    /// Temperatures planned.
    pub planned: usize,
    /// log Z of the base.
    pub base_log_z: f64,
}

impl<const D: usize> AisRun<D> {
    /// Whether the chains went all the way.
    pub fn is_complete(&self) -> bool {
        self.temperatures == self.planned
    }

    /// The estimate of log Z, with an error bar from 2,000 bootstrap draws.
    ///
    /// # Errors
    /// [`Error::Config`] if the run was ended early, since its weights are those of another density, or there are
    /// fewer than two chains.
    pub fn log_z(&self, noise: &mut Noise) -> Result<LogZ> {
        if !self.is_complete() {
            let allowed = format!("all {}, to the end of the ladder", self.planned);
            return Err(Error::config("AisRun.temperatures", self.temperatures, allowed));
        }
        LogZ::new(self.direction, &self.log_weights, self.base_log_z, noise)
    }
}

/// All that stays the same in a run.
pub(super) struct Annealing<'a, const D: usize> {
    pub config: &'a AisConfig,
    pub plan: &'a AisPlan,
    pub base: &'a dyn Base<D>,
    pub target: &'a dyn EnergyModel<D>,
}

impl<const D: usize> Annealing<'_, D> {
    pub fn run(
        &self,
        direction: Direction,
        mut x: Tensor<D>,
        noise: &mut Noise,
        watch: &mut Watch<'_>,
    ) -> Result<AisRun<D>> {
        let [chains, elements] = sample_extent(&x.dims());
        let betas = self.plan.betas();
        let total = betas.len() - 1;
        let stage = match direction {
            Direction::Forward => "forward annealing",
            Direction::Reverse => "reverse annealing",
        };
        let mut log_weights = vec![0.0; chains];
        let mut acceptance = Vec::new();
        let mut done = 0;
        while done < total {
            // The rung that is left and the one that is gone to.
            let (here, there) = match direction {
                Direction::Forward => (done, done + 1),
                Direction::Reverse => (total - done, total - done - 1),
            };
            self.weigh(&mut log_weights, &x, betas[there] - betas[here], direction)?;
            done += 1;
            if done < total {
                let (moved, accepted) = self.transit(there, x, noise)?;
                x = moved;
                acceptance.push(accepted);
            }
            if watch(Progress { stage, done, total }).is_break() {
                break;
            }
        }
        Ok(AisRun {
            direction,
            log_weights,
            acceptance,
            samples: x,
            temperatures: done,
            planned: total,
            base_log_z: self.base.log_z(elements),
        })
    }

    /// log w += Δβ (E_0(x) - E_1(x)), with Δβ < 0 on the way back.
    fn weigh(&self, log_weights: &mut [f64], x: &Tensor<D>, change: f64, direction: Direction) -> Result<()> {
        let lead: Tensor<1> = self.base.energy(x.clone()) - self.target.energy(x.clone());
        let lead = lead.without_autodiff().into_data();
        for (chain, (log_weight, lead)) in log_weights.iter_mut().zip(lead.iter::<f64>()).enumerate() {
            *log_weight += change * lead;
            // An energy of +∞ is a density of 0, and a weight of 0 is one.
            if log_weight.is_nan() || *log_weight == f64::INFINITY {
                let what = format!("log weight of chain {chain} ({direction:?} annealing)");
                return Err(Error::NonFinite { what, value: *log_weight });
            }
        }
        Ok(())
    }

    /// The transitions at one rung, and their mean acceptance.
    fn transit(&self, rung: usize, x: Tensor<D>, noise: &mut Noise) -> Result<(Tensor<D>, f64)> {
        let path = GeometricPath::new(as_energy(self.base), self.target, self.plan.betas()[rung]);
        let step_size = self.plan.step_sizes()[rung];
        let hmc = kernel(self.config, self.base).with_step_size(step_size).init()?;
        let mut state = hmc.init(&path, x);
        let mut acceptance = 0.0;
        for _ in 0..self.config.transitions {
            let (next, info) = hmc.step(&path, state, noise);
            state = next;
            acceptance += f64::from(info.acceptance.mean().into_scalar::<f32>());
        }
        Ok((state.x, acceptance / self.config.transitions as f64))
    }
}

/// `Ok` if there is something in a shape.
pub(super) fn filled(shape: &[usize]) -> Result<()> {
    if sample_extent(shape).contains(&0) {
        return Err(Error::shape("annealed chains", shape, "at least one chain of one number"));
    }
    Ok(())
}
