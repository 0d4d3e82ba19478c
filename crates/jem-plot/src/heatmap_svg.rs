//! A heat map with axes, a colour bar and a legend: the cells as an embedded picture, the rest as vectors.

use std::fmt::Write as _;
use std::path::Path;

use plotters::style::RGBColor;
use plotters::style::text_anchor::HPos;

use super::axis::Axis;
use super::file;
use super::frame::{Frame, Key, Mark};
use super::heatmap::{Heatmap, PATHS, POINTS, viridis};
use super::ink::{FONT, UNIT, text};
use super::picture::{Picture, hex};
use super::text::number;
use jem_core::error::Result;

impl Heatmap {
    /// The picture in an SVG document, with axes, a colour bar and a legend.
    ///
    /// # Errors
    /// [`Error::Draw`](jem_core::Error::Draw) if a drawing library refuses.
    pub fn to_svg(&self) -> Result<String> {
        let (field, scale) = (&self.field, self.scale());
        let mut frame = Frame::new(&self.title, &self.labels.0, &self.labels.1);
        let aspect = (field.y_range.1 - field.y_range.0) / (field.x_range.1 - field.x_range.0);
        let longer = 420.0;
        frame.plot = match aspect {
            tall if tall > 1.0 => ((longer / tall.min(4.0)) as i32, longer as i32),
            wide => (longer as i32, (longer * wide.max(0.25)) as i32),
        };
        frame.right = 112;
        frame.grid = (false, false);
        let rgb = |[red, green, blue]: [u8; 3]| RGBColor(red, green, blue);
        let paths =
            self.paths.iter().enumerate().map(|(i, (name, _))| (name, Mark::Line, PATHS[i % PATHS.len()]));
        let dots = self
            .points
            .iter()
            .enumerate()
            .map(|(i, (name, _))| (name, Mark::Dot, POINTS[i % POINTS.len()].0));
        frame.legend = dots
            .chain(paths)
            .map(|(name, mark, colour)| -> Key { (name.clone(), mark, rgb(colour)) })
            .collect();
        frame.description = self.description(&scale);
        let ramp = Picture::ramp(64, viridis)?.to_data_uri()?;
        let image = self.cells(&scale, 1)?.to_data_uri()?;

        let x = Axis::exact(field.x_range.0, field.x_range.1, (frame.plot.0 / 70) as usize);
        let y = Axis::exact(field.y_range.0, field.y_range.1, (frame.plot.1 / 60).max(1) as usize);
        let plot_size = frame.plot;
        frame.draw(x, y, |canvas, plot| {
            let (across, down) = plot.plotting_area().get_pixel_range();
            let (left, top) = (across.start, down.start);
            let (width, height) = (plot_size.0 * UNIT, plot_size.1 * UNIT);
            let bar = left + width + 20 * UNIT;
            for (value, label) in scale.ticks() {
                let row = top + height - (scale.fraction(*value) * f64::from(height)).round() as i32;
                canvas.draw_text(label, &text(FONT, HPos::Left), (bar + 22 * UNIT, row))?;
            }
            let picture = |x: i32, y: i32, width: i32, height: i32, uri: &str| {
                format!(
                    "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" href=\"{uri}\" \
                     preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\"/>\n"
                )
            };
            let inner = picture(0, 0, width, height, &image) + &self.vectors(&scale, (width, height));
            let clip = format!(
                "<svg x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\">{inner}</svg>\n"
            );
            Ok(clip + &picture(bar, top, 16 * UNIT, height, &ramp))
        })
    }

