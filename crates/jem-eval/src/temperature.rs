//! Temperature scaling: one number that makes confidences honest.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::checks::{argmax, check_labels, finite, num_rows};
use jem_core::error::{Error, Result, ensure_positive};

/// The search ends when log T moves by less than this.
const TOLERANCE: f64 = 1e-10;
/// |log T| beyond which the search gives up; e^64 is 6e27.
const LIMIT: f64 = 64.0;

/// A temperature T > 0 that logits are divided by: p(y|x) = softmax(f(x)/T).
///
/// It moves no prediction, only the confidence in it. 1/T is the inverse temperature β of
/// [`JointEnergy`](jem_core::energy::JointEnergy).
///
/// ```
/// use jem_eval::{Predictions, Temperature};
///
/// // Ten times 0.98 sure of class 0, and right six times.
/// let logits = [4.0f32, 0.0].repeat(10);
/// let labels = [0, 0, 0, 0, 0, 0, 1, 1, 1, 1];
/// let temperature = Temperature::fit(&logits, 2, &labels)?;
/// let scaled = Predictions::from_logits(&temperature.apply(&logits), 2, &labels)?;
/// assert!((scaled.probabilities().confidences()[0] - 0.6).abs() < 1e-9);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Guo et al. 2017, arXiv 1706.04599.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Temperature(f64);

impl Temperature {
    /// A temperature that is known.
    ///
    /// # Errors
    /// [`Error::Config`] unless it is finite and above 0.
    pub fn new(value: f64) -> Result<Self> {
        ensure_positive("Temperature", value)?;
        Ok(Self(value))
    }

    /// The temperature of the smallest negative log-likelihood on held-out logits:
    ///
    /// ```text
    /// min over log T of  mean [ LSE(f(x)/T) - f(x)[y]/T ]
    /// ```
    ///
    /// In 1/T this is convex. Newton's method in log T, with bisection where a step leaves the bracket or is
    /// slow, until log T moves by less than 1e-10.
    ///
    /// # Shapes
    /// Logits `[examples, classes]`, row after row; a label for each row.
    ///
    /// # Errors
    /// Those of [`Predictions::from_logits`](super::Predictions::from_logits), and [`Error::Config`] where no
    /// temperature is best: the logits of each example are equal; every example is classified right (T → 0); the
    /// labels have no more than the mean of their rows' logits (T → ∞).
    pub fn fit<T: Copy + Into<f64>>(logits: &[T], num_classes: usize, labels: &[usize]) -> Result<Self> {
        let rows = num_rows("logits", logits.len(), num_classes)?;
        let mut logits = finite("logits", logits)?;
        check_labels(labels, rows, num_classes)?;
        for row in logits.chunks_exact_mut(num_classes) {
            let max = row[argmax(row)];
            row.iter_mut().for_each(|logit| *logit -= max);
        }
        let held_out = HeldOut { logits, num_classes, labels };
        held_out.check()?;
        Ok(Self(held_out.minimum()?.exp()))
    }

    /// T.
    pub fn value(self) -> f64 {
        self.0
    }

    /// β = 1/T.
    pub fn inverse(self) -> f64 {
        1.0 / self.0
    }

    /// f/T.
    pub fn apply<T: Copy + Into<f64>>(self, logits: &[T]) -> Vec<f64> {
        logits.iter().map(|logit| (*logit).into() / self.0).collect()
    }

    /// f/T on the device.
    ///
    /// # Shapes
    /// `[batch, classes]` to the same.
    pub fn apply_tensor(self, logits: Tensor<2>) -> Tensor<2> {
        logits.div_scalar(self.0)
    }
}

impl TryFrom<f64> for Temperature {
    type Error = Error;

    fn try_from(value: f64) -> Result<Self> {
        Self::new(value)
    }
}

impl From<Temperature> for f64 {
    fn from(temperature: Temperature) -> Self {
        temperature.value()
    }
}

/// Logits from which each row's maximum is subtracted.
struct HeldOut<'a> {
    logits: Vec<f64>,
    num_classes: usize,
    labels: &'a [usize],
}

