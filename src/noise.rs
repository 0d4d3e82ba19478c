//! The only source of randomness: named streams from one seed, each of which can be saved and continued.
//!
//! Every purpose draws from a [`Stream`] of its own, so that one more draw in one of them never moves
//! another: adding augmentation does not change the chains. Streams are ChaCha8 generators that share the
//! seed and differ in their stream number, and [`Noise`] is plain data: serialise it, and the next draw
//! after loading is the draw that would have come.

use std::collections::BTreeMap;
use std::ops::Range;

use burn::tensor::{Device, Distribution as DeviceDistribution, Tensor, TensorData};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};

/// A purpose that randomness is drawn for. Two streams of other names are independent.
///
/// ```
/// use jem_core::noise::Stream;
/// const DROPOUT: Stream = Stream::new("my-crate/dropout");
/// assert_ne!(DROPOUT, Stream::CHAIN);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stream(&'static str);

impl Stream {
    /// Which slots of a replay buffer are drawn, which start afresh, and from where.
    pub const BUFFER: Stream = Stream::new("buffer");
    /// The noise of Markov chains and their acceptance tests.
    pub const CHAIN: Stream = Stream::new("chain");
    /// Gaussian noise on training data.
    pub const DATA: Stream = Stream::new("data");
    /// Crops and flips.
    pub const AUGMENTATION: Stream = Stream::new("augmentation");
    /// The initial weights of a network.
    pub const INITIALISATION: Stream = Stream::new("initialisation");
    /// The order of examples within an epoch.
    pub const ORDER: Stream = Stream::new("order");
    /// Labels drawn for class-conditional samples.
    pub const LABELS: Stream = Stream::new("labels");

    /// A stream for a purpose of your own. The name decides the numbers.
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// The stream's name.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

/// Where normal and uniform tensors are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoiseMode {
    /// Drawn on the host and copied: the same numbers on every backend.
    Host,
    /// Drawn by the backend, which is seeded from the stream before each draw: repeatable on one backend and
    /// faster there, but other numbers than another backend's. The backend's own generator is overwritten.
    Device,
}

/// A seedable, serialisable source of named random streams.
///
/// ```
/// use burn::tensor::Device;
/// use jem_core::noise::{Noise, Stream};
///
/// let device = Device::default();
/// let mut a = Noise::host(7);
/// let mut b = Noise::host(7);
/// a.uniform([3], 0.0..1.0, Stream::AUGMENTATION, &device); // moves no other stream
/// let x = a.normal([2, 2], Stream::CHAIN, &device);
/// let y = b.normal([2, 2], Stream::CHAIN, &device);
/// assert_eq!(x.to_data(), y.to_data());
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Noise {
    seed: u64,
    mode: NoiseMode,
    streams: BTreeMap<String, ChaCha8Rng>,
}

impl Noise {
    /// Streams whose tensors are drawn as `mode` says.
    pub fn new(seed: u64, mode: NoiseMode) -> Self {
        Self { seed, mode, streams: BTreeMap::new() }
    }

    /// Streams whose numbers are the same on every backend.
    pub fn host(seed: u64) -> Self {
        Self::new(seed, NoiseMode::Host)
    }

    /// Streams whose tensors are drawn by the backend.
    pub fn device(seed: u64) -> Self {
        Self::new(seed, NoiseMode::Device)
    }

    /// The seed that all streams come from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Where tensors are drawn.
    pub fn mode(&self) -> NoiseMode {
        self.mode
    }

    /// The host generator of `stream`, for draws of any other kind.
    pub fn rng(&mut self, stream: Stream) -> &mut ChaCha8Rng {
        let seed = self.seed;
        self.streams.entry(stream.name().to_owned()).or_insert_with(|| generator(seed, stream.name(), 0))
    }

    /// A generator for the `index`-th piece of `stream`'s work (an epoch, say), which moves nothing and needs
    /// no saving.
    pub fn derived(&self, stream: Stream, index: u64) -> ChaCha8Rng {
        generator(self.seed, stream.name(), index.wrapping_add(1))
    }

    /// Independent streams for the `index`-th worker, chain or run.
    pub fn fork(&self, index: u64) -> Self {
        let seed = generator(self.seed, "fork", index.wrapping_add(1)).next_u64();
        Self::new(seed, self.mode)
    }

    /// Standard normal numbers of the given shape on `device`.
    pub fn normal<const D: usize>(
        &mut self,
        shape: [usize; D],
        stream: Stream,
        device: &Device,
    ) -> Tensor<D> {
        if self.mode == NoiseMode::Device {
            return self.on_device(shape, DeviceDistribution::Normal(0.0, 1.0), stream, device);
        }
        let rng = self.rng(stream);
        let values: Vec<f32> = (0..shape.iter().product()).map(|_| rng.sample(StandardNormal)).collect();
        Tensor::from_data(TensorData::new(values, shape), device)
    }

