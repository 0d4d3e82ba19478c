//! A leaky ReLU and a convolution behind it, on plain slices: the forward pass and its three gradients.
//!
//! Work is shared among threads so that no sum depends on how many there are.

use pulp::Arch;
use rayon::prelude::*;

use super::correlate::{Packed, Plan, Run, lanes, runs};
use super::geometry::Geometry;
use super::outer::{Outer, blocks};
use super::planes::{Planes, Slopes};

/// output = bias + weight * leaky(input), for images `[batch, channels, height, width]`.
pub fn forward(g: &Geometry, slope: f32, input: &[f32], weight: &[f32], bias: &[f32], output: &mut [f32]) {
    let arch = Arch::new();
    let lanes = lanes(arch);
    let planes = Planes::of_input(g, lanes);
    let taps = planes.taps(g.channels[0], g.kernel);
    let [rows, columns] = g.output();
    let plan = Plan {
        weights: Packed::new(taps.len(), g.channels[1], |channel, tap| weight[channel * taps.len() + tap]),
        runs: runs([rows, columns], lanes, |row, column, count| Run {
            source: row * g.stride[0] * planes.pitch + column,
            target: row * columns + column,
            count,
        }),
        taps,
        step: 1,
        plane: rows * columns,
    };
    let images = output.par_chunks_exact_mut(g.outputs()).zip(input.par_chunks_exact(g.inputs()));
    let buffer = || planes.buffer(g.channels[0], lanes);
    images.for_each_init(buffer, |source, (output, input)| {
        planes.fill(arch, input, g.input, slope, source);
        plan.run(arch, source, Some(bias), output);
    });
}

/// The gradient in the input of the convolution alone: the gradient of the output, correlated with the kernel turned,
/// for each phase of the stride.
pub fn input_gradient(g: &Geometry, weight: &[f32], gradient: &[f32], result: &mut [f32]) {
    let turned = Turned::new(g, weight);
    let images = result.par_chunks_exact_mut(g.inputs()).zip(gradient.par_chunks_exact(g.outputs()));
    images
        .for_each_init(|| turned.buffer(), |source, (result, gradient)| turned.run(source, gradient, result));
}

/// The gradient in the input, in its place: that of the convolution, then through the leaky ReLU.
pub fn leaky_input_gradient(g: &Geometry, slope: f32, weight: &[f32], gradient: &[f32], input: &mut [f32]) {
    let turned = Turned::new(g, weight);
    let images = input.par_chunks_exact_mut(g.inputs()).zip(gradient.par_chunks_exact(g.outputs()));
    let buffers = || (turned.buffer(), vec![0.0; g.inputs()]);
    images.for_each_init(buffers, |(source, found), (input, gradient)| {
        turned.run(source, gradient, found);
        turned.arch.dispatch(Slopes { slope, inputs: input, gradients: found });
    });
}

/// The plans of a gradient in the input, one for each phase of the stride.
struct Turned<'a> {
    geometry: &'a Geometry,
    arch: Arch,
    planes: Planes,
    plans: Vec<Plan>,
}

impl<'a> Turned<'a> {
    fn new(geometry: &'a Geometry, weight: &[f32]) -> Self {
        let arch = Arch::new();
        let lanes = lanes(arch);
        let axes = [Phases::of(geometry, 0), Phases::of(geometry, 1)];
        let planes = Planes {
            before: [axes[0].taps - 1, axes[1].taps - 1],
            rows: axes[0].quotients + axes[0].taps - 1,
            pitch: axes[1].quotients.next_multiple_of(lanes) + axes[1].taps - 1 + lanes,
            phases: 1,
        };
        let [down, right] = geometry.stride;
        let phases = (0..down).flat_map(|row| (0..right).map(move |column| [row, column]));
        let plans = phases.map(|phase| turned(geometry, phase, axes, &planes, weight, lanes)).collect();
        Self { geometry, arch, planes, plans }
    }

