//! The data, training with one loss, and what is measured of the surface that it leaves.

use burn::module::Module;
use burn::optim::AdamConfig;
use burn::tensor::{Device, Tensor, TensorData};
use jem_core::Result;
use jem_core::data::BatchSource;
use jem_core::inference::{EnergyTable, PairEnergy};
use jem_core::noise::{Noise, Stream};
use jem_core::objectives::energy_based::{Candidates, EblLoss, EnergyBased, PairBatch};
use jem_core::schedule::Schedule;
use jem_core::train::{JsonLines, Record, Trainer, TrainerConfig, read_records};
use jem_plot::Field;
use rand::RngExt;

use crate::Options;
use crate::model::{Implicit, Regression};

/// The range of inputs, and that of answers, in pictures and for candidates.
pub const X: (f64, f64) = (-1.0, 1.0);
pub const Y: (f64, f64) = (-0.5, 1.5);
/// Candidate answers.
const CANDIDATES: usize = 41;
const BATCH: usize = 64;
const PAIRS: usize = 400;

/// y = x² + U(-0.2, 0.2).
pub struct Pairs {
    pub points: Vec<(f64, f64)>,
    device: Device,
}

impl Pairs {
    pub fn new(options: &Options, device: &Device) -> Result<Self> {
        let mut noise = Noise::host(options.seed);
        let rng = noise.rng(Stream::DATA);
        let points = (0..PAIRS).map(|_| {
            let x: f64 = rng.random_range(-1.0..1.0);
            (x, x * x + rng.random_range(-0.2..0.2))
        });
        Ok(Self { points: points.collect(), device: device.clone() })
    }
}

impl BatchSource<PairBatch<2, 2>> for &Pairs {
    fn batches_per_epoch(&self) -> u64 {
        (PAIRS / BATCH) as u64
    }

    fn batch(&mut self, iteration: u64, noise: &mut Noise) -> Result<PairBatch<2, 2>> {
        let mut rng = noise.derived(Stream::ORDER, iteration);
        let chosen: Vec<_> = (0..BATCH).map(|_| self.points[rng.random_range(0..PAIRS)]).collect();
        let of = |part: fn(&(f64, f64)) -> f64| column(chosen.iter().map(part), &self.device);
        Ok(PairBatch { x: of(|point| point.0), y: of(|point| point.1) })
    }
}

/// A surface, and what was measured of it.
pub struct Surface {
    pub title: String,
    pub loss: Option<EblLoss>,
    pub field: Field,
    /// Y*(x), the candidate of lowest energy.
    pub answers: Vec<(f64, f64)>,
    /// Mean distance of Y*(x) from x².
    pub error: f64,
    /// Mean over x of the highest less the lowest energy over y.
    pub range: f64,
    /// Mean over x of the highest energy over y.
    pub height: f64,
    /// Everything that the objective reported, by name, at every iteration.
    pub records: Vec<Record>,
}

/// A column of numbers.
fn column(values: impl Iterator<Item = f64>, device: &Device) -> Tensor<2> {
    let values: Vec<f32> = values.map(|value| value as f32).collect();
    let count = values.len();
    Tensor::from_data(TensorData::new(values, [count, 1]), device)
}

/// `count` numbers from one end of a range to the other.
fn evenly((low, high): (f64, f64), count: usize) -> Vec<f64> {
    (0..count).map(|i| low + (high - low) * i as f64 / (count - 1) as f64).collect()
}

/// The surface before training.
pub fn untrained(options: &Options, data: &Pairs) -> Result<Surface> {
    let model = Implicit::init(&mut Noise::host(options.seed), &data.device)?.valid();
    measure("before training".to_owned(), None, &model, Vec::new(), options, data)
}

/// Implicit regression, trained with a loss.
pub fn implicit(options: &Options, loss: EblLoss, data: &Pairs) -> Result<Surface> {
    let mut noise = Noise::host(options.seed);
    let model = Implicit::init(&mut noise, &data.device)?;
    train(format!("{} loss", loss.name()), loss, model, noise, options, data)
}

/// Regression, trained with a loss.
pub fn regression(options: &Options, loss: EblLoss, data: &Pairs) -> Result<Surface> {
    let mut noise = Noise::host(options.seed);
    let model = Regression::init(&mut noise, &data.device)?;
    train(format!("regression with the {} loss", loss.name()), loss, model, noise, options, data)
}

fn train<M: Module + PairEnergy<2, 2>>(
    title: String,
    loss: EblLoss,
    model: M,
    noise: Noise,
    options: &Options,
    data: &Pairs,
) -> Result<Surface> {
    let candidates = column(evenly(Y, CANDIDATES).into_iter(), &data.device);
    let objective = EnergyBased::new(loss, Candidates::new(candidates, options.epsilon)?)?;
    let iterations = options.shortened(options.iterations, 10);
    let log = options.out.join(format!("{}.jsonl", title.replace([' ', '-'], "_")));
    let rate = Schedule::Cosine { from: options.learning_rate, to: 0.0, steps: iterations };
    let mut trainer = Trainer::new(objective, data, TrainerConfig::new(iterations))
        .with_learning_rate(rate)
        .with_observer(JsonLines::create(&log)?);
    let state = trainer.start(model, AdamConfig::new().init(), noise, &data.device)?;
    let (state, outcome) = trainer.train(state)?;
    outcome.into_result(state.iteration)?;
    drop(trainer); // which still holds the log
    measure(title, Some(loss), &state.model.valid(), read_records(&log)?, options, data)
}

fn measure(
    title: String,
    loss: Option<EblLoss>,
    model: &impl PairEnergy<2, 2>,
    records: Vec<Record>,
    options: &Options,
    data: &Pairs,
) -> Result<Surface> {
    let cells = options.shortened(120, 20);
    let field = Field::of(X, Y, [cells, cells], &data.device, |points| {
        model.pair_energy(points.clone().narrow(1, 0, 1), points.narrow(1, 1, 1))
    })?;
    let (xs, ys) = (evenly(X, 81), evenly(Y, 201));
    let of = |values: &[f64]| column(values.iter().copied(), &data.device);
    let table = EnergyTable::of_candidates(model, of(&xs), of(&ys))?;
    let best: Vec<i64> = table.lowest().index.into_data().iter::<i64>().collect();
    let answers: Vec<(f64, f64)> = xs.iter().zip(best).map(|(x, best)| (*x, ys[best as usize])).collect();
    let error = answers.iter().map(|(x, y)| (y - x * x).abs()).sum::<f64>() / answers.len() as f64;
    let energies = table.energies().clone();
    let highest = energies.clone().max_dim(1);
    let mean = |energies: Tensor<2>| f64::from(energies.mean().into_scalar::<f32>());
    let (height, range) = (mean(highest.clone()), mean(highest - energies.min_dim(1)));
    Ok(Surface { title, loss, field, answers, error, range, height, records })
}
