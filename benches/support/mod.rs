//! What the benches share.

use jem_core::data::{BatchSource, JointBatch};
use jem_core::noise::Noise;

/// The same batch for ever.
pub struct Same<const D: usize>(pub JointBatch<D>);

impl<const D: usize> BatchSource<JointBatch<D>> for Same<D> {
    fn batches_per_epoch(&self) -> u64 {
        u64::MAX
    }

    fn batch(&mut self, _: u64, _: &mut Noise) -> jem_core::Result<JointBatch<D>> {
        Ok(self.0.clone())
    }
}
