//! Line charts: curves over iterations, with gaps where a value is missing and marks where something happened.

use std::path::Path;

use plotters::element::{Circle, PathElement};
use plotters::style::Color;
use plotters::style::text_anchor::HPos;

use super::axis::Axis;
use super::file;
use super::frame::{Canvas, Drawn, Frame, Mark, Plot, note};
use super::ink::{FONT, INK, UNIT, at, colour, dash, dashed, pen, text};
use super::text::{clip, number, width};
use jem_core::error::Result;

/// Curves with more points than this are drawn as the extremes of every pixel column, pale, and a median.
const THIN_ABOVE: usize = 2000;
/// Rows of event labels above the plot.
const LANES: usize = 3;
/// Height of a row of event labels.
const LANE: i32 = 18;

/// A named curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// (x, y) in drawing order; the curve is interrupted at a point that is not finite.
    pub points: Vec<(f64, f64)>,
}

/// Something that happened at one x: a vertical dashed line with a label.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Where.
    pub x: f64,
    /// What.
    pub label: String,
}

/// A line chart.
///
/// Values that are not finite (and on a logarithmic axis those not above 0) are gaps; a lonely point is a
/// dot. A curve of more than 2,000 points is drawn pale, without losing a spike, below its running median.
/// There is a picture for any input, also for none.
///
/// ```
/// use jem_plot::Chart;
///
/// let svg = Chart::new("Energy", "iteration", "E(x)")
///     .with_series("data", [(0.0, 1.0), (1.0, 0.5), (2.0, f64::NAN), (3.0, 0.2)])
///     .with_series("samples", [(0.0, 2.0), (1.0, 1.0), (3.0, 0.4)])
///     .with_event(2.0, "rollback")
///     .to_svg()?;
/// assert!(svg.contains("rollback") && !svg.contains("NaN"));
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Chart {
    /// The heading; empty for none.
    pub title: String,
    /// What x is; empty for none.
    pub x_label: String,
    /// What y is; empty for none.
    pub y_label: String,
    /// The curves.
    pub series: Vec<Series>,
    /// What happened when.
    pub events: Vec<Event>,
    /// Whether y is logarithmic.
    pub log_y: bool,
    /// The smallest and largest y shown; `None` takes them from the data.
    pub y_range: Option<(f64, f64)>,
}

impl Chart {
    /// A chart without curves.
    pub fn new(title: impl Into<String>, x_label: impl Into<String>, y_label: impl Into<String>) -> Self {
        let (title, x_label, y_label) = (title.into(), x_label.into(), y_label.into());
        Self { title, x_label, y_label, ..Self::default() }
    }

    /// With one more curve.
    pub fn with_series(
        mut self,
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        self.series.push(Series { name: name.into(), points: points.into_iter().collect() });
        self
    }

    /// With one more vertical line. An event whose x is not finite has no place and is left out.
    pub fn with_event(mut self, x: f64, label: impl Into<String>) -> Self {
        self.events.push(Event { x, label: label.into() });
        self
    }

    /// With a logarithmic y axis.
    pub fn with_log_y(mut self) -> Self {
        self.log_y = true;
        self
    }

    /// With y from `low` to `high`, so that one outlier does not flatten the rest: points outside are drawn
    /// at the edge. A range that is empty or not finite is ignored.
    pub fn with_y_range(mut self, low: f64, high: f64) -> Self {
        self.y_range = Some((low, high));
        self
    }

