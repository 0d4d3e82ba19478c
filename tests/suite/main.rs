//! The integration tests, as one binary: each more would link Burn once again.

mod backends;
mod golden;