    /// Contour lines, paths and points as SVG paths in a box of a size; dots are lines without length.
    fn vectors(&self, scale: &Axis, (width, height): (i32, i32)) -> String {
        let field = &self.field;
        let [columns, rows] = field.cells.map(|count| count as f64);
        let to = |(x, y): (f64, f64)| {
            let limit = |value: f64| value.round().clamp(-1e6, 1e6) as i32;
            (limit(x / columns * f64::from(width)), limit(y / rows * f64::from(height)))
        };
        let dot = |point: (f64, f64)| {
            let (x, y) = to(field.place(point));
            format!("M{x},{y}h0")
        };
        let mut out = String::new();
        let mut stroke = |data: &str, colour: [u8; 3], pixels: f64| {
            if !data.is_empty() {
                let (colour, width) = (hex(colour), pixels * f64::from(UNIT));
                let _ = writeln!(
                    out,
                    "<path d=\"{data}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
                     stroke-linecap=\"round\" stroke-linejoin=\"round\"/>"
                );
            }
        };
        let mut contours = String::new();
        for [from, until] in self.contour_lines(scale) {
            let ((a, b), (c, d)) = (to(from), to(until));
            let _ = write!(contours, "M{a},{b}L{c},{d}");
        }
        stroke(&contours, [235; 3], 0.8);
        for (index, (_, paths)) in self.paths.iter().enumerate() {
            let colour = PATHS[index % PATHS.len()];
            let (mut lines, mut starts, mut ends) = (String::new(), String::new(), String::new());
            for path in paths {
                for run in path.split(|(x, y)| !x.is_finite() || !y.is_finite()) {
                    for (step, point) in run.iter().enumerate() {
                        let (x, y) = to(field.place(*point));
                        let _ = write!(lines, "{}{x},{y}", if step == 0 { "M" } else { "L" });
                    }
                }
                let finite = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
                starts.extend(path.first().filter(finite).map(|point| dot(*point)));
                ends.extend(path.last().filter(finite).map(|point| dot(*point)));
            }
            stroke(&lines, [0; 3], 3.5);
            stroke(&lines, colour, 2.0);
            for (data, colour, pixels) in [
                (&starts, [0; 3], 11.0),
                (&starts, colour, 9.0),
                (&starts, [0; 3], 4.0),
                (&ends, [0; 3], 11.0),
                (&ends, colour, 9.0),
            ] {
                stroke(data, colour, pixels);
            }
        }
        for (index, (_, sets)) in self.points.iter().enumerate() {
            let (fill, outline) = POINTS[index % POINTS.len()];
            let shown = sets.iter().flatten().filter(|point| field.inside(**point));
            let dots: String = shown.map(|point| dot(*point)).collect();
            stroke(&dots, outline, 6.0);
            stroke(&dots, fill, 4.0);
        }
        out
    }

    /// Writes [`Heatmap::to_svg`] to a file.
    ///
    /// # Errors
    /// [`Error::Io`](jem_core::Error::Io) if the file cannot be written, and those of [`Heatmap::to_svg`].
    pub fn write_svg(&self, path: impl AsRef<Path>) -> Result<()> {
        file::write(path, self.to_svg()?.as_bytes())
    }

    /// What a screen reader says.
    fn description(&self, scale: &Axis) -> String {
        let mut words = format!(
            "Heat map of {} by {} values from {} (dark) to {} (bright).",
            self.field.cells[0],
            self.field.cells[1],
            number(scale.low()),
            number(scale.high()),
        );
        let broken = self.field.values.iter().filter(|value| !value.is_finite()).count();
        if broken > 0 {
            let _ = write!(words, " {broken} values are not finite (magenta).");
        }
        for (name, sets) in &self.points {
            let _ = write!(words, " {name}: {} points.", sets.iter().map(Vec::len).sum::<usize>());
        }
        for (name, paths) in &self.paths {
            let _ = write!(words, " {name}: {} paths.", paths.len());
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Field;

    #[test]
    fn everything_is_in_its_place_and_said_in_words() {
        let values = vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, f32::NAN];
        let chain = vec![(0.5, 0.5), (3.5, 0.5)];
        let map = Heatmap::new(Field::new((0.0, 4.0), (0.0, 2.0), [4, 2], values).unwrap())
            .with_contours(2)
            .with_points("data", [(1.0, 1.5), (99.0, 0.0), (f64::NAN, 0.0)])
            .with_paths("chain", [chain, vec![], vec![(1.0, f64::INFINITY), (-1e300, 1e300)]]);
        let svg = map.with_titles("<Map>", "x", "y").to_svg().unwrap();
        assert!(svg.contains("data: 3 points. chain: 3 paths.") && svg.contains("&lt;Map&gt;"));
        assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.matches("<image").count() == 2);
        // The one visible point, at a quarter of the width and of the height.
        assert!(svg.contains("d=\"M420,210h0\""));
        assert!(svg.contains("1 values are not finite (magenta)"));
        // The chain from the first to the last column, in the lower row.
        assert!(svg.contains("M210,630L1470,630"));
        assert!(svg.contains(">\n6\n"));
    }
}
