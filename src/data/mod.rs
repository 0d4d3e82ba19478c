//! Data: labelled images and vectors, where they come from, and how they become batches.

mod augment;
mod batch;
pub mod cifar;
pub mod digits;
pub mod embedded;
mod file;
pub mod idx;
mod images;
mod loader;
mod order;
mod range;
mod records;
mod select;
mod toy;
mod vectors;

pub use augment::{Augmentation, GaussianNoise};
pub use batch::{BatchSource, JointBatch, label_tensor};
pub use images::{ImageSet, Split};
pub use loader::{Examples, ImageLoader, Loader, LoaderConfig, VectorLoader};
pub use order::LastBatch;
pub use range::PixelRange;
pub use records::RecordFormat;
pub use toy::Toy;
pub use vectors::VectorSet;
