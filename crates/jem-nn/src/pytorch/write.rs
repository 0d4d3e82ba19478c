//! Checkpoints in the layout of the reference JEM code, for PyTorch to load.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use zip::write::{SimpleFileOptions, ZipWriter};
use zip::{CompressionMethod, DateTime};

use super::layout::{UNUSED, key_of};
use super::pickle::Pickle;
use super::reference::{BUFFER, MODEL};
use crate::{Activation, WeightLayout, Weights, WideResNet};
use jem_core::error::{Error, Result, ensure};
use jem_core::persist::Persist;
use jem_core::persist::files::replace;
use jem_core::samplers::ReplayBuffer;

/// The folder that every entry of the archive is in.
const ROOT: &str = "archive";

/// Writes a checkpoint that the reference JEM code loads, and `torch.load` with `weights_only=True`.
///
/// Besides the network and the buffer it has what the reference code's `load_state_dict` asks for and never
/// uses: the heads `f.linear` and `energy_output`, as zeros. Without a buffer, or with an empty one, there is an
/// empty list, as the reference code has it for no buffer. The file is put in place in one step.
///
/// # Errors
/// [`Error::Config`] if the network's activation is not the reference code's leaky ReLU of slope 0.2, with which
/// it would compute other logits. [`Error::Shape`] if the buffer has other channels than the network.
/// [`Error::NonFinite`] if a value is not finite. [`Error::Io`] if the file cannot be written.
///
/// See [`read`](super::read) for an example.
pub fn write(path: impl AsRef<Path>, network: &WideResNet, buffer: Option<&ReplayBuffer<4>>) -> Result<()> {
    let path = path.as_ref();
    let activation = network.activation();
    let (found, allowed) = (format!("{activation:?}"), format!("{:?}", Activation::default()));
    ensure(activation == Activation::default(), "WideResNet.activation", found, &allowed)?;

    let channels = network.conv1.weight.dims()[1];
    let buffer = buffer.filter(|buffer| buffer.capacity() > 0);
    let buffer = buffer.and_then(|buffer| buffer.save().remove(BUFFER));
    let shape = buffer.as_ref().map(|data| data.shape().as_slice().to_vec());
    if let Some(shape) = shape.filter(|shape| shape[1] != channels) {
        return Err(Error::shape(BUFFER, &shape, format!("[n, {channels}, height, width], as the network")));
    }

    let mut archive = Archive::default();
    archive.pickle.start_dict().text(MODEL).start_ordered_dict();
    for (key, data) in Weights::of(network, WeightLayout::PyTorch)?.renamed(key_of)?.tensors() {
        archive.add(key, data.shape().as_slice(), data.iter().collect())?;
    }
    let features = network.class_output.weight.dims()[0];
    for (layer, outputs) in UNUSED {
        archive.add(&format!("{layer}.weight"), &[outputs, features], vec![0.0; outputs * features])?;
        archive.add(&format!("{layer}.bias"), &[outputs], vec![0.0; outputs])?;
    }
    archive.pickle.end_dict();
    match buffer {
        Some(data) => archive.add(BUFFER, data.shape().as_slice(), data.iter().collect())?,
        None => _ = archive.pickle.text(BUFFER).empty_list(),
    }
    archive.pickle.end_dict();
    replace(path, |file| archive.write(file).map_err(|source| Error::io(path, source)))
}

/// A pickle, and the values of its tensors in the order of their numbers.
#[derive(Default)]
struct Archive {
    pickle: Pickle,
    values: Vec<Vec<f32>>,
}

impl Archive {
    /// A key with a tensor, into the dictionary that the pickle is at.
    fn add(&mut self, key: &str, shape: &[usize], values: Vec<f32>) -> Result<()> {
        if let Some(value) = values.iter().find(|value| !value.is_finite()) {
            return Err(Error::NonFinite { what: key.to_owned(), value: f64::from(*value) });
        }
        self.pickle.text(key).tensor(self.values.len(), shape);
        self.values.push(values);
        Ok(())
    }

    fn write(&self, file: &mut File) -> io::Result<()> {
        let mut zip = ZipWriter::new(BufWriter::new(file));
        let mut put = |name: &str, content: &[u8]| -> io::Result<()> {
            // Aligned as torch.save does it, and without a time: the same content is the same file.
            let options = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Stored)
                .last_modified_time(DateTime::default())
                .large_file(content.len() > u32::MAX as usize)
                .with_alignment(64);
            zip.start_file(format!("{ROOT}/{name}"), options)?;
            zip.write_all(content)
        };
        put("data.pkl", &self.pickle.stop())?;
        put("byteorder", b"little")?;
        for (number, values) in self.values.iter().enumerate() {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            put(&format!("data/{number}"), &bytes)?;
        }
        put("version", b"3\n")?;
        zip.finish()?.flush()
    }
}
