//! Text of a server that is shown to a person or put into an error: short, and without characters that deceive a terminal.

/// Returns at most this many characters of a text, without control and formatting characters. Keeps line breaks.
pub(super) fn plain(text: &str, chars_max: usize) -> String {
    let mut shown = text.chars().filter(|c| is_plain(*c));
    let mut cut: String = shown.by_ref().take(chars_max).collect();
    if shown.next().is_some() {
        cut.push('…');
    }
    cut
}

/// Returns whether a character shows as itself: not a control character, and none that reorders or hides text.
pub(super) fn is_plain(c: char) -> bool {
    let deceives = matches!(
        c,
        '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    c == '\n' || (!c.is_control() && !deceives)
}

#[test]
fn what_deceives_a_terminal_is_removed_and_the_rest_is_cut() {
    assert_eq!(plain("a\u{1b}[2Jb\r\u{202e}c\nd", 100), "a[2Jbc\nd");
    assert_eq!(plain("abcd", 3), "abc…");
    assert_eq!(plain("abc\u{7}", 3), "abc");
}
