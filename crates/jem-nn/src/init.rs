//! Layers whose initial weights come from the crate's own noise: one seed, one network, on every backend.
//!
//! Burn's layers draw from the backend, later, when a weight is first used. Here every weight is drawn at
//! once, on the host and from [`Stream::INITIALISATION`], whatever the mode of the [`Noise`].

use burn::module::Param;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Initializer, Linear, LinearConfig, LinearLayout};
use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;

use jem_core::error::{Error, Result, ensure};
use jem_core::noise::{Noise, Stream};

/// A convolution with its weights drawn from `noise`, U(±1/sqrt(fan in)) unless the configuration says
/// otherwise; fan in is the number of inputs that one output sees.
///
/// # Errors
/// [`Error::Config`] if a size is 0, if the groups do not divide the channels, or if the initialiser is one
/// that would draw from the backend (constants and Kaiming uniform over fan in do not).
///
/// ```
/// use burn::nn::conv::Conv2dConfig;
/// use burn::tensor::Device;
/// use jem_nn::conv2d;
/// use jem_core::noise::Noise;
///
/// let conv = conv2d(&Conv2dConfig::new([3, 16], [3, 3]), &mut Noise::host(0), &Device::default())?;
/// assert_eq!(conv.weight.dims(), [16, 3, 3, 3]);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: the default of PyTorch's layers; He et al. 2015, arXiv 1502.01852, with gain 1/sqrt(3).
pub fn conv2d(config: &Conv2dConfig, noise: &mut Noise, device: &Device) -> Result<Conv2d> {
    let [inputs, outputs] = config.channels;
    let [height, width] = config.kernel_size;
    let sizes = [
        ("channels", config.channels),
        ("kernel_size", config.kernel_size),
        ("stride", config.stride),
        ("dilation", config.dilation),
    ];
    for (field, value) in sizes {
        let allowed = value.iter().all(|size| *size > 0);
        ensure(allowed, &format!("Conv2dConfig.{field}"), format!("{value:?}"), "two numbers > 0")?;
    }
    let groups = config.groups;
    let divides = groups > 0 && inputs.is_multiple_of(groups) && outputs.is_multiple_of(groups);
    ensure(divides, "Conv2dConfig.groups", groups, "a divisor of both channel counts")?;

    let fan_in = inputs / groups * height * width;
    let law = Law::of(&config.initializer, fan_in, "Conv2dConfig.initializer")?;
    let mut conv = config.clone().with_initializer(Initializer::Zeros).init(device);
    conv.weight = law.draw([outputs, inputs / groups, height, width], noise, device);
    conv.bias = config.bias.then(|| law.draw([outputs], noise, device));
    Ok(conv)
}

/// A linear layer with its weights drawn from `noise`, U(±1/sqrt(inputs)) unless the configuration says
/// otherwise.
///
/// # Errors
/// [`Error::Config`] if a size is 0, if the layout is not the row-major one, or if the initialiser is one that
/// would draw from the backend (constants and Kaiming uniform over fan in do not).
///
/// ```
/// use burn::nn::LinearConfig;
/// use burn::tensor::Device;
/// use jem_nn::linear;
/// use jem_core::noise::Noise;
///
/// let layer = linear(&LinearConfig::new(64, 10), &mut Noise::host(0), &Device::default())?;
/// assert_eq!(layer.weight.dims(), [64, 10]);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: the default of PyTorch's layers; He et al. 2015, arXiv 1502.01852, with gain 1/sqrt(3).
pub fn linear(config: &LinearConfig, noise: &mut Noise, device: &Device) -> Result<Linear> {
    let (inputs, outputs) = (config.d_input, config.d_output);
    ensure(inputs > 0, "LinearConfig.d_input", inputs, "a number > 0")?;
    ensure(outputs > 0, "LinearConfig.d_output", outputs, "a number > 0")?;
    let row_major = matches!(config.layout, LinearLayout::Row);
    ensure(row_major, "LinearConfig.layout", format!("{:?}", config.layout), "Row")?;

    let law = Law::of(&config.initializer, inputs, "LinearConfig.initializer")?;
    Ok(Linear {
        weight: law.draw([inputs, outputs], noise, device),
        bias: config.bias.then(|| law.draw([outputs], noise, device)),
    })
}

/// Batch norm over `channels` channels with its default settings, its parameters made at once.
///
/// # Errors
/// [`Error::Config`] if there are no channels.
///
/// ```
/// use burn::tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let norm = jem_nn::batch_norm(8, &device)?;
/// assert_eq!(norm.forward(Tensor::<4>::ones([2, 8, 4, 4], &device)).dims(), [2, 8, 4, 4]);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Ioffe and Szegedy 2015, arXiv 1502.03167.
pub fn batch_norm(channels: usize, device: &Device) -> Result<BatchNorm> {
    ensure(channels > 0, "BatchNormConfig.num_features", channels, "a number > 0")?;
    let mut norm = BatchNormConfig::new(channels).init(device);
    norm.gamma = Param::from_tensor(Tensor::ones([channels], device));
    norm.beta = Param::from_tensor(Tensor::zeros([channels], device));
    Ok(norm)
}

/// What the values of a new parameter are drawn from.
enum Law {
    Constant(f32),
    Uniform(f32),
}

