//! What is evaluated, on what, and how hard.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use serde::{Deserialize, Serialize};

/// Evaluate a trained joint energy model.
#[derive(Debug, Parser)]
pub struct Options {
    /// A run directory of `cifar_jem`, one checkpoint folder of it, a PyTorch checkpoint of the reference code, or the
    /// weights of a CIFAR ResNet-20 as safetensors.
    #[arg(long, value_name = "PATH", default_value = "runs/cifar_jem")]
    pub checkpoint: PathBuf,
    /// Folder with the official CIFAR-10 or MNIST files; without it, the embedded CIFAR-10 subset.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Images from elsewhere: a file of CIFAR records (.bin) or IDX images. May be given several times. Interpolated
    /// test images and uniform noise are always among them.
    #[arg(long, value_name = "NAME=PATH")]
    pub ood: Vec<OutSet>,
    /// Where to write; without it, the run directory, or runs/evaluate for a PyTorch checkpoint.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Weights of a CIFAR ResNet-20 (safetensors) whose features distances between images are measured in; without
    /// them, the features are the model's own p(y|x), and distances compare samples of this model only.
    #[arg(long, value_name = "FILE")]
    pub features: Option<PathBuf>,
    /// The device; the first of those compiled in unless given.
    #[arg(long)]
    pub device: Option<String>,
    /// Forget what is in evaluation.json.
    #[arg(long)]
    pub again: bool,
    /// What the figures depend on.
    #[command(flatten)]
    pub settings: Settings,
}

/// The numbers that a result depends on; they are written beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, clap::Args)]
pub struct Settings {
    /// Seed of attacks and chains.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Images to test on; 0 for all.
    #[arg(long, default_value_t = 0)]
    pub test_images: usize,
    /// Test images that are attacked; 0 for no attack.
    #[arg(long, default_value_t = 100)]
    pub attacked: usize,
    /// Steps of an attack.
    #[arg(long, default_value_t = 20, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub attack_steps: usize,
    /// Random starts of an attack.
    #[arg(long, default_value_t = 1, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub restarts: usize,
    /// Radii of L-infinity attacks, in 1/255.
    #[arg(long, value_delimiter = ',', default_values_t = [2.0, 4.0, 8.0])]
    pub linf: Vec<f64>,
    /// Radii of L2 attacks, on [0, 1] pixels.
    #[arg(long, value_delimiter = ',', default_values_t = [0.1, 0.25, 0.5])]
    pub l2: Vec<f64>,
    /// Sampler steps before classification: 1 for JEM-1. Each is attacked beside the classifier as it stands.
    #[arg(long, value_delimiter = ',')]
    pub refine: Vec<usize>,
    /// Class-conditional samples of each class; 0 for none.
    #[arg(long, default_value_t = 10)]
    pub samples_per_class: usize,
    /// Steps of the chains that make them.
    #[arg(long, default_value_t = 100, value_parser = RangedU64ValueParser::<usize>::new().range(8..))]
    pub sample_steps: usize,
    /// Images on each side of a distance between samples and data.
    #[arg(long, default_value_t = 500, value_parser = RangedU64ValueParser::<usize>::new().range(4..))]
    pub distance_images: usize,
    /// Step size of the chains, where the checkpoint does not say.
    #[arg(long, default_value_t = 1.0)]
    pub step_size: f64,
    /// Noise of the chains, where the checkpoint does not say.
    #[arg(long, default_value_t = 0.01)]
    pub noise: f64,
}

/// A named set of images from elsewhere.
#[derive(Debug, Clone)]
pub struct OutSet {
    /// What it is called in tables.
    pub name: String,
    /// The file.
    pub path: PathBuf,
}

impl FromStr for OutSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.is_empty() && !path.is_empty() => {
                Ok(Self { name: name.to_owned(), path: path.into() })
            }
            _ => Err("write it as NAME=PATH".to_owned()),
        }
    }
}
