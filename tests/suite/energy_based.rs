//! The ten losses of energy-based learning against an independent computation in double precision.

use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use jem_core::data::JointBatch;
use jem_core::energy::{Classifier, ConditionalEnergy};
use jem_core::inference::EnergyTable;
use jem_core::noise::Noise;
use jem_core::objectives::energy_based::{
    AnswerEnergies, AnswerSet, Candidates, Classes, EblLoss, EnergyBased, Labels, Margin, ebl_terms,
};
use jem_core::objectives::{Loss, Objective, Reading};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::values;

const ANSWERS: usize = 4;
const CASES: usize = 20;

/// f(x) = x.
#[derive(burn::module::Module, Debug)]
struct Logits {
    unused: Vec<burn::nn::Linear>,
}

impl Classifier<2> for Logits {
    fn logits(&self, x: Tensor<2>) -> Tensor<2> {
        x
    }
}

impl ConditionalEnergy<2> for Logits {
    fn energy_given(&self, x: Tensor<2>, labels: Tensor<1, Int>) -> Tensor<1> {
        x.gather(1, labels.unsqueeze_dim(1)).squeeze_dim(1).neg()
    }
}

/// The formulas of the table, from the energies of all answers, as they stand.
fn formula(loss: &EblLoss, energies: &[f64], correct: usize) -> f64 {
    let e_c = energies[correct];
    let rivals = energies.iter().enumerate().filter(|(answer, _)| *answer != correct);
    let e_i = rivals.map(|(_, e)| *e).fold(f64::INFINITY, f64::min);
    let sum = |beta: f64| energies.iter().map(|e| (-beta * e).exp()).sum::<f64>();
    match *loss {
        EblLoss::Energy => e_c,
        EblLoss::Perceptron => e_c - energies.iter().copied().fold(f64::INFINITY, f64::min),
        EblLoss::Hinge { margin } => (margin + e_c - e_i).max(0.0),
        EblLoss::Log => (1.0 + (e_c - e_i).exp()).ln(),
        EblLoss::Lvq2 { cap } => (e_c - e_i).max(0.0).min(cap),
        EblLoss::MinimumClassificationError => 1.0 / (1.0 + (-(e_c - e_i)).exp()),
        EblLoss::SquareSquare { margin } => e_c.powi(2) + (margin - e_i).max(0.0).powi(2),
        EblLoss::SquareExponential { gamma } => e_c.powi(2) + gamma * (-e_i).exp(),
        EblLoss::NegativeLogLikelihood { inverse_temperature: b } => e_c + sum(b).ln() / b,
        EblLoss::MinimumEmpiricalError { inverse_temperature: b } => 1.0 - (-b * e_c).exp() / sum(b),
    }
}

/// Every loss, with parameters that are not 1.
fn losses() -> [EblLoss; 10] {
    [
        EblLoss::Energy,
        EblLoss::Perceptron,
        EblLoss::Hinge { margin: 0.7 },
        EblLoss::Log,
        EblLoss::Lvq2 { cap: 1.1 },
        EblLoss::MinimumClassificationError,
        EblLoss::SquareSquare { margin: 1.3 },
        EblLoss::SquareExponential { gamma: 0.6 },
        EblLoss::NegativeLogLikelihood { inverse_temperature: 1.7 },
        EblLoss::MinimumEmpiricalError { inverse_temperature: 0.8 },
    ]
}

/// Random energies, with a correct answer for each row.
fn random(seed: u64, answers: usize) -> (Vec<Vec<f32>>, Vec<usize>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let rows = (0..CASES).map(|_| (0..answers).map(|_| rng.random_range(-2.0..2.0)).collect()).collect();
    (rows, (0..CASES).map(|_| rng.random_range(0..answers)).collect())
}

/// The losses of all rows through a table, with the gradient of their sum.
fn found(loss: &EblLoss, rows: &[Vec<f32>], correct: &[usize]) -> (Vec<f32>, Vec<f32>) {
    let data = TensorData::new(rows.concat(), [rows.len(), rows[0].len()]);
    let leaf = Tensor::<2>::from_data(data, &Device::default().autodiff()).require_grad();
    let table = EnergyTable::new(leaf.clone()).unwrap();
    let mut energies = AnswerEnergies::new(
        table.of_answers(correct).unwrap(),
        table.most_offending(correct).unwrap().energy,
    );
    if loss.needs_lowest() {
        energies = energies.with_lowest(table.lowest().energy);
    }
    if let Some(beta) = loss.inverse_temperature() {
        energies = energies.with_free_energy(table.free_energy(beta).unwrap());
    }
    let value = loss.per_sample(&energies).unwrap();
    let gradients = value.clone().sum().backward();
    (values(value), values(leaf.grad(&gradients).unwrap()))
}

