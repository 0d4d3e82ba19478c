//! The integration tests, as one binary: each more would link Burn once again.

mod ais;
mod attack;
mod backends;
mod contract;
mod generate;
mod golden;
mod guard;
mod layers;
mod memory;
mod misuse_data;
mod misuse_train;
mod objective;
mod properties;
mod replay_law;
mod resume;
mod stationarity;
mod support;
