//! Samples of chains: fresh ones, one more draw from a copy of a buffer, and more steps for samples at hand.

use burn::tensor::{Device, Tensor};

use super::{Generated, SampleOrigin, Source, Treatment, Wanted, chosen, rows};
use jem_core::error::{Error, Result, ensure};
use jem_core::math::{per_sample, sample_extent};
use jem_core::noise::Noise;
use jem_core::samplers::{ChainStart, Replay, ReplayBuffer, Request, SampleSource, Sampler, run};

/// Samples of chains that start from `start` and make `num_steps`. `sample_shape` is that of one sample. Chains that
/// leave the finite numbers are left out and counted.
///
/// # Errors
/// [`Error::Shape`] if the shape is not of rank D - 1, [`Error::Config`] if no sample is wanted,
/// [`Error::NonFinite`] if no chain stayed finite.
///
/// ```
/// use burn::tensor::Device;
/// use jem_core::energy::JointEnergy;
/// use jem_core::energy::analytic::GaussianMixture;
/// use jem_eval::generate::{Wanted, fresh_chains};
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{SgldConfig, UniformStart};
///
/// let joint = JointEnergy::new(GaussianMixture::new(vec![vec![-5.0], vec![5.0]], 1.0)?);
/// let (sgld, start) = (SgldConfig::new(0.2).init()?, UniformStart::default());
/// // Class-conditional: one sample of class 1, two of class 0.
/// let wanted = Wanted::OfClasses { model: &joint, labels: &[1, 0, 0] };
/// let found = fresh_chains(wanted, &sgld, &start, &[1], 100, &mut Noise::host(0), &Device::default())?;
/// let x: Vec<f32> = found.samples.into_data().iter::<f32>().collect();
/// assert!(x[0] > 0.0 && x[1] < 0.0 && x[2] < 0.0);
/// # Ok::<(), jem_core::Error>(())
/// ```
pub fn fresh_chains<const D: usize, S: Sampler<D>, C: ChainStart<D>>(
    wanted: Wanted<'_, D>,
    sampler: &S,
    start: &C,
    sample_shape: &[usize],
    num_steps: usize,
    noise: &mut Noise,
    device: &Device,
) -> Result<Generated<D>> {
    wanted.check()?;
    let shape: Vec<usize> = std::iter::once(wanted.count()).chain(sample_shape.iter().copied()).collect();
    let shape: [usize; D] = shape.try_into().map_err(|_| {
        Error::shape("sample_shape", sample_shape, format!("{} dimensions", D.saturating_sub(1)))
    })?;
    ensure(!shape.contains(&0), "sample_shape", format!("{sample_shape:?}"), "extents above 0")?;
    let x = start.draw(shape, wanted.labels(), noise, device);
    let labels = wanted.labels().map(<[usize]>::to_vec);
    let (samples, labels, non_finite) = walk(wanted, x, labels, sampler, num_steps, noise)?;
    let energies = wanted.energies(&samples, labels.as_deref(), samples.dims()[0]);
    let source = Source::FreshChains { num_steps, non_finite };
    let origin = SampleOrigin { source, seed: noise.seed(), treatments: Vec::new() };
    Ok(Generated { samples, energies, labels, origin })
}

/// One more draw from a replay buffer, as training would make it: slots at random, a few fresh starts, K steps. It is
/// made from a copy; the buffer stays as it is.
///
/// # Errors
/// [`Error::Config`] if no sample is wanted or a label has no block in the buffer.
pub fn newest_of_buffer<const D: usize, S: Sampler<D>, C: ChainStart<D>>(
    wanted: Wanted<'_, D>,
    replay: &Replay<S, C>,
    buffer: &ReplayBuffer<D>,
    noise: &mut Noise,
    device: &Device,
) -> Result<Generated<D>> {
    wanted.check()?;
    let labels = wanted.labels();
    let request = Request { count: wanted.count(), labels, device };
    let drawn =
        wanted.with_energy(labels, device, |model| replay.draw(model, request, buffer.clone(), noise));
    let (negatives, _copy) = drawn?;
    let energies = wanted.energies(&negatives.samples, labels, wanted.count());
    let source = Source::NewestOfBuffer {
        num_steps: replay.config().num_steps,
        restarted: negatives.restarted,
        non_finite: negatives.non_finite,
    };
    let origin = SampleOrigin { source, seed: noise.seed(), treatments: Vec::new() };
    Ok(Generated { samples: negatives.samples, energies, labels: labels.map(<[usize]>::to_vec), origin })
}

/// The same samples after more steps of a sampler. `wanted` says by which energy; where it asks for classes, they must
/// be as many as there are samples. Chains that leave the finite numbers are left out and counted.
///
/// # Errors
/// [`Error::Shape`] if the classes are not as many as the samples, [`Error::NonFinite`] if no chain stayed finite.
pub fn continued<const D: usize, S: Sampler<D>>(
    generated: Generated<D>,
    wanted: Wanted<'_, D>,
    sampler: &S,
    num_steps: usize,
    noise: &mut Noise,
) -> Result<Generated<D>> {
    let Generated { samples, mut origin, labels, energies } = generated;
    if let Some(classes) = wanted.labels()
        && classes.len() != energies.len()
    {
        let expected = format!("[{}], one per sample", energies.len());
        return Err(Error::shape("labels", &[classes.len()], expected));
    }
    let labels = wanted.labels().map(<[usize]>::to_vec).or(labels);
    let (samples, labels, non_finite) = walk(wanted, samples, labels, sampler, num_steps, noise)?;
    let energies = wanted.energies(&samples, labels.as_deref(), samples.dims()[0]);
    origin.treatments.push(Treatment::Chain { num_steps, non_finite });
    Ok(Generated { samples, energies, labels, origin })
}

/// Runs the chains, and leaves out those that are not finite at the end, with their labels.
fn walk<const D: usize, S: Sampler<D>>(
    wanted: Wanted<'_, D>,
    x: Tensor<D>,
    labels: Option<Vec<usize>>,
    sampler: &S,
    num_steps: usize,
    noise: &mut Noise,
) -> Result<(Tensor<D>, Option<Vec<usize>>, usize)> {
    let [count, _] = sample_extent(&x.dims());
    let device = x.device();
    let x = wanted
        .with_energy(labels.as_deref(), &device, |model| run(sampler, model, x.clone(), num_steps, noise));
    let finite = per_sample(x.clone()).is_finite().all_dim(1).int().into_data();
    let kept: Vec<usize> =
        finite.iter::<i64>().enumerate().filter(|(_, finite)| *finite == 1).map(|(index, _)| index).collect();
    if kept.is_empty() {
        let what = format!("every one of {count} chains after {num_steps} steps");
        return Err(Error::NonFinite { what, value: f64::NAN });
    }
    if kept.len() == count {
        return Ok((x, labels, 0));
    }
    let labels = labels.map(|labels| chosen(&labels, &kept));
    Ok((rows(x, &kept), labels, count - kept.len()))
}
