//! Contrastive divergence for an energy of x and a label.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::parts::{Energies, count};
use super::{ContrastiveDivergence, ContrastiveDivergenceConfig};
use crate::data::{JointBatch, label_tensor};
use crate::energy::{ConditionalEnergy, Given};
use crate::error::{Error, Result};
use crate::noise::{Noise, Stream};
use crate::objectives::{Loss, Objective};
use crate::samplers::{Request, SampleSource};

/// Which labels the negatives are drawn given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NegativeLabels {
    /// Those of the batch, in its order: sample i is contrasted with datum i of its own class. IGEBM's way.
    OfBatch,
    /// Uniform over the classes.
    Uniform {
        /// The number of classes.
        num_classes: usize,
    },
}

/// Contrastive divergence of a conditional energy:
///
/// ```text
/// L = contrast(E(x⁺, y⁺), E(x⁻, y⁻)) + α [ mean E(x⁺, y⁺)² + mean E(x⁻, y⁻)² ] + w · mean E_fixed(x_K, y⁻)
/// ```
///
/// x⁻ are samples of p(x|y⁻) for the labels that [`NegativeLabels`] names. All else is as in
/// [`ContrastiveDivergence`], which it holds.
///
/// It is p(x|y) that is learnt. The energies of two classes at the same x are comparable only as far as both classes
/// have the same log-normaliser, which the squared energies make likely and nothing makes sure.
///
/// # Shapes
/// Of a [`JointBatch`] of any rank the labelled part is used.
///
/// ```
/// use burn::module::Module;
/// use burn::tensor::{Device, Int, Tensor};
/// use jem_core::data::JointBatch;
/// use jem_core::energy::ConditionalEnergy;
/// use jem_nn::{Mlp, MlpConfig};
/// use jem_core::noise::Noise;
/// use jem_core::objectives::Objective;
/// use jem_core::objectives::contrastive_divergence::{ContrastiveDivergenceConfig, NegativeLabels};
/// use jem_core::samplers::{ImproperSgldConfig, ShortRunConfig};
///
/// #[derive(Module, Debug)]
/// struct PerClass { net: Mlp }
/// impl ConditionalEnergy<2> for PerClass {
///     fn energy_given(&self, x: Tensor<2>, y: Tensor<1, Int>) -> Tensor<1> {
///         self.net.class_output.forward(self.net.features(x)).gather(1, y.unsqueeze_dim(1)).squeeze_dim(1)
///     }
/// }
///
/// let device = Device::default();
/// let mut noise = Noise::host(0);
/// let net = MlpConfig::new(2, vec![16], 2).init(&mut noise, &device.clone().autodiff())?;
/// let chains = ShortRunConfig::new([2]).with_num_steps(5).init(ImproperSgldConfig::new().init()?)?;
/// let objective = ContrastiveDivergenceConfig::new().init_conditional(chains, NegativeLabels::OfBatch)?;
/// let x = Tensor::<2>::from_floats([[0.0, 1.0], [1.0, 0.0]], &device);
/// let batch = JointBatch { unlabelled: x.clone(), labelled: x, labels: vec![0, 1] };
/// let (loss, ()) = objective.loss(&PerClass { net }, &batch, (), &mut noise)?;
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Du & Mordatch 2019, arXiv 1903.08689, section 4.
#[derive(Debug, Clone)]
pub struct ConditionalContrastiveDivergence<S> {
    plain: ContrastiveDivergence<S>,
    labels: NegativeLabels,
}

impl<S> ConditionalContrastiveDivergence<S> {
    /// Only a checked configuration makes an objective: [`ContrastiveDivergenceConfig::init_conditional`].
    pub(super) fn new(plain: ContrastiveDivergence<S>, labels: NegativeLabels) -> Self {
        Self { plain, labels }
    }

    /// The source of the negatives.
    pub fn source(&self) -> &S {
        self.plain.source()
    }

    /// The configuration.
    pub fn config(&self) -> &ContrastiveDivergenceConfig {
        self.plain.config()
    }

    /// Which labels the negatives are drawn given.
    pub fn labels(&self) -> NegativeLabels {
        self.labels
    }
}

impl<M, S, const D: usize> Objective<M, JointBatch<D>> for ConditionalContrastiveDivergence<S>
where
    M: Module + ConditionalEnergy<D>,
    S: SampleSource<D>,
{
    type State = S::State;

    fn start(&self, noise: &mut Noise, device: &Device) -> Result<S::State> {
        self.plain.source.start(noise, device)
    }

    fn loss(
        &self,
        model: &M,
        batch: &JointBatch<D>,
        state: S::State,
        noise: &mut Noise,
    ) -> Result<(Loss, S::State)> {
        let data = batch.labelled.clone();
        let count = count(&data)?;
        if batch.labels.len() != count {
            return Err(Error::shape("JointBatch.labels", &[batch.labels.len()], format!("[{count}]")));
        }
        let device = data.device().without_autodiff();
        let drawn = match self.labels {
            NegativeLabels::OfBatch => batch.labels.clone(),
            NegativeLabels::Uniform { num_classes } => {
                let rng = noise.rng(Stream::LABELS);
                (0..count).map(|_| rng.random_range(0..num_classes)).collect()
            }
        };
        let labels = label_tensor(&drawn, &device);
        let frozen = Given::new(model.valid().materialize(), labels.clone());
        let request = Request { count, labels: Some(&drawn), device: &device };
        let (negatives, state) = self.plain.source.draw(&frozen, request, state, noise)?;
        let energies = Energies {
            data: &Given::new(model, batch.label_tensor()),
            samples: &Given::new(model, labels.clone()),
            pairs: &Given::new(model, Tensor::cat(vec![labels.clone(), labels], 0)),
            frozen: &frozen,
        };
        Ok((self.plain.checked.loss(&energies, data, negatives, noise), state))
    }
}
