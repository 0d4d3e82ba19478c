//! Chains that start from data with noise on it.

use burn::tensor::{Device, Int, Tensor};
use rand::RngExt;

use super::{Bounds, ChainStart};
use crate::data::{Augmentation, Examples};
use crate::error::{Error, Result, ensure_not_negative};
use crate::noise::{Noise, Stream};

/// Examples drawn at random, with replacement, with Gaussian noise: x₀ = x_data + σ ε, clamped if there is a box.
///
/// Chains that start at data and run a few steps are contrastive divergence; with σ they start near it. With
/// labels asked for, and labels known, a chain for label y starts from an example of y. A class that has no
/// example starts from any.
///
/// # Shapes
/// Data are `[examples, ..]`, starts `[chains, ..]` with the same extents after the first.
///
/// # Panics
/// `draw` panics if asked for another shape; [`check`](ChainStart::check) says so beforehand, as an error.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{ChainStart, DataStart};
///
/// let device = Device::default();
/// let data = Tensor::<2>::from_floats([[-1.0, 0.0], [1.0, 0.0]], &device);
/// let start = DataStart::new(data, 0.0)?.with_labels(vec![0, 1])?;
/// let x = start.draw([2, 2], Some(&[1, 0]), &mut Noise::host(0), &device);
/// assert_eq!(x.into_data().try_to_vec::<f32>().unwrap(), [1.0, 0.0, -1.0, 0.0]);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Hinton 2002, "Training products of experts by minimizing contrastive divergence".
#[derive(Debug, Clone)]
pub struct DataStart<const D: usize> {
    data: Tensor<D>,
    deviation: f32,
    classes: Vec<Vec<usize>>,
    bounds: Option<Bounds>,
}

impl<const D: usize> DataStart<D> {
    /// Starts from `data`, `[examples, ..]`, with noise of `deviation`.
    ///
    /// # Errors
    /// [`Error::Config`] for a deviation that is negative or not finite, [`Error::Shape`] if there is no example.
    pub fn new(data: Tensor<D>, deviation: f32) -> Result<Self> {
        ensure_not_negative("DataStart.deviation", deviation)?;
        if data.dims().iter().product::<usize>() == 0 {
            return Err(Error::shape("DataStart.data", &data.dims(), "at least one example of one number"));
        }
        Ok(Self { data: data.without_autodiff(), deviation, classes: Vec::new(), bounds: None })
    }

    /// Starts from the examples of `set` at `indices`, as they are without augmentation, with their labels.
    ///
    /// # Errors
    /// As [`new`](Self::new), or as the set says of the indices.
    pub fn from_examples(
        set: &impl Examples<D>,
        indices: &[usize],
        deviation: f32,
        device: &Device,
    ) -> Result<Self> {
        // Nothing random is left without augmentation, so that the seed does not matter.
        let data = set.augmented(indices, &Augmentation::none(), &mut Noise::host(0), device)?;
        let labels = indices.iter().map(|index| set.labels()[*index]).collect();
        Self::new(data, deviation)?.with_labels(labels)
    }

    /// Tells the class of each example.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is not one label per example.
    pub fn with_labels(mut self, labels: Vec<usize>) -> Result<Self> {
        let count = self.data.dims()[0];
        if labels.len() != count {
            return Err(Error::shape(
                "DataStart.labels",
                &[labels.len()],
                format!("[{count}], one per example"),
            ));
        }
        self.classes = vec![Vec::new(); labels.iter().max().map_or(0, |largest| largest + 1)];
        for (index, label) in labels.into_iter().enumerate() {
            self.classes[label].push(index);
        }
        Ok(self)
    }

    /// Clamps every coordinate of a start to [low, high].
    ///
    /// # Errors
    /// [`Error::Config`] unless both are finite and low < high.
    pub fn with_bounds(mut self, low: f32, high: f32) -> Result<Self> {
        let bounds = Bounds { low, high };
        bounds.check("DataStart.bounds")?;
        self.bounds = Some(bounds);
        Ok(self)
    }
}

impl<const D: usize> ChainStart<D> for DataStart<D> {
    fn draw(
        &self,
        shape: [usize; D],
        labels: Option<&[usize]>,
        noise: &mut Noise,
        device: &Device,
    ) -> Tensor<D> {
        let count = self.data.dims()[0];
        let rng = noise.rng(Stream::BUFFER);
        let chosen: Vec<i32> = (0..shape[0])
            .map(|chain| {
                let label = labels.and_then(|labels| labels.get(chain));
                let members = label.and_then(|label| self.classes.get(*label)).filter(|m| !m.is_empty());
                match members {
                    Some(members) => members[rng.random_range(0..members.len())] as i32,
                    None => rng.random_range(0..count) as i32,
                }
            })
            .collect();
        let chosen = Tensor::<1, Int>::from_ints(chosen.as_slice(), &self.data.device());
        let mut x = self.data.clone().select(0, chosen).to_device(device);
        if self.deviation > 0.0 {
            x = x + noise.normal(shape, Stream::BUFFER, device).mul_scalar(self.deviation);
        }
        match self.bounds {
            Some(bounds) => bounds.clamp(x),
            None => x,
        }
    }

