//! Out-of-distribution scores: how much an input looks like the training data, by several measures.

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::predict::{confidence, for_each_batch, log_sum_exp_of};
use jem_core::data::Examples;
use jem_core::energy::{Classifier, JointEnergy};
use jem_core::error::{Error, Result, ensure_positive};
use jem_core::math::sample_norms;

/// A score of an input, by a classifier read as a joint model. Higher is more in-distribution, for all of them.
///
/// | score | formula | source |
/// | --- | --- | --- |
/// | `LogDensity` | log p(x) up to a constant, -E(x) = (1/β) LSE_y βf(x)\[y\] | JEM |
/// | `Confidence` | max_y p(y\|x) | Hendrycks & Gimpel 2017, arXiv 1610.02136 |
/// | `ApproximateMass` | -‖∇ₓ log p(x)‖₂, in units of the scaled input; costs a backward pass | JEM, section 5.3 |
/// | `Energy` | T · LSE_y(f(x)\[y\]/T) | Liu et al. 2020, arXiv 2010.03759 |
///
/// All but the gradient are computed in double precision from the logits, so that confidences near 1 keep
/// their order: two of them tie only where the largest logit leads by 37 or more.
///
/// JEM: Grathwohl et al. 2020, arXiv 1912.03263.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Score {
    /// log p(x) up to a constant.
    LogDensity,
    /// max_y p(y|x).
    Confidence,
    /// -‖∇ₓ log p(x)‖₂.
    ApproximateMass,
    /// T · LSE(f/T).
    Energy {
        /// T, above 0.
        temperature: f64,
    },
}

impl Score {
    /// The three scores of JEM.
    pub const JEM: [Score; 3] = [Score::LogDensity, Score::Confidence, Score::ApproximateMass];

    /// A name for tables and files, such as `log_density` or `energy_t2`.
    pub fn name(self) -> String {
        match self {
            Self::LogDensity => "log_density".to_owned(),
            Self::Confidence => "confidence".to_owned(),
            Self::ApproximateMass => "approximate_mass".to_owned(),
            Self::Energy { temperature } => format!("energy_t{temperature}"),
        }
    }

    fn check(self) -> Result<()> {
        match self {
            Self::Energy { temperature } => ensure_positive("Score::Energy.temperature", temperature),
            _ => Ok(()),
        }
    }

    /// The score of one row of logits, and of ‖∇E(x)‖₂ where that is what it is.
    fn of(self, row: &[f32], gradient_norm: f64, beta: f64) -> f64 {
        match self {
            Self::LogDensity => log_sum_exp_of(row, beta) / beta,
            Self::Confidence => confidence(row, beta),
            Self::ApproximateMass => -gradient_norm,
            Self::Energy { temperature } => temperature * log_sum_exp_of(row, 1.0 / temperature),
        }
    }
}

/// One score of every example.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoreColumn {
    /// The score.
    pub score: Score,
    /// Its name.
    pub name: String,
    /// Its value for each example, in the order of the set.
    pub values: Vec<f64>,
}

/// Several scores of one set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoreTable {
    /// What the set calls itself.
    pub set: String,
    /// The scores, in the order asked for.
    pub columns: Vec<ScoreColumn>,
}

impl ScoreTable {
    /// The values of `score`, if it was asked for.
    pub fn get(&self, score: Score) -> Option<&[f64]> {
        self.columns.iter().find(|column| column.score == score).map(|column| column.values.as_slice())
    }
}

