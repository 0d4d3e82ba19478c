//! Training with the ten losses: what collapses, what does not, and sequences.

use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Tensor, TensorData};
use jem_core::Result;
use jem_core::inference::{AnswerSearch, Chain, ChainEnergy, EnergyTable, PairEnergy};
use jem_core::noise::{Noise, Stream};
use jem_core::objectives::Objective;
use jem_core::objectives::energy_based::{
    AnswerSet, Candidates, EblLoss, EnergyBased, Labellings, PairBatch, Searched, SearchedConfig,
    SequenceBatch,
};
use jem_core::samplers::ImproperSgld;
use jem_nn::linear;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::values;

/// E(x, y) = ‖A(x) - B(y)‖² / 2 on features of x and y: implicit regression, which can be flat.
#[derive(Module, Debug)]
struct Implicit {
    of_x: Linear,
    of_y: Linear,
}

/// E(x, y) = (A(x) - y)² / 2: regression, which cannot.
#[derive(Module, Debug)]
struct Regression {
    of_x: Linear,
}

fn features(x: Tensor<2>) -> Tensor<2> {
    Tensor::cat(vec![x.clone(), x.square()], 1)
}

fn half_square(difference: Tensor<2>) -> Tensor<1> {
    difference.square().sum_dim(1).squeeze_dim(1).mul_scalar(0.5)
}

