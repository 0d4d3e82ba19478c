//! What is done to training images on the way to the device: reflect-pad and crop, flip, scale, add noise.

use burn::tensor::Tensor;
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, ensure, ensure_not_negative};
use crate::noise::{Noise, Stream};

/// Augmentation of a training set: the order is crop, flip, (scaling by the data set), noise.
///
/// Crops and flips draw from [`Stream::AUGMENTATION`], one of each per image; noise from [`Stream::DATA`].
///
/// ```
/// use jem_core::data::Augmentation;
/// let gentle = Augmentation::none().with_padding(2).with_noise(0.01);
/// gentle.check([3, 32, 32])?;
/// assert!(gentle.check([1, 2, 2]).is_err()); // cannot mirror 2 pixels of 2
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: the reference code of Grathwohl et al. 2020, arXiv 1912.03263.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Augmentation {
    padding: usize,
    flip_probability: f64,
    noise: f32,
}

impl Augmentation {
    /// Images as they are.
    pub fn none() -> Self {
        Self { padding: 0, flip_probability: 0.0, noise: 0.0 }
    }

    /// JEM's for CIFAR: 4 mirrored pixels at each side and a random crop back, a flip half the time, Gaussian
    /// noise of deviation 0.03.
    pub fn reference() -> Self {
        Self { padding: 4, flip_probability: 0.5, noise: GaussianNoise::default().sigma }
    }

    /// Another number of mirrored pixels at each side, before a random crop back to size; 0 for no crop.
    pub fn with_padding(mut self, padding: usize) -> Self {
        self.padding = padding;
        self
    }

    /// Another probability that an image is mirrored left to right.
    pub fn with_flip_probability(mut self, probability: f64) -> Self {
        self.flip_probability = probability;
        self
    }

    /// Another deviation of the Gaussian noise, in units of the scaled image.
    pub fn with_noise(mut self, sigma: f32) -> Self {
        self.noise = sigma;
        self
    }

    /// Mirrored pixels at each side.
    pub fn padding(&self) -> usize {
        self.padding
    }

    /// Probability of a flip.
    pub fn flip_probability(&self) -> f64 {
        self.flip_probability
    }

    /// Deviation of the noise.
    pub fn noise(&self) -> f32 {
        self.noise
    }

    /// Whether images of `[channels, height, width]` can be augmented like this.
    ///
    /// # Errors
    /// [`Error::Config`] if the padding is not below height and width, the probability not in \[0, 1\], or
    /// the noise negative or not finite.
    pub fn check(&self, image_shape: [usize; 3]) -> Result<()> {
        let [_, height, width] = image_shape;
        let allowed = format!("below the height and width of the images, {height}x{width}");
        let fits = self.padding == 0 || self.padding < height.min(width);
        ensure(fits, "Augmentation.padding", self.padding, &allowed)?;
        let probability = (0.0..=1.0).contains(&self.flip_probability);
        ensure(probability, "Augmentation.flip_probability", self.flip_probability, "in [0, 1]")?;
        GaussianNoise::new(self.noise).map(|_| ())
    }

    /// Crops and flips images that lie one after the other, each `[channels, height, width]`: bytes or floats.
    ///
    /// # Shapes
    /// `[n * channels * height * width]` to the same.
    ///
    /// # Errors
    /// As [`check`](Self::check); [`Error::Shape`] if `pixels` is not a whole number of images.
    pub fn crop_and_flip<T: Copy>(
        &self,
        pixels: &[T],
        image_shape: [usize; 3],
        rng: &mut impl Rng,
    ) -> Result<Vec<T>> {
        self.check(image_shape)?;
        let [_, height, width] = image_shape;
        let size = image_shape.iter().product::<usize>();
        if size == 0 || !pixels.len().is_multiple_of(size) {
            let expected = format!("a multiple of {image_shape:?}");
            return Err(Error::shape("Augmentation: pixels", &[pixels.len()], expected));
        }
        let mut result = Vec::with_capacity(pixels.len());
        for image in pixels.chunks_exact(size) {
            let rows = self.window(height, rng);
            let mut columns = self.window(width, rng);
            if self.flip_probability > 0.0 && rng.random_bool(self.flip_probability) {
                columns.reverse();
            }
            for channel in image.chunks_exact(height * width) {
                for &row in &rows {
                    let line = &channel[row * width..(row + 1) * width];
                    result.extend(columns.iter().map(|&column| line[column]));
                }
            }
        }
        Ok(result)
    }

    /// Which of `extent` rows (or columns) a random crop of the padded image shows. The mirror is the border
    /// pixel, which is not repeated: 2 1 | 0 1 2 | 1 0.
    fn window(&self, extent: usize, rng: &mut impl Rng) -> Vec<usize> {
        let padding = self.padding;
        let offset = if padding == 0 { 0 } else { rng.random_range(0..=2 * padding) };
        (offset..offset + extent)
            .map(|at| padding.abs_diff(at))
            .map(|at| if at < extent { at } else { 2 * (extent - 1) - at })
            .collect()
    }
}

