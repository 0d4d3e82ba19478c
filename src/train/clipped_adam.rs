//! The optimiser of IGEBM: Adam, with each element of the gradient clamped by what that element has been like.

use burn::config::Config;
use burn::optim::{Adam, AdamConfig, AdamState, ModuleOptimizer, Optimizer};
use burn::tensor::{Device, Tensor};

use crate::error::{self, ensure, ensure_not_negative, ensure_positive};

/// Configuration of a [`ClippedAdam`]; the defaults are those of IGEBM, whose learning rate is 3e-4.
///
/// ```
/// use burn::module::Module;
/// use burn::nn::LinearConfig;
/// use burn::optim::GradientsParams;
/// use burn::tensor::{Device, Tensor};
/// use jem_core::train::ClippedAdamConfig;
///
/// let device = Device::default().autodiff();
/// let mut model = LinearConfig::new(2, 1).init(&device);
/// let mut optimizer = ClippedAdamConfig::new().init()?;
/// let mut moved = 0.0;
/// for size in [0.05, 0.05, 1e6, 0.05] {
///     let before = model.weight.val().inner();
///     let loss = model.forward(Tensor::<2>::from_floats([[size, size]], &device)).sum();
///     let gradients = GradientsParams::from_grads(loss.backward(), &model);
///     model = optimizer.step(3e-4, model, gradients);
///     moved = (model.weight.val().inner() - before).abs().max().into_scalar::<f32>();
/// }
/// assert!(moved > 1e-4); // of the spike, nothing is left that would stop the step behind it
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Config, Debug, PartialEq)]
pub struct ClippedAdamConfig {
    /// β₁, from 0 to below 1: how much of the mean gradient stays from one step to the next.
    #[config(default = 0.0)]
    pub beta_1: f32,
    /// β₂, from 0 to below 1: how much of the mean squared gradient stays.
    #[config(default = 0.999)]
    pub beta_2: f32,
    /// What is added to the root of the mean squared gradient before it divides.
    #[config(default = 1e-8)]
    pub epsilon: f32,
    /// How many roots of the mean squared gradient an element may have.
    #[config(default = 3.0)]
    pub deviations: f32,
    /// What an element may have beyond that. In the first step, this is all.
    #[config(default = 0.1)]
    pub offset: f32,
}

impl ClippedAdamConfig {
    /// The optimiser of one parameter, for [`ModuleOptimizer::with_group`].
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless the betas are from 0 to below 1, epsilon and the offset are
    /// finite and above 0, and the number of deviations is finite and not below 0.
    pub fn build(&self) -> error::Result<ClippedAdam> {
        let beta = |value: f32| (0.0..1.0).contains(&value);
        ensure(beta(self.beta_1), "ClippedAdamConfig.beta_1", self.beta_1, "from 0 to below 1")?;
        ensure(beta(self.beta_2), "ClippedAdamConfig.beta_2", self.beta_2, "from 0 to below 1")?;
        ensure_positive("ClippedAdamConfig.epsilon", self.epsilon)?;
        ensure_not_negative("ClippedAdamConfig.deviations", self.deviations)?;
        ensure_positive("ClippedAdamConfig.offset", self.offset)?;
        let adam = AdamConfig::new();
        let adam = adam.with_beta_1(self.beta_1).with_beta_2(self.beta_2).with_epsilon(self.epsilon);
        Ok(ClippedAdam { adam: adam.build(), config: self.clone() })
    }

    /// The optimiser of a whole module.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn init(&self) -> error::Result<ModuleOptimizer> {
        Ok(ModuleOptimizer::from(self.build()?))
    }
}

/// Burn's Adam behind a clamp: a gradient far outside of what its element has been like neither moves the weight far
/// nor stays in the moments.
///
/// ```text
/// b_t = 3 sqrt(v_{t-1} / (1 - β₂^t)) + 0.1        g_t ← min(max(g_t, -b_t), b_t)        then Adam with g_t
/// ```
///
/// v_{t-1} is Adam's second moment before this step, of clamped gradients, and t counts from 1. In the first step
/// v is 0, so that b_1 = 0.1. The exponent is t and not t - 1, as in the code of IGEBM, which makes the bound
/// tighter than an unbiased estimate would in the first steps: by √2 in the second, by 1 % after some fifty.
///
/// The clamp comes before Adam and after Burn's gradient clipping, if that is set. The gradient norm that the guard
/// sees is of unclamped gradients. The state is that of Burn's Adam: its checkpoints can be read by this one, and
/// the other way round.
///
/// # Shapes
/// Any, kept.
///
/// Source: Du and Mordatch 2019, arXiv 1903.08689, and its code, which adds epsilon before the correction of bias
/// where Burn adds it after: that matters for gradients of about its size only.
#[derive(Clone)]
pub struct ClippedAdam {
    adam: Adam,
    config: ClippedAdamConfig,
}

