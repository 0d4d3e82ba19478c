//! Spectral normalisation of any module's weights: each is divided by its largest singular value.

use std::collections::BTreeSet;

use burn::config::Config;
use burn::module::{Module, Param, Reparameterization, Reparameterizer, RunningState};
use burn::tensor::{Tensor, TensorData};
use rand::RngExt;
use rand_distr::StandardNormal;

use jem_core::error;
use jem_core::error::{Error, ensure};
use jem_core::noise::{Noise, Stream};

const STREAM: Stream = Stream::new("spectral-norm");

/// Which weights of a module are normalised, and how.
///
/// Weights are chosen by the endings of their paths, in whole names: `conv2.weight` is the weight of every field
/// `conv2`, wherever it is. Only parameters of rank 2 and above are weights.
///
/// ```
/// use burn::module::Module;
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::Classifier;
/// use jem_nn::{CnnConfig, SpectralNormConfig};
/// use jem_core::noise::Noise;
///
/// let device = Device::default();
/// let mut noise = Noise::host(0);
/// let net = CnnConfig::new(vec![8, 16], 10).init(&mut noise, &device.clone().autodiff())?;
/// let head_as_it_is = SpectralNormConfig::new().with_excluded(vec!["class_output.weight".into()]);
/// let net = head_as_it_is.apply(net, &mut noise)?; // train it as any other
///
/// // For a chain of many steps: the same function, its weights divided once and for all.
/// let fixed = net.valid().materialize();
/// let x = Tensor::<4>::ones([1, 3, 8, 8], &device);
/// assert_eq!(fixed.logits(x.clone()).into_data(), net.valid().logits(x).into_data());
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// # Cost
/// For n power iterations, an evaluation in training costs 2 n + 1 products of each weight with a vector; one in
/// evaluation mode a single such product, and a division. That is little beside a convolution. A chain can do
/// without by `model.valid().materialize()`, whose weights are plain.
#[derive(Config, Debug, PartialEq)]
pub struct SpectralNormConfig {
    /// Power iterations at each evaluation of a weight in training.
    #[config(default = 1)]
    pub power_iterations: usize,
    /// Power iterations before the first evaluation, so that training does not start from weights that are too
    /// large.
    #[config(default = 15)]
    pub warm_up: usize,
    /// The endings of the paths of the weights that are normalised.
    #[config(default = "vec![\"weight\".to_owned()]")]
    pub weights: Vec<String>,
    /// Of these, the endings of those that are left alone.
    #[config(default = "Vec::new()")]
    pub excluded: Vec<String>,
    /// Of the rest, the endings of those that are divided only where their largest singular value is above 1. Weights
    /// that start at zero must be among them to stay small at first.
    #[config(default = "Vec::new()")]
    pub lower_bounded: Vec<String>,
}

impl SpectralNormConfig {
    /// `model` with its weights normalised. The first singular vectors are drawn from `noise`, in a stream of their
    /// own, on the host.
    ///
    /// # Errors
    /// [`Error::Config`] if there are no power iterations, if an ending fits no weight, so that a wrong name is not
    /// taken for a choice, if nothing is left to normalise, or if a weight is normalised already;
    /// [`Error::NonFinite`] for a weight that is not finite. The module is lost then.
    pub fn apply<M: Module>(&self, model: M, noise: &mut Noise) -> error::Result<M> {
        let allowed = "a number > 0";
        let iterations = self.power_iterations;
        ensure(iterations > 0, "SpectralNormConfig.power_iterations", iterations, allowed)?;
        let mut wrap = Wrap {
            config: self,
            noise,
            fault: None,
            candidates: Vec::new(),
            wrapped: Vec::new(),
            used: BTreeSet::new(),
        };
        let model = model.apply_reparameterization(&mut wrap);
        wrap.finish()?;
        Ok(model)
    }
}

