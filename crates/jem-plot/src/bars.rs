//! Bar charts of one value per class, and histograms of several sets of numbers laid over each other.

use std::path::Path;

use plotters::element::{PathElement, Polygon, Rectangle};
use plotters::style::Color;
use plotters::style::text_anchor::HPos;

use super::axis::{Axis, extent};
use super::file;
use super::frame::{Frame, Mark, note};
use super::ink::{FONT, UNIT, colour, pen, text, upright};
use super::text::{clip_middle, number, width};
use jem_core::error::Result;

/// One bar per label, from 0.
///
/// A value that is not finite has no bar and says so. There is a picture for any input, also for none.
///
/// ```
/// use jem_plot::BarChart;
///
/// let svg = BarChart::new("Replay buffer", "class", "samples")
///     .with_bars([("cat", 812.0), ("dog", 1_204.0)])
///     .to_svg()?;
/// assert!(svg.contains("cat") && svg.contains("1204"));
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BarChart {
    /// The heading; empty for none.
    pub title: String,
    /// What the labels are; empty for none.
    pub x_label: String,
    /// What the values are; empty for none.
    pub y_label: String,
    /// Labels and values, from left to right.
    pub bars: Vec<(String, f64)>,
}

impl BarChart {
    /// A chart without bars.
    pub fn new(title: impl Into<String>, x_label: impl Into<String>, y_label: impl Into<String>) -> Self {
        Self { title: title.into(), x_label: x_label.into(), y_label: y_label.into(), bars: Vec::new() }
    }

    /// With more bars at the right.
    pub fn with_bars(mut self, bars: impl IntoIterator<Item = (impl Into<String>, f64)>) -> Self {
        self.bars.extend(bars.into_iter().map(|(label, value)| (label.into(), value)));
        self
    }

    /// The chart as an SVG document.
    ///
    /// # Errors
    /// [`Error::Draw`](jem_core::Error::Draw) if the drawing library refuses.
    pub fn to_svg(&self) -> Result<String> {
        let mut frame = Frame::new(&self.title, &self.x_label, &self.y_label);
        frame.grid = (false, true);
        frame.description = self.description();
        let slot = f64::from(frame.plot.0) / self.bars.len().max(1) as f64;
        let labels = || self.bars.iter().map(|(label, _)| label.as_str());
        let flat = labels().all(|label| width(label, FONT) <= slot - 6.0);
        // Labels that are too wide stand upright, and if there are too many even so, only some are shown.
        let every = if flat { 1 } else { (16.0 / slot).ceil().max(1.0) as usize };
        let standing: Vec<String> = labels().map(|label| clip_middle(label, 120.0, FONT)).collect();
        if !flat {
            let longest = standing.iter().map(|label| width(label, FONT)).fold(0.0, f64::max);
            frame.below = longest as i32 + 16;
        }
        let finite = || self.bars.iter().map(|(_, value)| *value).filter(|value| value.is_finite());
        let numbered = finite().all(|value| width(&number(value), FONT - 1.0) <= slot);
        let ticks = |label: &str| if flat { label.to_owned() } else { String::new() };
        let x = Axis::slots(labels().map(ticks).collect());
        let y = upward(self.bars.iter().map(|(_, value)| *value));
        let (low, high) = (y.low(), y.high());

        frame.draw(x, y.clone(), |canvas, plot| {
            let area = plot.plotting_area();
            let bottom = area.get_pixel_range().1.end;
            for (index, (_, value)) in self.bars.iter().enumerate() {
                let middle = index as f64;
                if value.is_finite() {
                    let corners = [(middle - 0.4, 0.0), (middle + 0.4, value.clamp(low, high))];
                    area.draw(&Rectangle::new(corners, colour(0).mix(0.85).filled()))?;
                }
                let (column, row) =
                    area.map_coordinate(&(middle, if value.is_finite() { *value } else { 0.0 }));
                if !value.is_finite() {
                    let style = upright(FONT - 1.0, HPos::Left);
                    canvas.draw_text("not finite", &style, (column, row - 5 * UNIT))?;
                } else if numbered {
                    let gap = if *value < 0.0 { 10 } else { -9 } * UNIT;
                    let style = text(FONT - 1.0, HPos::Center);
                    canvas.draw_text(&number(*value), &style, (column, row + gap))?;
                }
                if !flat && index % every == 0 {
                    let place = (column, bottom + 10 * UNIT);
                    canvas.draw_text(&standing[index], &upright(FONT, HPos::Right), place)?;
                }
            }
            if self.bars.is_empty() {
                note(canvas, plot, "no bars")?;
            }
            Ok(String::new())
        })
    }

    /// Writes the chart as an SVG file.
    ///
    /// # Errors
    /// [`Error::Io`](jem_core::Error::Io) if the file cannot be written, and those of [`BarChart::to_svg`].
    pub fn write_svg(&self, path: impl AsRef<Path>) -> Result<()> {
        file::write(path, self.to_svg()?.as_bytes())
    }

