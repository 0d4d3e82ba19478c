//! Heat maps of a function on the plane, such as an energy, with contour lines, points and chain paths.

use super::axis::Axis;
use super::contour::segments;
use super::field::Field;
use super::picture::Picture;
use jem_core::error::Result;

/// Matplotlib's viridis at nine equal steps; perceptually uniform, and readable in grey.
const VIRIDIS: [[u8; 3]; 9] = [
    [68, 1, 84],
    [71, 45, 123],
    [59, 82, 139],
    [44, 114, 142],
    [33, 145, 140],
    [40, 174, 128],
    [94, 201, 98],
    [173, 220, 48],
    [253, 231, 37],
];
/// The colour of a value that is not finite: viridis does not have it.
const BROKEN: [u8; 3] = [255, 0, 255];
/// Fill and outline of point sets.
pub(super) const POINTS: [([u8; 3], [u8; 3]); 4] = [
    ([255, 255, 255], [0, 0, 0]),
    ([213, 94, 0], [255, 255, 255]),
    ([0, 0, 0], [255, 255, 255]),
    ([86, 180, 233], [0, 0, 0]),
];
/// Colours of path sets, which are outlined in black.
pub(super) const PATHS: [[u8; 3]; 3] = [[230, 159, 0], [204, 121, 167], [86, 180, 233]];

/// The colour of a part between 0 and 1 of the range.
pub(super) fn viridis(part: f64) -> [u8; 3] {
    let place = part.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
    let index = (place as usize).min(VIRIDIS.len() - 2);
    let rest = place - index as f64;
    let mix = |a: u8, b: u8| (f64::from(a) * (1.0 - rest) + f64::from(b) * rest).round() as u8;
    std::array::from_fn(|channel| mix(VIRIDIS[index][channel], VIRIDIS[index + 1][channel]))
}

/// A named set of point lists.
type Overlay = (String, Vec<Vec<(f64, f64)>>);

/// A picture of a [`Field`]: small values dark, large values bright, what is not finite in magenta.
///
/// [`Heatmap::render`] gives the bare picture, [`Heatmap::to_svg`] one with axes, a colour bar and a legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Heatmap {
    pub(super) field: Field,
    pub(super) title: String,
    pub(super) labels: (String, String),
    pub(super) range: Option<(f64, f64)>,
    pub(super) contours: usize,
    pub(super) points: Vec<Overlay>,
    pub(super) paths: Vec<Overlay>,
    pub(super) size: usize,
}

impl Heatmap {
    /// The field alone, about 480 pixels on its longer side.
    pub fn new(field: Field) -> Self {
        Self {
            field,
            title: String::new(),
            labels: (String::new(), String::new()),
            range: None,
            contours: 0,
            points: Vec::new(),
            paths: Vec::new(),
            size: 480,
        }
    }

    /// With a heading and names of the axes, which [`Heatmap::to_svg`] shows.
    pub fn with_titles(
        mut self,
        title: impl Into<String>,
        x_label: impl Into<String>,
        y_label: impl Into<String>,
    ) -> Self {
        self.title = title.into();
        self.labels = (x_label.into(), y_label.into());
        self
    }

    /// With colours from `low` to `high` instead of from the smallest to the largest finite value. A range
    /// that is empty or not finite is ignored.
    pub fn with_range(mut self, low: f64, high: f64) -> Self {
        let usable = (high - low).is_finite() && low < high;
        self.range = usable.then_some((low, high)).or(self.range);
        self
    }

    /// With lines of equal value at `levels` (at most 64) equal steps inside the range of colours.
    pub fn with_contours(mut self, levels: usize) -> Self {
        self.contours = levels.min(64);
        self
    }

    /// With a set of points, such as data or samples. Points outside the field are not shown.
    pub fn with_points(
        mut self,
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        self.points.push((name.into(), vec![points.into_iter().collect()]));
        self
    }

