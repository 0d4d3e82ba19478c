//! Several charts on one sheet: rows and columns under a title, as one SVG document.

use std::fmt::Write as _;
use std::path::Path;

use super::file;
use super::frame::{STYLE, SVG_START};
use super::text::escape;
use jem_core::error::{Error, Result, ensure};

/// Height of the title's line, in pixels.
const TITLE: usize = 40;

/// Charts of this crate side by side, each with its axes, in rows from the left. A column is as wide as its widest
/// chart, a row as high as its highest.
///
/// ```
/// use jem_plot::{Chart, Sheet};
///
/// let chart = |title: &str| Chart::new(title, "x", "y").with_series("a", [(0.0, 1.0), (1.0, 2.0)]).to_svg();
/// let sheet = Sheet::new("Two charts", 2)?.with_chart(chart("A")?)?.with_chart(chart("B")?)?;
/// assert!(sheet.to_svg().contains("Two charts"));
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Sheet {
    title: String,
    columns: usize,
    charts: Vec<Part>,
}

/// A chart without its head, and how large it is.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    width: usize,
    height: usize,
    /// From the attributes on, without the style that the sheet has once for all.
    rest: String,
}

impl Sheet {
    /// An empty sheet of so many columns.
    ///
    /// # Errors
    /// [`Error::Config`] if there are no columns.
    pub fn new(title: impl Into<String>, columns: usize) -> Result<Self> {
        ensure(columns > 0, "Sheet.columns", columns, "at least 1")?;
        Ok(Self { title: title.into(), columns, charts: Vec::new() })
    }

    /// Adds a chart as the `to_svg` of [`Chart`](super::Chart), [`Heatmap`](super::Heatmap) and the others gives it.
    ///
    /// # Errors
    /// [`Error::Draw`] for an SVG that is not of this crate.
    pub fn with_chart(mut self, svg: impl AsRef<str>) -> Result<Self> {
        self.charts.push(part(svg.as_ref()).ok_or_else(|| Error::Draw {
            what: format!("the sheet {:?}", self.title),
            reason: "a part of it is not a chart of this crate".to_owned(),
        })?);
        Ok(self)
    }

    /// The sheet as an SVG document, which a [`Report`](super::Report) can hold as well.
    pub fn to_svg(&self) -> String {
        let columns = self.columns.min(self.charts.len().max(1));
        let mut widths = vec![0; columns];
        let mut heights = vec![0; self.charts.len().div_ceil(columns)];
        for (index, part) in self.charts.iter().enumerate() {
            let (column, row) = (index % columns, index / columns);
            widths[column] = widths[column].max(part.width);
            heights[row] = heights[row].max(part.height);
        }
        let (top, title) = if self.title.is_empty() { (0, "Sheet") } else { (TITLE, self.title.as_str()) };
        let width = widths.iter().sum::<usize>().max(1);
        let height = top + heights.iter().sum::<usize>().max(1);
        let title = escape(title);
        let mut svg = format!(
            "{SVG_START} role=\"group\" aria-label=\"{title}\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\">\n{STYLE}"
        );
        if top > 0 {
            let _ = writeln!(
                svg,
                "<text x=\"12\" y=\"27\" font-size=\"20\" font-weight=\"bold\" fill=\"currentColor\">{title}</text>"
            );
        }
        for (index, part) in self.charts.iter().enumerate() {
            let (column, row) = (index % columns, index / columns);
            let x: usize = widths[..column].iter().sum();
            let y = top + heights[..row].iter().sum::<usize>();
            let _ = write!(svg, "<svg x=\"{x}\" y=\"{y}\"{}", part.rest);
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Writes [`Sheet::to_svg`] to a file.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written.
    pub fn write_svg(&self, path: impl AsRef<Path>) -> Result<()> {
        file::write(path, self.to_svg().as_bytes())
    }
}

/// What is left of a chart within another SVG. The style goes, because it would stretch an inner SVG over the sheet.
fn part(svg: &str) -> Option<Part> {
    let rest = svg.strip_prefix(SVG_START)?;
    let (head, _) = rest.split_once('>')?;
    let size = |name: &str| -> Option<usize> {
        let (_, from) = head.split_once(&format!(" {name}=\""))?;
        from.split_once('"')?.0.parse().ok()
    };
    Some(Part { width: size("width")?, height: size("height")?, rest: rest.replacen(STYLE, "", 1) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BarChart, Chart, Field, Heatmap, Report};

    fn charts() -> [String; 3] {
        let curve = Chart::new("a > \"b\" width=\"9\"", "x", "y").with_series("s", [(0.0, 1.0), (1.0, 2.0)]);
        let map = Heatmap::new(Field::new((0.0, 1.0), (0.0, 1.0), [2, 2], vec![0.0; 4]).unwrap());
        let bars = BarChart::new("bars", "x", "y").with_bars([("one", 1.0)]);
        [curve.to_svg().unwrap(), map.to_svg().unwrap(), bars.to_svg().unwrap()]
    }

    #[test]
    fn charts_lie_in_rows_and_none_over_another() {
        let [curve, map, bars] = charts();
        let sizes: Vec<(usize, usize)> =
            [&curve, &map, &bars].map(|svg| part(svg).map(|p| (p.width, p.height)).unwrap()).to_vec();
        let sheet = Sheet::new("<Sheet>", 2).unwrap();
        let sheet = [curve, map, bars].into_iter().fold(sheet, |sheet, svg| sheet.with_chart(svg).unwrap());
        let svg = sheet.to_svg();
        let across = sizes[0].0.max(sizes[2].0);
        let down = TITLE + sizes[0].1.max(sizes[1].1);
        assert!(svg.contains(&format!("<svg x=\"{across}\" y=\"{TITLE}\" role")), "{across}");
        assert!(svg.contains(&format!("<svg x=\"0\" y=\"{down}\" role")), "{down}");
        let (width, height) = (across + sizes[1].0, down + sizes[2].1);
        assert!(svg.contains(&format!("viewBox=\"0 0 {width} {height}\"")));
        assert_eq!((svg.matches("<style>").count(), svg.matches("class=\"jem-chart\"").count()), (1, 1));
        assert!(
            svg.contains("&lt;Sheet&gt;") && svg.matches("<svg").count() == svg.matches("</svg>").count()
        );
        // A report takes it for what it is: a chart of this crate.
        assert!(!Report::new("r").svg(svg, "sheet").to_html().contains("data:image/svg+xml"));
    }

    #[test]
    fn an_empty_sheet_is_drawn_and_what_is_no_chart_is_refused() {
        assert!(Sheet::new("", 3).unwrap().to_svg().contains("viewBox=\"0 0 1 1\""));
        assert!(Sheet::new("", 0).unwrap_err().to_string().contains("Sheet.columns = 0"));
        let error = Sheet::new("S", 1).unwrap().with_chart("<svg width=\"1\" height=\"1\"/>").unwrap_err();
        assert!(error.to_string().contains("not a chart of this crate"), "{error}");
    }
}