impl std::fmt::Debug for ClippedAdam {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ClippedAdam").field(&self.config).finish()
    }
}

impl ClippedAdam {
    /// The gradient within its bounds.
    fn clamped<const D: usize>(&self, gradient: Tensor<D>, state: Option<&AdamState<D>>) -> Tensor<D> {
        let ClippedAdamConfig { beta_2, deviations, offset, .. } = self.config;
        let Some(AdamState { momentum }) = state else { return gradient.clamp(-offset, offset) };
        let steps = i32::try_from(momentum.time).map_or(i32::MAX, |done| done.saturating_add(1));
        let correction = 1.0 - f64::from(beta_2).powi(steps);
        let factor = f64::from(deviations) / correction.sqrt();
        let bound = momentum.moment_2.clone().sqrt().mul_scalar(factor).add_scalar(offset);
        gradient.min_pair(bound.clone()).max_pair(bound.neg())
    }
}

impl Optimizer for ClippedAdam {
    type State<const D: usize> = AdamState<D>;

    fn step<const D: usize>(
        &self,
        lr: f64,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<Self::State<D>>,
    ) -> (Tensor<D>, Option<Self::State<D>>) {
        let grad = self.clamped(grad, state.as_ref());
        self.adam.step(lr, tensor, grad, state)
    }

