//! Quadrature in the plane: the normaliser of an energy by a sum over a grid, and what is expected under its density.

use burn::tensor::{Device, Tensor, TensorData};

use jem_core::error::{Error, Result, ensure};

/// Points that are evaluated at once.
const BATCH: usize = 1 << 14;

/// The midpoint rule on a rectangle of the plane:
///
/// ```text
/// Z = ∫ exp(-E(x)) dx ≈ h_1 h_2 Σ_i exp(-E(x_i)),   x_i the centres of cells of h_1 by h_2
/// ```
///
/// In two dimensions a normaliser needs no annealed importance sampling, and energies that were learnt in different
/// ways can be compared by their log-likelihoods. The sum sees nothing outside the rectangle. For a smooth density
/// that vanishes towards its edges the error falls faster than any power of the width of a cell once that is below
/// the narrowest scale of the density; where it does not vanish, as its square. Two checks belong to every use:
/// the same on [`refined`](Self::refined) cells, and [`GridDensity::edge_mass`].
///
/// # Shapes
/// Energies are functions of `[batch, 2]` to `[batch]`.
///
/// ```
/// use burn::tensor::Device;
/// use jem_core::energy::EnergyModel;
/// use jem_core::energy::analytic::Gaussian;
/// use jem_eval::GridQuadrature;
///
/// let gaussian = Gaussian::new(0.5, 0.8)?;
/// let grid = GridQuadrature::new((-6.0, 6.0), (-6.0, 6.0), [40, 40])?;
/// let density = grid.density(&Device::default(), |x| gaussian.energy(x))?;
/// assert!((density.log_normaliser() - gaussian.log_normaliser(2)).abs() < 1e-5);
/// assert!((density.mean(|[x, _]| x) - 0.5).abs() < 1e-5 && density.edge_mass() < 1e-6);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GridQuadrature {
    x_range: (f64, f64),
    y_range: (f64, f64),
    cells: [usize; 2],
}

impl GridQuadrature {
    /// `cells = [columns, rows]` over a rectangle.
    ///
    /// # Errors
    /// [`Error::Config`] if a range is empty or not finite, or there are no cells, or more than 4,096 a side.
    pub fn new(x_range: (f64, f64), y_range: (f64, f64), cells: [usize; 2]) -> Result<Self> {
        for (field, (low, high)) in [("x_range", x_range), ("y_range", y_range)] {
            let ordered = low.is_finite() && high.is_finite() && (high - low).is_finite() && low < high;
            let field = format!("GridQuadrature.{field}");
            ensure(ordered, &field, format!("({low}, {high})"), "finite, the lower first")?;
        }
        let some = cells.iter().all(|count| (1..=4096).contains(count));
        ensure(some, "GridQuadrature.cells", format!("{cells:?}"), "from 1 to 4096 on each side")?;
        Ok(Self { x_range, y_range, cells })
    }

    /// Twice as many cells on each side.
    ///
    /// # Errors
    /// [`Error::Config`] if that is more than 4,096.
    pub fn refined(&self) -> Result<Self> {
        Self::new(self.x_range, self.y_range, self.cells.map(|count| 2 * count))
    }

    /// The area of a cell.
    pub fn cell_area(&self) -> f64 {
        let width = |(low, high): (f64, f64), count: usize| (high - low) / count as f64;
        width(self.x_range, self.cells[0]) * width(self.y_range, self.cells[1])
    }

    /// The centres of the cells, row by row from the smallest y, each row from the smallest x.
    pub fn points(&self) -> Vec<[f64; 2]> {
        let centre = |(low, high): (f64, f64), index: usize, count: usize| {
            low + (high - low) * (index as f64 + 0.5) / count as f64
        };
        let [columns, rows] = self.cells;
        (0..columns * rows)
            .map(|index| {
                let (column, row) = (index % columns, index / columns);
                [centre(self.x_range, column, columns), centre(self.y_range, row, rows)]
            })
            .collect()
    }

