//! Nearest neighbours: whether a generated image is a copy of a training image.

use serde::{Deserialize, Serialize};

use super::checks::same_dimension;
use super::features::Features;
use jem_core::error::{Error, Result, ensure};

/// A training sample near a query.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Its place in the training set, counted from 0 in the order of the visits.
    pub index: usize,
    /// The Euclidean distance, in the units of the features.
    pub distance: f64,
}

/// The k nearest training samples of each query, while the training set goes by in batches.
///
/// Only the best so far are kept, so the training set need not fit into memory. Distances are exact: a copy has
/// distance 0.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_eval::{Features, NeighbourSearch, Pixels};
///
/// let device = Device::default();
/// let generated = Tensor::full([1, 1, 2, 2], 0.4, &device);
/// let mut search = NeighbourSearch::new(Features::extract(&Pixels, generated, 1)?, 1)?;
/// for brightness in [0.0, 0.5, 1.0] {
///     let images = Tensor::full([1, 1, 2, 2], brightness, &device);
///     search.visit(&Features::extract(&Pixels, images, 1)?)?;
/// }
/// let found = search.finish()?;
/// assert_eq!(found[0][0].index, 1);
/// assert!((found[0][0].distance - 0.2).abs() < 1e-6); // 4 pixels, 0.1 apart
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct NeighbourSearch {
    queries: Features,
    k: usize,
    visited: usize,
    best: Vec<Vec<Neighbour>>, // of each query, with the square of the distance
}

impl NeighbourSearch {
    /// A search for the `k` nearest of each query.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) if `k` is 0.
    pub fn new(queries: Features, k: usize) -> Result<Self> {
        ensure(k > 0, "NeighbourSearch.k", k, "at least 1")?;
        let best = vec![Vec::with_capacity(k + 1); queries.len()];
        Ok(Self { queries, k, visited: 0, best })
    }

    /// Compares the queries with more of the training set.
    ///
    /// # Errors
    /// [`Error::Config`] if the dimension is not that of the queries, [`Error::NonFinite`] if two samples are too far
    /// apart for a double.
    pub fn visit(&mut self, training: &Features) -> Result<()> {
        same_dimension("training set", self.queries.dimension(), training.dimension())?;
        for (query, best) in self.queries.rows().zip(&mut self.best) {
            for (offset, sample) in training.rows().enumerate() {
                let distance = squared_distance(query, sample);
                if !distance.is_finite() {
                    return Err(Error::NonFinite {
                        what: "squared distance of two samples".to_owned(),
                        value: distance,
                    });
                }
                // After those that are as near: of equals the first comes first.
                let place = best.partition_point(|known| known.distance <= distance);
                if place < self.k {
                    best.insert(place, Neighbour { index: self.visited + offset, distance });
                    best.truncate(self.k);
                }
            }
        }
        self.visited += training.len();
        Ok(())
    }

    /// The `k` nearest of each query, nearest first.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) if fewer than `k` training samples went by.
    pub fn finish(self) -> Result<Vec<Vec<Neighbour>>> {
        let allowed = format!("at most {}, the training samples visited", self.visited);
        ensure(self.k <= self.visited, "NeighbourSearch.k", self.k, &allowed)?;
        let root = |known: Neighbour| Neighbour { distance: known.distance.sqrt(), ..known };
        Ok(self.best.into_iter().map(|best| best.into_iter().map(root).collect()).collect())
    }
}

/// The `k` nearest training samples of each query, nearest first, for a training set in memory.
///
/// # Errors
/// [`Error::Config`](jem_core::Error::Config) if `k` is 0 or above the number of training samples, or the dimensions
/// differ.
pub fn nearest_neighbours(queries: &Features, training: &Features, k: usize) -> Result<Vec<Vec<Neighbour>>> {
    let mut search = NeighbourSearch::new(queries.clone(), k)?;
    search.visit(training)?;
    search.finish()
}

/// ‖a - b‖², in eight sums side by side, which the compiler can keep in vector registers.
fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    let (a_blocks, a_rest) = a.as_chunks::<8>();
    let (b_blocks, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += (a - b) * (a - b);
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| (a - b) * (a - b)).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_distance_zero_and_ties_keep_their_order() {
        let training: Vec<f64> = (0..40).map(|i| 0.1 * f64::from(i)).collect(); // 4 samples of 10
        let training = Features::new(&training, 10).unwrap();
        let queries = Features::new(training.row(2), 10).unwrap();
        let found = nearest_neighbours(&queries, &training, 3).unwrap();
        let indices: Vec<usize> = found[0].iter().map(|neighbour| neighbour.index).collect();
        assert_eq!((found[0][0].distance, indices[0]), (0.0, 2));
        assert!((found[0][1].distance - 10f64.sqrt()).abs() < 1e-12);
        let same = Features::new(&[1.0; 5], 1).unwrap();
        let found = nearest_neighbours(&same, &same, 2).unwrap();
        assert!(found.iter().all(|best| best[0].index == 0 && best[1].index == 1));
    }

    #[test]
    fn batches_make_no_difference() {
        let values: Vec<f64> = (0..30).map(|i| f64::from(i * 7 % 13)).collect();
        let (queries, training) =
            (Features::new(&values[..6], 2).unwrap(), Features::new(&values[6..], 2).unwrap());
        let mut search = NeighbourSearch::new(queries.clone(), 4).unwrap();
        for part in values[6..].chunks(10) {
            search.visit(&Features::new(part, 2).unwrap()).unwrap();
        }
        assert_eq!(search.finish().unwrap(), nearest_neighbours(&queries, &training, 4).unwrap());
    }

    #[test]
    fn bad_input_is_named() {
        let (a, b) = (Features::new(&[0.0, 1.0], 1).unwrap(), Features::new(&[0.0, 1.0], 2).unwrap());
        let message = |a: &Features, b: &Features, k| nearest_neighbours(a, b, k).unwrap_err().to_string();
        assert!(message(&a, &a, 0).starts_with("NeighbourSearch.k = 0"));
        assert!(message(&a, &a, 3).contains("at most 2, the training samples visited"));
        assert!(message(&a, &b, 1).starts_with("dimension of the training set = 2"));
    }
}
