//! Which examples an iteration sees: a fresh permutation of the set for every epoch, cut into batches.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::select::shuffle;
use crate::error::{Error, Result, ensure};
use crate::noise::{Noise, Stream};

/// What becomes of the examples that do not fill the last batch of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LastBatch {
    /// They are left out of this epoch, and every batch is full.
    #[default]
    Drop,
    /// They make up a shorter batch.
    Keep,
}

/// The order of one set of examples. Nothing in it needs saving: the permutation of an epoch is derived from
/// the seed, and only remembered.
#[derive(Debug, Clone)]
pub(super) struct Order {
    len: usize,
    batch: usize,
    last: LastBatch,
    stream: Stream,
    remembered: Option<((u64, u64), Vec<usize>)>, // of a seed and an epoch
}

impl Order {
    /// The order of `len` examples; `field` names the batch size in messages.
    pub(super) fn new(
        set: &str,
        len: usize,
        field: &str,
        batch: usize,
        last: LastBatch,
        stream: Stream,
    ) -> Result<Self> {
        ensure(batch > 0, field, batch, "above 0")?;
        if len == 0 {
            return Err(Error::config(format!("size of {set}"), 0, "above 0: an empty set has no batches"));
        }
        let allowed = format!("at most {len}, the size of {set}, or the last batch kept (LastBatch::Keep)");
        ensure(batch <= len || last == LastBatch::Keep, field, batch, &allowed)?;
        Ok(Self { len, batch, last, stream, remembered: None })
    }

    pub(super) fn batches_per_epoch(&self) -> u64 {
        let batches = match self.last {
            LastBatch::Drop => self.len / self.batch,
            LastBatch::Keep => self.len.div_ceil(self.batch),
        };
        batches as u64
    }

    /// The examples of an iteration.
    pub(super) fn indices(&mut self, iteration: u64, noise: &Noise) -> &[usize] {
        let epoch = iteration / self.batches_per_epoch();
        let range = self.range(iteration % self.batches_per_epoch());
        let key = (noise.seed(), epoch);
        let permutation = match self.remembered.take() {
            Some((known, permutation)) if known == key => permutation,
            _ => {
                let mut permutation: Vec<usize> = (0..self.len).collect();
                shuffle(&mut permutation, &mut noise.derived(self.stream, epoch));
                permutation
            }
        };
        &self.remembered.insert((key, permutation)).1[range]
    }

    fn range(&self, batch: u64) -> Range<usize> {
        let first = batch as usize * self.batch;
        first..self.len.min(first.saturating_add(self.batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(len: usize, batch: usize, last: LastBatch) -> Result<Order> {
        Order::new("the set", len, "batch", batch, last, Stream::ORDER)
    }

    fn epoch(order: &mut Order, epoch: u64, noise: &Noise) -> Vec<usize> {
        let n = order.batches_per_epoch();
        (epoch * n..(epoch + 1) * n).flat_map(|i| order.indices(i, noise).to_vec()).collect()
    }

    #[test]
    fn an_epoch_sees_every_example_once_in_an_order_of_its_own() {
        let noise = Noise::host(1);
        let mut order = order(10, 4, LastBatch::Keep).unwrap();
        assert_eq!(order.batches_per_epoch(), 3);
        let (first, second) = (epoch(&mut order, 0, &noise), epoch(&mut order, 1, &noise));
        for epoch in [&first, &second] {
            let mut sorted = epoch.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>());
        }
        assert_ne!(first, second);
        assert_ne!(first, epoch(&mut order, 0, &Noise::host(2))); // what is remembered belongs to a seed
        assert_eq!(first, epoch(&mut order, 0, &noise));
    }

    #[test]
    fn dropping_keeps_batches_full_and_needs_one() {
        let mut full = order(10, 4, LastBatch::Drop).unwrap();
        assert_eq!(full.batches_per_epoch(), 2);
        assert!((0..9).all(|i| full.indices(i, &Noise::host(1)).len() == 4));
        let error = order(3, 4, LastBatch::Drop).unwrap_err().to_string();
        assert!(error.contains("batch = 4") && error.contains("at most 3, the size of the set"), "{error}");
        let mut short = order(3, 4, LastBatch::Keep).unwrap();
        assert_eq!(short.indices(5, &Noise::host(1)).len(), 3);
        assert!(order(0, 1, LastBatch::Keep).is_err() && order(5, 0, LastBatch::Keep).is_err());
        let mut huge = order(3, usize::MAX, LastBatch::Keep).unwrap();
        assert_eq!(huge.indices(u64::MAX, &Noise::host(1)).len(), 3);
    }
}
