//! IGEBM's replay buffer round any sampler: a queue of bytes, filled by the chains and read at random.

mod buffer;

pub use buffer::FifoBuffer;

use std::collections::BTreeMap;

use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::source::{
    Negatives, Request, SampleSource, batch_shape, check_request, check_sample_shape, replace_non_finite,
};
use super::{Bounds, ChainStart, Sampler, UniformStart, run};
use crate::energy::EnergyModel;
use crate::error::{Result, ensure};
use crate::noise::{Noise, Stream};

/// The largest capacity, and the largest label but one, that an f32 in a file holds exactly.
const EXACT: usize = 1 << 24;

/// Configuration of [`FifoReplay`]; the defaults are IGEBM's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FifoReplayConfig {
    /// Shape of one sample, without the batch dimension.
    pub sample_shape: Vec<usize>,
    /// Samples kept. Default 10,000.
    pub capacity: usize,
    /// ρ, the probability that a chain starts afresh instead of from the queue. Default 0.05.
    pub restart_probability: f64,
    /// K, the steps of each draw. Default 60.
    pub num_steps: usize,
    /// What the 256 levels are spread over. Default the pixels' \[0, 1\].
    pub bounds: Bounds,
}

impl FifoReplayConfig {
    /// IGEBM's queue for samples of `sample_shape`.
    pub fn new(sample_shape: impl Into<Vec<usize>>) -> Self {
        Self {
            sample_shape: sample_shape.into(),
            capacity: 10_000,
            restart_probability: 0.05,
            num_steps: 60,
            bounds: Bounds { low: 0.0, high: 1.0 },
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

    /// Sets what the levels are spread over: the box that the chains stay in.
    pub fn with_bounds(mut self, low: f32, high: f32) -> Self {
        self.bounds = Bounds { low, high };
        self
    }

    /// A queue round `sampler` whose chains start from the uniform distribution over the box.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) naming the field that does not fit.
    pub fn init<S>(self, sampler: S) -> Result<FifoReplay<S>> {
        self.bounds.check("FifoReplayConfig.bounds")?;
        let start = UniformStart::new(self.bounds.low, self.bounds.high)?;
        self.init_from(sampler, start)
    }

    /// A queue round `sampler` whose chains start from `start`.
    ///
    /// # Errors
    /// As [`init`](Self::init).
    pub fn init_from<S, C>(self, sampler: S, start: C) -> Result<FifoReplay<S, C>> {
        check_sample_shape("FifoReplayConfig.sample_shape", &self.sample_shape)?;
        let capacity = self.capacity;
        let allowed = format!("in [1, {EXACT}] (use ShortRun for chains without a buffer)");
        ensure((1..=EXACT).contains(&capacity), "FifoReplayConfig.capacity", capacity, &allowed)?;
        let rho = self.restart_probability;
        ensure((0.0..=1.0).contains(&rho), "FifoReplayConfig.restart_probability", rho, "in [0, 1]")?;
        ensure(self.num_steps > 0, "FifoReplayConfig.num_steps", self.num_steps, "at least 1")?;
        self.bounds.check("FifoReplayConfig.bounds")?;
        Ok(FifoReplay { config: self, sampler, start })
    }
}

/// IGEBM's replay buffer: a queue that the ends of chains go into, and that chains start from.
///
/// It is empty at first. A draw starts each chain from a sample of the queue at random, with replacement, and with
/// probability ρ (always, while there is none) from the [`ChainStart`]. After K steps the samples go in at the end,
/// and push the oldest out once the queue is full: unlike [`Replay`](super::Replay), whose slots hold one chain each,
/// a sample may be the start of several chains and stays as it is. The queue holds bytes, a quarter of the memory, at
/// the price of half a level, (high - low)/510, each time that a chain comes back from it. What is handed out
/// is not rounded.
///
/// With labels, a chain for label y starts from a sample that was drawn for y, or afresh while there is none: so
/// the law of a chain is that of its own class. The authors' code starts it from any, and leaves it to the chain
/// to change the class; it also adds dither to the levels that it reads back.
///
/// A chain that ends in a NaN or an infinity is replaced by a fresh start, and counted.
///
/// # Shapes
/// Samples are `[count, sample_shape..]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{FifoReplayConfig, ImproperSgldConfig, Request, SampleSource};
///
/// let sampler = ImproperSgldConfig::new().with_bounds(-1.0, 1.0).init()?;
/// let replay = FifoReplayConfig::new([2]).with_bounds(-1.0, 1.0).with_capacity(100).init(sampler)?;
/// let (mut noise, device) = (Noise::host(0), Device::default());
/// let queue = SampleSource::<2>::start(&replay, &mut noise, &device)?;
/// let request = Request { count: 8, labels: None, device: &device };
/// let (negatives, queue) = replay.draw(&Gaussian::standard(), request, queue, &mut noise)?;
/// assert_eq!((negatives.restarted, queue.len()), (8, 8));
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Du & Mordatch 2019, arXiv 1903.08689, section 3.2, and its code.
#[derive(Debug, Clone)]
pub struct FifoReplay<S, C = UniformStart> {
    config: FifoReplayConfig,
    sampler: S,
    start: C,
}

impl<S, C> FifoReplay<S, C> {
    /// The configuration.
    pub fn config(&self) -> &FifoReplayConfig {
        &self.config
    }

    /// The slot that each chain starts from, or none for a fresh start.
    fn origins<const D: usize>(
        &self,
        request: &Request<'_>,
        queue: &FifoBuffer<D>,
        noise: &mut Noise,
    ) -> Vec<Option<usize>> {
        let mut of_label: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        if request.labels.is_some() {
            for (slot, label) in queue.labels().iter().enumerate() {
                if let Some(label) = label {
                    of_label.entry(*label).or_default().push(slot);
                }
            }
        }
        let rng = noise.rng(Stream::BUFFER);
        let origin = |chain: usize| {
            if rng.random_bool(self.config.restart_probability) {
                return None;
            }
            match request.labels {
                Some(labels) => {
                    let slots = of_label.get(&labels[chain])?;
                    Some(slots[rng.random_range(0..slots.len())])
                }
                None if queue.is_empty() => None,
                None => Some(rng.random_range(0..queue.len())),
            }
        };
        (0..request.count).map(origin).collect()
    }
}

impl<const D: usize, S: Sampler<D>, C: ChainStart<D>> SampleSource<D> for FifoReplay<S, C> {
    type State = FifoBuffer<D>;

    fn start(&self, _noise: &mut Noise, _device: &Device) -> Result<FifoBuffer<D>> {
        let dims = batch_shape::<D>(self.config.capacity, &self.config.sample_shape)?;
        self.start.check(&self.config.sample_shape)?;
        Ok(FifoBuffer::empty(dims, self.config.bounds))
    }

    fn draw(
        &self,
        model: &dyn EnergyModel<D>,
        request: Request<'_>,
        mut queue: FifoBuffer<D>,
        noise: &mut Noise,
    ) -> Result<(Negatives<D>, FifoBuffer<D>)> {
        check_request(&request)?;
        let Request { count, labels, device } = request;
        if let Some(label) = labels.and_then(|labels| labels.iter().find(|label| **label >= EXACT)) {
            ensure(false, "Request.labels", label, &format!("below {EXACT}"))?;
        }
        let origins = self.origins(&request, &queue, noise);
        let stored: Vec<usize> = origins.iter().flatten().copied().collect();
        let afresh: Vec<usize> = (0..count).filter(|chain| origins[*chain].is_none()).collect();
        let mut parts = Vec::new();
        if !stored.is_empty() {
            parts.push(queue.read(&stored, device));
        }
        if !afresh.is_empty() || count == 0 {
            let shape = batch_shape(afresh.len(), &self.config.sample_shape)?;
            let labels: Option<Vec<usize>> =
                labels.map(|labels| afresh.iter().map(|chain| labels[*chain]).collect());
            parts.push(self.start.draw(shape, labels.as_deref(), noise, device));
        }
        let mut x = Tensor::cat(parts, 0);
        if !stored.is_empty() && !afresh.is_empty() {
            x = x.select(0, interleaved(&origins, stored.len(), device));
        }
        let x: Tensor<D> = run(&self.sampler, model, x, self.config.num_steps, noise);
        let mut fresh = |shape, labels: Option<&[usize]>| self.start.draw(shape, labels, noise, device);
        let (samples, non_finite) = replace_non_finite(x, labels, &mut fresh);
        queue.push(&samples, labels);
        Ok((Negatives { samples, restarted: afresh.len(), non_finite }, queue))
    }
}

/// Where each chain stands in a batch of all stored ones followed by all fresh ones.
fn interleaved(origins: &[Option<usize>], stored: usize, device: &Device) -> Tensor<1, Int> {
    let (mut from_queue, mut from_start) = (0, stored as i64);
    let places: Vec<i64> = origins
        .iter()
        .map(|origin| {
            let place = if origin.is_some() { &mut from_queue } else { &mut from_start };
            *place += 1;
            *place - 1
        })
        .collect();
    Tensor::from_data(TensorData::new(places, [origins.len()]), device)
}
