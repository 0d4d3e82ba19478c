//! What is attacked: anything with logits of x, which may draw random numbers and need not have a true gradient.

use burn::tensor::Tensor;

use super::loss::{Aim, right_labels};
use jem_core::energy::Classifier;
use jem_core::error::{Result, ensure};
use jem_core::noise::Noise;

/// What an attack sees of a defence at x.
#[derive(Debug, Clone)]
pub struct Response<const D: usize> {
    /// The logits that the decision is made from, `[batch, classes]`.
    pub logits: Tensor<2>,
    /// The attacker's loss, `[batch]`.
    pub loss: Tensor<1>,
    /// The gradient of the summed losses in x, or what stands for it, `[batch, ..]`.
    pub gradient: Tensor<D>,
}

/// Logits of x, and the gradient that an attack may use.
///
/// Every [`Classifier`] is a defence that does nothing.
///
/// # Shapes
/// `[batch, ..]` to `[batch, classes]`.
///
/// ```
/// use burn::tensor::Tensor;
/// use jem_core::energy::Classifier;
/// use jem_eval::attack::Defence;
/// use jem_core::noise::Noise;
///
/// /// Pixels rounded to ten levels before they are classified.
/// struct Rounded<C>(C);
/// impl<C: Classifier<4>> Defence<4> for Rounded<C> {
///     fn classify(&self, x: Tensor<4>, _: &mut Noise) -> Tensor<2> {
///         // Rounding has no gradient: let it pass straight through.
///         let shift = (x.clone().mul_scalar(10.0).round().div_scalar(10.0) - x.clone()).detach();
///         self.0.logits(x + shift)
///     }
/// }
/// ```
pub trait Defence<const D: usize> {
    /// The logits that the decision is made from.
    fn classify(&self, x: Tensor<D>, noise: &mut Noise) -> Tensor<2>;

    /// The logits, the losses and the gradient in x, none of which carries an autodiff graph.
    ///
    /// By automatic differentiation through [`classify`](Self::classify) unless overridden.
    fn respond(&self, x: Tensor<D>, loss: &dyn Fn(Tensor<2>) -> Tensor<1>, noise: &mut Noise) -> Response<D> {
        respond_by_autodiff(|x| self.classify(x, noise), x, loss)
    }
}

impl<const D: usize, C: Classifier<D>> Defence<D> for C {
    fn classify(&self, x: Tensor<D>, _noise: &mut Noise) -> Tensor<2> {
        self.logits(x)
    }
}

/// One forward and one backward pass, tracking x alone.
pub(super) fn respond_by_autodiff<const D: usize>(
    classify: impl FnOnce(Tensor<D>) -> Tensor<2>,
    x: Tensor<D>,
    loss: &dyn Fn(Tensor<2>) -> Tensor<1>,
) -> Response<D> {
    let x = x.without_autodiff().autodiff().require_grad();
    let logits = classify(x.clone());
    let loss = loss(logits.clone());
    let gradient = if loss.is_tracked() {
        let mut gradients = loss.clone().sum().backward();
        x.grad_remove(&mut gradients)
    } else {
        None
    };
    let gradient = gradient.unwrap_or_else(|| x.zeros_like()).without_autodiff();
    Response { logits: logits.without_autodiff(), loss: loss.without_autodiff(), gradient }
}

/// A random defence attacked by expectation over its own draws: logits, losses and gradients are means over
/// several of them, which is what an attacker who knows the defence would follow.
///
/// A sample then counts as misclassified if the mean of the logits over the draws is, and not if one lucky draw
/// is.
///
/// ```
/// use jem_core::energy::JointEnergy;
/// use jem_core::energy::analytic::GaussianMixture;
/// use jem_eval::attack::{ExpectedGradient, RefinedConfig};
/// use jem_core::samplers::ImproperSgldConfig;
///
/// let joint = JointEnergy::new(GaussianMixture::new(vec![vec![0.2], vec![0.8]], 0.2)?);
/// let refined = RefinedConfig::new(10).init(joint, ImproperSgldConfig::new().init()?)?;
/// let attacked = ExpectedGradient::new(refined, 8)?;
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Athalye et al. 2018, "Obfuscated gradients give a false sense of security", arXiv 1802.00420.
#[derive(Debug, Clone)]
pub struct ExpectedGradient<F> {
    inner: F,
    draws: usize,
}

impl<F> ExpectedGradient<F> {
    /// Means over `draws` draws of `inner`.
    ///
    /// # Errors
    /// [`Error::Config`](jem_core::Error::Config) if there is no draw.
    pub fn new(inner: F, draws: usize) -> Result<Self> {
        ensure(draws > 0, "ExpectedGradient.draws", draws, "at least 1")?;
        Ok(Self { inner, draws })
    }
}

impl<const D: usize, F: Defence<D>> Defence<D> for ExpectedGradient<F> {
    fn classify(&self, x: Tensor<D>, noise: &mut Noise) -> Tensor<2> {
        let first = self.inner.classify(x.clone(), noise);
        let sum = (1..self.draws).fold(first, |sum, _| sum + self.inner.classify(x.clone(), noise));
        sum.div_scalar(self.draws as f64)
    }

