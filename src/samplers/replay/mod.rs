//! Persistent chains: a replay buffer round any sampler.

mod buffer;

pub use buffer::{BufferPlace, ReplayBuffer};

use burn::tensor::{Device, Tensor};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::source::{
    Negatives, Request, SampleSource, batch_shape, check_request, check_sample_shape, put_sample,
    replace_non_finite,
};
use super::{ChainStart, Sampler, UniformStart, run};
use crate::energy::EnergyModel;
use crate::error::{Error, Result, ensure};
use crate::noise::{Noise, Stream};

/// Configuration of [`Replay`]; the defaults are JEM's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayConfig {
    /// Shape of one sample, without the batch dimension.
    pub sample_shape: Vec<usize>,
    /// Samples kept. Default 10,000.
    pub capacity: usize,
    /// ρ, the probability that a chain starts afresh instead of from its slot. Default 0.05.
    pub restart_probability: f64,
    /// K, the steps of each draw. Default 20.
    pub num_steps: usize,
    /// Equal blocks of slots, one per class, for conditional draws. Default 1.
    pub class_blocks: usize,
    /// Where the samples are kept. Default on the host.
    pub place: BufferPlace,
}

impl ReplayConfig {
    /// JEM's buffer for samples of `sample_shape`.
    pub fn new(sample_shape: impl Into<Vec<usize>>) -> Self {
        Self {
            sample_shape: sample_shape.into(),
            capacity: 10_000,
            restart_probability: 0.05,
            num_steps: 20,
            class_blocks: 1,
            place: BufferPlace::Host,
        }
    }

    /// Sets the number of samples kept.
    pub fn with_capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// Sets ρ.
    pub fn with_restart_probability(mut self, probability: f64) -> Self {
        self.restart_probability = probability;
        self
    }

    /// Sets K.
    pub fn with_num_steps(mut self, num_steps: usize) -> Self {
        self.num_steps = num_steps;
        self
    }

    /// Splits the slots into one block per class.
    pub fn with_class_blocks(mut self, classes: usize) -> Self {
        self.class_blocks = classes;
        self
    }

    /// Sets where the samples are kept.
    pub fn with_place(mut self, place: BufferPlace) -> Self {
        self.place = place;
        self
    }

    /// A buffer round `sampler` whose chains start from U(-1, 1).
    ///
    /// # Errors
    /// [`Error::Config`] naming the field that does not fit.
    pub fn init<S>(self, sampler: S) -> Result<Replay<S>> {
        self.init_from(sampler, UniformStart::default())
    }

    /// A buffer round `sampler` whose chains start from `start`.
    ///
    /// # Errors
    /// As [`init`](Self::init).
    pub fn init_from<S, C>(self, sampler: S, start: C) -> Result<Replay<S, C>> {
        check_sample_shape("ReplayConfig.sample_shape", &self.sample_shape)?;
        let field = "ReplayConfig.capacity";
        ensure(
            self.capacity > 0,
            field,
            self.capacity,
            "at least 1 (use ShortRun for chains without a buffer)",
        )?;
        let rho = self.restart_probability;
        ensure((0.0..=1.0).contains(&rho), "ReplayConfig.restart_probability", rho, "in [0, 1]")?;
        ensure(self.num_steps > 0, "ReplayConfig.num_steps", self.num_steps, "at least 1")?;
        let blocks = self.class_blocks;
        let divides = blocks > 0 && self.capacity.is_multiple_of(blocks);
        let allowed = format!("at least 1 and a divisor of the capacity, {}", self.capacity);
        ensure(divides, "ReplayConfig.class_blocks", blocks, &allowed)?;
        Ok(Replay { config: self, sampler, start })
    }
}

