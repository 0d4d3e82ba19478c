//! The sizes of a two-dimensional convolution.

/// A convolution with one group and no dilation, padded alike at both ends of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Channels in and out.
    pub channels: [usize; 2],
    /// Height and width of an image.
    pub input: [usize; 2],
    /// Height and width of the kernel.
    pub kernel: [usize; 2],
    /// Steps down and to the right.
    pub stride: [usize; 2],
    /// Rows above and below, columns left and right.
    pub padding: [usize; 2],
}

impl Geometry {
    /// Height and width of what comes out.
    pub fn output(&self) -> [usize; 2] {
        std::array::from_fn(|axis| {
            (self.input[axis] + 2 * self.padding[axis] - self.kernel[axis]) / self.stride[axis] + 1
        })
    }

    /// Whether there is an output for every axis, and something in every size.
    pub fn is_valid(&self) -> bool {
        let sizes = [self.channels, self.input, self.kernel, self.stride];
        sizes.as_flattened().iter().all(|size| *size > 0)
            && (0..2).all(|axis| self.kernel[axis] <= self.input[axis] + 2 * self.padding[axis])
    }

    /// The places of the kernel.
    pub fn places(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// The numbers in an image.
    pub fn inputs(&self) -> usize {
        self.channels[0] * self.input[0] * self.input[1]
    }

    /// The numbers that an image becomes.
    pub fn outputs(&self) -> usize {
        self.channels[1] * self.output().iter().product::<usize>()
    }
}
