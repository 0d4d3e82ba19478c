//! Informative starts: a Gaussian per class, fitted on the training data.

use burn::tensor::{Device, Int, Tensor, TensorData};
use nalgebra::DMatrix;
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::{Bounds, ChainStart};
use crate::error::{Error, Result};
use crate::math::sample_extent;
use crate::noise::{Noise, Stream};

/// What is added to the diagonal of every covariance.
const RIDGE: f64 = 1e-4;

/// One class: the mean and a factor of the covariance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ClassGaussian {
    count: usize,
    mean: Vec<f32>,
    /// F, as many rows as a sample has numbers. With as many columns it is the Cholesky factor of Σ + 1e-4 I; with
    /// fewer, one column for each example, it is that of Σ, and the 1e-4 I is a draw of its own.
    factor: Vec<f32>,
}

impl ClassGaussian {
    /// The columns of F.
    fn rank(&self) -> usize {
        self.factor.len() / self.mean.len()
    }

    /// Whether F leaves out the 1e-4 I.
    fn is_thin(&self) -> bool {
        self.rank() < self.mean.len()
    }
}

/// Chains that start from the Gaussian of their class, clamped to the range of the data:
///
/// ```text
/// x₀ = clamp(z, low, high),   z ~ N(μ_c, Σ_c + 1e-4 I)
/// ```
///
/// μ_c and Σ_c are the mean and the covariance (over n) of the examples of class c. Without labels, or with one that
/// was not fitted, a chain takes a class at random, in proportion to the examples. Such starts look like the class
/// from afar, which spares chains the way there.
///
/// The fit reads the data once. A class of n examples of d numbers keeps d min(n, d) numbers, 38 MB for CIFAR-10's 5,000
/// of 3,072. With n < d the centred examples over √n are the factor of Σ_c, and there is nothing to work out; with more
/// the Cholesky factor takes n d² + d³/3 operations. It can be serialised, or fitted again.
///
/// # Shapes
/// Data are `[examples, ..]`, starts `[chains, ..]` with the same extents after the first.
///
/// # Panics
/// `draw` panics if asked for another shape; [`check`](ChainStart::check) says so beforehand, as an error.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{Bounds, ChainStart, ClassGaussianStart};
///
/// let device = Device::default();
/// let data = Tensor::<2>::from_floats([[-0.6], [-0.4], [0.4], [0.6]], &device);
/// let range = Bounds { low: -1.0, high: 1.0 };
/// let start = ClassGaussianStart::fit(data, &[0, 0, 1, 1], 2, range)?;
/// let x = start.draw([100, 1], Some(&[1; 100]), &mut Noise::host(0), &device);
/// assert!((x.mean().into_scalar::<f32>() - 0.5).abs() < 0.05);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Yang & Ji 2021, "JEM++: improved techniques for training JEM", arXiv 2109.09032, section 4.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct ClassGaussianStart {
    classes: Vec<ClassGaussian>,
    sample_shape: Vec<usize>,
    bounds: Bounds,
}

impl ClassGaussianStart {
    /// Fits a Gaussian to the examples of each of `num_classes` classes; starts are clamped to `bounds`.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is not one label per example, [`Error::Config`] if a label is too large, a class
    /// has no example or the box is empty, [`Error::NonFinite`] if a number of the data is not finite.
    pub fn fit<const D: usize>(
        data: Tensor<D>,
        labels: &[usize],
        num_classes: usize,
        bounds: Bounds,
    ) -> Result<Self> {
        bounds.check("ClassGaussianStart.bounds")?;
        let dims = data.dims();
        let [count, dimension] = sample_extent(&dims);
        if labels.len() != count || dimension == 0 {
            return Err(Error::shape("ClassGaussianStart: data", &dims, format!("[{}, ..]", labels.len())));
        }
        if let Some(label) = labels.iter().find(|label| **label >= num_classes) {
            return Err(Error::config("ClassGaussianStart: label", label, format!("below {num_classes}")));
        }
        let values: Vec<f32> = data.into_data().iter::<f32>().collect();
        if let Some(value) = values.iter().find(|value| !value.is_finite()) {
            let what = "a number of the data of ClassGaussianStart".to_owned();
            return Err(Error::NonFinite { what, value: (*value).into() });
        }
        let classes = (0..num_classes).map(|class| {
            let members: Vec<&[f32]> = values
                .chunks_exact(dimension)
                .zip(labels)
                .filter(|(_, label)| **label == class)
                .map(|(row, _)| row)
                .collect();
            fit_class(class, &members, dimension)
        });
        let classes = classes.collect::<Result<Vec<_>>>()?;
        Parts { classes, sample_shape: dims[1..].to_vec(), bounds }.try_into()
    }

