//! Objectives: what is minimised, as a function of model, batch and state.

pub mod contrastive_divergence;
pub mod energy_based;
mod jem;
mod jem_config;
mod loss;
mod nce;
mod objective;
mod reference;
pub mod score_matching;
mod softplus;
mod watch;

pub use jem::Jem;
pub use jem_config::{JemConfig, NegativeKind, terms};
pub use loss::Loss;
pub use nce::{NoiseContrastive, WithNormaliser, nce_terms};
pub use objective::Objective;
pub use reference::{DiagonalGaussian, Reference};
pub use watch::{Reading, Watch};
