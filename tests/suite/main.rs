//! The integration tests, as one binary: each more would link Burn once again.

mod ais;
mod attack;
mod backends;
mod composition;
mod contract;
mod contrastive_divergence;
mod energy_based;
mod energy_based_training;
mod fifo_law;
mod generate;
mod golden;
mod guard;
mod inference;
mod layers;
mod memory;
mod metrics;
mod misuse_data;
mod misuse_train;
mod objective;
mod properties;
mod pyld;
#[cfg(feature = "pytorch")]
mod pytorch;
#[cfg(feature = "pytorch")]
mod pytorch_broken;
mod replay_law;
mod resume;
mod score_matching;
mod spectral_norm;
mod stationarity;
mod strangers;
mod support;
mod uses;
mod workers;
