//! Sums of outer products over the places of an image: the gradient of a convolution in its weight.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::correlate::load;

/// `sums[tap][channel] += Σ over places of source[place + tap] · gradient[place][channel]`.
pub struct Outer<'a> {
    /// The distance of every tap from a place.
    pub taps: &'a [usize],
    /// Where the inputs of each place start.
    pub places: &'a [usize],
    /// The buffer of the image.
    pub source: &'a [f32],
    /// `[places, pitch]`.
    pub gradient: &'a [f32],
    /// The channels, rounded up to whole registers.
    pub pitch: usize,
    /// Of these, the ones that are summed for; whole registers.
    pub channels: Range<usize>,
    /// `[taps, channels]`.
    pub sums: &'a mut [f32],
}

impl Outer<'_> {
    /// Adds this image.
    pub fn run(self, arch: Arch) {
        arch.dispatch(self);
    }

    #[inline(always)]
    fn columns<S: Simd, const V: usize>(&mut self, simd: S, channel: usize) {
        let mut tap = 0;
        while tap + 5 <= self.taps.len() {
            self.block::<S, 5, V>(simd, tap, channel);
            tap += 5;
        }
        while tap + 2 <= self.taps.len() {
            self.block::<S, 2, V>(simd, tap, channel);
            tap += 2;
        }
        if tap < self.taps.len() {
            self.block::<S, 1, V>(simd, tap, channel);
        }
    }

    /// `T` taps and `V` registers of channels, whose sums stay in registers.
    #[inline(always)]
    fn block<S: Simd, const T: usize, const V: usize>(&mut self, simd: S, tap: usize, channel: usize) {
        let taps: [usize; T] = std::array::from_fn(|t| self.taps[tap + t]);
        let mut sums = [[simd.splat_f32s(0.0); V]; T];
        for (place, gradient) in self.places.iter().zip(self.gradient.chunks_exact(self.pitch)) {
            let gradient = &gradient[channel..channel + V * S::F32_LANES];
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
        let Range { start: mut channel, end } = self.channels;
        while channel + 2 * S::F32_LANES <= end {
            self.columns::<S, 2>(simd, channel);
            channel += 2 * S::F32_LANES;
        }
        if channel < end {
            self.columns::<S, 1>(simd, channel);
        }
    }
}
