//! Inference for continuous answers: chains that go downhill in y from several starts, the best of which counts.

use burn::tensor::{Int, Tensor, TensorData};

use super::{GivenInput, Outside, PairEnergy};
use crate::energy::EnergyModel;
use crate::error::{Error, Result, ensure, ensure_not_negative, ensure_positive};
use crate::noise::Noise;
use crate::samplers::{ImproperSgld, ImproperSgldConfig, Sampler};
use crate::schedule::Schedule;

/// What a search found: one point per sample, and its energy. Neither carries autodiff.
#[derive(Debug, Clone)]
pub struct Found<const D: usize> {
    /// The points, `[batch, ..]`.
    pub y: Tensor<D>,
    /// Their energies, `[batch]`.
    pub energy: Tensor<1>,
}

/// A search for y of low energy E(x, y) with any [`Sampler`].
///
/// Every chain remembers the lowest point on its way, the start included, so that no search is worse than its
/// start. Noise is what a search climbs out of a poor valley with: [`descent`](Self::descent) has none,
/// [`annealed`](Self::annealed) starts with much and ends with none. One more evaluation of the energy per step
/// is the price of the memory.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::inference::{AnswerSearch, PairEnergy};
/// use jem_core::noise::Noise;
///
/// struct Line; // E(x, y) = (y - 2x)² / 2
/// impl PairEnergy<2, 2> for Line {
///     fn pair_energy(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<1> {
///         (y - x.mul_scalar(2.0)).square().sum_dim(1).squeeze_dim(1).mul_scalar(0.5)
///     }
/// }
/// let device = Device::default();
/// let search = AnswerSearch::descent(0.5, 30)?;
/// let x = Tensor::<2>::from_floats([[1.0], [3.0]], &device);
/// let found = search.find(&Line, x, Tensor::<2>::zeros([2, 1], &device), &mut Noise::host(0))?;
/// let y: Vec<f32> = found.y.into_data().iter().collect();
/// assert!((y[0] - 2.0).abs() < 1e-3 && (y[1] - 6.0).abs() < 1e-3);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: LeCun et al. 2006, section 1.2.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerSearch<S> {
    sampler: S,
    num_steps: usize,
}

impl AnswerSearch<ImproperSgld> {
    /// Gradient descent: y ← y - η ∇_y E(x, y).
    ///
    /// # Errors
    /// [`Error::Config`] for a step size that can be negative or no steps.
    pub fn descent(step_size: impl Into<Schedule>, num_steps: usize) -> Result<Self> {
        let sampler = ImproperSgldConfig::new().with_step_size(step_size).with_noise_scale(0.0).init()?;
        Self::new(sampler, num_steps)
    }

    /// Langevin dynamics that cool down: y ← y - η ∇_y E + σ_t N(0, I), where σ_t falls from √(2ηT) to 0 along
    /// a line. It starts with samples of exp(-E/T), up to the discretisation, and ends as descent.
    ///
    /// # Errors
    /// [`Error::Config`] unless the step size is finite and above 0 and the temperature finite and not below 0,
    /// and without steps.
    pub fn annealed(step_size: f64, temperature: f64, num_steps: usize) -> Result<Self> {
        ensure_positive("AnswerSearch.step_size", step_size)?;
        ensure_not_negative("AnswerSearch.temperature", temperature)?;
        let from = (2.0 * step_size * temperature).sqrt();
        let noise = Schedule::Linear { from, to: 0.0, steps: num_steps as u64 };
        let sampler = ImproperSgldConfig::new().with_step_size(step_size).with_noise_scale(noise).init()?;
        Self::new(sampler, num_steps)
    }
}

impl<S> AnswerSearch<S> {
    /// A search of `num_steps` steps with any sampler.
    ///
    /// # Errors
    /// [`Error::Config`] without steps.
    pub fn new(sampler: S, num_steps: usize) -> Result<Self> {
        ensure(num_steps > 0, "AnswerSearch.num_steps", num_steps, "at least 1")?;
        Ok(Self { sampler, num_steps })
    }

    /// The lowest point on the way of each chain.
    ///
    /// # Shapes
    /// `[chains, ..]`, kept.
    pub fn minimise<const D: usize>(
        &self,
        model: &dyn EnergyModel<D>,
        start: Tensor<D>,
        noise: &mut Noise,
    ) -> Found<D>
    where
        S: Sampler<D>,
    {
        let start = start.without_autodiff();
        let energy = model.energy(start.clone()).without_autodiff();
        let mut best = Found { y: start.clone(), energy };
        let mut state = self.sampler.init(model, start);
        for _ in 0..self.num_steps {
            state = self.sampler.step(model, state, noise).0;
            let y = self.sampler.position(&state).without_autodiff();
            let energy = model.energy(y.clone()).without_autodiff();
            let better = energy.clone().lower(best.energy.clone());
            let mut column = [1; D];
            column[0] = y.dims()[0];
            let rows = better.clone().reshape(column).expand::<D, _>(y.dims());
            best = Found { y: best.y.mask_where(rows, y), energy: best.energy.mask_where(better, energy) };
        }
        best
    }

