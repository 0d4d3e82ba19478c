//! Inference by exhaustion: the energies of a finite set of answers as a table, and what is read off it.

use burn::tensor::{Bool, Int, Tensor, TensorData, activation};

use super::PairEnergy;
use crate::energy::{Classifier, ConditionalEnergy};
use crate::error::{Error, Result, ensure, ensure_positive};
use crate::math::log_sum_exp;

/// One answer per input, and its energy.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Which answer, `[batch]`.
    pub index: Tensor<1, Int>,
    /// Its energy, `[batch]`. It is the entry of the table, with the gradient of that entry.
    pub energy: Tensor<1>,
}

/// E(x, y) of every input with every answer of a finite set.
///
/// ```text
/// Y* = argmin_Y E(Y, X)      I = argmin_{Y ≠ Y_C} E(Y, X)      F_β(X) = -(1/β) log Σ_Y exp(-β E(Y, X))
/// ```
///
/// Of equal energies the first answer counts. Energies may carry autodiff; choices do not.
///
/// # Shapes
/// `[batch, answers]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::inference::EnergyTable;
///
/// let table = EnergyTable::new(Tensor::from_floats([[1.0, 0.5, 2.0]], &Device::default()))?;
/// assert_eq!(table.lowest().index.into_scalar::<i32>(), 1);
/// assert_eq!(table.most_offending(&[1])?.energy.into_scalar::<f32>(), 1.0); // the best that is not answer 1
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: LeCun et al. 2006, sections 1.2 and 2.2, definition 1.
#[derive(Debug, Clone)]
pub struct EnergyTable {
    energies: Tensor<2>,
}

impl EnergyTable {
    /// A table of energies that are at hand.
    ///
    /// # Errors
    /// [`Error::Shape`] without a row or without an answer.
    pub fn new(energies: Tensor<2>) -> Result<Self> {
        if energies.dims().contains(&0) {
            return Err(Error::shape("EnergyTable", &energies.dims(), "one input and one answer at least"));
        }
        Ok(Self { energies })
    }

    /// The classes of a classifier: E(x, y) = -f(x)\[y\].
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn of_classifier<const D: usize>(classifier: &impl Classifier<D>, x: Tensor<D>) -> Result<Self> {
        Self::new(classifier.logits(x).neg())
    }

