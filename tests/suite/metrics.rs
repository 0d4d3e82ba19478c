//! Metrics against scikit-learn, SciPy, NumPy and ArviZ, and what must hold for any input.
//!
//! The expected numbers are in `tests/reference/metrics.json`, which `metrics.py` beside it writes.

use std::path::Path;

use jem_eval::{
    Binning, ChainSet, ClassProbabilities, Features, GaussianFit, OodDetector, Predictions, RocCurve,
    Temperature, frechet_distance, inception_score, kernel_distance, nearest_neighbours,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Of the expected number, or of the largest of several.
const TOLERANCE: f64 = 1e-6;

/// The cases of one part of the reference.
fn reference<T: DeserializeOwned>(part: &str) -> Vec<T> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/metrics.json");
    let mut all: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    serde_json::from_value(all[part].take()).unwrap()
}

/// max |a - b| / max |b|; NaN if any entry is. Where all of b is 0, max |a| over rounding at 1.
fn residual(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let larger = |a: f64, b: f64| if a.is_nan() || b.abs() <= a { a } else { b.abs() };
    let scale = expected.iter().copied().fold(0.0, larger);
    let scale = if scale == 0.0 { 1e-6 } else { scale };
    found.iter().zip(expected).map(|(a, b)| a - b).fold(0.0, larger) / scale
}

/// Holds one case's numbers to the tolerance.
#[track_caller]
fn check(case: &str, what: &str, found: &[f64], expected: &[f64]) {
    let residual = residual(found, expected);
    println!("{case}: {what}: {residual:.1e}");
    assert!(residual <= TOLERANCE, "{case}: {what} is off by {residual:.1e}: {found:?}, not {expected:?}");
}

#[test]
fn residuals_notice_small_differences_and_nan() {
    assert_eq!(residual(&[1.0, -2.0], &[1.0, -2.0]), 0.0);
    assert!(residual(&[1.0, -2.00001], &[1.0, -2.0]) > TOLERANCE);
    assert!(residual(&[f64::NAN, 1.0], &[1.0, 1.0]).is_nan());
    assert!(residual(&[1e-9], &[0.0]) > TOLERANCE && residual(&[1e-15], &[0.0]) < TOLERANCE);
}

#[derive(Deserialize)]
struct Calibration {
    name: String,
    classes: usize,
    labels: Vec<usize>,
    logits: Option<Vec<f64>>,
    probabilities: Option<Vec<f64>>,
    accuracy: f64,
    nll: f64,
    brier: f64,
    errors: Vec<CalibrationErrors>,
}

/// Expected and maximum calibration error of each binning.
#[derive(Deserialize)]
struct CalibrationErrors {
    num_bins: usize,
    equal_width: [f64; 2],
    equal_mass: [f64; 2],
}

impl Calibration {
    fn predictions(&self) -> Predictions {
        match (&self.logits, &self.probabilities) {
            (Some(logits), None) => Predictions::from_logits(logits, self.classes, &self.labels),
            (None, Some(p)) => Predictions::from_probabilities(p, self.classes, &self.labels),
            _ => panic!("{} has either logits or probabilities", self.name),
        }
        .unwrap()
    }
}

fn calibration_errors(predictions: &Predictions, binning: Binning) -> [f64; 2] {
    let reliability = predictions.reliability(binning).unwrap();
    let count: usize = reliability.bins().iter().map(|bin| bin.count).sum();
    assert_eq!(count, predictions.len());
    [reliability.expected_calibration_error(), reliability.maximum_calibration_error()]
}