    /// Uniform numbers in `range` of the given shape on `device`.
    pub fn uniform<const D: usize>(
        &mut self,
        shape: [usize; D],
        range: Range<f32>,
        stream: Stream,
        device: &Device,
    ) -> Tensor<D> {
        if self.mode == NoiseMode::Device {
            let (low, high) = (range.start.into(), range.end.into());
            return self.on_device(shape, DeviceDistribution::Uniform(low, high), stream, device);
        }
        let rng = self.rng(stream);
        let width = range.end - range.start;
        let values: Vec<f32> =
            (0..shape.iter().product()).map(|_| range.start + width * rng.random::<f32>()).collect();
        Tensor::from_data(TensorData::new(values, shape), device)
    }

    fn on_device<const D: usize>(
        &mut self,
        shape: [usize; D],
        distribution: DeviceDistribution,
        stream: Stream,
        device: &Device,
    ) -> Tensor<D> {
        device.seed(self.rng(stream).next_u64());
        Tensor::random(shape, distribution, device)
    }
}

/// The generator of piece `index` of the stream `name`. The seed is spread over the key, and name and index
/// choose the ChaCha stream, so that any two of them never overlap.
fn generator(seed: u64, name: &str, index: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(fnv1a(name.bytes().chain(index.to_le_bytes())));
    rng
}

/// The 64-bit FNV-1a hash: short, and fixed for ever, unlike the standard library's.
fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;

    fn values(tensor: Tensor<1>) -> Vec<f32> {
        tensor.into_data().try_to_vec().unwrap()
    }

    #[test]
    fn streams_do_not_move_each_other_and_continue_after_saving() {
        let device = Device::flex();
        let mut a = Noise::host(1);
        let mut b = Noise::host(1);
        a.normal([100], Stream::DATA, &device);
        assert_eq!(
            values(a.normal([5], Stream::CHAIN, &device)),
            values(b.normal([5], Stream::CHAIN, &device))
        );
        let mut saved: Noise = serde_json::from_str(&serde_json::to_string(&a).unwrap()).unwrap();
        for stream in [Stream::CHAIN, Stream::DATA, Stream::BUFFER] {
            assert_eq!(values(a.normal([5], stream, &device)), values(saved.normal([5], stream, &device)));
        }
    }

    #[test]
    fn device_mode_is_repeatable_and_saved_too() {
        let device = Device::flex();
        let mut a = Noise::device(3);
        a.normal([10], Stream::CHAIN, &device);
        let mut b: Noise = serde_json::from_str(&serde_json::to_string(&a).unwrap()).unwrap();
        device.seed(99); // the backend's own state does not matter
        let x = values(a.normal([10], Stream::CHAIN, &device));
        let y = values(b.normal([10], Stream::CHAIN, &device));
        assert_eq!(x, y);
        assert!(x.iter().any(|v| *v != x[0]));
    }

    /// Mean, variance and lag-free cross-correlation of n = 200,000 draws; each statistic has a standard
    /// error of 1/sqrt(n) or sqrt(2/n), and 4.5 of them is a two-sided alpha below 1e-5.
    #[test]
    fn normals_are_standard_and_streams_uncorrelated() {
        let device = Device::flex();
        let n = 200_000;
        let mut noise = Noise::host(5);
        let x = values(noise.normal([n], Stream::CHAIN, &device));
        let y = values(noise.normal([n], Stream::DATA, &device));
        let mean = |v: &[f32]| v.iter().map(|v| f64::from(*v)).sum::<f64>() / n as f64;
        let products = |a: &[f32], b: &[f32]| -> Vec<f32> { a.iter().zip(b).map(|(a, b)| a * b).collect() };
        let error = 4.5 / (n as f64).sqrt();
        assert!(mean(&x).abs() < error);
        assert!((mean(&products(&x, &x)) - 1.0).abs() < error * 2f64.sqrt());
        assert!(mean(&products(&x, &y)).abs() < error);
        // Negative control: a stream against itself is correlated.
        assert!(mean(&products(&x, &x)).abs() > error);
    }

    #[test]
    fn derived_generators_are_stateless_and_differ_by_index() {
        let noise = Noise::host(2);
        let draw = |index| noise.derived(Stream::ORDER, index).next_u64();
        assert_eq!(draw(0), draw(0));
        assert_ne!(draw(0), draw(1));
        assert_ne!(noise.fork(0).seed(), noise.fork(1).seed());
    }
}
