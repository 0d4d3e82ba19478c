//! The forward algorithm: the free energy of all labellings of a chain, in log space and with gradients.

use burn::tensor::{Bool, Tensor, TensorData};

use super::Chain;
use crate::error::{Result, ensure_positive};
use crate::math::log_sum_exp;

impl Chain {
    /// The free energy of each sequence over all its labellings, `[batch]`:
    ///
    /// ```text
    /// F_β = -(1/β) log Σ_y exp(-β E(y))
    /// a_1[j] = -β U[1, j]      a_t[j] = log Σ_i exp(a_{t-1}[i] - β V[i, j]) - β U[t, j]      F_β = -(1/β) log Σ_j exp a_T[j]
    /// ```
    ///
    /// Its gradient with respect to U\[t, j\] is the probability that position t has the label j.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless β is finite and above 0.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use jem_core::inference::Chain;
    /// let device = Device::default();
    /// // All energies are 0, so that exp(-F) counts the labellings: 3⁴.
    /// let chain = Chain::new(Tensor::zeros([1, 4, 3], &device), Tensor::zeros([3, 3], &device))?;
    /// assert!((chain.free_energy(1.0)?.into_scalar::<f32>() + 81f32.ln()).abs() < 1e-5);
    /// # Ok::<(), jem_core::Error>(())
    /// ```
    ///
    /// Source: LeCun et al. 2006, section 6; Rabiner 1989, doi 10.1109/5.18626.
    pub fn free_energy(&self, inverse_temperature: f64) -> Result<Tensor<1>> {
        ensure_positive("Chain.inverse_temperature", inverse_temperature)?;
        let [batch, length, labels] = self.unary.dims();
        let unary = self.unary.clone().mul_scalar(-inverse_temperature);
        let pairwise = self.pairwise.clone().mul_scalar(-inverse_temperature);
        let matrices = pairwise.dims()[0];
        let position = |t: usize| unary.clone().narrow(1, t, 1).squeeze_dim::<2>(1);
        let mut forward = position(0);
        for t in 1..length {
            let matrix = if matrices == 1 { 0 } else { t - 1 };
            let step: Tensor<3> = forward.clone().unsqueeze_dim(2);
            let scores = step + pairwise.clone().narrow(0, matrix, 1); // [batch, from, to]
            let rows = scores.swap_dims(1, 2).reshape([batch * labels, labels]);
            let next = log_sum_exp(rows).reshape([batch, labels]) + position(t);
            forward = if self.lengths.iter().all(|own| t < *own) {
                next
            } else {
                forward.mask_where(self.reaches(t), next)
            };
        }
        Ok(log_sum_exp(forward).div_scalar(-inverse_temperature))
    }

    /// Which sequences have a position t, `[batch, labels]`.
    fn reaches(&self, t: usize) -> Tensor<2, Bool> {
        let labels = self.num_labels();
        let reaches: Vec<bool> = self.lengths.iter().flat_map(|own| vec![t < *own; labels]).collect();
        Tensor::from_data(TensorData::new(reaches, [self.lengths.len(), labels]), &self.plain_device())
    }
}
