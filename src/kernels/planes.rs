//! Images laid out so that every tap of a convolution is a plain distance: zeros around them, and one plane for
//! each phase of the horizontal stride.

use pulp::Arch;

use super::geometry::Geometry;

/// The layout of one image in a buffer of zeros.
#[derive(Debug, Clone, Copy)]
pub struct Planes {
    /// Rows and columns of zeros before the image.
    pub before: [usize; 2],
    /// The rows of a plane.
    pub rows: usize,
    /// The numbers in a row of a plane.
    pub pitch: usize,
    /// Columns whose indices agree modulo this lie in one plane.
    pub phases: usize,
}

impl Planes {
    /// The layout from which the forward pass reads: rows end in enough zeros to load whole registers.
    pub fn of_input(geometry: &Geometry, lanes: usize) -> Self {
        let [rows, columns] = geometry.output();
        let reach = (geometry.kernel[1] - 1) / geometry.stride[1];
        Self {
            before: geometry.padding,
            rows: (rows - 1) * geometry.stride[0] + geometry.kernel[0],
            pitch: columns.next_multiple_of(lanes) + reach,
            phases: geometry.stride[1],
        }
    }

    /// A buffer for so many channels; a register may be loaded from its last element on.
    pub fn buffer(&self, channels: usize, lanes: usize) -> Vec<f32> {
        vec![0.0; channels * self.phases * self.rows * self.pitch + lanes]
    }

    /// Where an element of the padded image lies.
    pub fn at(&self, channel: usize, row: usize, column: usize) -> usize {
        ((channel * self.phases + column % self.phases) * self.rows + row) * self.pitch + column / self.phases
    }

    /// The distance of every tap of the kernel from the place of its output, for so many channels.
    pub fn taps(&self, channels: usize, kernel: [usize; 2]) -> Vec<usize> {
        let mut taps = Vec::with_capacity(channels * kernel[0] * kernel[1]);
        for channel in 0..channels {
            for row in 0..kernel[0] {
                taps.extend((0..kernel[1]).map(|column| self.at(channel, row, column)));
            }
        }
        taps
    }

    /// Copies an image of `[channels, height, width]` in, its negative numbers times `slope`. What lies around it
    /// is left as it is, and what no tap reaches is left out.
    pub fn fill(&self, arch: Arch, image: &[f32], size: [usize; 2], slope: f32, into: &mut [f32]) {
        let [height, width] = size;
        let height_read = height.min(self.rows.saturating_sub(self.before[0]));
        arch.dispatch(
            #[inline(always)]
            || {
                for (channel, plane) in image.chunks_exact(height * width).enumerate() {
                    for (row, values) in plane.chunks_exact(width).take(height_read).enumerate() {
                        self.fill_row([channel, row], values, slope, into);
                    }
                }
            },
        );
    }

    #[inline(always)]
    fn fill_row(&self, [channel, row]: [usize; 2], values: &[f32], slope: f32, into: &mut [f32]) {
        for first in 0..self.phases.min(values.len()) {
            let at = self.at(channel, row + self.before[0], first + self.before[1]);
            let room = self.pitch.saturating_sub((first + self.before[1]) / self.phases);
            let into = &mut into[at..at + room];
            let values = &values[first..];
            match self.phases {
                1 => copy(values.iter(), into, slope),
                // The same as below, in a form that compilers turn into vectors.
                2 => {
                    let (pairs, rest) = values.as_chunks::<2>();
                    copy(pairs.iter().map(|[value, _]| value), into, slope);
                    copy(rest.iter(), into.get_mut(pairs.len()..).unwrap_or_default(), slope);
                }
                phases => copy(values.iter().step_by(phases), into, slope),
            }
        }
    }
}

#[inline(always)]
fn copy<'a>(values: impl Iterator<Item = &'a f32>, into: &mut [f32], slope: f32) {
    for (to, value) in into.iter_mut().zip(values) {
        *to = leaky(*value, slope);
    }
}

/// The leaky ReLU of a number, which is the number itself where the slope is 1.
#[inline(always)]
pub fn leaky(value: f32, slope: f32) -> f32 {
    if value > 0.0 { value } else { slope * value }
}

/// Its derivative.
#[inline(always)]
pub fn leaky_slope(value: f32, slope: f32) -> f32 {
    if value > 0.0 { 1.0 } else { slope }
}
