//! An out-of-distribution detector: a score, and the threshold below which an input is refused.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::checks::finite;
use jem_core::error::{Error, Result, ensure};

/// A threshold on a score that is large in distribution, such as log p(x) up to a constant, or max_y p(y|x).
///
/// Plain data: save it beside the model. In JSON the threshold is text, so that it comes back to the last bit
/// and a loaded detector decides as the saved one did.
///
/// ```
/// use jem_eval::OodDetector;
///
/// let validation: Vec<f32> = (0..100).map(|i| i as f32).collect(); // scores in distribution
/// let detector = OodDetector::fit("max p(y|x)", &validation, 0.05)?; // 5 % false alarms
/// assert!(detector.is_out(4.0f32) && !detector.is_out(5.0f32));
///
/// let saved = serde_json::to_string(&detector).unwrap();
/// let detector: OodDetector = serde_json::from_str(&saved).unwrap();
/// assert!(detector.is_out(4.9));
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OodDetector {
    score: String,
    #[serde(deserialize_with = "rate_from_json")]
    false_alarm_rate: f64,
    #[serde(serialize_with = "threshold_to_json", deserialize_with = "threshold_from_json")]
    threshold: f64,
}

impl OodDetector {
    /// The largest threshold that refuses at most the share `false_alarm_rate` of the in-distribution `scores`.
    ///
    /// These scores should come from held-out data: on training data a model is surer than it is later. `score`
    /// is the score's name, kept for whoever loads the detector.
    ///
    /// # Errors
    /// [`Error::Shape`] without scores, [`Error::NonFinite`] for a NaN or an infinity, [`Error::Config`] unless
    /// 0 <= `false_alarm_rate` < 1.
    pub fn fit<T: Copy + Into<f64>>(
        score: impl Into<String>,
        scores: &[T],
        false_alarm_rate: f64,
    ) -> Result<Self> {
        check_rate(false_alarm_rate)?;
        if scores.is_empty() {
            return Err(Error::shape("in-distribution scores", &[0], "at least one score"));
        }
        let mut scores = finite("in-distribution scores", scores)?;
        scores.sort_by(f64::total_cmp);
        // 0.29 * 100 is 28.999999999999996 in doubles, and 29 is meant.
        let refused = (false_alarm_rate * scores.len() as f64 + 1e-9).floor() as usize;
        let threshold = scores[refused.min(scores.len() - 1)];
        Ok(Self { score: score.into(), false_alarm_rate, threshold })
    }

    /// Whether a score speaks for an input from elsewhere: it is below the threshold, or NaN.
    pub fn is_out(&self, score: impl Into<f64>) -> bool {
        let score: f64 = score.into();
        score.is_nan() || score < self.threshold
    }

    /// The name of the score.
    pub fn score(&self) -> &str {
        &self.score
    }

    /// The wished share of false alarms among in-distribution inputs.
    pub fn false_alarm_rate(&self) -> f64 {
        self.false_alarm_rate
    }

    /// The smallest score that is in distribution, in the units of the score.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }
}

fn check_rate(rate: f64) -> Result<()> {
    ensure((0.0..1.0).contains(&rate), "OodDetector.false_alarm_rate", rate, "in [0, 1)")
}

fn rate_from_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let rate = f64::deserialize(deserializer)?;
    check_rate(rate).map_err(serde::de::Error::custom)?;
    Ok(rate)
}

fn threshold_to_json<S: Serializer>(threshold: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(threshold)
}

fn threshold_from_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.parse() {
        Ok(threshold) if f64::is_finite(threshold) => Ok(threshold),
        _ => {
            Err(serde::de::Error::custom(format!("OodDetector.threshold = {text:?} is not a finite number")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_false_alarms_is_reached_and_not_exceeded() {
        let scores: Vec<f64> = (0..100).map(f64::from).collect();
        for percent in 0..100 {
            let rate = f64::from(percent) / 100.0;
            let detector = OodDetector::fit("s", &scores, rate).unwrap();
            let alarms = scores.iter().filter(|score| detector.is_out(**score)).count();
            assert_eq!(alarms, percent as usize);
        }
        // Ties at the threshold stay in, so the share is below the wish, not above it.
        let detector = OodDetector::fit("s", &[1.0f32, 1.0, 1.0, 2.0], 0.5).unwrap();
        assert!(!detector.is_out(1.0f32) && detector.is_out(0.999) && detector.is_out(f32::NAN));
    }

    #[test]
    fn json_keeps_the_last_bit() {
        let mut value = 0.1f64;
        for _ in 0..200 {
            value = (value * 1.7).fract() - 1e-7 * value;
            for scale in [1e-30, 1.0, 1e25] {
                let detector = OodDetector::fit("log p(x)", &[value * scale], 0.05).unwrap();
                let text = serde_json::to_string(&detector).unwrap();
                assert_eq!(serde_json::from_str::<OodDetector>(&text).unwrap(), detector);
            }
        }
    }

    #[test]
    fn bad_input_is_named() {
        let message = |scores: &[f64], rate| OodDetector::fit("s", scores, rate).unwrap_err().to_string();
        assert!(message(&[], 0.1).starts_with("in-distribution scores has shape [0]"));
        assert!(message(&[f64::NAN], 0.1).starts_with("in-distribution scores[0] is not finite"));
        for rate in [-0.1, 1.0, f64::NAN] {
            assert!(message(&[1.0], rate).starts_with("OodDetector.false_alarm_rate ="));
        }
        for text in [
            r#"{"score":"s","false_alarm_rate":2.0,"threshold":"1"}"#,
            r#"{"score":"s","false_alarm_rate":0.1,"threshold":"NaN"}"#,
            r#"{"score":"s","false_alarm_rate":0.1,"threshold":"x"}"#,
        ] {
            assert!(serde_json::from_str::<OodDetector>(text).is_err());
        }
    }
}
