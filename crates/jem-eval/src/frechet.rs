//! The Fréchet distance between two sets of features, each taken for a Gaussian.

use nalgebra::{DMatrix, DVector, SymmetricEigen};

use super::checks::{finite, same_dimension};
use super::features::Features;
use jem_core::error::{Error, Result, ensure};

/// A negative eigenvalue this far below 0, as a share of the largest, may be rounding of numbers in f32.
const ROUNDING: f64 = 1e-6;

/// Mean and covariance of features. Fit the training set once, and compare every set of samples with it.
#[derive(Debug, Clone, PartialEq)]
pub struct GaussianFit {
    mean: DVector<f64>,
    covariance: DMatrix<f64>,
}

impl GaussianFit {
    /// Mean and covariance (divided by n - 1) of two or more samples.
    ///
    /// With fewer samples than features the covariance is singular; the distance exists all the same, but is
    /// biased upwards. Published figures use 50,000 samples for 2,048 features.
    ///
    /// # Errors
    /// [`Error::Config`] for fewer than 2 samples, [`Error::NonFinite`] if the numbers are too large to square.
    pub fn new(features: &Features) -> Result<Self> {
        let samples = features.len();
        ensure(samples >= 2, "samples for a covariance", samples, "at least 2")?;
        let mean = features.columns().column_mean();
        let mut centred = features.columns().clone();
        for mut column in centred.column_iter_mut() {
            column -= &mean;
        }
        let covariance = &centred * centred.transpose() / (samples - 1) as f64;
        finite("covariance", covariance.as_slice())?;
        Ok(Self { mean, covariance: symmetric(covariance) })
    }

    /// A mean and a covariance that are at hand, such as published statistics.
    ///
    /// # Shapes
    /// `[dimension]` and `[dimension, dimension]`, row after row.
    ///
    /// # Errors
    /// [`Error::Shape`] if they do not fit, [`Error::NonFinite`] for a NaN or an infinity, [`Error::Config`] if
    /// the covariance is not symmetric to 1e-6 of its largest entry, or has an eigenvalue below -1e-6 of its largest:
    /// no set of numbers has such a covariance. Negative eigenvalues closer to 0 are rounding, and taken for 0. The
    /// check costs as much as a distance.
    pub fn from_moments(mean: &[f64], covariance: &[f64]) -> Result<Self> {
        let dimension = mean.len();
        if dimension == 0 || covariance.len() != dimension * dimension {
            let expected = format!("{dimension} x {dimension} numbers for a mean of {dimension}, not 0");
            return Err(Error::shape("covariance", &[covariance.len()], expected));
        }
        let mean = DVector::from_vec(finite("mean", mean)?);
        let covariance = DMatrix::from_vec(dimension, dimension, finite("covariance", covariance)?);
        let asymmetry = (&covariance - covariance.transpose()).amax();
        let allowed = "at most 1e-6 of its largest entry";
        ensure(asymmetry <= 1e-6 * covariance.amax(), "asymmetry of the covariance", asymmetry, allowed)?;
        let covariance = symmetric(covariance);
        let eigenvalues = eigen(covariance.clone())?.eigenvalues;
        let allowed = "at least -1e-6 of the largest, as those of every covariance";
        let smallest = eigenvalues.min();
        let tolerated = -ROUNDING * eigenvalues.amax();
        ensure(smallest >= tolerated, "smallest eigenvalue of the covariance", smallest, allowed)?;
        Ok(Self { mean, covariance })
    }

    /// How many features.
    pub fn dimension(&self) -> usize {
        self.mean.len()
    }

    /// μ, `[dimension]`.
    pub fn mean(&self) -> &[f64] {
        self.mean.as_slice()
    }

    /// Σ, `[dimension, dimension]`, row after row.
    pub fn covariance(&self) -> &[f64] {
        self.covariance.as_slice() // symmetric: rows are columns
    }
}

/// The squared Fréchet (2-Wasserstein) distance between two Gaussians; with Inception features, FID.
///
/// ```text
/// d = ‖μ₁ - μ₂‖² + tr(Σ₁ + Σ₂ - 2 (Σ₁Σ₂)^½),    tr (Σ₁Σ₂)^½ = tr (Σ₁^½ Σ₂ Σ₁^½)^½
/// ```
///
/// The right-hand side needs symmetric matrices only. Eigenvalues that rounding has made negative, or has left of
/// nothing, are taken for 0. The time grows with the cube of the dimension.
///
/// ```
/// use jem_eval::{Features, GaussianFit, frechet_distance};
/// let data = GaussianFit::new(&Features::new(&[0.0, 0.0, 2.0, 2.0, 2.0, 0.0, 0.0, 2.0], 2)?)?;
/// let shifted = GaussianFit::new(&Features::new(&[3.0, 0.0, 5.0, 2.0, 5.0, 0.0, 3.0, 2.0], 2)?)?;
/// assert!((frechet_distance(&data, &shifted)? - 9.0).abs() < 1e-9); // 3² apart, of one shape
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] if the dimensions differ or an eigenvalue decomposition does not converge,
/// [`Error::NonFinite`] if the numbers are too large.
///
/// Source: Heusel et al. 2017, arXiv 1706.08500; Dowson & Landau 1982, "The Fréchet distance between multivariate
/// normal distributions".
pub fn frechet_distance(first: &GaussianFit, second: &GaussianFit) -> Result<f64> {
    same_dimension("second set", first.dimension(), second.dimension())?;
    let root = square_root(&first.covariance)?;
    let product = symmetric(&root * &second.covariance * &root);
    let cross: f64 = without_rounding(eigen(product)?).eigenvalues.iter().map(|value| value.sqrt()).sum();
    let between = (&first.mean - &second.mean).norm_squared();
    let distance = between + first.covariance.trace() + second.covariance.trace() - 2.0 * cross;
    finite("Fréchet distance", &[distance])?;
    Ok(distance.max(0.0))
}