    /// The density of an energy, as a mass for each cell.
    ///
    /// # Errors
    /// [`Error::Shape`] if `energy` does not return one value for each point; [`Error::NonFinite`] for a NaN or
    /// -∞ among them, or nothing but +∞, which is no mass.
    pub fn density(&self, device: &Device, energy: impl Fn(Tensor<2>) -> Tensor<1>) -> Result<GridDensity> {
        let points = self.points();
        let mut energies = Vec::with_capacity(points.len());
        for batch in points.chunks(BATCH) {
            let values: Vec<f32> = batch.iter().flatten().map(|value| *value as f32).collect();
            let found = energy(Tensor::from_data(TensorData::new(values, [batch.len(), 2]), device));
            if found.dims() != [batch.len()] {
                let expected = format!("[{}]", batch.len());
                return Err(Error::shape("energies on a grid", &found.dims(), expected));
            }
            energies.extend(found.into_data().iter::<f64>());
        }
        if let Some(value) = energies.iter().find(|e| e.is_nan() || **e == f64::NEG_INFINITY) {
            return Err(Error::NonFinite { what: "an energy on the grid".to_owned(), value: *value });
        }
        let lowest = energies.iter().copied().fold(f64::INFINITY, f64::min);
        if lowest == f64::INFINITY {
            return Err(Error::NonFinite { what: "the lowest energy on the grid".to_owned(), value: lowest });
        }
        let mut masses: Vec<f64> = energies.iter().map(|energy| (lowest - energy).exp()).collect();
        let total: f64 = masses.iter().sum();
        masses.iter_mut().for_each(|mass| *mass /= total);
        let log_normaliser = total.ln() - lowest + self.cell_area().ln();
        Ok(GridDensity { grid: *self, points, masses, log_normaliser })
    }
}

/// A density in the plane as masses at the centres of cells, which sum to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct GridDensity {
    grid: GridQuadrature,
    points: Vec<[f64; 2]>,
    masses: Vec<f64>,
    log_normaliser: f64,
}

impl GridDensity {
    /// log Z in nats: log p(x) = -E(x) - log Z.
    pub fn log_normaliser(&self) -> f64 {
        self.log_normaliser
    }

    /// The centres of the cells.
    pub fn points(&self) -> &[[f64; 2]] {
        &self.points
    }

    /// The mass of each cell.
    pub fn masses(&self) -> &[f64] {
        &self.masses
    }

    /// The mean of `statistic`.
    pub fn mean(&self, statistic: impl Fn([f64; 2]) -> f64) -> f64 {
        self.points.iter().zip(&self.masses).map(|(point, mass)| mass * statistic(*point)).sum()
    }

    /// The centre of the cell with the largest mass.
    pub fn mode(&self) -> [f64; 2] {
        let best = (1..self.masses.len())
            .fold(0, |best, index| if self.masses[index] > self.masses[best] { index } else { best });
        self.points[best]
    }

