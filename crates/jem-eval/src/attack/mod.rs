//! Attacks: adversarial examples, and what a model or a defence still gets right under them.
//!
//! What is attacked is a [`Defence`]: anything with logits of x. A [`Classifier`](jem_core::energy::Classifier) is
//! one as it stands; [`Refined`] samples before it classifies, as JEM-1 and JEM-10 do, and [`RefinedGiven`] under each
//! label, as IGEBM does; [`ExpectedGradient`] attacks the mean over a defence's own draws. [`Pgd`] attacks it within
//! a ball, [`RobustAccuracyConfig`] measures a curve over radii, and [`DistalConfig`] starts from noise.
//!
//! Radii and steps are in units of \[0, 1\] pixels, as papers give them, whatever the
//! [`PixelRange`](jem_core::data::PixelRange) that the model sees. Gradients are taken in x alone; the model is as
//! it was afterwards. Hand in `model.valid()`, which also halves the cost, and a
//! [`Noise`](jem_core::noise::Noise) of the evaluation's own.

mod ball;
mod defence;
mod distal;
mod loss;
mod pgd;
mod refined;
mod refined_given;
mod robust;
mod search;

pub use ball::{Norm, perturbation_sizes};
pub use defence::{Defence, ExpectedGradient, Response, error_rates};
pub use distal::{Distal, DistalAdversaries, DistalConfig};
pub use loss::AttackLoss;
pub use pgd::{Adversarial, Goal, Pgd, PgdConfig};
pub use refined::{Refined, RefinedConfig};
pub use refined_given::{RefinedGiven, RefinedGivenConfig};
pub use robust::{RobustAccuracy, RobustAccuracyConfig, RobustEvaluation, RobustPoint};

use jem_core::noise::Stream;

/// Where attacks start from.
const ATTACK: Stream = Stream::new("attack");
/// What a defence adds to its input.
const DEFENCE: Stream = Stream::new("defence");
