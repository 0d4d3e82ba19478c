//! Sums of outer products over the places of an image: the gradient of a convolution in its weight.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::correlate::load;

/// Places that are summed over before the next taps come: their gradients and inputs stay in the nearest cache while
/// all taps use them.
const CHUNK: usize = 128;

/// Blocks of channels, two registers each, one if that is left.
pub fn blocks(channels: Range<usize>, lanes: usize) -> impl Iterator<Item = Range<usize>> {
    let end = channels.end;
    channels.step_by(2 * lanes).map(move |first| first..end.min(first + 2 * lanes))
}

/// `sums[tap][channel] += Σ over places of source[place + tap] · gradient[place][channel]`.
pub struct Outer<'a> {
    /// The distance of every tap from a place.
    pub taps: &'a [usize],
    /// Where the inputs of each place start.
    pub places: &'a [usize],
    /// The buffer of the image.
    pub source: &'a [f32],
    /// [`blocks`] of all channels after one another, each `[places, channels of the block]`.
    pub gradient: &'a [f32],
    /// The channels that are summed for; whole registers, and an even number of them unless they are the last.
    pub channels: Range<usize>,
    /// `[taps, channels]`.
    pub sums: &'a mut [f32],
}

impl Outer<'_> {
    /// Adds this image.
    pub fn run(self, arch: Arch) {
        arch.dispatch(self);
    }

    /// All taps for a block of `V` registers of channels, chunk by chunk of the places.
    #[inline(always)]
    fn block<S: Simd, const V: usize>(&mut self, simd: S, block: Range<usize>) {
        let (places, width) = (self.places, block.len());
        let gradient = &self.gradient[block.start * places.len()..block.end * places.len()];
        for (places, gradient) in places.chunks(CHUNK).zip(gradient.chunks(CHUNK * width)) {
            let mut tap = 0;
            while tap + 6 <= self.taps.len() {
                self.add::<S, 6, V>(simd, tap, block.start, places, gradient);
                tap += 6;
            }
            while tap + 3 <= self.taps.len() {
                self.add::<S, 3, V>(simd, tap, block.start, places, gradient);
                tap += 3;
            }
            while tap < self.taps.len() {
                self.add::<S, 1, V>(simd, tap, block.start, places, gradient);
                tap += 1;
            }
        }
    }

    /// `T` taps and `V` registers of channels, whose sums stay in registers.
    #[inline(always)]
    fn add<S: Simd, const T: usize, const V: usize>(
        &mut self,
        simd: S,
        tap: usize,
        channel: usize,
        places: &[usize],
        gradient: &[f32],
    ) {
        let taps: [usize; T] = std::array::from_fn(|t| self.taps[tap + t]);
        let mut sums = [[simd.splat_f32s(0.0); V]; T];
        for (place, gradient) in places.iter().zip(gradient.chunks_exact(V * S::F32_LANES)) {
            let gradients: [S::f32s; V] = std::array::from_fn(|v| load::<S>(gradient, v * S::F32_LANES));
            let source = &self.source[*place..];
            for t in 0..T {
                let value = simd.splat_f32s(source[taps[t]]);
                for v in 0..V {
                    sums[t][v] = simd.mul_add_e_f32s(value, gradients[v], sums[t][v]);
                }
            }
        }
        for (t, sums) in sums.iter().enumerate() {
            let at = (tap + t) * self.channels.len() + channel - self.channels.start;
            let row = &mut self.sums[at..][..V * S::F32_LANES];
            for (total, sum) in S::as_mut_simd_f32s(row).0.iter_mut().zip(sums) {
                *total = simd.add_f32s(*total, *sum);
            }
        }
    }
}

impl WithSimd for Outer<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for block in blocks(self.channels.clone(), S::F32_LANES) {
            if block.len() == 2 * S::F32_LANES {
                self.block::<S, 2>(simd, block);
            } else {
                self.block::<S, 1>(simd, block);
            }
        }
    }
}
