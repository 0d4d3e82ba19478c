//! Contrastive divergence for an energy of x alone.

use burn::module::Module;
use burn::tensor::Device;

use super::ContrastiveDivergenceConfig;
use super::config::Checked;
use super::parts::{Energies, count};
use crate::data::JointBatch;
use crate::energy::EnergyModel;
use crate::error::Result;
use crate::noise::Noise;
use crate::objectives::{Loss, Objective};
use crate::samplers::{Request, SampleSource};

/// Contrastive divergence of a scalar energy:
///
/// ```text
/// L = contrast(E(x⁺), E(x⁻)) + α [ mean E(x⁺)² + mean E(x⁻)² ] + w · mean E_fixed(x_K)
/// ```
///
/// x⁺ are data, x⁻ as many samples drawn through the [`SampleSource`] from a snapshot of the model:
/// `model.valid().materialize()`, without autodiff, and with weights that are parametrised (a spectral norm, say)
/// worked out once for the whole chain. No gradient flows through the chain but that of the last term, see
/// [`LastStep`](super::LastStep). The squared energies fix the constant that the contrast leaves free, and
/// keep the energies small. Data and samples pass the model in batches of their own.
///
/// Contrary to [`Jem`](crate::objectives::Jem) the model needs no logits: any module with a scalar output will do.
///
/// # Shapes
/// Of a [`JointBatch`] of any rank the unlabelled part is used.
///
/// ```
/// use burn::module::Module;
/// use burn::tensor::{Device, Tensor};
/// use jem_core::data::JointBatch;
/// use jem_core::energy::EnergyModel;
/// use jem_nn::{Mlp, MlpConfig};
/// use jem_core::noise::Noise;
/// use jem_core::objectives::Objective;
/// use jem_core::objectives::contrastive_divergence::ContrastiveDivergenceConfig;
/// use jem_core::samplers::{ImproperSgldConfig, ShortRunConfig};
///
/// #[derive(Module, Debug)]
/// struct Scalar { net: Mlp }
/// impl EnergyModel<2> for Scalar {
///     fn energy(&self, x: Tensor<2>) -> Tensor<1> {
///         self.net.class_output.forward(self.net.features(x)).squeeze_dim(1)
///     }
/// }
///
/// let device = Device::default();
/// let mut noise = Noise::host(0);
/// let net = MlpConfig::new(2, vec![16], 1).init(&mut noise, &device.clone().autodiff())?;
/// let chains = ShortRunConfig::new([2]).with_num_steps(5).init(ImproperSgldConfig::new().init()?)?;
/// let objective = ContrastiveDivergenceConfig::new().init(chains)?;
/// let x = Tensor::<2>::from_floats([[0.0, 1.0], [1.0, 0.0]], &device);
/// let batch = JointBatch { unlabelled: x.clone(), labelled: x, labels: vec![0, 0] };
/// let (loss, ()) = objective.loss(&Scalar { net }, &batch, (), &mut noise)?;
/// assert!(loss.read().iter().any(|number| number.name == "energy_gap"));
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Hinton 2002, "Training products of experts by minimizing contrastive divergence"; Du & Mordatch 2019,
/// arXiv 1903.08689; Du et al. 2021, arXiv 2012.01316.
#[derive(Debug, Clone)]
pub struct ContrastiveDivergence<S> {
    pub(super) checked: Checked,
    pub(super) source: S,
}

impl<S> ContrastiveDivergence<S> {
    /// Only a checked configuration makes an objective: [`ContrastiveDivergenceConfig::init`].
    pub(super) fn new(checked: Checked, source: S) -> Self {
        Self { checked, source }
    }

    /// The source of the negatives.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The configuration.
    pub fn config(&self) -> &ContrastiveDivergenceConfig {
        &self.checked.config
    }
}

impl<M, S, const D: usize> Objective<M, JointBatch<D>> for ContrastiveDivergence<S>
where
    M: Module + EnergyModel<D>,
    S: SampleSource<D>,
{
    type State = S::State;

    fn start(&self, noise: &mut Noise, device: &Device) -> Result<S::State> {
        self.source.start(noise, device)
    }

    fn loss(
        &self,
        model: &M,
        batch: &JointBatch<D>,
        state: S::State,
        noise: &mut Noise,
    ) -> Result<(Loss, S::State)> {
        let data = batch.unlabelled.clone();
        let count = count(&data)?;
        let device = data.device().without_autodiff();
        let frozen = model.valid().materialize();
        let request = Request { count, labels: None, device: &device };
        let (negatives, state) = self.source.draw(&frozen, request, state, noise)?;
        let energies = Energies { data: model, samples: model, pairs: model, frozen: &frozen };
        Ok((self.checked.loss(&energies, data, negatives, noise), state))
    }
}