/// A weight's largest singular value is taken out of it, where it is.
///
/// ```text
/// W̄ = W / σ        σ = uᵀ W v        or        W̄ = W min(1, 1/σ)
/// v = Wᵀu / ‖Wᵀu‖   u ← W v / ‖W v‖
/// ```
///
/// The second form, W / max(σ, 1), leaves weights alone that are small already. W is the weight with all but its
/// first axis taken together, `[outputs, inputs · height · width]` for a convolution. u and v are constants to
/// autodiff, σ is not, so that no gradient of the first form goes into the length of W. A weight of zero stays zero.
///
/// u moves by power iterations whenever a weight that is tracked by autodiff is evaluated, that is in training, also
/// by an evaluation through a clone, as the running statistics of batch norm do. Frozen weights and those of
/// `model.valid()` do not move it: chains and validation see a fixed function. u is saved with the model, and is no
/// parameter for the optimiser. Two evaluations within one iteration of training see slightly different weights.
///
/// In averaged weights (`TrainerConfig.average_decay`) u is averaged with them, and σ is that of the averaged weight,
/// seen along it.
///
/// Made by [`SpectralNormConfig::apply`].
///
/// Source: Miyato et al. 2018, arXiv 1802.05957; the form for small weights: Du and Mordatch 2019, arXiv 1903.08689.
#[derive(Module, Debug)]
pub struct SpectralNorm {
    /// The first left singular vector, as long as the first axis of the weight.
    pub u: RunningState<Tensor<1>>,
    #[module(skip)]
    power_iterations: usize,
    #[module(skip)]
    lower_bounded: bool,
}

impl Reparameterization for SpectralNorm {
    const NAME: &'static str = "spectral_norm";

    fn apply<const D: usize>(&self, weight: Tensor<D>) -> Tensor<D> {
        let matrix = as_matrix(weight.clone());
        let mut u: Tensor<2> = self.u.value_sync().without_autodiff().unsqueeze_dim(0);
        if weight.is_tracked() {
            u = iterate(u, matrix.clone().without_autodiff(), self.power_iterations);
            self.u.update(u.clone().squeeze_dim::<1>(0).autodiff());
            self.u.value_sync(); // takes the update in at once, so that any record has it
        }
        // Averaged weights come with averaged vectors, whose length is not 1.
        let row = unit(u).matmul(matrix);
        let v = unit(row.clone().without_autodiff());
        let sigma = (row * v).sum_dim(1);
        let divisor = if self.lower_bounded { sigma.clamp_min(1.0) } else { one_for_zero(sigma) };
        weight / divisor.reshape([1; D])
    }
}

/// `[outputs, ..]` to `[outputs, everything else]`.
fn as_matrix<const D: usize>(weight: Tensor<D>) -> Tensor<2> {
    let outputs = weight.dims()[0];
    let others = weight.dims().iter().skip(1).product::<usize>();
    weight.reshape([outputs, others])
}

/// u after so many power iterations with W, `[1, outputs]`; what W takes to zero stays as it is.
fn iterate(mut u: Tensor<2>, matrix: Tensor<2>, iterations: usize) -> Tensor<2> {
    for _ in 0..iterations {
        let v = unit(u.clone().matmul(matrix.clone()));
        let next = matrix.clone().matmul(v.transpose()).transpose();
        let lost = next.clone().abs().max_dim(1).equal_elem(0.0).float();
        u = unit(next) + u * lost;
    }
    u
}

/// A row divided by its length; a row of zeros stays one.
fn unit(row: Tensor<2>) -> Tensor<2> {
    let length = row.clone().square().sum_dim(1).sqrt();
    row / one_for_zero(length)
}

fn one_for_zero(number: Tensor<2>) -> Tensor<2> {
    let is_zero = number.clone().without_autodiff().equal_elem(0.0).float();
    number + is_zero
}

/// Goes through a module and wraps what the configuration chooses.
struct Wrap<'a> {
    config: &'a SpectralNormConfig,
    noise: &'a mut Noise,
    fault: Option<Error>,
    /// The paths of all that may be a weight, and of those that were wrapped.
    candidates: Vec<String>,
    wrapped: Vec<String>,
    /// Which endings of which list have fitted.
    used: BTreeSet<(&'static str, &'a str)>,
}

impl<'a> Wrap<'a> {
    /// Whether an ending of a list fits the path.
    fn fits(&mut self, list: &'static str, endings: &'a [String], path: &str) -> bool {
        let mut found = false;
        for ending in endings {
            let head = path.strip_suffix(ending.as_str()).filter(|_| !ending.is_empty());
            if head.is_some_and(|head| head.is_empty() || head.ends_with('.')) {
                self.used.insert((list, ending));
                found = true;
            }
        }
        found
    }

