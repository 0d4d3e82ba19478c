//! The images: those that the model is of, and those from elsewhere.

use std::path::Path;

use jem_core::data::{ImageSet, Split};
use jem_core::error::{Error, Result};
use jem_core::noise::{Noise, Stream};
use jem_data::{RecordFormat, embedded, idx};
use jem_eval::interpolated;
use rand::RngExt;

use crate::options::Options;

/// Everything that is looked at.
pub struct Sets {
    /// What the model was trained on, or could have been.
    pub train: ImageSet,
    /// Images of the same kind that it has not seen.
    pub test: ImageSet,
    /// Images of other kinds.
    pub out: Vec<ImageSet>,
}

/// The sets that the command line asks for.
pub fn load(options: &Options) -> Result<Sets> {
    let Split { train, test } = match &options.data {
        Some(folder) => jem_data::open(folder)?,
        None => embedded::cifar10()?,
    };
    let test = match options.settings.test_images {
        0 => test,
        count => test.take_per_class(count.div_ceil(test.num_classes()))?,
    };
    let mut out =
        vec![interpolated(&test)?.with_name("interpolation"), uniform(&test, options.settings.seed)?];
    for set in &options.ood {
        out.push(foreign(&set.path, test.image_shape())?.with_range(test.range()).with_name(&set.name));
    }
    Ok(Sets { train, test, out })
}

/// Images whose every pixel is drawn alike.
fn uniform(like: &ImageSet, seed: u64) -> Result<ImageSet> {
    let mut rng = Noise::host(seed).derived(Stream::new("uniform images"), 0);
    let bytes: Vec<u8> = (0..like.len() * like.image_size()).map(|_| rng.random::<u8>()).collect();
    let set = ImageSet::new("uniform noise", bytes, like.image_shape(), vec![0; like.len()], 1)?;
    Ok(set.with_range(like.range()))
}

/// Images of a file, whatever their labels.
fn foreign(path: &Path, shape: [usize; 3]) -> Result<ImageSet> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let set = if name.contains("images-idx3") || name.contains("images.idx3") {
        idx::read(path, path.with_file_name(name.replace("images", "labels").replace("idx3", "idx1")), 256)?
    } else {
        RecordFormat::new(shape, 256)?.read(path)?
    };
    if set.image_shape() != shape {
        let expected = format!("{shape:?}, as the images of the model");
        return Err(Error::shape(path.display().to_string(), &set.image_shape(), expected));
    }
    Ok(set)
}
