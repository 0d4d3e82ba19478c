//! The pens of every chart: colours, text styles, and coordinates in pixels.

use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontDesc, FontFamily, FontStyle, FontTransform, RGBColor, ShapeStyle, TextStyle,
};

/// Steps per pixel: plotters rounds to whole numbers, so charts are drawn larger and scaled by the view box.
pub(super) const UNIT: i32 = 4;
/// Size of labels in pixels.
pub(super) const FONT: f64 = 13.0;
/// Stands for the text colour until the SVG is finished.
pub(super) const INK: RGBColor = RGBColor(1, 2, 3);
/// The colours of Okabe and Ito (2008), which people with any colour vision can tell apart, ordered by how
/// well they show on white and on black; their black is the text colour.
const PALETTE: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(230, 159, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    INK,
    RGBColor(240, 228, 66),
];

/// The colour of the series at `index`, counted from 0.
pub(super) fn colour(index: usize) -> RGBColor {
    PALETTE[index % PALETTE.len()]
}

/// Whether the series at `index` repeats a colour and therefore has a dashed line.
pub(super) fn dashed(index: usize) -> bool {
    index / PALETTE.len() % 2 == 1
}

/// A point in pixels.
pub(super) fn at(x: i32, y: i32) -> (i32, i32) {
    (x * UNIT, y * UNIT)
}

/// A pen of `thickness` pixels.
pub(super) fn pen(colour: impl Color, thickness: f64) -> ShapeStyle {
    colour.stroke_width((thickness * f64::from(UNIT)).round() as u32)
}

/// The width that no other pen has: lines of it are dashed when the SVG is finished.
pub(super) const DASHED: u32 = 7;

/// A dashed pen.
pub(super) fn dash(colour: impl Color) -> ShapeStyle {
    colour.stroke_width(DASHED)
}

/// Text of a size in pixels, centred vertically on its point.
pub(super) fn text(size: f64, anchor: HPos) -> TextStyle<'static> {
    styled(size, anchor, FontStyle::Normal)
}

/// Bold text of a size in pixels, which begins at its point.
pub(super) fn bold(size: f64) -> TextStyle<'static> {
    styled(size, HPos::Left, FontStyle::Bold)
}

/// Text that reads upwards.
pub(super) fn upright(size: f64, anchor: HPos) -> TextStyle<'static> {
    text(size, anchor).transform(FontTransform::Rotate270)
}

fn styled(size: f64, anchor: HPos, style: FontStyle) -> TextStyle<'static> {
    // The backend divides sizes by 1.24.
    let font = FontDesc::new(FontFamily::SansSerif, size * 1.24 * f64::from(UNIT), style);
    font.color(&INK).pos(Pos::new(anchor, VPos::Center))
}
