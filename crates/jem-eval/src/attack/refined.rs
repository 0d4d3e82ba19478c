//! Refinement: a few sampler steps towards likely inputs before the classifier decides.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::DEFENCE;
use super::defence::{Defence, Response, respond_by_autodiff};
use jem_core::data::label_tensor;
use jem_core::energy::{Classifier, EnergyModel, JointEnergy};
use jem_core::error::{Result, ensure, ensure_not_negative};
use jem_core::math::{per_sample, sample_extent};
use jem_core::noise::Noise;
use jem_core::samplers::{Confined, Neighbourhood, Sampler, run};

/// Configuration of [`Refined`]; the defaults are those of the reference code.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RefinedConfig {
    /// Sampler steps before the decision: 0, 1 or 10 for JEM-0, JEM-1 and JEM-10.
    pub num_steps: usize,
    /// r, noisy copies of each input, whose logits are averaged. Default 5.
    pub repeats: usize,
    /// σ, the deviation of the noise on each copy, in units of the model's input. Default 0.03.
    pub noise_scale: f32,
    /// How far from the input its copies may go, in units of the model's input. Default as far as they like.
    #[serde(default)]
    pub neighbourhood: Option<Neighbourhood>,
}

impl RefinedConfig {
    /// `num_steps` sampler steps on each of 5 copies with noise of 0.03.
    pub fn new(num_steps: usize) -> Self {
        Self { num_steps, repeats: 5, noise_scale: 0.03, neighbourhood: None }
    }

    /// Sets r.
    pub fn with_repeats(mut self, repeats: usize) -> Self {
        self.repeats = repeats;
        self
    }

    /// Sets σ.
    pub fn with_noise_scale(mut self, noise_scale: f32) -> Self {
        self.noise_scale = noise_scale;
        self
    }

    /// Keeps the copies in the neighbourhood of their input, as [`Confined`] does.
    pub fn with_neighbourhood(mut self, neighbourhood: Neighbourhood) -> Self {
        self.neighbourhood = Some(neighbourhood);
        self
    }

    /// The defence of a model by a sampler.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) naming the field that is not allowed, also of the neighbourhood.
    pub fn init<C, S>(self, joint: JointEnergy<C>, sampler: S) -> Result<Refined<C, S>> {
        ensure(self.repeats > 0, "RefinedConfig.repeats", self.repeats, "at least 1")?;
        ensure_not_negative("RefinedConfig.noise_scale", self.noise_scale)?;
        self.neighbourhood.map_or(Ok(()), |near| near.check())?;
        Ok(Refined { config: self, joint, sampler })
    }
}

/// Classification after refinement. Each input is copied r times with noise of deviation σ, each copy makes n
/// sampler steps on E(x), and the logits there are averaged:
///
/// ```text
/// x_k = S^n(x + σ ε_k),   f̄(x) = (1/r) Σ_k f(x_k)
/// ```
///
/// With a [neighbourhood](RefinedConfig::with_neighbourhood) no copy leaves that of its input.
///
/// Attacked through the refinement as if that were the identity: the gradient at the refined points is passed
/// straight to x. Wrapped in [`ExpectedGradient`](super::ExpectedGradient), that is averaged over the
/// refinement's own draws. The noise on the copies has a stream of its own; the steps draw as the sampler does.
///
/// # Shapes
/// `[batch, ..]` to `[batch, classes]`; the model sees batches of r times as many.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::JointEnergy;
/// use jem_core::energy::analytic::GaussianMixture;
/// use jem_eval::attack::{Defence, RefinedConfig};
/// use jem_core::noise::Noise;
/// use jem_core::samplers::ImproperSgldConfig;
///
/// let joint = JointEnergy::new(GaussianMixture::new(vec![vec![0.2], vec![0.8]], 0.2)?);
/// let sampler = ImproperSgldConfig::new().with_step_size(0.01).init()?;
/// let jem_10 = RefinedConfig::new(10).init(joint, sampler)?;
/// let x = Tensor::<2>::from_floats([[0.4]], &Device::default());
/// assert_eq!(jem_10.classify(x, &mut Noise::host(0)).dims(), [1, 2]);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Grathwohl et al. 2020, arXiv 1912.03263, section 5.4, and the reference code; the identity in the
/// backward pass: Athalye et al. 2018, arXiv 1802.00420.
#[derive(Debug, Clone)]
pub struct Refined<C, S> {
    config: RefinedConfig,
    joint: JointEnergy<C>,
    sampler: S,
}

impl<C, S> Refined<C, S> {
    /// The configuration.
    pub fn config(&self) -> &RefinedConfig {
        &self.config
    }