#[test]
fn calibration_agrees_with_numpy_and_scikit_learn() {
    let cases: Vec<Calibration> = reference("calibration");
    assert_eq!(cases.len(), 8);
    for case in &cases {
        let predictions = case.predictions();
        check(&case.name, "accuracy", &[predictions.accuracy()], &[case.accuracy]);
        check(&case.name, "NLL", &[predictions.negative_log_likelihood()], &[case.nll]);
        check(&case.name, "Brier score", &[predictions.brier_score()], &[case.brier]);
        for &CalibrationErrors { num_bins, equal_width, equal_mass } in &case.errors {
            let found = calibration_errors(&predictions, Binning::EqualWidth { num_bins });
            check(&case.name, &format!("calibration error, {num_bins} equal widths"), &found, &equal_width);
            let found = calibration_errors(&predictions, Binning::EqualMass { num_bins });
            check(&case.name, &format!("calibration error, {num_bins} equal masses"), &found, &equal_mass);
        }
    }
    // Negative control: one label moved.
    let case = &cases[0];
    let mut moved = case.labels.clone();
    moved[0] = 1 - moved[0];
    let moved = Predictions::from_logits(case.logits.as_ref().unwrap(), 2, &moved).unwrap();
    assert!(residual(&[moved.negative_log_likelihood()], &[case.nll]) > 100.0 * TOLERANCE);
    assert!(residual(&[moved.accuracy()], &[case.accuracy]) > 100.0 * TOLERANCE);
}

#[derive(Deserialize)]
struct Scaling {
    name: String,
    classes: usize,
    logits: Vec<f64>,
    labels: Vec<usize>,
    temperature: f64,
    nll: f64,
}

#[test]
fn temperatures_agree_with_scipy() {
    let cases: Vec<Scaling> = reference("temperature");
    assert_eq!(cases.len(), 5);
    for Scaling { name, classes, logits, labels, temperature, nll } in cases {
        let found = Temperature::fit(&logits, classes, &labels).unwrap();
        check(&name, "temperature", &[found.value()], &[temperature]);
        let likelihood = |temperature: Temperature| {
            let scaled = Predictions::from_logits(&temperature.apply(&logits), classes, &labels).unwrap();
            scaled.negative_log_likelihood()
        };
        check(&name, "NLL at it", &[likelihood(found)], &[nll]);
        for factor in [0.99, 1.01] {
            assert!(likelihood(Temperature::new(factor * found.value()).unwrap()) > likelihood(found));
        }
    }
}

#[derive(Deserialize)]
struct Detection {
    name: String,
    positives: Vec<f64>,
    negatives: Vec<f64>,
    auroc: f64,
    average_precision: f64,
    fpr95: f64,
    fpr80: f64,
    curve: Option<Vec<[f64; 3]>>,
}

#[test]
fn detection_agrees_with_scikit_learn() {
    let cases: Vec<Detection> = reference("detection");
    assert_eq!(cases.len(), 9);
    for case in &cases {
        let curve = RocCurve::new(&case.positives, &case.negatives).unwrap();
        check(&case.name, "AUROC", &[curve.auroc()], &[case.auroc]);
        check(&case.name, "average precision", &[curve.average_precision()], &[case.average_precision]);
        check(&case.name, "FPR95", &[curve.fpr95()], &[case.fpr95]);
        check(&case.name, "FPR80", &[curve.fpr_at_tpr(0.8).unwrap()], &[case.fpr80]);
        let points = curve.points();
        assert_eq!((points[0].threshold, points[0].true_positive_rate), (f64::INFINITY, 0.0));
        if let Some(expected) = &case.curve {
            let found: Vec<f64> = points[1..]
                .iter()
                .flat_map(|point| [point.threshold, point.true_positive_rate, point.false_positive_rate])
                .collect();
            check(&case.name, "curve", &found, expected.as_flattened());
        }
    }
    // Negative control: one score moved past the others.
    let mut moved = cases[0].positives.clone();
    moved[0] = if moved[0] > 1.0 { -9.0 } else { 9.0 };
    let moved = RocCurve::new(&moved, &cases[0].negatives).unwrap();
    assert!(residual(&[moved.auroc()], &[cases[0].auroc]) > 100.0 * TOLERANCE);
}

#[derive(Deserialize)]
struct Sets {
    name: String,
    dimension: usize,
    first: Vec<f64>,
    second: Vec<f64>,
    frechet: f64,
    kernel: f64,
    neighbour_distances: Vec<f64>,
    neighbour_indices: Vec<usize>,
}

