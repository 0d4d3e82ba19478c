//! The algebra of energies: what was learnt apart is combined as "and", "or" and "not".
//!
//! | combination | energy | density |
//! | --- | --- | --- |
//! | [`Product`] | Σ E_i | ∝ Π p_i: and |
//! | [`Mixture`] | -log Σ exp(log w_i - E_i) | ∝ Σ w_i exp(-E_i): or |
//! | [`Negation`] | E_1 - λ E_2 | ∝ p_1 / p_2^λ: and not |
//! | [`Tempered`] | β E | ∝ p^β |
//! | [`LinearCombination`] | Σ c_i E_i | ∝ Π p_i^(c_i) |
//! | [`Clamped`] | E with some coordinates given | p(free \| clamped) |
//! | [`FreeEnergy`], [`Minimum`] | E with a latent variable summed or minimised out | Σ_z p(x, z); max_z |

mod clamped;
mod combination;
mod expression;
mod latent;
mod mixture;

pub use clamped::{Clamp, Clamped};
pub use combination::{LinearCombination, Negation, Product, Tempered};
pub use expression::Energy;
pub use latent::{FiniteLatent, FreeEnergy, LatentEnergy, Minimum};
pub use mixture::Mixture;