    fn buffer(&self) -> Vec<f32> {
        self.planes.buffer(self.geometry.channels[1], lanes(self.arch))
    }

    /// Of one image.
    fn run(&self, source: &mut [f32], gradient: &[f32], result: &mut [f32]) {
        self.planes.fill(self.arch, gradient, self.geometry.output(), 1.0, source);
        for plan in &self.plans {
            plan.run(self.arch, source, None, result);
        }
    }
}

/// One axis of the gradient in the image: input `i` gets the outputs `q - t` through the taps `r + t stride`, where
/// `q` and `r` are the quotient and the remainder of `i + padding` by the stride.
#[derive(Debug, Clone, Copy)]
struct Phases {
    /// The most taps that an input has.
    taps: usize,
    /// One more than the largest quotient.
    quotients: usize,
    stride: usize,
    padding: usize,
    input: usize,
}

impl Phases {
    fn of(g: &Geometry, axis: usize) -> Self {
        let (stride, padding, input) = (g.stride[axis], g.padding[axis], g.input[axis]);
        Self {
            taps: g.kernel[axis].div_ceil(stride),
            quotients: (input - 1 + padding) / stride + 1,
            stride,
            padding,
            input,
        }
    }

    /// The first quotient of a remainder that is an input, that input, and how many there are.
    fn inputs(&self, remainder: usize) -> (usize, usize, usize) {
        let quotient = self.padding.saturating_sub(remainder).div_ceil(self.stride);
        let first = quotient * self.stride + remainder - self.padding;
        (quotient, first, self.input.saturating_sub(first).div_ceil(self.stride))
    }
}

fn turned(
    g: &Geometry,
    remainders: [usize; 2],
    axes: [Phases; 2],
    planes: &Planes,
    weight: &[f32],
    lanes: usize,
) -> Plan {
    let [channels_in, channels_out] = g.channels;
    let (mut taps, mut places) = (Vec::new(), Vec::new());
    for channel in 0..channels_out {
        for (down, row) in (remainders[0]..g.kernel[0]).step_by(g.stride[0]).enumerate() {
            for (right, column) in (remainders[1]..g.kernel[1]).step_by(g.stride[1]).enumerate() {
                taps.push(planes.at(channel, axes[0].taps - 1 - down, axes[1].taps - 1 - right));
                places.push(channel * channels_in * g.places() + row * g.kernel[1] + column);
            }
        }
    }
    let (quotient_row, first_row, rows) = axes[0].inputs(remainders[0]);
    let (quotient_column, first_column, columns) = axes[1].inputs(remainders[1]);
    Plan {
        weights: Packed::new(taps.len(), channels_in, |channel, tap| {
            weight[places[tap] + channel * g.places()]
        }),
        taps,
        runs: runs([rows, columns], lanes, |row, column, count| Run {
            source: (quotient_row + row) * planes.pitch + quotient_column + column,
            target: (first_row + row * g.stride[0]) * g.input[1] + first_column + column * g.stride[1],
            count,
        }),
        step: g.stride[1],
        plane: g.input[0] * g.input[1],
    }
}

/// Channels of the input that a task of the gradient in the weight has.
const SHARE: usize = 8;