    fn to_device<const D: usize>(state: Self::State<D>, device: &Device) -> Self::State<D> {
        Adam::to_device(state, device)
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::noise::{Noise, Stream};
    use burn::module::{Module, Param};
    use burn::optim::GradientsParams;

    #[derive(Module, Debug)]
    struct Weights {
        weights: Param<Tensor<1>>,
    }

    fn weights(values: &[f32]) -> Weights {
        Weights { weights: Param::from_tensor(Tensor::from_floats(values, &Device::flex().autodiff())) }
    }

    const LEARNING_RATE: f64 = 0.01;

    fn step(optimizer: &mut ModuleOptimizer, model: Weights, gradient: &[f32]) -> Weights {
        let mut gradients = GradientsParams::new();
        gradients.register(model.weights.id, Tensor::<1>::from_floats(gradient, &Device::flex()));
        optimizer.step(LEARNING_RATE, model, gradients)
    }

    fn values(model: &Weights) -> Vec<f32> {
        model.weights.val().into_data().iter().collect()
    }

    /// The same in double precision, from the formula.
    struct Expected {
        weights: Vec<f64>,
        m: Vec<f64>,
        v: Vec<f64>,
        t: i32,
        betas: [f64; 2],
    }

    impl Expected {
        fn new(weights: &[f32], betas: [f32; 2]) -> Self {
            let zeros = vec![0.0; weights.len()];
            let weights = weights.iter().copied().map(f64::from).collect();
            Self { weights, m: zeros.clone(), v: zeros, t: 0, betas: betas.map(f64::from) }
        }

        /// Returns how many elements were clamped.
        fn step(&mut self, gradient: &[f32]) -> usize {
            self.t += 1;
            let [c1, c2] = self.betas.map(|beta| 1.0 - beta.powi(self.t));
            let mut clamped = 0;
            for (i, raw) in gradient.iter().copied().map(f64::from).enumerate() {
                let bound = 3.0 * (self.v[i] / c2).sqrt() + 0.1;
                let g = raw.clamp(-bound, bound);
                clamped += usize::from(g != raw);
                self.m[i] = self.betas[0] * self.m[i] + (1.0 - self.betas[0]) * g;
                self.v[i] = self.betas[1] * self.v[i] + (1.0 - self.betas[1]) * g * g;
                self.weights[i] -= LEARNING_RATE * (self.m[i] / c1) / ((self.v[i] / c2).sqrt() + 1e-8);
            }
            clamped
        }
    }

    /// Gradients of two sizes, now and then ten times as large.
    fn gradients(count: usize) -> Vec<Vec<f32>> {
        let mut noise = Noise::host(6);
        (0..count)
            .map(|step| {
                let scale = if step % 7 == 6 { 10.0 } else { 1.0 };
                let draws = noise.normal([4], Stream::DATA, &Device::flex()).into_data();
                let sizes = [0.01, 0.01, 1.0, 1.0];
                draws.iter::<f32>().zip(sizes).map(|(draw, size)| draw * size * scale).collect()
            })
            .collect()
    }

    const START: [f32; 4] = [0.3, -0.2, 1.0, -4.0];

    #[test]
    fn steps_are_those_of_the_formula_in_double_precision() {
        for betas in [[0.0, 0.999], [0.9, 0.99]] {
            let config = ClippedAdamConfig::new().with_beta_1(betas[0]).with_beta_2(betas[1]);
            let mut optimizer = config.init().unwrap();
            let mut plain = AdamConfig::new().with_beta_1(betas[0]).with_beta_2(betas[1]).init();
            let (mut found, mut unclamped) = (weights(&START), weights(&START));
            let mut expected = Expected::new(&START, betas);
            let mut clamped = 0;
            for gradient in gradients(40) {
                found = step(&mut optimizer, found, &gradient);
                unclamped = step(&mut plain, unclamped, &gradient);
                clamped += expected.step(&gradient);
            }
            let error = |model: &Weights| {
                let pairs = values(model).into_iter().zip(&expected.weights);
                pairs.map(|(a, b)| (f64::from(a) - b).abs()).fold(0.0, f64::max)
            };
            assert!((5..80).contains(&clamped), "{clamped} of 160 elements clamped");
            assert!(error(&found) < 1e-4, "{betas:?}: {}", error(&found));
            // Negative control: Burn's Adam is elsewhere.
            assert!(error(&unclamped) > 1e-2, "{betas:?}: {}", error(&unclamped));
        }
    }

    #[test]
    fn a_spike_is_forgotten_at_once() {
        // Ten steps of gradient 0.05, one of 1000, and ten more.
        let moved_after = |mut optimizer: ModuleOptimizer| {
            let mut model = weights(&[0.0]);
            for _ in 0..10 {
                model = step(&mut optimizer, model, &[0.05]);
            }
            model = step(&mut optimizer, model, &[1000.0]);
            let at_spike = values(&model)[0];
            for _ in 0..10 {
                model = step(&mut optimizer, model, &[0.05]);
            }
            at_spike - values(&model)[0]
        };
        let [clipped, plain] =
            [ClippedAdamConfig::new().init().unwrap(), AdamConfig::new().with_beta_1(0.0).init()]
                .map(moved_after);
        // Ten whole steps, less what a gradient of 0.25 leaves in the mean; ten of 0.05 / 300 for Burn's.
        assert!((0.04..0.1).contains(&clipped), "{clipped}");
        assert!(plain < 1e-3, "{plain}");
    }

    #[test]
    fn the_first_bound_is_the_offset() {
        // v after the first step is (1 - β₂) g², so that its root shows what was clamped to.
        let optimizer = ClippedAdamConfig::new().build().unwrap();
        let device = Device::flex();
        let gradient = Tensor::<1>::from_floats([0.05, -0.09, 7.0, -1e9], &device);
        let (_, state) = optimizer.step(0.1, Tensor::zeros([4], &device), gradient, None);
        let v = state.unwrap().momentum.moment_2.into_data();
        for (v, expected) in v.iter::<f32>().zip([0.05f32, 0.09, 0.1, 0.1]) {
            assert!(((v / 0.001).sqrt() / expected - 1.0).abs() < 1e-4, "{v}");
        }
    }

    #[test]
    fn saved_and_loaded_in_the_middle_it_goes_on_bit_for_bit() {
        let all = gradients(12);
        let config = ClippedAdamConfig::new().with_beta_1(0.5);
        let run = |reload: Option<usize>, fresh: bool| {
            let (mut optimizer, mut model) = (config.init().unwrap(), weights(&START));
            for (done, gradient) in all.iter().enumerate() {
                if reload == Some(done) {
                    let bytes = optimizer.into_bytes().unwrap();
                    optimizer = config.init().unwrap();
                    if !fresh {
                        optimizer = optimizer.from_bytes(bytes).unwrap();
                    }
                }
                model = step(&mut optimizer, model, gradient);
            }
            values(&model)
        };
        assert_eq!(run(Some(6), false), run(None, false));
        // Negative control: without its state, it goes elsewhere.
        assert_ne!(run(Some(6), true), run(None, false));
    }

    #[test]
    fn wrong_configurations_are_refused_by_name() {
        let new = ClippedAdamConfig::new;
        for (config, field) in [
            (new().with_beta_1(1.0), "beta_1 = 1 "),
            (new().with_beta_2(-0.1), "beta_2 = -0.1 "),
            (new().with_beta_2(f32::NAN), "beta_2 = NaN "),
            (new().with_epsilon(0.0), "epsilon = 0 "),
            (new().with_deviations(-3.0), "deviations = -3 "),
            (new().with_offset(0.0), "offset = 0 "),
        ] {
            let error = config.init().err().unwrap().to_string();
            assert!(error.starts_with(&format!("ClippedAdamConfig.{field}")), "{error}");
        }
        let json = serde_json::to_string(&new().with_offset(0.2)).unwrap();
        assert_eq!(serde_json::from_str::<ClippedAdamConfig>(&json).unwrap(), new().with_offset(0.2));
    }
}
