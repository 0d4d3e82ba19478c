//! What a trained energy is used for, on digits and an energy whose answers are known: a Gaussian for each class.

use burn::tensor::{Device, Tensor, TensorData};
use jem_core::data::label_tensor;
use jem_core::energy::{Clamp, EnergyModel, JointEnergy};
use jem_core::noise::{Noise, Stream};
use jem_core::samplers::{HmcConfig, ImproperSgldConfig, Inpainting, Sampler, run};
use jem_data::digits;
use jem_nn::MlpConfig;
use nalgebra::{DMatrix, DVector};

use crate::support::{Z, moments, values};

const PIXELS: usize = 64;

/// N(μ_y, Σ_y + 0.1 I), fitted to the training digits of class y.
struct Fitted {
    mean: DVector<f64>,
    precision: DMatrix<f64>,
}

impl Fitted {
    fn to(digits: &[&[f32]]) -> Self {
        let rows = DMatrix::from_fn(digits.len(), PIXELS, |row, pixel| f64::from(digits[row][pixel]));
        let mean = rows.row_mean().transpose();
        let centred = DMatrix::from_fn(digits.len(), PIXELS, |row, pixel| rows[(row, pixel)] - mean[pixel]);
        let covariance = centred.transpose() * &centred / digits.len() as f64;
        let precision = (covariance + DMatrix::identity(PIXELS, PIXELS) * 0.1).try_inverse().unwrap();
        Self { mean, precision }
    }

    /// E[hidden | visible] for the lower half, and its precision.
    fn lower_half(&self, digit: &[f32]) -> (DVector<f64>, DMatrix<f64>) {
        let half = PIXELS / 2;
        let block = |row, column| self.precision.view((row, column), (half, half)).into_owned();
        let above = DVector::from_fn(half, |pixel, _| f64::from(digit[pixel]) - self.mean[pixel]);
        let shift = block(half, half).try_inverse().unwrap() * (block(half, 0) * above);
        (self.mean.rows(half, half) - shift, block(half, half))
    }
}

/// One of the Gaussians for each sample: E(x) = (x - μ)ᵀ Λ (x - μ) / 2.
struct Rows {
    means: Tensor<2>,
    precisions: Tensor<3>,
}

impl Rows {
    fn new(of: &[&Fitted], device: &Device) -> Self {
        let tensor = |values: Vec<f32>, per_row: usize| {
            Tensor::<2>::from_data(TensorData::new(values, [of.len(), per_row]), device)
        };
        let means = of.iter().flat_map(|fitted| fitted.mean.iter().map(|v| *v as f32)).collect();
        let precisions = of.iter().flat_map(|fitted| fitted.precision.iter().map(|v| *v as f32)).collect();
        let precisions = tensor(precisions, PIXELS * PIXELS).reshape([of.len(), PIXELS, PIXELS]);
        Self { means: tensor(means, PIXELS), precisions }
    }
}

impl EnergyModel<2> for Rows {
    fn energy(&self, x: Tensor<2>) -> Tensor<1> {
        self.energy_and_grad(x).0
    }

    fn energy_and_grad(&self, x: Tensor<2>) -> (Tensor<1>, Tensor<2>) {
        let offset = x - self.means.clone();
        let pulled = self.precisions.clone().matmul(offset.clone().unsqueeze_dim(2)).squeeze_dim::<2>(2);
        ((offset * pulled.clone()).sum_dim(1).squeeze_dim::<1>(1).mul_scalar(0.5), pulled)
    }
}

/// The upper half is visible.
fn upper_half<S: Sampler<2>>(sampler: S, digits: Tensor<2>) -> Inpainting<S, 2> {
    let rows: Vec<f32> = (0..PIXELS).map(|pixel| f32::from(u8::from(pixel < PIXELS / 2))).collect();
    let mask = Tensor::<2>::from_data(TensorData::new(rows, [1, PIXELS]), &digits.device());
    Inpainting::new(sampler, Clamp::new(mask.expand(digits.dims()).bool(), digits).unwrap())
}

fn changed(digits: &[f32], found: &[f32]) -> usize {
    let visible = |index: &usize| index % PIXELS < PIXELS / 2;
    (0..digits.len()).filter(visible).filter(|i| digits[*i].to_bits() != found[*i].to_bits()).count()
}

