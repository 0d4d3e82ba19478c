//! Data: labelled images and vectors, where they come from, and how they become batches.

mod augment;
mod batch;
pub mod cifar;
pub mod digits;
#[cfg(feature = "download")]
mod download;
pub mod embedded;
mod examples;
mod file;
pub mod idx;
mod images;
mod loader;
mod open;
mod order;
mod parts;
mod range;
mod records;
mod select;
mod toy;
#[cfg(feature = "download")]
mod unpack;
mod vectors;

pub use augment::{Augmentation, GaussianNoise};
pub use batch::{BatchSource, JointBatch, label_tensor};
#[cfg(feature = "download")]
pub use download::Archive;
pub use examples::Examples;
pub use images::{ImageSet, Split};
pub use loader::{ImageLoader, Loader, LoaderConfig, VectorLoader};
pub use open::open;
pub use order::LastBatch;
pub use range::PixelRange;
pub use records::RecordFormat;
pub use toy::Toy;
pub use vectors::VectorSet;
