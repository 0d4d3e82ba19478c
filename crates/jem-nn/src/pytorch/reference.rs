//! Checkpoints of the reference JEM code as a network and a replay buffer of this crate.

use std::path::Path;

use burn::tensor::{Device, Tensor, TensorData};

use super::archive::read_weights;
use super::layout::{UNUSED, config_of, entries};
use crate::{Norm, WeightLayout, Weights, WideResNet, WideResNetConfig, faults, is_batch_counter};
use jem_core::error::{Error, Result};
use jem_core::noise::Noise;
use jem_core::persist::NamedTensors;
use jem_core::samplers::{BufferPlace, ReplayBuffer};

/// The key of the network in a checkpoint.
pub(super) const MODEL: &str = "model_state_dict";
/// The key of the replay buffer in a checkpoint.
pub(super) const BUFFER: &str = "replay_buffer";

/// What a checkpoint of the reference JEM code holds.
#[derive(Debug)]
pub struct ReferenceCheckpoint {
    /// The network, on the device that was asked for.
    pub network: WideResNet,
    /// Its configuration, read off the keys and shapes.
    pub config: WideResNetConfig,
    /// The chains, `[capacity, channels, height, width]`, kept on the host. They are on the scale of the crate's
    /// default, [-1, 1], which chains of the reference code may leave.
    ///
    /// [`Persist`](jem_core::persist::Persist) takes them into a run: `state.objective.load(buffer.save())`, for a
    /// buffer of the same capacity and sample shape.
    pub replay_buffer: Option<ReplayBuffer<4>>,
    /// What the file holds besides and this crate has no use for: the keys of two heads that the joint model
    /// does not use, of PyTorch's batch counters, and of entries beside the network and the buffer.
    pub skipped: Vec<String>,
}

/// Reads a checkpoint of the reference JEM code, or the state dict of one by itself.
///
/// Depth, width, norm (none or batch), classes and input channels are read off the keys and shapes. The
/// activation is not in the file, and is the reference code's leaky ReLU of slope 0.2. Floats of another width
/// become f32. Nothing in the file is run: see [the module](crate::pytorch).
///
/// # Errors
/// As [`read_weights`]. [`Error::Checkpoint`] that lists every tensor which is missing, not expected, of another
/// shape or type than its place, or not finite.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::Classifier;
/// use jem_nn::WideResNetConfig;
/// use jem_core::noise::Noise;
/// use jem_nn::pytorch;
///
/// let device = Device::default();
/// let network = WideResNetConfig::new(10, 1, 5).init(&mut Noise::host(0), &device)?;
/// let folder = tempfile::tempdir().unwrap();
/// pytorch::write(folder.path().join("ckpt.pt"), &network, None)?;
///
/// let checkpoint = pytorch::read(folder.path().join("ckpt.pt"), &device)?;
/// assert_eq!((checkpoint.config.depth, checkpoint.config.num_classes), (10, 5));
/// let x = Tensor::<4>::ones([1, 3, 16, 16], &device);
/// assert_eq!(checkpoint.network.logits(x.clone()).into_data(), network.logits(x).into_data());
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: the code of Grathwohl et al. 2020, arXiv 1912.03263.
pub fn read(path: impl AsRef<Path>, device: &Device) -> Result<ReferenceCheckpoint> {
    let path = path.as_ref();
    let refuse = |reason: String| Error::checkpoint(path, reason);
    let Parts { state, buffer, skipped } = Parts::of(&read_weights(path)?);
    let Some(config) = config_of(&state) else {
        let keys: Vec<_> = state.keys().take(5).map(String::as_str).collect();
        let what = "holds no network of the JEM reference code";
        return Err(refuse(format!("{what}: no key like f.layer1.0.conv1.weight, but {keys:?}")));
    };
    let entries = entries(&config);
    let expected: Vec<_> = entries.iter().map(|entry| (entry.key.clone(), entry.shape.clone())).collect();
    let mut faults = faults(&state, &expected);
    faults.extend(buffer.as_ref().and_then(|data| buffer_fault(data, config.in_channels)));
    if !faults.is_empty() {
        return Err(refuse(format!("does not hold a {}: {}", in_words(&config), faults.join("; "))));
    }

    // Every weight is replaced; the seed does not matter.
    let network = config.init(&mut Noise::host(0), device).map_err(|error| refuse(error.to_string()))?;
    let mut state = state;
    let own = entries.into_iter().filter_map(|entry| Some((entry.own, state.remove(&entry.key)?)));
    let network = Weights::new(path, own.collect()).load_into(network, WeightLayout::PyTorch)?;
    let replay_buffer = buffer.map(|data| {
        let data = data.try_cast(burn::tensor::DType::F32).map_err(|error| refuse(error.to_string()))?;
        Ok::<_, Error>(ReplayBuffer::new(Tensor::from_data(data, device), BufferPlace::Host))
    });
    Ok(ReferenceCheckpoint { network, config, replay_buffer: replay_buffer.transpose()?, skipped })
}

/// The tensors of a file by what they are for.
struct Parts {
    state: NamedTensors,
    buffer: Option<TensorData>,
    skipped: Vec<String>,
}

impl Parts {
    fn of(weights: &Weights) -> Self {
        let prefix = format!("{MODEL}.");
        let is_nested = weights.tensors().keys().any(|key| key.starts_with(&prefix));
        let mut parts = Self { state: NamedTensors::new(), buffer: None, skipped: Vec::new() };
        for (path, data) in weights.tensors() {
            let key = path.strip_prefix(&prefix).unwrap_or(path);
            let layer = key.rsplit_once('.').map_or("", |(layer, _)| layer);
            let is_unused = UNUSED.iter().any(|(unused, _)| *unused == layer);
            if path == BUFFER {
                parts.buffer = Some(data.clone());
            } else if is_unused || is_batch_counter(key) || (is_nested && key == path) {
                parts.skipped.push(key.to_owned());
            } else {
                parts.state.insert(key.to_owned(), data.clone());
            }
        }
        parts
    }
}

fn buffer_fault(data: &TensorData, channels: usize) -> Option<String> {
    let shape = data.shape().as_slice();
    if shape.len() != 4 || shape.contains(&0) || shape[1] != channels {
        return Some(format!("{BUFFER} has shape {shape:?}, expected [n, {channels}, height, width]"));
    }
    faults(&[(BUFFER.to_owned(), data.clone())].into(), &[(BUFFER.to_owned(), shape.to_vec())]).pop()
}

fn in_words(config: &WideResNetConfig) -> String {
    let WideResNetConfig { depth, width, num_classes, in_channels, norm, .. } = config;
    let norm = if *norm == Norm::Batch { "with batch norm" } else { "without norms" };
    format!("WideResNet-{depth}-{width} {norm} for {in_channels} channels and {num_classes} classes")
}
