//! Random choices from a seed: the same seed makes the same ones, on every machine.

/// SplitMix64: four lines, and good enough to pick instants, letters and test cases.
#[derive(Debug, Clone)]
pub struct Prng(u64);

impl Prng {
    /// Creates one that makes the choices of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates the generator of one trial: what it draws does not depend on how much the trials before it drew.
    pub fn of_trial(seed: u64, trial: u64) -> Self {
        let mut prng = Self(seed ^ trial.wrapping_mul(0xd134_2543_de82_ef95));
        prng.next();
        prng
    }

    /// Draws a number.
    #[expect(
        clippy::should_implement_trait,
        reason = "it never ends, so it is not an iterator"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws a number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Draws an index of a list of this length, which is not 0.
    pub fn index(&mut self, length: usize) -> usize {
        (self.next() % length as u64) as usize
    }

    /// Draws one of these, of which there is at least one.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }

    /// Puts a list in random order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.index(at + 1));
        }
    }

    /// Draws letters, digits and blanks that no compressor likes.
    pub fn text(&mut self, bytes: usize) -> String {
        const LETTERS: &[u8; 64] =
            b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";
        (0..bytes)
            .map(|_| char::from(LETTERS[(self.next() >> 58) as usize]))
            .collect()
    }
}

/// Hashes a text under a seed, the same in every process: FNV-1a, stirred.
pub fn mix(seed: u64, text: &str) -> u64 {
    let bytes = seed.to_le_bytes();
    let hash = bytes
        .iter()
        .chain(text.as_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    Prng(hash).next()
}

#[test]
fn choices_follow_from_the_seed() {
    let draw = |mut prng: Prng| [(); 3].map(|()| prng.next());
    // The first numbers of SplitMix64 from the seed 0, as its authors give them.
    let known = [
        0xe220_a839_7b1d_cdaf,
        0x6e78_9e6a_a1b9_65f4,
        0x06c4_5d18_8009_454f,
    ];
    assert_eq!(draw(Prng::new(0)), known);
    assert_ne!(draw(Prng::of_trial(1, 1)), draw(Prng::of_trial(1, 2)));
    let mut list = [1, 2, 3, 4, 5];
    Prng::new(7).shuffle(&mut list);
    list.sort_unstable();
    assert_eq!(list, [1, 2, 3, 4, 5]);
    assert_ne!(mix(1, "a"), mix(2, "a"));
}
