//! Where samples come from, as a record that goes into reports.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::BufferChoice;

/// Where samples come from and what was done to them.
///
/// ```
/// use jem_eval::generate::{SampleOrigin, Source};
/// let origin = SampleOrigin { source: Source::FreshChains { num_steps: 100, non_finite: 0 }, seed: 7, treatments: vec![] };
/// assert_eq!(origin.to_string(), "fresh chains of 100 steps (seed 7)");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleOrigin {
    /// Where they began.
    pub source: Source,
    /// The seed of the noise.
    pub seed: u64,
    /// What was done to them after that, in this order.
    pub treatments: Vec<Treatment>,
}

/// Where samples begin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Slots of a replay buffer, as they lay there.
    Buffer {
        /// How many slots it has.
        capacity: usize,
        /// Which were taken.
        choice: BufferChoice,
        /// The slot of each sample.
        slots: Vec<usize>,
    },
    /// One more draw from a copy of a replay buffer, as training would have made it.
    NewestOfBuffer {
        /// Sampler steps of the draw.
        num_steps: usize,
        /// Chains that started afresh.
        restarted: usize,
        /// Chains that left the finite numbers and were replaced by fresh starts.
        non_finite: usize,
    },
    /// Chains from their starting law.
    FreshChains {
        /// Sampler steps.
        num_steps: usize,
        /// Chains that left the finite numbers and were left out.
        non_finite: usize,
    },
}

/// What was done to samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Treatment {
    /// More steps of a sampler.
    Chain {
        /// Sampler steps.
        num_steps: usize,
        /// Chains that left the finite numbers and were left out.
        non_finite: usize,
    },
    /// Those that the model is sure of were kept.
    Confident {
        /// The least p(y|x).
        threshold: f64,
        /// How many there were.
        of: usize,
        /// Which of them were kept.
        kept: Vec<usize>,
    },
}

impl fmt::Display for SampleOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left_out = |f: &mut fmt::Formatter<'_>, count: usize| match count {
            0 => Ok(()),
            count => write!(f, ", {count} of them not finite"),
        };
        match &self.source {
            Source::Buffer { capacity, choice, slots } => {
                write!(f, "{} of {capacity} buffer slots, {choice}", slots.len())?;
            }
            Source::NewestOfBuffer { num_steps, restarted, non_finite } => {
                write!(
                    f,
                    "a draw of {num_steps} steps from a copy of the buffer, {restarted} started afresh"
                )?;
                left_out(f, *non_finite)?;
            }
            Source::FreshChains { num_steps, non_finite } => {
                write!(f, "fresh chains of {num_steps} steps")?;
                left_out(f, *non_finite)?;
            }
        }
        write!(f, " (seed {})", self.seed)?;
        for treatment in &self.treatments {
            match treatment {
                Treatment::Chain { num_steps, non_finite } => {
                    write!(f, "; {num_steps} more steps")?;
                    left_out(f, *non_finite)?;
                }
                Treatment::Confident { threshold, of, kept } => {
                    write!(f, "; {} of {of} with p(y|x) of {threshold} or more", kept.len())?;
                }
            }
        }
        Ok(())
    }
}
