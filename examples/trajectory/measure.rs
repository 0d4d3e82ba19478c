//! What the models are worth at one step: likelihood by quadrature, and the error of a guess.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use jem_core::Result;
use jem_core::noise::Noise;
use jem_core::samplers::{
    Inpainting, Mala, MalaConfig, Mppi, MppiConfig, ParallelTempering, ParallelTemperingConfig, run,
};
use jem_core::schedule::Schedule;
use jem_eval::{GridDensity, GridQuadrature};

use crate::learn::{Pairs, points, tensor};
use crate::models::{FeedForward, WindowEnergy, clamped};
use crate::system::{Point, SPREAD, at_fork, log_density, mean_and_mode};

/// The rectangle that all states are in.
pub const WINDOW: [(f64, f64); 2] = [(-2.7, 2.7), (-1.8, 1.8)];
/// Transitions of a chain for one step of a roll-out, and steps of an MPPI search.
const TRANSITIONS: usize = 40;
const SEARCH: usize = 8;

/// Row, column and value of a table.
pub type Figure = (&'static str, &'static str, f64);

pub const TRUTH: &str = "the system itself";
pub const ENERGY: &str = "energy";
pub const SAMPLED: &str = "energy, sampled";
pub const PLANNED: &str = "energy, MPPI";
pub const GAUSSIAN: &str = "feed-forward";

/// Both models after training.
pub struct Trained {
    pub energy: WindowEnergy,
    pub gaussian: FeedForward,
    /// Seconds of training of each.
    pub seconds: (f64, f64),
}

/// How wrong the grid may be.
pub struct GridError {
    /// Mean and largest difference in log Z to a grid of twice as many cells a side.
    pub mean: f64,
    pub largest: f64,
    /// The largest mass in the cells at the edges.
    pub edge: f64,
    /// How far the mass of the system's own density is from 1 at most.
    pub truth: f64,
}

/// Cells of a little more than half a deviation of the noise.
pub fn grid() -> Result<GridQuadrature> {
    GridQuadrature::new(WINDOW[0], WINDOW[1], [90, 60])
}

/// p(x_{t+1} | x_t) on a grid.
pub fn density(
    model: &WindowEnergy,
    past: Point,
    grid: &GridQuadrature,
    device: &Device,
) -> Result<GridDensity> {
    let row = tensor([past].into_iter(), device);
    grid.density(device, |next| model.of(row.clone().repeat_dim(0, next.dims()[0]), next))
}

/// An exact sampler of two coordinates that may have several modes.
pub fn sampler() -> Result<ParallelTempering<Mala>> {
    let ladder = ParallelTemperingConfig::geometric(0.03, 4);
    let kernels =
        ladder.inverse_temperatures.iter().map(|beta| MalaConfig::new(0.5 * SPREAD.powi(2) / beta).init());
    let kernels = kernels.collect::<Result<Vec<_>>>()?;
    ladder.init_each(kernels)
}

/// A search for a likely next state, wide at first.
pub fn planner() -> Result<Mppi> {
    let narrowing = Schedule::Linear { from: 0.4, to: 0.05, steps: SEARCH as u64 - 1 };
    MppiConfig::new(narrowing).with_temperature(0.1).with_num_candidates(32).init()
}

/// Next states by the sampler.
pub fn sampled(model: &WindowEnergy, past: Tensor<2>, noise: &mut Noise) -> Result<Tensor<2>> {
    let (start, clamp) = clamped(past)?;
    let end = run(&Inpainting::new(sampler()?, clamp), model, start, TRANSITIONS, noise);
    Ok(end.narrow(1, 2, 2))
}

/// Next states by MPPI.
pub fn planned(model: &WindowEnergy, past: Tensor<2>, noise: &mut Noise) -> Result<Tensor<2>> {
    let (start, clamp) = clamped(past)?;
    let end = run(&Inpainting::new(planner()?, clamp), model, start, SEARCH, noise);
    Ok(end.narrow(1, 2, 2))
}

