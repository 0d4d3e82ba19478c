//! Refinement under each label: sampler steps on E(x, y) for every y, and the label of the lowest energy reached.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::defence::{Defence, Response};
use super::refined::{refined, repeated, straight_through};
use jem_core::data::label_tensor;
use jem_core::energy::{ConditionalEnergy, Given};
use jem_core::error::{Result, ensure};
use jem_core::noise::Noise;
use jem_core::samplers::{Neighbourhood, Sampler};

/// Configuration of [`RefinedGiven`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RefinedGivenConfig {
    /// Sampler steps under each label. With 0 the energies are those of the input as it came.
    pub num_steps: usize,
    /// C, the number of labels.
    pub num_classes: usize,
    /// How far from the input a chain may go, in units of the model's input. Default as far as it likes.
    #[serde(default)]
    pub neighbourhood: Option<Neighbourhood>,
}

impl RefinedGivenConfig {
    /// `num_steps` sampler steps under each of `num_classes` labels.
    pub fn new(num_steps: usize, num_classes: usize) -> Self {
        Self { num_steps, num_classes, neighbourhood: None }
    }

    /// Keeps the chains in the neighbourhood of their input, as [`Confined`](jem_core::samplers::Confined) does.
    pub fn with_neighbourhood(mut self, neighbourhood: Neighbourhood) -> Self {
        self.neighbourhood = Some(neighbourhood);
        self
    }

    /// The classifier of a model by a sampler.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) naming the field that is not allowed, also of the neighbourhood.
    pub fn init<M, S>(self, model: M, sampler: S) -> Result<RefinedGiven<M, S>> {
        ensure(self.num_classes > 0, "RefinedGivenConfig.num_classes", self.num_classes, "at least 1")?;
        self.neighbourhood.map_or(Ok(()), |near| near.check())?;
        Ok(RefinedGiven { config: self, model, sampler })
    }
}

/// Classification by the lowest energy that an input can be brought to:
///
/// ```text
/// x_y = S_y^n(x),   f̄(x)[y] = -E(x_y, y),   ŷ = argmin_y E(x_y, y)
/// ```
///
/// S_y is a step of the sampler on E(·, y), within a [neighbourhood](RefinedGivenConfig::with_neighbourhood) of the
/// input if there is one; IGEBM takes the L∞ ball of 8/255 and 10 steps. Without steps this is argmin_y E(x, y).
/// [`Refined`](super::Refined) is the marginal version, on E(x). Attacked as that is: through the refinement as if
/// it were the identity.
///
/// # Shapes
/// `[batch, ..]` to `[batch, classes]`; the model sees batches of C times as many.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::JointEnergy;
/// use jem_core::energy::analytic::GaussianMixture;
/// use jem_eval::attack::{Defence, Norm, RefinedGivenConfig};
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{ImproperSgldConfig, Neighbourhood};
///
/// let joint = JointEnergy::new(GaussianMixture::new(vec![vec![0.2], vec![0.8]], 0.2)?);
/// let sampler = ImproperSgldConfig::new().with_step_size(0.01).with_noise_scale(0.0).init()?;
/// let near = Neighbourhood::new(Norm::Linf, 8.0 / 255.0).with_bounds(0.0, 1.0);
/// let classifier = RefinedGivenConfig::new(10, 2).with_neighbourhood(near).init(joint, sampler)?;
/// let x = Tensor::<2>::from_floats([[0.4], [0.6]], &Device::default());
/// let labels = classifier.classify(x, &mut Noise::host(0)).argmax(1).into_data();
/// assert_eq!(labels.iter::<i64>().collect::<Vec<_>>(), [0, 1]);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Du & Mordatch 2019, arXiv 1903.08689.
#[derive(Debug, Clone)]
pub struct RefinedGiven<M, S> {
    config: RefinedGivenConfig,
    model: M,
    sampler: S,
}

impl<M, S> RefinedGiven<M, S> {
    /// The configuration.
    pub fn config(&self) -> &RefinedGivenConfig {
        &self.config
    }

    /// The refined inputs, sample by sample and in each label by label: `[batch, ..]` to `[batch · classes, ..]`.
    pub fn refine<const D: usize>(&self, x: Tensor<D>, noise: &mut Noise) -> Tensor<D>
    where
        M: ConditionalEnergy<D>,
        S: Sampler<D> + Clone,
    {
        let RefinedGivenConfig { num_steps, num_classes, neighbourhood } = self.config;
        let inputs = repeated(x.without_autodiff(), num_classes);
        let given = self.given(&inputs);
        refined(&given, &self.sampler, neighbourhood, inputs.clone(), inputs, num_steps, noise)
    }