    /// How many classes.
    pub fn num_classes(&self) -> usize {
        self.classes.len()
    }

    /// μ_c, flattened.
    ///
    /// # Panics
    /// If there is no such class.
    pub fn mean(&self, class: usize) -> &[f32] {
        &self.classes[class].mean
    }

    /// The class of each chain: its label, or one at random in proportion to the examples.
    fn classes_of(&self, count: usize, labels: Option<&[usize]>, noise: &mut Noise) -> Vec<usize> {
        let owners = || (0..).zip(&self.classes).flat_map(|(class, of)| std::iter::repeat_n(class, of.count));
        let total: usize = self.classes.iter().map(|class| class.count).sum();
        let rng = noise.rng(Stream::BUFFER);
        let chosen = (0..count).map(|chain| {
            let label = labels.and_then(|labels| labels.get(chain).copied());
            label.filter(|label| *label < self.classes.len()).unwrap_or_else(|| {
                let place = rng.random_range(0..total);
                owners().nth(place).unwrap_or(0) // there are as many owners as places
            })
        });
        chosen.collect()
    }
}

/// Mean and factor of one class, in double precision.
fn fit_class(class: usize, members: &[&[f32]], dimension: usize) -> Result<ClassGaussian> {
    let count = members.len();
    if count == 0 {
        let field = format!("ClassGaussianStart: examples of class {class}");
        return Err(Error::config(field, 0, "at least 1"));
    }
    let mut centred = DMatrix::from_fn(count, dimension, |row, column| f64::from(members[row][column]));
    let mean = centred.row_mean();
    for mut row in centred.row_iter_mut() {
        row -= &mean;
    }
    let factor = match count < dimension {
        true => centred.transpose() / (count as f64).sqrt(),
        false => {
            let mut covariance = centred.tr_mul(&centred) / count as f64;
            for place in 0..dimension {
                covariance[(place, place)] += RIDGE;
            }
            let factor = covariance.cholesky().ok_or_else(|| {
                let what = format!("Cholesky factor of class {class} in ClassGaussianStart");
                Error::NonFinite { what, value: f64::NAN }
            })?;
            factor.l()
        }
    };
    let rows = (0..dimension).flat_map(|row| (0..factor.ncols()).map(move |column| (row, column)));
    Ok(ClassGaussian {
        count,
        mean: mean.iter().map(|value| *value as f32).collect(),
        factor: rows.map(|place| factor[place] as f32).collect(),
    })
}

impl<const D: usize> ChainStart<D> for ClassGaussianStart {
    fn draw(
        &self,
        shape: [usize; D],
        labels: Option<&[usize]>,
        noise: &mut Noise,
        device: &Device,
    ) -> Tensor<D> {
        let [count, dimension] = sample_extent(&shape);
        let classes = self.classes_of(count, labels, noise);
        let draws = noise.normal([count, dimension], Stream::BUFFER, device);
        let thin = self.classes.iter().filter(|class| class.is_thin());
        let thin = thin
            .map(ClassGaussian::rank)
            .max()
            .map(|rank| noise.normal([count, rank], Stream::BUFFER, device));
        // One product per class that is asked for; then the rows go where they belong.
        let mut order = Vec::with_capacity(count);
        let mut parts = Vec::new();
        for (class, gaussian) in self.classes.iter().enumerate() {
            let chains: Vec<usize> = (0..count).filter(|chain| classes[*chain] == class).collect();
            if chains.is_empty() {
                continue;
            }
            let rows: Vec<i32> = chains.iter().map(|chain| *chain as i32).collect();
            let rows = Tensor::<1, Int>::from_ints(rows.as_slice(), device);
            let rank = gaussian.rank();
            let factor = TensorData::new(gaussian.factor.clone(), [dimension, rank]);
            let factor = Tensor::<2>::from_data(factor, device).transpose();
            let mean = Tensor::<2>::from_data(TensorData::new(gaussian.mean.clone(), [1, dimension]), device);
            let full = draws.clone().select(0, rows.clone());
            let spread = match &thin {
                Some(thin) if gaussian.is_thin() => {
                    let thin = thin.clone().select(0, rows).narrow(1, 0, rank);
                    thin.matmul(factor) + full.mul_scalar(RIDGE.sqrt())
                }
                _ => full.matmul(factor),
            };
            parts.push(spread + mean);
            order.extend(chains);
        }
        if parts.is_empty() {
            return draws.reshape(shape);
        }
        let mut places = vec![0i32; count];
        for (place, chain) in order.into_iter().enumerate() {
            places[chain] = place as i32;
        }
        let x = Tensor::cat(parts, 0).select(0, Tensor::<1, Int>::from_ints(places.as_slice(), device));
        self.bounds.clamp(x.reshape(shape))
    }

