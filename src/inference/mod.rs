//! Inference: Y* = argmin_Y E(Y, X), the most offending incorrect answer, and the free energy of all answers.
//!
//! | answers | how | where |
//! | --- | --- | --- |
//! | a finite set: classes, labels, a list of candidates | exhaustion | [`EnergyTable`] |
//! | continuous | gradient descent or annealed Langevin dynamics from several starts | [`AnswerSearch`] |
//! | labellings of a chain | min-sum (Viterbi), and the forward algorithm for the free energy | [`Chain`] |
//!
//! Lowest energies are read where a loss needs them: each is an entry of what the model computed, so that
//! gradients flow through it to the parameters.
//!
//! Source: LeCun et al., "A tutorial on energy-based learning", 2006.

mod chain;
mod forward;
mod latent;
mod outside;
mod pair;
mod search;
mod table;
mod viterbi;

pub use chain::{Chain, ChainEnergy};
pub use latent::{marginalise_latent, minimise_latent};
pub use outside::Outside;
pub use pair::{GivenInput, PairEnergy};
pub use search::{AnswerSearch, Found};
pub use table::{Answer, EnergyTable};
pub use viterbi::Labelling;
