//! Makes untrusted text safe to print: escapes every character that would control a terminal, reverse the text or hide in it.
//!
//! Models, tools, servers, senders of mail and authors of files choose text that we print. [`printable`] keeps line breaks and
//! tabs; [`one_line`] is for names, titles and cells, where a line break could imitate one of our lines; [`json_text`] keeps
//! the value of a JSON document and escapes only its spelling. The host's terminal applies these functions to everything it
//! prints, so its callers do not have to; it adds colours afterwards.

use serde_json::Value as Json;
use unicode_properties::{GeneralCategory, UnicodeEmoji, UnicodeGeneralCategory};

/// Returns multi-line text with every hidden character escaped as `\u{…}`. Windows line ends become plain ones.
pub fn printable(text: &str) -> String {
    escape(text, Escaper::default())
}

/// Returns text for a single line: escapes line breaks and tabs as well.
pub fn one_line(text: &str) -> String {
    let escaper = Escaper {
        is_one_line: true,
        ..Escaper::default()
    };
    escape(text, escaper)
}

/// Returns the words of a text on one line of at most `chars_max` characters, with `…` at the cut. Does not escape hidden
/// characters; the terminal does.
pub fn summary_line(text: &str, chars_max: usize) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.chars().count() > chars_max {
        true => {
            let kept: String = line.chars().take(chars_max.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        }
        false => line,
    }
}

fn escape(text: &str, mut escaper: Escaper) -> String {
    let mut out = escaper.push(text);
    out.push_str(&escaper.finish());
    out
}

/// Returns a JSON document with the same value, in which every hidden character is written as `\uXXXX`.
///
/// JSON requires this only for characters below U+0020, but a terminal also obeys the C1 controls.
pub fn json_text(value: &Json) -> String {
    let text = value.to_string();
    let spelled = spell(&text, is_hidden);
    match printable(&spelled) == spelled {
        true => spelled,
        // Everything else that `printable` escapes, such as long runs of combining marks, is not ASCII.
        false => spell(&text, |c| !c.is_ascii()),
    }
}

/// Writes the selected characters as JSON escapes. Outside of strings a JSON document is plain ASCII, so each of these
/// characters is inside a string.
fn spell(json: &str, is_spelled: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match is_spelled(c) || c == '\u{7f}' {
            true => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            false => out.push(c),
        }
    }
    out
}

/// Returns whether a character does anything other than show itself: controls, bidirectional marks, format characters, tags,
/// variation selectors and zero-width fillers.
pub fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    match c.general_category() {
        GeneralCategory::Control
        | GeneralCategory::LineSeparator
        | GeneralCategory::ParagraphSeparator => true,
        GeneralCategory::Format => !is_visible_format(c),
        _ => is_ignorable(c),
    }
}

/// Returns whether this is an Arabic, Syriac or Kaithi sign that encloses a number. Unicode classifies these as format
/// characters, but fonts draw them.
fn is_visible_format(c: char) -> bool {
    matches!(c, '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{110bd}' | '\u{110cd}')
}

/// Returns whether Unicode calls the character default ignorable although no category says so. Fonts that do not know it draw
/// nothing.
fn is_ignorable(c: char) -> bool {
    matches!(c, '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2065}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{e0000}'..='\u{e0fff}')
}

/// Escapes text that arrives in pieces. The meaning of a character may depend on the piece before or after it.
#[derive(Debug, Default)]
pub struct Escaper {
    is_one_line: bool,
    /// Last character that was passed through as it is.
    before: Option<char>,
    /// Number of combining marks in a row.
    marks: usize,
    /// Character that is held back until the next one decides whether to escape it.
    held: Option<char>,
}

impl Escaper {
    /// Adds a piece, and returns the text that is ready to be shown.
    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            self.release(Some(c), &mut out);
            match c {
                '\r' | ZWJ | ZWNJ => self.held = Some(c),
                c => self.put(c, &mut out),
            }
        }
        out
    }

    /// Ends the text: returns the escaped form of a character that was held back, and resets the state.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        self.release(None, &mut out);
        self.before = None;
        self.marks = 0;
        out
    }

    fn release(&mut self, next: Option<char>, out: &mut String) {
        match self.held.take() {
            // A Windows line end becomes a plain line feed.
            Some('\r') if next == Some('\n') && !self.is_one_line => {}
            Some(joiner @ (ZWJ | ZWNJ)) if self.joins(joiner, next) => self.keep(joiner, out),
            Some(held) => self.show(held, out),
            None => {}
        }
    }

    fn put(&mut self, c: char, out: &mut String) {
        let is_mark = matches!(
            c.general_category(),
            GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark
        );
        self.marks = if is_mark { self.marks + 1 } else { 0 };
        match c {
            '\n' | '\t' if !self.is_one_line => self.keep(c, out),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            // Selects the text or emoji form of the character before it.
            '\u{fe0e}' | '\u{fe0f}' if self.before.is_some_and(|c| c.is_emoji_char()) => {
                self.keep(c, out);
            }
            c if is_hidden(c) || self.marks > MARKS_MAX => self.show(c, out),
            c => self.keep(c, out),
        }
    }

    /// Returns whether a joiner serves its purpose: between two emoji, or between letters of a script that needs it.
    fn joins(&self, joiner: char, next: Option<char>) -> bool {
        let (Some(before), Some(next)) = (self.before, next) else {
            return false;
        };
        let is_picture = |c: char| !c.is_ascii() && c.is_emoji_char();
        let joins_pictures =
            joiner == ZWJ && (is_picture(before) || before == '\u{fe0f}') && is_picture(next);
        joins_pictures || (is_joining_script(before) && is_joining_script(next))
    }

    fn keep(&mut self, c: char, out: &mut String) {
        self.before = Some(c);
        out.push(c);
    }

    fn show(&mut self, c: char, out: &mut String) {
        match c {
            '\r' => out.push_str("\\r"),
            c => out.extend(c.escape_unicode()),
        }
        self.before = None;
    }
}

