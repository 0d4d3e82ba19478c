//! The kernel distance between two sets of features, which unlike the Fréchet distance has no bias.

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::checks::{mean, same_dimension, variance};
use super::features::Features;
use jem_core::error::{Error, Result, ensure};
use jem_core::noise::{Noise, Stream};
use nalgebra::{DMatrix, DMatrixView};

/// Which samples make up the subsets.
const SUBSETS: Stream = Stream::new("kernel-distance-subsets");
/// Kernel values are computed in blocks of so many rows.
const BLOCK: usize = 256;

/// The squared maximum mean discrepancy of all samples with a cubic kernel; with Inception features, KID.
///
/// ```text
/// k(x, y) = (x·y/d + 1)³
/// d = mean_{i≠j} k(xᵢ, xⱼ) + mean_{i≠j} k(yᵢ, yⱼ) - 2 mean_{i,j} k(xᵢ, yⱼ)
/// ```
///
/// Unbiased: for two sets from one distribution the mean over all draws is 0, and half the values are negative.
///
/// # Errors
/// [`Error::Config`] for fewer than 2 samples on a side or for dimensions that differ, [`Error::NonFinite`] if the
/// numbers are too large.
///
/// ```
/// use jem_eval::{Features, kernel_distance};
/// let near = kernel_distance(&Features::new(&[0.0, 1.0, 2.0], 1)?, &Features::new(&[0.5, 1.5], 1)?)?;
/// let far = kernel_distance(&Features::new(&[0.0, 1.0, 2.0], 1)?, &Features::new(&[4.5, 5.5], 1)?)?;
/// assert!(near < far);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Bińkowski et al. 2018, arXiv 1801.01401; Gretton et al. 2012, "A kernel two-sample test".
pub fn kernel_distance(first: &Features, second: &Features) -> Result<f64> {
    same_dimension("second set", first.dimension(), second.dimension())?;
    for (side, features) in [("first", first), ("second", second)] {
        ensure(features.len() >= 2, &format!("samples of the {side} set"), features.len(), "at least 2")?;
    }
    unbiased(first.columns(), second.columns())
}

/// Configuration of [`KernelDistance`].
///
/// ```
/// use jem_eval::{Features, KernelDistanceConfig};
/// use jem_core::noise::Noise;
///
/// let data = Features::new(&[0.0, 0.5, 1.0, 1.5, 2.0, 2.5], 1)?;
/// let samples = Features::new(&[0.1, 0.6, 0.9, 1.4, 2.2], 1)?;
/// let distance = KernelDistanceConfig::new().with_subset_size(4).with_num_subsets(10).init()?;
/// let estimate = distance.estimate(&data, &samples, &mut Noise::host(1))?;
/// println!("KID {:.4} ± {:.4}", estimate.mean, estimate.standard_error);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelDistanceConfig {
    /// How many pairs of subsets are drawn, at least 2. Default 100.
    pub num_subsets: usize,
    /// How many samples each has, at least 2. Default 1,000.
    pub subset_size: usize,
}

impl Default for KernelDistanceConfig {
    fn default() -> Self {
        Self { num_subsets: 100, subset_size: 1000 }
    }
}

impl KernelDistanceConfig {
    /// 100 subsets of 1,000 samples.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many pairs of subsets are drawn.
    pub fn with_num_subsets(mut self, num_subsets: usize) -> Self {
        self.num_subsets = num_subsets;
        self
    }

    /// Sets how many samples a subset has.
    pub fn with_subset_size(mut self, subset_size: usize) -> Self {
        self.subset_size = subset_size;
        self
    }

    /// The distance.
    ///
    /// # Errors
    /// [`Error::Config`] naming the field that is below 2.
    pub fn init(self) -> Result<KernelDistance> {
        ensure(self.num_subsets >= 2, "KernelDistanceConfig.num_subsets", self.num_subsets, "at least 2")?;
        ensure(self.subset_size >= 2, "KernelDistanceConfig.subset_size", self.subset_size, "at least 2")?;
        Ok(KernelDistance { config: self })
    }
}