impl HeldOut<'_> {
    fn rows(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.logits.chunks_exact(self.num_classes).zip(self.labels).map(|(row, label)| (row, row[*label]))
    }

    /// Whether the slope in β changes its sign: it is at its least for β → 0, where p(y|x) is uniform, and at
    /// its largest for β → ∞, where all is on the maximum.
    fn check(&self) -> Result<()> {
        let refuse = |found: &str| {
            let allowed = "logits with right and wrong answers, better than chance";
            Err(Error::config("held-out logits for a temperature", found, allowed))
        };
        if self.logits.iter().all(|logit| *logit == 0.0) {
            return refuse("rows of equal logits (every temperature gives the same)");
        }
        if self.rows().all(|(_, label)| label == 0.0) {
            return refuse("right answers only (the lower the temperature, the better)");
        }
        let excess: f64 = self
            .rows()
            .map(|(row, label)| row.iter().map(|logit| label - logit).sum::<f64>() / row.len() as f64)
            .sum();
        if excess <= 0.0 {
            return refuse("answers no better than chance (the higher the temperature, the better)");
        }
        Ok(())
    }

    /// First and second derivative of the mean negative log-likelihood in β = 1/T: E_p f - f\[y\] and the
    /// variance of f under p.
    fn derivatives(&self, beta: f64) -> (f64, f64) {
        let (mut slope, mut curvature) = (0.0, 0.0);
        for (row, label) in self.rows() {
            let weights = || row.iter().map(|logit| ((beta * logit).exp(), logit));
            let sum: f64 = weights().map(|(weight, _)| weight).sum();
            let mean = weights().map(|(weight, logit)| weight * logit).sum::<f64>() / sum;
            slope += mean - label;
            curvature += weights().map(|(weight, logit)| weight * (logit - mean).powi(2)).sum::<f64>() / sum;
        }
        let count = self.labels.len() as f64;
        (slope / count, curvature / count)
    }

    /// log T where the slope is 0. The slope falls in log T.
    fn minimum(&self) -> Result<f64> {
        let slope = |log_t: f64| self.derivatives((-log_t).exp()).0;
        let direction = if slope(0.0) > 0.0 { 1.0 } else { -1.0 };
        let (mut near, mut far) = (0.0, direction);
        while slope(far) * direction > 0.0 {
            near = far;
            far *= 2.0;
            if far.abs() > LIMIT {
                let allowed = "between 1e-27 and 1e27: the scale of the logits is out of all proportion";
                return Err(Error::config("temperature of the held-out logits", far.exp(), allowed));
            }
        }
        let (mut low, mut high) = if direction > 0.0 { (near, far) } else { (far, near) };
        let mut at = 0.5 * (low + high);
        let mut last_step = high - low;
        while last_step.abs() > TOLERANCE {
            let beta = (-at).exp();
            let (slope, curvature) = self.derivatives(beta);
            if slope > 0.0 {
                low = at
            } else {
                high = at
            }
            let newton = at + slope / (beta * curvature);
            let is_good = newton >= low && newton <= high && (newton - at).abs() <= 0.5 * last_step.abs();
            let next = if is_good { newton } else { 0.5 * (low + high) };
            last_step = next - at;
            at = next;
        }
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_two_equal_rows_is_known() {
        // Right in 3 of 4: σ(3/T) = 3/4, T = 3 / log 3. The scale of the logits moves T and nothing else.
        for scale in [1e-6, 1.0, 1e6] {
            let logits = [3.0 * scale, 0.0].repeat(4);
            let t = Temperature::fit(&logits, 2, &[0, 0, 1, 0]).unwrap().value();
            assert!((t / (3.0 * scale / 3f64.ln()) - 1.0).abs() < 1e-9, "{t}");
        }
    }

    #[test]
    fn held_out_sets_without_a_best_temperature_are_refused() {
        let refused = |logits: &[f64], labels: &[usize], part: &str| {
            let message = Temperature::fit(logits, 2, labels).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        };
        refused(&[1.0, 0.0, 0.0, 2.0], &[0, 1], "right answers only");
        refused(&[1.0, 0.0, 0.0, 2.0], &[1, 0], "no better than chance");
        refused(&[1.0, 0.0, 1.0, 0.0], &[0, 1], "no better than chance");
        refused(&[1.0, 1.0, 0.0, 0.0], &[0, 1], "equal logits");
        refused(&[1.0, f64::NAN], &[0], "logits[1] is not finite");
        refused(&[1.0, 0.0], &[2], "labels[0] = 2");
        refused(&[3e30, 0.0, 3e30, 0.0, 3e30, 0.0], &[0, 1, 0], "out of all proportion");
    }

    #[test]
    fn a_temperature_is_positive_after_loading_too() {
        assert!(Temperature::new(0.0).is_err() && Temperature::new(f64::NAN).is_err());
        let t = Temperature::new(2.0).unwrap();
        assert_eq!(serde_json::to_string(&t).unwrap(), "2.0");
        assert_eq!(serde_json::from_str::<Temperature>("2.0").unwrap(), t);
        assert!(serde_json::from_str::<Temperature>("-2.0").is_err());
        assert_eq!((t.apply(&[4.0f32, -1.0]), t.inverse()), (vec![2.0, -0.5], 0.5));
    }

    #[cfg(feature = "flex")]
    #[test]
    fn tensors_are_divided_alike() {
        use burn::tensor::Device;
        let logits = Tensor::<2>::from_floats([[4.0, -1.0]], &Device::flex());
        let scaled = Temperature::new(2.0).unwrap().apply_tensor(logits);
        assert_eq!(scaled.into_data().try_to_vec::<f32>().unwrap(), [2.0, -0.5]);
    }
}
