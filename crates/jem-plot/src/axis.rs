//! One axis of a chart: its range, its ticks and their labels, for any numbers that come in.
//!
//! Plotters maps and draws; the choice of range and ticks is made here because its own loops on ranges that
//! a diverging run produces (1e16 to 1e16 + 2, or 1e300).

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::text::numbers;

/// Larger values are drawn as this one, so that differences never overflow.
const LARGEST: f64 = 1e300;

/// A range with labelled ticks.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    log: bool,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis over the finite `values`, with `margin` of its length added on both sides.
    pub fn linear(values: impl Iterator<Item = f64>, margin: f64, ticks: usize) -> Self {
        let (low, high) = extent(values).unwrap_or((0.0, 1.0));
        let size = low.abs().max(high.abs());
        let (low, high) = if high - low <= size * 1e-12 || high - low < 1e-290 {
            // One value: give it some room.
            let room = if size < 1e-290 { 1.0 } else { size * 0.05 };
            (low - room, high + room)
        } else {
            (low - margin * (high - low), high + margin * (high - low))
        };
        Self::exact(low, high, ticks)
    }

    /// An axis from `low` to `high`, which are finite and differ.
    pub fn exact(low: f64, high: f64, ticks: usize) -> Self {
        let rough = (high - low) / ticks.max(1) as f64;
        let unit = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|part| part * unit).into_iter().find(|step| *step >= rough * 0.999);
        let step = step.unwrap_or(rough);
        let size = low.abs().max(high.abs());
        let first = (low / step - 1e-9).ceil();
        let mut labelled = Vec::new();
        for index in 0..=2 * ticks {
            let value = (first + index as f64) * step;
            if value > high + step * 1e-9 || !value.is_finite() {
                break;
            }
            labelled.push((value, numbers(value, size, step)));
        }
        Self { low, high, log: false, ticks: labelled }
    }

    /// A base-10 logarithmic axis over the finite `values` above 0.
    pub fn log(values: impl Iterator<Item = f64>, ticks: usize) -> Self {
        let (low, high) = extent(values.filter(|value| *value > 0.0)).unwrap_or((0.1, 10.0));
        // Subnormal numbers have no reciprocal.
        let (low, high) = (low.max(1e-300).log10(), high.max(1e-300).log10());
        let room = if high - low < 1e-9 { 0.5 } else { 0.04 * (high - low) };
        let (low, high) = (low - room, high + room);
        let every = ((high - low) / ticks.max(1) as f64).ceil().max(1.0) as i32;
        // Whole decades alone are too few on a short axis.
        let parts: &[f64] = if high - low < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let mut labelled = Vec::new();
        for decade in low.floor() as i32..=high.ceil() as i32 {
            for part in parts.iter().filter(|_| decade.rem_euclid(every) == 0) {
                let exponent = f64::from(decade) + part.log10();
                if (low..=high).contains(&exponent) {
                    let value = part * 10f64.powi(decade);
                    labelled.push((value, numbers(value, value, value)));
                }
            }
        }
        if labelled.len() < 2 {
            let ends = [low + room * 0.5, high - room * 0.5].map(|exponent| 10f64.powf(exponent));
            labelled = ends.map(|value| (value, numbers(value, value, value * 0.01))).to_vec();
        }
        Self { low: 10f64.powf(low), high: 10f64.powf(high), log: true, ticks: labelled }
    }

    /// One slot of length 1 for each label, with the tick in its middle.
    pub fn slots(labels: Vec<String>) -> Self {
        let high = labels.len().max(1) as f64 - 0.5;
        let ticks = labels.into_iter().enumerate().map(|(index, label)| (index as f64, label)).collect();
        Self { low: -0.5, high, log: false, ticks }
    }

    /// The smallest value on the axis.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The largest value on the axis.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// The ticks and their labels.
    pub fn ticks(&self) -> &[(f64, String)] {
        &self.ticks
    }

    /// The labels of the ticks.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.ticks.iter().map(|(_, label)| label.as_str())
    }

    /// Whether a value has a place on the axis.
    pub fn shows(&self, value: f64) -> bool {
        value.is_finite() && (!self.log || value > 0.0)
    }

    /// Where a value lies between 0 (low end) and 1 (high end); values outside are drawn at the nearer end.
    pub fn fraction(&self, value: f64) -> f64 {
        let scale =
            |value: f64| if self.log { value.max(1e-305).log10() } else { value.clamp(-LARGEST, LARGEST) };
        let (low, high) = (scale(self.low), scale(self.high));
        let part = (scale(value) - low) / (high - low);
        if part.is_nan() { 0.0 } else { part.clamp(0.0, 1.0) }
    }
}

/// The smallest and the largest finite value, if there is one.
pub(super) fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite()).map(|value| value.clamp(-LARGEST, LARGEST)).fold(
        None,
        |found, value| {
            let (low, high) = found.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        },
    )
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        limit.0 + (f64::from(limit.1 - limit.0) * self.fraction(*value)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Plotters asks twice, for minor lines and for labels; only the labels are answered.
        if hint.weight().allow_light_points() {
            return Vec::new();
        }
        self.ticks.iter().map(|(value, _)| *value).collect()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let found = self.ticks.iter().find(|(tick, _)| tick == value);
        found.map(|(_, label)| label.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.labels().collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(&Axis::exact(0.0, 1.0, 5)), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(labels(&Axis::exact(-3.0, 20_000.0, 4)), ["0", "5k", "10k", "15k", "20k"]);
        assert_eq!(labels(&Axis::log([1.0, 1e4].into_iter(), 6)), ["1", "10", "100", "1000", "10k"]);
        assert_eq!(labels(&Axis::slots(vec!["a".into(), "b".into()])), ["a", "b"]);
    }

    #[test]
    fn any_numbers_give_a_usable_axis() {
        let sets: [&[f64]; 11] = [
            &[],
            &[f64::NAN, f64::INFINITY],
            &[0.0],
            &[-7.0, -7.0],
            &[f64::MIN, f64::MAX],
            &[1e16, 1e16 + 2.0],
            &[5e-324, 1e-323],
            &[1e-200, 3e-200],
            &[1e9, 1e9 + 1e-3],
            &[0.3, 0.300_000_1],
            &[-1.0, 0.0, 1e-5],
        ];
        for set in sets {
            for axis in [Axis::linear(set.iter().copied(), 0.05, 6), Axis::log(set.iter().copied(), 6)] {
                assert!(
                    axis.low.is_finite() && axis.high.is_finite() && axis.low < axis.high,
                    "{set:?}: {axis:?}"
                );
                assert!((1..=16).contains(&axis.ticks.len()), "{set:?}: {axis:?}");
                assert!(axis.labels().all(|label| label.len() <= 14 && !label.contains("NaN")), "{axis:?}");
                for value in set.iter().chain(&[0.0]) {
                    assert!((0.0..=1.0).contains(&axis.fraction(*value)), "{set:?}: {axis:?}");
                }
            }
        }
    }

    #[test]
    fn logarithms_are_evenly_spaced() {
        let axis = Axis::log([1.0, 100.0].into_iter(), 6);
        assert!((axis.fraction(10.0) - 0.5).abs() < 1e-9);
        assert!(axis.shows(1.0) && !axis.shows(0.0) && !axis.shows(-1.0) && !axis.shows(f64::NAN));
        assert!(Axis::linear([0.0, 1.0].into_iter(), 0.0, 4).shows(-1.0));
    }
}
