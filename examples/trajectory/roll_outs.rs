//! Roll-outs of the system and of each way to use the models, and where they go.

use burn::tensor::{Device, Tensor};
use jem_core::Result;
use jem_core::noise::{Noise, Stream};
use jem_eval::{Features, GaussianFit, frechet_distance, kernel_distance};

use crate::Options;
use crate::learn::{points, tensor};
use crate::measure::{Figure, GAUSSIAN, PLANNED, SAMPLED, TRUTH, Trained, WINDOW, mean, planned, sampled};
use crate::models::FeedForward;
use crate::system::{Point, SPREAD, is_off, right, simulate};

/// What the feed-forward model's roll-outs are drawn from.
const ROLL_OUTS: Stream = Stream::new("trajectory/roll-outs");
/// Cells of the histograms that are compared, 0.15 wide.
const CELLS: [usize; 2] = [36, 24];

/// Rows of paths: `[particle][time]`.
pub type Paths = Vec<Vec<Point>>;

/// Roll-outs of the system and of each way to use the models.
pub struct RollOuts {
    pub named: Vec<(&'static str, Paths)>,
}

/// Next states of the feed-forward model.
fn drawn(model: &FeedForward, past: Tensor<2>, noise: &mut Noise) -> Result<Tensor<2>> {
    let draws = noise.normal(past.dims(), ROLL_OUTS, &past.device());
    let (mean, log_variance) = model.predict(past);
    Ok(mean + draws * log_variance.mul_scalar(0.5).exp())
}

/// Paths of `step` from states, `steps + 1` states of each particle.
fn roll_out(
    start: &[Point],
    steps: usize,
    device: &Device,
    mut step: impl FnMut(Tensor<2>) -> Result<Tensor<2>>,
) -> Result<Paths> {
    let mut paths: Paths = start.iter().map(|state| vec![*state]).collect();
    let mut x = tensor(start.iter().copied(), device);
    for _ in 0..steps {
        x = step(x)?;
        for (path, state) in paths.iter_mut().zip(points(x.clone())) {
            path.push(state);
        }
    }
    Ok(paths)
}

/// Rolls out everything from states of the system.
pub fn all(models: &Trained, options: &Options, noise: &mut Noise, device: &Device) -> Result<RollOuts> {
    let steps = options.shortened(options.steps, 5);
    let particles = options.shortened(options.particles, 16);
    let truth = simulate(particles, steps, noise.rng(Stream::new("trajectory/true roll-outs")));
    let start: Vec<Point> = truth.iter().map(|path| path[0]).collect();
    let mut named = vec![(TRUTH, truth)];
    named.push((SAMPLED, roll_out(&start, steps, device, |x| sampled(&models.energy, x, noise))?));
    named.push((PLANNED, roll_out(&start, steps, device, |x| planned(&models.energy, x, noise))?));
    named.push((GAUSSIAN, roll_out(&start, steps, device, |x| drawn(&models.gaussian, x, noise))?));
    Ok(RollOuts { named })
}

/// Distances of the distributions of states, the first quarter of each path left out, to another simulation.
pub fn distances(rolled: &RollOuts, noise: &mut Noise) -> Result<Vec<Figure>> {
    let (particles, steps) = (rolled.named[0].1.len(), rolled.named[0].1[0].len() - 1);
    let reference = simulate(particles, steps, noise.rng(Stream::new("trajectory/reference")));
    let expected = histogram(&reference, CELLS);
    let reference = features(&settled(&reference))?;
    let fit = GaussianFit::new(&reference)?;
    let mut figures = Vec::new();
    for (name, paths) in &rolled.named {
        let states = settled(paths);
        let features = features(&states)?;
        let share = |wanted: fn(Point) -> bool| {
            let count = states.iter().filter(|state| wanted(**state)).count();
            100.0 * count as f64 / states.len() as f64
        };
        figures.push((*name, "Fréchet", frechet_distance(&fit, &GaussianFit::new(&features)?)?));
        figures.push((*name, "kernel", kernel_distance(&reference, &features)?));
        figures.push((*name, "misplaced, %", 100.0 * misplaced(&expected, &histogram(paths, CELLS))));
        figures.push((*name, "on the right, %", share(|state| state[0] > 0.0)));
        figures.push((*name, "between the roads, %", between(paths)));
        figures.push((*name, "off the roads, %", share(is_off)));
        figures.push((*name, "spread about the road", spread(&states)));
    }
    Ok(figures)
}

/// Of the steps from where the choice is open, the share that end within a deviation of the line between the roads.
fn between(paths: &Paths) -> f64 {
    let at_fork = |pair: &&[Point]| (0.3..=0.7).contains(&right(pair[0]));
    let steps = paths.iter().flat_map(|path| path.windows(2)).filter(at_fork);
    let ends: Vec<f64> = steps.map(|pair| if pair[1][0].abs() < SPREAD { 100.0 } else { 0.0 }).collect();
    mean(&ends)
}

/// The share of states in each cell of the window, the first quarter of each path left out.
pub fn histogram(paths: &Paths, cells: [usize; 2]) -> Vec<f64> {
    let mut shares = vec![0.0; cells[0] * cells[1]];
    let states = || paths.iter().flat_map(|path| &path[path.len() / 4..]);
    let part = 1.0 / states().count() as f64;
    for state in states() {
        let place = |axis: usize| {
            let (low, high) = WINDOW[axis];
            let part = (state[axis] - low) / (high - low);
            (0.0..1.0).contains(&part).then(|| (part * cells[axis] as f64) as usize)
        };
        if let (Some(column), Some(row)) = (place(0), place(1)) {
            shares[row * cells[0] + column] += part;
        }
    }
    shares
}

/// The mass that would have to be moved to make one histogram the other: their total variation distance.
fn misplaced(first: &[f64], second: &[f64]) -> f64 {
    let lost = (first.iter().sum::<f64>() - second.iter().sum::<f64>()).abs();
    0.5 * (first.iter().zip(second).map(|(a, b)| (a - b).abs()).sum::<f64>() + lost)
}

/// Root mean square distance of states from the nearer road.
fn spread(states: &[Point]) -> f64 {
    let square = |[x, y]: &Point| ((x.abs() - 1.0).hypot(*y) - 1.0).powi(2);
    mean(&states.iter().map(square).collect::<Vec<_>>()).sqrt()
}

/// Every fifth state after the first quarter of each path.
fn settled(paths: &Paths) -> Vec<Point> {
    paths.iter().flat_map(|path| path[path.len() / 4..].iter().step_by(5).copied()).collect()
}

fn features(states: &[Point]) -> Result<Features> {
    Features::new(&states.iter().flatten().copied().collect::<Vec<f64>>(), 2)
}
