//! One self-contained HTML page from a list of blocks: text, tables, charts, pictures, events.
//!
//! The page opens from disk: it has no scripts and fetches nothing. It follows the reader's light or dark
//! scheme, fits a phone, and says in words what its pictures show.

use std::fmt::Write as _;
use std::path::Path;

use super::file;
use super::frame::SVG_START;
use super::picture::base64;
use super::text::escape;
use crate::error::Result;

/// A part of a page, in reading order.
#[derive(Debug, Clone, PartialEq)]
enum Block {
    Summary(Vec<(String, String)>),
    Section { heading: String, text: String },
    Svg { svg: String, caption: String },
    Image { uri: String, caption: String },
    Table { headers: Vec<String>, rows: Vec<Vec<String>> },
}

/// A page under construction. All text is escaped.
///
/// ```
/// use jem_core::viz::{Chart, Report};
///
/// let chart = Chart::new("Loss", "iteration", "loss").with_series("total", [(0.0, 2.0), (1.0, 1.0)]);
/// let html = Report::new("A run <1>")
///     .summary(&[("iterations", "2"), ("device", "CPU")])
///     .section("Training", "The loss fell.")
///     .svg(chart.to_svg()?, "Loss over iterations")
///     .table(&["metric", "value"], [["accuracy", "0.93"]])
///     .events([(1, "rollback", "the energy of the samples left its bounds")])
///     .to_html();
/// assert!(html.starts_with("<!doctype html>") && html.contains("A run &lt;1&gt;"));
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    title: String,
    blocks: Vec<Block>,
}

impl Report {
    /// A page with a title only.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), blocks: Vec::new() }
    }

    /// Keys and values, such as the configuration of a run or its results.
    pub fn summary(mut self, pairs: &[(impl AsRef<str>, impl AsRef<str>)]) -> Self {
        let pairs = pairs.iter().map(|(key, value)| (key.as_ref().to_owned(), value.as_ref().to_owned()));
        self.blocks.push(Block::Summary(pairs.collect()));
        self
    }

    /// A heading, and text whose paragraphs are separated by empty lines.
    pub fn section(mut self, heading: impl Into<String>, text: impl Into<String>) -> Self {
        self.blocks.push(Block::Section { heading: heading.into(), text: text.into() });
        self
    }

    /// A chart. An SVG that this crate made becomes part of the page and follows its colour scheme; another
    /// one, or one with anything active in it, is shown as an image, in which browsers run and fetch nothing.
    pub fn svg(mut self, svg: impl Into<String>, caption: impl Into<String>) -> Self {
        self.blocks.push(Block::Svg { svg: svg.into(), caption: caption.into() });
        self
    }

    /// A picture as a data URI, such as [`Picture::to_data_uri`](super::Picture::to_data_uri) gives. Anything
    /// else than a PNG's data URI would be fetched by the reader's browser, so it is named instead of shown.
    pub fn image(mut self, uri: impl Into<String>, caption: impl Into<String>) -> Self {
        self.blocks.push(Block::Image { uri: uri.into(), caption: caption.into() });
        self
    }

    /// A table. Rows may be shorter or longer than the header; columns of numbers are aligned to the
    /// right.
    pub fn table(
        mut self,
        headers: &[impl AsRef<str>],
        rows: impl IntoIterator<Item = impl IntoIterator<Item = impl Into<String>>>,
    ) -> Self {
        let headers = headers.iter().map(|header| header.as_ref().to_owned()).collect();
        let rows = rows.into_iter().map(|row| row.into_iter().map(Into::into).collect()).collect();
        self.blocks.push(Block::Table { headers, rows });
        self
    }

    /// What happened during a run: iteration, kind, and what there is to say about it.
    pub fn events(
        mut self,
        events: impl IntoIterator<Item = (u64, impl Into<String>, impl Into<String>)>,
    ) -> Self {
        let row = |(iteration, kind, detail): (u64, _, _)| vec![iteration.to_string(), kind, detail];
        let events =
            events.into_iter().map(|(iteration, kind, detail)| (iteration, kind.into(), detail.into()));
        let rows: Vec<Vec<String>> = events.map(row).collect();
        let headers = ["iteration", "event", "detail"].map(str::to_owned).to_vec();
        self.blocks.push(if rows.is_empty() {
            Block::Section { heading: String::new(), text: "No events.".to_owned() }
        } else {
            Block::Table { headers, rows }
        });
        self
    }

    /// The page.
    pub fn to_html(&self) -> String {
        let title = escape(&self.title);
        let mut body = format!("<h1>{title}</h1>\n");
        let headings: Vec<&str> = self.blocks.iter().filter_map(heading).collect();
        if headings.len() > 3 {
            body.push_str("<nav aria-label=\"Contents\"><ul>\n");
            for (index, heading) in headings.iter().enumerate() {
                let _ = writeln!(body, "<li><a href=\"#section-{}\">{}</a></li>", index + 1, escape(heading));
            }
            body.push_str("</ul></nav>\n");
        }
        let mut section = 0;
        for block in &self.blocks {
            if let Some(heading) = heading(block) {
                section += 1;
                let _ = writeln!(body, "<h2 id=\"section-{section}\">{}</h2>", escape(heading));
            }
            block.write(&mut body);
        }
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <style>\n{}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
            include_str!("report.css"),
        )
    }

    /// Writes the page: first to a temporary file beside it, which is then renamed.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        file::write(path, self.to_html().as_bytes())
    }
}

