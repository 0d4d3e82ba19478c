//! The autocorrelation of one chain.

use crate::checks::{all_equal, finite, mean};
use jem_core::error::{Error, Result, ensure};

/// ρ_t for the lags t = 0 to `max_lag` of one chain:
///
/// ```text
/// ρ_t = Σ_i (x_i - x̄)(x_{i+t} - x̄) / Σ_i (x_i - x̄)²
/// ```
///
/// Sums are divided by n at every lag, which pulls ρ towards 0 at long ones and keeps |ρ| <= 1. ρ_0 is 1.
///
/// ```
/// use jem_eval::autocorrelation;
/// let rho = autocorrelation(&[1.0f32, -1.0, 1.0, -1.0], 2)?;
/// assert_eq!(rho, [1.0, -0.75, 0.5]);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::Config`] unless `max_lag` is below the number of draws, or if all draws are the same number;
/// [`Error::NonFinite`] for a NaN or an infinity.
pub fn autocorrelation<T: Copy + Into<f64>>(draws: &[T], max_lag: usize) -> Result<Vec<f64>> {
    let draws = finite("draws of a chain", draws)?;
    let allowed = format!("below the number of draws, {}", draws.len());
    ensure(max_lag < draws.len(), "autocorrelation.max_lag", max_lag, &allowed)?;
    if all_equal(&draws) {
        let found = format!("{} at every step", draws[0]);
        return Err(Error::config("draws of a chain", found, "draws that vary"));
    }
    let mean = mean(&draws);
    let centred: Vec<f64> = draws.iter().map(|value| value - mean).collect();
    let products = |lag: usize| -> f64 { centred.iter().zip(&centred[lag..]).map(|(a, b)| a * b).sum() };
    let scale = products(0);
    Ok((0..=max_lag).map(|lag| products(lag) / scale).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_input_is_named() {
        let message = |draws: &[f64], lag| autocorrelation(draws, lag).unwrap_err().to_string();
        assert!(message(&[1.0, 2.0], 2).starts_with("autocorrelation.max_lag = 2"));
        assert!(message(&[], 0).starts_with("autocorrelation.max_lag = 0"));
        assert!(message(&[0.3; 5], 1).starts_with("draws of a chain = 0.3 at every step"));
        assert!(message(&[0.3, f64::NAN], 1).starts_with("draws of a chain[1] is not finite"));
    }
}
