//! The integration tests, as one binary: each more would link Burn again.

mod misuse_data;
