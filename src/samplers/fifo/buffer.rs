//! Samples as bytes, the oldest of which makes room for the newest.

use burn::tensor::{Device, Tensor, TensorData};

use crate::error::{Error, Result};
use crate::math::sample_extent;
use crate::persist::{NamedTensors, Persist, take, take_bytes};
use crate::samplers::Bounds;

const SAMPLES: &str = "fifo_replay";
const LABELS: &str = "fifo_labels";
const PLACE: &str = "fifo_filled_and_next";
/// The label of a sample without one, in files.
const UNLABELLED: f32 = -1.0;

/// Samples of 8 bits an element in a queue of fixed capacity, on the host, each with the label that it was drawn for.
///
/// Looking at it never changes it.
#[derive(Debug, Clone)]
pub struct FifoBuffer<const D: usize> {
    /// All slots one after the other, those not filled yet with zeros.
    bytes: Vec<u8>,
    labels: Vec<Option<usize>>,
    /// `[capacity, ..]`.
    dims: [usize; D],
    bounds: Bounds,
    filled: usize,
    next: usize,
}

impl<const D: usize> FifoBuffer<D> {
    /// An empty queue. `dims` is `[capacity, ..]`; the bytes 0 to 255 are spread evenly over `bounds`.
    pub(super) fn empty(dims: [usize; D], bounds: Bounds) -> Self {
        let bytes = vec![0; dims.iter().product()];
        Self { bytes, labels: vec![None; dims[0]], dims, bounds, filled: 0, next: 0 }
    }

    /// The number of slots.
    pub fn capacity(&self) -> usize {
        self.dims[0]
    }

    /// The number of slots that hold a sample: 0 to this.
    pub fn len(&self) -> usize {
        self.filled
    }

    /// Whether no slot holds a sample.
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// The label of each sample, in the order of the slots.
    pub fn labels(&self) -> &[Option<usize>] {
        &self.labels[..self.filled]
    }

    /// The slots from the oldest sample to the newest.
    pub fn by_age(&self) -> Vec<usize> {
        let oldest = if self.filled < self.capacity() { 0 } else { self.next };
        (0..self.filled).map(|age| (oldest + age) % self.capacity()).collect()
    }

    /// The samples in `slots`, in that order, on `device`.
    ///
    /// # Panics
    /// If a slot is not below [`len`](Self::len).
    pub fn read(&self, slots: &[usize], device: &Device) -> Tensor<D> {
        assert!(slots.iter().all(|slot| *slot < self.filled), "slot out of range");
        let [_, elements] = sample_extent(&self.dims);
        let level = self.level();
        let values: Vec<f32> = slots
            .iter()
            .flat_map(|slot| &self.bytes[slot * elements..(slot + 1) * elements])
            .map(|byte| (f64::from(self.bounds.low) + level * f64::from(*byte)) as f32)
            .collect();
        let mut dims = self.dims;
        dims[0] = slots.len();
        Tensor::from_data(TensorData::new(values, dims), device)
    }

    /// Puts samples in, first in first out, rounding each element to the nearest of 256 levels.
    ///
    /// # Panics
    /// If the shape of a sample differs, or there is not one label per sample.
    pub fn push(&mut self, samples: &Tensor<D>, labels: Option<&[usize]>) {
        assert_eq!(samples.dims()[1..], self.dims[1..], "samples of another shape");
        assert!(labels.is_none_or(|labels| labels.len() == samples.dims()[0]), "one label per sample");
        let [_, elements] = sample_extent(&self.dims);
        let (low, level) = (f64::from(self.bounds.low), self.level());
        let values: Vec<f32> = samples.clone().into_data().iter::<f32>().collect();
        for (index, sample) in values.chunks_exact(elements).enumerate() {
            let slot = &mut self.bytes[self.next * elements..(self.next + 1) * elements];
            for (byte, value) in slot.iter_mut().zip(sample) {
                // `as` saturates: what lies outside the box is stored on its edge.
                *byte = ((f64::from(*value) - low) / level).round() as u8;
            }
            self.labels[self.next] = labels.map(|labels| labels[index]);
            self.next = (self.next + 1) % self.capacity();
            self.filled = (self.filled + 1).min(self.capacity());
        }
    }

    /// The distance of two levels.
    fn level(&self) -> f64 {
        (f64::from(self.bounds.high) - f64::from(self.bounds.low)) / 255.0
    }
}

impl<const D: usize> Persist for FifoBuffer<D> {
    fn save(&self) -> NamedTensors {
        let capacity = self.capacity();
        let labels: Vec<f32> =
            self.labels.iter().map(|label| label.map_or(UNLABELLED, |label| label as f32)).collect();
        let place = vec![self.filled as f32, self.next as f32];
        [
            (SAMPLES.to_owned(), TensorData::new(self.bytes.clone(), self.dims)),
            (LABELS.to_owned(), TensorData::new(labels, [capacity])),
            (PLACE.to_owned(), TensorData::new(place, [2])),
        ]
        .into()
    }

    fn load(&mut self, mut saved: NamedTensors) -> Result<()> {
        let capacity = self.capacity();
        let bytes = take_bytes(&mut saved, SAMPLES, &self.dims)?;
        let labels = take(&mut saved, LABELS, &[capacity])?;
        let place: Vec<f32> = take(&mut saved, PLACE, &[2])?.iter::<f32>().collect();
        let within = |value: f32, most: usize| {
            let whole = value as usize;
            let allowed = value >= 0.0 && value.fract() == 0.0 && whole <= most;
            let refused =
                || Error::config(format!("saved state {PLACE:?}"), value, format!("at most {most}"));
            allowed.then_some(whole).ok_or_else(refused)
        };
        let (filled, next) = (within(place[0], capacity)?, within(place[1], capacity - 1)?);
        self.bytes = bytes.iter::<u8>().collect();
        self.labels = labels.iter::<f32>().map(|label| (label >= 0.0).then_some(label as usize)).collect();
        (self.filled, self.next) = (filled, next);
        Ok(())
    }
}