    /// Y*: for every input the lowest answer that the chains came across.
    ///
    /// # Shapes
    /// `x` is `[batch, ..]`, `starts` `[restarts · batch, ..]`: the first start of every input, then the second
    /// of every input, and so on. The result is `[batch, ..]`.
    ///
    /// # Errors
    /// [`Error::Shape`] unless the number of starts is a multiple of the number of inputs, and above 0.
    pub fn find<const X: usize, const Y: usize>(
        &self,
        model: &impl PairEnergy<X, Y>,
        x: Tensor<X>,
        starts: Tensor<Y>,
        noise: &mut Noise,
    ) -> Result<Found<Y>>
    where
        S: Sampler<Y>,
    {
        let (batch, restarts) = restarts(x.dims()[0], &starts.dims())?;
        let given = GivenInput::new(model, x.without_autodiff().repeat_dim(0, restarts));
        Ok(best_of_restarts(self.minimise(&given, starts, noise), batch, restarts))
    }

    /// I: the same among the answers at a distance above ε from the correct one.
    ///
    /// Chains walk around the ball of radius ε as [`Outside`] says. In one dimension there is no way around:
    /// let some chains start on either side.
    ///
    /// # Shapes
    /// As [`find`](Self::find); `correct` is `[batch, ..]`. Reads the distances from the device.
    ///
    /// # Errors
    /// As [`find`](Self::find); [`Error::Shape`] if `correct` does not fit, [`Error::Config`] unless ε is finite
    /// and above 0, or if all chains of an input started at its correct answer and stayed there.
    pub fn find_most_offending<const X: usize, const Y: usize>(
        &self,
        model: &impl PairEnergy<X, Y>,
        x: Tensor<X>,
        correct: Tensor<Y>,
        epsilon: f64,
        starts: Tensor<Y>,
        noise: &mut Noise,
    ) -> Result<Found<Y>>
    where
        S: Sampler<Y>,
    {
        ensure_positive("AnswerSearch.epsilon", epsilon)?;
        let (batch, restarts) = restarts(x.dims()[0], &starts.dims())?;
        if correct.dims()[0] != batch || correct.dims()[1..] != starts.dims()[1..] {
            let expected = format!("{batch} answers shaped as the starts, {:?}", starts.dims());
            return Err(Error::shape("AnswerSearch.correct", &correct.dims(), expected));
        }
        let given = GivenInput::new(model, x.without_autodiff().repeat_dim(0, restarts));
        // A hair wider than asked for, so that rounding leaves no answer at a distance of ε or less.
        let centre = correct.repeat_dim(0, restarts);
        let outside = Outside::new(given, centre, epsilon * (1.0 + 1e-4))?;
        let found = self.minimise(&outside, starts, noise);
        let y = outside.project(found.y);
        let stuck = outside.distance(y.clone()).lower_equal_elem(epsilon);
        let energy = found.energy.mask_fill(stuck, f32::INFINITY);
        let found = best_of_restarts(Found { y, energy }, batch, restarts);
        let energies: Vec<f32> = found.energy.clone().into_data().iter::<f32>().collect();
        match energies.iter().position(|energy| *energy == f32::INFINITY) {
            Some(row) => Err(Error::config(
                "AnswerSearch.starts",
                format!("the correct answer of input {row}"),
                "elsewhere",
            )),
            None => Ok(found),
        }
    }
}

fn restarts(batch: usize, starts: &[usize]) -> Result<(usize, usize)> {
    let count = starts.first().copied().unwrap_or(0);
    if batch == 0 || count == 0 || !count.is_multiple_of(batch) {
        let expected = format!("a multiple of the number of inputs, {batch}, of answers to start from");
        return Err(Error::shape("AnswerSearch.starts", starts, expected));
    }
    Ok((batch, count / batch))
}

