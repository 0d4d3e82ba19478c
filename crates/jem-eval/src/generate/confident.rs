//! The samples that a classifier is sure of.

use super::{Generated, Treatment, chosen, rows};
use crate::predict::{largest, probability};
use jem_core::energy::Classifier;
use jem_core::error::{Error, Result, ensure};

/// Keeps the samples with p(y|x) ≥ `threshold`, where y is the class that a sample was made for, or else the one that
/// the classifier gives it. Logits are computed `batch` at a time.
///
/// # Errors
/// [`Error::Config`] if the threshold is not in \[0, 1\], the batch is 0, a label is not the index of a logit, or no
/// sample is left.
///
/// ```
/// use burn::tensor::Device;
/// use jem_core::energy::JointEnergy;
/// use jem_core::energy::analytic::GaussianMixture;
/// use jem_eval::generate::{Wanted, confident, fresh_chains};
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{SgldConfig, UniformStart};
///
/// let joint = JointEnergy::new(GaussianMixture::new(vec![vec![-1.0], vec![1.0]], 1.0)?);
/// let (sgld, start) = (SgldConfig::new(0.2).init()?, UniformStart::default());
/// let wanted = Wanted::Any { model: &joint, count: 50 };
/// let all = fresh_chains(wanted, &sgld, &start, &[1], 50, &mut Noise::host(0), &Device::default())?;
/// let sure = confident(all, joint.classifier(), 0.9, 64)?;
/// println!("{}", sure.origin);
/// assert!(sure.len() < 50);
/// # Ok::<(), jem_core::Error>(())
/// ```
pub fn confident<const D: usize, C: Classifier<D>>(
    generated: Generated<D>,
    classifier: &C,
    threshold: f64,
    batch: usize,
) -> Result<Generated<D>> {
    ensure((0.0..=1.0).contains(&threshold), "confident.threshold", threshold, "in [0, 1]")?;
    ensure(batch > 0, "confident.batch", batch, "at least 1")?;
    let Generated { samples, energies, labels, mut origin } = generated;
    let (mut kept, mut best) = (Vec::new(), 0f64);
    let all: Vec<usize> = (0..energies.len()).collect();
    for part in all.chunks(batch) {
        let logits = classifier.logits(samples.clone().narrow(0, part[0], part.len())).without_autodiff();
        let classes = logits.dims()[1];
        let logits: Vec<f32> = logits.into_data().iter::<f32>().collect();
        for (index, row) in part.iter().zip(logits.chunks_exact(classes)) {
            let label = labels.as_ref().map_or_else(|| largest(row), |labels| labels[*index]);
            let allowed = format!("below the number of logits, {classes}");
            ensure(label < classes, "labels of the samples", label, &allowed)?;
            let p = probability(row, label, 1.0);
            best = best.max(p);
            if p >= threshold {
                kept.push(*index);
            }
        }
    }
    if kept.is_empty() {
        let allowed = format!("at most {best}, the highest p(y|x) of {} samples", energies.len());
        return Err(Error::config("confident.threshold", threshold, allowed));
    }
    let samples = rows(samples, &kept);
    let labels = labels.map(|labels| chosen(&labels, &kept));
    let of = energies.len();
    let energies = chosen(&energies, &kept);
    origin.treatments.push(Treatment::Confident { threshold, of, kept });
    Ok(Generated { samples, energies, labels, origin })
}