    fn description(&self) -> String {
        let mut parts = vec![format!("Bar chart of {} by {}.", self.y_label, self.x_label)];
        parts.extend(self.bars.iter().take(40).map(|(label, value)| format!("{label}: {}.", number(*value))));
        if self.bars.len() > 40 {
            parts.push(format!("And {} more bars.", self.bars.len() - 40));
        }
        parts.join(" ")
    }
}

/// An axis that holds 0 and all values, with some room at the far ends.
fn upward(values: impl Iterator<Item = f64>) -> Axis {
    let (low, high) = extent(values).unwrap_or((0.0, 1.0));
    let (low, high) = (low.min(0.0), high.max(0.0));
    let room = if high - low < 1e-290 { 1.0 } else { 0.1 * (high - low) };
    let low = if low < 0.0 { low - room } else { 0.0 };
    let high = if high > 0.0 || low == 0.0 { high + room } else { 0.0 };
    Axis::exact(low, high, 6)
}

/// How often values fall into equal bins, for one or more sets of numbers on the same bins.
///
/// Heights are shares of the set, so sets of different sizes can be compared. Values that are not finite are
/// left out and counted in the legend.
///
/// ```
/// use jem_plot::Histogram;
///
/// let svg = Histogram::new("Energies", "E(x)")
///     .with_values("data", [0.1, 0.2, 0.25, 0.9])
///     .with_values("noise", [1.5, 1.7, f64::NAN])
///     .with_bins(20)
///     .to_svg()?;
/// assert!(svg.contains("noise (3 values, 1 not finite)"));
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Histogram {
    /// The heading; empty for none.
    pub title: String,
    /// What the values are; empty for none.
    pub x_label: String,
    /// Names and values.
    pub sets: Vec<(String, Vec<f64>)>,
    /// The number of bins; `None` chooses by the size of the sets.
    pub bins: Option<usize>,
}

impl Histogram {
    /// A histogram of nothing yet.
    pub fn new(title: impl Into<String>, x_label: impl Into<String>) -> Self {
        Self { title: title.into(), x_label: x_label.into(), ..Self::default() }
    }

    /// With one more set of values.
    pub fn with_values(mut self, name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        self.sets.push((name.into(), values.into_iter().collect()));
        self
    }

    /// With a number of bins, of which at least 1 and at most 320 are drawn.
    pub fn with_bins(mut self, bins: usize) -> Self {
        self.bins = Some(bins);
        self
    }

    /// The bins' common range, and for each set the share of its finite values in each bin.
    fn shares(&self) -> ((f64, f64), Vec<Vec<f64>>) {
        let all = || self.sets.iter().flat_map(|(_, values)| values.iter().copied());
        // The axis widens a single value to a range.
        let axis = Axis::linear(all(), 0.0, 7);
        let largest = self.sets.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
        let bins = self.bins.unwrap_or_else(|| ((largest as f64).sqrt().ceil() as usize).clamp(8, 50));
        let bins = bins.clamp(1, 320);
        let count = |values: &Vec<f64>| {
            let mut shares = vec![0.0; bins];
            let finite = values.iter().filter(|value| value.is_finite()).count().max(1) as f64;
            for value in values.iter().filter(|value| value.is_finite()) {
                let bin = (axis.fraction(*value) * bins as f64) as usize;
                shares[bin.min(bins - 1)] += 1.0 / finite;
            }
            shares
        };
        ((axis.low(), axis.high()), self.sets.iter().map(|(_, values)| count(values)).collect())
    }

    /// The histogram as an SVG document.
    ///
    /// # Errors
    /// [`Error::Draw`](jem_core::Error::Draw) if the drawing library refuses.
    pub fn to_svg(&self) -> Result<String> {
        let ((low, high), shares) = self.shares();
        let bins = shares.first().map_or(1, Vec::len) as f64;
        let edge = |index: usize| {
            let part = index as f64 / bins;
            low * (1.0 - part) + high * part
        };
        let names = self.sets.iter().map(|(name, values)| {
            let broken = values.iter().filter(|value| !value.is_finite()).count();
            let broken = if broken > 0 { format!(", {broken} not finite") } else { String::new() };
            format!("{name} ({} values{broken})", values.len())
        });
        let mut frame = Frame::new(&self.title, &self.x_label, "share of the set");
        frame.legend = names.enumerate().map(|(index, name)| (name, Mark::Block, colour(index))).collect();
        let listed: Vec<&str> = frame.legend.iter().map(|key| key.0.as_str()).collect();
        frame.description = format!("Histogram of {}: {}.", self.x_label, listed.join("; "));
        frame.grid = (false, true);
        let y = upward(shares.iter().flatten().copied());

        frame.draw(Axis::exact(low, high, 7), y, |canvas, plot| {
            let area = plot.plotting_area();
            let mut empty = true;
            for (index, shares) in shares.iter().enumerate() {
                if shares.iter().all(|share| *share == 0.0) {
                    continue;
                }
                empty = false;
                let mut outline = vec![(low, 0.0)];
                for (bin, share) in shares.iter().enumerate() {
                    outline.extend([(edge(bin), *share), (edge(bin + 1), *share)]);
                }
                outline.push((high, 0.0));
                area.draw(&Polygon::new(outline.clone(), colour(index).mix(0.3).filled()))?;
                // No line along the axis where there is nothing: it would hide the sets behind it.
                let flat = |a: &(f64, f64), b: &(f64, f64)| a.1 == 0.0 && b.1 == 0.0;
                for run in outline.chunk_by(|a, b| !flat(a, b)).filter(|run| run.len() > 1) {
                    area.draw(&PathElement::new(run.to_vec(), pen(colour(index), 1.5)))?;
                }
            }
            if empty {
                note(canvas, plot, "no finite value")?;
            }
            Ok(String::new())
        })
    }