/// Scores of a batch: one forward pass for all, and one backward pass if the gradient is wanted.
///
/// # Shapes
/// `[batch, ..]` to one vector of `batch` numbers per score.
///
/// # Errors
/// [`Error::Config`] if there is no score or a temperature is not above 0; [`Error::NonFinite`] if a score is a
/// NaN or an infinity.
pub fn score_batch<const D: usize, C: Classifier<D>>(
    joint: &JointEnergy<C>,
    x: Tensor<D>,
    scores: &[Score],
) -> Result<Vec<Vec<f64>>> {
    if scores.is_empty() {
        return Err(Error::config("scores", "[]", "at least one"));
    }
    scores.iter().try_for_each(|score| score.check())?;
    let count = x.dims()[0];
    let (logits, norms) = if scores.contains(&Score::ApproximateMass) {
        let x = x.without_autodiff().autodiff().require_grad();
        let logits = joint.classifier().logits(x.clone());
        let energy = joint.energy_of_logits(logits.clone());
        let gradient = if energy.is_tracked() {
            let mut gradients = energy.sum().backward();
            x.grad_remove(&mut gradients)
        } else {
            None
        };
        let gradient = gradient.unwrap_or_else(|| x.zeros_like()).without_autodiff();
        (logits, sample_norms(gradient).into_data().iter::<f64>().collect())
    } else {
        (joint.classifier().logits(x.without_autodiff()), vec![0.0; count])
    };
    let classes = logits.dims()[1];
    let logits: Vec<f32> = logits.without_autodiff().into_data().iter::<f32>().collect();
    let beta = joint.inverse_temperature().into();
    let table: Vec<Vec<f64>> = scores
        .iter()
        .map(|score| {
            logits.chunks(classes).zip(&norms).map(|(row, norm)| score.of(row, *norm, beta)).collect()
        })
        .collect();
    for (score, values) in scores.iter().zip(&table) {
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let what = format!("{} of example {at} of a batch", score.name());
            return Err(Error::NonFinite { what, value: values[at] });
        }
    }
    Ok(table)
}

