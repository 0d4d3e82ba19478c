//! Min-sum and the forward algorithm on chains against the enumeration of every labelling.

use burn::tensor::{Device, Tensor, TensorData};
use jem_core::inference::{Chain, Labelling};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// A chain as plain numbers, beside the chain under test.
struct Case {
    unary: Vec<Vec<Vec<f64>>>,    // [batch][length][labels]
    pairwise: Vec<Vec<Vec<f64>>>, // [place][from][to]
    lengths: Vec<usize>,
    chain: Chain,
    leaves: (Tensor<3>, Tensor<3>),
}

const BATCH: usize = 2;

fn normals(rng: &mut ChaCha8Rng, count: usize) -> Vec<f32> {
    (0..count).map(|_| rng.sample::<f32, _>(StandardNormal)).collect()
}

fn nested(values: &[f32], inner: [usize; 2]) -> Vec<Vec<Vec<f64>>> {
    let rows = |block: &[f32]| -> Vec<Vec<f64>> {
        block.chunks(inner[1]).map(|row| row.iter().map(|v| f64::from(*v)).collect()).collect()
    };
    values.chunks(inner[0] * inner[1]).map(rows).collect()
}

fn case(length: usize, labels: usize, per_place: bool, seed: u64) -> Case {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let device = Device::default().autodiff();
    let places = if per_place { length - 1 } else { 1 };
    let unary = normals(&mut rng, BATCH * length * labels);
    let pairwise = normals(&mut rng, places * labels * labels);
    let lengths: Vec<usize> =
        (0..BATCH).map(|row| if row == 0 { length } else { rng.random_range(1..=length) }).collect();
    let data = TensorData::new(unary.clone(), [BATCH, length, labels]);
    let u = Tensor::<3>::from_data(data, &device).require_grad();
    let data = TensorData::new(pairwise.clone(), [places, labels, labels]);
    let v = Tensor::<3>::from_data(data, &device).require_grad();
    let chain = if per_place {
        Chain::with_positions(u.clone(), v.clone())
    } else {
        Chain::new(u.clone(), v.clone().squeeze_dim(0))
    };
    let chain = chain.unwrap().with_lengths(lengths.clone()).unwrap();
    let all = nested(&pairwise, [labels, labels]);
    let pairwise = (1..length).map(|t| all[if per_place { t - 1 } else { 0 }].clone()).collect();
    Case { unary: nested(&unary, [length, labels]), pairwise, lengths, chain, leaves: (u, v) }
}

/// Every labelling of one sequence with its energy, lowest first.
fn enumerate(case: &Case, row: usize, labels: usize) -> Vec<Labelling> {
    let length = case.lengths[row];
    let mut all: Vec<Labelling> = (0..labels.pow(length as u32))
        .map(|code| {
            let y: Vec<usize> = (0..length).map(|t| code / labels.pow(t as u32) % labels).collect();
            let mut energy = 0.0;
            for (t, label) in y.iter().enumerate() {
                energy += case.unary[row][t][*label];
                if t > 0 {
                    energy += case.pairwise[t - 1][y[t - 1]][*label];
                }
            }
            Labelling { labels: y, energy }
        })
        .collect();
    all.sort_by(|a, b| a.energy.total_cmp(&b.energy));
    all
}

/// Every chain of up to six positions and four labels, with one matrix and with one per place.
fn cases() -> Vec<(usize, Case)> {
    let mut cases = Vec::new();
    for length in 1..=6 {
        for labels in 1..=4 {
            cases.push((labels, case(length, labels, false, 100 * length as u64 + labels as u64)));
            if length > 1 {
                cases.push((labels, case(length, labels, true, 1_000 * length as u64 + labels as u64)));
            }
        }
    }
    cases
}

fn same(found: &Labelling, expected: &Labelling) {
    assert_eq!(found.labels, expected.labels);
    assert!((found.energy - expected.energy).abs() < 1e-9, "{found:?} {expected:?}");
}

#[test]
fn the_lowest_labellings_are_those_of_the_enumeration() {
    for (labels, case) in cases() {
        let (lowest, five) = (case.chain.lowest(), case.chain.k_lowest(5).unwrap());
        for row in 0..BATCH {
            let all = enumerate(&case, row, labels);
            same(&lowest[row], &all[0]);
            assert_eq!(five[row].len(), all.len().min(5));
            five[row].iter().zip(&all).for_each(|(found, expected)| same(found, expected));
        }
    }
}