    fn norm_of<const D: usize>(&mut self, path: &str, weight: Tensor<D>) -> error::Result<SpectralNorm> {
        let matrix = as_matrix(weight.clone().without_autodiff());
        let size = matrix.clone().abs().sum().into_scalar::<f32>();
        if !size.is_finite() {
            return Err(Error::NonFinite { what: format!("the sum over {path}"), value: size.into() });
        }
        let outputs = matrix.dims()[0];
        let rng = self.noise.rng(STREAM);
        let draws: Vec<f32> = (0..outputs).map(|_| rng.sample(StandardNormal)).collect();
        let start = unit(Tensor::from_data(TensorData::new(draws, [1, outputs]), &matrix.device()));
        let u = iterate(start, matrix, self.config.warm_up).squeeze_dim::<1>(0);
        Ok(SpectralNorm {
            u: RunningState::new(if weight.is_autodiff() { u.autodiff() } else { u }),
            power_iterations: self.config.power_iterations,
            lower_bounded: self.fits("lower_bounded", &self.config.lower_bounded, path),
        })
    }

    fn finish(self) -> error::Result<()> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let SpectralNormConfig { weights, excluded, lower_bounded, .. } = self.config;
        for (list, endings) in
            [("weights", weights), ("excluded", excluded), ("lower_bounded", lower_bounded)]
        {
            if let Some(ending) = endings.iter().find(|ending| !self.used.contains(&(list, ending.as_str())))
            {
                let allowed = format!("the ending of a weight's path, and the module has {}", self.choice());
                return Err(Error::config(format!("SpectralNormConfig.{list}"), ending, allowed));
            }
        }
        let value = format!("{weights:?} without {excluded:?}");
        let allowed = "a choice of at least one weight";
        ensure(!self.wrapped.is_empty(), "SpectralNormConfig.weights", value, allowed)
    }

    fn choice(&self) -> String {
        match self.candidates.as_slice() {
            [] => "none".to_owned(),
            few if few.len() <= 10 => few.join(", "),
            many => format!("{} and {} more", many[..10].join(", "), many.len() - 10),
        }
    }
}