/// Central differences of the formula in double precision: their own error is below 1e-8.
fn slopes(loss: &EblLoss, row: &[f32], correct: usize) -> Vec<f64> {
    let row: Vec<f64> = row.iter().map(|e| f64::from(*e)).collect();
    let moved = |answer: usize, by: f64| {
        let mut row = row.clone();
        row[answer] += by;
        formula(loss, &row, correct)
    };
    (0..row.len()).map(|answer| (moved(answer, 1e-6) - moved(answer, -1e-6)) / 2e-6).collect()
}

#[test]
fn values_and_gradients_are_those_of_the_table() {
    for loss in losses() {
        let (rows, correct) = random(11, ANSWERS);
        let (value, gradient) = found(&loss, &rows, &correct);
        let mut pulled = 0;
        for (case, row) in rows.iter().enumerate() {
            let exact: Vec<f64> = row.iter().map(|e| f64::from(*e)).collect();
            let expected = formula(&loss, &exact, correct[case]);
            let near = |a: f32, b: f64| (f64::from(a) - b).abs() < 5e-6 * b.abs().max(1.0);
            assert!(near(value[case], expected), "{}: {} != {expected}", loss.name(), value[case]);
            for (answer, expected) in slopes(&loss, row, correct[case]).into_iter().enumerate() {
                let found = gradient[case * ANSWERS + answer];
                assert!(near(found, expected), "{} d/dE[{answer}]: {found} != {expected}", loss.name());
                pulled += usize::from(expected != 0.0);
            }
            // The formula of another answer would have been noticed.
            let other = formula(&loss, &exact, (correct[case] + 1) % ANSWERS);
            assert!(other == expected || !near(value[case], other), "{}", loss.name());
        }
        assert!(pulled > CASES / 4, "{} pulls {pulled} times", loss.name());
    }
}

#[test]
fn values_and_gradients_stay_finite_far_out() {
    for loss in losses() {
        for gap in [-1e4f32, -200.0, 200.0, 1e4] {
            let squares = matches!(loss, EblLoss::SquareExponential { .. }) && gap < 0.0;
            if squares {
                continue; // γ e^(-E_I) at E_I = -10,000 is what it says: out of range
            }
            let (value, gradient) = found(&loss, &[vec![0.0, gap, 1e3]], &[0]);
            let finite = value.iter().chain(&gradient).all(|number| number.is_finite());
            assert!(finite, "{} at {gap}: {value:?} {gradient:?}", loss.name());
        }
    }
}

#[test]
fn at_equal_energies_only_losses_with_a_margin_pull() {
    for loss in losses() {
        let (value, gradient) = found(&loss, &[vec![0.25; ANSWERS]], &[2]);
        let (correct, rivals) = (gradient[2], &gradient[..2]);
        let pushes = rivals.iter().any(|slope| *slope < -1e-3);
        match loss.margin() {
            Margin::None => assert!(correct == 1.0 && !pushes),
            Margin::Zero => assert_eq!(value, [0.0], "{}", loss.name()), // there is no less
            Margin::Of(_) | Margin::Positive => {
                assert!(correct > 1e-3 && pushes, "{} {gradient:?}", loss.name());
            }
        }
        assert_eq!(loss.flat_is_optimal(), matches!(loss.margin(), Margin::None | Margin::Zero));
    }
}

#[test]
fn margins_are_where_the_pull_ends() {
    for (loss, margin) in
        [(EblLoss::Hinge { margin: 0.75 }, 0.75f32), (EblLoss::SquareSquare { margin: 1.25 }, 1.25)]
    {
        assert_eq!(loss.margin(), Margin::Of(f64::from(margin)));
        let pull = |rival: f32| found(&loss, &[vec![0.0, rival]], &[0]).1[1];
        assert!(pull(margin - 0.01) < -1e-3 && pull(margin + 0.01) == 0.0, "{}", loss.name());
    }
}

#[test]
fn the_likelihood_is_softmax_cross_entropy() {
    let (rows, correct) = random(5, ANSWERS);
    let (value, gradient) =
        found(&EblLoss::NegativeLogLikelihood { inverse_temperature: 1.0 }, &rows, &correct);
    let logits: Vec<f32> = rows.concat().iter().map(|e| -e).collect();
    let logits = Tensor::<2>::from_data(TensorData::new(logits, [CASES, ANSWERS]), &Device::default());
    let log_p = values(activation::log_softmax(logits.clone(), 1));
    let p = values(activation::softmax(logits, 1));
    for (case, correct) in correct.iter().enumerate() {
        assert!((value[case] + log_p[case * ANSWERS + correct]).abs() < 1e-5);
        for answer in 0..ANSWERS {
            let at = case * ANSWERS + answer;
            let expected = f32::from(answer == *correct) - p[at]; // d/dE = -d/df
            assert!((gradient[at] - expected).abs() < 1e-5);
        }
    }
    // At another β it is not.
    let (other, _) = found(&EblLoss::NegativeLogLikelihood { inverse_temperature: 2.0 }, &rows, &correct);
    assert!(other.iter().zip(&value).any(|(a, b)| (a - b).abs() > 0.1));
}

