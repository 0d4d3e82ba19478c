//! A function on a rectangle of the plane, as numbers on a grid.

use burn::tensor::{Device, Tensor, TensorData};

use jem_core::error::{Error, Result, ensure};

/// Points of a field that are evaluated at once.
const BATCH: usize = 1 << 14;

/// Values at the centres of the cells of a rectangle in the plane.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub(super) x_range: (f64, f64),
    pub(super) y_range: (f64, f64),
    pub(super) cells: [usize; 2],
    pub(super) values: Vec<f32>,
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
    /// use jem_core::energy::EnergyModel;
    /// use jem_core::energy::analytic::Gaussian;
    /// use jem_plot::{Field, Heatmap};
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
    pub(super) fn value(&self, column: usize, row: usize) -> f64 {
        f64::from(self.values[row * self.cells[0] + column])
    }

    /// Whether a point lies in the rectangle.
    pub(super) fn inside(&self, (x, y): (f64, f64)) -> bool {
        let (xs, ys) = (self.x_range, self.y_range);
        (xs.0..=xs.1).contains(&x) && (ys.0..=ys.1).contains(&y)
    }

    /// Where a point lies in columns from the left and rows from the top.
    pub(super) fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misuse_is_named() {
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
        let bad = Field::of((0.0, 1.0), (0.0, 1.0), [2, 2], &device, |x| {
            x.narrow(0, 0, 1).sum_dim(1).squeeze_dim(1)
        });
        assert!(bad.unwrap_err().to_string().contains("[4]"));
    }
}
