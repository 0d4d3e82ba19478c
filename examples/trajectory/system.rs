//! The system: a noisy particle on two circular roads that touch, with its exact transition density.

use std::f64::consts::TAU;

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

/// A state, or any point of the plane.
pub type Point = [f64; 2];

/// The angle that is covered in a step, ω.
const TURN: f64 = 0.8;
/// What is left of a distance to the road after a step, κ.
const PULL: f64 = 0.3;
/// Standard deviation of each coordinate's noise, s.
pub const SPREAD: f64 = 0.1;
/// How far from the line between the roads the choice is still open, w.
const WIDTH: f64 = 0.05;
/// A state counts as off the roads at this distance, about four deviations.
const OFF: f64 = 0.4;

/// Left and right.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Road {
    Left,
    Right,
}

/// The probability of the right road.
pub fn right([x, _]: Point) -> f64 {
    1.0 / (1.0 + (-x / WIDTH).exp())
}

/// Whether each road has a probability of a twentieth or more, so that the next state has two modes.
pub fn at_fork(state: Point) -> bool {
    (0.05..=0.95).contains(&right(state))
}

/// Whether a state is on neither road.
pub fn is_off(state: Point) -> bool {
    [Road::Left, Road::Right].into_iter().all(|road| (radius(state, road) - 1.0).abs() > OFF)
}

fn centre(road: Road) -> f64 {
    if road == Road::Left { -1.0 } else { 1.0 }
}

fn radius([x, y]: Point, road: Road) -> f64 {
    (x - centre(road)).hypot(y)
}

/// Where a road leads before noise: c + (1 + κ (r - 1)) R(±ω) (x - c) / r.
fn along([x, y]: Point, road: Road) -> Point {
    let centre = centre(road);
    let angle = y.atan2(x - centre) + if road == Road::Left { TURN } else { -TURN };
    let radius = 1.0 + PULL * (radius([x, y], road) - 1.0);
    [centre + radius * angle.cos(), radius * angle.sin()]
}

/// The next state.
pub fn step(state: Point, rng: &mut impl Rng) -> Point {
    let road = if rng.random::<f64>() < right(state) { Road::Right } else { Road::Left };
    along(state, road).map(|value| value + SPREAD * rng.sample::<f64, _>(StandardNormal))
}

/// log p(next | state) in nats.
pub fn log_density(state: Point, next: Point) -> f64 {
    let branch = |road: Road, probability: f64| {
        let [x, y] = along(state, road);
        let square = (next[0] - x).powi(2) + (next[1] - y).powi(2);
        probability.ln() - 0.5 * square / SPREAD.powi(2) - (TAU * SPREAD.powi(2)).ln()
    };
    let right = right(state);
    let (a, b) = (branch(Road::Left, 1.0 - right), branch(Road::Right, right));
    let highest = a.max(b);
    highest + ((a - highest).exp() + (b - highest).exp()).ln()
}

/// The mean of the next state, and the mean on the likelier road, which is about where its density is highest.
pub fn mean_and_mode(state: Point) -> (Point, Point) {
    let (left, toward, share) = (along(state, Road::Left), along(state, Road::Right), right(state));
    let mean = std::array::from_fn(|axis| (1.0 - share) * left[axis] + share * toward[axis]);
    (mean, if share > 0.5 { toward } else { left })
}

/// `count` particles over `steps`, after they have forgotten where they started: `steps + 1` states of each.
pub fn simulate(count: usize, steps: usize, rng: &mut impl Rng) -> Vec<Vec<Point>> {
    (0..count)
        .map(|_| {
            let mut state = [2.0, 0.0];
            for _ in 0..50 {
                state = step(state, rng);
            }
            let mut path = vec![state];
            for _ in 0..steps {
                state = step(state, rng);
                path.push(state);
            }
            path
        })
        .collect()
}
