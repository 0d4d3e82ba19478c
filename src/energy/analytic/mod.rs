//! Energies whose moments, normalisers and exact samples are known: what samplers are tested against.

mod banana;
mod bessel;
mod checkerboard;
mod double_well;
mod funnel;
mod gaussian;
mod mixture;
mod rings;

pub use banana::Banana;
pub use checkerboard::Checkerboard;
pub use double_well::DoubleWell;
pub use funnel::Funnel;
pub use gaussian::Gaussian;
pub use mixture::GaussianMixture;
pub use rings::Rings;

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::energy::{EnergyModel, energy_and_grad_by_autodiff};
    use crate::noise::Noise;
    use burn::tensor::{Device, Tensor, TensorData};

    #[test]
    fn log_normalisers_agree_with_quadrature_on_a_line() {
        let device = Device::flex();
        let mixture = GaussianMixture::new(vec![vec![-1.0], vec![2.0]], 0.7).unwrap();
        let gaussian = Gaussian::new(0.5, 1.3).unwrap();
        let (n, low, high) = (4001usize, -12.0f32, 14.0f32);
        let width = (high - low) / (n - 1) as f32;
        let grid: Vec<f32> = (0..n).map(|i| low + width * i as f32).collect();
        let grid = Tensor::<2>::from_data(TensorData::new(grid, [n, 1]), &device);
        for (energy, expected) in [
            (mixture.energy(grid.clone()), mixture.log_normaliser()),
            (gaussian.energy(grid.clone()), gaussian.log_normaliser(1)),
        ] {
            let log_z = f64::from((energy.neg().exp().sum().into_scalar::<f32>() * width).ln());
            assert!((log_z - expected).abs() < 1e-4, "{log_z} != {expected}");
        }
    }

    /// An energy in the plane, its log Z and exact samples of it, and the box that holds its mass.
    struct Known {
        name: &'static str,
        energy: Box<dyn EnergyModel<2>>,
        log_z: f64,
        samples: Tensor<2>,
        /// Half the width of the box in each direction, and points per unit there.
        extent: [(f32, f32); 2],
    }

    /// All of them, with n exact samples each.
    fn all_known(n: usize) -> Vec<Known> {
        let device = Device::flex();
        let mut noise = Noise::host(21);
        let gaussian = Gaussian::new(0.5, 0.8).unwrap();
        let means = vec![vec![-1.0, 0.5], vec![1.5, 0.0], vec![0.0, -2.0]];
        let mixture = GaussianMixture::new(means, 0.6).unwrap();
        let double_well = DoubleWell::new(2.0, 1.3).unwrap();
        let shallow = DoubleWell::new(0.05, 1.0).unwrap();
        let banana = Banana::new(1.0, 0.7, 0.4).unwrap();
        let funnel = Funnel::new(0.6).unwrap();
        let rings = Rings::new(vec![0.5, 2.0, 3.0], 0.25).unwrap();
        let board = Checkerboard::new(4.0, 12.0).unwrap();
        let square = [(6.0, 20.0); 2];
        let known = |name, energy: Box<dyn EnergyModel<2>>, log_z, samples, extent| Known {
            name,
            energy,
            log_z,
            samples,
            extent,
        };
        let z = gaussian.log_normaliser(2);
        let x = gaussian.sample([n, 2], &mut noise, &device);
        let mut all = vec![known("Gaussian", Box::new(gaussian), z, x, square)];
        let z = mixture.log_normaliser();
        let x = mixture.sample(n, &mut noise, &device).0;
        all.push(known("GaussianMixture", Box::new(mixture), z, x, square));
        for (name, well) in [("DoubleWell", double_well), ("DoubleWell, shallow", shallow)] {
            let x = well.sample([n, 2], &mut noise, &device);
            all.push(known(name, Box::new(well.clone()), well.log_normaliser(2), x, square));
        }
        let (z, x) = (banana.log_normaliser(), banana.sample(n, &mut noise, &device));
        all.push(known("Banana", Box::new(banana), z, x, [(5.5, 20.0), (22.0, 20.0)]));
        let (z, x) = (funnel.log_normaliser(2), funnel.sample([n, 2], &mut noise, &device));
        all.push(known("Funnel", Box::new(funnel), z, x, [(3.6, 20.0), (36.0, 15.0)]));
        let (z, x) = (rings.log_normaliser(), rings.sample(n, &mut noise, &device));
        all.push(known("Rings", Box::new(rings), z, x, square));
        let (z, x) = (board.log_normaliser(), board.sample(n, &mut noise, &device));
        all.push(known("Checkerboard", Box::new(board), z, x, [(6.0, 40.0); 2]));
        all
    }

    /// Midpoints of the cells of a grid over the box of `known`, the area of a cell, and E at each point.
    fn on_grid(known: &Known) -> (Vec<[f64; 2]>, f64, Vec<f64>) {
        let [(wide, fine), (tall, dense)] = known.extent;
        let axis = |half: f32, per_unit: f32| -> Vec<f32> {
            let count = (2.0 * half * per_unit) as usize;
            (0..count).map(|i| -half + (i as f32 + 0.5) / per_unit).collect()
        };
        let (xs, ys) = (axis(wide, fine), axis(tall, dense));
        let points: Vec<f32> = xs.iter().flat_map(|x| ys.iter().flat_map(move |y| [*x, *y])).collect();
        let pairs = points.chunks(2).map(|p| [f64::from(p[0]), f64::from(p[1])]).collect();
        let count = points.len() / 2;
        let points = Tensor::<2>::from_data(TensorData::new(points, [count, 2]), &Device::flex());
        let energy = known.energy.energy(points).into_data().iter::<f64>().collect();
        (pairs, 1.0 / f64::from(fine * dense), energy)
    }

    /// log Z by the midpoint rule; and n = 10,000 exact samples against the means of E, x, x², y and y² by the same
    /// rule, within 4.417 standard errors (α = 1e-5 each).
    #[test]
    fn normalisers_and_exact_samples_agree_with_quadrature_in_the_plane() {
        let n = 10_000;
        for known in all_known(n) {
            let name = known.name;
            let (points, area, energy) = on_grid(&known);
            let z: f64 = energy.iter().map(|e| (-e).exp()).sum::<f64>() * area;
            assert!((z.ln() - known.log_z).abs() < 1e-3, "{name}: {} != {}", z.ln(), known.log_z);
            let drawn: Vec<f64> = known.samples.clone().into_data().iter::<f64>().collect();
            let of_drawn: Vec<f64> =
                known.energy.energy(known.samples.clone()).into_data().iter::<f64>().collect();
            let drawn: Vec<[f64; 2]> = drawn.chunks(2).map(|p| [p[0], p[1]]).collect();
            type Statistic = fn(f64, [f64; 2]) -> f64;
            let statistics: [Statistic; 5] =
                [|e, _| e, |_, p| p[0], |_, p| p[0] * p[0], |_, p| p[1], |_, p| p[1].abs().min(10.0)];
            let mut wrong = 0;
            for statistic in statistics {
                let moment = |power: i32, tilt: f64| {
                    let cells = points.iter().zip(&energy);
                    let (mut sum, mut total) = (0.0, 0.0);
                    for (point, e) in cells {
                        let weight = (-e * tilt).exp();
                        sum += weight * statistic(*e, *point).powi(power);
                        total += weight;
                    }
                    sum / total
                };
                let mean = moment(1, 1.0);
                let error = ((moment(2, 1.0) - mean * mean) / n as f64).sqrt();
                let found =
                    of_drawn.iter().zip(&drawn).map(|(e, p)| statistic(*e, *p)).sum::<f64>() / n as f64;
                assert!((found - mean).abs() < 4.417 * error, "{name}: {found} != {mean} +- {error}");
                // Negative control: samples of E at a temperature of 1/0.8 would not pass all of these.
                wrong += usize::from((found - moment(1, 0.8)).abs() > 4.417 * error);
            }
            assert!(wrong > 0, "{name}");
        }
    }

    #[test]
    fn exact_gradients_agree_with_autodiff_in_the_plane() {
        let device = Device::flex();
        let mut noise = Noise::host(22);
        let x = noise.normal([64, 2], crate::noise::Stream::DATA, &device).mul_scalar(2.2);
        for known in all_known(1) {
            let (energy, exact) = known.energy.energy_and_grad(x.clone());
            let (same, auto) = energy_and_grad_by_autodiff(|x| known.energy.energy(x), x.clone());
            assert!(energy.all_close(same, Some(1e-5), Some(1e-5)), "{}", known.name);
            assert!(exact.clone().all_close(auto, Some(1e-3), Some(1e-3)), "{}", known.name);
            assert!(!exact.is_autodiff());
        }
    }

    #[test]
    fn exact_gradient_agrees_with_autodiff() {
        let gaussian = Gaussian::new(0.5, 1.3).unwrap();
        let x = Tensor::<2>::from_floats([[0.1, -2.0], [3.0, 0.5]], &Device::flex());
        let (_, exact) = gaussian.energy_and_grad(x.clone());
        let (_, auto) = energy_and_grad_by_autodiff(|x| gaussian.energy(x), x.clone());
        assert!(exact.all_close(auto, Some(1e-5), Some(1e-6)));
        let mixture = GaussianMixture::new(vec![vec![0.0, -1.0], vec![2.0, 0.5]], 0.8).unwrap();
        let (energy, exact) = mixture.energy_and_grad(x.clone());
        let (same, auto) = energy_and_grad_by_autodiff(|x| mixture.energy(x), x);
        assert!(energy.all_close(same, Some(1e-5), Some(1e-6)));
        assert!(exact.all_close(auto, Some(1e-4), Some(1e-5)));
    }

    #[test]
    fn what_gives_no_density_is_refused() {
        for means in [vec![], vec![vec![]], vec![vec![0.0], vec![0.0, 1.0]], vec![vec![f32::NAN]]] {
            assert!(GaussianMixture::new(means, 1.0).is_err());
        }
        assert!(GaussianMixture::new(vec![vec![0.0]], 0.0).is_err());
        assert!(Gaussian::new(0.0, f32::INFINITY).is_err());
        for message in [
            DoubleWell::new(0.0, 1.0).unwrap_err().to_string(),
            DoubleWell::new(1.0, f32::NAN).unwrap_err().to_string(),
            Banana::new(-1.0, 1.0, 1.0).unwrap_err().to_string(),
            Banana::new(1.0, f32::INFINITY, 1.0).unwrap_err().to_string(),
            Funnel::new(0.0).unwrap_err().to_string(),
            Rings::new(vec![], 0.1).unwrap_err().to_string(),
            Rings::new(vec![1.0, -1.0], 0.1).unwrap_err().to_string(),
            Checkerboard::new(-1.0, 1.0).unwrap_err().to_string(),
            Checkerboard::new(1.0, 0.0).unwrap_err().to_string(),
        ] {
            assert!(message.contains(" = "), "{message}");
        }
    }
}
