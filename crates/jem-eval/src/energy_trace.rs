//! Energies along chains or along training: where samples are, and how far from the data.

use serde::{Deserialize, Serialize};

use super::checks::{finite, mean, variance};
use jem_core::error::{Error, Result, ensure};

/// The energies of one step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EnergyPoint {
    /// The step of the chains, or the iteration of training.
    pub step: u64,
    /// Mean E(x) of the samples, in nats.
    pub mean: f64,
    /// Standard deviation of E(x) over the samples (n - 1; 0 for one sample).
    pub standard_deviation: f64,
    /// mean E(data) - mean E(samples), in nats: E⁺ - E⁻. Near 0 where the samples look to the model like data;
    /// far above 0 where the chains have found lower energies than the data has.
    pub gap: f64,
}

/// Energies over time.
///
/// ```
/// use jem_eval::EnergyTrace;
/// let mut trace = EnergyTrace::new();
/// let data = [-3.0f32, -1.0]; // energies, from the device
/// trace.push(0, &[4.0f32, 6.0], &data)?;
/// trace.push(10, &[-2.0f32, -1.0], &data)?;
/// let last = trace.points()[1];
/// assert_eq!((last.step, last.mean, last.gap), (10, -1.5, -0.5));
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EnergyTrace {
    points: Vec<EnergyPoint>,
}

impl EnergyTrace {
    /// A trace without points.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a step: E(x) of the samples there, and of data under the same model.
    ///
    /// # Errors
    /// [`Error::Shape`] if a side is empty, [`Error::NonFinite`] for a NaN or an infinity, [`Error::Config`] if
    /// `step` is not above the last one.
    pub fn push<T: Copy + Into<f64>>(&mut self, step: u64, samples: &[T], data: &[T]) -> Result<()> {
        if let Some(last) = self.points.last() {
            let allowed = format!("above the last one, {}", last.step);
            ensure(step > last.step, "EnergyTrace.step", step, &allowed)?;
        }
        let samples = energies("energies of samples", samples)?;
        let data = energies("energies of data", data)?;
        let standard_deviation = if samples.len() > 1 { variance(&samples, 1).sqrt() } else { 0.0 };
        let mean_samples = mean(&samples);
        let gap = mean(&data) - mean_samples;
        self.points.push(EnergyPoint { step, mean: mean_samples, standard_deviation, gap });
        Ok(())
    }

    /// The points, by step.
    pub fn points(&self) -> &[EnergyPoint] {
        &self.points
    }
}

fn energies<T: Copy + Into<f64>>(what: &str, values: &[T]) -> Result<Vec<f64>> {
    if values.is_empty() {
        return Err(Error::shape(what, &[0], "at least one energy"));
    }
    finite(what, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_hold_mean_deviation_and_gap() {
        let mut trace = EnergyTrace::new();
        trace.push(3, &[1.0, 3.0], &[5.0]).unwrap();
        trace.push(4, &[1.0], &[0.0, 1.0]).unwrap();
        let [first, second] = trace.points() else { panic!("two points") };
        assert_eq!((first.mean, first.standard_deviation, first.gap), (2.0, 2f64.sqrt(), 3.0));
        assert_eq!((second.standard_deviation, second.gap), (0.0, -0.5));
    }

    #[test]
    fn bad_steps_leave_the_trace_as_it_was() {
        let mut trace = EnergyTrace::new();
        trace.push(3, &[1.0], &[5.0]).unwrap();
        let before = trace.clone();
        for (step, samples, data, part) in [
            (3, vec![1.0], vec![1.0], "EnergyTrace.step = 3"),
            (4, vec![], vec![1.0], "energies of samples has shape [0]"),
            (4, vec![1.0], vec![], "energies of data has shape [0]"),
            (4, vec![1.0], vec![f64::NAN], "energies of data[0] is not finite"),
        ] {
            let error = trace.push(step, &samples, &data).unwrap_err().to_string();
            assert!(error.starts_with(part), "{error}");
            assert_eq!(trace, before);
        }
    }
}