impl Law {
    fn of(initializer: &Initializer, fan_in: usize, field: &str) -> Result<Self> {
        match initializer {
            Initializer::Zeros => Ok(Self::Constant(0.0)),
            Initializer::Ones => Ok(Self::Constant(1.0)),
            Initializer::Constant { value } => Ok(Self::Constant(*value as f32)),
            Initializer::KaimingUniform { gain, fan_out_only: false } if gain.is_finite() => {
                Ok(Self::Uniform((gain * (3.0 / fan_in as f64).sqrt()) as f32))
            }
            other => {
                Err(Error::config(field, format!("{other:?}"), "a constant or Kaiming uniform over fan in"))
            }
        }
    }

    fn draw<const D: usize>(
        &self,
        shape: [usize; D],
        noise: &mut Noise,
        device: &Device,
    ) -> Param<Tensor<D>> {
        let count = shape.iter().product();
        let values = match *self {
            Self::Constant(value) => vec![value; count],
            Self::Uniform(bound) => {
                let rng = noise.rng(Stream::INITIALISATION);
                (0..count).map(|_| bound * (2.0 * rng.random::<f32>() - 1.0)).collect()
            }
        };
        Param::from_data(TensorData::new(values, shape), device)
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use burn::module::Module;

    fn values<const D: usize>(tensor: &Param<Tensor<D>>) -> Vec<f32> {
        tensor.val().into_data().try_to_vec().unwrap()
    }

    /// n = 147,456 draws of U(±b): the mean has the standard error b/sqrt(3n), the second moment
    /// b² sqrt(4/45n); 4.5 of them is a two-sided alpha below 1e-5.
    #[test]
    fn weights_are_uniform_within_one_over_root_fan_in() {
        let config = Conv2dConfig::new([64, 256], [3, 3]);
        let conv = conv2d(&config, &mut Noise::host(1), &Device::flex()).unwrap();
        let weights = values(&conv.weight);
        let (n, bound) = (weights.len() as f64, 1.0 / 576f64.sqrt());
        let mean = weights.iter().map(|w| f64::from(*w)).sum::<f64>() / n;
        let second = weights.iter().map(|w| f64::from(*w).powi(2)).sum::<f64>() / n;
        assert!(mean.abs() < 4.5 * bound / (3.0 * n).sqrt());
        assert!((second - bound * bound / 3.0).abs() < 4.5 * bound * bound * (4.0 / (45.0 * n)).sqrt());
        let bias = values(conv.bias.as_ref().unwrap());
        assert!(weights.iter().chain(&bias).all(|w| f64::from(w.abs()) <= bound));
        assert!(bias.iter().any(|b| f64::from(b.abs()) > 0.9 * bound));
    }

    #[test]
    fn a_seed_decides_the_weights_in_either_mode() {
        let draw = |mut noise: Noise| {
            values(&linear(&LinearConfig::new(5, 3), &mut noise, &Device::flex()).unwrap().weight)
        };
        assert_eq!(draw(Noise::host(4)), draw(Noise::device(4)));
        assert_ne!(draw(Noise::host(4)), draw(Noise::host(5)));
    }

    #[test]
    fn parameters_are_tracked_when_the_device_is_and_stay_so_after_valid_and_train() {
        let mut noise = Noise::host(0);
        let tracked = linear(&LinearConfig::new(2, 2), &mut noise, &Device::flex().autodiff()).unwrap();
        assert!(tracked.weight.is_initialized() && tracked.weight.is_require_grad());
        assert!(!tracked.valid().weight.is_require_grad());
        assert!(tracked.valid().train().weight.is_require_grad());
        let plain = linear(&LinearConfig::new(2, 2), &mut noise, &Device::flex()).unwrap();
        assert!(!plain.weight.is_require_grad());
        assert!(plain.train().bias.unwrap().is_require_grad());
        let norm = batch_norm(2, &Device::flex().autodiff()).unwrap();
        assert!(norm.gamma.is_require_grad() && norm.valid().train().beta.is_require_grad());
    }

    #[test]
    fn constants_are_kept_and_hidden_randomness_refused() {
        let (mut noise, device) = (Noise::host(0), Device::flex());
        let half = LinearConfig::new(2, 2).with_initializer(Initializer::Constant { value: 0.5 });
        assert_eq!(values(&linear(&half, &mut noise, &device).unwrap().weight), [0.5; 4]);
        let normal = LinearConfig::new(2, 2).with_initializer(Initializer::Normal { mean: 0.0, std: 1.0 });
        let error = linear(&normal, &mut noise, &device).unwrap_err().to_string();
        assert!(error.starts_with("LinearConfig.initializer = Normal"), "{error}");
    }

    #[test]
    fn impossible_layers_are_refused_by_name() {
        let (mut noise, device) = (Noise::host(0), Device::flex());
        let base = Conv2dConfig::new([4, 6], [3, 3]);
        for (config, field) in [
            (Conv2dConfig::new([0, 6], [3, 3]), "channels"),
            (Conv2dConfig::new([4, 6], [3, 0]), "kernel_size"),
            (base.clone().with_stride([0, 1]), "stride"),
            (base.clone().with_groups(0), "groups"),
            (base.with_groups(4), "groups"),
        ] {
            let error = conv2d(&config, &mut noise, &device).unwrap_err().to_string();
            assert!(error.starts_with(&format!("Conv2dConfig.{field} =")), "{error}");
        }
        for (config, field) in [
            (LinearConfig::new(0, 1), "d_input"),
            (LinearConfig::new(1, 0), "d_output"),
            (LinearConfig::new(1, 1).with_layout(LinearLayout::Col), "layout"),
        ] {
            let error = linear(&config, &mut noise, &device).unwrap_err().to_string();
            assert!(error.starts_with(&format!("LinearConfig.{field} =")), "{error}");
        }
        assert!(batch_norm(0, &device).is_err());
    }
}
