//! The chains of a recipe: how they move, and where fresh ones start.

use burn::tensor::{Device, Tensor};
use clap::ValueEnum;
use jem_core::data::{ImageSet, PixelRange};
use jem_core::error::{Error, Result};
use jem_core::noise::Noise;
use jem_core::samplers::{
    Bounds, ChainStart, ClassGaussianStart, ImproperSgld, ImproperSgldConfig, Langevin, LangevinMove,
    ProximalSgld, ProximalSgldConfig, UniformStart,
};
use serde::{Deserialize, Serialize};

use crate::config::{Knobs, Recipe};

/// How a chain moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Moves {
    /// SGLD with step and noise set apart, as JEM.
    Sgld,
    /// Noiseless steps along a clipped gradient, within the range of the pixels, as JEM++ and SADA-JEM.
    Proximal,
}

/// Where fresh chains start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Starts {
    /// Uniform noise in the range of the pixels.
    Uniform,
    /// A Gaussian for each class, fitted to the labelled images.
    ClassGaussian,
}

impl Recipe {
    /// The recipe with what its sampler fixes: a proximal one has no noise, and a clip of 1 unless another is given.
    pub(crate) fn with_fixed(mut self, knobs: &Knobs) -> Result<Self> {
        if self.sampler == Moves::Proximal {
            if let Some(noise) = knobs.noise.filter(|noise| *noise != 0.0) {
                return Err(Error::config("--noise", noise, "0 or left out with --sampler proximal"));
            }
            if let Some(clip) = knobs.gradient_clip.filter(|clip| *clip == 0.0) {
                return Err(Error::config("--gradient-clip", clip, "above 0 with --sampler proximal"));
            }
            self.noise = 0.0;
            self.gradient_clip = knobs.gradient_clip.unwrap_or(1.0);
        }
        Ok(self)
    }

    /// The chains in one line.
    pub fn chains(&self) -> String {
        let Self { steps, step_size, noise, gradient_clip, .. } = self;
        let moves = match self.sampler {
            Moves::Sgld => format!("SGLD, step {step_size}, noise {noise}"),
            Moves::Proximal => format!("proximal, step {step_size}"),
        };
        let clip = if *gradient_clip > 0.0 { format!(", clip {gradient_clip}") } else { String::new() };
        let starts = match self.start {
            Starts::Uniform => "uniform noise",
            Starts::ClassGaussian => "class Gaussians",
        };
        format!("K = {steps}, {moves}{clip}, from {starts}")
    }
}

/// The sampler of a recipe.
#[derive(Debug, Clone)]
pub enum Chain {
    /// Of JEM.
    Sgld(ImproperSgld),
    /// Of JEM++ and SADA-JEM.
    Proximal(ProximalSgld),
}

impl Chain {
    /// The sampler of `recipe` for pixels in `range`.
    pub fn new(recipe: &Recipe, range: PixelRange) -> Result<Self> {
        match recipe.sampler {
            Moves::Sgld => {
                let mut sgld =
                    ImproperSgldConfig::new().with_step_size(recipe.step_size).with_noise_scale(recipe.noise);
                if recipe.gradient_clip > 0.0 {
                    sgld = sgld.with_gradient_clip(recipe.gradient_clip);
                }
                Ok(Self::Sgld(sgld.init()?))
            }
            Moves::Proximal => {
                let proximal = ProximalSgldConfig::new(recipe.step_size)
                    .with_gradient_clip(recipe.gradient_clip)
                    .with_bounds(range.low(), range.high());
                Ok(Self::Proximal(proximal.init()?))
            }
        }
    }
}

impl Langevin for Chain {
    fn move_at(&self, t: u64) -> LangevinMove {
        match self {
            Self::Sgld(sgld) => sgld.move_at(t),
            Self::Proximal(proximal) => proximal.move_at(t),
        }
    }
}

/// The law of fresh starts of a recipe.
#[derive(Debug, Clone)]
pub enum Start {
    /// Noise.
    Uniform(UniformStart),
    /// Blurs of the classes.
    ClassGaussian(ClassGaussianStart),
}

impl Start {
    /// The starts of `recipe`, on the scale of the images that are `labelled`, and fitted to them if need be.
    pub fn new(recipe: &Recipe, labelled: &ImageSet, device: &Device) -> Result<Self> {
        let (low, high) = (labelled.range().low(), labelled.range().high());
        match recipe.start {
            Starts::Uniform => Ok(Self::Uniform(UniformStart::new(low, high)?)),
            Starts::ClassGaussian => {
                let (images, classes) = (labelled.all(device)?, labelled.num_classes());
                let fitted =
                    ClassGaussianStart::fit(images, labelled.labels(), classes, Bounds { low, high })?;
                Ok(Self::ClassGaussian(fitted))
            }
        }
    }
}

impl ChainStart<4> for Start {
    fn draw(
        &self,
        shape: [usize; 4],
        labels: Option<&[usize]>,
        noise: &mut Noise,
        device: &Device,
    ) -> Tensor<4> {
        match self {
            Self::Uniform(start) => start.draw(shape, labels, noise, device),
            Self::ClassGaussian(start) => start.draw(shape, labels, noise, device),
        }
    }

    fn check(&self, sample_shape: &[usize]) -> Result<()> {
        match self {
            Self::Uniform(start) => ChainStart::<4>::check(start, sample_shape),
            Self::ClassGaussian(start) => ChainStart::<4>::check(start, sample_shape),
        }
    }
}