#[test]
fn the_most_offending_labelling_is_the_best_that_differs() {
    for (labels, case) in cases() {
        for rank in 0..3 {
            let all: Vec<_> = (0..BATCH).map(|row| enumerate(&case, row, labels)).collect();
            let correct: Vec<Vec<usize>> =
                all.iter().map(|all| all[rank.min(all.len() - 1)].labels.clone()).collect();
            let found = case.chain.most_offending(&correct);
            if labels == 1 {
                assert!(found.unwrap_err().to_string().contains("Chain.labels = 1"));
                continue;
            }
            for (row, found) in found.unwrap().iter().enumerate() {
                let expected = all[row].iter().find(|y| y.labels != correct[row]).unwrap();
                same(found, expected);
            }
        }
    }
}

#[test]
fn energies_on_the_device_are_those_of_the_formula() {
    for (labels, case) in cases() {
        let all: Vec<_> = (0..BATCH).map(|row| enumerate(&case, row, labels)).collect();
        for pick in [0, 7, 100] {
            let y: Vec<&Labelling> = all.iter().map(|all| &all[pick % all.len()]).collect();
            let labellings: Vec<Vec<usize>> = y.iter().map(|y| y.labels.clone()).collect();
            let found: Vec<f64> = case.chain.energy(&labellings).unwrap().into_data().iter::<f64>().collect();
            for (found, y) in found.iter().zip(y) {
                assert!((found - y.energy).abs() < 1e-5, "{found} {y:?}");
            }
        }
    }
}

#[test]
fn the_free_energy_and_its_gradient_are_those_of_the_enumeration() {
    for beta in [0.5f64, 1.0, 2.5] {
        for (labels, case) in cases() {
            let free = case.chain.free_energy(beta).unwrap();
            let gradients = free.clone().sum().backward();
            let unary: Vec<f64> = case.leaves.0.grad(&gradients).unwrap().into_data().iter::<f64>().collect();
            let free: Vec<f64> = free.into_data().iter::<f64>().collect();
            let length = case.unary[0].len();
            let mut transitions = vec![0.0; labels * labels];
            for row in 0..BATCH {
                let all = enumerate(&case, row, labels);
                let z: f64 = all.iter().map(|y| (-beta * y.energy).exp()).sum();
                assert!((free[row] + z.ln() / beta).abs() < 1e-5, "{} {}", free[row], -z.ln() / beta);
                let mut marginal = vec![vec![0.0; labels]; length];
                for y in &all {
                    let p = (-beta * y.energy).exp() / z;
                    y.labels.iter().enumerate().for_each(|(t, label)| marginal[t][*label] += p);
                    y.labels.windows(2).for_each(|pair| transitions[pair[0] * labels + pair[1]] += p);
                }
                for (t, marginal) in marginal.iter().enumerate() {
                    for (label, p) in marginal.iter().enumerate() {
                        let found = unary[(row * length + t) * labels + label];
                        assert!((found - p).abs() < 1e-5, "position {t}, label {label}: {found}, not {p}");
                    }
                }
            }
            // With one matrix, its gradient is the expected number of each transition.
            if let Some(found) = case.leaves.1.grad(&gradients).filter(|found| found.dims()[0] == 1) {
                let found: Vec<f64> = found.into_data().iter::<f64>().collect();
                assert!(found.iter().zip(&transitions).all(|(a, b)| (a - b).abs() < 1e-5));
            }
        }
    }
}

#[test]
fn large_energies_do_not_overflow() {
    let device = Device::default();
    let unary = Tensor::<3>::full([1, 50, 3], 40.0, &device);
    let chain = Chain::new(unary, Tensor::zeros([3, 3], &device)).unwrap();
    let free = f64::from(chain.free_energy(10.0).unwrap().into_scalar::<f32>());
    let expected = 50.0 * (40.0 - 3f64.ln() / 10.0);
    assert!((free / expected - 1.0).abs() < 1e-5, "{free}, not {expected}");
}
