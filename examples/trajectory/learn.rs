//! The two objectives, and one recipe for both.

use std::time::Instant;

use burn::module::Module;
use burn::optim::AdamConfig;
use burn::tensor::{Device, Tensor, TensorData, activation};
use jem_core::Result;
use jem_core::data::BatchSource;
use jem_core::energy::EnergyModel;
use jem_core::noise::{Noise, Stream};
use jem_core::objectives::{Loss, Objective};
use jem_core::samplers::{ImproperSgld, Inpainting, run};
use jem_core::schedule::Schedule;
use jem_core::train::{Trainer, TrainerConfig};
use rand::RngExt;

use crate::Options;
use crate::models::{FeedForward, WindowEnergy, clamped};
use crate::system::{Point, simulate};

/// What candidates for the next state are drawn from.
const CANDIDATES: Stream = Stream::new("trajectory/candidates");

/// Present and next states, `[batch, 2]` each.
#[derive(Debug, Clone)]
pub struct Windows {
    pub past: Tensor<2>,
    pub next: Tensor<2>,
}

/// Windows to draw batches from.
#[derive(Debug, Clone)]
pub struct Pairs {
    pub pairs: Vec<(Point, Point)>,
    batch: usize,
    device: Device,
}

impl Pairs {
    /// About `count` windows of 64 particles.
    pub fn simulated(count: usize, batch: usize, noise: &mut Noise, stream: Stream, device: &Device) -> Self {
        let paths = simulate(64, count.div_ceil(64), noise.rng(stream));
        let pairs = paths.iter().flat_map(|path| path.windows(2).map(|pair| (pair[0], pair[1])));
        Self { pairs: pairs.collect(), batch, device: device.clone() }
    }
}

impl BatchSource<Windows> for Pairs {
    fn batches_per_epoch(&self) -> u64 {
        (self.pairs.len() / self.batch).max(1) as u64
    }

    fn batch(&mut self, iteration: u64, noise: &mut Noise) -> Result<Windows> {
        let mut rng = noise.derived(Stream::DATA, iteration);
        let drawn: Vec<_> =
            (0..self.batch).map(|_| self.pairs[rng.random_range(0..self.pairs.len())]).collect();
        Ok(Windows {
            past: tensor(drawn.iter().map(|(past, _)| *past), &self.device),
            next: tensor(drawn.iter().map(|(_, next)| *next), &self.device),
        })
    }
}

/// Points as `[points, 2]`.
pub fn tensor(points: impl Iterator<Item = Point>, device: &Device) -> Tensor<2> {
    let values: Vec<f32> = points.flatten().map(|value| value as f32).collect();
    let count = values.len() / 2;
    Tensor::from_data(TensorData::new(values, [count, 2]), device)
}

/// Rows of `[points, 2]`.
pub fn points(x: Tensor<2>) -> Vec<Point> {
    let values: Vec<f64> = x.into_data().iter::<f64>().collect();
    values.chunks_exact(2).map(|row| [row[0], row[1]]).collect()
}

/// Noise-contrastive estimation by ranking: which of K + 1 candidates is the next state?
///
/// ```text
/// L = -log softmax_k(-E(x_t, y_k) - log q(y_k | x_t))[0],   y_0 = x_{t+1},   y_1 .. y_K ~ q = N(x_t, r² I)
/// ```
///
/// The normaliser, which is another number for every x_t, cancels, so that none need be learnt, and no chain is
/// needed. Source: Ma & Collins 2018, arXiv 1809.01812; for regression Gustafsson et al. 2020, arXiv 2005.01698.
#[derive(Debug, Clone)]
pub struct Ranking {
    pub candidates: usize,
    pub reach: f64,
}

impl Objective<WindowEnergy, Windows> for Ranking {
    type State = ();

    fn start(&self, _noise: &mut Noise, _device: &Device) -> Result<()> {
        Ok(())
    }

    fn loss(&self, model: &WindowEnergy, batch: &Windows, (): (), noise: &mut Noise) -> Result<(Loss, ())> {
        let Windows { past, next } = batch;
        let size = past.dims()[0];
        let draws = noise.normal([size * self.candidates, 2], CANDIDATES, &past.device());
        let others = past.clone().repeat_dim(0, self.candidates) + draws.mul_scalar(self.reach);
        let candidates = Tensor::cat(vec![next.clone(), others], 0);
        let past = past.clone().repeat_dim(0, 1 + self.candidates);
        let steps = (candidates.clone() - past.clone()).square().sum_dim(1).squeeze_dim::<1>(1);
        let minus_log_q = steps.mul_scalar(0.5 / self.reach.powi(2)); // up to a constant
        let scores = minus_log_q.autodiff() - model.of(past.autodiff(), candidates.autodiff());
        let scores = activation::log_softmax(scores.reshape([1 + self.candidates, size]), 0);
        Ok((Loss::new(scores.narrow(0, 0, 1).mean().neg()), ()))
    }
}

/// Contrastive divergence, the objective of the paper: mean E(windows) less mean E where short chains of the next state
/// lead that start at the true one. They tell the neighbourhood of a mode well, and how much mass each has badly.
#[derive(Debug, Clone)]
pub struct ShortChains {
    pub chain: ImproperSgld,
    pub steps: usize,
}

impl Objective<WindowEnergy, Windows> for ShortChains {
    type State = ();

    fn start(&self, _noise: &mut Noise, _device: &Device) -> Result<()> {
        Ok(())
    }

    fn loss(&self, model: &WindowEnergy, batch: &Windows, (): (), noise: &mut Noise) -> Result<(Loss, ())> {
        let data = Tensor::cat(vec![batch.past.clone(), batch.next.clone()], 1);
        let (_, clamp) = clamped(batch.past.clone())?;
        let sampler = Inpainting::new(self.chain.clone(), clamp);
        let samples = run(&sampler, &model.valid(), data.clone(), self.steps, noise);
        let gap = model.energy(data.autodiff()).mean() - model.energy(samples.autodiff()).mean();
        Ok((Loss::new(gap), ()))
    }
}

/// Maximum likelihood of the feed-forward model.
#[derive(Debug, Clone)]
pub struct Likelihood;

impl Objective<FeedForward, Windows> for Likelihood {
    type State = ();

    fn start(&self, _noise: &mut Noise, _device: &Device) -> Result<()> {
        Ok(())
    }

    fn loss(&self, model: &FeedForward, batch: &Windows, (): (), _noise: &mut Noise) -> Result<(Loss, ())> {
        let (past, next) = (batch.past.clone().autodiff(), batch.next.clone().autodiff());
        Ok((Loss::new(model.log_density(past, next).mean().neg()), ()))
    }
}

/// A trained model without autodiff, and the seconds that it took.
pub fn train<M: Module, O: Objective<M, Windows>>(
    model: M,
    objective: O,
    pairs: &Pairs,
    options: &Options,
    noise: Noise,
    device: &Device,
) -> Result<(M, f64)> {
    let started = Instant::now();
    let iterations = options.shortened(options.iterations, 30);
    let rate = Schedule::Cosine { from: options.learning_rate, to: 0.0, steps: iterations };
    let mut trainer = Trainer::new(objective, pairs.clone(), TrainerConfig::new(iterations));
    trainer = trainer.with_learning_rate(rate);
    let state = trainer.start(model, AdamConfig::new().init(), noise, device)?;
    let (state, outcome) = trainer.train(state)?;
    outcome.into_result(state.iteration)?;
    Ok((state.model.valid(), started.elapsed().as_secs_f64()))
}