#[test]
fn distances_between_sets_agree_with_scipy_and_scikit_learn() {
    let cases: Vec<Sets> = reference("sets");
    assert_eq!(cases.len(), 8);
    for case in cases {
        let first = Features::new(&case.first, case.dimension).unwrap();
        let second = Features::new(&case.second, case.dimension).unwrap();
        let fits = [&first, &second].map(|features| GaussianFit::new(features).unwrap());
        let found = frechet_distance(&fits[0], &fits[1]).unwrap();
        check(&case.name, "Fréchet distance", &[found], &[case.frechet]);
        check(&case.name, "kernel distance", &[kernel_distance(&first, &second).unwrap()], &[case.kernel]);
        let neighbours = nearest_neighbours(&second, &first, 2).unwrap().concat();
        let indices: Vec<usize> = neighbours.iter().map(|neighbour| neighbour.index).collect();
        assert_eq!(indices, case.neighbour_indices, "{}", case.name);
        let distances: Vec<f64> = neighbours.iter().map(|neighbour| neighbour.distance).collect();
        check(&case.name, "nearest neighbours", &distances, &case.neighbour_distances);
        // The fit survives the way through its moments.
        let again = GaussianFit::from_moments(fits[0].mean(), fits[0].covariance()).unwrap();
        assert_eq!(again, fits[0]);
    }
}

#[derive(Deserialize)]
struct Score {
    name: String,
    classes: usize,
    logits: Vec<f64>,
    splits: usize,
    mean: f64,
    standard_deviation: f64,
    counts: Vec<usize>,
}

#[test]
fn inception_scores_agree_with_scipy() {
    let cases: Vec<Score> = reference("inception_scores");
    assert_eq!(cases.len(), 4);
    for case in cases {
        let probabilities = ClassProbabilities::from_logits(&case.logits, case.classes).unwrap();
        let found = inception_score(&probabilities, case.splits).unwrap();
        check(&case.name, "Inception Score", &[found.mean], &[case.mean]);
        check(&case.name, "its deviation", &[found.standard_deviation], &[case.standard_deviation]);
        assert_eq!(probabilities.class_counts(), case.counts);
    }
}

#[derive(Deserialize)]
struct Chains {
    name: String,
    chains: usize,
    draws: Vec<f64>,
    rhat: f64,
    ess_bulk: f64,
    ess_tail: f64,
    ess_mean: f64,
    mcse_mean: f64,
    autocorrelation: Option<Vec<f64>>,
}

#[test]
fn chain_diagnostics_agree_with_arviz() {
    let cases: Vec<Chains> = reference("chains");
    assert_eq!(cases.len(), 16);
    for case in &cases {
        let set = ChainSet::new(&case.draws, case.chains).unwrap();
        check(&case.name, "R-hat", &[set.rhat().unwrap()], &[case.rhat]);
        check(&case.name, "ESS, bulk", &[set.ess_bulk().unwrap()], &[case.ess_bulk]);
        check(&case.name, "ESS, tail", &[set.ess_tail().unwrap()], &[case.ess_tail]);
        check(&case.name, "ESS, mean", &[set.ess_mean().unwrap()], &[case.ess_mean]);
        check(&case.name, "MCSE of the mean", &[set.mcse_mean().unwrap()], &[case.mcse_mean]);
        match &case.autocorrelation {
            Some(expected) => {
                let max_lag = expected.len() / case.chains - 1;
                let found = set.autocorrelation(max_lag).unwrap().concat();
                check(&case.name, "autocorrelation", &found, expected);
            }
            None => assert!(set.autocorrelation(1).is_err(), "{} has a chain that is stuck", case.name),
        }
    }
    // Negative control: the same draws dealt out to other chains.
    let case = cases.iter().find(|case| case.name == "one chain is elsewhere").unwrap();
    let mut dealt = case.draws.clone();
    dealt.rotate_left(25); // by the length of a half, the halves would be the same
    let dealt = ChainSet::new(&dealt, case.chains).unwrap();
    assert!(residual(&[dealt.rhat().unwrap()], &[case.rhat]) > 100.0 * TOLERANCE);
    assert!(residual(&[dealt.ess_mean().unwrap()], &[case.ess_mean]) > 100.0 * TOLERANCE);
}

