//! Samples out of a replay buffer, as they lie there.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use burn::tensor::Device;
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::{GENERATION, Generated, SampleOrigin, Source, Wanted};
use jem_core::error::{Error, Result, ensure};
use jem_core::math::per_sample;
use jem_core::noise::Noise;
use jem_core::samplers::ReplayBuffer;

/// Which slots of a buffer are taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BufferChoice {
    /// At random, none of them twice.
    Random,
    /// Those of the lowest energy, the lowest first.
    LowestEnergy,
    /// These.
    Slots(Vec<usize>),
}

impl fmt::Display for BufferChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Random => "drawn at random",
            Self::LowestEnergy => "those of lowest energy",
            Self::Slots(_) => "named one by one",
        })
    }
}

/// Configuration of [`FromBuffer`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FromBufferConfig {
    /// Which slots.
    pub choice: BufferChoice,
    /// Equal blocks of slots, one per class, as the buffer was made with
    /// ([`ReplayConfig::class_blocks`](jem_core::samplers::ReplayConfig::class_blocks)). Samples for a class come
    /// from its block. Default 1.
    pub class_blocks: usize,
    /// Samples whose energy is computed at once. Default 256.
    pub batch: usize,
}

impl FromBufferConfig {
    /// Slots by `choice`, from anywhere in the buffer.
    pub fn new(choice: BufferChoice) -> Self {
        Self { choice, class_blocks: 1, batch: 256 }
    }

    /// Sets the number of class blocks.
    pub fn with_class_blocks(mut self, class_blocks: usize) -> Self {
        self.class_blocks = class_blocks;
        self
    }

    /// Sets how many energies are computed at once.
    pub fn with_batch(mut self, batch: usize) -> Self {
        self.batch = batch;
        self
    }

    /// The way to take samples.
    ///
    /// # Errors
    /// [`Error::Config`] naming the field that is not allowed.
    pub fn init(self) -> Result<FromBuffer> {
        ensure(self.class_blocks > 0, "FromBufferConfig.class_blocks", self.class_blocks, "at least 1")?;
        ensure(self.batch > 0, "FromBufferConfig.batch", self.batch, "at least 1")?;
        Ok(FromBuffer { config: self })
    }
}

/// Takes samples out of a replay buffer. They are copies: the buffer stays as it is.
///
/// A slot holds a chain as its last draw left it, so that all of a buffer is as new as it gets. One more draw, as
/// training would make it, is [`newest_of_buffer`](super::newest_of_buffer).
///
/// ```
/// use burn::tensor::Device;
/// use jem_core::energy::analytic::Gaussian;
/// use jem_eval::generate::{BufferChoice, FromBufferConfig, Wanted};
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{ImproperSgldConfig, ReplayConfig, SampleSource};
///
/// let (mut noise, device, model) = (Noise::host(0), Device::default(), Gaussian::standard());
/// let replay = ReplayConfig::new([2]).with_capacity(100).init(ImproperSgldConfig::new().init()?)?;
/// let buffer = SampleSource::<2>::start(&replay, &mut noise, &device)?;
/// let lowest = FromBufferConfig::new(BufferChoice::LowestEnergy).init()?;
/// let found = lowest.take(&buffer, Wanted::Any { model: &model, count: 10 }, &mut noise, &device)?;
/// assert!(found.energies.is_sorted());
/// println!("{}", found.origin); // 10 of 100 buffer slots, those of lowest energy (seed 0)
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FromBuffer {
    config: FromBufferConfig,
}

impl FromBuffer {
    /// Samples of the buffer. Slots with a NaN or an infinity in them are never of lowest energy.
    ///
    /// # Errors
    /// [`Error::Config`] if more are wanted than there are, a slot or a label does not exist, or the slots named are
    /// not as many as are wanted; [`Error::NonFinite`] if a sample taken is not finite.
    pub fn take<const D: usize>(
        &self,
        buffer: &ReplayBuffer<D>,
        wanted: Wanted<'_, D>,
        noise: &mut Noise,
        device: &Device,
    ) -> Result<Generated<D>> {
        wanted.check()?;
        let FromBufferConfig { choice, batch, .. } = &self.config;
        let slots = self.slots(buffer, wanted, noise, device)?;
        let samples = buffer.read(&slots, device);
        let finite = per_sample(samples.clone()).is_finite().all_dim(1).int().into_data();
        if let Some(at) = finite.iter::<i64>().position(|finite| finite == 0) {
            let what = format!("the sample in slot {} of the buffer", slots[at]);
            return Err(Error::NonFinite { what, value: f64::NAN });
        }
        let labels = wanted.labels();
        let energies = wanted.energies(&samples, labels, *batch);
        let source = Source::Buffer { capacity: buffer.capacity(), choice: choice.clone(), slots };
        let origin = SampleOrigin { source, seed: noise.seed(), treatments: Vec::new() };
        Ok(Generated { samples, energies, labels: labels.map(<[usize]>::to_vec), origin })
    }

