//! One self-contained HTML page from a list of blocks: text, tables, charts, pictures, events.
//!
//! The page opens from disk: it has no scripts and fetches nothing. It follows the reader's light or dark
//! scheme, fits a phone, and says in words what its pictures show.

use std::fmt::Write as _;
use std::path::Path;

use super::block::{Block, heading};
use super::file;
use super::text::escape;
use jem_core::error::{Error, Result, ensure};

/// A page under construction. All text is escaped.
///
/// ```
/// use jem_plot::{Chart, Report};
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

    /// Title, contents and blocks; `prefix` keeps the links of several reports on one page apart.
    fn body(&self, prefix: &str) -> String {
        let mut body = format!("<h1>{}</h1>\n", escape(&self.title));
        let headings: Vec<&str> = self.blocks.iter().filter_map(heading).collect();
        if headings.len() > 3 {
            body.push_str("<nav aria-label=\"Contents\"><ul>\n");
            for (index, heading) in headings.iter().enumerate() {
                let (number, heading) = (index + 1, escape(heading));
                let _ = writeln!(body, "<li><a href=\"#{prefix}section-{number}\">{heading}</a></li>");
            }
            body.push_str("</ul></nav>\n");
        }
        let mut section = 0;
        for block in &self.blocks {
            if let Some(heading) = heading(block) {
                section += 1;
                let _ = writeln!(body, "<h2 id=\"{prefix}section-{section}\">{}</h2>", escape(heading));
            }
            block.write(&mut body);
        }
        body
    }

    /// The page.
    pub fn to_html(&self) -> String {
        let (title, body) = (escape(&self.title), self.body(""));
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <style>\n{}</style>\n</head>\n<body>\n<main>\n{body}{END}",
            include_str!("report.css"),
        )
    }

    /// Writes the page: first to a temporary file beside it, which is then renamed.
    ///
    /// # Errors
    /// [`Error::Io`](jem_core::Error::Io) if the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        file::write(path, self.to_html().as_bytes())
    }

    /// Adds this report at the end of the page at `path`, in place of one added there before as the part `name`,
    /// a word of letters and digits. Without a page there, this is the page.
    ///
    /// # Errors
    /// [`Error::Io`](jem_core::Error::Io) if the file cannot be read or written, [`Error::Data`](jem_core::Error::Data)
    /// if it is not a page of this crate, [`Error::Config`](jem_core::Error::Config) if the name is no such word.
    pub fn add_to(&self, path: impl AsRef<Path>, name: &str) -> Result<()> {
        let path = path.as_ref();
        let is_word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric());
        ensure(is_word, "name of the part", name, "letters and digits")?;
        if !path.exists() {
            return self.write(path);
        }
        let page = std::fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
        let Some(page) = page.strip_suffix(END) else {
            return Err(Error::data(path, 0, "is not a report of this crate: it does not end like one"));
        };
        let (open, close) = (format!("<section id=\"part-{name}\">\n"), "</section><!-- part -->\n");
        let (before, after) = match page.split_once(&open) {
            Some((before, rest)) => (before, rest.split_once(close).map_or("", |(_, after)| after)),
            None => (page, ""),
        };
        let body = self.body(&format!("{name}-"));
        file::write(path, format!("{before}{after}{open}{body}{close}{END}").as_bytes())
    }
}

/// How a page ends.
const END: &str = "</main>\n</body>\n</html>\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chart;
    use crate::frame::SVG_START;

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

    #[test]
    fn a_part_is_added_once_and_replaced_by_its_next_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        let part = |text: &str| Report::new("Evaluation").section("Calibration", text);
        part("alone").add_to(&path, "evaluation").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), part("alone").to_html());

        Report::new("A run").section("Accuracy", "high").write(&path).unwrap();
        part("first").add_to(&path, "evaluation").unwrap();
        Report::new("Other").add_to(&path, "other").unwrap();
        part("second").add_to(&path, "evaluation").unwrap();
        let page = std::fs::read_to_string(&path).unwrap();
        assert!(page.contains("high") && page.contains("<h1>Other</h1>") && page.ends_with(END));
        assert!(page.contains("<p>second</p>") && !page.contains("<p>first</p>"));
        assert!(page.contains("id=\"section-1\"") && page.contains("id=\"evaluation-section-1\""));
        assert_eq!((page.matches("<main>").count(), page.matches("part-evaluation").count()), (1, 1));

        let error = part("x").add_to(&path, "a b").unwrap_err().to_string();
        assert!(error.contains("name of the part = a b"), "{error}");
        std::fs::write(&path, "<p>not ours</p>").unwrap();
        let error = part("x").add_to(&path, "evaluation").unwrap_err().to_string();
        assert!(error.contains("is not a report of this crate"), "{error}");
    }
}