/// Numbers that are no numbers, from a model that diverged, are refused by name and never become a score.
#[test]
fn one_nan_is_enough_to_be_refused() {
    let bad = [0.5f32, f32::NAN, 0.5, 0.5];
    let good = [0.5f32, 0.4, 0.5, 0.6];
    let labels = [0, 1, 0, 1];
    let refusals = [
        Predictions::from_logits(&bad, 1, &labels).err(),
        Predictions::from_probabilities(&bad, 2, &[0, 1]).err(),
        Temperature::fit(&bad, 2, &[0, 1]).err(),
        RocCurve::new(&bad, &good).err(),
        RocCurve::new(&good, &bad).err(),
        OodDetector::fit("energy", &bad, 0.05).err(),
        Features::new(&bad, 2).err(),
        ChainSet::new(&bad, 1).err(),
    ];
    for (number, refusal) in refusals.into_iter().enumerate() {
        let message = refusal.unwrap_or_else(|| panic!("number {number} was taken")).to_string();
        assert!(message.ends_with("[1] is not finite: NaN"), "{message}");
    }
}

fn scores() -> impl Strategy<Value = Vec<f64>> {
    // Whole numbers over a short range, so that there are ties, and others.
    prop::collection::vec(prop_oneof![(-5..5i32).prop_map(f64::from), -5.0..5.0f64], 1..40)
}

