//! Contrastive divergence: any scalar energy is lowered on data and raised on its own samples.
//!
//! | objective | model | data | samples |
//! | --- | --- | --- | --- |
//! | [`ContrastiveDivergence`] | [`EnergyModel`](crate::energy::EnergyModel) | the p(x) batch | of E(x) |
//! | [`ConditionalContrastiveDivergence`] | [`ConditionalEnergy`](crate::energy::ConditionalEnergy) | the labelled batch | of E(x, y), y as [`NegativeLabels`] says |
//!
//! Both are one [`ContrastiveDivergenceConfig`]: the form of the [`Contrast`], the weight of the squared energies, and
//! a [`LastStep`] through which the sampler itself is trained.

mod conditional;
mod config;
mod contrast;
mod last_step;
mod objective;
mod parts;

pub use conditional::{ConditionalContrastiveDivergence, NegativeLabels};
pub use config::{ContrastiveDivergenceConfig, contrastive_terms};
pub use contrast::Contrast;
pub use last_step::{LastStep, LastStepConfig};
pub use objective::ContrastiveDivergence;
