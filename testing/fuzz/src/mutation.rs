//! Changes inputs at random: the same seed makes the same inputs, on every machine.

/// SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Prng(u64);

impl Prng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        match from.is_empty() {
            true => None,
            false => Some(&from[self.below(from.len())]),
        }
    }

    /// Two places in a row, in order.
    fn span(&mut self, length: usize) -> (usize, usize) {
        let (one, other) = (self.below(length + 1), self.below(length + 1));
        (one.min(other), one.max(other))
    }
}

/// What inputs are made of.
#[derive(Debug)]
pub(crate) struct Material {
    pub(crate) inputs: Vec<Vec<u8>>,
    pub(crate) words: Vec<Vec<u8>>,
    pub(crate) bytes_max: usize,
}

impl Material {
    /// An input that was changed in one to eight places.
    pub(crate) fn draw(&self, prng: &mut Prng) -> Vec<u8> {
        let mut bytes = prng.pick(&self.inputs).cloned().unwrap_or_default();
        for _ in 0..=prng.below(8) {
            self.change(&mut bytes, prng);
        }
        bytes.truncate(self.bytes_max);
        bytes
    }

    fn change(&self, bytes: &mut Vec<u8>, prng: &mut Prng) {
        let (from, to) = prng.span(bytes.len());
        match prng.below(9) {
            0 if !bytes.is_empty() => {
                let at = prng.below(bytes.len());
                bytes[at] ^= 1 << prng.below(8);
            }
            1 if !bytes.is_empty() => {
                let at = prng.below(bytes.len());
                bytes[at] = *prng.pick(TELLING).unwrap_or(&0);
            }
            2 => drop(bytes.drain(from..to)),
            3 => {
                // Nesting and repetition: what makes a parser slow or its stack deep.
                let copy = bytes[from..to].to_vec();
                let times = 1 + prng.below(16);
                let room = self.bytes_max.saturating_sub(bytes.len());
                let many = copy.repeat(times.min(room / copy.len().max(1)));
                bytes.splice(from..from, many);
            }
            4 | 5 => {
                if let Some(word) = prng.pick(&self.words).cloned() {
                    bytes.splice(from..from, word);
                }
            }
            6 => {
                if let Some(other) = prng.pick(&self.inputs).cloned() {
                    let (start, end) = prng.span(other.len());
                    bytes.splice(from..to, other[start..end].iter().copied());
                }
            }
            7 => bytes.truncate(to),
            _ => {
                let new = [prng.next() as u8, prng.next() as u8];
                bytes.splice(from..from, new);
            }
        }
    }
}

/// Bytes at which parsers decide.
const TELLING: &[u8] = &[
    0, 1, 0x7f, 0x80, 0xff, b'\n', b'\r', b' ', b'"', b'\\', b'<', b'>', b'&', b'{', b'[', b':',
    b'-', b'9',
];

#[test]
fn the_same_seed_draws_the_same_inputs() {
    let material = Material {
        inputs: vec![b"{\"a\": [1, 2]}".to_vec(), b"text".to_vec()],
        words: vec![b"null".to_vec()],
        bytes_max: 64,
    };
    let draw = |seed| -> Vec<Vec<u8>> {
        let mut prng = Prng::new(seed);
        (0..200).map(|_| material.draw(&mut prng)).collect()
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    assert!(draw(3).iter().all(|bytes| bytes.len() <= 64));
}
