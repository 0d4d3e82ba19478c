//! State as named tensors, so that a checkpoint can hold it in a file that any language reads.

pub mod files;

use std::collections::BTreeMap;

use burn::tensor::{DType, TensorData};

use crate::error::{Error, Result};

/// Named tensors, in the order of their names.
pub type NamedTensors = BTreeMap<String, TensorData>;

/// State that training carries along and a checkpoint must hold.
///
/// ```
/// use jem_core::persist::{NamedTensors, Persist};
/// use burn::tensor::TensorData;
///
/// struct Counter(f32);
/// impl Persist for Counter {
///     fn save(&self) -> NamedTensors {
///         [("count".to_owned(), TensorData::from([self.0]))].into()
///     }
///     fn load(&mut self, mut saved: NamedTensors) -> jem_core::Result<()> {
///         let count = jem_core::persist::take(&mut saved, "count", &[1])?;
///         self.0 = count.try_to_vec::<f32>().unwrap()[0];
///         Ok(())
///     }
/// }
/// let mut counter = Counter(0.0);
/// counter.load(Counter(3.0).save())?;
/// assert_eq!(counter.0, 3.0);
/// # Ok::<(), jem_core::Error>(())
/// ```
pub trait Persist {
    /// Everything that decides what comes next, as f32 or bytes.
    fn save(&self) -> NamedTensors;

    /// Replaces this state by a saved one.
    ///
    /// # Errors
    /// [`Error::Shape`] if a tensor is missing or has another shape than this state's.
    fn load(&mut self, saved: NamedTensors) -> Result<()>;
}

impl Persist for () {
    fn save(&self) -> NamedTensors {
        NamedTensors::new()
    }

    fn load(&mut self, _saved: NamedTensors) -> Result<()> {
        Ok(())
    }
}

/// Takes the f32 tensor `name` out of `saved`, checking its shape.
///
/// # Errors
/// [`Error::Shape`] if it is absent, of another shape or of another type.
pub fn take(saved: &mut NamedTensors, name: &str, shape: &[usize]) -> Result<TensorData> {
    take_of_type(saved, name, shape, DType::F32)
}

/// Takes the tensor of bytes `name` out of `saved`, checking its shape.
///
/// # Errors
/// [`Error::Shape`] if it is absent, of another shape or of another type.
pub fn take_bytes(saved: &mut NamedTensors, name: &str, shape: &[usize]) -> Result<TensorData> {
    take_of_type(saved, name, shape, DType::U8)
}

fn take_of_type(saved: &mut NamedTensors, name: &str, shape: &[usize], dtype: DType) -> Result<TensorData> {
    let Some(data) = saved.remove(name) else {
        return Err(Error::shape(format!("saved state {name:?} (absent)"), &[], format!("{shape:?}")));
    };
    if data.shape().as_slice() != shape || data.dtype() != dtype {
        let what = format!("saved state {name:?} of type {:?}", data.dtype());
        return Err(Error::shape(what, data.shape().as_slice(), format!("{shape:?} of type {dtype:?}")));
    }
    Ok(data)
}
