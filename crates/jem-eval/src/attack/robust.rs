//! Robust accuracy: what is still classified right under attack, over a list of radii.

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::{Defence, Goal, Norm, PgdConfig};
use crate::{Progress, Watch};
use jem_core::data::{ImageSet, PixelRange};
use jem_core::error::{Error, Result, ensure};
use jem_core::noise::Noise;

/// Configuration of a [`RobustEvaluation`].
///
/// ```
/// use jem_eval::attack::{PgdConfig, RobustAccuracyConfig};
/// let curve = RobustAccuracyConfig::new(PgdConfig::l2(0.5), [0.1, 0.25, 0.5, 1.0]).with_batch(100).init()?;
/// assert!(RobustAccuracyConfig::new(PgdConfig::l2(0.5), [0.5, 0.1]).init().is_err()); // not ascending
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RobustAccuracyConfig {
    /// The attack. Its step grows and shrinks with the radius.
    pub attack: PgdConfig,
    /// The radii, ascending, in units of \[0, 1\] pixels.
    pub epsilons: Vec<f64>,
    /// Images attacked at once. Default 64.
    pub batch: usize,
}

impl RobustAccuracyConfig {
    /// A curve of `attack` over `epsilons`.
    pub fn new(attack: PgdConfig, epsilons: impl Into<Vec<f64>>) -> Self {
        Self { attack, epsilons: epsilons.into(), batch: 64 }
    }

    /// Sets the number of images attacked at once.
    pub fn with_batch(mut self, batch: usize) -> Self {
        self.batch = batch;
        self
    }

    /// The evaluation.
    ///
    /// # Errors
    /// [`Error::Config`] naming the field that is not allowed.
    pub fn init(self) -> Result<RobustEvaluation> {
        self.attack.clone().init(PixelRange::Unit)?;
        let ascending = self.epsilons.windows(2).all(|pair| pair[0] < pair[1]);
        let positive = self.epsilons.iter().all(|epsilon| *epsilon > 0.0 && epsilon.is_finite());
        let allowed = !self.epsilons.is_empty() && ascending && positive;
        let found = format!("{:?}", self.epsilons);
        ensure(allowed, "RobustAccuracyConfig.epsilons", found, "finite numbers > 0 in ascending order")?;
        ensure(self.batch > 0, "RobustAccuracyConfig.batch", self.batch, "at least 1")?;
        Ok(RobustEvaluation { config: self })
    }
}

/// One point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RobustPoint {
    /// The radius, in units of \[0, 1\] pixels.
    pub epsilon: f64,
    /// The share of samples that no attack up to this radius has broken.
    pub accuracy: f64,
}

/// Accuracy under attack as a function of the radius.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RobustAccuracy {
    /// The norm of the balls.
    pub norm: Norm,
    /// The share of samples that are right as they came.
    pub clean_accuracy: f64,
    /// The curve. It never rises.
    pub points: Vec<RobustPoint>,
    /// The radius at which each sample was broken: 0 if it is wrong as it came, `None` if never.
    pub broken_at: Vec<Option<f64>>,
    /// Evaluations of a sample whose logits were not finite.
    pub non_finite: usize,
    /// Samples that were to be attacked; more than `broken_at` has if the evaluation was ended early.
    pub planned: usize,
}

impl RobustAccuracy {
    fn new(norm: Norm, epsilons: &[f64], outcomes: Outcomes, planned: usize) -> Self {
        let Outcomes { broken_at, non_finite } = outcomes;
        let n = broken_at.len() as f64;
        let standing = |radius: f64| {
            broken_at.iter().filter(|broken| broken.is_none_or(|broken| broken > radius)).count() as f64 / n
        };
        let points = epsilons.iter().map(|&epsilon| RobustPoint { epsilon, accuracy: standing(epsilon) });
        let (points, clean_accuracy) = (points.collect(), standing(0.0));
        Self { norm, clean_accuracy, points, broken_at, non_finite, planned }
    }

    /// Whether all samples were attacked.
    pub fn is_complete(&self) -> bool {
        self.broken_at.len() == self.planned
    }
}

/// At which radius each sample was broken.
#[derive(Debug, Default)]
struct Outcomes {
    broken_at: Vec<Option<f64>>,
    non_finite: usize,
}

