//! What can be said of a digit without an energy: mean images, nearest neighbours, lines; and how wrong a guess is.

use burn::tensor::{Device, Tensor, TensorData};
use jem_core::Result;
use jem_core::data::ImageSet;
use nalgebra::DMatrix;

/// Pixels in a digit.
pub const PIXELS: usize = 64;
/// The penalty of the linear regressions, for pixels on [-1, 1].
const RIDGE: f64 = 5.0;

/// A digit, row by row, on [-1, 1].
pub type Pixels = [f32; PIXELS];

/// `[n, 1, 8, 8]` as rows of pixels.
pub fn pixels(images: &Tensor<4>) -> Vec<Pixels> {
    let values: Vec<f32> = images.clone().into_data().iter::<f32>().collect();
    values.chunks_exact(PIXELS).map(|chunk| std::array::from_fn(|pixel| chunk[pixel])).collect()
}

/// Rows of pixels as `[n, 1, 8, 8]`.
pub fn images(rows: &[Pixels], device: &Device) -> Tensor<4> {
    Tensor::from_data(TensorData::new(rows.concat(), [rows.len(), 1, 8, 8]), device)
}

/// The mean squared error of each guess over the pixels where `counted` holds, in units of [0, 1] pixels. A guess is
/// clamped to the range of pixels first.
pub fn errors(guesses: &[Pixels], truth: &[Pixels], counted: &[bool; PIXELS]) -> Vec<f64> {
    let number = counted.iter().filter(|counted| **counted).count() as f64;
    let error = |(guess, truth): (&Pixels, &Pixels)| {
        let square = |pixel: usize| (f64::from(guess[pixel].clamp(-1.0, 1.0) - truth[pixel]) / 2.0).powi(2);
        (0..PIXELS).filter(|pixel| counted[*pixel]).map(square).sum::<f64>() / number
    };
    guesses.iter().zip(truth).map(error).collect()
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Mean of a - b over the images, and its standard error.
pub fn paired(a: &[f64], b: &[f64]) -> (f64, f64) {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let centre = mean(&differences);
    let variance =
        differences.iter().map(|d| (d - centre).powi(2)).sum::<f64>() / (differences.len().max(2) - 1) as f64;
    (centre, (variance / differences.len().max(1) as f64).sqrt())
}

/// The training digits.
pub struct Known {
    digits: Vec<Pixels>,
    labels: Vec<usize>,
    classes: usize,
}

impl Known {
    pub fn new(train: &ImageSet) -> Result<Self> {
        let digits = pixels(&train.all(&Device::default())?);
        Ok(Self { digits, labels: train.labels().to_vec(), classes: train.num_classes() })
    }

    fn of(&self, class: Option<usize>) -> impl Iterator<Item = &Pixels> {
        let wanted = move |label: &usize| class.is_none_or(|class| class == *label);
        self.digits.iter().zip(&self.labels).filter(move |(_, label)| wanted(label)).map(|(digit, _)| digit)
    }

    /// The mean image of a class, or of all digits.
    pub fn mean(&self, class: Option<usize>) -> Pixels {
        let count = self.of(class).count().max(1) as f32;
        std::array::from_fn(|pixel| self.of(class).map(|digit| digit[pixel]).sum::<f32>() / count)
    }

    /// The index of the training digit that is nearest to `x` in the pixels where `seen` holds.
    fn nearest(&self, x: &Pixels, seen: &[bool; PIXELS], class: Option<usize>) -> usize {
        let distance = |digit: &Pixels| {
            let square = |pixel: usize| if seen[pixel] { (digit[pixel] - x[pixel]).powi(2) } else { 0.0 };
            (0..PIXELS).map(square).sum::<f32>()
        };
        let allowed = |index: &usize| class.is_none_or(|class| class == self.labels[*index]);
        (0..self.digits.len())
            .filter(allowed)
            .min_by(|a, b| distance(&self.digits[*a]).total_cmp(&distance(&self.digits[*b])))
            .unwrap_or(0)
    }

    /// The training digit that is nearest in the visible pixels.
    pub fn neighbour(&self, x: &Pixels, seen: &[bool; PIXELS], class: Option<usize>) -> Pixels {
        self.digits[self.nearest(x, seen, class)]
    }

    /// The class of the nearest training digit: a judge that knows nothing of the model.
    pub fn judge(&self, x: &Pixels) -> usize {
        self.labels[self.nearest(x, &[true; PIXELS], None)]
    }

    /// Ridge regression of the hidden pixels on the visible ones, one for each class.
    pub fn lines(&self, digits: &[Pixels], labels: &[usize], seen: &[bool; PIXELS]) -> Vec<Pixels> {
        let visible: Vec<usize> = (0..PIXELS).filter(|pixel| seen[*pixel]).collect();
        let hidden: Vec<usize> = (0..PIXELS).filter(|pixel| !seen[*pixel]).collect();
        let inputs = |rows: &[&Pixels]| {
            DMatrix::from_fn(rows.len(), visible.len() + 1, |row, column| {
                visible.get(column).map_or(1.0, |pixel| f64::from(rows[row][*pixel]))
            })
        };
        let weights: Vec<Option<DMatrix<f64>>> = (0..self.classes)
            .map(|class| {
                let rows: Vec<&Pixels> = self.of(Some(class)).collect();
                let x = inputs(&rows);
                let y = DMatrix::from_fn(rows.len(), hidden.len(), |row, column| {
                    f64::from(rows[row][hidden[column]])
                });
                let penalty = DMatrix::identity(x.ncols(), x.ncols()) * RIDGE;
                (x.transpose() * &x + penalty).cholesky().map(|factor| factor.solve(&(x.transpose() * y)))
            })
            .collect();
        let guess = |(digit, label): (&Pixels, &usize)| {
            let mut guess = *digit;
            let row = weights[*label].as_ref().map(|weights| inputs(&[digit]) * weights);
            for (column, pixel) in hidden.iter().enumerate() {
                guess[*pixel] = row.as_ref().map_or(0.0, |row| row[(0, column)] as f32);
            }
            guess
        };
        digits.iter().zip(labels).map(guess).collect()
    }
}
