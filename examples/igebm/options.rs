//! The command line: data, network, chains, and how long.

use std::path::PathBuf;

use clap::Parser;
use serde::{Deserialize, Serialize};

/// Train a conditional energy on CIFAR-10 by contrastive divergence.
#[derive(Debug, Clone, Parser, Serialize, Deserialize)]
pub struct Options {
    /// Folder with the official CIFAR-10 binary files; without it, the embedded subset of 2,400 images.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The run directory.
    #[arg(long, value_name = "DIR", default_value = "runs/igebm")]
    #[serde(skip)]
    pub out: PathBuf,
    /// Go on from the newest checkpoint in the run directory. Options other than --iterations are the saved ones.
    #[arg(long)]
    #[serde(skip)]
    pub resume: bool,
    /// A few iterations of a tiny network, to see that everything runs.
    #[arg(long)]
    pub quick: bool,
    /// Training iterations.
    #[arg(long, default_value_t = 160)]
    pub iterations: u64,
    /// Seed of all randomness.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Images in a batch, and chains beside them.
    #[arg(long, default_value_t = 16)]
    pub batch: usize,
    /// Channels of each stage of the network.
    #[arg(long, value_delimiter = ',', default_value = "16,32,32")]
    pub channels: Vec<usize>,
    /// Residual blocks of each stage.
    #[arg(long, default_value_t = 1)]
    pub blocks: usize,
    /// Steps of a training chain, K.
    #[arg(long, default_value_t = 20)]
    pub steps: usize,
    /// Step size of a chain, η.
    #[arg(long, default_value_t = 10.0)]
    pub step_size: f64,
    /// Clip of each element of a chain's gradient.
    #[arg(long, default_value_t = 0.01)]
    pub gradient_clip: f32,
    /// Noise of a chain, σ.
    #[arg(long, default_value_t = 0.005)]
    pub noise: f64,
    /// Samples in the replay queue.
    #[arg(long, default_value_t = 1_000)]
    pub buffer: usize,
    /// Probability that a training chain starts afresh, ρ.
    #[arg(long, default_value_t = 0.05)]
    pub restart: f64,
    /// Learning rate of Adam.
    #[arg(long, default_value_t = 1e-3)]
    pub learning_rate: f64,
    /// Weight of the squared energies, α.
    #[arg(long, default_value_t = 1.0)]
    pub energy_magnitude: f64,
    /// Weight of the KL term through one more step; 0 for none.
    #[arg(long, default_value_t = 0.0)]
    pub kl: f64,
    /// Iterations between checkpoints.
    #[arg(long, default_value_t = 100)]
    pub checkpoint_every: u64,
    /// Steps of the chains for pictures.
    #[arg(long, default_value_t = 80)]
    pub sample_steps: usize,
    /// Test images for detection and classification.
    #[arg(long, default_value_t = 100)]
    pub test_images: usize,
    /// Steps of refinement before classifying.
    #[arg(long, default_value_t = 10)]
    pub refine: usize,
}

impl Options {
    /// With `--quick` everything is as small as it can be.
    pub fn shortened(mut self) -> Self {
        if self.quick {
            self.iterations = self.iterations.min(4);
            self.batch = self.batch.min(4);
            self.channels = vec![4, 4];
            self.steps = self.steps.min(2);
            self.buffer = self.buffer.min(20);
            self.sample_steps = self.sample_steps.min(2);
            self.test_images = self.test_images.min(10);
            self.refine = self.refine.min(1);
        }
        self
    }
}
