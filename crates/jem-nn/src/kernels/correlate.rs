//! The operation that a convolution and its gradient in the image both are: every output is a sum of weights
//! times inputs at fixed distances.

use pulp::{Arch, Simd, WithSimd, bytemuck};

/// Taps that are summed over before the next block of channels comes: what they read, for [`TOGETHER`] runs, stays in
/// the nearest cache while all channels use it.
const CHUNK: usize = 144;

/// Groups of registers that use the weights of a chunk one after the other.
const TOGETHER: usize = 4;

/// Channels that share every load of an input. Six, by two registers of places, keep the arithmetic busiest: the sums,
/// the inputs and a weight fill fifteen of the sixteen registers that most machines have. Where six do not nearly divide
/// the channels, four by two or three by three waste less.
fn block_size(channels: usize) -> usize {
    let padded = |block| channels.next_multiple_of(block);
    if 100 * padded(6) <= 107 * channels {
        6
    } else if padded(3) < padded(4) {
        3
    } else {
        4
    }
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

/// Weights `[taps / chunk, channels / block, chunk, block]`; channels that a last block lacks weigh nothing.
#[derive(Debug)]
pub struct Packed {
    block: usize,
    /// Blocks of channels.
    blocks: usize,
    values: Vec<f32>,
}

impl Packed {
    /// The weight of each channel and tap.
    pub fn new(taps: usize, channels: usize, weight: impl Fn(usize, usize) -> f32) -> Self {
        let block = block_size(channels);
        let blocks = channels.div_ceil(block);
        let mut values = Vec::with_capacity(blocks * block * taps);
        for start in (0..taps).step_by(CHUNK) {
            for first in (0..channels).step_by(block) {
                for tap in start..taps.min(start + CHUNK) {
                    let weights =
                        (first..first + block).map(|c| if c < channels { weight(c, tap) } else { 0.0 });
                    values.extend(weights);
                }
            }
        }
        Self { block, blocks, values }
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
            6 => self.blocks::<S, 6, 2>(simd),
            4 => self.blocks::<S, 4, 2>(simd),
            _ => self.blocks::<S, 3, 3>(simd),
        }
    }
}

impl Correlate<'_> {
    /// Chunks of taps within groups of runs, all channels within a chunk; sums that wait for their next chunk are held.
    /// `B` channels by `V` registers are summed at a time.
    #[inline(always)]
    fn blocks<S: Simd, const B: usize, const V: usize>(self, simd: S) {
        let Self { plan, source, bias, target } = self;
        let Packed { blocks, ref values, .. } = plan.weights;
        let chunks = plan.taps.len().div_ceil(CHUNK);
        let waiting = if chunks > 1 { blocks * TOGETHER } else { 0 };
        let mut held = vec![[[simd.splat_f32s(0.0); V]; B]; waiting];
        for group in plan.runs.chunks(V * TOGETHER) {
            let mut weights: &[[f32; B]] = pulp::as_arrays(values).0;
            for (chunk, taps) in plan.taps.chunks(CHUNK).enumerate() {
                for block in 0..blocks {
                    let (own, rest) = weights.split_at(taps.len());
                    weights = rest;
                    for (runs, place) in group.chunks(V).zip(block * TOGETHER..) {
                        let start =
                            if chunk == 0 { biases::<S, B, V>(simd, bias, block) } else { held[place] };
                        let from = std::array::from_fn(|v| runs[v.min(runs.len() - 1)].source);
                        let sums = sums::<S, B, V>(simd, taps, own, source, from, start);
                        if chunk + 1 == chunks {
                            plan.put::<S, B, V>(runs, &sums, &mut target[block * B * plan.plane..]);
                        } else {
                            held[place] = sums;
                        }
                    }
                }
            }
        }
    }
}

/// The sums of a block of channels.
type Sums<S, const B: usize, const V: usize> = [[<S as Simd>::f32s; V]; B];

#[inline(always)]
fn biases<S: Simd, const B: usize, const V: usize>(
    simd: S,
    bias: Option<&[f32]>,
    block: usize,
) -> Sums<S, B, V> {
    let bias = |channel: usize| bias.and_then(|bias| bias.get(block * B + channel)).copied().unwrap_or(0.0);
    std::array::from_fn(|channel| [simd.splat_f32s(bias(channel)); V])
}

impl Plan {
    /// Writes sums to where their runs go, in the planes of their channels; the last block may lack channels.
    #[inline(always)]
    fn put<S: Simd, const B: usize, const V: usize>(
        &self,
        runs: &[Run],
        sums: &Sums<S, B, V>,
        planes: &mut [f32],
    ) {
        for (plane, sums) in planes.chunks_exact_mut(self.plane).zip(sums) {
            for (run, sum) in runs.iter().zip(sums) {
                if self.step == 1 && run.count == S::F32_LANES {
                    let whole = &mut plane[run.target..run.target + S::F32_LANES];
                    S::as_mut_simd_f32s(whole).0[0] = *sum;
                    continue;
                }
                let values: &[f32] = bytemuck::cast_slice(std::slice::from_ref(sum));
                let places = plane[run.target..].iter_mut().step_by(self.step);
                places.zip(&values[..run.count]).for_each(|(place, value)| *place = *value);
            }
        }
    }
}

/// The loop that a chain spends its time in.
#[inline(always)]
fn sums<S: Simd, const B: usize, const V: usize>(
    simd: S,
    taps: &[usize],
    weights: &[[f32; B]],
    source: &[f32],
    from: [usize; V],
    start: Sums<S, B, V>,
) -> Sums<S, B, V> {
    let mut sums = start;
    for (tap, weights) in taps.iter().zip(weights) {
        let inputs: [S::f32s; V] = std::array::from_fn(|v| load::<S>(source, from[v] + tap));
        for o in 0..B {
            let weight = simd.splat_f32s(weights[o]);
            for v in 0..V {
                sums[o][v] = simd.mul_add_e_f32s(weight, inputs[v], sums[o][v]);
            }
        }
    }
    sums
}