    /// The chart as an SVG document.
    ///
    /// # Errors
    /// [`Error::Draw`](jem_core::Error::Draw) if the drawing library refuses.
    pub fn to_svg(&self) -> Result<String> {
        let y_wanted = |y: f64| y.is_finite() && (!self.log_y || y > 0.0);
        let shown =
            || self.series.iter().flat_map(|s| &s.points).filter(|(x, y)| x.is_finite() && y_wanted(*y));
        let events: Vec<&Event> = self.events.iter().filter(|event| event.x.is_finite()).collect();
        let x = Axis::linear(shown().map(|point| point.0).chain(events.iter().map(|event| event.x)), 0.01, 7);
        let range = self.y_range.filter(|(low, high)| y_wanted(*low) && y_wanted(*high) && low < high);
        let (ys, margin): (Vec<f64>, f64) = match range {
            Some((low, high)) => (vec![low, high], 0.0),
            None => (shown().map(|point| point.1).collect(), 0.05),
        };
        let empty = shown().next().is_none();
        let y = match self.log_y {
            true => Axis::log(ys.into_iter(), 6),
            false => Axis::linear(ys.into_iter(), margin, 6),
        };

        let mut frame = Frame::new(&self.title, &self.x_label, &self.y_label);
        if self.series.len() > 1 {
            let mark = |index| if dashed(index) { Mark::Dashes } else { Mark::Line };
            let names = self.series.iter().enumerate();
            frame.legend = names.map(|(index, s)| (s.name.clone(), mark(index), colour(index))).collect();
        }
        let (labels, lanes) = place(&events, &x, f64::from(frame.plot.0));
        frame.above += LANE * lanes as i32;
        frame.description = self.description(&events);
        frame.draw(x.clone(), y.clone(), |canvas, plot| {
            marks(canvas, plot, &x, &labels, &events)?;
            for (index, series) in self.series.iter().enumerate() {
                haze(plot, &x, &y, &series.points, index)?;
            }
            for (index, series) in self.series.iter().enumerate() {
                curve(plot, &x, &y, &series.points, index)?;
            }
            if empty {
                note(canvas, plot, if self.log_y { "no finite value above 0" } else { "no finite value" })?;
            }
            Ok(String::new())
        })
    }

    /// Writes the chart as an SVG file.
    ///
    /// # Errors
    /// [`Error::Io`](jem_core::Error::Io) if the file cannot be written, and those of [`Chart::to_svg`].
    pub fn write_svg(&self, path: impl AsRef<Path>) -> Result<()> {
        file::write(path, self.to_svg()?.as_bytes())
    }

    fn description(&self, events: &[&Event]) -> String {
        let mut parts = vec![format!("Line chart of {} over {}.", self.y_label, self.x_label)];
        for series in &self.series {
            let last = series.points.iter().rev().find(|(x, y)| x.is_finite() && y.is_finite());
            let last = last.map_or("nothing finite".to_owned(), |(_, y)| format!("last {}", number(*y)));
            parts.push(format!("{}: {} points, {last}.", series.name, series.points.len()));
        }
        parts.extend(events.iter().take(20).map(|event| format!("At {}: {}.", number(event.x), event.label)));
        if events.len() > 20 {
            parts.push(format!("And {} more events.", events.len() - 20));
        }
        parts.join(" ")
    }
}

/// A label of an event or of several at nearly one place: the pixel of its line, the lane, the text.
type Label = (f64, usize, String);

/// Chooses a lane for every label that fits above the plot; also returns how many lanes are used.
fn place(events: &[&Event], x: &Axis, room: f64) -> (Vec<Label>, usize) {
    let mut sorted: Vec<(f64, &str)> =
        events.iter().map(|e| (x.fraction(e.x) * room, e.label.as_str())).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Events of one label that nearly touch become one label with a count.
    let mut merged: Vec<(f64, f64, &str, usize)> = Vec::new();
    for (pixel, label) in sorted {
        match merged.iter_mut().rev().take(4).find(|group| group.2 == label && pixel - group.1 < 24.0) {
            Some(group) => (group.1, group.3) = (pixel, group.3 + 1),
            None => merged.push((pixel, pixel, label, 1)),
        }
    }
    let mut ends = [f64::NEG_INFINITY; LANES];
    let mut placed = Vec::new();
    for (pixel, _, label, count) in merged {
        let label = clip(label, 170.0, FONT - 1.0);
        let label = if count > 1 { format!("{label} ×{count}") } else { label };
        let half = width(&label, FONT - 1.0) / 2.0;
        let centre = pixel.clamp(half.min(room / 2.0), (room - half).max(room / 2.0));
        if let Some(lane) = ends.iter().position(|end| centre - half > *end + 6.0) {
            ends[lane] = centre + half;
            placed.push((centre, lane, label));
        }
    }
    let lanes = placed.iter().map(|(_, lane, _)| lane + 1).max().unwrap_or(0);
    (placed, lanes)
}

