//! What all charts share: title, legend, axes and grid, and an SVG that follows the reader's colour scheme.

use std::io;

use plotters::chart::{ChartBuilder, ChartContext, LabelAreaPosition};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Rectangle};
use plotters::prelude::SVGBackend;
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, RGBColor};

use super::axis::Axis;
use super::ink::{DASHED, FONT, INK, UNIT, at, bold, dash, pen, text, upright};
use super::text::{clip, escape, width};
use jem_core::error::{Error, Result};

/// How an SVG of this crate begins; a report embeds what begins so.
pub(super) const SVG_START: &str = "<svg class=\"jem-chart\"";
/// The style of every SVG of this crate, once in each.
pub(super) const STYLE: &str = "<style>.jem-chart{color:#1a1a1f;background:#fff;max-width:100%;height:auto}\
.jem-chart text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif}\
.jem-chart polyline{stroke-linejoin:round}\
@media(prefers-color-scheme:dark){.jem-chart{color:#e4e4ea;background:#17171c}}</style>\n";
/// Height of a row of the legend.
const ROW: i32 = 22;
/// Left edge of titles, and room kept at the right edge.
const EDGE: i32 = 12;

pub(super) type Canvas<'b> = DrawingArea<SVGBackend<'b>, Shift>;
pub(super) type Plot<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;
pub(super) type Drawn<T = ()> = std::result::Result<T, DrawingAreaErrorKind<io::Error>>;

/// What stands beside a name in the legend.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mark {
    Line,
    Dashes,
    Block,
    Dot,
}

/// A name, how it is marked, and in which colour.
pub(super) type Key = (String, Mark, RGBColor);

/// Everything around the data.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub title: &'a str,
    pub x_label: &'a str,
    pub y_label: &'a str,
    pub legend: Vec<Key>,
    /// Width and height of the plot itself, in pixels.
    pub plot: (i32, i32),
    /// Room between legend and plot.
    pub above: i32,
    /// Room for the labels of the x ticks.
    pub below: i32,
    /// Room at the right of the plot.
    pub right: i32,
    /// Whether grid lines are drawn along x and along y.
    pub grid: (bool, bool),
    /// What a screen reader says after the title.
    pub description: String,
}

impl<'a> Frame<'a> {
    /// A frame of the usual size.
    pub fn new(title: &'a str, x_label: &'a str, y_label: &'a str) -> Self {
        Self {
            title,
            x_label,
            y_label,
            legend: Vec::new(),
            plot: (640, 300),
            above: 10,
            below: 24,
            right: 28,
            grid: (true, true),
            description: String::new(),
        }
    }

