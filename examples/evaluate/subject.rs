//! The model under evaluation: from a run of `cifar_jem`, or from the reference code.

use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use jem_core::energy::Classifier;
use jem_core::error::{Error, Result};
use jem_core::nn::WideResNet;
use jem_core::noise::Noise;
use jem_core::pytorch;
use jem_core::samplers::{
    ImproperSgld, ImproperSgldConfig, ReplayBuffer, ReplayConfig, SampleSource,
};
use jem_core::train::{Checkpoints, Saved};
use serde_json::{Value, json};

use crate::config::Recipe;
use crate::model::Network;
use crate::options::Options;
use crate::sets::Sets;

/// One of the networks that are read.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // one of them, for the whole run
pub enum Model {
    /// Of a run of `cifar_jem`.
    Run(Network),
    /// Of the reference code.
    Reference(WideResNet),
}

impl Classifier<4> for Model {
    fn logits(&self, x: Tensor<4>) -> Tensor<2> {
        match self {
            Self::Run(network) => network.logits(x),
            Self::Reference(network) => network.logits(x),
        }
    }
}

/// A trained model, its chains, and what they were made with.
pub struct Subject {
    /// In evaluation mode, without autodiff.
    pub model: Model,
    /// The replay buffer that training left.
    pub buffer: Option<ReplayBuffer<4>>,
    /// The sampler of the training run.
    pub sampler: ImproperSgld,
    /// Which model this is; results of another do not count.
    pub identity: Value,
    /// Where results go unless told otherwise.
    pub folder: PathBuf,
}

/// Reads the checkpoint that the command line names.
pub fn load(options: &Options, sets: &Sets, device: &Device) -> Result<Subject> {
    if options.checkpoint.is_file() {
        return reference(options, device);
    }
    if !options.checkpoint.exists() {
        let missing = std::io::Error::new(
            std::io::ErrorKind::NotFound,
            "no such run: `cargo run --release --example cifar_jem` makes one",
        );
        return Err(Error::io(&options.checkpoint, missing));
    }
    let checkpoints = options.checkpoint.join("checkpoints");
    let saved = match checkpoints.is_dir() {
        true => Checkpoints::latest(&checkpoints)?.0,
        false => Checkpoints::read(&options.checkpoint)?,
    };
    of_run(options, saved, sets, device)
}

fn of_run(options: &Options, saved: Saved, sets: &Sets, device: &Device) -> Result<Subject> {
    let configuration = saved.progress.configuration.clone();
    let recipe: Recipe = serde_json::from_value(configuration.clone())
        .map_err(|error| Error::checkpoint(&saved.path, format!("its configuration: {error}")))?;
    let [channels, _, _] = sets.test.image_shape();
    let mut noise = Noise::host(0);
    let network = Network::new(&recipe, sets.test.num_classes(), channels, &mut noise, device)?;
    let mut sampler =
        ImproperSgldConfig::new().with_step_size(recipe.step_size).with_noise_scale(recipe.noise);
    if recipe.gradient_clip > 0.0 {
        sampler = sampler.with_gradient_clip(recipe.gradient_clip);
    }
    let sampler = sampler.init()?;
    let replay = ReplayConfig::new(sets.test.image_shape()).with_capacity(recipe.buffer).init(sampler.clone())?;
    let buffer = SampleSource::<4>::start(&replay, &mut noise, device)?;
    let folder = match options.checkpoint.join("checkpoints").is_dir() {
        true => options.checkpoint.clone(),
        false => run_of(&saved.path),
    };
    Ok(Subject {
        model: Model::Run(saved.load_model(network)?.valid()),
        buffer: if recipe.weight_x + recipe.weight_xy > 0.0 { Some(saved.load_objective(buffer)?) } else { None },
        sampler,
        identity: json!({"checkpoint": saved.path, "iteration": saved.progress.iteration, "recipe": configuration}),
        folder,
    })
}

/// The run directory above `checkpoints/iteration-…`.
fn run_of(checkpoint: &Path) -> PathBuf {
    checkpoint.parent().and_then(Path::parent).unwrap_or(Path::new(".")).to_path_buf()
}

fn reference(options: &Options, device: &Device) -> Result<Subject> {
    let checkpoint = pytorch::read(&options.checkpoint, device)?;
    for key in &checkpoint.skipped {
        eprintln!("not used: {key}");
    }
    let bytes = std::fs::metadata(&options.checkpoint).map(|data| data.len()).unwrap_or_default();
    let sampler = ImproperSgldConfig::new()
        .with_step_size(options.settings.step_size)
        .with_noise_scale(options.settings.noise);
    Ok(Subject {
        model: Model::Reference(checkpoint.network.valid()),
        buffer: checkpoint.replay_buffer,
        sampler: sampler.init()?,
        identity: json!({"checkpoint": options.checkpoint, "bytes": bytes}),
        folder: PathBuf::from("runs/evaluate"),
    })
}