#[test]
fn the_log_loss_of_two_classes_is_logistic_regression() {
    let (rows, correct) = random(6, 2);
    let (value, gradient) = found(&EblLoss::Log, &rows, &correct);
    for (case, row) in rows.iter().enumerate() {
        // The logit of class 1 is z = f_1 - f_0 = E_0 - E_1.
        let z = f64::from(row[0]) - f64::from(row[1]);
        let (y, p) = (correct[case] as f64, 1.0 / (1.0 + (-z).exp()));
        let expected = -(y * p.ln() + (1.0 - y) * (1.0 - p).ln());
        assert!((f64::from(value[case]) - expected).abs() < 1e-5);
        assert!((f64::from(gradient[2 * case]) - (p - y)).abs() < 1e-5);
    }
}

fn read(numbers: &[Reading], name: &str) -> f64 {
    numbers.iter().find(|number| number.name == name).unwrap_or_else(|| panic!("no {name}")).value
}

#[test]
fn the_objective_of_a_classifier_reports_its_terms() {
    let (rows, labels) = random(8, 3);
    let data: Vec<f32> = rows.concat().iter().map(|e| -e).collect(); // E = -f
    let labelled = Tensor::<2>::from_data(TensorData::new(data, [CASES, 3]), &Device::default());
    let batch = JointBatch { unlabelled: labelled.clone(), labelled, labels: labels.clone() };
    let model = Logits { unused: Vec::new() };
    let mut noise = Noise::host(0);
    for loss in losses() {
        let objective = EnergyBased::new(loss, Classes).unwrap();
        let (terms, ()) = objective.loss(&model, &batch, (), &mut noise).unwrap();
        let terms = terms.read();
        // The same numbers by one evaluation for each label.
        let labelled = EnergyBased::new(loss, Labels::new(3).unwrap()).unwrap();
        assert_eq!(labelled.loss(&model, &batch, (), &mut noise).unwrap().0.read(), terms);
        let (mut total, mut correct, mut offending, mut errors, mut violations) = (0.0, 0.0, 0.0, 0, 0);
        for (row, label) in rows.iter().zip(&labels) {
            let row: Vec<f64> = row.iter().map(|e| f64::from(*e)).collect();
            let rival = (0..3).filter(|c| c != label).map(|c| row[c]).fold(f64::INFINITY, f64::min);
            let margin = if let Margin::Of(margin) = loss.margin() { margin } else { 0.0 };
            total += formula(&loss, &row, *label) / CASES as f64;
            correct += row[*label] / CASES as f64;
            offending += rival / CASES as f64;
            errors += usize::from(rival <= row[*label]);
            violations += usize::from(rival <= row[*label] + margin);
        }
        let near = |name, expected: f64| {
            let found = read(&terms, name);
            assert!((found - expected).abs() < 1e-5, "{} {name}: {found}, not {expected}", loss.name());
        };
        near(Loss::TOTAL, total);
        near(ebl_terms::ENERGY_CORRECT, correct);
        near(ebl_terms::ENERGY_OFFENDING, offending);
        near(ebl_terms::ERRORS, errors as f64 / CASES as f64);
        near(ebl_terms::MARGIN_VIOLATIONS, violations as f64 / CASES as f64);
        assert!(errors > 0 && errors < CASES);
    }
}

#[test]
fn misfits_are_named() {
    let device = Device::default();
    let model = Logits { unused: Vec::new() };
    let mut noise = Noise::host(0);
    let x = Tensor::<2>::zeros([2, 3], &device);
    let batch = |labels| JointBatch { unlabelled: x.clone(), labelled: x.clone(), labels };
    let mut message =
        |labels| Classes.energies(&model, &batch(labels), &EblLoss::Log, &mut noise).unwrap_err().to_string();
    assert!(message(vec![0]).contains("JointBatch.labels has shape [1]"));
    assert!(message(vec![0, 3]).contains("correct answer = 3"));
    let energies = AnswerEnergies::new(Tensor::zeros([1], &device), Tensor::zeros([1], &device));
    for loss in [EblLoss::Perceptron, EblLoss::NegativeLogLikelihood { inverse_temperature: 1.0 }] {
        assert!(loss.per_sample(&energies).unwrap_err().to_string().contains(loss.name()));
    }
    assert!(EnergyBased::new(EblLoss::Hinge { margin: -1.0 }, Classes).is_err() && Labels::new(1).is_err());
    assert!(Candidates::new(Tensor::<2>::zeros([1, 1], &device), 0.0).is_err());
    assert!(Candidates::new(Tensor::<2>::zeros([2, 1], &device), -1.0).is_err());
}
