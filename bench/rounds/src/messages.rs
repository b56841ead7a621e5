//! The messages that nodes append.

use std::sync::LazyLock;

/// A message of 200 bytes: random letters, so that no compression hides what a store keeps.
///
/// They are made once. What a node takes to think of its words is not what is measured.
pub fn message(number: usize) -> &'static str {
    &MESSAGES[number % MESSAGES.len()]
}

static MESSAGES: LazyLock<Vec<String>> = LazyLock::new(|| (0..COUNT).map(letters).collect());

fn letters(number: u64) -> String {
    let mut state = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let letter = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(LETTERS[(state >> 58) as usize])
    };
    (0..BYTES).map(letter).collect()
}

const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";
const COUNT: u64 = 512;
const BYTES: usize = 200;

#[test]
fn messages_have_their_length_and_differ() {
    assert!((0..600).all(|number| message(number).len() == BYTES));
    assert_ne!(message(0), message(1));
}