/// S^½ of a symmetric matrix without negative eigenvalues.
fn square_root(matrix: &DMatrix<f64>) -> Result<DMatrix<f64>> {
    let eigen = without_rounding(eigen(matrix.clone())?);
    let mut scaled = eigen.eigenvectors.clone();
    for (mut column, value) in scaled.column_iter_mut().zip(eigen.eigenvalues.iter()) {
        column *= value.sqrt();
    }
    Ok(symmetric(scaled * eigen.eigenvectors.transpose()))
}

/// Eigenvalues and eigenvectors.
fn eigen(matrix: DMatrix<f64>) -> Result<SymmetricEigen<f64, nalgebra::Dyn>> {
    let dimension = matrix.nrows();
    finite("covariance", matrix.as_slice())?;
    SymmetricEigen::try_new(matrix, f64::EPSILON, 100 * dimension + 1000).ok_or_else(|| {
        let found = format!("{dimension} x {dimension} numbers");
        Error::config("covariance", found, "one whose eigenvalue decomposition converges")
    })
}

/// Eigenvalues below the rounding error of the largest taken for 0: the root of 1e-16 is 1e-8, and thousands of those
/// would add up.
fn without_rounding(mut eigen: SymmetricEigen<f64, nalgebra::Dyn>) -> SymmetricEigen<f64, nalgebra::Dyn> {
    let floor = eigen.eigenvalues.amax() * eigen.eigenvalues.len() as f64 * f64::EPSILON;
    eigen.eigenvalues.iter_mut().filter(|value| **value < floor).for_each(|value| *value = 0.0);
    eigen
}

/// (A + Aᵀ)/2.
fn symmetric(matrix: DMatrix<f64>) -> DMatrix<f64> {
    (&matrix + matrix.transpose()) * 0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without a pattern.
    fn rough(samples: usize, dimension: usize, seed: u64) -> Features {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        let values: Vec<f64> = (0..samples * dimension).map(|_| next()).collect();
        Features::new(&values, dimension).unwrap()
    }

    #[test]
    fn diagonal_gaussians_have_a_closed_form() {
        // Σ (σ₁ - σ₂)² + ‖μ₁ - μ₂‖²
        let first = GaussianFit::from_moments(&[0.0, 1.0], &[4.0, 0.0, 0.0, 0.0]).unwrap();
        let second = GaussianFit::from_moments(&[1.0, 1.0], &[1.0, 0.0, 0.0, 9.0]).unwrap();
        let distance = frechet_distance(&first, &second).unwrap();
        assert!((distance - (1.0 + 1.0 + 9.0)).abs() < 1e-12, "{distance}");
    }

    #[test]
    fn fewer_samples_than_features_are_no_trouble() {
        let (a, b) = (rough(10, 64, 1), rough(12, 64, 2));
        let (a, b) = (GaussianFit::new(&a).unwrap(), GaussianFit::new(&b).unwrap());
        assert!(frechet_distance(&a, &a).unwrap() < 1e-12 * a.covariance.trace());
        let (there, back) = (frechet_distance(&a, &b).unwrap(), frechet_distance(&b, &a).unwrap());
        assert!(there > 1.0 && (there - back).abs() < 1e-10 * there, "{there} {back}");
        // All samples the same: Σ = 0.
        let constant = GaussianFit::new(&Features::new(&[0.1; 12], 4).unwrap()).unwrap();
        assert!(frechet_distance(&constant, &constant).unwrap() < 1e-15);
    }

    #[test]
    fn bad_input_is_named() {
        let one = GaussianFit::new(&rough(1, 3, 1)).unwrap_err().to_string();
        assert!(one.starts_with("samples for a covariance = 1"), "{one}");
        let fit = |dimension| GaussianFit::new(&rough(5, dimension, 1)).unwrap();
        let error = frechet_distance(&fit(3), &fit(4)).unwrap_err().to_string();
        assert!(error.starts_with("dimension of the second set = 4"), "{error}");
        assert!(GaussianFit::from_moments(&[0.0], &[1.0, 2.0]).is_err());
        assert!(GaussianFit::from_moments(&[], &[]).is_err());
        assert!(GaussianFit::from_moments(&[0.0], &[f64::NAN]).is_err());
        let skew = GaussianFit::from_moments(&[0.0; 2], &[1.0, 0.5, 0.25, 1.0]).unwrap_err().to_string();
        assert!(skew.starts_with("asymmetry of the covariance = 0.25"), "{skew}");
        assert!(GaussianFit::new(&Features::new(&[1e200, -1e200], 1).unwrap()).is_err());
    }

    #[test]
    fn a_covariance_with_a_negative_eigenvalue_is_refused_and_rounding_is_not() {
        // Eigenvalues 3 and -1.
        let error = GaussianFit::from_moments(&[0.0; 2], &[1.0, 2.0, 2.0, 1.0]).unwrap_err().to_string();
        assert!(error.starts_with("smallest eigenvalue of the covariance = -1"), "{error}");
        assert!(GaussianFit::from_moments(&[0.0], &[-1e-3]).is_err());
        // Rank 1 in f32: the smallest eigenvalue is -3e-8 or so.
        let rank_one = |b: f64| GaussianFit::from_moments(&[0.0; 2], &[1.0, b, b, b * b - 5e-8]);
        let (a, b) = (rank_one(0.3).unwrap(), rank_one(0.3).unwrap());
        assert!(frechet_distance(&a, &b).unwrap() < 1e-6);
    }
}