    fn respond(&self, x: Tensor<D>, loss: &dyn Fn(Tensor<2>) -> Tensor<1>, noise: &mut Noise) -> Response<D> {
        let first = self.inner.respond(x.clone(), loss, noise);
        let sum = (1..self.draws).fold(first, |sum, _| {
            let next = self.inner.respond(x.clone(), loss, noise);
            Response {
                logits: sum.logits + next.logits,
                loss: sum.loss + next.loss,
                gradient: sum.gradient + next.gradient,
            }
        });
        let n = self.draws as f64;
        Response {
            logits: sum.logits.div_scalar(n),
            loss: sum.loss.div_scalar(n),
            gradient: sum.gradient.div_scalar(n),
        }
    }
}

/// The share of fresh draws in which each sample is misclassified: 0 or 1 for a defence that draws nothing.
///
/// An attack on a random defence keeps a sample as soon as one evaluation misclassifies it; this tells how
/// often it is misclassified when it is met again.
///
/// # Errors
/// [`Error::Shape`](jem_core::Error::Shape) unless there is one label per sample,
/// [`Error::Config`](jem_core::Error::Config) if a label is not the index of a logit or there is no draw.
pub fn error_rates<const D: usize, F: Defence<D> + ?Sized>(
    defence: &F,
    x: Tensor<D>,
    labels: &[usize],
    draws: usize,
    noise: &mut Noise,
) -> Result<Vec<f64>> {
    ensure(draws > 0, "error_rates.draws", draws, "at least 1")?;
    let mut wrong = vec![0usize; labels.len()];
    for _ in 0..draws {
        let logits = defence.classify(x.clone(), noise).without_autodiff();
        let classes = logits.dims()[1];
        right_labels(labels, x.dims()[0], classes)?;
        let logits: Vec<f32> = logits.into_data().iter::<f32>().collect();
        for ((wrong, row), label) in wrong.iter_mut().zip(logits.chunks(classes)).zip(labels) {
            *wrong += usize::from(Aim::Away.reached(row, *label));
        }
    }
    Ok(wrong.into_iter().map(|wrong| wrong as f64 / draws as f64).collect())
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::attack::AttackLoss;
    use burn::tensor::Device;
    use jem_core::data::label_tensor;
    use jem_core::noise::Stream;

    /// f(x) = (x·x ε, 0) with ε ~ N(0, 1) drawn for each call.
    struct Random;
    impl Defence<2> for Random {
        fn classify(&self, x: Tensor<2>, noise: &mut Noise) -> Tensor<2> {
            let epsilon = noise.normal([1, 1], Stream::CHAIN, &x.device());
            let first = x.clone().square().sum_dim(1) * epsilon;
            Tensor::cat(vec![first.clone(), first.zeros_like()], 1)
        }
    }

    #[test]
    fn expected_gradients_are_means_over_the_draws() {
        let device = Device::flex();
        let x = Tensor::<2>::from_floats([[1.0, 2.0], [-1.0, 0.5]], &device);
        let loss =
            |logits: Tensor<2>| AttackLoss::Margin.of(logits, label_tensor(&[0, 0], &device), Aim::Away);
        let attacked = ExpectedGradient::new(Random, 5).unwrap();
        let found = attacked.respond(x.clone(), &loss, &mut Noise::host(3));
        let mut noise = Noise::host(3);
        let draws: Vec<f32> =
            (0..5).map(|_| noise.normal([1, 1], Stream::CHAIN, &device).into_scalar::<f32>()).collect();
        let mean = draws.iter().sum::<f32>() / 5.0;
        // The margin loss is -f_0, its gradient -2 x ε.
        let expected = x.clone().mul_scalar(-2.0 * mean);
        assert!(found.gradient.all_close(expected, Some(1e-4), Some(1e-5)));
        let of = |logits: Tensor<2>| logits.narrow(1, 0, 1).into_data().iter::<f32>().collect::<Vec<f32>>();
        for (found, squares) in of(found.logits).iter().zip([5.0, 1.25]) {
            assert!((found - squares * mean).abs() < 1e-4);
        }
        let classified = attacked.classify(x, &mut Noise::host(3));
        assert!((of(classified)[0] - 5.0 * mean).abs() < 1e-4);
        assert!(ExpectedGradient::new(Random, 0).is_err());
    }

    /// ε > 0 in half of the draws: class 1 wins in those where ε < 0. n = 400, α = 1e-5.
    #[test]
    fn error_rates_are_shares_of_draws() {
        let x = Tensor::<2>::ones([2, 1], &Device::flex());
        let rates = error_rates(&Random, x.clone(), &[0, 1], 400, &mut Noise::host(1)).unwrap();
        assert!((rates[0] - 0.5).abs() < 4.417 * 0.5 / 20.0, "{rates:?}");
        assert_eq!(rates[0] + rates[1], 1.0);
        let message = |labels: &[usize], draws| {
            error_rates(&Random, x.clone(), labels, draws, &mut Noise::host(1)).unwrap_err().to_string()
        };
        assert!(message(&[0, 1], 0).starts_with("error_rates.draws = 0"));
        assert!(message(&[0], 1).contains("labels has shape [1]"));
        assert!(message(&[0, 2], 1).contains("below the number of logits, 2"));
    }
}
