//! The modified Bessel function I_ν, which two of the normalisers here are made of.

use statrs::function::gamma::ln_gamma;

/// log(I_ν(z) e^-z) for z > 0 and ν > -1, by the power series, whose terms are all positive.
pub(super) fn ln_bessel_i_scaled(order: f64, z: f64) -> f64 {
    // The largest term is near k = z/2, and the rest fall off like a Gaussian of deviation √z/2 about it.
    let terms = (z / 2.0 + 12.0 * z.sqrt()) as usize + 40;
    let half = (z / 2.0).ln();
    let sum: f64 = (0..terms)
        .map(|k| k as f64)
        .map(|k| ((2.0 * k + order) * half - ln_gamma(k + 1.0) - ln_gamma(k + order + 1.0) - z).exp())
        .sum();
    sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I_0(1), I_0(10) and the leading terms for large z; I_½(z) = √(2/πz) sinh z.
    #[test]
    fn values_are_those_of_tables_and_closed_forms() {
        for (z, value) in [(1.0, 1.266_065_877_752_008_4f64), (10.0, 2_815.716_628_466_254)] {
            assert!((ln_bessel_i_scaled(0.0, z) + z - value.ln()).abs() < 1e-12);
        }
        for z in [0.01f64, 1.0, 30.0, 700.0] {
            let half = (2.0 / (std::f64::consts::PI * z)).sqrt() * 0.5 * (1.0 - (-2.0 * z).exp());
            assert!((ln_bessel_i_scaled(0.5, z) - half.ln()).abs() < 1e-9, "{z}");
        }
    }
}
