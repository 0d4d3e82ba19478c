//! What a run writes down: one record per step, per epoch and per event.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Named numbers.
pub type Values = BTreeMap<String, f64>;

/// One line of `metrics.jsonl`. It holds nothing that depends on the clock, so that two runs from the same seed
/// write the same bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// One iteration.
    Step(StepRecord),
    /// The end of an epoch.
    Epoch(EpochRecord),
    /// Something that the guard did.
    Event(EventRecord),
}

impl Record {
    /// The iteration that it belongs to.
    pub fn iteration(&self) -> u64 {
        match self {
            Self::Step(record) => record.iteration,
            Self::Epoch(record) => record.iteration,
            Self::Event(record) => record.iteration,
        }
    }
}

/// One iteration: the terms of its loss, the norm of its gradient, its learning rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// Counted from 0.
    pub iteration: u64,
    /// Counted from 0.
    pub epoch: u64,
    /// As used, with the guard's scale in it.
    pub learning_rate: f64,
    /// Loss terms and gradient norm. A number that is not finite is written as `null`.
    #[serde(with = "finite_or_null")]
    pub values: Values,
}

/// The end of an epoch, with what the observers measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// The last iteration of the epoch.
    pub iteration: u64,
    /// The epoch that ended, counted from 0.
    pub epoch: u64,
    /// What was measured.
    #[serde(with = "finite_or_null")]
    pub values: Values,
}

/// Something that happened to the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventRecord {
    /// When.
    pub iteration: u64,
    /// What.
    pub event: Event,
    /// Why, in words.
    pub cause: String,
}

/// The kinds of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A step was left out.
    Skipped,
    /// The weights of an earlier iteration are back, with a smaller learning rate and an empty memory.
    RolledBack,
    /// The run ended early.
    Stopped,
}

/// JSON has no NaN: numbers that are not finite go out as `null` and come back as NaN.
mod finite_or_null {
    use super::Values;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::collections::BTreeMap;

    pub(super) fn serialize<S: Serializer>(values: &Values, serializer: S) -> Result<S::Ok, S::Error> {
        let finite = |value: &f64| value.is_finite().then_some(*value);
        let values: BTreeMap<_, _> = values.iter().map(|(name, value)| (name, finite(value))).collect();
        values.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Values, D::Error> {
        let values = BTreeMap::<String, Option<f64>>::deserialize(deserializer)?;
        Ok(values.into_iter().map(|(name, value)| (name, value.unwrap_or(f64::NAN))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_round_trip_with_nan() {
        let values = [("a".to_owned(), 0.1), ("b".to_owned(), f64::NAN)].into();
        let record = Record::Step(StepRecord { iteration: 3, epoch: 0, learning_rate: 1e-4, values });
        let line = serde_json::to_string(&record).unwrap();
        let expected =
            r#"{"kind":"step","iteration":3,"epoch":0,"learning_rate":0.0001,"values":{"a":0.1,"b":null}}"#;
        assert_eq!(line, expected);
        let Record::Step(back) = serde_json::from_str(&line).unwrap() else { panic!("not a step") };
        assert_eq!(back.values["a"], 0.1);
        assert!(back.values["b"].is_nan());
    }
}
