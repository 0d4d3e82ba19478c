//! The operation that a convolution and its gradient in the image both are: every output is a sum of weights
//! times inputs at fixed distances.

use pulp::{Arch, Simd, WithSimd, bytemuck};

/// Registers of neighbouring places that share every weight. With a block of six channels the sums, the inputs and
/// a weight fill fifteen of the sixteen registers that most machines have.
const REGISTERS: usize = 2;

/// Channels that share every load of an input: six keep the arithmetic busiest, four waste less where six do not
/// divide the channels.
fn block_size(channels: usize) -> usize {
    let padded = channels.next_multiple_of(6);
    if 100 * padded <= 107 * channels { 6 } else { 4 }
}

/// Neighbouring outputs in a row: where their inputs start, where they go, how many they are.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// Into the buffer of the image.
    pub source: usize,
    /// Into the plane of a channel.
    pub target: usize,
    /// At most one register.
    pub count: usize,
}

/// What is summed for the outputs of an image.
#[derive(Debug)]
pub struct Plan {
    /// The distance of every tap from the start of a run.
    pub taps: Vec<usize>,
    /// The weights in the order in which they are read.
    pub weights: Packed,
    /// Every output of a channel.
    pub runs: Vec<Run>,
    /// The distance between two neighbours of a run in the plane.
    pub step: usize,
    /// The numbers in the plane of a channel.
    pub plane: usize,
}

impl Plan {
    /// Sets the outputs `[channels, plane]` that this plan has runs for.
    pub fn run(&self, arch: Arch, source: &[f32], bias: Option<&[f32]>, target: &mut [f32]) {
        arch.dispatch(Correlate { plan: self, source, bias, target });
    }
}

/// The runs of a grid of outputs, whole registers and what is left of each row.
pub fn runs(size: [usize; 2], lanes: usize, run: impl Fn(usize, usize, usize) -> Run) -> Vec<Run> {
    let mut runs = Vec::with_capacity(size[0] * size[1].div_ceil(lanes));
    for row in 0..size[0] {
        runs.extend((0..size[1]).step_by(lanes).map(|column| run(row, column, lanes.min(size[1] - column))));
    }
    runs
}

/// Weights `[channels / block, taps, block]`; channels that a last block lacks weigh nothing.
#[derive(Debug)]
pub struct Packed {
    block: usize,
    values: Vec<f32>,
}

impl Packed {
    /// The weight of each channel and tap.
    pub fn new(taps: usize, channels: usize, weight: impl Fn(usize, usize) -> f32) -> Self {
        let block = block_size(channels);
        let mut values = Vec::with_capacity(channels.next_multiple_of(block) * taps);
        for first in (0..channels).step_by(block) {
            for tap in 0..taps {
                values
                    .extend((first..first + block).map(|c| if c < channels { weight(c, tap) } else { 0.0 }));
            }
        }
        Self { block, values }
    }
}

/// The numbers that a register of this machine holds.
pub fn lanes(arch: Arch) -> usize {
    struct Lanes;
    impl WithSimd for Lanes {
        type Output = usize;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> usize {
            S::F32_LANES
        }
    }
    arch.dispatch(Lanes)
}

#[inline(always)]
pub(super) fn load<S: Simd>(source: &[f32], at: usize) -> S::f32s {
    S::as_simd_f32s(&source[at..at + S::F32_LANES]).0[0]
}

struct Correlate<'a> {
    plan: &'a Plan,
    source: &'a [f32],
    bias: Option<&'a [f32]>,
    target: &'a mut [f32],
}

impl WithSimd for Correlate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self.plan.weights.block {
            6 => self.blocks::<S, 6>(simd),
            _ => self.blocks::<S, 4>(simd),
        }
    }
}

impl Correlate<'_> {
    #[inline(always)]
    fn blocks<S: Simd, const B: usize>(self, simd: S) {
        let Self { plan, source, bias, target } = self;
        let weights = plan.weights.values.chunks_exact((plan.taps.len() * B).max(1));
        for (block, (weights, planes)) in weights.zip(target.chunks_mut(B * plan.plane)).enumerate() {
            let start: [S::f32s; B] = std::array::from_fn(|o| {
                simd.splat_f32s(bias.and_then(|bias| bias.get(block * B + o)).copied().unwrap_or(0.0))
            });
            for runs in plan.runs.chunks(REGISTERS) {
                let from = std::array::from_fn(|v| runs[v.min(runs.len() - 1)].source);
                let sums = sums::<S, B>(simd, &plan.taps, pulp::as_arrays(weights).0, source, from, start);
                for (plane, sums) in planes.chunks_exact_mut(plan.plane).zip(&sums) {
                    for (run, sum) in runs.iter().zip(sums) {
                        let values: &[f32] = bytemuck::cast_slice(std::slice::from_ref(sum));
                        let values = &values[..run.count];
                        if plan.step == 1 {
                            plane[run.target..run.target + run.count].copy_from_slice(values);
                        } else {
                            let places = plane[run.target..].iter_mut().step_by(plan.step);
                            places.zip(values).for_each(|(place, value)| *place = *value);
                        }
                    }
                }
            }
        }
    }
}

/// The loop that a chain spends its time in.
#[inline(always)]
fn sums<S: Simd, const B: usize>(
    simd: S,
    taps: &[usize],
    weights: &[[f32; B]],
    source: &[f32],
    from: [usize; REGISTERS],
    start: [S::f32s; B],
) -> [[S::f32s; REGISTERS]; B] {
    let mut sums: [[S::f32s; REGISTERS]; B] = std::array::from_fn(|o| [start[o]; REGISTERS]);
    for (tap, weights) in taps.iter().zip(weights) {
        let inputs: [S::f32s; REGISTERS] = std::array::from_fn(|v| load::<S>(source, from[v] + tap));
        for o in 0..B {
            let weight = simd.splat_f32s(weights[o]);
            for v in 0..REGISTERS {
                sums[o][v] = simd.mul_add_e_f32s(weight, inputs[v], sums[o][v]);
            }
        }
    }
    sums
}
