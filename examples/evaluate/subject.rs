//! The model under evaluation: from a run of `cifar_jem`, from the reference code, or a classifier from elsewhere.

use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use jem_core::data::PixelRange;
use jem_core::energy::Classifier;
use jem_core::error::{Error, Result};
use jem_core::noise::Noise;
use jem_core::samplers::{ImproperSgldConfig, ReplayBuffer, ReplayConfig, SampleSource, UniformStart};
use jem_core::train::{Checkpoints, Saved};
use jem_eval::FeatureExtractor;
use jem_nn::pytorch;
use jem_nn::{CifarResNet, CifarResNetConfig, Normalized, WeightLayout, Weights, WideResNet};
use serde_json::{Value, json};

use crate::chains::{Chain, Start};
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
    /// A classifier that was never trained as a joint model.
    Classifier(Normalized<CifarResNet>),
}

impl Classifier<4> for Model {
    fn logits(&self, x: Tensor<4>) -> Tensor<2> {
        match self {
            Self::Run(network) => network.logits(x),
            Self::Reference(network) => network.logits(x),
            Self::Classifier(network) => network.logits(x),
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
    pub sampler: Chain,
    /// Where its fresh chains start.
    pub start: Start,
    /// Which model this is; results of another do not count.
    pub identity: Value,
    /// Where results go unless told otherwise.
    pub folder: PathBuf,
}

/// Reads the checkpoint that the command line names.
pub fn load(options: &Options, sets: &Sets, device: &Device) -> Result<Subject> {
    if options.checkpoint.is_file() {
        return from_file(options, sets, device);
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
    let recipe = Recipe::of(&saved)?;
    let [channels, _, _] = sets.test.image_shape();
    let mut noise = Noise::host(0);
    let network = Network::new(&recipe, sets.test.num_classes(), channels, &mut noise, device)?;
    let sampler = Chain::new(&recipe, sets.test.range())?;
    let labelled = match recipe.labels_per_class {
        0 => sets.train.clone(),
        count => sets.train.take_per_class(count)?,
    };
    let start = Start::new(&recipe, &labelled, device)?;
    let replay =
        ReplayConfig::new(sets.test.image_shape()).with_capacity(recipe.buffer).init(sampler.clone())?;
    let buffer = SampleSource::<4>::start(&replay, &mut noise, device)?;
    let folder = match options.checkpoint.join("checkpoints").is_dir() {
        true => options.checkpoint.clone(),
        false => run_of(&saved.path),
    };
    Ok(Subject {
        model: Model::Run(saved.load_model(network)?.valid()),
        buffer: if recipe.weight_x + recipe.weight_xy > 0.0 {
            Some(saved.load_objective(buffer)?)
        } else {
            None
        },
        sampler,
        start,
        identity: json!({
            "checkpoint": saved.path, "iteration": saved.progress.iteration,
            "recipe": saved.progress.configuration,
        }),
        folder,
    })
}

/// The run directory above `checkpoints/iteration-…`.
fn run_of(checkpoint: &Path) -> PathBuf {
    checkpoint.parent().and_then(Path::parent).unwrap_or(Path::new(".")).to_path_buf()
}

/// A file of weights; what made it does not say how to sample from it.
fn from_file(options: &Options, sets: &Sets, device: &Device) -> Result<Subject> {
    let path = &options.checkpoint;
    let (model, buffer) = if path.extension().is_some_and(|extension| extension == "safetensors") {
        (Model::Classifier(resnet_20(path, sets.test.range(), device)?.valid()), None)
    } else {
        let checkpoint = pytorch::read(path, device)?;
        for key in &checkpoint.skipped {
            eprintln!("not used: {key}");
        }
        (Model::Reference(checkpoint.network.valid()), checkpoint.replay_buffer)
    };
    let bytes = std::fs::metadata(path).map(|data| data.len()).unwrap_or_default();
    let sampler = ImproperSgldConfig::new()
        .with_step_size(options.settings.step_size)
        .with_noise_scale(options.settings.noise);
    Ok(Subject {
        model,
        buffer,
        sampler: Chain::Sgld(sampler.init()?),
        start: Start::Uniform(UniformStart::new(sets.test.range().low(), sets.test.range().high())?),
        identity: json!({"checkpoint": path, "bytes": bytes}),
        folder: PathBuf::from("runs/evaluate"),
    })
}

/// A CIFAR ResNet-20 with weights from elsewhere, behind the normalisation that such weights are trained with.
pub fn resnet_20(path: &Path, range: PixelRange, device: &Device) -> Result<Normalized<CifarResNet>> {
    let net = CifarResNetConfig::new(10).init(&mut Noise::host(0), device)?;
    let net = Weights::read_safetensors(path)?.renamed(own_name)?.load_into(net, WeightLayout::PyTorch)?;
    Normalized::new(net, range, &[0.485, 0.456, 0.406], &[0.229, 0.224, 0.225])
}

fn own_name(key: &str) -> String {
    let key =
        key.replace("layer", "group").replace("linear.", "class_output.").replace("fc.", "class_output.");
    match key.strip_prefix("bn1.") {
        Some(rest) => format!("norm.{rest}"),
        None => key.replace(".bn", ".norm"),
    }
}

/// The last layer before the logits, as features.
pub struct Pooled(pub Normalized<CifarResNet>);

impl FeatureExtractor for Pooled {
    fn features(&self, images: Tensor<4>) -> Tensor<2> {
        self.0.classifier.features(self.0.normalise(images))
    }
}