    /// The refined copies, sample by sample: `[batch, ..]` to `[batch · r, ..]`.
    pub fn refine<const D: usize>(&self, x: Tensor<D>, noise: &mut Noise) -> Tensor<D>
    where
        C: Classifier<D>,
        S: Sampler<D> + Clone,
    {
        let RefinedConfig { num_steps, repeats, noise_scale, neighbourhood } = self.config;
        let inputs = repeated(x.without_autodiff(), repeats);
        let copies = if noise_scale > 0.0 {
            let draws = noise.normal(inputs.dims(), DEFENCE, &inputs.device());
            inputs.clone() + draws.mul_scalar(noise_scale)
        } else {
            inputs.clone()
        };
        refined(&self.joint, &self.sampler, neighbourhood, inputs, copies, num_steps, noise)
    }

    /// The mean of the logits of the copies of each sample.
    fn averaged<const D: usize>(&self, copies: Tensor<D>) -> Tensor<2>
    where
        C: Classifier<D>,
    {
        let logits = self.joint.classifier().logits(copies);
        let [rows, classes] = logits.dims();
        let repeats = self.config.repeats;
        logits.reshape([rows / repeats, repeats, classes]).mean_dim(1).squeeze_dim(1)
    }
}

/// Each sample so many times, one after the other: `[batch, ..]` to `[batch · times, ..]`.
pub(super) fn repeated<const D: usize>(x: Tensor<D>, times: usize) -> Tensor<D> {
    let rows: Vec<usize> = (0..x.dims()[0]).flat_map(|row| std::iter::repeat_n(row, times)).collect();
    let rows = label_tensor(&rows, &x.device());
    x.select(0, rows)
}

/// `start` after so many steps, in the neighbourhood of `inputs` if there is one. Without steps no chain begins.
pub(super) fn refined<const D: usize, S: Sampler<D> + Clone>(
    model: &dyn EnergyModel<D>,
    sampler: &S,
    neighbourhood: Option<Neighbourhood>,
    inputs: Tensor<D>,
    start: Tensor<D>,
    num_steps: usize,
    noise: &mut Noise,
) -> Tensor<D> {
    match neighbourhood {
        _ if num_steps == 0 => start,
        None => run(sampler, model, start, num_steps, noise),
        Some(near) => {
            run(&Confined::of_checked(sampler.clone(), near, inputs), model, start, num_steps, noise)
        }
    }
}

impl<const D: usize, C: Classifier<D>, S: Sampler<D> + Clone> Defence<D> for Refined<C, S> {
    fn classify(&self, x: Tensor<D>, noise: &mut Noise) -> Tensor<2> {
        self.averaged(self.refine(x, noise))
    }

    fn respond(&self, x: Tensor<D>, loss: &dyn Fn(Tensor<2>) -> Tensor<1>, noise: &mut Noise) -> Response<D> {
        let dims = x.dims();
        straight_through(|copies| self.averaged(copies), self.refine(x, noise), dims, loss)
    }
}

/// The response at refined copies of samples of shape `dims`, whose gradients are passed to their samples.
pub(super) fn straight_through<const D: usize>(
    logits: impl FnOnce(Tensor<D>) -> Tensor<2>,
    copies: Tensor<D>,
    dims: [usize; D],
    loss: &dyn Fn(Tensor<2>) -> Tensor<1>,
) -> Response<D> {
    let Response { logits, loss, gradient } = respond_by_autodiff(logits, copies, loss);
    Response { logits, loss, gradient: summed(gradient, dims) }
}

