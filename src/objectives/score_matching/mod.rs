//! Score matching: fitting ∇E to data without samples and without a normaliser, by directional differences.
//!
//! | objective | what it fits | price |
//! | --- | --- | --- |
//! | [`SlicedScoreMatching`] | p(x) | three energies per projection; the curvature is a second difference |
//! | [`DenoisingScoreMatching`] | p(x) with noise of deviation σ on it | two energies per projection |
//! | [`exact_score_matching`] | nothing: it is a check, one gradient per coordinate | two gradients per coordinate |
//!
//! Burn differentiates once, and a loss that holds ∇E would need the second derivative. Differences along random
//! directions v hold energies alone, so that one backward pass is enough.

mod denoising;
mod differences;
mod exact;
mod sliced;

pub use denoising::{DenoisingScoreMatching, DenoisingScoreMatchingConfig};
pub use differences::{DirectionalDifferences, directional_differences, directional_slope, rademacher};
pub use exact::exact_score_matching;
pub use sliced::{SlicedScoreMatching, SlicedScoreMatchingConfig, score_terms};