/// 150 test digits, 6 chains each, 32 hidden pixels. Of the means of the chains d, measured from E[hidden | visible],
/// 6 dᵀ Λ d is χ² with n = 150 · 32 degrees of freedom if the chains are independent draws. α = 1e-5.
#[test]
fn filling_in_a_digit_draws_from_the_conditional_law_and_beats_the_mean_image() {
    let device = Device::default();
    let split = digits::digits().unwrap();
    let train = values(split.train.all(&device).unwrap());
    let of_class = |class| {
        let own = train.chunks(PIXELS).zip(split.train.labels()).filter(|(_, label)| **label == class);
        Fitted::to(&own.map(|(digit, _)| digit).collect::<Vec<_>>())
    };
    let fitted: Vec<Fitted> = (0..10).map(of_class).collect();
    let test = split.test.take_per_class(15).unwrap();
    let (chains, half) = (6, PIXELS / 2);
    let digits = values(test.all(&device).unwrap());
    let hidden = |index: usize, pixel: usize| f64::from(digits[index * PIXELS + half + pixel]);

    // The squared error of the mean of the chains and of the mean image, digit by digit, and χ²/n.
    let fill = |class_of: &dyn Fn(usize) -> usize| {
        let rows: Vec<usize> = (0..test.len()).flat_map(|index| [index; 6]).collect();
        let models: Vec<&Fitted> =
            rows.iter().map(|index| &fitted[class_of(test.labels()[*index])]).collect();
        let of_rows: Tensor<2> = test.all(&device).unwrap().reshape([test.len(), PIXELS]);
        let of_rows = of_rows.select(0, label_tensor(&rows, &device));
        let hmc = HmcConfig::new(0.2).with_num_leapfrog(10).with_step_jitter(0.2).init().unwrap();
        let start = Noise::host(1).uniform(of_rows.dims(), -1.0..1.0, Stream::DATA, &device);
        let sampler = upper_half(hmc, of_rows.clone());
        let end = values(run(&sampler, &Rows::new(&models, &device), start, 25, &mut Noise::host(2)));
        assert_eq!(changed(&values(of_rows), &end), 0);
        let (mut by_chains, mut by_mean, mut chi) = (Vec::new(), Vec::new(), 0.0);
        for index in 0..test.len() {
            let model = &fitted[class_of(test.labels()[index])];
            let of_chain = |chain: usize| &end[(index * chains + chain) * PIXELS + half..][..half];
            let mean = DVector::from_fn(half, |pixel, _| {
                (0..chains).map(|chain| f64::from(of_chain(chain)[pixel])).sum::<f64>() / chains as f64
            });
            let (expected, precision) = model.lower_half(&digits[index * PIXELS..][..PIXELS]);
            let offset = &mean - expected;
            chi += chains as f64 * offset.dot(&(precision * &offset));
            let error = |guess: &dyn Fn(usize) -> f64| {
                let squares = (0..half).map(|pixel| (guess(pixel) - hidden(index, pixel)).powi(2));
                squares.sum::<f64>() / half as f64
            };
            by_chains.push(error(&|pixel| mean[pixel]) as f32);
            by_mean.push(error(&|pixel| fitted[test.labels()[index]].mean[half + pixel]) as f32);
        }
        let less: Vec<f32> = by_mean.iter().zip(by_chains).map(|(a, b)| a - b).collect();
        (less, chi / (test.len() * half) as f64)
    };
    let better = |less: &[f32]| {
        let (mean, variance) = moments(less);
        mean > Z * (variance / less.len() as f64).sqrt()
    };
    let (less, ratio) = fill(&|class| class);
    let n = (test.len() * half) as f64;
    assert!((ratio - 1.0).abs() < Z * (2.0 / n).sqrt(), "{ratio}");
    assert!(better(&less), "{:?}", moments(&less));
    // Under another class's energy the fill is worse than the mean image.
    let (less, _) = fill(&|class| (class + 1) % 10);
    assert!(!better(&less), "{:?}", moments(&less));
}

#[test]
fn visible_pixels_keep_their_bits_under_a_network_and_its_training_sampler() {
    let device = Device::default();
    let test = digits::digits().unwrap().test.take_per_class(1).unwrap();
    let network = MlpConfig::new(PIXELS, vec![16], 10).init(&mut Noise::host(1), &device).unwrap();
    let joint = JointEnergy::new(network);
    let digits: Tensor<2> = test.all(&device).unwrap().reshape([10, PIXELS]);
    let sgld = ImproperSgldConfig::new().with_noise_scale(0.1).init().unwrap();
    let start = Noise::host(2).uniform([10, PIXELS], -1.0..1.0, Stream::DATA, &device);
    let given = joint.given(label_tensor(test.labels(), &device));
    let end = |sampler: &dyn Fn(&mut Noise) -> Tensor<2>| values(sampler(&mut Noise::host(3)));
    let inpainting = upper_half(sgld.clone(), digits.clone());
    let filled = end(&|noise| run(&inpainting, &given, start.clone(), 20, noise));
    assert_eq!(changed(&values(digits.clone()), &filled), 0);
    assert!(filled != values(digits.clone()));
    // Without the clamp every pixel moves.
    let free = end(&|noise| run(&sgld, &given, digits.clone(), 20, noise));
    assert_eq!(changed(&values(digits), &free), 10 * PIXELS / 2);
}
