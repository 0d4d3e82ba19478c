//! Heat maps of a function on the plane, such as an energy, with contour lines, points and chain paths.

use std::fmt::Write as _;
use std::path::Path;

use burn::tensor::{Device, Tensor, TensorData};
use plotters::style::RGBColor;
use plotters::style::text_anchor::HPos;

use super::axis::Axis;
use super::contour::segments;
use super::file;
use super::frame::{Frame, Key, Mark};
use super::ink::{FONT, UNIT, text};
use super::picture::{Picture, hex};
use super::text::number;
use crate::error::{Error, Result, ensure};

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
const POINTS: [([u8; 3], [u8; 3]); 4] = [
    ([255, 255, 255], [0, 0, 0]),
    ([213, 94, 0], [255, 255, 255]),
    ([0, 0, 0], [255, 255, 255]),
    ([86, 180, 233], [0, 0, 0]),
];
/// Colours of path sets, which are outlined in black.
const PATHS: [[u8; 3]; 3] = [[230, 159, 0], [204, 121, 167], [86, 180, 233]];
/// Points of a field that are evaluated at once.
const BATCH: usize = 1 << 14;

/// The colour of a part between 0 and 1 of the range.
fn viridis(part: f64) -> [u8; 3] {
    let place = part.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
    let index = (place as usize).min(VIRIDIS.len() - 2);
    let rest = place - index as f64;
    let mix = |a: u8, b: u8| (f64::from(a) * (1.0 - rest) + f64::from(b) * rest).round() as u8;
    std::array::from_fn(|channel| mix(VIRIDIS[index][channel], VIRIDIS[index + 1][channel]))
}

/// Values at the centres of the cells of a rectangle in the plane.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    x_range: (f64, f64),
    y_range: (f64, f64),
    cells: [usize; 2],
    values: Vec<f32>,
}

impl Field {
    /// A field of `cells = [columns, rows]`, whose `values` are given row by row from the smallest y, each
    /// row from the smallest x. Values need not be finite.
    ///
    /// # Errors
    /// [`Error::Config`] if a range is empty or not finite or there are no cells, or more than 4,096 a side;
    /// [`Error::Shape`] if the number of values is not columns x rows.
    pub fn new(
        x_range: (f64, f64),
        y_range: (f64, f64),
        cells: [usize; 2],
        values: Vec<f32>,
    ) -> Result<Self> {
        check(x_range, y_range, cells)?;
        if values.len() != cells[0] * cells[1] {
            let expected = format!("[{} * {}]", cells[0], cells[1]);
            return Err(Error::shape("Field values", &[values.len()], expected));
        }
        Ok(Self { x_range, y_range, cells, values })
    }

    /// The field of a function of points in the plane, such as `|x| model.energy(x)`.
    ///
    /// # Shapes
    /// `function` gets `[batch, 2]` and returns `[batch]`.
    ///
    /// # Errors
    /// Those of [`Field::new`], and [`Error::Shape`] if the function returns another number of values.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use jem_core::energy::{EnergyModel, analytic::Gaussian};
    /// use jem_core::viz::{Field, Heatmap};
    ///
    /// let gaussian = Gaussian::standard();
    /// let field = Field::of((-3.0, 3.0), (-3.0, 3.0), [30, 30], &Device::default(), |x| gaussian.energy(x))?;
    /// let picture = Heatmap::new(field).with_contours(5).with_points("data", [(0.0, 0.5)]).render()?;
    /// assert_eq!((picture.width(), picture.height()), (480, 480));
    /// # Ok::<(), jem_core::Error>(())
    /// ```
    pub fn of(
        x_range: (f64, f64),
        y_range: (f64, f64),
        cells: [usize; 2],
        device: &Device,
        function: impl Fn(Tensor<2>) -> Tensor<1>,
    ) -> Result<Self> {
        check(x_range, y_range, cells)?;
        let centre = |(low, high): (f64, f64), index: usize, count: usize| {
            (low + (high - low) * (index as f64 + 0.5) / count as f64) as f32
        };
        let total = cells[0] * cells[1];
        let mut values = Vec::with_capacity(total);
        for start in (0..total).step_by(BATCH) {
            let batch = start..(start + BATCH).min(total);
            let count = batch.len();
            let points = batch.flat_map(|index| {
                let (column, row) = (index % cells[0], index / cells[0]);
                [centre(x_range, column, cells[0]), centre(y_range, row, cells[1])]
            });
            let points = TensorData::new(points.collect::<Vec<f32>>(), [count, 2]);
            let found = function(Tensor::from_data(points, device));
            if found.dims() != [count] {
                return Err(Error::shape("Field values of a batch", &found.dims(), format!("[{count}]")));
            }
            match found.into_data().convert::<f32>().try_to_vec::<f32>() {
                Ok(found) => values.extend(found),
                Err(error) => {
                    return Err(Error::Draw { what: "a heat map".to_owned(), reason: format!("{error:?}") });
                }
            }
        }
        Self::new(x_range, y_range, cells, values)
    }

    /// The value in a column from the left and a row from the bottom.
    fn value(&self, column: usize, row: usize) -> f64 {
        f64::from(self.values[row * self.cells[0] + column])
    }

    /// Where a point lies in columns from the left and rows from the top.
    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let part = |value: f64, (low, high): (f64, f64)| (value - low) / (high - low);
        (part(x, self.x_range) * self.cells[0] as f64, (1.0 - part(y, self.y_range)) * self.cells[1] as f64)
    }
}

