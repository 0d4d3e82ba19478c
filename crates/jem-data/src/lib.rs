//! Sets of images from files in the usual formats, from data that come along, and from the archives of their authors.
//!
//! What comes out is an [`ImageSet`](jem_core::data::ImageSet), which `jem-core` makes batches of.
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

pub mod cifar;
pub mod digits;
#[cfg(feature = "download")]
mod download;
pub mod embedded;
mod file;
pub mod idx;
mod open;
mod records;
#[cfg(feature = "download")]
mod unpack;

#[cfg(feature = "download")]
pub use download::Archive;
pub use open::open;
pub use records::RecordFormat;
