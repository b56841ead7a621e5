//! Changes inputs at random: the same seed makes the same inputs, on every machine.

use harness::prng::Prng;

/// Draws one of these; none if there are none.
fn pick<'a, T>(prng: &mut Prng, from: &'a [T]) -> Option<&'a T> {
    (!from.is_empty()).then(|| prng.pick(from))
}

/// Draws two places of a list, in order.
fn span(prng: &mut Prng, length: usize) -> (usize, usize) {
    let (one, other) = (prng.index(length + 1), prng.index(length + 1));
    (one.min(other), one.max(other))
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
        let mut bytes = pick(prng, &self.inputs).cloned().unwrap_or_default();
        for _ in 0..=prng.index(8) {
            self.change(&mut bytes, prng);
        }
        bytes.truncate(self.bytes_max);
        bytes
    }

    fn change(&self, bytes: &mut Vec<u8>, prng: &mut Prng) {
        let (from, to) = span(prng, bytes.len());
        match prng.index(9) {
            0 if !bytes.is_empty() => {
                let at = prng.index(bytes.len());
                bytes[at] ^= 1 << prng.index(8);
            }
            1 if !bytes.is_empty() => {
                let at = prng.index(bytes.len());
                bytes[at] = *pick(prng, TELLING).unwrap_or(&0);
            }
            2 => drop(bytes.drain(from..to)),
            3 => {
                // Nesting and repetition: what makes a parser slow or its stack deep.
                let copy = bytes[from..to].to_vec();
                let times = 1 + prng.index(16);
                let room = self.bytes_max.saturating_sub(bytes.len());
                let many = copy.repeat(times.min(room / copy.len().max(1)));
                bytes.splice(from..from, many);
            }
            4 | 5 => {
                if let Some(word) = pick(prng, &self.words).cloned() {
                    bytes.splice(from..from, word);
                }
            }
            6 => {
                if let Some(other) = pick(prng, &self.inputs).cloned() {
                    let (start, end) = span(prng, other.len());
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
