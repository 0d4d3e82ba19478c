//! What metrics ask of their numbers first, and the moments that several of them need.

use jem_core::error::{Error, Result, ensure};

/// The values in double precision, or an error that names the first one that is not finite.
pub(super) fn finite<T: Copy + Into<f64>>(what: &str, values: &[T]) -> Result<Vec<f64>> {
    let check = |(index, value): (usize, &T)| {
        let value: f64 = (*value).into();
        if value.is_finite() { Ok(value) } else { Err(not_finite(what, index, value)) }
    };
    values.iter().enumerate().map(check).collect()
}

fn not_finite(what: &str, index: usize, value: f64) -> Error {
    Error::NonFinite { what: format!("{what}[{index}]"), value }
}

/// How many rows of `columns` numbers there are: at least one, and none of them cut short.
pub(super) fn num_rows(what: &str, len: usize, columns: usize) -> Result<usize> {
    ensure(columns > 0, &format!("numbers in a row of {what}"), columns, "at least 1")?;
    if len == 0 || !len.is_multiple_of(columns) {
        return Err(Error::shape(what, &[len], format!("one or more rows of {columns} numbers")));
    }
    Ok(len / columns)
}

/// One label for each of `rows` rows, each below `num_classes`.
pub(super) fn check_labels(labels: &[usize], rows: usize, num_classes: usize) -> Result<()> {
    if labels.len() != rows {
        return Err(Error::shape("labels", &[labels.len()], format!("one label for each of {rows} rows")));
    }
    match labels.iter().position(|label| *label >= num_classes) {
        Some(index) => {
            let allowed = format!("below the number of classes, {num_classes}");
            Err(Error::config(format!("labels[{index}]"), labels[index], allowed))
        }
        None => Ok(()),
    }
}

/// `Ok` for two sets of features of one size.
pub(super) fn same_dimension(what: &str, first: usize, second: usize) -> Result<()> {
    let allowed = format!("{first}, the dimension of the other side");
    ensure(first == second, &format!("dimension of the {what}"), second, &allowed)
}

/// The index of the largest number, the first one on ties.
pub(super) fn argmax(row: &[f64]) -> usize {
    (1..row.len()).fold(0, |best, index| if row[index] > row[best] { index } else { best })
}

/// The mean. Exact for numbers that are all the same.
pub(super) fn mean(values: &[f64]) -> f64 {
    let first = values[0];
    first + values.iter().map(|value| value - first).sum::<f64>() / values.len() as f64
}

/// The sum of squared differences from the mean, divided by n - `lost`.
pub(super) fn variance(values: &[f64], lost: usize) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / (values.len() - lost) as f64
}

/// Whether all are the same number.
pub(super) fn all_equal(values: &[f64]) -> bool {
    values.iter().all(|value| *value == values[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bad_number_is_named() {
        let error = finite("scores", &[0.0f32, f32::NAN, f32::INFINITY]).unwrap_err();
        assert_eq!(error.to_string(), "scores[1] is not finite: NaN");
        assert_eq!(finite("scores", &[0.5f32]).unwrap(), [0.5]);
    }

    #[test]
    fn rows_and_labels_must_fit() {
        assert_eq!(num_rows("x", 6, 3).unwrap(), 2);
        for (len, columns) in [(0, 3), (5, 3), (5, 0)] {
            assert!(num_rows("x", len, columns).is_err());
        }
        assert!(check_labels(&[0, 1], 2, 2).is_ok());
        let error = check_labels(&[0, 2], 2, 2).unwrap_err().to_string();
        assert_eq!(error, "labels[1] = 2 is not allowed: it must be below the number of classes, 2");
        let error = check_labels(&[0], 2, 2).unwrap_err().to_string();
        assert_eq!(error, "labels has shape [1], expected one label for each of 2 rows");
    }

    #[test]
    fn moments_of_equal_numbers_are_exact() {
        let values = [0.1; 7];
        assert!(mean(&values) == 0.1 && variance(&values, 1) == 0.0);
        assert!((variance(&[1.0, 2.0, 4.0], 1) - 7.0 / 3.0).abs() < 1e-15);
        assert_eq!(argmax(&[0.2, 0.4, 0.4]), 1);
    }
}
