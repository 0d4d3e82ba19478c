//! What a run is: three presets, and every knob of them as an option.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};
use jem_core::error::Error;
use jem_core::train::Saved;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chains::{Moves, Starts};

/// Train a joint energy model on CIFAR-10.
///
/// With no arguments it trains on the embedded subset (2,400 images) and ends within minutes. An option that is
/// not given takes its value from the preset.
#[derive(Debug, Parser)]
pub struct Cli {
    /// Where the defaults come from.
    #[arg(long, value_enum, default_value_t = Preset::Demo)]
    pub preset: Preset,
    /// Folder with the official CIFAR-10 binary files, or with IDX files as MNIST's; without it, the embedded subset.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Fetch the official archive into the folder of --data first, unless it is there.
    #[arg(long, requires = "data")]
    pub download: bool,
    /// Another address for the archive.
    #[arg(long, value_name = "URL", requires = "download")]
    pub url: Option<String>,
    /// The device; the first of those compiled in unless given (flex, tch, wgpu, vulkan, metal, webgpu, cuda, rocm, cpu).
    #[arg(long)]
    pub device: Option<String>,
    /// The run directory.
    #[arg(long, value_name = "DIR", default_value = "runs/cifar_jem")]
    pub out: PathBuf,
    /// Go on from the newest checkpoint in the run directory. The configuration is the saved one.
    #[arg(long)]
    pub resume: bool,
    /// Options of the recipe.
    #[command(flatten)]
    pub knobs: Knobs,
}

/// A set of defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// A small CNN and short chains: minutes on two CPU cores.
    Demo,
    /// WideResNet-10-1 with the chains of the reference recipe.
    Small,
    /// The reference recipe: WideResNet-28-10, 200 epochs. Needs a GPU and days.
    Paper,
}

/// The network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// 3x3 convolutions, all but the first with stride 2.
    Cnn,
    /// A wide residual network.
    Wrn,
}

/// What happens when a run diverges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnDivergence {
    /// End, with the last good weights in a checkpoint.
    Stop,
    /// Leave steps out, up to 20 in a row.
    Skip,
    /// Go back to the last good weights with half the learning rate, up to 5 times.
    Rollback,
}