    fn check(&self, sample_shape: &[usize]) -> Result<()> {
        let dims = self.data.dims();
        if dims[1..] == *sample_shape {
            return Ok(());
        }
        Err(Error::shape(
            "sample_shape",
            sample_shape,
            format!("{:?}, as in the data of DataStart", &dims[1..]),
        ))
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::data::Toy;
    use crate::samplers::{ImproperSgldConfig, ReplayConfig, SampleSource, ShortRunConfig};

    fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    /// n = 20,000 draws; mean and variance within 4.417 standard errors (α = 1e-5 each).
    #[test]
    fn starts_are_examples_with_noise_of_the_deviation() {
        let device = Device::flex();
        let data = Tensor::<2>::from_floats([[-10.0], [10.0]], &device);
        let n = 20_000;
        let start = DataStart::new(data, 0.5).unwrap();
        let x = values(start.draw([n, 1], None, &mut Noise::host(1), &device));
        let right = x.iter().filter(|x| **x > 0.0).count() as f64 / n as f64;
        assert!((right - 0.5).abs() < 4.417 * (0.25 / n as f64).sqrt(), "{right}");
        let rest: Vec<f64> = x.iter().map(|x| f64::from(x.abs()) - 10.0).collect();
        let mean = rest.iter().sum::<f64>() / n as f64;
        let variance = rest.iter().map(|r| r * r).sum::<f64>() / n as f64;
        let is = |v: f64| (variance - v).abs() < 4.417 * v * (2.0 / n as f64).sqrt();
        assert!(mean.abs() < 4.417 * 0.5 / (n as f64).sqrt() && is(0.25), "{mean} {variance}");
        assert!(!is(0.5)); // noise of the deviation's root
    }

    #[test]
    fn examples_of_a_set_start_chains_of_their_class() {
        let device = Device::flex();
        let set = Toy::Rings.sample(30, Noise::host(1).rng(Stream::DATA)).unwrap();
        let indices: Vec<usize> = (0..30).collect();
        let start = DataStart::<2>::from_examples(&set, &indices, 0.0, &device).unwrap();
        let labels: Vec<usize> = (0..60).map(|i| i % 3).collect();
        let x = values(start.draw([60, 2], Some(&labels), &mut Noise::host(2), &device));
        for (point, label) in x.chunks(2).zip(labels) {
            let radius = point[0].hypot(point[1]);
            assert!((radius - 1.0 - label as f32).abs() < 0.5, "{radius} {label}");
        }
        // A class that the set does not have starts from any; a box holds.
        let start = start.with_bounds(-0.5, 0.5).unwrap();
        let x = values(start.draw([4, 2], Some(&[7; 4]), &mut Noise::host(2), &device));
        assert!(x.iter().all(|x| x.abs() <= 0.5));
        assert!(DataStart::<2>::from_examples(&set, &[30], 0.0, &device).is_err());
    }

    #[test]
    fn what_does_not_fit_is_named_before_anything_is_drawn() {
        let device = Device::flex();
        let data = Tensor::<2>::zeros([2, 3], &device);
        let new = || DataStart::new(data.clone(), 0.1).unwrap();
        for (result, part) in [
            (DataStart::new(data.clone(), -1.0), "DataStart.deviation ="),
            (DataStart::new(Tensor::<2>::zeros([0, 3], &device), 0.1), "DataStart.data"),
            (new().with_labels(vec![0]), "DataStart.labels"),
            (new().with_bounds(1.0, 0.0), "DataStart.bounds ="),
        ] {
            let message = result.unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        let sampler = ImproperSgldConfig::new().init().unwrap();
        let replay = ReplayConfig::new([4]).with_capacity(8).init_from(sampler.clone(), new()).unwrap();
        let message =
            SampleSource::<2>::start(&replay, &mut Noise::host(0), &device).unwrap_err().to_string();
        assert!(message.contains("sample_shape has shape [4], expected [3]"), "{message}");
        let short = ShortRunConfig::new([3]).init_from(sampler, new()).unwrap();
        assert!(SampleSource::<2>::start(&short, &mut Noise::host(0), &device).is_ok());
    }
}