impl PairEnergy<2, 2> for Implicit {
    fn pair_energy(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<1> {
        half_square(self.of_x.forward(features(x)) - self.of_y.forward(features(y)))
    }
}

impl PairEnergy<2, 2> for Regression {
    fn pair_energy(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<1> {
        half_square(self.of_x.forward(features(x)) - y)
    }
}

fn implicit(device: &Device) -> Implicit {
    let (mut noise, device) = (Noise::host(3), device.clone().autodiff());
    let layer = LinearConfig::new(2, 2);
    Implicit {
        of_x: linear(&layer, &mut noise, &device).unwrap(),
        of_y: linear(&layer, &mut noise, &device).unwrap(),
    }
}

fn regression(device: &Device) -> Regression {
    let (mut noise, device) = (Noise::host(3), device.clone().autodiff());
    Regression { of_x: linear(&LinearConfig::new(2, 1), &mut noise, &device).unwrap() }
}

fn column(values: Vec<f32>, device: &Device) -> Tensor<2> {
    let count = values.len();
    Tensor::from_data(TensorData::new(values, [count, 1]), device)
}

/// y = x² ± 0.15 at 17 places of [-1, 1]: no surface but a flat one has the energy 0 for both.
fn parabola(device: &Device) -> PairBatch<2, 2> {
    let x: Vec<f32> = (0..34).map(|i| -1.0 + (i / 2) as f32 / 8.0).collect();
    let y = x.iter().enumerate().map(|(i, x)| x * x + if i % 2 == 0 { 0.15 } else { -0.15 }).collect();
    PairBatch { x: column(x, device), y: column(y, device) }
}

/// Answers from -1/4 to 5/4 in steps of 1/16.
fn grid(device: &Device) -> Tensor<2> {
    column((0..25).map(|i| i as f32 / 16.0 - 0.25).collect(), device)
}

fn train<M: Module, B, A: AnswerSet<M, B>>(
    model: M,
    batch: &B,
    loss: EblLoss,
    answers: A,
    steps: usize,
    rate: f64,
) -> M {
    let objective = EnergyBased::new(loss, answers).unwrap();
    let (mut model, mut optimizer, mut noise) = (model, AdamConfig::new().init(), Noise::host(9));
    for _ in 0..steps {
        let (loss, ()) = objective.loss(&model, batch, (), &mut noise).unwrap();
        let gradients = GradientsParams::from_grads(loss.total().backward(), &model);
        model = optimizer.step(rate, model, gradients);
    }
    model
}

/// How much the energy varies with y, and how far the best answer is from x², over all x.
fn judge(model: &impl PairEnergy<2, 2>, device: &Device) -> (f32, f32) {
    let batch = parabola(device);
    let table = EnergyTable::of_candidates(model, batch.x.clone(), grid(device)).unwrap();
    let energies = table.energies().clone();
    let range = (energies.clone().max_dim(1) - energies.min_dim(1)).mean().into_scalar::<f32>();
    let best: Vec<i64> = table.lowest().index.into_data().iter::<i64>().collect();
    let errors = best.iter().zip(values(batch.x)).map(|(best, x)| (*best as f32 / 16.0 - 0.25 - x * x).abs());
    (range, errors.sum::<f32>() / best.len() as f32)
}

#[test]
fn the_energy_loss_collapses_unless_the_architecture_forbids_it() {
    let device = Device::default();
    let batch = parabola(&device);
    let candidates = || Candidates::new(grid(&device), 0.35).unwrap();
    let before = judge(&implicit(&device).valid(), &device);
    let flat = train(implicit(&device), &batch, EblLoss::Energy, candidates(), 300, 0.05);
    let flat = judge(&flat.valid(), &device);
    // A regression cannot be flat in y, and learns with the same loss.
    let kept = train(regression(&device), &batch, EblLoss::Energy, candidates(), 300, 0.05);
    let kept = judge(&kept.valid(), &device);
    println!("range and error: {before:?} before, {flat:?} implicit, {kept:?} regression");
    assert!(flat.0 < 0.01 * before.0, "{flat:?}, {before:?} before");
    assert!(kept.0 > 0.2 && kept.1 < 0.05, "{kept:?}");
}

#[test]
fn losses_with_a_margin_keep_the_surface_and_learn() {
    let device = Device::default();
    let batch = parabola(&device);
    let candidates = || Candidates::new(grid(&device), 0.35).unwrap();
    for loss in [
        EblLoss::Hinge { margin: 0.5 },
        EblLoss::Log,
        EblLoss::NegativeLogLikelihood { inverse_temperature: 1.0 },
    ] {
        let model = train(implicit(&device), &batch, loss, candidates(), 300, 0.05);
        let (range, error) = judge(&model.valid(), &device);
        println!("{}: range {range}, error {error}", loss.name());
        assert!(range > 1.0 && error < 0.05, "{}: {range} {error}", loss.name());
    }
}

#[test]
fn a_search_finds_what_the_grid_finds() {
    let device = Device::default();
    let (batch, model) = (parabola(&device), implicit(&device));
    let fine = column((0..2_501).map(|i| -0.75 + i as f32 / 1_000.0).collect(), &device);
    let grid = Candidates::new(fine, 0.2).unwrap();
    // 64 starts: on either side of every correct answer there are some, with probability 1 - 1e-5.
    let searched = |num_starts, num_steps| -> Searched<ImproperSgld> {
        let descent = AnswerSearch::descent(0.05, num_steps).unwrap();
        SearchedConfig::new(0.2, -0.75, 1.75).with_num_starts(num_starts).init(descent).unwrap()
    };
    let search = searched(64, 200);
    let mut noise = Noise::host(4);
    let loss = EblLoss::Perceptron;
    let exact = grid.energies(&model, &batch, &loss, &mut noise).unwrap();
    let found = search.energies(&model, &batch, &loss, &mut noise).unwrap();
    let pairs = |a: Tensor<1>, b: Tensor<1>| values(a).into_iter().zip(values(b)).collect::<Vec<_>>();
    assert!(pairs(found.correct, exact.correct).iter().all(|(a, b)| a == b));
    for (search, grid) in pairs(found.offending, exact.offending) {
        // The grid ends at the box, which the search may leave: it may be lower, and never much higher.
        assert!(search < grid + 2e-3, "{search} {grid}");
    }
    for (search, grid) in pairs(found.lowest.unwrap(), exact.lowest.unwrap()) {
        assert!(search < grid + 1e-3, "{search} {grid}");
    }
    let likelihood = EblLoss::NegativeLogLikelihood { inverse_temperature: 1.0 };
    let error = search.energies(&model, &batch, &likelihood, &mut noise).unwrap_err().to_string();
    assert!(error.contains("negative log-likelihood") && error.contains("Candidates"), "{error}");
    let trained = train(model, &batch, EblLoss::Hinge { margin: 0.5 }, searched(8, 20), 40, 0.05);
    assert!(judge(&trained.valid(), &device).0 > 0.05);
}

#[test]
fn pairs_and_sequences_that_do_not_fit_are_named() {
    let device = Device::default();
    let (model, mut noise) = (implicit(&device), Noise::host(0));
    let candidates = Candidates::new(grid(&device), 0.35).unwrap();
    let pairs = |x: usize, y: [usize; 2]| PairBatch::<2, 2> {
        x: Tensor::zeros([x, 1], &device),
        y: Tensor::zeros(y, &device),
    };
    let mut message =
        |batch| candidates.energies(&model, &batch, &EblLoss::Log, &mut noise).unwrap_err().to_string();
    assert!(
        message(pairs(2, [3, 1]))
            .contains("PairBatch.y has shape [3, 1], expected as many answers as inputs")
    );
    assert!(message(pairs(2, [2, 2])).contains("shaped as the candidates"));
    let far = Candidates::new(grid(&device), 5.0).unwrap();
    let error = far.energies(&model, &pairs(1, [1, 1]), &EblLoss::Log, &mut noise).unwrap_err().to_string();
    assert!(error.contains("EnergyTable.epsilon = 5"), "{error}");
    for (config, field) in [
        (SearchedConfig::new(0.0, 0.0, 1.0), "SearchedConfig.epsilon = 0"),
        (SearchedConfig::new(0.1, 1.0, 1.0), "SearchedConfig.start = (1, 1)"),
        (SearchedConfig::new(0.1, 0.0, 1.0).with_num_starts(0), "SearchedConfig.num_starts = 0"),
    ] {
        let error = config.init(AnswerSearch::descent(0.1, 1).unwrap()).unwrap_err().to_string();
        assert!(error.contains(field), "{error}");
    }
    let tagger = tagger(&device);
    let mut batch = sequences(2, 1, &device);
    let mut message = |batch: &SequenceBatch<3>| {
        Labellings.energies(&tagger, batch, &EblLoss::Log, &mut noise).unwrap_err().to_string()
    };
    batch.labels[1] = vec![0; 13];
    assert!(message(&batch).contains("Chain.lengths = 13"));
    batch.labels[1] = vec![2];
    assert!(message(&batch).contains("label of sequence 1 = 2"));
    batch.labels.pop();
    assert!(message(&batch).contains("SequenceBatch.labels has shape [1]"));
}

/// Unary energies by one linear layer, transitions by a matrix.
#[derive(Module, Debug)]
struct Tagger {
    unary: Linear,
    transitions: Param<Tensor<2>>,
}

impl ChainEnergy<3> for Tagger {
    fn chain(&self, x: Tensor<3>) -> Result<Chain> {
        Chain::new(self.unary.forward(x), self.transitions.val())
    }
}

fn tagger(device: &Device) -> Tagger {
    let tracked = device.clone().autodiff();
    let unary = linear(&LinearConfig::new(1, 2), &mut Noise::host(0), &tracked).unwrap();
    Tagger { unary, transitions: Param::from_tensor(Tensor::zeros([2, 2], &tracked)) }
}

/// Labels that stay with probability 0.9, seen through noise of deviation 1; labels -1 and 1 by their means.
fn sequences(count: usize, seed: u64, device: &Device) -> SequenceBatch<3> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut labels = Vec::new();
    for _ in 0..count {
        let length = rng.random_range(6..=12);
        let mut label = rng.random_range(0..2usize);
        let mut sequence = Vec::new();
        for _ in 0..length {
            sequence.push(label);
            label = if rng.random::<f64>() < 0.9 { label } else { 1 - label };
        }
        labels.push(sequence);
    }
    let mut noise = Noise::host(seed);
    let means: Vec<f32> = labels
        .iter()
        .flat_map(|y: &Vec<usize>| (0..12).map(|t| y.get(t).map_or(0.0, |y| 2.0 * *y as f32 - 1.0)))
        .collect();
    let means = Tensor::<3>::from_data(TensorData::new(means, [count, 12, 1]), device);
    let x = means + noise.normal([count, 12, 1], Stream::DATA, device);
    SequenceBatch { x, labels }
}

/// The share of positions that are labelled wrong, by the whole chain and by each position alone.
fn tag_errors(model: &Tagger, batch: &SequenceBatch<3>) -> (f64, f64) {
    let lengths: Vec<usize> = batch.labels.iter().map(Vec::len).collect();
    let chain = model.chain(batch.x.clone()).unwrap().with_lengths(lengths.clone()).unwrap();
    let unary = model.unary.forward(batch.x.clone());
    let zeros = Tensor::zeros([2, 2], &batch.x.device());
    let alone = Chain::new(unary, zeros).unwrap().with_lengths(lengths).unwrap();
    let errors = |chain: &Chain| {
        let pairs = chain.lowest().into_iter().zip(&batch.labels);
        let wrong = pairs.map(|(found, y)| found.labels.iter().zip(y).filter(|(a, b)| a != b).count());
        wrong.sum::<usize>() as f64 / batch.labels.iter().map(Vec::len).sum::<usize>() as f64
    };
    (errors(&chain), errors(&alone))
}

#[test]
fn a_chain_learns_to_use_its_neighbours() {
    let device = Device::default();
    let (train_set, test_set) = (sequences(64, 1, &device), sequences(200, 2, &device));
    for loss in [
        EblLoss::NegativeLogLikelihood { inverse_temperature: 1.0 },
        EblLoss::Hinge { margin: 1.0 },
        EblLoss::Perceptron,
    ] {
        let model = train(tagger(&device), &train_set, loss, Labellings, 60, 0.1).valid();
        let (chain, alone) = tag_errors(&model, &test_set);
        println!("{}: {chain:.3} of positions wrong, {alone:.3} one by one", loss.name());
        // Knowing nothing is 0.5 wrong, and the best that a position knows on its own is 0.159.
        assert!(chain < 0.13, "{}: {chain} {alone}", loss.name());
    }
}