/// Scores of all of `set`, in batches of `batch`, without augmentation or noise.
///
/// Hand in the joint energy of `model.valid()`. Scores are comparable within one model only.
///
/// # Errors
/// As [`score_batch`]; [`Error::Config`] also if the set or the batch is empty.
///
/// ```
/// use burn::tensor::Device;
/// use jem_core::data::VectorSet;
/// use jem_core::energy::JointEnergy;
/// use jem_core::energy::analytic::GaussianMixture;
/// use jem_eval::{Score, score_set};
///
/// let joint = JointEnergy::new(GaussianMixture::new(vec![vec![-1.0, 0.0], vec![1.0, 0.0]], 0.5)?);
/// let set = VectorSet::new("one in, one out", vec![1.0, 0.0, 9.0, 9.0], 2, vec![0, 0], 2)?;
/// let table = score_set(&joint, &set, &Score::JEM, 64, &Device::default())?;
/// for column in &table.columns {
///     println!("{} {:?}", column.name, column.values);
/// }
/// let log_density = table.get(Score::LogDensity).unwrap();
/// assert!(log_density[0] > log_density[1]);
/// # Ok::<(), jem_core::Error>(())
/// ```
pub fn score_set<const D: usize, C: Classifier<D>, S: Examples<D>>(
    joint: &JointEnergy<C>,
    set: &S,
    scores: &[Score],
    batch: usize,
    device: &Device,
) -> Result<ScoreTable> {
    let mut columns: Vec<ScoreColumn> = scores
        .iter()
        .map(|score| ScoreColumn { score: *score, name: score.name(), values: Vec::new() })
        .collect();
    for_each_batch(set, batch, device, |x| {
        for (column, values) in columns.iter_mut().zip(score_batch(joint, x, scores)?) {
            column.values.extend(values);
        }
        Ok(())
    })?;
    Ok(ScoreTable { set: set.name().to_owned(), columns })
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::predict;
    use jem_core::data::{ImageSet, VectorSet};
    use jem_core::energy::EnergyModel;
    use jem_core::energy::analytic::GaussianMixture;
    use std::cell::Cell;

    const ALL: [Score; 4] =
        [Score::LogDensity, Score::Confidence, Score::ApproximateMass, Score::Energy { temperature: 2.0 }];

    /// A classifier that counts its forward passes.
    struct Counted<C>(C, Cell<usize>);
    impl<const D: usize, C: Classifier<D>> Classifier<D> for Counted<C> {
        fn logits(&self, x: Tensor<D>) -> Tensor<2> {
            self.1.set(self.1.get() + 1);
            self.0.logits(x)
        }
    }

    fn mixture() -> GaussianMixture {
        GaussianMixture::new(vec![vec![-1.0, 0.0], vec![1.0, 0.5]], 0.7).unwrap()
    }

    fn points() -> VectorSet {
        let values = vec![0.1, -0.2, 1.0, 0.5, -3.0, 2.0, 0.0, 0.0, 5.0, 5.0];
        VectorSet::new("points", values, 2, vec![0, 1, 0, 1, 0], 2).unwrap()
    }

    #[test]
    fn scores_are_their_formulas_whatever_the_batch_with_one_forward_pass_each() {
        let device = Device::flex();
        let joint = JointEnergy::new(Counted(mixture(), Cell::new(0)));
        let table = score_set(&joint, &points(), &ALL, 2, &device).unwrap();
        assert_eq!(joint.classifier().1.get(), 3); // batches of 2, 2 and 1
        for batch in [1, 5, 64] {
            assert_eq!(score_set(&joint, &points(), &ALL, batch, &device).unwrap(), table);
        }
        let x = points().all(&device).unwrap();
        let (energy, gradient) = mixture().energy_and_grad(x.clone());
        let logits = mixture().logits(x.clone());
        let expected = [
            energy.neg(),
            JointEnergy::new(mixture()).probabilities(x).max_dim(1).squeeze_dim(1),
            sample_norms(gradient).neg(),
            jem_core::math::log_sum_exp(logits.div_scalar(2.0)).mul_scalar(2.0),
        ];
        for (score, expected) in ALL.iter().zip(expected) {
            let expected: Vec<f64> = expected.into_data().iter::<f64>().collect();
            for (found, expected) in table.get(*score).unwrap().iter().zip(expected) {
                assert!((found - expected).abs() < 1e-4, "{score:?}: {found} != {expected}");
            }
        }
        assert!(table.get(Score::Energy { temperature: 3.0 }).is_none());
    }

    #[test]
    fn scores_at_another_temperature_follow_the_joint_energy() {
        let device = Device::flex();
        let joint = JointEnergy::new(mixture()).with_inverse_temperature(0.5).unwrap();
        let x = points().all(&device).unwrap();
        let found = score_batch(&joint, x.clone(), &[Score::LogDensity, Score::Energy { temperature: 2.0 }]);
        let [log_density, energy] = found.unwrap().try_into().unwrap();
        let expected: Vec<f64> = joint.energy(x).neg().into_data().iter::<f64>().collect();
        for ((a, b), expected) in log_density.iter().zip(&energy).zip(expected) {
            assert!((a - expected).abs() < 1e-4 && (a - b).abs() < 1e-9); // T = 1/β
        }
    }

    /// Logits that are pixels.
    struct Pixels;
    impl Classifier<4> for Pixels {
        fn logits(&self, x: Tensor<4>) -> Tensor<2> {
            jem_core::math::per_sample(x).mul_scalar(20.0)
        }
    }

    #[test]
    fn confident_inputs_keep_their_order() {
        // Leads of 32 and 34: in single precision both are a confidence of 1.
        let set = ImageSet::new("x", vec![204, 0, 217, 0], [1, 1, 2], vec![0, 0], 2).unwrap();
        let scores = score_set(&JointEnergy::new(Pixels), &set, &[Score::Confidence], 8, &Device::flex());
        let values = &scores.unwrap().columns[0].values;
        assert!(values[0] < values[1] && values[1] <= 1.0 && values[0] as f32 == 1.0, "{values:?}");
        let logits = predict(&Pixels, &set, 1, &Device::flex()).unwrap();
        let predictions = logits.predictions().unwrap();
        assert_eq!((predictions.probabilities().most_likely(), predictions.accuracy()), (vec![0, 0], 1.0));
        assert_eq!(logits.rows().map(|row| confidence(row, 1.0)).collect::<Vec<_>>(), *values);
    }

    /// An infinite logit.
    struct Broken;
    impl Classifier<2> for Broken {
        fn logits(&self, x: Tensor<2>) -> Tensor<2> {
            x.div_scalar(0.0)
        }
    }

    #[test]
    fn bad_requests_and_numbers_are_refused() {
        let (device, joint) = (Device::flex(), JointEnergy::new(mixture()));
        let message = |scores: &[Score], batch| {
            score_set(&joint, &points(), scores, batch, &device).unwrap_err().to_string()
        };
        assert!(message(&[], 2).starts_with("scores = []"));
        assert!(message(&Score::JEM, 0).starts_with("evaluation batch = 0"));
        for temperature in [0.0, -1.0, f64::NAN] {
            let found = message(&[Score::Energy { temperature }], 2);
            assert!(found.starts_with("Score::Energy.temperature ="), "{found}");
        }
        let x = Tensor::ones([2, 2], &device);
        let error = score_batch(&JointEnergy::new(Broken), x, &[Score::LogDensity]).unwrap_err();
        assert!(error.to_string().contains("log_density of example 0"), "{error}");
    }
}