/// Persistent contrastive divergence: chains that go on from where they were left.
///
/// The buffer starts full of fresh starts. A draw picks a slot for each chain at random, with replacement, and
/// with probability ρ begins it afresh instead; after K steps of the sampler the samples go back to the slots
/// they came from. With labels, the draw for label y comes from block y. A chain that ends in a NaN or an
/// infinity never reaches the buffer: it is replaced by a fresh start, and counted.
///
/// # Shapes
/// Samples are `[count, sample_shape..]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{ImproperSgldConfig, ReplayConfig, Request, SampleSource};
///
/// let replay = ReplayConfig::new([2]).with_capacity(100).init(ImproperSgldConfig::new().init()?)?;
/// let (mut noise, device) = (Noise::host(0), Device::default());
/// let buffer = SampleSource::<2>::start(&replay, &mut noise, &device)?;
/// let request = Request { count: 8, labels: None, device: &device };
/// let (negatives, buffer) = replay.draw(&Gaussian::standard(), request, buffer, &mut noise)?;
/// assert_eq!(negatives.samples.dims(), [8, 2]);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Tieleman 2008; Du & Mordatch 2019, arXiv 1903.08689; Grathwohl et al. 2020, arXiv 1912.03263,
/// algorithm 1.
#[derive(Debug, Clone)]
pub struct Replay<S, C = UniformStart> {
    config: ReplayConfig,
    sampler: S,
    start: C,
}

impl<S, C> Replay<S, C> {
    /// The configuration.
    pub fn config(&self) -> &ReplayConfig {
        &self.config
    }

    /// A slot for each chain: anywhere, or in the block of its label.
    fn slots(&self, request: &Request<'_>, noise: &mut Noise) -> Result<Vec<usize>> {
        let rng = noise.rng(Stream::BUFFER);
        let Some(labels) = request.labels else {
            return Ok((0..request.count).map(|_| rng.random_range(0..self.config.capacity)).collect());
        };
        let blocks = self.config.class_blocks;
        if let Some(label) = labels.iter().find(|label| **label >= blocks) {
            let allowed = format!("below ReplayConfig.class_blocks, {blocks}");
            return Err(Error::config("Request.labels", label, allowed));
        }
        let width = self.config.capacity / blocks;
        Ok(labels.iter().map(|label| label * width + rng.random_range(0..width)).collect())
    }
}

impl<const D: usize, S: Sampler<D>, C: ChainStart<D>> SampleSource<D> for Replay<S, C> {
    type State = ReplayBuffer<D>;

    fn start(&self, noise: &mut Noise, device: &Device) -> Result<ReplayBuffer<D>> {
        let ReplayConfig { capacity, class_blocks, place, .. } = self.config;
        let shape = batch_shape::<D>(capacity, &self.config.sample_shape)?;
        self.start.check(&self.config.sample_shape)?;
        let width = capacity / class_blocks;
        let labels: Vec<usize> = (0..capacity).map(|slot| slot / width).collect();
        let labels = (class_blocks > 1).then_some(labels.as_slice());
        Ok(ReplayBuffer::new(self.start.draw(shape, labels, noise, device), place))
    }

    fn draw(
        &self,
        model: &dyn EnergyModel<D>,
        request: Request<'_>,
        mut buffer: ReplayBuffer<D>,
        noise: &mut Noise,
    ) -> Result<(Negatives<D>, ReplayBuffer<D>)> {
        check_request(&request)?;
        let Request { count, labels, device } = request;
        let slots = self.slots(&request, noise)?;
        let rho = self.config.restart_probability;
        let restarts: Vec<usize> =
            (0..count).filter(|_| noise.rng(Stream::BUFFER).random_bool(rho)).collect();
        let fresh = |shape, labels: Option<&[usize]>, noise: &mut Noise| {
            self.start.draw(shape, labels, noise, device)
        };
        let x = restarts.iter().fold(buffer.read(&slots, device), |x, &index| {
            let label = labels.map(|labels| &labels[index..=index]);
            put_sample(x, index, &mut |shape| fresh(shape, label, noise))
        });
        let x: Tensor<D> = run(&self.sampler, model, x, self.config.num_steps, noise);
        let (samples, non_finite) =
            replace_non_finite(x, labels, &mut |shape, label| fresh(shape, label, noise));
        buffer.write(&slots, &samples);
        Ok((Negatives { samples, restarted: restarts.len(), non_finite }, buffer))
    }
}
