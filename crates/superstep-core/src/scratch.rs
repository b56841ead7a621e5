//! A buffer per OS thread, for bytes that are copied to their final place once their length is known.

use std::cell::Cell;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Largest buffer to keep. A program that once encoded a large value must not hold its memory.
const BYTES_KEPT_MAX: usize = 64 * 1024;

/// Capacity for a typical entry or update, so that a new buffer need not grow while it is written.
const BYTES_EXPECTED: usize = 512;

/// Calls `write` with an empty buffer, and returns its result. A call inside of `write` gets another buffer.
pub(crate) fn with_scratch<T>(write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    // While a thread ends, it has no buffer any more.
    let mut bytes = SCRATCH.try_with(Cell::take).unwrap_or_default();
    bytes.clear();
    bytes.reserve(BYTES_EXPECTED);
    let result = write(&mut bytes);
    if bytes.capacity() <= BYTES_KEPT_MAX {
        let _ = SCRATCH.try_with(|scratch| scratch.set(bytes));
    }
    result
}

#[test]
fn a_buffer_is_empty_whatever_was_written_before_or_around() {
    let inner = with_scratch(|outer| {
        outer.extend_from_slice(b"outer");
        let inner = with_scratch(|inner| {
            assert!(inner.is_empty());
            inner.extend_from_slice(b"inner");
            inner.clone()
        });
        assert_eq!(outer, b"outer");
        inner
    });
    assert_eq!(inner, b"inner");
    with_scratch(|again| assert!(again.is_empty()));
    with_scratch(|large| large.resize(BYTES_KEPT_MAX + 1, 0));
    with_scratch(|small| assert!(small.capacity() <= BYTES_KEPT_MAX));
}
