//! Projected gradient descent: the strongest first-order attack within a ball.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::ball::{Ball, Norm, pixel, steepest};
use super::search::Search;
use super::{AttackLoss, Defence};
use jem_core::data::PixelRange;
use jem_core::error::{Error, Result, ensure, ensure_positive};
use jem_core::math::sample_extent;
use jem_core::noise::Noise;

/// Configuration of [`Pgd`]. Radius and step are in units of \[0, 1\] pixels.
///
/// ```
/// use jem_core::data::PixelRange;
/// use jem_eval::attack::PgdConfig;
/// let strong = PgdConfig::linf(8.0 / 255.0).init(PixelRange::Symmetric)?; // step 2/255, 40 steps, 20 restarts
/// let quick = PgdConfig::l2(0.5).with_num_steps(10).with_step_size(0.1).with_restarts(1);
/// assert!(PgdConfig::linf(0.0).init(PixelRange::Unit).is_err());
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PgdConfig {
    /// The norm of the ball.
    pub norm: Norm,
    /// ε, the radius of the ball.
    pub epsilon: f64,
    /// The size of a step. Default ε/4.
    pub step_size: f64,
    /// Steps from each start. Default 40.
    pub num_steps: usize,
    /// Random starts. Default 20.
    pub restarts: usize,
    /// What is ascended. Default cross-entropy.
    pub loss: AttackLoss,
}

impl PgdConfig {
    /// L∞: |x' - x| ≤ ε in each pixel. At ε = 8/255 this is the attack of the JEM paper.
    pub fn linf(epsilon: f64) -> Self {
        Self::new(Norm::Linf, epsilon)
    }

    /// L2: ‖x' - x‖₂ ≤ ε.
    pub fn l2(epsilon: f64) -> Self {
        Self::new(Norm::L2, epsilon)
    }

    fn new(norm: Norm, epsilon: f64) -> Self {
        let loss = AttackLoss::default();
        Self { norm, epsilon, step_size: epsilon / 4.0, num_steps: 40, restarts: 20, loss }
    }

    /// Sets the size of a step.
    pub fn with_step_size(mut self, step_size: f64) -> Self {
        self.step_size = step_size;
        self
    }

    /// Sets the steps from each start.
    pub fn with_num_steps(mut self, num_steps: usize) -> Self {
        self.num_steps = num_steps;
        self
    }

    /// Sets the number of random starts.
    pub fn with_restarts(mut self, restarts: usize) -> Self {
        self.restarts = restarts;
        self
    }

    /// Sets what is ascended.
    pub fn with_loss(mut self, loss: AttackLoss) -> Self {
        self.loss = loss;
        self
    }

    /// Another radius, with the step in the same proportion to it.
    pub fn scaled_to(mut self, epsilon: f64) -> Self {
        self.step_size *= epsilon / self.epsilon;
        self.epsilon = epsilon;
        self
    }

    /// The attack on a model whose input is in `range`.
    ///
    /// # Errors
    /// [`Error::Config`] naming the field that is not allowed.
    pub fn init(self, range: PixelRange) -> Result<Pgd> {
        ensure_positive("PgdConfig.epsilon", self.epsilon)?;
        ensure_positive("PgdConfig.step_size", self.step_size)?;
        ensure(self.num_steps > 0, "PgdConfig.num_steps", self.num_steps, "at least 1")?;
        ensure(self.restarts > 0, "PgdConfig.restarts", self.restarts, "at least 1")?;
        Ok(Pgd { config: self, range })
    }
}