    /// The labels 0 to `num_labels` - 1 of any energy of samples and labels, in one batch.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn of_labels<const D: usize>(
        model: &impl ConditionalEnergy<D>,
        x: Tensor<D>,
        num_labels: usize,
    ) -> Result<Self> {
        let batch = x.dims()[0];
        check_extent(batch, num_labels)?;
        let device = x.device().without_autodiff();
        let (rows, labels) = product(batch, num_labels, &device);
        Self::new(model.energy_given(x.select(0, rows), labels).reshape([batch, num_labels]))
    }

    /// A list of candidate answers, the same for every input, in one batch.
    ///
    /// # Shapes
    /// `x` is `[batch, ..]`, `candidates` `[answers, ..]`.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn of_candidates<const X: usize, const Y: usize>(
        model: &impl PairEnergy<X, Y>,
        x: Tensor<X>,
        candidates: Tensor<Y>,
    ) -> Result<Self> {
        let (batch, answers) = (x.dims()[0], candidates.dims()[0]);
        check_extent(batch, answers)?;
        let device = x.device().without_autodiff();
        let (rows, columns) = product(batch, answers, &device);
        let energies = model.pair_energy(x.select(0, rows), candidates.select(0, columns));
        Self::new(energies.reshape([batch, answers]))
    }

    /// All energies, `[batch, answers]`.
    pub fn energies(&self) -> &Tensor<2> {
        &self.energies
    }

    /// Y*: the answer of lowest energy.
    pub fn lowest(&self) -> Answer {
        self.lowest_outside(None)
    }

    /// E_C: the energy of one given answer per input, `[batch]`.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is one answer per input, [`Error::Config`] if one is not in the table.
    pub fn of_answers(&self, answers: &[usize]) -> Result<Tensor<1>> {
        self.check(answers)?;
        let device = self.energies.device().without_autodiff();
        let index: Vec<i64> = answers.iter().map(|answer| *answer as i64).collect();
        let index = Tensor::<2, Int>::from_data(TensorData::new(index, [answers.len(), 1]), &device);
        Ok(self.energies.clone().gather(1, index).squeeze_dim(1))
    }

    /// The most offending incorrect answer: the lowest of all but the correct one.
    ///
    /// # Errors
    /// Those of [`of_answers`](Self::of_answers), and [`Error::Config`] if there is one answer only.
    pub fn most_offending(&self, correct: &[usize]) -> Result<Answer> {
        self.check(correct)?;
        let [batch, answers] = self.energies.dims();
        ensure(answers > 1, "EnergyTable.answers", answers, "at least 2, for one to be incorrect")?;
        let is_correct: Vec<bool> =
            correct.iter().flat_map(|correct| (0..answers).map(move |answer| answer == *correct)).collect();
        let device = self.energies.device().without_autodiff();
        let is_correct = Tensor::from_data(TensorData::new(is_correct, [batch, answers]), &device);
        Ok(self.lowest_outside(Some(is_correct)))
    }

    /// The most offending incorrect answer of a continuous set: the lowest of those at a distance above ε from
    /// the correct one. Reads the distances from the device.
    ///
    /// # Shapes
    /// `distances` is `[batch, answers]`, from each input's correct answer.
    ///
    /// # Errors
    /// [`Error::Shape`] if the distances are of another shape; [`Error::Config`] if ε is negative or not finite
    /// or an input has no answer at such a distance.
    pub fn most_offending_beyond(&self, distances: Tensor<2>, epsilon: f64) -> Result<Answer> {
        crate::error::ensure_not_negative("EnergyTable.epsilon", epsilon)?;
        let [batch, answers] = self.energies.dims();
        if distances.dims() != [batch, answers] {
            let expected = format!("[{batch}, {answers}], that of the energies");
            return Err(Error::shape("EnergyTable.distances", &distances.dims(), expected));
        }
        let values: Vec<f64> = distances.without_autodiff().into_data().iter::<f64>().collect();
        let near: Vec<bool> =
            values.iter().map(|distance| distance.partial_cmp(&epsilon) != GREATER).collect();
        if let Some(row) = near.chunks(answers).position(|row| row.iter().all(|near| *near)) {
            let allowed = format!("below the distance of some answer from the correct one of input {row}");
            return Err(Error::config("EnergyTable.epsilon", epsilon, allowed));
        }
        let device = self.energies.device().without_autodiff();
        let near = Tensor::from_data(TensorData::new(near, [batch, answers]), &device);
        Ok(self.lowest_outside(Some(near)))
    }

    /// The free energy -(1/β) log Σ_Y exp(-β E), `[batch]`.
    ///
    /// # Errors
    /// [`Error::Config`] unless β is finite and above 0.
    pub fn free_energy(&self, inverse_temperature: f64) -> Result<Tensor<1>> {
        ensure_positive("EnergyTable.inverse_temperature", inverse_temperature)?;
        let scaled = self.energies.clone().mul_scalar(-inverse_temperature);
        Ok(log_sum_exp(scaled).div_scalar(-inverse_temperature))
    }

    /// The Gibbs distribution p(y|x) ∝ exp(-β E), `[batch, answers]`.
    ///
    /// # Errors
    /// [`Error::Config`] unless β is finite and above 0.
    pub fn probabilities(&self, inverse_temperature: f64) -> Result<Tensor<2>> {
        ensure_positive("EnergyTable.inverse_temperature", inverse_temperature)?;
        Ok(activation::softmax(self.energies.clone().mul_scalar(-inverse_temperature), 1))
    }

    /// The lowest of the answers that are not excluded. Each row must have one.
    fn lowest_outside(&self, excluded: Option<Tensor<2, Bool>>) -> Answer {
        let plain = self.energies.clone().without_autodiff();
        let plain = match excluded {
            Some(excluded) => plain.mask_fill(excluded, f32::INFINITY),
            None => plain,
        };
        let index = plain.argmin(1);
        let energy = self.energies.clone().gather(1, index.clone()).squeeze_dim(1);
        Answer { index: index.squeeze_dim(1), energy }
    }

    fn check(&self, answers: &[usize]) -> Result<()> {
        let [batch, count] = self.energies.dims();
        if answers.len() != batch {
            return Err(Error::shape("correct answers", &[answers.len()], format!("[{batch}]")));
        }
        match answers.iter().find(|answer| **answer >= count) {
            Some(answer) => {
                Err(Error::config("correct answer", answer, format!("below the number of answers, {count}")))
            }
            None => Ok(()),
        }
    }
}

