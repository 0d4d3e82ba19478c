//! The slots of a replay buffer, on the host or on a device, read and written without a pass over all of them.

use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::math::sample_extent;
use crate::persist::{NamedTensors, Persist, take};

/// Where a replay buffer keeps its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BufferPlace {
    /// In host memory: costs no device memory, and one copy of a batch each way per draw.
    Host,
    /// In the memory of the device that the source was started on.
    Device,
}

#[derive(Debug, Clone)]
enum Storage<const D: usize> {
    Host(Vec<f32>),
    Device(Box<Tensor<D>>),
}

/// Samples in numbered slots.
///
/// Looking at it never changes it: [`read`](Self::read) and [`all`](Self::all) copy.
#[derive(Debug, Clone)]
pub struct ReplayBuffer<const D: usize> {
    storage: Storage<D>,
    dims: [usize; D],
}

impl<const D: usize> ReplayBuffer<D> {
    /// A buffer whose slot i holds sample i.
    pub fn new(samples: Tensor<D>, place: BufferPlace) -> Self {
        let dims = samples.dims();
        let storage = match place {
            BufferPlace::Host => Storage::Host(host_values(samples)),
            BufferPlace::Device => Storage::Device(Box::new(samples.without_autodiff())),
        };
        Self { storage, dims }
    }

    /// The number of slots.
    pub fn capacity(&self) -> usize {
        self.dims[0]
    }

    /// The samples in `slots`, in that order, on `device`.
    ///
    /// # Panics
    /// If a slot is not below the capacity.
    pub fn read(&self, slots: &[usize], device: &Device) -> Tensor<D> {
        assert!(slots.iter().all(|slot| *slot < self.capacity()), "slot out of range");
        match &self.storage {
            Storage::Host(values) => {
                let [_, elements] = sample_extent(&self.dims);
                let batch: Vec<f32> = slots
                    .iter()
                    .flat_map(|slot| &values[slot * elements..(slot + 1) * elements])
                    .copied()
                    .collect();
                let mut dims = self.dims;
                dims[0] = slots.len();
                Tensor::from_data(TensorData::new(batch, dims), device)
            }
            Storage::Device(samples) => {
                let slots = slot_tensor(slots, &samples.device());
                (**samples).clone().select(0, slots).to_device(device)
            }
        }
    }

    /// Puts sample i into slot `slots[i]`. Where a slot is named twice, the later sample stays.
    ///
    /// # Panics
    /// If a slot is not below the capacity, or the shape of a sample differs.
    pub fn write(&mut self, slots: &[usize], samples: &Tensor<D>) {
        assert!(slots.iter().all(|slot| *slot < self.capacity()), "slot out of range");
        assert_eq!(samples.dims()[1..], self.dims[1..], "samples of another shape");
        match &mut self.storage {
            Storage::Host(values) => {
                let [_, elements] = sample_extent(&self.dims);
                let batch = host_values(samples.clone());
                for (slot, sample) in slots.iter().zip(batch.chunks_exact(elements)) {
                    values[slot * elements..(slot + 1) * elements].copy_from_slice(sample);
                }
            }
            Storage::Device(stored) => {
                let device = stored.device();
                let kept = last_of_each(slots);
                let from = slot_tensor(&kept, &samples.device());
                let rows = samples.clone().without_autodiff().select(0, from).to_device(&device);
                let into = kept.iter().map(|index| slots[*index]).collect::<Vec<_>>();
                let into = slot_tensor(&into, &device);
                stored.inplace(|stored| stored.select_assign(0, into, rows, IndexingUpdateOp::Assign));
            }
        }
    }

    /// Every sample, `[capacity, ..]`, on `device`.
    pub fn all(&self, device: &Device) -> Tensor<D> {
        match &self.storage {
            Storage::Host(values) => Tensor::from_data(TensorData::new(values.clone(), self.dims), device),
            Storage::Device(samples) => (**samples).clone().to_device(device),
        }
    }
}

impl<const D: usize> Persist for ReplayBuffer<D> {
    fn save(&self) -> NamedTensors {
        let values = match &self.storage {
            Storage::Host(values) => values.clone(),
            Storage::Device(samples) => host_values((**samples).clone()),
        };
        [("replay_buffer".to_owned(), TensorData::new(values, self.dims))].into()
    }

    fn load(&mut self, mut saved: NamedTensors) -> Result<()> {
        let data = take(&mut saved, "replay_buffer", &self.dims)?;
        self.storage = match &self.storage {
            Storage::Host(_) => Storage::Host(data.iter::<f32>().collect()),
            Storage::Device(samples) => Storage::Device(Box::new(Tensor::from_data(data, &samples.device()))),
        };
        Ok(())
    }
}

/// Without a copy where the device's memory is the host's and nobody else holds the tensor.
fn host_values<const D: usize>(samples: Tensor<D>) -> Vec<f32> {
    samples.into_data().try_into_vec_as().expect("any float is an f32")
}

fn slot_tensor(slots: &[usize], device: &Device) -> Tensor<1, Int> {
    let slots: Vec<i64> = slots.iter().map(|slot| *slot as i64).collect();
    let count = slots.len();
    Tensor::from_data(TensorData::new(slots, [count]), device)
}

/// The position of the last mention of each slot.
fn last_of_each(slots: &[usize]) -> Vec<usize> {
    let mut seen = std::collections::HashSet::new();
    let mut kept: Vec<usize> = (0..slots.len()).rev().filter(|index| seen.insert(slots[*index])).collect();
    kept.reverse();
    kept
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;

    fn rows(tensor: Tensor<2>) -> Vec<f32> {
        tensor.into_data().try_to_vec().unwrap()
    }

    #[test]
    fn slots_are_read_and_written_alike_on_host_and_device() {
        let device = Device::flex();
        for place in [BufferPlace::Host, BufferPlace::Device] {
            let start = Tensor::<2>::from_floats([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]], &device);
            let mut buffer = ReplayBuffer::new(start, place);
            assert_eq!(rows(buffer.read(&[2, 0, 2], &device)), [2.0, 2.5, 0.0, 0.5, 2.0, 2.5]);
            let new = Tensor::<2>::from_floats([[7.0, 7.5], [8.0, 8.5], [9.0, 9.5]], &device);
            buffer.write(&[1, 2, 1], &new); // slot 1 twice: the later one stays
            assert_eq!(rows(buffer.all(&device)), [0.0, 0.5, 9.0, 9.5, 8.0, 8.5]);

            let saved = buffer.save();
            let mut other = ReplayBuffer::new(Tensor::<2>::zeros([3, 2], &device), place);
            other.load(saved.clone()).unwrap();
            assert_eq!(rows(other.all(&device)), rows(buffer.all(&device)));
            let mut smaller = ReplayBuffer::new(Tensor::<2>::zeros([2, 2], &device), place);
            assert!(smaller.load(saved).unwrap_err().to_string().contains("replay_buffer"));
        }
    }
}
