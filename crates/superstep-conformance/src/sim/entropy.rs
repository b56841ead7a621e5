//! Random choices of one trial, all from its seed.

use crate::prng::Prng;

/// A die that always falls the same way for the same seed.
pub(super) struct Entropy(Prng);

impl Entropy {
    /// Streams of one seed are independent: a program does not change because a fault was added.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        Self(Prng::new(
            seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .wrapping_add(stream.wrapping_mul(0xd6e8_feb8_6659_fd93)),
        ))
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0.below(end)
    }

    /// From `low` to `high`, both included.
    pub(super) fn within(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    pub(super) fn number(&mut self) -> u64 {
        self.0.below(usize::MAX) as u64
    }

    /// True in so many of a thousand cases.
    pub(super) fn chance(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.below(1000) < per_mille as usize
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        self.0.pick(from)
    }
}

/// A plain hash, the same on every machine: FNV-1a, stirred at the end.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        h = (h ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    stir(h)
}

pub(super) fn stir(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
