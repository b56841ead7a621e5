//! Random choices from a seed: the same seed makes the same ones, on every machine.

/// SplitMix64: four lines, and good enough to pick instants and letters.
#[derive(Debug, Clone)]
pub(crate) struct Prng(u64);

impl Prng {
    #[cfg(feature = "bench")]
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The generator of one trial: what it draws does not depend on how much the trials before it drew.
    pub(crate) fn of_trial(seed: u64, trial: u64) -> Self {
        let mut prng = Self(seed ^ trial.wrapping_mul(0xd134_2543_de82_ef95));
        prng.next();
        prng
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Puts a list in random order.
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            let other = self.below(at as u64 + 1);
            list.swap(at, usize::try_from(other).unwrap_or(0));
        }
    }

    #[cfg(feature = "bench")]
    /// Letters, digits and blanks that no compressor likes.
    pub(crate) fn text(&mut self, bytes: usize) -> String {
        const LETTERS: &[u8; 64] =
            b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";
        (0..bytes)
            .map(|_| char::from(LETTERS[(self.next() >> 58) as usize]))
            .collect()
    }
}
