//! What the chains are worth: whether they agree, how much they tell, and how far they are from the law.

use burn::tensor::Tensor;
use jem_core::{Error, Result};
use jem_eval::{ChainSet, ChainSummary};

use crate::methods::{Chains, SPACING};
use crate::targets::Target;

/// A point of the plane.
pub type Point = (f64, f64);

/// One sampler on one energy.
pub struct Measured {
    /// What it drew.
    pub chains: Chains,
    /// The larger R-hat of the two coordinates; none if a chain left for infinity.
    pub rhat: Option<f64>,
    /// The smaller bulk ESS of the two, for 1,000 gradients.
    pub ess: Option<f64>,
    /// The energy distance to exact samples.
    pub distance: Option<f64>,
    /// As many of its draws as there are exact samples.
    pub points: Vec<Point>,
}

/// One energy with all samplers.
pub struct Block {
    /// The energy.
    pub target: Target,
    /// Exact samples.
    pub exact: Vec<Point>,
    /// The distance between two sets of exact samples: what no sampler can be told from.
    pub floor: f64,
    /// The samplers.
    pub rows: Vec<Measured>,
}

/// Measures all chains on one energy against the first of two sets of exact samples.
pub fn block(target: Target, exact: [Tensor<2>; 2], chains: Vec<Chains>) -> Result<Block> {
    let [exact, other] = exact.map(|samples| points(&samples.into_data().iter::<f32>().collect::<Vec<_>>()));
    let own = mean_distance(&exact, &exact);
    let distance = |samples: &[Point]| {
        2.0 * mean_distance(&exact, samples) - corrected(own, exact.len()) - within(samples)
    };
    let mut rows = Vec::new();
    for chains in chains {
        let num_chains = chains.draws.first().map_or(0, Vec::len) / 2;
        let count = exact.len().min(num_chains * chains.draws.len());
        // Evenly over the draws, the chains in turn.
        let drawn: Vec<Point> = (0..count)
            .flat_map(|index| {
                let chain = 2 * (index % num_chains);
                points(&chains.draws[index * chains.draws.len() / count][chain..chain + 2])
            })
            .collect();
        let summary = ChainSet::of_coordinates(&chains.draws, num_chains);
        let summary = match summary.and_then(|sets| ChainSummary::new(&sets)) {
            Ok(summary) => Some(summary),
            Err(Error::NonFinite { .. }) => None, // a chain has left for infinity, which is a result too
            Err(error) => return Err(error),
        };
        let gradients = (chains.draws.len() * SPACING * num_chains) as f64;
        rows.push(Measured {
            rhat: summary.as_ref().map(|summary| summary.worst_rhat.value),
            ess: summary.as_ref().map(|summary| 1_000.0 * summary.smallest_ess_bulk.value / gradients),
            distance: summary.is_some().then(|| distance(&drawn)),
            points: drawn,
            chains,
        });
    }
    let floor = distance(&other);
    Ok(Block { target, exact, floor, rows })
}

/// Rows of two.
fn points(values: &[f32]) -> Vec<Point> {
    values.chunks_exact(2).map(|pair| (f64::from(pair[0]), f64::from(pair[1]))).collect()
}

/// E ‖x - y‖ over all pairs. With it the energy distance is 2 E‖x - y‖ - E‖x - x'‖ - E‖y - y'‖, which is 0 for equal
/// laws alone (Székely & Rizzo 2013, "Energy statistics").
fn mean_distance(first: &[Point], second: &[Point]) -> f64 {
    let to_all = |a: &Point| second.iter().map(|b| (a.0 - b.0).hypot(a.1 - b.1)).sum::<f64>();
    first.iter().map(to_all).sum::<f64>() / (first.len() * second.len()) as f64
}

/// The mean over all pairs of a set without those of a point with itself.
fn corrected(mean: f64, count: usize) -> f64 {
    mean * count as f64 / (count - 1) as f64
}

fn within(points: &[Point]) -> f64 {
    corrected(mean_distance(points, points), points.len())
}
