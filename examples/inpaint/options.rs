//! The command line: where to, how many chains, and the recipe of the model.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use serde::{Deserialize, Serialize};

/// Fill in, restore and change 8x8 handwritten digits.
#[derive(Debug, Parser)]
pub struct Options {
    /// Seed of the chains, and of training.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The run directory.
    #[arg(long, value_name = "DIR", default_value = "runs/inpaint")]
    pub out: PathBuf,
    /// A run directory of this example whose model is taken instead of training one.
    #[arg(long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// Chains for each hidden half, m.
    #[arg(long, default_value_t = 20, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub chains: usize,
    /// Steps of a chain that fills in.
    #[arg(long, default_value_t = 100, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub fill_steps: usize,
    /// 20 iterations, short chains and two digits of each class, to see that everything runs.
    #[arg(long)]
    pub quick: bool,
    /// How the model is trained.
    #[command(flatten)]
    pub recipe: Recipe,
}

impl Options {
    /// `value`, or `at_most` where all should be over soon.
    pub fn shortened<T: Ord>(&self, value: T, at_most: T) -> T {
        if self.quick { value.min(at_most) } else { value }
    }
}

/// What a model was trained with; it is saved with the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, clap::Args)]
pub struct Recipe {
    /// Training iterations.
    #[arg(long, default_value_t = 3_000, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub iterations: u64,
    /// Width of the two hidden layers.
    #[arg(long, default_value_t = 256)]
    pub width: usize,
    /// Steps of a training chain, K.
    #[arg(long, default_value_t = 10)]
    pub steps: usize,
    /// Step size of every chain, η.
    #[arg(long, default_value_t = 1.0)]
    pub step_size: f64,
    /// Noise of every chain, σ.
    #[arg(long, default_value_t = 0.05)]
    pub noise: f64,
    /// Noise on training images.
    #[arg(long, default_value_t = 0.1)]
    pub data_noise: f32,
    /// Probability that a training chain starts afresh, ρ.
    #[arg(long, default_value_t = 0.05)]
    pub restart: f64,
    /// Learning rate of Adam at the start; it falls to 0 along half a cosine.
    #[arg(long, default_value_t = 1e-3)]
    pub learning_rate: f64,
    /// Decay of averaged weights.
    #[arg(long, default_value_t = 0.99)]
    pub average_decay: f64,
}