/// Likelihoods and errors of one step on held-out windows.
pub fn predictions(
    models: &Trained,
    held_out: &Pairs,
    noise: &mut Noise,
    device: &Device,
) -> Result<(Vec<Figure>, GridError)> {
    let windows = &held_out.pairs;
    let past = tensor(windows.iter().map(|(past, _)| *past), device);
    let next = tensor(windows.iter().map(|(_, next)| *next), device);
    let grid = grid()?;
    let refined = grid.refined()?;

    let mut error = GridError { mean: 0.0, largest: 0.0, edge: 0.0, truth: 0.0 };
    let (mut log_z, mut means, mut modes) = (Vec::new(), Vec::new(), Vec::new());
    let checked = windows.len().min(100);
    for (index, (past, _)) in windows.iter().enumerate() {
        let density = density(&models.energy, *past, &grid, device)?;
        if index < checked {
            let fine = self::density(&models.energy, *past, &refined, device)?;
            let difference = (fine.log_normaliser() - density.log_normaliser()).abs();
            error.mean += difference / checked as f64;
            error.largest = error.largest.max(difference);
            let mass = |next: Point| grid.cell_area() * log_density(*past, next).exp();
            let total: f64 = grid.points().into_iter().map(mass).sum();
            error.truth = error.truth.max((total - 1.0).abs());
        }
        error.edge = error.edge.max(density.edge_mass());
        log_z.push(density.log_normaliser());
        means.push([density.mean(|[x, _]| x), density.mean(|[_, y]| y)]);
        modes.push(density.mode());
    }
    let energies: Vec<f64> = models.energy.of(past.clone(), next.clone()).into_data().iter().collect();
    let energy_nll: Vec<f64> = energies.iter().zip(&log_z).map(|(energy, log_z)| energy + log_z).collect();
    let log_p = models.gaussian.log_density(past.clone(), next);
    let gaussian_nll: Vec<f64> = log_p.neg().into_data().iter().collect();
    let true_nll: Vec<f64> = windows.iter().map(|(past, next)| -log_density(*past, *next)).collect();
    let (true_means, true_modes): (Vec<Point>, Vec<Point>) =
        windows.iter().map(|(past, _)| mean_and_mode(*past)).unzip();
    let gaussian_means = points(models.gaussian.predict(past.clone()).0);
    let plans = points(planned(&models.energy, past, noise)?);

    let mut figures = Vec::new();
    let rows = [
        (TRUTH, &true_nll, &true_means, &true_modes),
        (ENERGY, &energy_nll, &means, &modes),
        (GAUSSIAN, &gaussian_nll, &gaussian_means, &gaussian_means),
    ];
    for (row, nll, means, modes) in rows {
        let nll_of = |wanted: &dyn Fn(Point) -> bool| {
            let chosen = windows.iter().zip(nll).filter(|((past, _), _)| wanted(*past)).map(|(_, nll)| *nll);
            mean(&chosen.collect::<Vec<_>>())
        };
        figures.push((row, "NLL, nats", nll_of(&|_| true)));
        figures.push((row, "at the fork", nll_of(&at_fork)));
        figures.push((row, "elsewhere", nll_of(&|state| !at_fork(state))));
        figures.push((row, "RMSE of mean", root_mean_square(windows, means)));
        figures.push((row, "of mode", root_mean_square(windows, modes)));
        if row == ENERGY {
            figures.push((row, "of MPPI", root_mean_square(windows, &plans)));
        }
    }
    for (row, count, seconds) in [
        (ENERGY, models.energy.num_params(), models.seconds.0),
        (GAUSSIAN, models.gaussian.num_params(), models.seconds.1),
    ] {
        figures.push((row, "parameters", count as f64));
        figures.push((row, "training, s", seconds));
    }
    Ok((figures, error))
}

fn root_mean_square(windows: &[(Point, Point)], predicted: &[Point]) -> f64 {
    let square = |((_, next), found): (&(Point, Point), &Point)| {
        (next[0] - found[0]).powi(2) + (next[1] - found[1]).powi(2)
    };
    mean(&windows.iter().zip(predicted).map(square).collect::<Vec<_>>()).sqrt()
}

/// NaN of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
