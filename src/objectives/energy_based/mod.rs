//! Energy-based learning after LeCun et al. 2006: ten losses on the energies of answers, for any answer set.
//!
//! A loss sees four numbers per sample: the energy of the correct answer E_C, that of the most offending
//! incorrect one E_I, the lowest of all, and the free energy. An [`AnswerSet`] gets them out of a model, by the
//! inference that its answers allow, and [`EnergyBased`] is the objective made of both:
//!
//! | answer set | model | batch | inference |
//! | --- | --- | --- | --- |
//! | [`Classes`] | [`Classifier`](crate::energy::Classifier) | [`JointBatch`](crate::data::JointBatch), its labelled part | exhaustion |
//! | [`Labels`] | [`ConditionalEnergy`](crate::energy::ConditionalEnergy) | the same | exhaustion |
//! | [`Candidates`] | [`PairEnergy`](crate::inference::PairEnergy) | [`PairBatch`] | exhaustion over a list or a grid |
//! | [`Searched`] | [`PairEnergy`](crate::inference::PairEnergy) | [`PairBatch`] | descent or annealing in y |
//! | [`Labellings`] | [`ChainEnergy`](crate::inference::ChainEnergy) | [`SequenceBatch`] | min-sum, forward algorithm |

mod answers;
mod candidates;
mod classes;
mod labellings;
mod loss;
mod objective;
mod searched;

pub use answers::{AnswerEnergies, AnswerSet};
pub use candidates::{Candidates, PairBatch};
pub use classes::{Classes, Labels};
pub use labellings::{Labellings, SequenceBatch};
pub use loss::{EblLoss, Margin};
pub use objective::{EnergyBased, ebl_terms};
pub use searched::{Searched, SearchedConfig};
