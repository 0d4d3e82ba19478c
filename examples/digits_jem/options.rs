//! The command line: how long, where to, and the knobs of the recipe.

use std::path::PathBuf;

use clap::Parser;

/// Train a joint energy model on 8x8 handwritten digits.
#[derive(Debug, Parser)]
pub struct Options {
    /// Training iterations.
    #[arg(long, default_value_t = 3_000)]
    pub iterations: u64,
    /// Seed of all randomness.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The run directory.
    #[arg(long, value_name = "DIR", default_value = "runs/digits_jem")]
    pub out: PathBuf,
    /// Train the p(x) term on samples given labels, from a buffer in class blocks.
    #[arg(long)]
    pub class_conditional: bool,
    /// 20 iterations and short chains, to see that everything runs.
    #[arg(long)]
    pub quick: bool,
    /// Width of the two hidden layers.
    #[arg(long, default_value_t = 256)]
    pub width: usize,
    /// Steps of a training chain, K.
    #[arg(long, default_value_t = 10)]
    pub steps: usize,
    /// Step size of a chain, η.
    #[arg(long, default_value_t = 1.0)]
    pub step_size: f64,
    /// Noise of a chain, σ.
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
    /// Weight of the squared energies.
    #[arg(long, default_value_t = 0.0)]
    pub energy_magnitude: f64,
    /// Decay of averaged weights.
    #[arg(long, default_value_t = 0.99)]
    pub average_decay: f64,
    /// Steps of the chains that draw digits from the finished model; K/ρ unless given, which is what a training
    /// chain makes on average before it starts afresh.
    #[arg(long)]
    pub sample_steps: Option<usize>,
}

impl Options {
    /// Iterations of this run.
    pub fn iterations(&self) -> u64 {
        if self.quick { self.iterations.min(20) } else { self.iterations }
    }

    /// Steps of the chains for pictures.
    pub fn sample_steps(&self) -> usize {
        let life = (self.steps as f64 / self.restart.max(1e-3)).round() as usize;
        let steps = self.sample_steps.unwrap_or(life);
        if self.quick { steps.min(20) } else { steps }
    }
}