/// The vertical lines of events and their labels.
fn marks(canvas: &Canvas<'_>, plot: &Plot<'_, '_>, x: &Axis, labels: &[Label], events: &[&Event]) -> Drawn {
    let (across, down) = plot.plotting_area().get_pixel_range();
    let mut columns: Vec<i32> =
        events.iter().map(|e| (x.fraction(e.x) * f64::from(across.end - across.start)) as i32).collect();
    columns.sort_unstable();
    // Many events in one place are one line.
    columns.dedup_by(|next, kept| *next - *kept < UNIT);
    for column in columns {
        let column = across.start + column;
        let ends = vec![(column, down.start), (column, down.end)];
        canvas.draw(&PathElement::new(ends, dash(INK.mix(0.55))))?;
    }
    for (centre, lane, label) in labels {
        let place = at(across.start / UNIT + *centre as i32, down.start / UNIT - 10 - LANE * *lane as i32);
        canvas.draw_text(label, &text(FONT - 1.0, HPos::Center), place)?;
    }
    Ok(())
}

/// The stretches of a curve without a gap.
fn runs<'a>(points: &'a [(f64, f64)], x: &'a Axis, y: &'a Axis) -> impl Iterator<Item = &'a [(f64, f64)]> {
    points.split(|point| !x.shows(point.0) || !y.shows(point.1)).filter(|run| !run.is_empty())
}

/// The extremes of the long runs of a curve, pale, to be drawn below the curves themselves.
fn haze(plot: &Plot<'_, '_>, x: &Axis, y: &Axis, points: &[(f64, f64)], index: usize) -> Drawn {
    let pale = pen(colour(index).mix(0.35), 1.0);
    for run in runs(points, x, y).filter(|run| run.len() > THIN_ABOVE) {
        plot.plotting_area().draw(&PathElement::new(thinned(run, x), pale))?;
    }
    Ok(())
}

/// One curve, interrupted where there is nothing to draw.
fn curve(plot: &Plot<'_, '_>, x: &Axis, y: &Axis, points: &[(f64, f64)], index: usize) -> Drawn {
    let pen = if dashed(index) { dash(colour(index)) } else { pen(colour(index), 2.0) };
    let area = plot.plotting_area();
    for run in runs(points, x, y) {
        match run {
            [point] => area.draw(&Circle::new(*point, 3 * UNIT, colour(index).filled()))?,
            _ if run.len() <= THIN_ABOVE => area.draw(&PathElement::new(run.to_vec(), pen))?,
            _ => area.draw(&PathElement::new(medians(run, x), pen))?,
        }
    }
    Ok(())
}

/// A long run of points without those that cannot be seen: of consecutive points in one pixel column the
/// first, the lowest, the highest and the last are kept, so no spike is lost.
fn thinned(run: &[(f64, f64)], x: &Axis) -> Vec<(f64, f64)> {
    let column = |point: &(f64, f64)| (x.fraction(point.0) * 640.0) as i32;
    let mut kept = Vec::new();
    for group in run.chunk_by(|a, b| column(a) == column(b)) {
        let index = |better: fn(f64, f64) -> bool| {
            (0..group.len()).fold(0, |best, i| if better(group[i].1, group[best].1) { i } else { best })
        };
        let mut chosen = [0, index(|a, b| a < b), index(|a, b| a > b), group.len() - 1];
        chosen.sort_unstable();
        let mut last = None;
        for i in chosen {
            if last != Some(i) {
                kept.push(group[i]);
            }
            last = Some(i);
        }
    }
    kept
}