    /// The mass in the cells along the edges. If it is not small, the rectangle cuts the density off.
    pub fn edge_mass(&self) -> f64 {
        let [columns, rows] = self.grid.cells;
        let at_edge = |index: &usize| {
            let (column, row) = (index % columns, index / columns);
            column == 0 || row == 0 || column + 1 == columns || row + 1 == rows
        };
        (0..self.masses.len()).filter(at_edge).map(|index| self.masses[index]).sum()
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use jem_core::energy::EnergyModel;
    use jem_core::energy::analytic::{Gaussian, GaussianMixture, Rings};

    #[test]
    fn normalisers_and_means_are_the_known_ones_and_refining_shows_the_error() {
        let device = Device::flex();
        let means = vec![vec![-1.0, 0.5], vec![2.0, -1.0]];
        let mixture = GaussianMixture::new(means, 0.3).unwrap();
        let rings = Rings::new(vec![1.0, 2.5], 0.2).unwrap();
        let of = |grid: &GridQuadrature, model: &dyn EnergyModel<2>| {
            grid.density(&device, |x| model.energy(x)).unwrap()
        };
        let grid = |cells| GridQuadrature::new((-5.0, 5.0), (-4.5, 4.5), [cells, cells]).unwrap();
        let known: [(&dyn EnergyModel<2>, f64); 2] =
            [(&mixture, mixture.log_normaliser()), (&rings, rings.log_normaliser())];
        for (model, log_z) in known {
            // Cells of a third of the narrowest deviation, and of half that.
            let (coarse, fine) = (of(&grid(80), model), of(&grid(80).refined().unwrap(), model));
            assert!((coarse.log_normaliser() - log_z).abs() < 1e-4, "{}", coarse.log_normaliser() - log_z);
            assert!((fine.log_normaliser() - log_z).abs() < 1e-5, "{}", fine.log_normaliser() - log_z);
            assert!((fine.masses().iter().sum::<f64>() - 1.0).abs() < 1e-12 && fine.edge_mass() < 1e-6);
            // Negative control: cells of three deviations are wrong, and refining them says so.
            let (rough, next) = (of(&grid(10), model), of(&grid(10).refined().unwrap(), model));
            assert!((rough.log_normaliser() - next.log_normaliser()).abs() > 0.01);
        }
        let density = of(&grid(80), &mixture);
        assert!((density.mean(|[x, _]| x) - 0.5).abs() < 1e-4);
        assert!((density.mean(|[_, y]| y) + 0.25).abs() < 1e-4);
    }

    #[test]
    fn the_order_of_points_the_mode_and_the_edges() {
        let grid = GridQuadrature::new((0.0, 6.0), (0.0, 3.0), [3, 3]).unwrap();
        assert_eq!((grid.points()[1], grid.points()[3], grid.cell_area()), ([3.0, 0.5], [1.0, 1.5], 2.0));
        // Mass 1/2 in the middle, 1/2 in the cell right of it.
        let heavy = |x: Tensor<2>| {
            let from = x - Tensor::<2>::from_floats([[4.0, 1.5]], &Device::flex());
            from.square().sum_dim(1).squeeze_dim::<1>(1).sub_scalar(1.0).abs().mul_scalar(1e4)
        };
        let density = grid.density(&Device::flex(), heavy).unwrap();
        assert_eq!((density.edge_mass(), density.mode()), (0.5, [3.0, 1.5]));
        assert!((density.log_normaliser() - 4f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn a_rectangle_that_cuts_the_density_off_shows_in_the_edges() {
        let gaussian = Gaussian::standard();
        let edge = |half: f64| {
            let grid = GridQuadrature::new((-half, half), (-half, half), [30, 30]).unwrap();
            grid.density(&Device::flex(), |x| gaussian.energy(x)).unwrap().edge_mass()
        };
        assert!(edge(6.0) < 1e-6 && edge(1.0) > 0.01, "{} {}", edge(6.0), edge(1.0));
    }

    #[test]
    fn misuse_is_named() {
        let message = |result: Result<GridQuadrature>| result.unwrap_err().to_string();
        let unit = (0.0, 1.0);
        assert!(message(GridQuadrature::new((1.0, 0.0), unit, [1, 1])).contains("GridQuadrature.x_range"));
        assert!(
            message(GridQuadrature::new(unit, (0.0, f64::NAN), [1, 1])).contains("GridQuadrature.y_range")
        );
        assert!(message(GridQuadrature::new(unit, unit, [1, 0])).contains("GridQuadrature.cells"));
        let large = GridQuadrature::new(unit, unit, [4096, 2]).unwrap();
        assert!(message(large.refined()).contains("[8192, 4]"));
        let grid = GridQuadrature::new(unit, unit, [2, 1]).unwrap();
        let constant = |value: f32| move |x: Tensor<2>| Tensor::full([x.dims()[0]], value, &x.device());
        let refused = |value| grid.density(&Device::flex(), constant(value)).unwrap_err().to_string();
        assert!(refused(f32::NAN).contains("an energy on the grid is not finite: NaN"));
        assert!(refused(f32::NEG_INFINITY).contains("an energy on the grid"));
        assert!(refused(f32::INFINITY).contains("the lowest energy on the grid"));
        let wrong = grid.density(&Device::flex(), |x| Tensor::zeros([3], &x.device())).unwrap_err();
        assert!(wrong.to_string().contains("energies on a grid has shape [3], expected [2]"), "{wrong}");
    }
}