impl Default for Augmentation {
    fn default() -> Self {
        Self::none()
    }
}

/// x + σ ε with ε ~ N(0, I): what smooths a data distribution that lies on a grid.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::data::GaussianNoise;
/// use jem_core::noise::Noise;
/// let x = Tensor::<4>::zeros([8, 3, 4, 4], &Device::default());
/// let noisy = GaussianNoise::new(0.03)?.apply(x, &mut Noise::host(1));
/// assert!(noisy.abs().max().into_scalar::<f32>() < 0.3);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Nijkamp et al. 2019, arXiv 1903.12370; σ = 0.03 as in JEM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GaussianNoise {
    sigma: f32,
}

impl GaussianNoise {
    /// Noise of deviation `sigma`; 0 changes nothing and draws nothing.
    ///
    /// # Errors
    /// [`Error::Config`] unless `sigma` is finite and at least 0.
    pub fn new(sigma: f32) -> Result<Self> {
        ensure_not_negative("GaussianNoise.sigma", sigma)?;
        Ok(Self { sigma })
    }

    /// σ.
    pub fn sigma(&self) -> f32 {
        self.sigma
    }

    /// x + σ ε, drawn from [`Stream::DATA`].
    ///
    /// # Shapes
    /// Any to the same.
    pub fn apply<const D: usize>(&self, x: Tensor<D>, noise: &mut Noise) -> Tensor<D> {
        if self.sigma == 0.0 {
            return x;
        }
        let epsilon = noise.normal(x.dims(), Stream::DATA, &x.device());
        x + epsilon.mul_scalar(self.sigma)
    }
}

impl Default for GaussianNoise {
    fn default() -> Self {
        Self { sigma: 0.03 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every crop of a 2x3 image padded by 1, found by hand from the padded 4x5 one.
    #[test]
    fn crops_come_from_the_mirrored_image() {
        let padded = [[4, 3, 4, 5, 4], [1, 0, 1, 2, 1], [4, 3, 4, 5, 4], [1, 0, 1, 2, 1]];
        let mut expected = Vec::new();
        for y in 0..3 {
            for x in 0..3 {
                expected.push((0..2).flat_map(|r| padded[y + r][x..x + 3].to_vec()).collect::<Vec<_>>());
            }
        }
        let mut noise = Noise::host(1);
        let mut seen = std::collections::BTreeSet::new();
        let crop = Augmentation::none().with_padding(1);
        for _ in 0..200 {
            let image = crop.crop_and_flip(&[0, 1, 2, 3, 4, 5], [1, 2, 3], noise.rng(Stream::AUGMENTATION));
            seen.insert(image.unwrap());
        }
        expected.sort();
        expected.dedup();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_flip_mirrors_all_channels_of_a_non_square_image() {
        let flip = Augmentation::none().with_flip_probability(1.0);
        let image: Vec<f32> = (0..12).map(|i| i as f32).collect();
        let rng = &mut Noise::host(1).derived(Stream::AUGMENTATION, 0);
        let flipped = flip.crop_and_flip(&image, [2, 2, 3], rng).unwrap();
        assert_eq!(flipped, [2., 1., 0., 5., 4., 3., 8., 7., 6., 11., 10., 9.]);
    }

    /// Of n = 10,000 images with p = 1/2 the flipped ones have deviation 50; 5 of them are alpha below 1e-6.
    #[test]
    fn each_image_is_flipped_or_not_on_its_own() {
        let flip = Augmentation::none().with_flip_probability(0.5);
        let images: Vec<u8> = [0, 1].repeat(10_000);
        let rng = &mut Noise::host(2).derived(Stream::AUGMENTATION, 0);
        let flipped = flip.crop_and_flip(&images, [1, 1, 2], rng).unwrap();
        let count = flipped.chunks(2).filter(|pair| pair[0] == 1).count() as i64;
        assert!((count - 5_000).abs() < 250, "{count}");
    }

    #[test]
    fn none_changes_and_draws_nothing() {
        let (mut noise, rest) = (Noise::host(3), Noise::host(3));
        let image = [1u8, 2, 3, 4];
        let same = Augmentation::none().crop_and_flip(&image, [1, 2, 2], noise.rng(Stream::AUGMENTATION));
        assert_eq!(same.unwrap(), image);
        let next = noise.rng(Stream::AUGMENTATION).next_u64();
        assert_eq!(next, rest.clone().rng(Stream::AUGMENTATION).next_u64());
    }

    #[test]
    fn configurations_are_saved_and_unknown_fields_refused() {
        let saved = serde_json::to_string(&Augmentation::reference()).unwrap();
        assert_eq!(serde_json::from_str::<Augmentation>(&saved).unwrap(), Augmentation::reference());
        assert_eq!(serde_json::from_str::<Augmentation>("{}").unwrap(), Augmentation::none());
        assert!(serde_json::from_str::<Augmentation>(r#"{"paddin": 4}"#).is_err());
    }
}