/// The sum over the copies of each sample: from `[batch · times, ..]` to `dims`.
fn summed<const D: usize>(of_copies: Tensor<D>, dims: [usize; D]) -> Tensor<D> {
    let times = of_copies.dims()[0] / dims[0];
    let [batch, elements] = sample_extent(&dims);
    let rows: Tensor<3> = per_sample(of_copies).reshape([batch, times, elements]);
    rows.sum_dim(1).reshape(dims)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::attack::loss::Aim;
    use crate::attack::{AttackLoss, ExpectedGradient, Norm};
    use burn::tensor::Device;
    use jem_core::energy::analytic::GaussianMixture;
    use jem_core::samplers::ImproperSgldConfig;

    fn mixture() -> GaussianMixture {
        GaussianMixture::new(vec![vec![0.2, 0.3], vec![0.8, 0.6]], 0.3).unwrap()
    }

    fn refined(config: RefinedConfig) -> Refined<GaussianMixture, jem_core::samplers::ImproperSgld> {
        let sampler = ImproperSgldConfig::new().with_step_size(0.02).with_noise_scale(0.0).init().unwrap();
        config.init(JointEnergy::new(mixture()), sampler).unwrap()
    }

    fn points() -> Tensor<2> {
        Tensor::from_floats([[0.4, 0.4], [0.6, 0.1], [0.9, 0.9]], &Device::flex())
    }

    fn loss(logits: Tensor<2>) -> Tensor<1> {
        let labels = label_tensor(&[0, 0, 1], &Device::flex());
        AttackLoss::CrossEntropy.of(logits, labels, Aim::Away)
    }

    fn close<const D: usize>(a: Tensor<D>, b: Tensor<D>) -> bool {
        a.all_close(b, Some(1e-4), Some(1e-5))
    }

    #[test]
    fn without_steps_and_noise_it_is_the_classifier() {
        let nothing = refined(RefinedConfig::new(0).with_repeats(3).with_noise_scale(0.0));
        let mut noise = Noise::host(1);
        assert!(close(nothing.classify(points(), &mut noise), mixture().logits(points())));
        let (a, b) =
            (nothing.respond(points(), &loss, &mut noise), mixture().respond(points(), &loss, &mut noise));
        assert!(close(a.gradient, b.gradient) && close(a.loss, b.loss) && close(a.logits, b.logits));
    }

    #[test]
    fn steps_are_the_samplers_and_the_gradient_is_that_of_the_refined_point() {
        let one = refined(RefinedConfig::new(1).with_repeats(2).with_noise_scale(0.0));
        let (_, slope) = mixture().energy_and_grad(points());
        let moved = points() - slope.mul_scalar(0.02);
        let mut noise = Noise::host(1);
        let found = one.respond(points(), &loss, &mut noise);
        let expected = mixture().respond(moved.clone(), &loss, &mut noise);
        assert!(close(found.logits, mixture().logits(moved)));
        assert!(close(found.gradient.clone(), expected.gradient));
        let unmoved = mixture().respond(points(), &loss, &mut noise);
        assert!(!close(found.gradient, unmoved.gradient));
    }

    #[test]
    fn copies_stay_in_the_neighbourhood_of_their_input() {
        let near = Neighbourhood::new(Norm::Linf, 0.03).with_bounds(0.0, 0.92);
        let config = RefinedConfig::new(20).with_repeats(3).with_noise_scale(0.1).with_neighbourhood(near);
        let inputs = repeated(points(), 3);
        let farthest = |config: RefinedConfig| {
            let copies = refined(config).refine(points(), &mut Noise::host(1));
            (copies - inputs.clone()).abs().max().into_scalar::<f32>()
        };
        assert!(farthest(config) <= 0.03);
        assert!(farthest(RefinedConfig { neighbourhood: None, ..config }) > 0.1);
        let bad = config.with_neighbourhood(Neighbourhood::new(Norm::L2, -1.0));
        let message = bad.init(JointEnergy::new(mixture()), ()).unwrap_err().to_string();
        assert!(message.starts_with("Neighbourhood.radius = -1 "), "{message}");
    }

    #[test]
    fn logits_are_averaged_over_noisy_copies_and_draws() {
        let jem_0 = refined(RefinedConfig::new(0).with_repeats(4).with_noise_scale(0.1));
        let copies = |noise: &mut Noise| {
            let draws = noise.normal([12, 2], DEFENCE, &Device::flex()).mul_scalar(0.1);
            let rows = label_tensor(&[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], &Device::flex());
            points().select(0, rows) + draws
        };
        let mean = |copies: Tensor<2>| -> Tensor<2> {
            mixture().logits(copies).reshape([3, 4, 2]).mean_dim(1).squeeze_dim(1)
        };
        let found = jem_0.classify(points(), &mut Noise::host(5));
        let mut noise = Noise::host(5);
        let first = mean(copies(&mut noise));
        assert!(close(found, first.clone()));
        let second = mean(copies(&mut noise));
        assert!(!close(first.clone(), second.clone()));
        let expected = ExpectedGradient::new(jem_0, 2).unwrap().respond(points(), &loss, &mut Noise::host(5));
        assert!(close(expected.logits, (first + second).div_scalar(2.0)));
    }

    #[test]
    fn bad_settings_are_named() {
        for (config, field) in [
            (RefinedConfig::new(1).with_repeats(0), "repeats"),
            (RefinedConfig::new(1).with_noise_scale(-0.1), "noise_scale"),
            (RefinedConfig::new(1).with_noise_scale(f32::NAN), "noise_scale"),
        ] {
            let error = config.init(JointEnergy::new(mixture()), ()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("RefinedConfig.{field} =")), "{error}");
        }
    }
}
