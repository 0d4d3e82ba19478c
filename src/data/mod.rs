//! Data in memory: labelled images and vectors, and how they become batches. Files of them are read by `jem-data`.

mod augment;
mod batch;
mod examples;
mod images;
mod loader;
mod order;
mod parts;
mod range;
mod select;
mod toy;
mod vectors;

pub use augment::{Augmentation, GaussianNoise};
pub use batch::{BatchSource, JointBatch, label_tensor};
pub use examples::Examples;
pub use images::{ImageSet, Split};
pub use loader::{ImageLoader, Loader, LoaderConfig, VectorLoader};
pub use order::LastBatch;
pub use range::PixelRange;
pub use toy::Toy;
pub use vectors::VectorSet;