    /// The model with the labels 0, 1, .. in turn for the rows of `copies`.
    fn given<const D: usize>(&self, copies: &Tensor<D>) -> Given<&M> {
        let labels: Vec<usize> = (0..copies.dims()[0]).map(|row| row % self.config.num_classes).collect();
        Given::new(&self.model, label_tensor(&labels, &copies.device()))
    }

    /// -E of every copy under its label, `[batch, classes]`.
    fn logits<const D: usize>(&self, copies: Tensor<D>) -> Tensor<2>
    where
        M: ConditionalEnergy<D>,
    {
        let (rows, classes) = (copies.dims()[0], self.config.num_classes);
        let labels = self.given(&copies).labels().clone();
        self.model.energy_given(copies, labels).neg().reshape([rows / classes, classes])
    }
}

impl<const D: usize, M: ConditionalEnergy<D>, S: Sampler<D> + Clone> Defence<D> for RefinedGiven<M, S> {
    fn classify(&self, x: Tensor<D>, noise: &mut Noise) -> Tensor<2> {
        self.logits(self.refine(x, noise))
    }

    fn respond(&self, x: Tensor<D>, loss: &dyn Fn(Tensor<2>) -> Tensor<1>, noise: &mut Noise) -> Response<D> {
        let dims = x.dims();
        straight_through(|copies| self.logits(copies), self.refine(x, noise), dims, loss)
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::attack::loss::Aim;
    use crate::attack::{AttackLoss, Norm};
    use burn::tensor::Device;
    use jem_core::energy::analytic::GaussianMixture;
    use jem_core::energy::{Classifier, EnergyModel, JointEnergy};
    use jem_core::samplers::{ImproperSgld, ImproperSgldConfig};

    const STEP: f64 = 0.02;

    fn joint() -> JointEnergy<GaussianMixture> {
        JointEnergy::new(GaussianMixture::new(vec![vec![0.2, 0.3], vec![0.8, 0.6]], 0.3).unwrap())
    }

    fn of(config: RefinedGivenConfig) -> RefinedGiven<JointEnergy<GaussianMixture>, ImproperSgld> {
        let sampler = ImproperSgldConfig::new().with_step_size(STEP).with_noise_scale(0.0).init().unwrap();
        config.init(joint(), sampler).unwrap()
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
    fn without_steps_it_is_the_argmin_of_the_energies() {
        let (plain, mut noise) = (of(RefinedGivenConfig::new(0, 2)), Noise::host(1));
        assert!(close(plain.classify(points(), &mut noise), joint().classifier().logits(points())));
        let found = plain.respond(points(), &loss, &mut noise);
        let expected = joint().classifier().respond(points(), &loss, &mut noise);
        assert!(close(found.gradient, expected.gradient) && close(found.loss, expected.loss));
    }

    #[test]
    fn each_label_has_a_chain_of_its_own() {
        let found = of(RefinedGivenConfig::new(1, 2)).classify(points(), &mut Noise::host(1));
        let expected: Vec<Tensor<1>> = (0..2)
            .map(|label| {
                let given = joint();
                let given = given.given(label_tensor(&[label; 3], &Device::flex()));
                let (_, slope) = given.energy_and_grad(points());
                given.energy(points() - slope.mul_scalar(STEP)).neg()
            })
            .collect();
        assert!(close(found.clone(), Tensor::stack(expected, 1)));
        // Energies only fall on the way.
        let before = joint().classifier().logits(points());
        assert!(found.greater(before).all().into_scalar::<bool>());
    }

    #[test]
    fn chains_stay_in_the_neighbourhood_of_their_input() {
        let near = Neighbourhood::new(Norm::Linf, 0.05).with_bounds(0.0, 1.0);
        let farthest = |config: RefinedGivenConfig| {
            let copies = of(config).refine(points(), &mut Noise::host(1));
            (copies - repeated(points(), 2)).abs().max().into_scalar::<f32>()
        };
        let free = RefinedGivenConfig::new(20, 2);
        assert!(farthest(free) > 0.1);
        assert!(farthest(free.with_neighbourhood(near)) <= 0.05);
    }

    #[test]
    fn bad_settings_are_named() {
        for (config, field) in [
            (RefinedGivenConfig::new(1, 0), "RefinedGivenConfig.num_classes = 0 "),
            (
                RefinedGivenConfig::new(1, 2).with_neighbourhood(Neighbourhood::new(Norm::L2, f64::NAN)),
                "Neighbourhood.radius = NaN ",
            ),
        ] {
            let message = config.init(joint(), ()).unwrap_err().to_string();
            assert!(message.starts_with(field), "{message}");
        }
    }
}