impl Reparameterizer for &mut Wrap<'_> {
    type Reparam = SpectralNorm;

    fn reparameterize<const D: usize>(
        &mut self,
        path: &str,
        param: Param<Tensor<D>>,
    ) -> (Param<Tensor<D>>, Option<SpectralNorm>) {
        // What is below a weight belongs to a reparameterization that it has already.
        let mut outer = self.wrapped.iter();
        if let Some(weight) =
            outer.find(|weight| path.strip_prefix(weight.as_str()).is_some_and(|rest| rest.starts_with('.')))
        {
            let allowed = "a module whose weights have no reparameterization yet";
            self.fault.get_or_insert_with(|| Error::config("SpectralNormConfig.apply", weight, allowed));
        }
        if D < 2 || self.fault.is_some() {
            return (param, None);
        }
        self.candidates.push(path.to_owned());
        let SpectralNormConfig { weights, excluded, .. } = self.config;
        if !self.fits("weights", weights, path) || self.fits("excluded", excluded, path) {
            return (param, None);
        }
        match self.norm_of(path, param.base()) {
            Ok(norm) => {
                self.wrapped.push(path.to_owned());
                (param, Some(norm))
            }
            Err(fault) => {
                self.fault = Some(fault);
                (param, None)
            }
        }
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::{Cnn, CnnConfig, convolve};
    use burn::nn::conv::{Conv2d, Conv2dConfig};
    use burn::optim::{AdamConfig, GradientsParams};
    use burn::tensor::Device;
    use jem_core::energy::Classifier;
    use nalgebra::DMatrix;

    /// A weight of each kind, some larger than 1, some smaller.
    #[derive(Module, Debug)]
    struct Weights {
        wide: Kernel<2>,
        tall: Kernel<2>,
        conv: Kernel<4>,
        point: Kernel<4>,
        bias: Param<Tensor<1>>,
    }

    #[derive(Module, Debug)]
    struct Kernel<const D: usize> {
        weight: Param<Tensor<D>>,
    }

    fn draw<const D: usize>(shape: [usize; D], scale: f64, noise: &mut Noise) -> Kernel<D> {
        let values = noise.normal(shape, Stream::DATA, &Device::flex()).mul_scalar(scale);
        Kernel { weight: Param::from_tensor(values.autodiff()) }
    }

    fn weights(scale: f64) -> Weights {
        let mut noise = Noise::host(3);
        Weights {
            wide: draw([5, 12], scale, &mut noise),
            tall: draw([9, 4], scale, &mut noise),
            conv: draw([6, 3, 3, 3], scale, &mut noise),
            point: draw([4, 5, 1, 1], scale, &mut noise),
            bias: Param::from_tensor(Tensor::ones([3], &Device::flex().autodiff())),
        }
    }

    fn exact() -> SpectralNormConfig {
        SpectralNormConfig::new().with_warm_up(0)
    }

    fn bounded() -> SpectralNormConfig {
        exact().with_lower_bounded(vec!["weight".to_owned()])
    }

    fn apply(config: &SpectralNormConfig, weights: Weights) -> Weights {
        config.apply(weights, &mut Noise::host(1)).unwrap()
    }

    fn matrix<const D: usize>(tensor: Tensor<D>) -> DMatrix<f64> {
        let [rows, columns] = as_matrix(tensor.clone()).dims();
        DMatrix::from_row_iterator(rows, columns, tensor.into_data().iter::<f64>())
    }

    fn largest<const D: usize>(tensor: Tensor<D>) -> f64 {
        matrix(tensor).singular_values().max()
    }

    /// By singular value decomposition, of the weights that evaluation sees.
    fn norms(weights: &Weights) -> [f64; 4] {
        let w = weights.valid();
        [
            largest(w.wide.weight.val()),
            largest(w.tall.weight.val()),
            largest(w.conv.weight.val()),
            largest(w.point.weight.val()),
        ]
    }

    fn sum(weights: &Weights, size: impl Fn(Tensor<1>) -> Tensor<1>) -> Tensor<1> {
        let flat = |tensor: Tensor<2>| size(tensor.clone().reshape([tensor.shape().num_elements()]));
        flat(weights.wide.weight.val())
            + flat(weights.tall.weight.val())
            + flat(as_matrix(weights.conv.weight.val()))
            + flat(as_matrix(weights.point.weight.val()))
    }

    #[test]
    fn after_20_evaluations_the_largest_singular_values_are_one() {
        for scale in [0.01, 1.0, 30.0] {
            let net = apply(&exact(), weights(scale));
            // Negative control: without power iterations they are not, and evaluation mode makes none.
            for _ in 0..20 {
                norms(&net);
            }
            let before = norms(&net);
            assert!(before.iter().all(|norm| (norm - 1.0).abs() > 0.03), "{before:?}");
            for _ in 0..20 {
                sum(&net, |w| w.sum());
            }
            let after = norms(&net);
            assert!(after.iter().all(|norm| (norm - 1.0).abs() < 0.01), "{after:?}");
        }
    }

    #[test]
    fn after_20_steps_of_an_optimiser_the_largest_singular_values_are_one() {
        let start = weights(1.0);
        let mut net = apply(&exact(), start.clone());
        let mut optimizer = AdamConfig::new().init();
        for _ in 0..20 {
            let loss = sum(&net, |w| (w * 3.0).sin().sum());
            let gradients = GradientsParams::from_grads(loss.backward(), &net);
            assert_eq!(gradients.len(), 4); // four weights, and no u
            net = optimizer.step(0.01, net, gradients);
        }
        let moved = (net.conv.weight.base() - start.conv.weight.base()).abs().max().into_scalar::<f32>();
        assert!(moved > 0.1, "{moved}");
        let after = norms(&net);
        assert!(after.iter().all(|norm| (norm - 1.0).abs() < 0.01), "{after:?}");
    }

    #[test]
    fn the_bounded_form_leaves_small_weights_alone_and_divides_large_ones() {
        let small = apply(&bounded(), weights(0.01));
        let large = apply(&bounded(), weights(30.0));
        for _ in 0..20 {
            sum(&small, |w| w.sum());
            sum(&large, |w| w.sum());
        }
        assert_eq!(small.conv.weight.val().into_data(), weights(0.01).conv.weight.val().into_data());
        assert!(norms(&small).iter().all(|norm| *norm < 0.2));
        assert!(norms(&large).iter().all(|norm| (norm - 1.0).abs() < 0.01));
    }

    #[test]
    fn a_weight_of_zero_stays_zero_and_has_a_gradient() {
        for config in [exact(), bounded()] {
            let net = apply(&config, weights(0.0));
            let loss = sum(&net, |w| w.sum());
            assert_eq!(loss.clone().into_scalar::<f32>(), 0.0);
            let gradient = net.conv.weight.base().grad(&loss.backward()).unwrap();
            assert_eq!(gradient.into_data().iter::<f32>().collect::<Vec<_>>(), vec![1.0; 6 * 27]);
            let u = net.conv.weight.reparameterization::<SpectralNorm>().unwrap().u.value();
            assert!((u.square().sum().into_scalar::<f32>() - 1.0).abs() < 1e-5);
        }
    }

    /// Σ C ∘ W̄ and its gradient in W by central differences, with σ by singular value decomposition.
    fn differences(weight: &DMatrix<f64>, factors: &DMatrix<f64>, bounded: bool) -> DMatrix<f64> {
        let value = |weight: &DMatrix<f64>| {
            let sigma = weight.singular_values().max();
            weight.dot(factors) / if bounded { sigma.max(1.0) } else { sigma }
        };
        let delta = 1e-5 * weight.amax();
        DMatrix::from_fn(weight.nrows(), weight.ncols(), |row, column| {
            let [mut up, mut down] = [weight.clone(), weight.clone()];
            up[(row, column)] += delta;
            down[(row, column)] -= delta;
            (value(&up) - value(&down)) / (2.0 * delta)
        })
    }

    #[test]
    fn gradients_are_those_of_a_singular_value_decomposition() {
        for (scale, form, is_bounded) in
            [(1.0, exact(), false), (0.05, bounded(), true), (3.0, bounded(), true)]
        {
            let net = apply(&form.with_warm_up(400), weights(scale));
            let factors = Noise::host(7).normal([6, 3, 3, 3], Stream::DATA, &Device::flex());
            let loss = (net.conv.weight.val() * factors.clone().autodiff()).sum();
            let base = net.conv.weight.base();
            let found = matrix(base.grad(&loss.backward()).unwrap());
            let base = matrix(base.inner());
            let expected = differences(&base, &matrix(factors.clone()), is_bounded);
            let error = (&found - &expected).amax() / expected.amax();
            assert!(error < 1e-4, "{scale}: {error}");
            // Negative control: a σ that is a constant has another gradient, unless it is below the bound.
            let sigma = base.singular_values().max();
            let constant = matrix(factors) / if is_bounded { sigma.max(1.0) } else { sigma };
            let error = (constant - &expected).amax() / expected.amax();
            assert_eq!(error < 1e-2, is_bounded && sigma < 1.0, "{scale}: {error}");
        }
    }

    #[test]
    fn only_training_moves_the_vector_and_a_copy_for_evaluation_keeps_its_own() {
        let net = apply(&exact(), weights(1.0));
        let u = |net: &Weights| {
            let norm = net.wide.weight.reparameterization::<SpectralNorm>().unwrap();
            norm.u.value().into_data().iter::<f32>().collect::<Vec<_>>()
        };
        let (start, copy) = (u(&net), net.valid());
        norms(&net);
        sum(&copy, |w| w.sum());
        let frozen = net.valid().train().freeze();
        sum(&frozen, |w| w.sum());
        assert_eq!((u(&net), u(&frozen)), (start.clone(), start.clone()));
        sum(&net.clone(), |w| w.sum()); // a clone shares it
        assert_ne!(u(&net), start);
        assert_eq!(u(&copy), start);
        // What was just seen in training is what evaluation sees.
        let seen = net.wide.weight.val();
        assert_eq!(seen.into_data(), net.valid().wide.weight.val().into_data());
    }

    fn cnn(noise: &mut Noise) -> Cnn {
        let config = CnnConfig::new(vec![4, 6], 3).with_in_channels(2);
        config.init(noise, &Device::flex().autodiff()).unwrap()
    }

    #[test]
    fn networks_see_the_normalised_weight() {
        let mut noise = Noise::host(5);
        let plain = cnn(&mut noise);
        let net = SpectralNormConfig::new().apply(plain.clone(), &mut noise).unwrap();
        let x = noise.normal([2, 2, 6, 5], Stream::DATA, &Device::flex());
        let logits = |net: &Cnn| net.logits(x.clone()).into_data().iter::<f32>().collect::<Vec<_>>();
        let fixed = net.valid().materialize();
        assert_eq!(logits(&net.valid()), logits(&fixed));
        assert!((largest(fixed.convs[1].weight.val()) - 1.0).abs() < 0.01);
        assert!(fixed.convs[1].weight.reparameterization::<SpectralNorm>().is_none());
        assert_ne!(logits(&fixed), logits(&plain.valid()));
        // One draw more in their own stream: the network after this one is the same.
        let mut other = Noise::host(5);
        cnn(&mut other);
        assert_eq!(logits(&cnn(&mut noise)), logits(&cnn(&mut other)));
    }

    #[test]
    fn kernels_give_the_gradient_of_burns_convolution() {
        let mut noise = Noise::host(5);
        let conv = Conv2dConfig::new([3, 4], [3, 3]);
        let conv = super::super::conv2d(&conv, &mut noise, &Device::flex().autodiff()).unwrap();
        let conv = SpectralNormConfig::new().with_warm_up(500).apply(conv, &mut noise).unwrap();
        let x = noise.normal([2, 3, 6, 5], Stream::DATA, &Device::flex()).autodiff();
        let gradient = |run: &dyn Fn(&Conv2d, Tensor<4>) -> Tensor<4>| {
            let loss = run(&conv, x.clone()).square().sum();
            matrix(conv.weight.base().grad(&loss.backward()).unwrap())
        };
        let [ours, burns] = [gradient(&convolve), gradient(&|conv, x| conv.forward(x))];
        assert!((&ours - &burns).amax() < 1e-4 * burns.amax(), "{ours} != {burns}");
    }

    #[test]
    fn the_vector_is_saved_by_name_in_either_layout() {
        use crate::{WeightLayout, Weights as Named};
        let mut noise = Noise::host(5);
        let mut net =
            || SpectralNormConfig::new().with_warm_up(3).apply(cnn(&mut noise), &mut Noise::host(2));
        let (trained, fresh) = (net().unwrap(), [net().unwrap(), net().unwrap()]);
        let x = Noise::host(1).normal([2, 2, 6, 5], Stream::DATA, &Device::flex());
        trained.logits(x.clone().autodiff());
        let logits = |net: &Cnn| net.valid().logits(x.clone()).into_data().iter::<f32>().collect::<Vec<_>>();
        for (fresh, layout) in fresh.into_iter().zip([WeightLayout::Burn, WeightLayout::PyTorch]) {
            assert_ne!(logits(&fresh), logits(&trained));
            let named = Named::of(&trained, layout).unwrap();
            assert!(named.tensors().contains_key("convs.1.weight.spectral_norm.u"));
            let loaded = named.load_into(fresh, layout).unwrap();
            assert_eq!(logits(&loaded), logits(&trained));
        }
    }

    #[test]
    fn wrong_choices_are_refused_by_name() {
        let refused = |config: SpectralNormConfig, weights: Weights| {
            config.apply(weights, &mut Noise::host(1)).unwrap_err().to_string()
        };
        let list = |ending: &str| vec![ending.to_owned()];
        let all = "wide.weight, tall.weight, conv.weight, point.weight";
        let cases = [
            (exact().with_power_iterations(0), "power_iterations = 0 ", ""),
            (exact().with_weights(list("kernel")), "weights = kernel ", all),
            (exact().with_weights(list("")), "weights =  ", all),
            (exact().with_weights(list("eight")), "weights = eight ", all),
            (exact().with_weights(list("bias")), "weights = bias ", all),
            (exact().with_weights(vec![]), "weights = [] ", "at least one weight"),
            (exact().with_excluded(list("weight")), "weights = [", "at least one weight"),
            (exact().with_excluded(list("conv1.weight")), "excluded = conv1.weight ", all),
            (exact().with_lower_bounded(list("conv2.weight")), "lower_bounded = conv2.weight ", all),
            (
                exact().with_excluded(list("conv.weight")).with_lower_bounded(list("conv.weight")),
                "lower_bounded = conv.weight ",
                all,
            ),
        ];
        for (config, start, end) in cases {
            let error = refused(config, weights(1.0));
            assert!(error.starts_with(&format!("SpectralNormConfig.{start}")), "{error}");
            assert!(error.ends_with(end), "{error}");
        }
        let twice = refused(exact(), apply(&exact(), weights(1.0)));
        assert!(twice.contains("wide.weight") && twice.contains("no reparameterization yet"), "{twice}");
        let error = refused(exact(), weights(f64::NAN));
        assert_eq!(error, "the sum over wide.weight is not finite: NaN");
        let json = serde_json::to_string(&bounded()).unwrap();
        assert_eq!(serde_json::from_str::<SpectralNormConfig>(&json).unwrap(), bounded());
    }
}