    fn check(&self, sample_shape: &[usize]) -> Result<()> {
        if self.sample_shape == sample_shape {
            return Ok(());
        }
        let expected = format!("{:?}, as in the data of ClassGaussianStart", self.sample_shape);
        Err(Error::shape("sample_shape", sample_shape, expected))
    }
}

/// What is written to a file, before it is known to be whole.
#[derive(Serialize, Deserialize)]
struct Parts {
    classes: Vec<ClassGaussian>,
    sample_shape: Vec<usize>,
    bounds: Bounds,
}

impl From<ClassGaussianStart> for Parts {
    fn from(start: ClassGaussianStart) -> Self {
        let ClassGaussianStart { classes, sample_shape, bounds } = start;
        Self { classes, sample_shape, bounds }
    }
}

impl TryFrom<Parts> for ClassGaussianStart {
    type Error = Error;

    fn try_from(parts: Parts) -> Result<Self> {
        let Parts { classes, sample_shape, bounds } = parts;
        bounds.check("ClassGaussianStart.bounds")?;
        let dimension: usize = sample_shape.iter().product();
        let whole = |class: &ClassGaussian| {
            // Files from before there were thin factors have square ones throughout.
            let columns = [dimension, class.count.min(dimension)];
            let lengths = class.mean.len() == dimension
                && columns.iter().any(|columns| class.factor.len() == dimension * columns);
            lengths
                && class.count > 0
                && class.mean.iter().chain(&class.factor).all(|value| value.is_finite())
        };
        if classes.is_empty() || dimension == 0 || !classes.iter().all(whole) {
            let found = format!("{} for samples of {sample_shape:?}", classes.len());
            let allowed = "at least one, each with a finite mean and factor of the sample's size";
            return Err(Error::config("ClassGaussianStart.classes", found, allowed));
        }
        Ok(Self { classes, sample_shape, bounds })
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;

    const WIDE: Bounds = Bounds { low: -100.0, high: 100.0 };

    fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    /// Two classes: (u, 2u + v/2) around (0, 0) and the same around (10, -10), with u and v from N(0, 1).
    fn fitted(n: usize) -> ClassGaussianStart {
        let device = Device::flex();
        let z = values(Noise::host(7).normal([2 * n, 2], Stream::DATA, &device));
        let point = |(i, z): (usize, &[f32])| {
            let shift = if i % 2 == 0 { 0.0 } else { 10.0 };
            [z[0] + shift, 2.0 * z[0] + 0.5 * z[1] - shift]
        };
        let points: Vec<f32> = z.chunks(2).enumerate().flat_map(point).collect();
        let data = Tensor::<3>::from_data(TensorData::new(points, [2 * n, 1, 2]), &device);
        let labels: Vec<usize> = (0..2 * n).map(|i| i % 2).collect();
        ClassGaussianStart::fit(data, &labels, 2, WIDE).unwrap()
    }

    /// n = 20,000 starts against the moments of the fit itself, within 4.417 standard errors (α = 1e-5 each):
    /// √(v/n) for a mean, √((v_i v_j + c²)/n) for a covariance.
    #[test]
    fn starts_have_the_moments_of_their_class() {
        let start = fitted(500);
        let n = 20_000;
        let labels: Vec<usize> = (0..n).map(|i| i % 2).collect();
        let x = values(start.draw([n, 1, 2], Some(&labels), &mut Noise::host(3), &Device::flex()));
        for class in 0..2 {
            let points: Vec<&[f32]> = x.chunks(2).skip(class).step_by(2).collect();
            let count = points.len() as f64;
            let mean = |k: usize| points.iter().map(|p| f64::from(p[k])).sum::<f64>() / count;
            let mu = [mean(0), mean(1)];
            let l: Vec<f64> = start.classes[class].factor.iter().map(|v| f64::from(*v)).collect();
            let sigma = |i: usize, j: usize| l[2 * i] * l[2 * j] + l[2 * i + 1] * l[2 * j + 1];
            let agrees = |of: usize| {
                (0..2).all(|i| {
                    let other = f64::from(start.mean(of)[i]);
                    (mu[i] - other).abs() < 4.417 * (sigma(i, i) / count).sqrt()
                }) && (0..2).all(|i| {
                    (0..2).all(|j| {
                        let found = points.iter().map(|p| {
                            (f64::from(p[i]) - f64::from(start.mean(of)[i]))
                                * (f64::from(p[j]) - f64::from(start.mean(of)[j]))
                        });
                        let error = ((sigma(i, i) * sigma(j, j) + sigma(i, j).powi(2)) / count).sqrt();
                        (found.sum::<f64>() / count - sigma(i, j)).abs() < 4.417 * error
                    })
                })
            };
            assert!(agrees(class) && !agrees(1 - class));
        }
        // The fit is that of the data: Σ = [[1, 2], [2, 4.25]] up to the error of 500 examples.
        let l = &start.classes[0].factor;
        assert!((l[0] - 1.0).abs() < 0.15 && (l[2] - 2.0).abs() < 0.3 && l[1] == 0.0, "{l:?}");
    }

    /// A class of fewer examples than numbers keeps its examples, one of more keeps a Cholesky factor; either has the
    /// moments of its examples. n = 20,000 starts each, within 4.417 standard errors (α = 1e-5 each).
    #[test]
    fn few_examples_and_many_give_their_own_moments() {
        let device = Device::flex();
        let few = [[1.0f32, 2.0, 0.5, 0.0], [0.0, -1.0, 0.5, 0.0], [2.0, 0.0, 0.5, 0.0]];
        let many = [-3.0f32, -2.0, -1.0, 1.0, 2.0, 3.0].map(|a| [a, 0.5 * a, a * a, -a * a * a]);
        let all: Vec<[f32; 4]> = few.iter().chain(&many).copied().collect();
        let data = Tensor::<2>::from_data(TensorData::new(all.concat(), [9, 4]), &device);
        let start = ClassGaussianStart::fit(data, &[0, 0, 0, 1, 1, 1, 1, 1, 1], 2, WIDE).unwrap();
        assert!(start.classes[0].is_thin() && !start.classes[1].is_thin());

        let moments = |points: &[[f32; 4]]| {
            let mean = |f: &dyn Fn(&[f32; 4]) -> f64| points.iter().map(f).sum::<f64>() / points.len() as f64;
            let mu: [f64; 4] = std::array::from_fn(|i| mean(&|p| f64::from(p[i])));
            let sigma = |i: usize, j: usize| mean(&|p| (f64::from(p[i]) - mu[i]) * (f64::from(p[j]) - mu[j]));
            (mu, std::array::from_fn::<_, 16, _>(|at| sigma(at / 4, at % 4)))
        };
        let n = 20_000;
        let labels: Vec<usize> = (0..n).map(|i| i % 2).chain((0..n).map(|i| i % 2)).collect();
        let x = values(start.draw([2 * n, 4], Some(&labels), &mut Noise::host(5), &device));
        for class in 0..2 {
            let points: Vec<[f32; 4]> =
                x.chunks(4).skip(class).step_by(2).map(|p| p.try_into().unwrap()).collect();
            let (mu, sigma) = moments(&points);
            let is_that_of = |examples: &[[f32; 4]]| {
                let (mean, covariance) = moments(examples);
                let expected = |i: usize, j: usize| covariance[4 * i + j] + if i == j { RIDGE } else { 0.0 };
                (0..4).all(|i| (mu[i] - mean[i]).abs() < 4.417 * (expected(i, i) / n as f64).sqrt())
                    && (0..16).map(|at| (at / 4, at % 4)).all(|(i, j)| {
                        let variance = expected(i, i) * expected(j, j) + expected(i, j).powi(2);
                        (sigma[4 * i + j] - expected(i, j)).abs() < 4.417 * (variance / n as f64).sqrt()
                    })
            };
            assert_eq!([is_that_of(&few), is_that_of(&many)], [class == 0, class == 1], "{mu:?} {sigma:?}");
        }
    }

    #[test]
    fn chains_without_labels_take_classes_by_their_share_and_the_box_holds() {
        let device = Device::flex();
        let data = Tensor::<2>::from_floats([[-1.0], [-1.0], [-1.0], [1.0]], &device);
        let range = Bounds { low: -1.0, high: 1.0 };
        let start = ClassGaussianStart::fit(data, &[0, 0, 0, 1], 2, range).unwrap();
        let n = 10_000;
        let x = values(start.draw([n, 1], None, &mut Noise::host(3), &device));
        let share = x.iter().filter(|x| **x > 0.0).count() as f64 / n as f64;
        let is = |p: f64| (share - p).abs() < 4.417 * (p * (1.0 - p) / n as f64).sqrt();
        assert!(is(0.25) && !is(0.5), "{share}");
        assert!(x.iter().all(|x| x.abs() <= 1.0 && x.abs() > 0.9)); // a deviation of 0.01 from the ridge alone
        let unknown = values(start.draw([50, 1], Some(&[9; 50]), &mut Noise::host(3), &device));
        assert!(unknown.iter().any(|x| *x > 0.0) && unknown.iter().any(|x| *x < 0.0));
        assert_eq!(start.draw([0, 1], None, &mut Noise::host(3), &device).dims(), [0, 1]);
    }

    #[test]
    fn it_can_be_saved_and_a_broken_file_is_refused() {
        let start = fitted(20);
        let text = serde_json::to_string(&start).unwrap();
        assert_eq!(serde_json::from_str::<ClassGaussianStart>(&text).unwrap(), start);
        // One example of two numbers: a thin factor, and the square one of older files.
        let data = Tensor::<2>::from_floats([[0.5, 0.25]], &Device::flex());
        let thin = serde_json::to_string(&ClassGaussianStart::fit(data, &[0], 1, WIDE).unwrap()).unwrap();
        for (factor, whole) in [("[0.0,0.0]", true), ("[0.01,0.0,0.0,0.01]", true), ("[0.0,0.0,0.0]", false)]
        {
            assert!(thin.contains("\"factor\":[0.0,0.0]"), "{thin}");
            let text = thin.replacen("[0.0,0.0]", factor, 1);
            assert_eq!(serde_json::from_str::<ClassGaussianStart>(&text).is_ok(), whole, "{text}");
        }
        let short = text.replacen("\"sample_shape\":[1,2]", "\"sample_shape\":[3]", 1);
        let message = serde_json::from_str::<ClassGaussianStart>(&short).unwrap_err().to_string();
        assert!(message.contains("ClassGaussianStart.classes"), "{message}");
    }

    #[test]
    fn bad_data_are_named() {
        let device = Device::flex();
        let data = || Tensor::<2>::from_floats([[0.0], [1.0]], &device);
        let poisoned = Tensor::<2>::from_floats([[0.0], [f32::NAN]], &device);
        for (result, part) in [
            (ClassGaussianStart::fit(data(), &[0], 1, WIDE), "data"),
            (ClassGaussianStart::fit(data(), &[0, 1], 1, WIDE), "label = 1"),
            (ClassGaussianStart::fit(data(), &[0, 0], 2, WIDE), "examples of class 1 = 0"),
            (ClassGaussianStart::fit(poisoned, &[0, 0], 1, WIDE), "not finite"),
            (ClassGaussianStart::fit(data(), &[0, 0], 1, Bounds { low: 1.0, high: 0.0 }), "bounds"),
        ] {
            let message = result.unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        let start = ClassGaussianStart::fit(data(), &[0, 0], 1, WIDE).unwrap();
        assert!(ChainStart::<2>::check(&start, &[1]).is_ok());
        assert!(ChainStart::<2>::check(&start, &[2]).is_err());
    }
}