/// [`kernel_distance`] over random subsets: less work than over all pairs of large sets, and published so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelDistance {
    config: KernelDistanceConfig,
}

/// A kernel distance with its scatter over subsets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KernelEstimate {
    /// Mean over the subsets.
    pub mean: f64,
    /// Standard deviation over the subsets (n - 1).
    pub standard_deviation: f64,
    /// The standard deviation over √n: what the draw of subsets adds, for these samples. Subsets overlap, so it
    /// does not tell how far other samples would fall.
    pub standard_error: f64,
}

impl KernelDistance {
    /// Draws pairs of subsets, each without repetition, and measures every pair.
    ///
    /// # Errors
    /// [`Error::Config`] if a set is smaller than a subset or the dimensions differ, [`Error::NonFinite`] if the
    /// numbers are too large.
    pub fn estimate(&self, first: &Features, second: &Features, noise: &mut Noise) -> Result<KernelEstimate> {
        let KernelDistanceConfig { num_subsets, subset_size } = self.config;
        same_dimension("second set", first.dimension(), second.dimension())?;
        let smaller = first.len().min(second.len());
        let allowed = format!("at most {smaller}, the samples of the smaller set");
        ensure(subset_size <= smaller, "KernelDistanceConfig.subset_size", subset_size, &allowed)?;
        let rng = noise.rng(SUBSETS);
        let mut draw = |features: &Features| {
            features.columns().select_columns(&subset(features.len(), subset_size, rng))
        };
        let distances: Vec<f64> =
            (0..num_subsets).map(|_| unbiased(&draw(first), &draw(second))).collect::<Result<_>>()?;
        let standard_deviation = variance(&distances, 1).sqrt();
        let standard_error = standard_deviation / (num_subsets as f64).sqrt();
        Ok(KernelEstimate { mean: mean(&distances), standard_deviation, standard_error })
    }
}

/// `size` of `0..len` without repetition: the start of a Fisher-Yates shuffle.
fn subset(len: usize, size: usize, rng: &mut impl Rng) -> Vec<usize> {
    let mut all: Vec<usize> = (0..len).collect();
    for i in 0..size {
        all.swap(i, rng.random_range(i..len));
    }
    all.truncate(size);
    all
}

/// The estimate for samples in columns.
fn unbiased(first: &DMatrix<f64>, second: &DMatrix<f64>) -> Result<f64> {
    let (m, n) = (first.ncols() as f64, second.ncols() as f64);
    let within = |x: &DMatrix<f64>, count: f64| {
        let diagonal: f64 = x.column_iter().map(|column| kernel(column.norm_squared(), x.nrows())).sum();
        (kernel_sum(x, x) - diagonal) / (count * (count - 1.0))
    };
    let distance = within(first, m) + within(second, n) - 2.0 * kernel_sum(first, second) / (m * n);
    if distance.is_finite() {
        Ok(distance)
    } else {
        Err(Error::NonFinite { what: "kernel distance".to_owned(), value: distance })
    }
}

/// Σ_ij k(xᵢ, yⱼ), a block of the first at a time, so that memory does not grow with the product of the sets.
fn kernel_sum(first: &DMatrix<f64>, second: &DMatrix<f64>) -> f64 {
    let dimension = first.nrows();
    let block = |start: usize| {
        let rows: DMatrixView<'_, f64> = first.columns(start, BLOCK.min(first.ncols() - start));
        let products = rows.transpose() * second;
        products.iter().map(|product| kernel(*product, dimension)).sum::<f64>()
    };
    (0..first.ncols()).step_by(BLOCK).map(block).sum()
}