/// Returns whether this is a letter or mark of Arabic, Syriac, the scripts of India, Tibetan, Burmese, Khmer or Mongolian.
fn is_joining_script(c: char) -> bool {
    matches!(c, '\u{620}'..='\u{dff}' | '\u{f00}'..='\u{109f}' | '\u{1780}'..='\u{18af}')
        && !is_hidden(c)
}

const ZWJ: char = '\u{200d}';
const ZWNJ: char = '\u{200c}';

/// Every living script needs fewer marks on one letter; longer runs overlap the lines above and below.
const MARKS_MAX: usize = 8;

/// Returns a count with its noun: `1 cell`, `1,240 cells`.
pub fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{} {what}s", grouped(count)),
    }
}

/// Returns a number with thousands separators: `1,240`.
pub fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_or_hides_is_shown() {
        for (text, shown) in [
            ("\u{1b}]52;c;cHduZWQ=\u{7}", "\\u{1b}]52;c;cHduZWQ=\\u{7}"),
            ("\u{9b}2J\u{7f}", "\\u{9b}2J\\u{7f}"),
            ("safe\rEVIL", "safe\\rEVIL"),
            ("a\r\nb\tc\n", "a\nb\tc\n"),
            ("1\u{8}2", "1\\u{8}2"),
            ("\u{202e}gpj.exe", "\\u{202e}gpj.exe"),
            ("\u{2067}x\u{61c}", "\\u{2067}x\\u{61c}"),
            ("pass\u{200b}word", "pass\\u{200b}word"),
            ("a\u{e0041}b\u{feff}", "a\\u{e0041}b\\u{feff}"),
            ("x\u{fe0f}\u{3164}\u{2028}", "x\\u{fe0f}\\u{3164}\\u{2028}"),
            ("a\u{200d}b", "a\\u{200d}b"),
        ] {
            assert_eq!(printable(text), shown, "{text:?}");
        }
        assert_eq!(one_line("a\r\nb\tc"), "a\\r\\nb\\tc");
        let zalgo = format!("e{}", "\u{301}".repeat(40));
        assert_eq!(printable(&zalgo).matches("\\u{301}").count(), 32);
    }

    #[test]
    fn what_people_write_stays_as_it_is() {
        for text in [
            "Grüße, 世界, שלום, مرحبا",
            "👩‍👩‍👧 ❤️‍🔥 1️⃣ 🏳️‍🌈 👍🏽",
            "می‌خواهم क्‍ष",
            "e\u{301}\u{323} ﷽ \u{600}١٢",
            "line\n\tindented",
        ] {
            assert_eq!(printable(text), text);
        }
    }

    #[test]
    fn pieces_are_escaped_like_the_whole() {
        let text = "a\r\nb\r\u{1b}[2J👩‍👧 x\u{200d}y \u{fe0f}می‌خ\u{202e}\r";
        let mut escaper = Escaper::default();
        let mut out = String::new();
        for c in text.chars() {
            out.push_str(&escaper.push(&c.to_string()));
        }
        out.push_str(&escaper.finish());
        assert_eq!(out, printable(text));
        assert_eq!(printable(&out), out, "escaped twice it is the same");
    }

    #[test]
    fn a_summary_has_no_breaks_and_ends_in_time() {
        assert_eq!(summary_line("a\n  b\tc", 9), "a b c");
        assert_eq!(summary_line("abcdefghij", 5), "abcd…");
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({ "a\u{9b}": ["\u{1b}\u{7f}\u{202e}\u{e0041}é"] });
        let text = json_text(&value);
        assert_eq!(text, r#"{"a\u009b":["\u001b\u007f\u202e\udb40\udc41é"]}"#);
        assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), value);
        let zalgo = serde_json::json!(format!("ü{}\u{7f}", "\u{301}".repeat(40)));
        let text = json_text(&zalgo);
        assert_eq!(printable(&text), text, "printing it leaves it as it is");
        assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), zalgo);
    }
}

#[test]
fn counts_are_grouped_and_have_their_plural() {
    assert_eq!(counted(1, "cell"), "1 cell");
    assert_eq!(counted(1_240, "changed cell"), "1,240 changed cells");
    assert_eq!(grouped(1_234_567), "1,234,567");
}