    /// With a set of paths, such as Markov chains: a ring at the start, a dot at the end, interrupted at a
    /// point that is not finite.
    pub fn with_paths(
        mut self,
        name: impl Into<String>,
        paths: impl IntoIterator<Item = Vec<(f64, f64)>>,
    ) -> Self {
        self.paths.push((name.into(), paths.into_iter().collect()));
        self
    }

    /// With a longer side of about `pixels` in [`Heatmap::render`]; every cell has at least one pixel.
    pub fn with_size(mut self, pixels: usize) -> Self {
        self.size = pixels;
        self
    }

    /// The range of colours as an axis.
    pub(super) fn scale(&self) -> Axis {
        match self.range {
            Some((low, high)) => Axis::exact(low, high, 5),
            None => Axis::linear(self.field.values.iter().map(|value| f64::from(*value)), 0.0, 5),
        }
    }

    /// Contour lines in columns from the left and rows from the top.
    pub(super) fn contour_lines(&self, scale: &Axis) -> Vec<[(f64, f64); 2]> {
        let rows = self.field.cells[1] as f64;
        let level = |index: usize| {
            let part = (index + 1) as f64 / (self.contours + 1) as f64;
            scale.low() * (1.0 - part) + scale.high() * part
        };
        let lines = (0..self.contours).flat_map(|index| {
            segments(self.field.cells, level(index), |column, row| self.field.value(column, row))
        });
        // From centres of cells counted upwards to places counted downwards.
        lines.map(|line| line.map(|(column, row)| (column + 0.5, rows - row - 0.5))).collect()
    }

    /// The field with one square of `pixels` for each cell.
    pub(super) fn cells(&self, scale: &Axis, pixels: usize) -> Result<Picture> {
        let [columns, rows] = self.field.cells;
        let (width, height) = (columns as u64 * pixels as u64, rows as u64 * pixels as u64);
        let mut picture = Picture::filled("a heat map", width, height, BROKEN)?;
        for y in 0..rows * pixels {
            for x in 0..columns * pixels {
                let value = self.field.value(x / pixels, rows - 1 - y / pixels);
                if value.is_finite() {
                    picture.set(x as i64, y as i64, viridis(scale.fraction(value)));
                }
            }
        }
        Ok(picture)
    }

    /// The picture with contour lines, paths and points, without axes.
    ///
    /// # Errors
    /// [`Error::Draw`](jem_core::Error::Draw) if it would be larger than 2^28 pixels.
    pub fn render(&self) -> Result<Picture> {
        let scale = self.scale();
        let pixels = (self.size / self.field.cells[0].max(self.field.cells[1])).max(1);
        let mut picture = self.cells(&scale, pixels)?;
        let to = |(x, y): (f64, f64)| (x * pixels as f64, y * pixels as f64);
        for [from, until] in self.contour_lines(&scale) {
            picture.line(to(from), to(until), 0.0, [235, 235, 235]);
        }
        for (index, (_, paths)) in self.paths.iter().enumerate() {
            let colour = PATHS[index % PATHS.len()];
            for path in paths {
                for (radius, colour) in [(2.0, [0; 3]), (1.0, colour)] {
                    for pair in path.windows(2) {
                        picture.line(
                            to(self.field.place(pair[0])),
                            to(self.field.place(pair[1])),
                            radius,
                            colour,
                        );
                    }
                }
                for (end, discs) in [
                    (path.first(), [(5.0, [0; 3]), (4.0, colour), (2.0, [0; 3])]),
                    (path.last(), [(5.0, [0; 3]), (4.0, colour), (4.0, colour)]),
                ] {
                    self.discs(&mut picture, end, &to, &discs);
                }
            }
        }
        for (index, (_, sets)) in self.points.iter().enumerate() {
            let (fill, outline) = POINTS[index % POINTS.len()];
            for point in sets.iter().flatten() {
                self.discs(&mut picture, Some(point), &to, &[(3.0, outline), (2.0, fill)]);
            }
        }
        Ok(picture)
    }