    /// The slot of each sample.
    fn slots<const D: usize>(
        &self,
        buffer: &ReplayBuffer<D>,
        wanted: Wanted<'_, D>,
        noise: &mut Noise,
        device: &Device,
    ) -> Result<Vec<usize>> {
        let capacity = buffer.capacity();
        if let BufferChoice::Slots(slots) = &self.config.choice {
            let allowed = format!("{}, one per sample wanted", wanted.count());
            ensure(slots.len() == wanted.count(), "number of slots named", slots.len(), &allowed)?;
            let missing = slots.iter().find(|slot| **slot >= capacity);
            return match missing {
                Some(slot) => Err(Error::config("BufferChoice::Slots", slot, format!("below {capacity}"))),
                None => Ok(slots.clone()),
            };
        }
        let mut slots = vec![0; wanted.count()];
        for (label, places) in self.groups(wanted.labels(), wanted.count()) {
            let block = self.block(capacity, label)?;
            let allowed = format!("at most {}, the slots to choose from", block.len());
            ensure(places.len() <= block.len(), "samples wanted", places.len(), &allowed)?;
            let mut candidates: Vec<usize> = block.collect();
            match self.config.choice {
                BufferChoice::LowestEnergy => self.sort(&mut candidates, buffer, wanted, label, device),
                _ => shuffle_front(&mut candidates, places.len(), noise),
            }
            for (place, slot) in places.into_iter().zip(candidates) {
                slots[place] = slot;
            }
        }
        Ok(slots)
    }

    /// The places of each label in the result; one group of all without labels.
    fn groups(&self, labels: Option<&[usize]>, count: usize) -> BTreeMap<Option<usize>, Vec<usize>> {
        let mut groups = BTreeMap::<Option<usize>, Vec<usize>>::new();
        for place in 0..count {
            groups.entry(labels.map(|labels| labels[place])).or_default().push(place);
        }
        groups
    }

    /// The slots of a label.
    fn block(&self, capacity: usize, label: Option<usize>) -> Result<Range<usize>> {
        let blocks = self.config.class_blocks;
        let allowed = format!("a divisor of the capacity, {capacity}");
        ensure(capacity.is_multiple_of(blocks), "FromBufferConfig.class_blocks", blocks, &allowed)?;
        let Some(label) = label else { return Ok(0..capacity) };
        let allowed = format!("below FromBufferConfig.class_blocks, {blocks}");
        ensure(label < blocks, "labels wanted", label, &allowed)?;
        let width = capacity / blocks;
        Ok(label * width..(label + 1) * width)
    }

    /// Sorts slots by the energy of what is in them, and what is no number to the end.
    fn sort<const D: usize>(
        &self,
        candidates: &mut Vec<usize>,
        buffer: &ReplayBuffer<D>,
        wanted: Wanted<'_, D>,
        label: Option<usize>,
        device: &Device,
    ) {
        let mut energies: Vec<(f64, usize)> = Vec::with_capacity(candidates.len());
        for part in candidates.chunks(self.config.batch) {
            let labels = label.map(|label| vec![label; part.len()]);
            let found = wanted.energies(&buffer.read(part, device), labels.as_deref(), part.len());
            let rank = |energy: f64| if energy.is_finite() { energy } else { f64::INFINITY };
            energies.extend(found.into_iter().map(rank).zip(part.iter().copied()));
        }
        energies.sort_by(|a, b| a.0.total_cmp(&b.0));
        *candidates = energies.into_iter().map(|(_, slot)| slot).collect();
    }
}

/// The beginning of a Fisher-Yates shuffle.
fn shuffle_front(values: &mut [usize], count: usize, noise: &mut Noise) {
    let rng = noise.rng(GENERATION);
    for i in 0..count {
        values.swap(i, rng.random_range(i..values.len()));
    }
}
