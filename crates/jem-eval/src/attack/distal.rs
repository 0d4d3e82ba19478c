//! Distal adversaries: noise that is changed until a model is sure that it is of a class.

use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::ball::{Norm, pixel, steepest};
use super::loss::{Aim, AttackLoss, right_labels};
use super::{ATTACK, Defence};
use crate::predict::probability;
use jem_core::data::{PixelRange, label_tensor};
use jem_core::error::{Error, Result, ensure, ensure_positive};
use jem_core::math::sample_extent;
use jem_core::noise::Noise;

/// Configuration of [`Distal`]. Steps are in units of \[0, 1\] pixels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DistalConfig {
    /// The p(y|x) at which a chain ends. Default 0.9.
    pub confidence: f64,
    /// How a step is measured. Default L2.
    pub norm: Norm,
    /// The size of a step. Default 0.1.
    pub step_size: f64,
    /// The most steps. Default 500.
    pub num_steps: usize,
}

impl Default for DistalConfig {
    fn default() -> Self {
        Self { confidence: 0.9, norm: Norm::L2, step_size: 0.1, num_steps: 500 }
    }
}

impl DistalConfig {
    /// Up to 500 steps of length 0.1, until p(y|x) is 0.9.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the confidence.
    pub fn with_confidence(mut self, confidence: f64) -> Self {
        self.confidence = confidence;
        self
    }

    /// Sets norm and size of a step.
    pub fn with_step(mut self, norm: Norm, size: f64) -> Self {
        (self.norm, self.step_size) = (norm, size);
        self
    }

    /// Sets the most steps.
    pub fn with_num_steps(mut self, num_steps: usize) -> Self {
        self.num_steps = num_steps;
        self
    }

    /// The search for a model whose input is in `range`.
    ///
    /// # Errors
    /// [`Error::Config`] naming the field that is not allowed.
    pub fn init(self, range: PixelRange) -> Result<Distal> {
        let confidence = self.confidence;
        let allowed = confidence > 0.0 && confidence < 1.0;
        ensure(allowed, "DistalConfig.confidence", confidence, "in (0, 1)")?;
        ensure_positive("DistalConfig.step_size", self.step_size)?;
        ensure(self.num_steps > 0, "DistalConfig.num_steps", self.num_steps, "at least 1")?;
        Ok(Distal { config: self, range })
    }
}

/// Images that began as noise, and how sure the model is of them.
#[derive(Debug, Clone)]
pub struct DistalAdversaries<const D: usize> {
    /// The images, `[batch, ..]`, within the box.
    pub images: Tensor<D>,
    /// The class wished for.
    pub labels: Vec<usize>,
    /// p(y|x) at the end.
    pub confidences: Vec<f64>,
    /// Steps made.
    pub steps: Vec<usize>,
    /// Whether the confidence wished for was reached.
    pub reached: Vec<bool>,
}

/// Ascends log p(y|x) from uniform noise until p(y|x) is as high as wished:
///
/// ```text
/// x ~ U(box),   x ← clamp( x + α d(∇ₓ log p(y|x)) ),   d(g) = sign(g) in L∞ and g/‖g‖₂ in L2
/// ```
///
/// A model that knows what its classes look like ends in images of them; a plain classifier is soon sure of
/// what still looks like noise.
///
/// # Shapes
/// Any rank; `shape` is that of the whole batch, with one label per sample.
///
/// ```
/// use burn::tensor::Device;
/// use jem_core::data::PixelRange;
/// use jem_core::energy::analytic::GaussianMixture;
/// use jem_eval::attack::DistalConfig;
/// use jem_core::noise::Noise;
///
/// let model = GaussianMixture::new(vec![vec![0.2, 0.2], vec![0.8, 0.8]], 0.3)?;
/// let search = DistalConfig::new().with_confidence(0.8).init(PixelRange::Unit)?;
/// let found = search.run(&model, [4, 2], &[0, 1, 0, 1], &mut Noise::host(0), &Device::default())?;
/// assert!(found.confidences.iter().all(|p| *p >= 0.8));
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Grathwohl et al. 2020, arXiv 1912.03263, section 5.4; Schott et al. 2018, arXiv 1805.09190.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distal {
    config: DistalConfig,
    range: PixelRange,
}

impl Distal {
    /// Changes noise until `defence` is sure that sample i is of class `labels[i]`.
    ///
    /// # Errors
    /// [`Error::Shape`] if `shape` is empty or there is not one label per sample; [`Error::Config`] if a label is
    /// not the index of a logit.
    pub fn run<const D: usize, F: Defence<D> + ?Sized>(
        &self,
        defence: &F,
        shape: [usize; D],
        labels: &[usize],
        noise: &mut Noise,
        device: &Device,
    ) -> Result<DistalAdversaries<D>> {
        let [batch, elements] = sample_extent(&shape);
        if batch * elements == 0 {
            return Err(Error::shape("distal adversaries", &shape, "at least one sample of one number"));
        }
        let DistalConfig { confidence, norm, step_size, num_steps } = self.config;
        let (low, high) = (self.range.low(), self.range.high());
        let step = step_size * pixel(self.range);
        let mut x: Tensor<D> = noise.uniform(shape, low..high, ATTACK, device);
        let classes = defence.classify(x.clone(), noise).dims()[1];
        right_labels(labels, batch, classes)?;
        let mut found = Ends {
            images: vec![0.0; batch * elements],
            confidences: vec![0.0; batch],
            steps: vec![0; batch],
            reached: vec![false; batch],
        };
        let mut active: Vec<usize> = (0..batch).collect();
        for number in 0..=num_steps {
            let wished: Vec<usize> = active.iter().map(|sample| labels[*sample]).collect();
            let wished_for = label_tensor(&wished, device);
            let loss =
                |logits: Tensor<2>| AttackLoss::CrossEntropy.of(logits, wished_for.clone(), Aim::Towards);
            let response = defence.respond(x.clone(), &loss, noise);
            let logits: Vec<f32> = response.logits.into_data().iter::<f32>().collect();
            let images: Vec<f32> = x.clone().into_data().iter::<f32>().collect();
            let mut kept = Vec::new();
            for (row, logits) in logits.chunks_exact(classes).enumerate() {
                let p = probability(logits, wished[row], 1.0);
                if p >= confidence || number == num_steps {
                    let image = &images[row * elements..(row + 1) * elements];
                    found.write(active[row], image, p, number, p >= confidence);
                } else {
                    kept.push(row);
                }
            }
            if kept.is_empty() {
                break;
            }
            let rows = label_tensor(&kept, device);
            let gradient = response.gradient.select(0, rows.clone());
            let moved = x.select(0, rows) + steepest(norm, gradient).mul_scalar(step);
            x = moved.clamp(low, high);
            active = kept.iter().map(|row| active[*row]).collect();
        }
        let Ends { images, confidences, steps, reached } = found;
        let images = Tensor::from_data(TensorData::new(images, shape), device);
        Ok(DistalAdversaries { images, labels: labels.to_vec(), confidences, steps, reached })
    }
}

/// Where each sample ended.
struct Ends {
    images: Vec<f32>,
    confidences: Vec<f64>,
    steps: Vec<usize>,
    reached: Vec<bool>,
}

impl Ends {
    fn write(&mut self, sample: usize, image: &[f32], confidence: f64, steps: usize, reached: bool) {
        self.images[sample * image.len()..(sample + 1) * image.len()].copy_from_slice(image);
        (self.confidences[sample], self.steps[sample]) = (confidence, steps);
        self.reached[sample] = reached;
    }
}
