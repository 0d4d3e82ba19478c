//! The ball and the box that an attack may move in: norms, random points, projections, steepest directions.

use burn::tensor::{Tensor, TensorData};
use rand::RngExt;

use super::ATTACK;
use jem_core::data::PixelRange;
use jem_core::error::{Error, Result};
pub use jem_core::math::Norm;
use jem_core::math::{into_ball, per_sample, sample_extent, sample_norms};
use jem_core::noise::Noise;

/// The size of each perturbation, in units of \[0, 1\] pixels.
///
/// # Shapes
/// Two of `[batch, ..]` to `batch` numbers.
///
/// # Errors
/// [`Error::Shape`] if the two differ in shape.
pub fn perturbation_sizes<const D: usize>(
    clean: Tensor<D>,
    perturbed: Tensor<D>,
    norm: Norm,
    range: PixelRange,
) -> Result<Vec<f64>> {
    if clean.dims() != perturbed.dims() {
        let expected = format!("{:?}, as the clean ones", clean.dims());
        return Err(Error::shape("perturbed samples", &perturbed.dims(), expected));
    }
    let change = perturbed - clean;
    let sizes = match norm {
        Norm::Linf => per_sample(change).abs().max_dim(1).squeeze_dim(1),
        Norm::L2 => sample_norms(change),
    };
    Ok(sizes.into_data().iter::<f64>().map(|size| size / pixel(range)).collect())
}

/// What a change of 1 of a [0, 1] pixel is in `range`.
pub(super) fn pixel(range: PixelRange) -> f64 {
    f64::from(range.high()) - f64::from(range.low())
}

/// A ball of a norm, cut by the box of all images. The radius is in units of the model's input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ball {
    pub norm: Norm,
    pub radius: f64,
    pub range: PixelRange,
}

impl Ball {
    /// A point of each ball round `centre`, uniform in the ball, then cut by the box.
    pub fn random_point<const D: usize>(&self, centre: Tensor<D>, noise: &mut Noise) -> Tensor<D> {
        let (dims, device) = (centre.dims(), centre.device());
        let offset = match self.norm {
            Norm::Linf => {
                let radius = self.radius as f32;
                noise.uniform(dims, -radius..radius, ATTACK, &device)
            }
            Norm::L2 => {
                let direction = unit(noise.normal(dims, ATTACK, &device));
                let [batch, elements] = sample_extent(&dims);
                let rng = noise.rng(ATTACK);
                let length = |u: f64| (self.radius * u.powf(1.0 / elements as f64)) as f32;
                let lengths: Vec<f32> = (0..batch).map(|_| length(rng.random::<f64>())).collect();
                direction * column(Tensor::from_data(TensorData::new(lengths, [batch]), &device))
            }
        };
        self.project(centre.clone(), centre + offset)
    }

    /// The nearest points in the balls round `centre`, cut by the box. As the centres lie in the box, cutting
    /// brings no point farther from its centre.
    pub fn project<const D: usize>(&self, centre: Tensor<D>, x: Tensor<D>) -> Tensor<D> {
        into_ball(x, centre, self.radius, self.norm).clamp(self.range.low(), self.range.high())
    }
}

/// The direction of unit size along which a linear function with this gradient grows fastest; 0 where the gradient
/// is 0 or not finite.
pub(super) fn steepest<const D: usize>(norm: Norm, gradient: Tensor<D>) -> Tensor<D> {
    let unusable = gradient.clone().is_finite().bool_not();
    let gradient = gradient.mask_fill(unusable, 0.0);
    match norm {
        Norm::Linf => gradient.sign(),
        Norm::L2 => unit(gradient),
    }
}

/// Each sample divided by its length, without squaring numbers that underflow; 0 stays 0.
fn unit<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let largest = per_sample(x.clone()).abs().max_dim(1).squeeze_dim(1).clamp_min(f32::MIN_POSITIVE);
    let x = x / column(largest);
    let norms = sample_norms(x.clone()).clamp_min(f32::MIN_POSITIVE);
    x / column(norms)
}

/// One number per sample, to be broadcast over it.
pub(super) fn column<const D: usize>(numbers: Tensor<1>) -> Tensor<D> {
    let mut dims = [1; D];
    dims[0] = numbers.dims()[0];
    numbers.reshape(dims)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::tensor::Device;

    fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    #[test]
    fn projections_are_the_nearest_points() {
        let device = Device::flex();
        let centre = Tensor::<2>::from_floats([[0.5, 0.5], [0.9, 0.0]], &device);
        let x = Tensor::<2>::from_floats([[0.8, 0.9], [1.5, -0.1]], &device);
        let ball = |norm, radius| Ball { norm, radius, range: PixelRange::Unit };
        let found = values(ball(Norm::L2, 0.25).project(centre.clone(), x.clone()));
        // (0.3, 0.4) has length 0.5 and is halved; (0.6, -0.1) is cut by the box too.
        for (found, expected) in found.iter().zip([0.65, 0.7, 1.0, 0.0]) {
            assert!((found - expected).abs() < 1e-6, "{found} != {expected}");
        }
        let found = values(ball(Norm::Linf, 0.05).project(centre.clone(), x));
        for (found, expected) in found.iter().zip([0.55, 0.55, 0.95, 0.0]) {
            assert!((found - expected).abs() < 1e-6, "{found} != {expected}");
        }
        // What is inside stays where it is.
        let near = centre.clone().add_scalar(0.01);
        let same = ball(Norm::L2, 0.25).project(centre, near.clone());
        assert!(same.all_close(near, Some(1e-6), Some(1e-7)));
    }

    /// n = 20,000 points: P(‖offset‖ < r/2) is 2^-d in L2; offsets of L∞ are uniform in each pixel. Binomial,
    /// α = 1e-5.
    #[test]
    fn random_points_are_uniform_in_the_ball() {
        let (device, n) = (Device::flex(), 20_000);
        let centre = Tensor::<2>::full([n, 3], 0.0, &device);
        let range = PixelRange::Symmetric;
        let share = |norm: Norm| {
            let ball = Ball { norm, radius: 0.4, range };
            let x = ball.random_point(centre.clone(), &mut Noise::host(1));
            let sizes = perturbation_sizes(centre.clone(), x, norm, range).unwrap();
            assert!(sizes.iter().all(|size| *size <= 0.2 + 1e-6)); // half of 0.4: [-1, 1] is two pixels wide
            sizes.iter().filter(|size| **size < 0.1).count() as f64 / n as f64
        };
        for norm in [Norm::L2, Norm::Linf] {
            let (found, expected) = (share(norm), 0.125f64);
            let agrees = |p: f64| (found - p).abs() < 4.417 * (p * (1.0 - p) / n as f64).sqrt();
            assert!(agrees(expected), "{norm:?}: {found}");
            assert!(!agrees(0.5)); // lengths that are uniform
        }
    }

    #[test]
    fn steepest_directions_survive_tiny_gradients_and_nan() {
        let device = Device::flex();
        let g = Tensor::<2>::from_floats([[3e-30, -4e-30], [0.0, 0.0], [f32::NAN, 2.0]], &device);
        let found = values(steepest(Norm::L2, g.clone()));
        for (found, expected) in found.iter().zip([0.6, -0.8, 0.0, 0.0, 0.0, 1.0]) {
            assert!((found - expected).abs() < 1e-6, "{found} != {expected}");
        }
        assert_eq!(values(steepest(Norm::Linf, g)), [1.0, -1.0, 0.0, 0.0, 0.0, 1.0]);
    }
}
