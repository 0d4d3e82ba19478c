//! Images laid out so that every tap of a convolution is a plain distance: zeros around them, and one plane for
//! each phase of the horizontal stride.

use std::slice::ChunksExact;

use pulp::{Arch, Simd, WithSimd};

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
        // Where each phase of the first row goes, and how much of it there is room for.
        let phases: Vec<(usize, usize)> = (0..self.phases.min(width))
            .map(|first| {
                let column = first + self.before[1];
                (self.at(0, self.before[0], column), self.pitch.saturating_sub(column / self.phases))
            })
            .collect();
        let image = image.chunks_exact(height * width);
        arch.dispatch(Fill { planes: self, phases: &phases, image, width, height_read, slope, into });
    }
}

struct Fill<'a> {
    planes: &'a Planes,
    phases: &'a [(usize, usize)],
    image: ChunksExact<'a, f32>,
    width: usize,
    height_read: usize,
    slope: f32,
    into: &'a mut [f32],
}

impl WithSimd for Fill<'_> {
    type Output = ();

    /// Plain loops, which become vectors of this machine's size.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { planes, phases, image, width, height_read, slope, into } = self;
        for (channel, plane) in image.enumerate() {
            for (row, values) in plane.chunks_exact(width).take(height_read).enumerate() {
                let from = (channel * planes.phases * planes.rows + row) * planes.pitch;
                for (first, (at, room)) in phases.iter().enumerate() {
                    copy_phase(&values[first..], planes.phases, slope, &mut into[from + at..][..*room]);
                }
            }
        }
    }
}

/// Puts in the place of every input the gradient times the leaky ReLU's derivative there.
pub struct Slopes<'a> {
    pub slope: f32,
    pub inputs: &'a mut [f32],
    pub gradients: &'a [f32],
}

impl WithSimd for Slopes<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (input, gradient) in self.inputs.iter_mut().zip(self.gradients) {
            *input = gradient * leaky_slope(*input, self.slope);
        }
    }
}

/// Every so many of the values.
#[inline(always)]
fn copy_phase(values: &[f32], phases: usize, slope: f32, into: &mut [f32]) {
    match phases {
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
