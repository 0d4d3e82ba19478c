//! What a person looks at: image grids and heat maps as PNG, charts as SVG, and a report that holds them all.
#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

mod axis;
mod bars;
mod block;
mod contour;
mod curves;
mod field;
mod file;
mod frame;
mod grid;
mod heatmap;
mod heatmap_svg;
mod ink;
mod picture;
mod progress_bar;
mod report;
mod sheet;
mod text;

pub use bars::{BarChart, Histogram};
pub use curves::{Chart, Event, Series};
pub use field::Field;
pub use grid::grid;
pub use heatmap::Heatmap;
pub use picture::Picture;
pub use progress_bar::ProgressBar;
pub use report::Report;
pub use sheet::Sheet;
