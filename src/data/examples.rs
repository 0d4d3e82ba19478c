//! What a loader needs to know of a data set: its labels, and how to make an augmented batch.

use burn::tensor::{Device, Tensor};

use super::{Augmentation, GaussianNoise, ImageSet, VectorSet};
use crate::error::{Error, Result};
use crate::noise::{Noise, Stream};

/// A set of labelled examples that batches of rank `D` can be made of.
pub trait Examples<const D: usize> {
    /// What the set calls itself in messages.
    fn name(&self) -> &str;

    /// The class of every example.
    fn labels(&self) -> &[usize];

    /// Whether `augmentation` can be applied to the examples.
    fn check(&self, augmentation: &Augmentation) -> Result<()>;

    /// Whether this set and `other` go into one model.
    fn check_same_kind(&self, other: &Self) -> Result<()>;

    /// The examples at `indices`, augmented.
    fn augmented(
        &self,
        indices: &[usize],
        augmentation: &Augmentation,
        noise: &mut Noise,
        device: &Device,
    ) -> Result<Tensor<D>>;
}

impl Examples<4> for ImageSet {
    fn name(&self) -> &str {
        ImageSet::name(self)
    }

    fn labels(&self) -> &[usize] {
        ImageSet::labels(self)
    }

    fn check(&self, augmentation: &Augmentation) -> Result<()> {
        augmentation.check(self.image_shape())
    }

    fn check_same_kind(&self, other: &Self) -> Result<()> {
        if self.image_shape() != other.image_shape() {
            let expected = format!("{:?}, as in {}", self.image_shape(), self.name());
            return Err(Error::shape(format!("images of {}", other.name()), &other.image_shape(), expected));
        }
        if self.range() != other.range() {
            let allowed = format!("{:?}, as in {}", self.range(), self.name());
            return Err(Error::config(
                format!("range of {}", other.name()),
                format!("{:?}", other.range()),
                allowed,
            ));
        }
        Ok(())
    }

    fn augmented(
        &self,
        indices: &[usize],
        augmentation: &Augmentation,
        noise: &mut Noise,
        device: &Device,
    ) -> Result<Tensor<4>> {
        let bytes = self.bytes(indices)?;
        let rng = noise.rng(Stream::AUGMENTATION);
        let bytes = augmentation.crop_and_flip(&bytes, self.image_shape(), rng)?;
        Ok(GaussianNoise::new(augmentation.noise())?.apply(self.tensor_of(&bytes, device)?, noise))
    }
}

impl Examples<2> for VectorSet {
    fn name(&self) -> &str {
        VectorSet::name(self)
    }

    fn labels(&self) -> &[usize] {
        VectorSet::labels(self)
    }

    fn check(&self, augmentation: &Augmentation) -> Result<()> {
        if augmentation.padding() > 0 || augmentation.flip_probability() > 0.0 {
            let found = format!("{augmentation:?}");
            return Err(Error::config("Augmentation of vectors", found, "noise alone"));
        }
        GaussianNoise::new(augmentation.noise()).map(|_| ())
    }

    fn check_same_kind(&self, other: &Self) -> Result<()> {
        if self.dimension() == other.dimension() {
            return Ok(());
        }
        let expected = format!("[{}], as in {}", self.dimension(), self.name());
        Err(Error::shape(format!("vectors of {}", other.name()), &[other.dimension()], expected))
    }

    fn augmented(
        &self,
        indices: &[usize],
        augmentation: &Augmentation,
        noise: &mut Noise,
        device: &Device,
    ) -> Result<Tensor<2>> {
        Ok(GaussianNoise::new(augmentation.noise())?.apply(self.tensor(indices, device)?, noise))
    }
}