fn check(x_range: (f64, f64), y_range: (f64, f64), cells: [usize; 2]) -> Result<()> {
    for (name, (low, high)) in [("Field.x_range", x_range), ("Field.y_range", y_range)] {
        let ordered = low.is_finite() && high.is_finite() && (high - low).is_finite() && low < high;
        ensure(ordered, name, format!("({low}, {high})"), "finite with the smaller value first")?;
    }
    let some = cells.iter().all(|count| (1..=4096).contains(count));
    ensure(some, "Field.cells", format!("{cells:?}"), "between 1 and 4096 on each side")
}

/// A named set of point lists.
type Overlay = (String, Vec<Vec<(f64, f64)>>);

/// A picture of a [`Field`]: small values dark, large values bright, what is not finite in magenta.
///
/// [`Heatmap::render`] gives the bare picture, [`Heatmap::to_svg`] one with axes, a colour bar and a legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Heatmap {
    field: Field,
    title: String,
    labels: (String, String),
    range: Option<(f64, f64)>,
    contours: usize,
    points: Vec<Overlay>,
    paths: Vec<Overlay>,
    size: usize,
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
    fn scale(&self) -> Axis {
        match self.range {
            Some((low, high)) => Axis::exact(low, high, 5),
            None => Axis::linear(self.field.values.iter().map(|value| f64::from(*value)), 0.0, 5),
        }
    }

    /// Contour lines in columns from the left and rows from the top.
    fn contour_lines(&self, scale: &Axis) -> Vec<[(f64, f64); 2]> {
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
    fn cells(&self, scale: &Axis, pixels: usize) -> Result<Picture> {
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
    /// [`Error::Draw`] if it would be larger than 2^28 pixels.
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
        let inside = |(x, y): &(f64, f64)| self.inside(*x, *y);
        if let Some(point) = point.copied().filter(inside) {
            for (radius, colour) in discs {
                picture.disc(to(self.field.place(point)), *radius, *colour);
            }
        }
    }

    fn inside(&self, x: f64, y: f64) -> bool {
        let (xs, ys) = (self.field.x_range, self.field.y_range);
        (xs.0..=xs.1).contains(&x) && (ys.0..=ys.1).contains(&y)
    }

    /// The picture in an SVG document, with axes, a colour bar and a legend.
    ///
    /// # Errors
    /// [`Error::Draw`] if a drawing library refuses.
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
        let [columns, rows] = self.field.cells.map(|count| count as f64);
        let to = |(x, y): (f64, f64)| {
            let limit = |value: f64| value.round().clamp(-1e6, 1e6) as i32;
            (limit(x / columns * f64::from(width)), limit(y / rows * f64::from(height)))
        };
        let dot = |point: (f64, f64)| {
            let (x, y) = to(self.field.place(point));
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
                        let (x, y) = to(self.field.place(*point));
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
            let shown = sets.iter().flatten().filter(|(x, y)| self.inside(*x, *y));
            let dots: String = shown.map(|point| dot(*point)).collect();
            stroke(&dots, outline, 6.0);
            stroke(&dots, fill, 4.0);
        }
        out
    }

    /// Writes [`Heatmap::to_svg`] to a file.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written, and those of [`Heatmap::to_svg`].
    pub fn write_svg(&self, path: impl AsRef<Path>) -> Result<()> {
        file::write(path, self.to_svg()?.as_bytes())
    }

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
        let svg = map.with_titles("<Map>", "x", "y").to_svg().unwrap();
        assert!(svg.contains("data: 3 points. chain: 3 paths.") && svg.contains("&lt;Map&gt;"));
        assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.matches("<image").count() == 2);
        // The one visible point, at a quarter of the width and of the height.
        assert!(svg.contains("d=\"M420,210h0\""), "{svg}");
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
        assert!(map.to_svg().unwrap().contains("1 values are not finite"));
    }

    #[test]
    fn any_field_gives_a_picture_or_one_error() {
        for values in [vec![f32::NAN; 4], vec![1.0; 4], vec![f32::MIN, f32::MAX, f32::INFINITY, 0.0]] {
            for ranges in [((0.0, 1.0), (0.0, 1e-9)), ((-1e300, 1e300), (1e16, 1e16 + 4.0))] {
                let field = Field::new(ranges.0, ranges.1, [2, 2], values.clone()).unwrap();
                let map = Heatmap::new(field).with_contours(3).with_size(0).with_range(f64::NAN, 1.0);
                assert_eq!(map.render().unwrap().width(), 2);
                assert!(!map.to_svg().unwrap().contains("NaN"));
            }
        }
        let message = |result: Result<Field>| result.unwrap_err().to_string();
        assert!(message(Field::new((1.0, 1.0), (0.0, 1.0), [1, 1], vec![0.0])).contains("Field.x_range"));
        assert!(
            message(Field::new((0.0, 1.0), (0.0, f64::NAN), [1, 1], vec![0.0])).contains("Field.y_range")
        );
        assert!(message(Field::new((0.0, 1.0), (0.0, 1.0), [0, 1], vec![])).contains("Field.cells"));
        assert!(message(Field::new((0.0, 1.0), (0.0, 1.0), [2, 1], vec![0.0])).contains("[2 * 1]"));
    }

    #[cfg(feature = "flex")]
    #[test]
    fn a_function_is_evaluated_at_the_centres_in_batches() {
        let device = Device::flex();
        let field =
            Field::of((0.0, 200.0), (0.0, 100.0), [200, 100], &device, |x| x.sum_dim(1).squeeze_dim(1));
        let field = field.unwrap();
        assert_eq!((field.value(0, 0), field.value(199, 0), field.value(3, 99)), (1.0, 200.0, 103.0));
        let bad =
            Field::of((0.0, 1.0), (0.0, 1.0), [2, 2], &device, |x| x.slice([0..1]).sum_dim(1).squeeze_dim(1));
        assert!(bad.unwrap_err().to_string().contains("[4]"));
    }
}
