//! Noise-contrastive estimation: an energy and its normaliser, learnt by telling data from known noise.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::softplus::softplus;
use super::{Loss, Objective, Reference, Watch};
use crate::data::JointBatch;
use crate::energy::{Classifier, EnergyModel, JointEnergy};
use crate::error::{Error, Result, ensure};
use crate::noise::Noise;

/// The names of the terms that [`NoiseContrastive`] reports.
pub mod nce_terms {
    /// Mean E(x) of the data.
    pub const ENERGY_DATA: &str = "energy_data";
    /// Mean E(x) of the noise.
    pub const ENERGY_NOISE: &str = "energy_noise";
    /// c, the normaliser that has been learnt.
    pub const LOG_NORMALISER: &str = "log_normaliser";
    /// Share of data and noise, each counting half, that are told apart right. At ½ the model is the noise.
    pub const ACCURACY: &str = "nce_accuracy";
}

/// A classifier with a learnt log-normaliser c: log p(x) = -E(x) - c.
///
/// It is a module whose parameters are those of the classifier and c, and a [`Classifier`] with the same logits.
#[derive(Module, Debug)]
pub struct WithNormaliser<C> {
    /// What gives E(x) = -LSE f(x).
    pub classifier: C,
    /// c, `[1]`.
    pub log_normaliser: Param<Tensor<1>>,
}

impl<C> WithNormaliser<C> {
    /// `classifier` with c = `initial`. `device` is that of the classifier's weights, with autodiff if it is to be
    /// trained.
    ///
    /// # Errors
    /// [`Error::NonFinite`] unless c is finite.
    pub fn new(classifier: C, initial: f32, device: &Device) -> Result<Self> {
        if !initial.is_finite() {
            return Err(Error::NonFinite {
                what: "WithNormaliser.initial".to_owned(),
                value: initial.into(),
            });
        }
        let log_normaliser = Param::from_tensor(Tensor::from_floats([initial], device));
        Ok(Self { classifier, log_normaliser })
    }

    /// log p(x) = -E(x) - c in nats.
    ///
    /// # Shapes
    /// `[batch, ..]` to `[batch]`.
    pub fn log_density<const D: usize>(&self, x: Tensor<D>) -> Tensor<1>
    where
        C: Classifier<D>,
    {
        JointEnergy::new(&self.classifier).energy(x).neg() - self.log_normaliser.val()
    }
}

impl<const D: usize, C: Classifier<D>> Classifier<D> for WithNormaliser<C> {
    fn logits(&self, x: Tensor<D>) -> Tensor<2> {
        self.classifier.logits(x)
    }
}

/// Noise-contrastive estimation: binary cross-entropy between data and samples of a known density q, ν of them
/// for each datum.
///
/// ```text
/// h(x) = -E(x) - c - log q(x) - log ν
/// L = mean log(1 + e^-h(x)) over data + ν · mean log(1 + e^h(x)) over noise
/// ```
///
/// Its minimum is p(x) = e^(-E(x) - c) with the right normaliser: c is learnt, not computed. It works where q is
/// close to the data; far from them telling apart is easy and teaches little, so that for images q would have
/// to be a model itself.
///
/// # Shapes
/// Of a [`JointBatch`] of any rank the unlabelled part is used.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::data::JointBatch;
/// use jem_nn::MlpConfig;
/// use jem_core::noise::Noise;
/// use jem_core::objectives::{DiagonalGaussian, NoiseContrastive, Objective, WithNormaliser};
///
/// let device = Device::default();
/// let tracked = device.clone().autodiff();
/// let mut noise = Noise::host(0);
/// let model = MlpConfig::new(2, vec![16], 1).init(&mut noise, &tracked)?;
/// let model = WithNormaliser::new(model, 0.0, &tracked)?;
/// let x = Tensor::<2>::from_floats([[0.0, 1.0], [1.0, 0.0]], &device);
/// let objective = NoiseContrastive::new(DiagonalGaussian::fit(x.clone(), 1.5)?, 1)?;
/// let batch = JointBatch { unlabelled: x.clone(), labelled: x, labels: vec![0, 0] };
/// let (loss, ()) = objective.loss(&model, &batch, (), &mut noise)?;
/// assert!(loss.total().clone().into_scalar::<f32>() > 0.0);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Gutmann & Hyvärinen 2010, 2012, "Noise-contrastive estimation of unnormalized statistical models".
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseContrastive<Q> {
    reference: Q,
    ratio: usize,
}

impl<Q> NoiseContrastive<Q> {
    /// Noise from `reference`, ν = `ratio` samples of it for each datum.
    ///
    /// # Errors
    /// [`Error::Config`] if ν is 0.
    pub fn new(reference: Q, ratio: usize) -> Result<Self> {
        ensure(ratio > 0, "NoiseContrastive.ratio", ratio, "at least 1")?;
        Ok(Self { reference, ratio })
    }

    /// q.
    pub fn reference(&self) -> &Q {
        &self.reference
    }
}

impl<C, Q, const D: usize> Objective<WithNormaliser<C>, JointBatch<D>> for NoiseContrastive<Q>
where
    C: Classifier<D>,
    Q: Reference<D>,
{
    type State = ();

    fn start(&self, _noise: &mut Noise, _device: &Device) -> Result<()> {
        Ok(())
    }

    fn loss(
        &self,
        model: &WithNormaliser<C>,
        batch: &JointBatch<D>,
        (): (),
        noise: &mut Noise,
    ) -> Result<(Loss, ())> {
        let data = batch.unlabelled.clone().without_autodiff();
        let mut shape = data.dims();
        if shape[0] == 0 {
            return Err(Error::shape("noise-contrastive batch", &shape, "one sample at least"));
        }
        shape[0] *= self.ratio;
        let samples = self.reference.sample(shape, noise, &data.device())?.without_autodiff();
        let joint = JointEnergy::new(&model.classifier);
        let ratio = self.ratio as f64;
        // E(x) and h(x), which is above 0 for what looks like data.
        let look = |x: Tensor<D>| -> Result<(Tensor<1>, Tensor<1>)> {
            let log_q = self.reference.log_density(x.clone())?.add_scalar(ratio.ln());
            let energy = joint.energy(x.autodiff());
            let h = energy.clone().neg() - model.log_normaliser.val() - log_q.autodiff();
            Ok((energy, h))
        };
        let (energy_data, h_data) = look(data)?;
        let (energy_noise, h_noise) = look(samples)?;
        let missed = softplus(h_data.clone().neg()).mean();
        let mistaken = softplus(h_noise.clone()).mean().mul_scalar(ratio);
        let mut loss = Loss::new(missed + mistaken);
        let right = |above: Tensor<1>| above.without_autodiff().greater_elem(0.0).float().mean();
        loss.add_watched(Watch::Energy, nce_terms::ENERGY_DATA, energy_data.mean());
        loss.add_watched(Watch::Energy, nce_terms::ENERGY_NOISE, energy_noise.mean());
        loss.add_term(nce_terms::LOG_NORMALISER, model.log_normaliser.val());
        loss.add_term(nce_terms::ACCURACY, (right(h_data) + right(h_noise.neg())).mul_scalar(0.5));
        Ok((loss, ()))
    }
}