/// (x·y/d + 1)³ of a product x·y.
fn kernel(product: f64, dimension: usize) -> f64 {
    (product / dimension as f64 + 1.0).powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normals(samples: usize, dimension: usize, shift: f64, index: u64) -> Features {
        use rand_distr::{Distribution, StandardNormal};
        let mut rng = Noise::host(3).derived(Stream::DATA, index);
        let mut draw = || -> f64 { shift + Distribution::<f64>::sample(&StandardNormal, &mut rng) };
        let values: Vec<f64> = (0..samples * dimension).map(|_| draw()).collect();
        Features::new(&values, dimension).unwrap()
    }

    #[test]
    fn three_numbers_by_hand() {
        // k(0, y) = 1, k(1, 1) = 8, k(1, 2) = 27
        let (x, y) = (Features::new(&[0.0, 1.0], 1).unwrap(), Features::new(&[1.0, 2.0], 1).unwrap());
        let expected = 1.0 + 27.0 - 2.0 * (1.0 + 1.0 + 8.0 + 27.0) / 4.0;
        assert!((kernel_distance(&x, &y).unwrap() - expected).abs() < 1e-12);
    }

    #[test]
    fn blocks_make_no_difference() {
        let (x, y) = (normals(300, 2, 0.0, 0), normals(7, 2, 0.0, 1));
        let direct: f64 =
            x.rows().flat_map(|a| y.rows().map(move |b| kernel(a[0] * b[0] + a[1] * b[1], 2))).sum();
        assert!((kernel_sum(x.columns(), y.columns()) - direct).abs() < 1e-9 * direct);
    }

    #[test]
    fn subsets_of_everything_are_everything() {
        let (x, y) = (normals(20, 3, 0.0, 0), normals(20, 3, 0.5, 1));
        let distance = KernelDistanceConfig::new().with_subset_size(20).with_num_subsets(3).init().unwrap();
        let estimate = distance.estimate(&x, &y, &mut Noise::host(1)).unwrap();
        assert!((estimate.mean - kernel_distance(&x, &y).unwrap()).abs() < 1e-12);
        assert!(estimate.standard_error < 1e-12);
    }

    /// The mean over n = 400 pairs of subsets of 10 from one set of 200 is the distance between the sets, within
    /// 4.417 of its own standard errors: two-sided α = 1e-5. A shift of 0.6 is the negative control.
    #[test]
    fn subsets_estimate_the_distance_of_the_sets() {
        let (x, y) = (normals(200, 3, 0.0, 0), normals(200, 3, 0.0, 1));
        let distance = KernelDistanceConfig::new().with_subset_size(10).with_num_subsets(400).init().unwrap();
        let estimate = |y: &Features, seed| distance.estimate(&x, y, &mut Noise::host(seed)).unwrap();
        let expected = kernel_distance(&x, &y).unwrap();
        let off = |found: KernelEstimate| (found.mean - expected).abs() / found.standard_error;
        assert!(off(estimate(&y, 1)) < 4.417);
        assert!(off(estimate(&normals(200, 3, 0.6, 1), 1)) > 4.417);
        assert_eq!(estimate(&y, 1), estimate(&y, 1));
        assert_ne!(estimate(&y, 1), estimate(&y, 2));
    }

    #[test]
    fn bad_input_is_named() {
        let message = |x: &Features, y: &Features| kernel_distance(x, y).unwrap_err().to_string();
        let (one, two, wide) = (normals(1, 2, 0.0, 0), normals(2, 2, 0.0, 0), normals(2, 3, 0.0, 0));
        assert!(message(&one, &two).starts_with("samples of the first set = 1"));
        assert!(message(&two, &one).starts_with("samples of the second set = 1"));
        assert!(message(&two, &wide).starts_with("dimension of the second set = 3"));
        let huge = Features::new(&[1e200, -1e200], 1).unwrap();
        assert!(message(&huge, &huge).starts_with("kernel distance is not finite"));
        let config = KernelDistanceConfig::new;
        assert!(config().with_num_subsets(1).init().is_err() && config().with_subset_size(1).init().is_err());
        let error =
            config().init().unwrap().estimate(&two, &two, &mut Noise::host(0)).unwrap_err().to_string();
        assert!(error.starts_with("KernelDistanceConfig.subset_size = 1000"), "{error}");
    }
}
