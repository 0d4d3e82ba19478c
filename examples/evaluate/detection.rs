//! Classification and calibration, and what the scores say of images from elsewhere.

use burn::tensor::Device;
use jem_core::data::ImageSet;
use jem_core::energy::JointEnergy;
use jem_core::error::Result;
use jem_eval::{
    Binning, LabelledLogits, OodDetector, Predictions, ReliabilityBin, RocCurve, Score, Temperature, predict,
    score_set,
};
use serde::{Deserialize, Serialize};

use crate::subject::Model;

/// Images that go through the network at once.
pub const BATCH: usize = 100;

/// The scores that are compared.
pub const SCORES: [Score; 4] =
    [Score::LogDensity, Score::Confidence, Score::ApproximateMass, Score::Energy { temperature: 2.0 }];

/// How right the classifier is, and how sure.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Classification {
    pub images: usize,
    pub accuracy: f64,
    pub negative_log_likelihood: f64,
    pub brier_score: f64,
    pub ece_equal_width: f64,
    pub ece_equal_mass: f64,
    /// What temperature scaling gains, or why there is none.
    pub scaled: Result<Scaled, String>,
    pub bins: Vec<ReliabilityBin>,
}

/// A temperature fitted on one half of the test set, and the expected calibration error on the other.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scaled {
    pub temperature: f64,
    pub ece_before: f64,
    pub ece_after: f64,
}

pub fn classification(model: &Model, test: &ImageSet, device: &Device) -> Result<Classification> {
    let logits = predict(model, test, BATCH, device)?;
    let predictions = logits.predictions()?;
    let width = predictions.reliability(Binning::default())?;
    let mass = predictions.reliability(Binning::EqualMass { num_bins: 20 })?;

    Ok(Classification {
        images: predictions.len(),
        accuracy: predictions.accuracy(),
        negative_log_likelihood: predictions.negative_log_likelihood(),
        brier_score: predictions.brier_score(),
        ece_equal_width: width.expected_calibration_error(),
        ece_equal_mass: mass.expected_calibration_error(),
        scaled: scaled(&logits).map_err(|error| error.to_string()),
        bins: width.bins().to_vec(),
    })
}

fn scaled(logits: &LabelledLogits) -> Result<Scaled> {
    let classes = logits.num_classes();
    let half = logits.len() / 2;
    let (fit, rest) = logits.logits().split_at(half * classes);
    let (fit_labels, rest_labels) = logits.labels().split_at(half);
    let temperature = Temperature::fit(fit, classes, fit_labels)?;
    let ece = |logits: &[f64]| -> Result<f64> {
        let predictions = Predictions::from_logits(logits, classes, rest_labels)?;
        Ok(predictions.reliability(Binning::default())?.expected_calibration_error())
    };
    let as_it_came: Vec<f64> = rest.iter().copied().map(f64::from).collect();
    Ok(Scaled {
        temperature: temperature.value(),
        ece_before: ece(&as_it_came)?,
        ece_after: ece(&temperature.apply(rest))?,
    })
}

/// One score on one set from elsewhere. The test set is the positive class.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Detection {
    pub set: String,
    pub images: usize,
    pub score: String,
    pub auroc: f64,
    pub average_precision: f64,
    pub fpr95: f64,
}

/// All scores on all sets, and what pictures of them need.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DetectionTable {
    pub rows: Vec<Detection>,
    /// log p(x) up to a constant, by set; the first is the test set.
    pub log_density: Vec<(String, Vec<f64>)>,
    /// False and true positive rates by the confidence, for each set from elsewhere.
    pub roc: Vec<(String, Vec<[f64; 2]>)>,
    /// Flags 5 % of the test images, by log p(x).
    pub detector: OodDetector,
}

pub fn detection(
    joint: &JointEnergy<&Model>,
    test: &ImageSet,
    out: &[ImageSet],
    device: &Device,
) -> Result<DetectionTable> {
    let inside = score_set(joint, test, &SCORES, BATCH, device)?;
    let of = |table: &jem_eval::ScoreTable, score| table.get(score).unwrap_or_default().to_vec();
    let mut table = DetectionTable {
        rows: Vec::new(),
        log_density: vec![("test images".to_owned(), of(&inside, Score::LogDensity))],
        roc: Vec::new(),
        detector: OodDetector::fit("log_density", &of(&inside, Score::LogDensity), 0.05)?,
    };
    for set in out {
        let outside = score_set(joint, set, &SCORES, BATCH, device)?;
        for score in SCORES {
            let curve = RocCurve::new(&of(&inside, score), &of(&outside, score))?;
            table.rows.push(Detection {
                set: set.name().to_owned(),
                images: set.len(),
                score: score.name(),
                auroc: curve.auroc(),
                average_precision: curve.average_precision(),
                fpr95: curve.fpr95(),
            });
            if score == Score::Confidence {
                let points = curve.points();
                let rates = points.iter().map(|point| [point.false_positive_rate, point.true_positive_rate]);
                table.roc.push((set.name().to_owned(), rates.collect()));
            }
        }
        table.log_density.push((set.name().to_owned(), of(&outside, Score::LogDensity)));
    }
    Ok(table)
}