fn feature_set(dimension: usize) -> impl Strategy<Value = Features> {
    prop::collection::vec(prop::collection::vec(-10.0..10.0f64, dimension), 2..12)
        .prop_map(move |rows| Features::new(&rows.concat(), dimension).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    /// The AUROC is the share of pairs in the right order, whatever the scale of the score.
    #[test]
    fn auroc_counts_pairs(inside in scores(), outside in scores()) {
        let auroc = |a: &[f64], b: &[f64]| RocCurve::new(a, b).unwrap().auroc();
        let pairs = inside.iter().flat_map(|a| outside.iter().map(move |b| match a.total_cmp(b) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        }));
        let expected = pairs.sum::<f64>() / (inside.len() * outside.len()) as f64;
        let found = auroc(&inside, &outside);
        prop_assert!((found - expected).abs() < 1e-12);
        let monotone = |values: &[f64]| values.iter().map(|v| v.powi(3) + v).collect::<Vec<_>>();
        prop_assert!((auroc(&monotone(&inside), &monotone(&outside)) - found).abs() < 1e-12);
        prop_assert!((auroc(&outside, &inside) - (1.0 - found)).abs() < 1e-12);
    }

    /// A detector refuses at most the wished share of what it was fitted on, and its rate is a point of the curve.
    #[test]
    fn detectors_keep_their_rate(inside in scores(), outside in scores(), rate in 0.0..0.99f64) {
        let detector = OodDetector::fit("score", &inside, rate).unwrap();
        let share = |scores: &[f64]| {
            scores.iter().filter(|score| detector.is_out(**score)).count() as f64 / scores.len() as f64
        };
        prop_assert!(share(&inside) <= rate + 1e-9);
        let curve = RocCurve::new(&inside, &outside).unwrap();
        let on_curve = |point: &jem_eval::RocPoint| {
            (point.true_positive_rate - (1.0 - share(&inside))).abs() < 1e-12
                && (point.false_positive_rate - (1.0 - share(&outside))).abs() < 1e-12
        };
        prop_assert!(curve.points().iter().any(on_curve));
    }

    /// The calibration error does not depend on the order of the examples, nor exceed the maximum one.
    #[test]
    fn calibration_errors_ignore_order(
        examples in prop::collection::vec((0..=20u8, 0..2usize), 1..60),
        num_bins in 1..30usize,
    ) {
        let of = |examples: &[(u8, usize)]| {
            let p: Vec<f64> = examples.iter().flat_map(|(p, _)| [f64::from(*p), 20.0 - f64::from(*p)]).collect();
            let p: Vec<f64> = p.iter().map(|p| p / 20.0).collect();
            let labels: Vec<usize> = examples.iter().map(|(_, label)| *label).collect();
            Predictions::from_probabilities(&p, 2, &labels).unwrap()
        };
        let mut reversed = examples.clone();
        reversed.reverse();
        for binning in [Binning::EqualWidth { num_bins }, Binning::EqualMass { num_bins }] {
            let [expected, maximum] = calibration_errors(&of(&examples), binning);
            prop_assert!(expected <= maximum + 1e-12 && maximum <= 1.0);
            let [again, _] = calibration_errors(&of(&reversed), binning);
            prop_assert!((expected - again).abs() < 1e-12);
        }
    }

    /// Fréchet distances are 0 between equal sets, the same both ways, and not negative; a shift adds its square.
    /// Sets of few samples are singular, and there the distance depends on roots of rounding errors: 100 ε in a
    /// covariance is 1.5e-7 in each of three eigenvalues' roots, and twice the three are 1e-6 of the scale.
    #[test]
    fn frechet_distances_are_distances(first in feature_set(3), second in feature_set(3), shift in -5.0..5.0f64) {
        let [a, b] = [&first, &second].map(|features| GaussianFit::new(features).unwrap());
        let scale = a.covariance().iter().chain(b.covariance()).fold(1.0f64, |max, value| max.max(value.abs()));
        let tolerance = 1e-6 * scale;
        prop_assert!(frechet_distance(&a, &a).unwrap() < tolerance);
        let distance = frechet_distance(&a, &b).unwrap();
        prop_assert!(distance >= 0.0);
        prop_assert!((distance - frechet_distance(&b, &a).unwrap()).abs() < tolerance);
        let moved: Vec<f64> = first.rows().flatten().map(|value| value + shift).collect();
        let moved = GaussianFit::new(&Features::new(&moved, 3).unwrap()).unwrap();
        prop_assert!((frechet_distance(&a, &moved).unwrap() - 3.0 * shift * shift).abs() < tolerance);
    }

    /// Kernel distances are the same both ways, and do not depend on the order of the samples.
    #[test]
    fn kernel_distances_are_symmetric(first in feature_set(2), second in feature_set(2)) {
        let distance = kernel_distance(&first, &second).unwrap();
        let scale = first.rows().chain(second.rows()).map(|row| row.iter().map(|v| v * v).sum::<f64>());
        let scale = scale.fold(1.0, f64::max).powi(3);
        prop_assert!((distance - kernel_distance(&second, &first).unwrap()).abs() < 1e-12 * scale);
        let reversed: Vec<f64> = first.rows().collect::<Vec<_>>().into_iter().rev().flatten().copied().collect();
        let reversed = Features::new(&reversed, 2).unwrap();
        prop_assert!((distance - kernel_distance(&reversed, &second).unwrap()).abs() < 1e-12 * scale);
    }

    /// The scale of the draws does not matter, nor to ranks what else keeps their order.
    #[test]
    fn diagnostics_ignore_the_scale(draws in prop::collection::vec(-3.0..3.0f64, 40)) {
        let set = ChainSet::new(&draws, 2).unwrap();
        let curved: Vec<f64> = draws.iter().map(|x| x.exp()).collect();
        let curved = ChainSet::new(&curved, 2).unwrap();
        prop_assert!((set.ess_bulk().unwrap() - curved.ess_bulk().unwrap()).abs() < 1e-9);
        let wide: Vec<f64> = draws.iter().map(|x| 4.0 * x).collect(); // exact, so that no tie is torn
        let wide = ChainSet::new(&wide, 2).unwrap();
        prop_assert!((set.rhat().unwrap() - wide.rhat().unwrap()).abs() < 1e-9);
        prop_assert!((set.ess_mean().unwrap() / wide.ess_mean().unwrap() - 1.0).abs() < 1e-9);
        prop_assert!((4.0 * set.mcse_mean().unwrap() / wide.mcse_mean().unwrap() - 1.0).abs() < 1e-9);
    }
}
