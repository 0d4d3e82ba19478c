//! A loss to minimise, with what is worth knowing of it: named terms, and which of them the guard watches.

use burn::tensor::Tensor;

use super::{Reading, Watch};

/// A loss to minimise, with named terms to look at. A term that says what it is, by a [`Watch`], is held to the limits
/// of the trainer's guard; any other is held to be finite.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::objectives::{Loss, Reading, Watch};
/// let one = Tensor::<1>::ones([1], &Device::default());
/// let mut loss = Loss::new(one.clone());
/// loss.add_term("half", one.clone().mul_scalar(0.5));
/// loss.add_watched(Watch::Energy, "energy of the cats", one);
/// loss.add_count("samples", 3.0);
/// let numbers = loss.read();
/// assert_eq!(numbers[0], Reading { name: "half", watch: None, value: 0.5 });
/// assert_eq!(numbers[1].watch, Some(Watch::Energy));
/// assert_eq!((numbers[3].name, numbers[3].watch), ("loss", Some(Watch::Loss)));
/// ```
#[derive(Debug, Clone)]
pub struct Loss {
    total: Tensor<1>,
    terms: Vec<(Option<Watch>, &'static str, Tensor<1>)>,
    counts: Vec<Reading>,
}

impl Loss {
    /// The name under which the total is read.
    pub const TOTAL: &'static str = "loss";

    /// A loss without terms. `total` has one element.
    pub fn new(total: Tensor<1>) -> Self {
        Self { total, terms: Vec::new(), counts: Vec::new() }
    }

    /// Names a part of the loss, or any number of one element. It is detached, and stays on its device.
    pub fn add_term(&mut self, name: &'static str, value: Tensor<1>) {
        self.terms.push((None, name, value.without_autodiff()));
    }

    /// Names a number of one element that the guard watches as what it is.
    pub fn add_watched(&mut self, watch: Watch, name: &'static str, value: Tensor<1>) {
        self.terms.push((Some(watch), name, value.without_autodiff()));
    }

    /// Names a number that is on the host already.
    pub fn add_count(&mut self, name: &'static str, value: f64) {
        self.counts.push(Reading { name, watch: None, value });
    }

    /// Names a number that is on the host already, and that the guard watches as what it is.
    pub fn add_watched_count(&mut self, watch: Watch, name: &'static str, value: f64) {
        self.counts.push(Reading { name, watch: Some(watch), value });
    }

    /// What is minimised.
    pub fn total(&self) -> &Tensor<1> {
        &self.total
    }

    /// All numbers: terms, counts, the total. One read from the device.
    pub fn read(&self) -> Vec<Reading> {
        let total = self.total.clone().without_autodiff();
        let on_device = self.terms.iter().map(|(_, _, value)| value.clone()).chain([total]).collect();
        let values: Vec<f64> = Tensor::cat(on_device, 0).into_data().iter::<f64>().collect();
        let named = self.terms.iter().zip(&values);
        let mut numbers: Vec<_> =
            named.map(|((watch, name, _), &value)| Reading { name, watch: *watch, value }).collect();
        numbers.extend(self.counts.iter().copied());
        let total =
            values.last().map(|&value| Reading { name: Self::TOTAL, watch: Some(Watch::Loss), value });
        numbers.extend(total);
        numbers
    }
}