/// The heading of a block, if it has one.
fn heading(block: &Block) -> Option<&str> {
    match block {
        Block::Section { heading, .. } if !heading.trim().is_empty() => Some(heading),
        _ => None,
    }
}

impl Block {
    fn write(&self, out: &mut String) {
        match self {
            Self::Summary(pairs) => {
                out.push_str("<div class=\"scroll\"><table class=\"summary\"><tbody>\n");
                for (key, value) in pairs {
                    let (key, value) = (escape(key), escape(value));
                    let _ = writeln!(out, "<tr><th scope=\"row\">{key}</th><td>{value}</td></tr>");
                }
                out.push_str("</tbody></table></div>\n");
            }
            Self::Section { text, .. } => {
                for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
                    let _ = writeln!(out, "<p>{}</p>", escape(paragraph.trim()));
                }
            }
            Self::Svg { svg, caption } => {
                if is_plain(svg) {
                    figure(out, "chart", svg, caption);
                } else {
                    let uri = base64(svg.as_bytes());
                    let alt = escape(caption);
                    let image = format!("<img src=\"data:image/svg+xml;base64,{uri}\" alt=\"{alt}\">");
                    figure(out, "chart", &image, caption);
                }
            }
            Self::Image { uri, caption } => {
                let data = uri.strip_prefix("data:image/png;base64,");
                let coded = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
                if data.is_some_and(|data| data.chars().all(coded)) {
                    figure(
                        out,
                        "image",
                        &format!("<img src=\"{uri}\" alt=\"{}\">", escape(caption)),
                        caption,
                    );
                } else {
                    figure(
                        out,
                        "image",
                        "<p>(This picture is not a PNG data URI and is not shown.)</p>",
                        caption,
                    );
                }
            }
            Self::Table { headers, rows } => {
                let columns = rows.iter().map(Vec::len).max().unwrap_or(0).max(headers.len());
                out.push_str("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>");
                let number = |cell: &str| cell.trim().trim_end_matches('%').parse::<f64>().is_ok();
                // A column of numbers only is aligned to the right, with its header.
                let numeric: Vec<bool> = (0..columns)
                    .map(|column| {
                        let mut cells = rows.iter().filter_map(|row| row.get(column)).peekable();
                        cells.peek().is_some() && cells.all(|cell| number(cell))
                    })
                    .collect();
                let class = |right: bool| if right { " class=\"number\"" } else { "" };
                for (column, right) in numeric.iter().enumerate() {
                    let header = headers.get(column).map_or(String::new(), |header| escape(header));
                    let _ = write!(out, "<th scope=\"col\"{}>{header}</th>", class(*right));
                }
                out.push_str("</tr></thead>\n<tbody>\n");
                for row in rows {
                    out.push_str("<tr>");
                    for (column, right) in numeric.iter().enumerate() {
                        let cell = row.get(column).map_or("", String::as_str);
                        let _ = write!(out, "<td{}>{}</td>", class(*right), escape(cell));
                    }
                    out.push_str("</tr>\n");
                }
                out.push_str("</tbody></table></div>\n");
            }
        }
    }
}