/// The gradient in the weight, `[out, in, height, width]`.
pub fn weight_gradient(g: &Geometry, slope: f32, input: &[f32], gradient: &[f32], result: &mut [f32]) {
    let arch = Arch::new();
    let lanes = lanes(arch);
    let planes = Planes::of_input(g, lanes);
    let [rows, columns] = g.output();
    let places: Vec<usize> = (0..rows * columns)
        .map(|place| place / columns * g.stride[0] * planes.pitch + place % columns)
        .collect();
    let pitch = g.channels[1].next_multiple_of(lanes);
    let turned = by_blocks(gradient, g.outputs(), places.len(), pitch, lanes);

    // A task reads all gradients: eight channels of the input make that worth while. Where those are few, a task has
    // some channels of the output only. No sum is parted.
    let share = SHARE.min(g.channels[0]);
    let columns = if g.channels[0] > 4 * SHARE { pitch } else { 2 * lanes };
    let starts = || (0..g.channels[0]).step_by(share);
    let tasks: Vec<_> =
        starts().flat_map(|first| (0..pitch).step_by(columns).map(move |at| (first, at))).collect();
    let plane = g.input[0] * g.input[1];
    let sums = |&(first, column): &(usize, usize)| -> Vec<f32> {
        let inputs = first..g.channels[0].min(first + share);
        let channels = column..pitch.min(column + columns);
        let taps = planes.taps(inputs.len(), g.kernel);
        let mut source = planes.buffer(inputs.len(), lanes);
        let mut sums = vec![0.0; taps.len() * channels.len()];
        let images = input.chunks_exact(g.inputs()).zip(turned.chunks_exact(places.len() * pitch));
        for (image, gradient) in images {
            let image = &image[inputs.start * plane..inputs.end * plane];
            planes.fill(arch, image, g.input, slope, &mut source);
            let (taps, places, source, sums) = (&taps, &places, &source, &mut sums);
            Outer { taps, places, source, gradient, channels: channels.clone(), sums }.run(arch);
        }
        sums
    };
    let all: Vec<Vec<f32>> = tasks.par_iter().map(sums).collect();
    let taps = g.channels[0] * g.places();
    for ((first, column), sums) in tasks.iter().zip(&all) {
        let width = columns.min(pitch - column);
        for (tap, sums) in (first * g.places()..).zip(sums.chunks_exact(width)) {
            for (channel, sum) in (*column..g.channels[1]).zip(sums) {
                result[channel * taps + tap] = *sum;
            }
        }
    }
}

/// Places that are turned before the next ones, so that both sides stay in the nearest cache.
const TILE: usize = 64;

/// Images `[batch, channels, places]` as [`Outer`] reads them: blocks of channels after one another, and in each all
/// channels of a place side by side.
fn by_blocks(images: &[f32], size: usize, places: usize, pitch: usize, lanes: usize) -> Vec<f32> {
    let mut turned = vec![0.0; images.len() / size * places * pitch];
    turned.par_chunks_exact_mut(places * pitch).zip(images.par_chunks_exact(size)).for_each(
        |(turned, image)| {
            for block in blocks(0..pitch, lanes) {
                let turned = &mut turned[block.start * places..block.end * places];
                let planes = || image.chunks_exact(places).skip(block.start).take(block.len());
                for (tile, turned) in turned.chunks_mut(TILE * block.len()).enumerate() {
                    for (channel, plane) in planes().enumerate() {
                        for (turned, value) in turned.chunks_exact_mut(block.len()).zip(&plane[tile * TILE..])
                        {
                            turned[channel] = *value;
                        }
                    }
                }
            }
        },
    );
    turned
}

/// The gradient in the bias: the sum over images and places.
pub fn bias_gradient(g: &Geometry, gradient: &[f32], result: &mut [f32]) {
    let places = g.outputs() / g.channels[1];
    let of_image = |image: &[f32]| -> Vec<f32> { image.chunks_exact(places).map(sum).collect() };
    let images: Vec<Vec<f32>> = gradient.par_chunks_exact(g.outputs()).map(of_image).collect();
    for (channel, result) in result.iter_mut().enumerate() {
        *result = images.iter().map(|sums| f64::from(sums[channel])).sum::<f64>() as f32;
    }
}

/// A sum of several at a time, which processors do side by side.
fn sum(values: &[f32]) -> f32 {
    let (lines, rest) = values.as_chunks::<16>();
    let mut sums = [0.0; 16];
    for line in lines {
        sums.iter_mut().zip(line).for_each(|(sum, value)| *sum += value);
    }
    sums.iter().chain(rest).sum()
}