fn best_of_restarts<const D: usize>(found: Found<D>, batch: usize, restarts: usize) -> Found<D> {
    if restarts == 1 {
        return found;
    }
    let device = found.energy.device();
    let column: Vec<i64> = (0..batch as i64).collect();
    let column = Tensor::<1, Int>::from_data(TensorData::new(column, [batch]), &device);
    let which: Tensor<1, Int> = found.energy.clone().reshape([restarts, batch]).argmin(0).squeeze_dim(0);
    let index = which.mul_scalar(batch as i64) + column;
    Found { y: found.y.select(0, index.clone()), energy: found.energy.select(0, index) }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::Device;

    /// E(x, y) = (y² - 1)² + 0.3 x y: two valleys near ±1, the lower one where x y is negative.
    struct TwoValleys;
    impl PairEnergy<2, 2> for TwoValleys {
        fn pair_energy(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<1> {
            ((y.clone().square() - 1.0).square() + x * y * 0.3).squeeze_dim(1)
        }
    }

    fn energy(x: f64, y: f64) -> f64 {
        (y * y - 1.0).powi(2) + 0.3 * x * y
    }

    /// The lowest y on a fine grid.
    fn brute(x: f64, allowed: impl Fn(f64) -> bool) -> f64 {
        let grid = (0..=8_000).map(|i| -2.0 + f64::from(i) * 5e-4).filter(|y| allowed(*y));
        grid.min_by(|a, b| energy(x, *a).total_cmp(&energy(x, *b))).unwrap()
    }

    fn column(values: &[f32]) -> Tensor<2> {
        Tensor::from_data(TensorData::new(values.to_vec(), [values.len(), 1]), &Device::flex())
    }

    fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
        tensor.into_data().iter::<f64>().collect()
    }

    #[test]
    fn descent_from_two_starts_finds_the_lower_valley() {
        let x = column(&[1.0, -1.0]);
        let search = AnswerSearch::descent(0.05, 60).unwrap();
        let starts = column(&[0.5, 0.5, -0.5, -0.5]);
        let found = search.find(&TwoValleys, x.clone(), starts, &mut Noise::host(0)).unwrap();
        let (y, e) = (numbers(found.y), numbers(found.energy));
        for (row, x) in [1.0, -1.0].into_iter().enumerate() {
            let best = brute(x, |_| true);
            assert!((y[row] - best).abs() < 2e-3 && (e[row] - energy(x, best)).abs() < 1e-5, "{y:?}");
        }
        // From one start it stays in the valley where it began, which is the wrong one for x = 1.
        let one = search.find(&TwoValleys, x, column(&[0.5, 0.5]), &mut Noise::host(0)).unwrap();
        assert!(numbers(one.y).iter().all(|y| *y > 0.0));
    }

    /// n = 64 chains that all start in the higher valley; descent leaves it with none of them.
    #[test]
    fn annealing_climbs_out_of_the_wrong_valley() {
        let x = column(&[1.0; 64]);
        let starts = column(&[0.9; 64]);
        let annealed = AnswerSearch::annealed(0.03, 1.0, 600).unwrap();
        let found = annealed.find(&TwoValleys, x.clone(), starts.clone(), &mut Noise::host(1)).unwrap();
        let crossed = numbers(found.y).iter().filter(|y| **y < 0.0).count();
        let descent = AnswerSearch::descent(0.03, 600).unwrap();
        let stuck = descent.find(&TwoValleys, x, starts, &mut Noise::host(1)).unwrap();
        assert!(numbers(stuck.y).iter().all(|y| *y > 0.0));
        assert!(crossed > 32, "{crossed} of 64");
    }

    #[test]
    fn the_most_offending_answer_is_beyond_epsilon() {
        let search = AnswerSearch::descent(0.02, 150).unwrap();
        for (x, correct, epsilon) in [(1.0, -1.0, 0.25), (1.0, -1.0, 1.5), (-0.5, 0.2, 0.5), (1.0, 1.0, 0.3)]
        {
            let starts = column(&[-1.7, -0.3, 0.3, 1.7]);
            let found = search
                .find_most_offending(
                    &TwoValleys,
                    column(&[x as f32]),
                    column(&[correct as f32]),
                    epsilon,
                    starts,
                    &mut Noise::host(0),
                )
                .unwrap();
            let (y, e) = (numbers(found.y)[0], numbers(found.energy)[0]);
            let expected = brute(x, |y| (y - correct).abs() > epsilon);
            assert!((y - correct).abs() > epsilon, "{y}");
            assert!((e - energy(x, expected)).abs() < 2e-3, "{x} {correct}: {y} {e}, not {expected}");
        }
    }

    #[test]
    fn misuse_is_named() {
        assert!(AnswerSearch::descent(0.1, 0).unwrap_err().to_string().contains("num_steps = 0"));
        assert!(AnswerSearch::annealed(0.1, -1.0, 5).unwrap_err().to_string().contains("temperature = -1"));
        let search = AnswerSearch::descent(0.1, 2).unwrap();
        let mut noise = Noise::host(0);
        let error = search.find(&TwoValleys, column(&[0.0, 1.0]), column(&[0.0; 3]), &mut noise).unwrap_err();
        assert!(error.to_string().contains("AnswerSearch.starts has shape [3, 1]"), "{error}");
        let mut offend = |epsilon, correct: &[f32], start: f32| {
            let (x, start) = (column(&[0.0]), column(&[start]));
            search.find_most_offending(&TwoValleys, x, column(correct), epsilon, start, &mut noise)
        };
        assert!(offend(0.0, &[0.0], 1.0).is_err() && offend(0.1, &[0.0, 0.0], 1.0).is_err());
        let error = offend(0.1, &[0.0], 0.0).unwrap_err().to_string();
        assert!(error.contains("the correct answer of input 0"), "{error}");
    }
}