    /// Discs over each other at one point, unless it lies outside.
    fn discs(
        &self,
        picture: &mut Picture,
        point: Option<&(f64, f64)>,
        to: &dyn Fn((f64, f64)) -> (f64, f64),
        discs: &[(f64, [u8; 3])],
    ) {
        let inside = |point: &(f64, f64)| self.field.inside(*point);
        if let Some(point) = point.copied().filter(inside) {
            for (radius, colour) in discs {
                picture.disc(to(self.field.place(point)), *radius, *colour);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4 x 2 cells with values 0 to 7 from the bottom left.
    fn field() -> Field {
        Field::new((0.0, 4.0), (0.0, 2.0), [4, 2], (0..8).map(|value| value as f32).collect()).unwrap()
    }

    #[test]
    fn the_smallest_value_is_dark_at_the_bottom_left() {
        let picture = Heatmap::new(field()).with_size(40).render().unwrap();
        assert_eq!((picture.width(), picture.height()), (40, 20));
        assert_eq!(picture.pixel(0, 19), Some(VIRIDIS[0]));
        assert_eq!(picture.pixel(39, 0), Some(VIRIDIS[8]));
        let clamped = Heatmap::new(field()).with_size(40).with_range(3.0, 4.0).render().unwrap();
        assert_eq!((clamped.pixel(20, 19), clamped.pixel(0, 0)), (Some(VIRIDIS[0]), Some(VIRIDIS[8])));
    }

    #[test]
    fn colours_grow_lighter_throughout() {
        let lightness = |part: f64| {
            let [red, green, blue] = viridis(part).map(|value| (f64::from(value) / 255.0).powf(2.2));
            0.2126 * red + 0.7152 * green + 0.0722 * blue
        };
        for step in 0..200 {
            assert!(lightness(f64::from(step) / 200.0) < lightness(f64::from(step + 1) / 200.0), "{step}");
        }
        assert_eq!((viridis(-3.0), viridis(7.0), viridis(0.5)), (VIRIDIS[0], VIRIDIS[8], VIRIDIS[4]));
    }

    #[test]
    fn points_and_paths_are_drawn_where_they_are() {
        let map = Heatmap::new(field())
            .with_size(400)
            .with_points("data", [(1.0, 1.5), (99.0, 0.0), (f64::NAN, 0.0)])
            .with_paths(
                "chain",
                [vec![(0.5, 0.5), (3.5, 0.5)], vec![], vec![(1.0, f64::INFINITY), (-1e300, 1e300)]],
            );
        let picture = map.render().unwrap();
        assert_eq!(picture.pixel(100, 50), Some([255; 3]));
        assert_eq!(picture.pixel(200, 150), Some(PATHS[0]));
        assert_eq!((picture.pixel(50, 150), picture.pixel(350, 150)), (Some([0; 3]), Some(PATHS[0])));
    }

    #[test]
    fn contours_lie_between_the_values_and_broken_values_are_loud() {
        let mut field = field();
        field.values[7] = f32::NAN;
        let map = Heatmap::new(field.clone()).with_size(400).with_contours(1);
        // Values 0 to 6: the only level is 3, between 0 and 4 in the leftmost column.
        let lines = map.contour_lines(&map.scale());
        assert!(lines.iter().flatten().any(|end| *end == (0.5, 0.75)), "{lines:?}");
        let picture = map.render().unwrap();
        assert_eq!(picture.pixel(399, 0), Some(BROKEN));
    }

    #[test]
    fn any_field_gives_a_picture() {
        for values in [vec![f32::NAN; 4], vec![1.0; 4], vec![f32::MIN, f32::MAX, f32::INFINITY, 0.0]] {
            for ranges in [((0.0, 1.0), (0.0, 1e-9)), ((-1e300, 1e300), (1e16, 1e16 + 4.0))] {
                let field = Field::new(ranges.0, ranges.1, [2, 2], values.clone()).unwrap();
                let map = Heatmap::new(field).with_contours(3).with_size(0).with_range(f64::NAN, 1.0);
                assert_eq!(map.render().unwrap().width(), 2);
                assert!(!map.to_svg().unwrap().contains("NaN"));
            }
        }
    }
}