const GREATER: Option<std::cmp::Ordering> = Some(std::cmp::Ordering::Greater);

fn check_extent(batch: usize, answers: usize) -> Result<()> {
    if batch == 0 || answers == 0 {
        return Err(Error::shape("EnergyTable", &[batch, answers], "one input and one answer at least"));
    }
    Ok(())
}

/// Row and column of every entry of a `[rows, columns]` table, row by row.
fn product(rows: usize, columns: usize, device: &burn::tensor::Device) -> (Tensor<1, Int>, Tensor<1, Int>) {
    let total = rows * columns;
    let index = |of: &dyn Fn(usize) -> usize| {
        let values: Vec<i64> = (0..total).map(|entry| of(entry) as i64).collect();
        Tensor::from_data(TensorData::new(values, [total]), device)
    };
    (index(&|entry| entry / columns), index(&|entry| entry % columns))
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::energy::JointEnergy;
    use crate::energy::analytic::GaussianMixture;
    use crate::noise::{Noise, Stream};
    use burn::tensor::Device;

    fn random(batch: usize, answers: usize) -> (Tensor<2>, Vec<Vec<f32>>) {
        let energies = Noise::host(3).normal([batch, answers], Stream::DATA, &Device::flex());
        let rows: Vec<f32> = energies.clone().into_data().iter::<f32>().collect();
        (energies, rows.chunks(answers).map(<[f32]>::to_vec).collect())
    }

    fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    fn indices(tensor: Tensor<1, Int>) -> Vec<usize> {
        tensor.into_data().iter::<i64>().map(|index| index as usize).collect()
    }

    /// The lowest entry by a plain loop.
    fn brute(row: &[f32], allowed: impl Fn(usize) -> bool) -> usize {
        let mut best: Option<usize> = None;
        for at in (0..row.len()).filter(|at| allowed(*at)) {
            if best.is_none_or(|best| row[at] < row[best]) {
                best = Some(at);
            }
        }
        best.unwrap()
    }

    #[test]
    fn lowest_and_most_offending_agree_with_a_loop() {
        let (energies, rows) = random(40, 5);
        let table = EnergyTable::new(energies).unwrap();
        let correct: Vec<usize> = (0..40).map(|row| row % 5).collect();
        let (lowest, offending) = (table.lowest(), table.most_offending(&correct).unwrap());
        let (best, rival) = (indices(lowest.index), indices(offending.index));
        let (best_energy, rival_energy) = (numbers(lowest.energy), numbers(offending.energy));
        let given = numbers(table.of_answers(&correct).unwrap());
        for (row, energies) in rows.iter().enumerate() {
            assert_eq!(best[row], brute(energies, |_| true));
            assert_eq!(rival[row], brute(energies, |at| at != correct[row]));
            assert_eq!(
                [best_energy[row], rival_energy[row], given[row]],
                [energies[best[row]], energies[rival[row]], energies[correct[row]]]
            );
        }
        // The correct answer is the lowest in some rows and not in others, or nothing was tested.
        let right = best.iter().zip(&correct).filter(|(a, b)| a == b).count();
        assert!(right > 0 && right < 40);
    }

    #[test]
    fn beyond_a_distance_only_far_answers_offend() {
        let (energies, rows) = random(6, 9);
        let table = EnergyTable::new(energies).unwrap();
        // Answers on a line at 0, 1, .., 8, the correct one of row r at r.
        let distances: Vec<f32> =
            (0..6).flat_map(|r| (0..9).map(move |a| (a as f32 - r as f32).abs())).collect();
        let distances = Tensor::<2>::from_data(TensorData::new(distances, [6, 9]), &Device::flex());
        let found = indices(table.most_offending_beyond(distances.clone(), 2.0).unwrap().index);
        for (r, row) in rows.iter().enumerate() {
            assert_eq!(found[r], brute(row, |a| a.abs_diff(r) > 2));
        }
        let error = table.most_offending_beyond(distances.clone(), 5.5).unwrap_err().to_string();
        assert!(error.contains("EnergyTable.epsilon = 5.5") && error.contains("input 3"), "{error}");
        assert!(table.most_offending_beyond(distances.clone(), -1.0).is_err());
        assert!(table.most_offending_beyond(distances.narrow(0, 0, 5), 1.0).is_err());
    }

    #[test]
    fn free_energy_and_probabilities_are_those_of_gibbs() {
        let (energies, rows) = random(4, 3);
        let table = EnergyTable::new(energies).unwrap();
        for beta in [0.5f64, 1.0, 3.0] {
            let free = numbers(table.free_energy(beta).unwrap());
            let p = numbers(table.probabilities(beta).unwrap());
            for (row, energies) in rows.iter().enumerate() {
                let sum: f64 = energies.iter().map(|e| (-beta * f64::from(*e)).exp()).sum();
                assert!((f64::from(free[row]) + sum.ln() / beta).abs() < 1e-5);
                for (answer, e) in energies.iter().enumerate() {
                    let expected = (-beta * f64::from(*e)).exp() / sum;
                    assert!((f64::from(p[3 * row + answer]) - expected).abs() < 1e-6);
                }
            }
        }
        // Cold, it is the lowest energy.
        let cold = numbers(table.free_energy(1e4).unwrap());
        let lowest = numbers(table.lowest().energy);
        assert!(cold.iter().zip(lowest).all(|(a, b)| (a - b).abs() < 1e-3));
        assert!(table.free_energy(0.0).is_err() && table.probabilities(f64::NAN).is_err());
    }

    #[test]
    fn classifier_labels_and_candidates_give_one_table() {
        struct AsPair(GaussianMixture);
        impl PairEnergy<2, 1> for AsPair {
            fn pair_energy(&self, x: Tensor<2>, y: Tensor<1>) -> Tensor<1> {
                JointEnergy::new(&self.0).energy_given(x, y.int())
            }
        }
        let device = Device::flex();
        let mixture =
            GaussianMixture::new(vec![vec![0.0, 1.0], vec![2.0, -1.0], vec![1.0, 1.0]], 0.7).unwrap();
        let x = Noise::host(1).normal([4, 2], Stream::DATA, &device);
        let one = EnergyTable::of_classifier(&mixture, x.clone()).unwrap();
        let two = EnergyTable::of_labels(&JointEnergy::new(&mixture), x.clone(), 3).unwrap();
        let candidates = Tensor::<1>::from_floats([0.0, 1.0, 2.0], &device);
        let three = EnergyTable::of_candidates(&AsPair(mixture), x, candidates).unwrap();
        assert_eq!(one.energies().to_data(), two.energies().to_data());
        assert_eq!(one.energies().to_data(), three.energies().to_data());
    }

    #[test]
    fn gradients_flow_to_the_chosen_entry_alone() {
        let x = Tensor::<2>::from_floats([[1.0, 0.5, 2.0]], &Device::flex().autodiff()).require_grad();
        let table = EnergyTable::new(x.clone()).unwrap();
        let gradients = table.most_offending(&[1]).unwrap().energy.sum().backward();
        assert_eq!(numbers(x.grad(&gradients).unwrap()), [1.0, 0.0, 0.0]);
    }

    #[test]
    fn misuse_is_named() {
        let device = Device::flex();
        assert!(EnergyTable::new(Tensor::zeros([0, 2], &device)).is_err());
        let single = EnergyTable::new(Tensor::zeros([1, 1], &device)).unwrap();
        assert!(single.most_offending(&[0]).unwrap_err().to_string().contains("EnergyTable.answers = 1"));
        let table = EnergyTable::new(Tensor::zeros([2, 3], &device)).unwrap();
        assert!(table.of_answers(&[0]).unwrap_err().to_string().contains("correct answers has shape [1]"));
        assert!(table.of_answers(&[0, 3]).unwrap_err().to_string().contains("correct answer = 3"));
    }
}
