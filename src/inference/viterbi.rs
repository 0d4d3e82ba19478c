//! Min-sum (Viterbi): the labellings of lowest energy of a chain, in order, on the host.

use super::Chain;
use crate::error::{Error, Result, ensure};

/// One labelling of a sequence, and its energy in double precision.
#[derive(Debug, Clone, PartialEq)]
pub struct Labelling {
    /// A label per position.
    pub labels: Vec<usize>,
    /// E(labels).
    pub energy: f64,
}

/// A labelling of the positions so far that ends in a known label: its energy, and the label and rank of what
/// it continues.
#[derive(Debug, Clone, Copy)]
struct Partial {
    energy: f64,
    before: (usize, usize),
}

impl Chain {
    /// Y*: the labelling of lowest energy of every sequence. Reads the energies from the device.
    pub fn lowest(&self) -> Vec<Labelling> {
        self.best(1).into_iter().filter_map(|mut best| best.pop()).collect()
    }

    /// The `count` labellings of lowest energy of every sequence, lowest first; fewer where there are not so
    /// many.
    ///
    /// # Errors
    /// [`Error::Config`] if `count` is 0.
    ///
    /// Source: the list Viterbi algorithm, Seshadri & Sundberg 1994, doi 10.1109/26.275311.
    pub fn k_lowest(&self, count: usize) -> Result<Vec<Vec<Labelling>>> {
        ensure(count > 0, "Chain.k_lowest.count", count, "at least 1")?;
        Ok(self.best(count))
    }

    /// I: the labelling of lowest energy that differs from the correct one, of every sequence.
    ///
    /// # Errors
    /// Those of [`Chain::energy`], and [`Error::Config`] if there is one label only.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use jem_core::inference::Chain;
    /// let device = Device::default();
    /// let unary = Tensor::from_floats([[[0.0, 2.0], [0.0, 1.0]]], &device);
    /// let chain = Chain::new(unary, Tensor::zeros([2, 2], &device))?;
    /// assert_eq!(chain.most_offending(&[vec![0, 0]])?[0].labels, [0, 1]);
    /// assert_eq!(chain.most_offending(&[vec![1, 1]])?[0].labels, [0, 0]);
    /// # Ok::<(), jem_core::Error>(())
    /// ```
    pub fn most_offending(&self, correct: &[Vec<usize>]) -> Result<Vec<Labelling>> {
        self.check(correct)?;
        let offending = self.best(2).into_iter().zip(correct);
        let offending =
            offending.map(|(best, correct)| best.into_iter().find(|found| found.labels != *correct));
        let none = || Error::config("Chain.labels", self.num_labels(), "at least 2, for one to be incorrect");
        offending.map(|found| found.ok_or_else(none)).collect()
    }

    fn best(&self, count: usize) -> Vec<Vec<Labelling>> {
        let [_, length, labels] = self.unary.dims();
        let matrices = self.pairwise.dims()[0];
        let read = |data: burn::tensor::TensorData| data.iter::<f64>().collect::<Vec<f64>>();
        let unary = read(self.unary.clone().without_autodiff().into_data());
        let pairwise = read(self.pairwise.clone().without_autodiff().into_data());
        let between = |t: usize, from: usize, to: usize| {
            let matrix = if matrices == 1 { 0 } else { t - 1 };
            pairwise[(matrix * labels + from) * labels + to]
        };
        let rows = unary.chunks(length * labels).zip(&self.lengths);
        rows.map(|(row, own)| best_of_sequence(&row[..own * labels], labels, between, count)).collect()
    }
}

/// The best labellings of one sequence with these unary energies, position by position.
fn best_of_sequence(
    unary: &[f64],
    labels: usize,
    between: impl Fn(usize, usize, usize) -> f64,
    count: usize,
) -> Vec<Labelling> {
    let mut table: Vec<Vec<Vec<Partial>>> = Vec::with_capacity(unary.len() / labels); // [position][label][rank]
    for (t, unary) in unary.chunks(labels).enumerate() {
        let ending_in = |label: usize| {
            let Some(before) = t.checked_sub(1).map(|t| &table[t]) else {
                return vec![Partial { energy: unary[label], before: (0, 0) }];
            };
            let extended = before.iter().enumerate().flat_map(|(from, partials)| {
                let cost = between(t, from, label) + unary[label];
                let ranked = partials.iter().enumerate();
                ranked.map(move |(rank, p)| Partial { energy: p.energy + cost, before: (from, rank) })
            });
            let mut partials: Vec<Partial> = extended.collect();
            partials.sort_by(|a, b| a.energy.total_cmp(&b.energy)); // stable: of equal ones the first label
            partials.truncate(count);
            partials
        };
        let position = (0..labels).map(ending_in).collect();
        table.push(position);
    }
    let Some(last) = table.last() else { return Vec::new() };
    let ends = last.iter().enumerate().flat_map(|(label, partials)| {
        partials.iter().enumerate().map(move |(rank, partial)| (partial.energy, label, rank))
    });
    let mut ends: Vec<(f64, usize, usize)> = ends.collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    ends.truncate(count);
    let trace = |(energy, label, rank): (f64, usize, usize)| {
        let mut at = (label, rank);
        let mut found = Vec::with_capacity(table.len());
        for position in table.iter().rev() {
            found.push(at.0);
            at = position[at.0][at.1].before;
        }
        found.reverse();
        Labelling { labels: found, energy }
    };
    ends.into_iter().map(trace).collect()
}
