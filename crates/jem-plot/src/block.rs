//! The blocks that a report is made of, as HTML.

use std::fmt::Write as _;

use super::frame::SVG_START;
use super::picture::base64;
use super::text::escape;

/// A part of a page, in reading order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Block {
    Summary(Vec<(String, String)>),
    Section { heading: String, text: String },
    Svg { svg: String, caption: String },
    Image { uri: String, caption: String },
    Table { headers: Vec<String>, rows: Vec<Vec<String>> },
}

/// The heading of a block, if it has one.
pub(super) fn heading(block: &Block) -> Option<&str> {
    match block {
        Block::Section { heading, .. } if !heading.trim().is_empty() => Some(heading),
        _ => None,
    }
}

impl Block {
    pub(super) fn write(&self, out: &mut String) {
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