/// Attacks a set at one radius after the other.
///
/// A sample that is broken stays broken: it is not attacked again at larger radii, whose balls hold what broke it.
/// So the curve never rises, and a larger radius costs less.
///
/// Source: Grathwohl et al. 2020, arXiv 1912.03263, figure 5; Madry et al. 2018, arXiv 1706.06083.
#[derive(Debug, Clone, PartialEq)]
pub struct RobustEvaluation {
    config: RobustAccuracyConfig,
}

impl RobustEvaluation {
    /// The curve of `defence` on `set`, whose range says what a pixel is. `watch` hears of every batch at every
    /// radius, and may end the evaluation: the batches done until then are the result.
    ///
    /// # Errors
    /// [`Error::Config`] if the set is empty, or ended before one batch was done; and as
    /// [`Pgd::run`](super::Pgd::run).
    pub fn run<F: Defence<4> + ?Sized>(
        &self,
        defence: &F,
        set: &ImageSet,
        device: &Device,
        noise: &mut Noise,
        watch: &mut Watch<'_>,
    ) -> Result<RobustAccuracy> {
        let RobustAccuracyConfig { attack, epsilons, batch } = &self.config;
        ensure(!set.is_empty(), &format!("images in {}", set.name()), 0, "at least 1")?;
        let total = set.len().div_ceil(*batch) * epsilons.len();
        let mut all = Outcomes::default();
        for (number, part) in set.batches(*batch, device)?.enumerate() {
            let (x, labels) = part?;
            let mut done = number * epsilons.len();
            let mut step = || {
                done += 1;
                watch(Progress { stage: "robust accuracy", done, total })
            };
            let Some(outcomes) = self.batch(defence, x, labels, set.range(), noise, &mut step)? else {
                break;
            };
            all.broken_at.extend(outcomes.broken_at);
            all.non_finite += outcomes.non_finite;
        }
        ensure(!all.broken_at.is_empty(), "batches done before the end was asked for", 0, "at least 1")?;
        Ok(RobustAccuracy::new(attack.norm, epsilons, all, set.len()))
    }

    /// The curve on one batch of any rank, all at once.
    ///
    /// # Errors
    /// As [`Pgd::run`](super::Pgd::run).
    pub fn run_batch<const D: usize, F: Defence<D> + ?Sized>(
        &self,
        defence: &F,
        x: Tensor<D>,
        labels: &[usize],
        range: PixelRange,
        noise: &mut Noise,
    ) -> Result<RobustAccuracy> {
        let go_on = &mut || std::ops::ControlFlow::Continue(());
        let outcomes = self.batch(defence, x, labels, range, noise, go_on)?.unwrap_or_default();
        Ok(RobustAccuracy::new(self.config.attack.norm, &self.config.epsilons, outcomes, labels.len()))
    }

    /// Each radius in turn, on what is left; `None` if the end was asked for.
    fn batch<const D: usize, F: Defence<D> + ?Sized>(
        &self,
        defence: &F,
        x: Tensor<D>,
        labels: &[usize],
        range: PixelRange,
        noise: &mut Noise,
        step: &mut dyn FnMut() -> std::ops::ControlFlow<()>,
    ) -> Result<Option<Outcomes>> {
        if labels.len() != x.dims()[0] {
            let expected = format!("[{}], one per sample", x.dims()[0]);
            return Err(Error::shape("labels", &[labels.len()], expected));
        }
        let mut outcomes = Outcomes { broken_at: vec![None; labels.len()], non_finite: 0 };
        let mut standing: Vec<usize> = (0..labels.len()).collect();
        for &epsilon in &self.config.epsilons {
            if !standing.is_empty() {
                let attack = self.config.attack.clone().scaled_to(epsilon).init(range)?;
                let rows = jem_core::data::label_tensor(&standing, &x.device());
                let left: Vec<usize> = standing.iter().map(|sample| labels[*sample]).collect();
                let found = attack.run(defence, x.clone().select(0, rows), Goal::Untargeted(&left), noise)?;
                outcomes.non_finite += found.non_finite;
                for ((sample, broken), restart) in standing.iter().zip(&found.succeeded).zip(&found.restarts)
                {
                    // A sample that needs no change is wrong as it came, if that was seen before any attack.
                    let at =
                        if restart.is_none() && epsilon == self.config.epsilons[0] { 0.0 } else { epsilon };
                    outcomes.broken_at[*sample] = broken.then_some(at);
                }
                standing.retain(|sample| outcomes.broken_at[*sample].is_none());
            }
            if step().is_break() {
                return Ok(None);
            }
        }
        Ok(Some(outcomes))
    }
}