fn figure(out: &mut String, class: &str, content: &str, caption: &str) {
    let caption = escape(caption);
    let _ = writeln!(
        out,
        "<figure class=\"{class}\"><div class=\"scroll\" tabindex=\"0\">{content}</div>\
         <figcaption>{caption}</figcaption></figure>"
    );
}

/// Whether an SVG is one of this crate's charts and holds nothing that a browser would run or fetch.
fn is_plain(svg: &str) -> bool {
    let lower = svg.to_lowercase();
    let active =
        ["<script", "<foreignobject", "<animate", "<set", "<a ", "<use", "javascript:", "url(", "@import"];
    let links =
        lower.match_indices("href=").all(|(at, _)| lower[at + 5..].starts_with("\"data:image/png;base64,"));
    // Attributes that begin with "on" follow a space; in text an equals sign after them only errs on the
    // side of an image.
    let handlers = lower.split_ascii_whitespace().any(|word| word.starts_with("on") && word.contains('='));
    svg.starts_with(SVG_START)
        && svg.trim_end().ends_with("</svg>")
        && links
        && !handlers
        && !active.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::viz::Chart;

    #[test]
    fn everything_is_escaped() {
        let evil = "<script>alert('x')</script>\"&";
        let html = Report::new(evil)
            .summary(&[(evil, evil)])
            .section(evil, evil)
            .svg(evil, evil)
            .image(evil, evil)
            .table(&[evil], [[evil, evil]])
            .events([(7, evil, evil)])
            .to_html();
        assert!(!html.contains("<script") && !html.contains("\"&\""));
        assert_eq!(html.matches("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;").count(), 14);
        assert!(html.contains("not a PNG data URI"));
    }

    #[test]
    fn charts_are_inline_and_foreign_svg_is_an_image() {
        let chart = Chart::new("Loss", "x", "y").with_series("a", [(0.0, 1.0), (1.0, 2.0)]).to_svg().unwrap();
        let html = Report::new("r").svg(chart.clone(), "own").to_html();
        assert!(html.contains(SVG_START) && html.contains("<figcaption>own</figcaption>"));
        for part in
            ["<script>x</script>", "<rect onload=\"x\"/>", "<image href=\"http://example.org/a.png\"/>"]
        {
            let bad = chart.replacen("<desc>", &format!("{part}<desc>"), 1);
            let html = Report::new("r").svg(bad, "not own").to_html();
            assert!(!html.contains(part) && html.contains("alt=\"not own\""), "{part}");
        }
        assert!(Report::new("r").svg("<svg/>", "c").to_html().contains("data:image/svg+xml;base64,PHN2Zy8+"));
    }

    #[test]
    fn the_page_is_whole_and_self_contained() {
        let mut report = Report::new("Run");
        for name in ["One", "Two", "Three", "Four"] {
            report = report.section(name, "First.\n\nSecond.");
        }
        let none: [(u64, &str, &str); 0] = [];
        let html = report.table(&["name", "score"], [vec!["a", "0.5"], vec!["b"]]).events(none).to_html();
        assert_eq!((html.matches("<h1>").count(), html.matches("<h2 ").count()), (1, 4));
        assert!(html.contains("<a href=\"#section-4\">Four</a>") && html.contains("id=\"section-4\""));
        assert_eq!(html.matches("<p>").count(), 9);
        assert!(
            html.contains("No events.") && html.contains("<th scope=\"col\" class=\"number\">score</th>")
        );
        assert!(html.contains("<tr><td>b</td><td class=\"number\"></td></tr>"));
        for foreign in ["http://", "https://", "<script", "@import", "url("] {
            assert!(!html.contains(foreign), "{foreign}");
        }
        assert!(html.contains("prefers-color-scheme: dark") && html.contains("name=\"viewport\""));
    }

    #[test]
    fn a_page_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        let report = Report::new("Run");
        report.write(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), report.to_html());
    }
}
