//! Where negatives come from: the trait that objectives draw samples through, and chains without memory.

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::{ChainStart, Sampler, UniformStart, run};
use crate::energy::EnergyModel;
use crate::error::{Error, Result, ensure};
use crate::math::per_sample;
use crate::noise::Noise;
use crate::persist::Persist;

/// What an objective asks of a source.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Number of samples.
    pub count: usize,
    /// The label that each sample is conditioned on, one per sample; the model must already have them clamped.
    pub labels: Option<&'a [usize]>,
    /// Where the samples are wanted.
    pub device: &'a Device,
}

/// Samples of the model, with no gradient attached, and how they came about.
#[derive(Debug, Clone)]
pub struct Negatives<const D: usize> {
    /// The samples, `[count, ..]`, all finite.
    pub samples: Tensor<D>,
    /// Chains that started afresh.
    pub restarted: usize,
    /// Chains that ended in a non-finite value and were replaced by fresh starts.
    pub non_finite: usize,
}

/// A source of model samples with a memory between calls.
pub trait SampleSource<const D: usize> {
    /// The memory. A checkpoint holds it.
    type State: Persist;

    /// A memory with nothing learnt in it. Called again to forget everything after a divergence.
    ///
    /// # Errors
    /// [`Error::Shape`] if the configured sample shape is not of rank D - 1, or not that of the starts.
    fn start(&self, noise: &mut Noise, device: &Device) -> Result<Self::State>;

    /// Draws samples of `model` and the memory after it.
    ///
    /// # Errors
    /// [`Error::Config`] or [`Error::Shape`] if the request does not fit the source.
    fn draw(
        &self,
        model: &dyn EnergyModel<D>,
        request: Request<'_>,
        state: Self::State,
        noise: &mut Noise,
    ) -> Result<(Negatives<D>, Self::State)>;
}

/// Configuration of [`ShortRun`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShortRunConfig {
    /// Shape of one sample, without the batch dimension.
    pub sample_shape: Vec<usize>,
    /// Steps of each chain. Default 100.
    pub num_steps: usize,
}

impl ShortRunConfig {
    /// Chains of 100 steps over samples of `sample_shape`.
    pub fn new(sample_shape: impl Into<Vec<usize>>) -> Self {
        Self { sample_shape: sample_shape.into(), num_steps: 100 }
    }

    /// Sets the number of steps.
    pub fn with_num_steps(mut self, num_steps: usize) -> Self {
        self.num_steps = num_steps;
        self
    }

    /// Chains of `sampler` that start from U(-1, 1).
    ///
    /// # Errors
    /// [`Error::Config`] if there is no step or the sample shape is empty.
    pub fn init<S>(self, sampler: S) -> Result<ShortRun<S>> {
        self.init_from(sampler, UniformStart::default())
    }

    /// Chains of `sampler` that start from `start`.
    ///
    /// # Errors
    /// As [`init`](Self::init).
    pub fn init_from<S, C>(self, sampler: S, start: C) -> Result<ShortRun<S, C>> {
        ensure(self.num_steps > 0, "ShortRunConfig.num_steps", self.num_steps, "at least 1")?;
        check_sample_shape("ShortRunConfig.sample_shape", &self.sample_shape)?;
        Ok(ShortRun { config: self, sampler, start })
    }
}

/// Short-run MCMC: every draw starts K-step chains from noise, and nothing is remembered.
///
/// # Shapes
/// Samples are `[count, sample_shape..]`.
///
/// ```
/// use jem_core::samplers::{ImproperSgldConfig, ShortRunConfig};
/// let source = ShortRunConfig::new([3, 32, 32]).with_num_steps(60).init(ImproperSgldConfig::new().init()?)?;
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Nijkamp et al. 2019, arXiv 1904.09770.
#[derive(Debug, Clone)]
pub struct ShortRun<S, C = UniformStart> {
    config: ShortRunConfig,
    sampler: S,
    start: C,
}

impl<const D: usize, S: Sampler<D>, C: ChainStart<D>> SampleSource<D> for ShortRun<S, C> {
    type State = ();

    fn start(&self, _noise: &mut Noise, _device: &Device) -> Result<()> {
        batch_shape::<D>(0, &self.config.sample_shape)?;
        self.start.check(&self.config.sample_shape)
    }

    fn draw(
        &self,
        model: &dyn EnergyModel<D>,
        request: Request<'_>,
        (): (),
        noise: &mut Noise,
    ) -> Result<(Negatives<D>, ())> {
        check_request(&request)?;
        let shape = batch_shape(request.count, &self.config.sample_shape)?;
        let x = self.start.draw(shape, request.labels, noise, request.device);
        let x = run(&self.sampler, model, x, self.config.num_steps, noise);
        let mut fresh =
            |shape, labels: Option<&[usize]>| self.start.draw(shape, labels, noise, request.device);
        let (samples, non_finite) = replace_non_finite(x, request.labels, &mut fresh);
        Ok((Negatives { samples, restarted: request.count, non_finite }, ()))
    }
}

/// What makes fresh samples of a shape, for labels where there are any.
pub(super) type Fresh<'a, const D: usize> = dyn FnMut([usize; D], Option<&[usize]>) -> Tensor<D> + 'a;

/// Replaces each sample with a NaN or an infinity in it by a fresh one, and counts them.
pub(super) fn replace_non_finite<const D: usize>(
    x: Tensor<D>,
    labels: Option<&[usize]>,
    fresh: &mut Fresh<'_, D>,
) -> (Tensor<D>, usize) {
    let finite = per_sample(x.clone()).is_finite().all_dim(1).int().into_data();
    let bad: Vec<usize> =
        finite.iter::<i64>().enumerate().filter(|(_, finite)| *finite == 0).map(|(index, _)| index).collect();
    let x = bad.iter().fold(x, |x, &index| {
        let labels = labels.map(|labels| &labels[index..=index]);
        put_sample(x, index, &mut |shape| fresh(shape, labels))
    });
    (x, bad.len())
}

/// `x` with sample `index` replaced by a batch of one.
pub(super) fn put_sample<const D: usize>(
    x: Tensor<D>,
    index: usize,
    sample: &mut dyn FnMut([usize; D]) -> Tensor<D>,
) -> Tensor<D> {
    let mut shape = x.dims();
    shape[0] = 1;
    let mut ranges = shape.map(|extent| 0..extent);
    ranges[0] = index..index + 1;
    x.slice_assign(ranges, sample(shape))
}

/// `[count, sample_shape..]`, if that has rank D.
pub(super) fn batch_shape<const D: usize>(count: usize, sample_shape: &[usize]) -> Result<[usize; D]> {
    let shape: Vec<usize> = std::iter::once(count).chain(sample_shape.iter().copied()).collect();
    shape.try_into().map_err(|_| {
        Error::shape("sample_shape", sample_shape, format!("{} dimensions", D.saturating_sub(1)))
    })
}

pub(super) fn check_sample_shape(field: &str, shape: &[usize]) -> Result<()> {
    let filled = !shape.is_empty() && shape.iter().all(|extent| *extent > 0);
    ensure(filled, field, format!("{shape:?}"), "one extent above 0 per dimension of a sample")
}

pub(super) fn check_request(request: &Request<'_>) -> Result<()> {
    match request.labels {
        Some(labels) if labels.len() != request.count => {
            Err(Error::shape("labels", &[labels.len()], format!("[{}], one per sample", request.count)))
        }
        _ => Ok(()),
    }
}