/// The median of the points in each of 160 columns, at the middle of their x.
fn medians(run: &[(f64, f64)], x: &Axis) -> Vec<(f64, f64)> {
    let column = |point: &(f64, f64)| (x.fraction(point.0) * 160.0) as i32;
    let median = |group: &[(f64, f64)]| {
        let mut ys: Vec<f64> = group.iter().map(|point| point.1).collect();
        ys.sort_unstable_by(f64::total_cmp);
        let (first, last) = (group[0].0, group[group.len() - 1].0);
        (first * 0.5 + last * 0.5, ys[ys.len() / 2])
    };
    run.chunk_by(|a, b| column(a) == column(b)).map(median).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coloured(svg: &str, tag: &str) -> usize {
        svg.lines().filter(|line| line.starts_with(&format!("<{tag} ")) && line.contains("#0072B2")).count()
    }

    #[test]
    fn gaps_interrupt_and_lonely_points_are_dots() {
        let ys = [1.0, 2.0, f64::NAN, 3.0, f64::INFINITY, 2.0, 2.5, 1.0];
        let points = ys.iter().enumerate().map(|(i, y)| (i as f64, *y));
        let svg = Chart::new("t", "x", "y").with_series("a", points).to_svg().unwrap();
        assert_eq!((coloured(&svg, "polyline"), coloured(&svg, "circle")), (2, 1));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn events_are_lines_with_labels_and_are_read_aloud() {
        let chart =
            Chart::new("t", "x", "y").with_series("a", (0..100).map(|i| (f64::from(i), f64::from(i * i))));
        let svg = chart
            .clone()
            .with_event(20.0, "rollback")
            .with_event(21.0, "rollback")
            .with_event(80.0, "<skip>");
        let svg = svg.with_event(f64::NAN, "nowhere").to_svg().unwrap();
        assert_eq!(svg.matches("stroke-dasharray").count(), 3);
        assert!(svg.contains("rollback ×2\n") && svg.contains("&lt;skip&gt;\n") && !svg.contains("nowhere"));
        assert!(svg.contains("At 20: rollback."));
        assert!(!chart.to_svg().unwrap().contains("stroke-dasharray"));
    }

    #[test]
    fn labels_of_events_never_overlap() {
        let events: Vec<Event> =
            (0..60).map(|i| Event { x: f64::from(i * i % 97), label: format!("event {i}") }).collect();
        let (labels, lanes) = place(&events.iter().collect::<Vec<_>>(), &Axis::exact(0.0, 97.0, 5), 640.0);
        assert!(lanes <= LANES && labels.len() >= 10);
        for (i, a) in labels.iter().enumerate() {
            let half = |label: &Label| width(&label.2, FONT - 1.0) / 2.0;
            assert!(a.0 >= half(a) && a.0 + half(a) <= 640.0);
            for b in labels[..i].iter().filter(|b| b.1 == a.1) {
                assert!((a.0 - b.0).abs() >= half(a) + half(b), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn thinning_keeps_every_spike() {
        let mut points: Vec<(f64, f64)> = (0..200_000).map(|i| (f64::from(i), 0.0)).collect();
        points[77_777].1 = 5.0;
        points[123_456].1 = -5.0;
        let kept = thinned(&points, &Axis::exact(0.0, 200_000.0, 5));
        assert!(kept.len() < 4 * 641 && kept.contains(&points[77_777]) && kept.contains(&points[123_456]));
        assert_eq!((kept[0], kept[kept.len() - 1]), (points[0], points[199_999]));
        assert!(kept.is_sorted_by(|a, b| a.0 < b.0));
        let middle = medians(&points, &Axis::exact(0.0, 200_000.0, 5));
        assert!((160..=161).contains(&middle.len()) && middle.iter().all(|point| point.1 == 0.0));
        let svg = Chart::new("t", "x", "y").with_series("a", points).to_svg().unwrap();
        assert_eq!(coloured(&svg, "polyline"), 2);
    }

    #[test]
    fn any_data_gives_a_picture() {
        let sets: [&[(f64, f64)]; 7] = [
            &[],
            &[(f64::NAN, f64::NAN)],
            &[(1.0, 1.0)],
            &[(0.0, 3.0), (1.0, 3.0)],
            &[(0.0, f64::MIN), (1.0, f64::MAX)],
            &[(0.0, -1.0), (1.0, 0.0)],
            &[(1e300, 1e-300), (-1e300, 5e-324)],
        ];
        for set in sets {
            let chart = Chart::new("", "", "").with_series("a", set.iter().copied());
            for chart in [chart.clone(), chart.clone().with_log_y(), chart.with_y_range(f64::NAN, 1.0)] {
                let svg = chart.to_svg().unwrap();
                assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{set:?}");
            }
        }
        assert!(Chart::default().to_svg().unwrap().contains("no finite value"));
        let negative = Chart::default().with_log_y().with_series("a", [(0.0, -1.0)]);
        assert!(negative.to_svg().unwrap().contains("no finite value above 0"));
    }

    #[test]
    fn a_range_clamps_and_nine_series_are_told_apart() {
        let mut chart = Chart::new("t", "x", "y").with_y_range(0.0, 1.0);
        for i in 0..9 {
            chart = chart.with_series(format!("s{i}"), [(0.0, 0.5), (1.0, 1e9)]);
        }
        let svg = chart.to_svg().unwrap();
        // The ninth repeats the first colour, dashed, on its curve and in the legend.
        assert_eq!(svg.matches("stroke-dasharray").count(), 2);
        assert!(svg.contains(">\n0.8\n") && !svg.contains(">\n1G\n"));
    }
}