macro_rules! knobs {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        /// The options of the recipe: each overrides the preset's value.
        #[derive(Debug, Clone, Args)]
        pub struct Knobs {
            $($(#[$doc])* #[arg(long, help_heading = "Recipe")] pub $name: Option<$kind>,)*
        }

        /// The recipe of a run, all values set.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub struct Recipe {
            /// Where the defaults came from.
            pub preset: Preset,
            $($(#[$doc])* pub $name: $kind,)*
        }

        impl Recipe {
            /// The preset with the options that were given.
            pub fn new(preset: Preset, knobs: &Knobs) -> Result<Self, Error> {
                let mut recipe = preset.recipe();
                $(if let Some(value) = knobs.$name.clone() { recipe.$name = value; })*
                recipe.with_fixed(knobs)
            }
        }
    };
}

knobs! {
    /// Seed of all randomness.
    seed: u64,
    /// The network.
    network: Architecture,
    /// Channels of the CNN, the first as given and doubled at each of the other layers.
    channels: usize,
    /// Convolutions of the CNN.
    layers: usize,
    /// Depth of the WideResNet, 6n + 4.
    depth: usize,
    /// Width factor of the WideResNet.
    width: usize,
    /// Batch norm in the WideResNet.
    batch_norm: bool,
    /// Passes over the p(x) set.
    epochs: u64,
    /// End after so many iterations, whatever the epochs; 0 for no such end.
    iterations: u64,
    /// Images in a p(x) batch.
    batch: usize,
    /// Images in a labelled batch.
    labelled_batch: usize,
    /// Images of each class that are labelled; 0 for all.
    labels_per_class: usize,
    /// Images of each class held out of the training set for validation.
    validation_per_class: usize,
    /// Images of each class to train on; 0 for all.
    train_per_class: usize,
    /// How a chain moves.
    sampler: Moves,
    /// Where fresh chains start.
    start: Starts,
    /// Steps of a chain, K.
    steps: usize,
    /// Step size of a chain.
    step_size: f64,
    /// Noise of a chain; --sampler proximal has none.
    noise: f64,
    /// Clip of each element of a chain's gradient; 0 for none. With --sampler proximal it is 1 unless given.
    gradient_clip: f32,
    /// Samples in the replay buffer.
    buffer: usize,
    /// Probability that a chain starts afresh.
    restart: f64,
    /// Sample the p(x) term given labels, from a buffer in class blocks.
    class_conditional: bool,
    /// Noise on training images.
    data_noise: f32,
    /// Reflect-pad and random crop, by so many pixels.
    crop_padding: usize,
    /// Random horizontal flips.
    flip: bool,
    /// Learning rate of Adam.
    learning_rate: f64,
    /// Iterations of linear warm-up.
    warmup: u64,
    /// Epochs at which the learning rate falls.
    decay_epochs: Epochs,
    /// What the learning rate is multiplied by there.
    decay_factor: f64,
    /// Weight of the cross-entropy.
    weight_yx: f64,
    /// Weight of the p(x) term.
    weight_x: f64,
    /// Weight of the p(x|y) term; needs --class-conditional.
    weight_xy: f64,
    /// Weight of the squared energies; 0.1 tames a run that blows up.
    energy_magnitude: f64,
    /// Decay of averaged weights; 0 for none.
    average_decay: f64,
    /// Draw noise on the device: faster on a GPU, other numbers on each backend.
    device_noise: bool,
    /// What happens on divergence.
    on_divergence: OnDivergence,
    /// Iterations between checkpoints.
    checkpoint_every: u64,
    /// Newest checkpoints that stay, beside the best.
    keep: usize,
}

/// A comma-separated list of epochs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Epochs(pub Vec<u64>);

impl std::str::FromStr for Epochs {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.split(',').filter(|part| !part.is_empty()).map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl Preset {
    /// The values of the preset.
    fn recipe(self) -> Recipe {
        let paper = Recipe {
            preset: self,
            seed: 1,
            network: Architecture::Wrn,
            channels: 64,
            layers: 3,
            depth: 28,
            width: 10,
            batch_norm: false,
            epochs: 200,
            iterations: 0,
            batch: 64,
            labelled_batch: 64,
            labels_per_class: 0,
            validation_per_class: 500,
            train_per_class: 0,
            sampler: Moves::Sgld,
            start: Starts::Uniform,
            steps: 20,
            step_size: 1.0,
            noise: 0.01,
            gradient_clip: 0.0,
            buffer: 10_000,
            restart: 0.05,
            class_conditional: false,
            data_noise: 0.03,
            crop_padding: 4,
            flip: true,
            learning_rate: 1e-4,
            warmup: 1_000,
            decay_epochs: Epochs(vec![160, 180]),
            decay_factor: 0.3,
            weight_yx: 1.0,
            weight_x: 1.0,
            weight_xy: 0.0,
            energy_magnitude: 0.0,
            average_decay: 0.0,
            device_noise: false,
            on_divergence: OnDivergence::Rollback,
            checkpoint_every: 500,
            keep: 3,
        };
        match self {
            Self::Paper => paper,
            Self::Small => Recipe {
                depth: 10,
                width: 1,
                epochs: 5,
                validation_per_class: 50,
                learning_rate: 1e-3,
                warmup: 50,
                decay_epochs: Epochs(vec![]),
                checkpoint_every: 100,
                ..paper
            },
            // A small weight on the p(x) term lets the classifier learn within minutes; the reference has 1.
            Self::Demo => Recipe {
                network: Architecture::Cnn,
                channels: 16,
                layers: 4,
                epochs: 5,
                validation_per_class: 0,
                batch: 16,
                steps: 10,
                buffer: 1_000,
                crop_padding: 2,
                learning_rate: 1e-3,
                warmup: 50,
                decay_epochs: Epochs(vec![]),
                weight_x: 0.05,
                checkpoint_every: 200,
                ..paper
            },
        }
    }
}

impl Recipe {
    /// The recipe of a saved run. Runs from before --sampler and --start had SGLD from uniform noise.
    pub fn of(saved: &Saved) -> Result<Self, Error> {
        let mut configuration = saved.progress.configuration.clone();
        if let Some(values) = configuration.as_object_mut() {
            for (name, before) in [("sampler", "sgld"), ("start", "uniform")] {
                values.entry(name).or_insert_with(|| Value::from(before));
            }
        }
        serde_json::from_value(configuration)
            .map_err(|error| Error::checkpoint(&saved.path, format!("its configuration: {error}")))
    }

    /// The channels of the CNN's layers.
    pub fn cnn_channels(&self) -> Result<Vec<usize>, Error> {
        if self.layers > 8 {
            return Err(Error::config("--layers", self.layers, "at most 8"));
        }
        Ok((0..self.layers).map(|layer| self.channels << layer).collect())
    }
}