/// What an attack wants, with a label for each sample.
#[derive(Debug, Clone, Copy)]
pub enum Goal<'a> {
    /// Any decision but these, the true labels.
    Untargeted(&'a [usize]),
    /// These decisions.
    Targeted(&'a [usize]),
}

/// What an attack found for each sample.
#[derive(Debug, Clone)]
pub struct Adversarial<const D: usize> {
    /// The best example of each sample over all steps of all restarts: the first that met the goal, or else the
    /// one with the highest loss. It may be the sample itself.
    pub examples: Tensor<D>,
    /// Whether it meets the goal.
    pub succeeded: Vec<bool>,
    /// Its loss.
    pub losses: Vec<f32>,
    /// The restart that it comes from; `None` for a sample as it came.
    pub restarts: Vec<Option<usize>>,
    /// Evaluations of a sample whose logits were not finite. A NaN counts as misclassified.
    pub non_finite: usize,
}

impl<const D: usize> Adversarial<D> {
    /// The share of samples for which the goal was met.
    pub fn success_rate(&self) -> f64 {
        self.succeeded.iter().filter(|succeeded| **succeeded).count() as f64 / self.succeeded.len() as f64
    }
}

/// Projected gradient descent within the ball of radius ε round each sample, and the box of all images:
///
/// ```text
/// x₀ uniform in the ball,   x ← Π( x + α d(∇ₓ loss) ),   d(g) = sign(g) in L∞ and g/‖g‖₂ in L2
/// ```
///
/// A sample that meets the goal as it came is kept as it is. One that meets it on the way is kept there, and no
/// more is computed for it. Of all others the point with the highest loss over all restarts is kept.
///
/// On a random defence each evaluation is a draw, and the first draw that meets the goal counts: see
/// [`ExpectedGradient`](super::ExpectedGradient) and [`error_rates`](super::error_rates).
///
/// # Shapes
/// `[batch, ..]` of any rank, in the range that the attack was made for.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::data::PixelRange;
/// use jem_core::energy::analytic::GaussianMixture;
/// use jem_eval::attack::{Goal, PgdConfig};
/// use jem_core::noise::Noise;
///
/// // Two classes, with the border at 0.5.
/// let model = GaussianMixture::new(vec![vec![0.2], vec![0.8]], 0.3)?;
/// let x = Tensor::<2>::from_floats([[0.45], [0.2]], &Device::default());
/// let attack = PgdConfig::linf(0.1).init(PixelRange::Unit)?;
/// let found = attack.run(&model, x, Goal::Untargeted(&[0, 0]), &mut Noise::host(0))?;
/// assert_eq!(found.succeeded, [true, false]);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Madry et al. 2018, arXiv 1706.06083; the settings from Grathwohl et al. 2020, arXiv 1912.03263,
/// section 5.4.
#[derive(Debug, Clone, PartialEq)]
pub struct Pgd {
    config: PgdConfig,
    range: PixelRange,
}

impl Pgd {
    /// The configuration.
    pub fn config(&self) -> &PgdConfig {
        &self.config
    }

    /// The range of the model's input.
    pub fn range(&self) -> PixelRange {
        self.range
    }

    /// Attacks a batch.
    ///
    /// # Errors
    /// [`Error::Shape`] if the batch is empty, there is not one label per sample or the model has one class;
    /// [`Error::Config`] if a label is not the index of a logit or a pixel lies outside the range.
    pub fn run<const D: usize, F: Defence<D> + ?Sized>(
        &self,
        defence: &F,
        x: Tensor<D>,
        goal: Goal<'_>,
        noise: &mut Noise,
    ) -> Result<Adversarial<D>> {
        let x = x.without_autodiff();
        inside_the_box(&x, self.range)?;
        let mut search = Search::new(x.clone(), goal, self.config.loss);
        search.observe_clean(defence.classify(x, noise).without_autodiff())?;
        for restart in 0..self.config.restarts {
            if search.is_done() {
                break;
            }
            self.climb(defence, &mut search, restart, noise);
        }
        Ok(search.finish())
    }

    /// One random start, and the steps from there.
    fn climb<const D: usize, F: Defence<D> + ?Sized>(
        &self,
        defence: &F,
        search: &mut Search<D>,
        restart: usize,
        noise: &mut Noise,
    ) {
        let PgdConfig { norm, epsilon, step_size, num_steps, .. } = self.config;
        let ball = Ball { norm, radius: epsilon * pixel(self.range), range: self.range };
        let step = step_size * pixel(self.range);
        let mut x = ball.random_point(search.clean(), noise);
        for _ in 0..num_steps {
            let mut response = defence.respond(x.clone(), &search.loss(), noise);
            let seen = x.clone();
            let with = &mut [&mut x, &mut response.gradient];
            search.observe(&seen, response.logits, response.loss, Some(restart), with);
            if search.is_done() {
                return;
            }
            let moved = x + steepest(norm, response.gradient).mul_scalar(step);
            x = ball.project(search.clean(), moved);
        }
        let logits = defence.classify(x.clone(), noise).without_autodiff();
        let loss = search.loss()(logits.clone());
        search.observe(&x, logits, loss, Some(restart), &mut []);
    }
}

/// `Ok` if all pixels are in `range`, but for rounding.
pub(super) fn inside_the_box<const D: usize>(x: &Tensor<D>, range: PixelRange) -> Result<()> {
    let dims = x.dims();
    if sample_extent(&dims).contains(&0) {
        return Err(Error::shape("samples to attack", &dims, "at least one sample of one number"));
    }
    let extremes: Tensor<1> = Tensor::cat(vec![x.clone().min(), x.clone().max()], 0);
    let extremes: Vec<f32> = extremes.into_data().iter::<f32>().collect();
    let finite = x.clone().is_finite().all().int().into_scalar::<i64>() == 1;
    let inside = extremes[0] >= range.low() - 1e-6 && extremes[1] <= range.high() + 1e-6;
    let found = if finite { format!("[{}, {}]", extremes[0], extremes[1]) } else { "not finite".to_owned() };
    ensure(
        finite && inside,
        "pixels of the samples to attack",
        found,
        &format!("within [{}, {}], the range of the attack", range.low(), range.high()),
    )
}