    /// Writes the histogram as an SVG file.
    ///
    /// # Errors
    /// [`Error::Io`](jem_core::Error::Io) if the file cannot be written, and those of [`Histogram::to_svg`].
    pub fn write_svg(&self, path: impl AsRef<Path>) -> Result<()> {
        file::write(path, self.to_svg()?.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Heights in pixels of the filled rectangles.
    fn heights(svg: &str) -> Vec<i32> {
        let height = |line: &str| line.split("height=\"").nth(1)?.split('"').next()?.parse::<i32>().ok();
        let bars = svg.lines().filter(|line| line.starts_with("<rect") && line.contains("fill=\"#0072B2\""));
        bars.filter_map(height).map(|height| height / UNIT).collect()
    }

    #[test]
    fn heights_are_in_proportion_and_values_are_written() {
        let svg = BarChart::new("t", "class", "n")
            .with_bars([("a", 10.0), ("b", 5.0), ("c", 0.0)])
            .to_svg()
            .unwrap();
        let found = heights(&svg);
        assert!((found[0] - 2 * found[1]).abs() <= 1 && found[0] > 200 && found[2] == 0, "{found:?}");
        assert!(svg.contains("b: 5.") && svg.contains(">\n10\n"));
    }

    #[test]
    fn long_and_many_labels_stand_upright() {
        let long = BarChart::new("t", "", "")
            .with_bars((0..10).map(|i| (format!("a long label {i}"), f64::from(i))));
        assert_eq!(long.to_svg().unwrap().matches("rotate(270").count(), 10);
        let many =
            BarChart::new("t", "", "").with_bars((0..200).map(|i| (format!("label {i}"), f64::from(-i))));
        assert!((20..60).contains(&many.to_svg().unwrap().matches("rotate(270").count()));
    }

    #[test]
    fn any_bars_give_a_picture() {
        let sets: [&[f64]; 6] =
            [&[], &[0.0], &[f64::NAN, 1.0], &[-1.0, -2.0], &[f64::MIN, f64::MAX], &[f64::INFINITY]];
        for set in sets {
            let bars = BarChart::new("", "", "").with_bars(set.iter().map(|value| ("<b>", *value)));
            let svg = bars.to_svg().unwrap();
            assert!(!svg.contains("NaN") && !svg.contains("<b>"), "{set:?}");
            assert_eq!(heights(&svg).len(), set.iter().filter(|value| value.is_finite()).count());
            assert!(heights(&svg).iter().all(|height| *height >= 0), "{set:?}");
        }
    }

    #[test]
    fn shares_add_up_to_one_per_set() {
        let histogram = Histogram::new("t", "x")
            .with_values("a", [0.0, 0.0, 1.0, f64::NAN])
            .with_values("b", (0..100).map(|i| f64::from(i) / 50.0))
            .with_values("none", [])
            .with_bins(4);
        let ((low, high), shares) = histogram.shares();
        assert_eq!((low, high), (0.0, 1.98));
        assert!((shares[0][0] - 2.0 / 3.0).abs() < 1e-12 && (shares[0][2] - 1.0 / 3.0).abs() < 1e-12);
        assert!((shares[1].iter().sum::<f64>() - 1.0).abs() < 1e-9 && shares[2] == [0.0; 4]);
        let svg = histogram.to_svg().unwrap();
        assert!(svg.contains("a (4 values, 1 not finite)") && svg.matches("<polygon").count() == 2);
    }

    #[test]
    fn any_values_give_a_histogram() {
        let sets: [&[f64]; 5] = [&[], &[3.0], &[2.0, 2.0], &[f64::NAN], &[f64::MIN, 0.0, f64::MAX]];
        for set in sets {
            let histogram = Histogram::new("", "").with_values("a", set.iter().copied());
            for histogram in [histogram.clone(), histogram.with_bins(0)] {
                assert!(!histogram.to_svg().unwrap().contains("NaN"), "{set:?}");
            }
        }
        assert!(Histogram::default().to_svg().unwrap().contains("no finite value"));
    }
}