    /// Draws the frame, then what `paint` adds inside the axes or anywhere on the canvas. What `paint`
    /// returns is SVG that is put behind everything.
    pub fn draw(
        &self,
        x: Axis,
        y: Axis,
        paint: impl FnOnce(&Canvas<'_>, &mut Plot<'_, '_>) -> Drawn<String>,
    ) -> Result<String> {
        let widest = y.labels().map(|label| width(label, FONT)).fold(20.0, f64::max).min(160.0) as i32;
        let left = widest + if self.y_label.is_empty() { 16 } else { 40 };
        let total = left + self.plot.0 + self.right;
        let title = if self.title.is_empty() { 8 } else { 36 };
        let rows = rows(&self.legend, total - left - EDGE);
        let top = title + ROW * rows.len() as i32 + self.above;
        let below = self.below + if self.x_label.is_empty() { 4 } else { 26 };
        let size = (total, top + self.plot.1 + below);

        let mut svg = String::new();
        let draw = || -> Drawn<String> {
            let steps = ((size.0 * UNIT) as u32, (size.1 * UNIT) as u32);
            let canvas = SVGBackend::with_string(&mut svg, steps).into_drawing_area();
            if !self.title.is_empty() {
                let head = clip(self.title, f64::from(total - 2 * EDGE), 16.0);
                canvas.draw_text(&head, &bold(16.0), at(EDGE, 20))?;
            }
            for (index, row) in rows.iter().enumerate() {
                let middle = title + ROW * index as i32 + ROW / 2;
                for (offset, name, key) in row {
                    entry(&canvas, (left + offset, middle), name, key)?;
                }
            }
            let mut chart = ChartBuilder::on(&canvas)
                .margin_top(top * UNIT)
                .margin_right(self.right * UNIT)
                .set_label_area_size(LabelAreaPosition::Left, left * UNIT)
                .set_label_area_size(LabelAreaPosition::Bottom, below * UNIT)
                .build_cartesian_2d(x, y)?;
            let mut mesh = chart.configure_mesh();
            if !self.grid.0 {
                mesh.disable_x_mesh();
            }
            if !self.grid.1 {
                mesh.disable_y_mesh();
            }
            mesh.bold_line_style(pen(INK.mix(0.14), 1.0))
                .axis_style(pen(INK.mix(0.6), 1.0))
                .label_style(text(FONT, HPos::Left))
                .set_all_tick_mark_size(4 * UNIT);
            mesh.draw()?;
            if !self.x_label.is_empty() {
                let label = clip(self.x_label, f64::from(self.plot.0), FONT);
                let place = at(left + self.plot.0 / 2, size.1 - 14);
                canvas.draw_text(&label, &text(FONT, HPos::Center), place)?;
            }
            if !self.y_label.is_empty() {
                let label = clip(self.y_label, f64::from(self.plot.1), FONT);
                canvas.draw_text(&label, &upright(FONT, HPos::Center), at(14, top + self.plot.1 / 2))?;
            }
            let behind = paint(&canvas, &mut chart)?;
            canvas.present()?;
            Ok(behind)
        };
        match draw() {
            Ok(behind) => Ok(self.finished(&svg, size, &behind)),
            Err(error) => {
                Err(Error::Draw { what: format!("the chart {:?}", self.title), reason: error.to_string() })
            }
        }
    }

    /// With a head of our own, and the ink in the colour of the surrounding text.
    fn finished(&self, svg: &str, size: (i32, i32), behind: &str) -> String {
        let body = svg.split_once('>').map_or("", |(_, body)| body);
        // Text has its quotation marks escaped, so only attributes are replaced.
        let body = body.replace("\"#010203\"", "\"currentColor\"");
        let width = format!("stroke-width=\"{DASHED}\"");
        let body = body.replace(&width, &format!("{width} stroke-dasharray=\"20 14\""));
        let label = if self.title.is_empty() { "Chart" } else { self.title };
        format!(
            "{SVG_START} role=\"img\" aria-label=\"{}\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" \
             xmlns=\"http://www.w3.org/2000/svg\">\n<desc>{}</desc>\n{STYLE}{behind}{body}",
            escape(&format!("{label}. {}", self.description)),
            size.0,
            size.1,
            size.0 * UNIT,
            size.1 * UNIT,
            escape(&self.description),
        )
    }
}

/// The legend in rows that fit into `room` pixels: an offset, a shortened name, and the key.
fn rows(legend: &[Key], room: i32) -> Vec<Vec<(i32, String, &Key)>> {
    let mut rows: Vec<Vec<(i32, String, &Key)>> = Vec::new();
    let mut offset = 0;
    for key in legend {
        let name = clip(&key.0, f64::from(room - 40), FONT);
        let needed = 30 + width(&name, FONT) as i32;
        match rows.last_mut() {
            Some(row) if offset + needed <= room => row.push((offset, name, key)),
            _ => {
                offset = 0;
                rows.push(vec![(0, name, key)]);
            }
        }
        offset += needed + 18;
    }
    rows
}

/// One name of the legend with its mark.
fn entry(canvas: &Canvas<'_>, (x, y): (i32, i32), name: &str, (_, mark, colour): &Key) -> Drawn {
    match mark {
        Mark::Line => canvas.draw(&PathElement::new(vec![at(x, y), at(x + 22, y)], pen(*colour, 2.5)))?,
        Mark::Dashes => canvas.draw(&PathElement::new(vec![at(x, y), at(x + 22, y)], dash(*colour)))?,
        Mark::Block => {
            let corners = [at(x + 4, y - 6), at(x + 17, y + 6)];
            canvas.draw(&Rectangle::new(corners, colour.mix(0.45).filled()))?;
            canvas.draw(&Rectangle::new(corners, pen(*colour, 1.5)))?;
        }
        Mark::Dot => {
            canvas.draw(&Circle::new(at(x + 11, y), 5 * UNIT, colour.filled()))?;
            canvas.draw(&Circle::new(at(x + 11, y), 5 * UNIT, pen(INK, 1.0)))?;
        }
    }
    canvas.draw_text(name, &text(FONT, HPos::Left), at(x + 30, y))
}

/// A sentence in the middle of an empty plot.
pub(super) fn note(canvas: &Canvas<'_>, plot: &Plot<'_, '_>, words: &str) -> Drawn {
    let (across, down) = plot.plotting_area().get_pixel_range();
    let middle = ((across.start + across.end) / 2, (down.start + down.end) / 2);
    canvas.draw_text(words, &text(FONT + 1.0, HPos::Center), middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_is_labelled_and_follows_the_colour_scheme() {
        let mut frame = Frame::new("A <title>", "time & more", "value");
        frame.legend = vec![("first".into(), Mark::Line, INK), ("second".into(), Mark::Dashes, INK)];
        frame.description = "Two \"curves\".".into();
        let axis = || Axis::exact(0.0, 1.0, 2);
        let svg = frame.draw(axis(), axis(), |_, _| Ok("<g/>".to_owned())).unwrap();
        assert!(svg.starts_with(SVG_START) && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("aria-label=\"A &lt;title&gt;. Two &quot;curves&quot;.\""));
        assert!(svg.contains("A &lt;title&gt;\n") && svg.contains("time &amp; more"));
        assert!(svg.contains("stroke-dasharray") && svg.contains("currentColor") && !svg.contains("#010203"));
        assert!(svg.find("<g/>") < svg.find("<text"));
        assert!(
            ["first", "second", "0.5", ">value"]
                .iter()
                .all(|part| svg.contains(part.trim_start_matches('>')))
        );
    }

    #[test]
    fn a_long_legend_wraps_and_long_names_are_cut() {
        let names = |name: &str, count| vec![(name.to_owned(), Mark::Dot, INK); count];
        assert_eq!(rows(&names("a name of some length", 9), 600).len(), 3);
        let long = names(&"x".repeat(500), 1);
        let rows = rows(&long, 600);
        assert!(rows.len() == 1 && rows[0][0].1.ends_with('…'));
    }

    #[test]
    fn long_and_empty_texts_are_drawn() {
        let long = "word ".repeat(200);
        for words in ["", &long] {
            let svg = Frame::new(words, words, words)
                .draw(Axis::slots(vec![]), Axis::exact(-1.0, 1.0, 4), |canvas, plot| {
                    note(canvas, plot, "nothing")?;
                    Ok(String::new())
                })
                .unwrap();
            assert!(svg.contains("nothing"));
        }
    }
}
