//! The parts of an evaluation, one after the other.

use burn::module::Module;
use burn::tensor::{Device, Tensor, activation};
use jem_core::data::PixelRange;
use jem_core::energy::{Classifier, JointEnergy};
use jem_core::error::{Error, Result};
use jem_eval::FeatureExtractor;
use serde_json::json;

use crate::detection::{classification, detection};
use crate::ledger::Ledger;
use crate::model::device;
use crate::options::Options;
use crate::pages::Pages;
use crate::subject::{self, Model, Pooled, resnet_20};
use crate::{attacks, samples, sets};

/// Evaluates what the command line names.
pub fn run(options: &Options) -> Result<()> {
    let device = device(options.device.as_deref())?;
    let sets = sets::load(options)?;
    let subject = subject::load(options, &sets, &device)?;
    let folder = options.out.clone().unwrap_or_else(|| subject.folder.clone());
    std::fs::create_dir_all(&folder).map_err(|source| Error::io(&folder, source))?;

    let settings = &options.settings;
    let out: Vec<&str> = sets.out.iter().map(|set| set.name()).collect();
    let identity = json!({
        "model": subject.identity, "test": sets.test.name(), "test_images": sets.test.len(), "out": out,
        "settings": settings, "features": options.features, "jem-core": env!("CARGO_PKG_VERSION"),
    });
    let mut ledger = Ledger::open(&folder.join("evaluation.json"), identity.clone(), options.again);
    let joint = JointEnergy::new(&subject.model);

    let classification =
        ledger.part("classification", || classification(&subject.model, &sets.test, &device))?;
    let detection = ledger.part("detection", || detection(&joint, &sets.test, &sets.out, &device))?;
    let curves = attacks::curves(&mut ledger, &subject, &joint, &sets.test, settings, &device)?;
    let by_class = match settings.samples_per_class {
        0 => None,
        _ => Some(ledger.part("samples by class", || {
            samples::by_class(&subject, &joint, &sets.train, settings, &device)
        })?),
    };
    let (extractor, name) = extractor(options, &subject.model, sets.test.range(), &device)?;
    let distances = ledger.part("distances", || {
        samples::distances(&subject, &joint, &*extractor, &name, &sets.test, settings, &device)
    })?;
    let chains =
        ledger.part("chains", || samples::chains(&subject, &joint, &sets.test, settings, &device))?;

    let pages = Pages { classification, detection, curves, by_class, distances, chains };
    pages.print();
    let report = folder.join("report.html");
    pages.report(&identity, &sets.test)?.add_to(&report, "evaluation")?;
    println!("{}", report.display());
    Ok(())
}

/// The features that distances are measured in, and what to call them.
fn extractor<'a>(
    options: &Options,
    model: &'a Model,
    range: PixelRange,
    device: &Device,
) -> Result<(Box<dyn FeatureExtractor + 'a>, String)> {
    /// p(y|x) as features: the logits of samples far from data are too large to compare.
    struct Probabilities<'a>(&'a Model);
    impl FeatureExtractor for Probabilities<'_> {
        fn features(&self, images: Tensor<4>) -> Tensor<2> {
            activation::softmax(self.0.logits(images), 1)
        }
    }
    match &options.features {
        Some(path) => {
            let pooled = Pooled(resnet_20(path, range, device)?.valid());
            Ok((Box::new(pooled), "the pooled features of a CIFAR ResNet-20".to_owned()))
        }
        None => Ok((Box::new(Probabilities(model)), "the model's own p(y|x)".to_owned())),
    }
}
