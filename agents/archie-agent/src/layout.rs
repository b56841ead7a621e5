//! Lays out text for a terminal: breaks lines between words, never inside one, and measures in columns of the terminal.
//!
//! The text must be [`printable`](crate::printable::printable) already. A continuation line repeats the indentation and the
//! quotation marks of the line that it continues, so that a long line of a stranger cannot pass for a line of ours.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::style::{Face, RESET, Style};

/// Returns how many columns of a terminal a text takes. Wide characters take two, combining marks none.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Returns text with its lines broken between words at `width` columns.
pub fn wrap(text: &str, width: usize) -> String {
    wrap_in(Face::Plain, text, width, Style::default())
}

/// Returns text in one face, with its lines broken between words at `width` columns.
pub fn wrap_in(face: Face, text: &str, width: usize, style: Style) -> String {
    let mut flow = LineFlow::new(style);
    let mut out = String::new();
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            flow.end_line(&mut out);
        }
        flow.set_hang(&hang_of(line));
        flow.push(line, face, width, &mut out);
        flow.end_word(width, &mut out);
    }
    flow.end_face(&mut out);
    out
}

/// Returns one line made of parts in several faces, broken between words at `width` columns. Continuation lines are indented
/// by `hang` columns.
pub fn wrap_parts(parts: &[(Face, &str)], hang: usize, width: usize, style: Style) -> String {
    let mut flow = LineFlow::new(style);
    let mut out = String::new();
    flow.set_hang(&" ".repeat(hang));
    for (face, text) in parts {
        flow.push(text, *face, width, &mut out);
    }
    flow.end_word(width, &mut out);
    flow.end_face(&mut out);
    out
}

/// Returns the words of a text on one line of at most `columns_max` columns, cut after a word, with `…` at the cut.
pub fn cut(text: &str, columns_max: usize) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let line = words.join(" ");
    if columns(&line) <= columns_max {
        return line;
    }
    let room = columns_max.saturating_sub(1);
    let mut kept = String::new();
    for word in words {
        let blank = usize::from(!kept.is_empty());
        if columns(&kept) + blank + columns(word) > room {
            break;
        }
        if blank > 0 {
            kept.push(' ');
        }
        kept.push_str(word);
    }
    // The first word alone may be too long, and a single short word says less than the beginning of a long one.
    if columns(&kept) * 2 < room {
        kept.clear();
        for c in line.chars() {
            if columns(&kept) + c.width().unwrap_or(0) > room {
                break;
            }
            kept.push(c);
        }
    }
    format!("{}…", kept.trim_end())
}

/// Returns what precedes the continuation of a line: its quotation marks and its indentation, below the text of a list.
fn hang_of(line: &str) -> String {
    let lead = line
        .find(|c: char| !matches!(c, ' ' | '\t' | '>' | '|'))
        .unwrap_or(0);
    let (lead, rest) = line.split_at(lead);
    let marker = list_marker(rest).map_or(0, str::len);
    format!("{lead}{}", " ".repeat(marker))
}

/// Returns the mark at the beginning of a list item, with the blank after it.
pub(crate) fn list_marker(line: &str) -> Option<&str> {
    if ["- ", "* ", "+ "].iter().any(|mark| line.starts_with(mark)) {
        return line.get(..2);
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let is_number = (1..=DIGITS_MAX).contains(&digits)
        && [". ", ") "]
            .iter()
            .any(|end| line[digits..].starts_with(end));
    match is_number {
        true => line.get(..digits + 2),
        false => None,
    }
}

/// Composes lines from text in several faces that may arrive in pieces. A word is printed when it is complete, because only
/// then its line is known.
#[derive(Debug, Default)]
pub(crate) struct LineFlow {
    style: Style,
    /// Columns used in the current line.
    column: usize,
    has_words: bool,
    /// Blanks before the next word. They are dropped if the line breaks there.
    blanks: usize,
    word: Vec<(Face, String)>,
    hang: String,
    /// Face that the output is in.
    face: Face,
    /// Whether a word that is longer than a line is broken. Otherwise the terminal breaks it, and it can be copied whole.
    breaks_words: bool,
}

impl LineFlow {
    pub(crate) fn new(style: Style) -> Self {
        Self {
            style,
            ..Self::default()
        }
    }

    pub(crate) fn breaking_words(style: Style) -> Self {
        Self {
            breaks_words: true,
            ..Self::new(style)
        }
    }

    /// Sets what continuation lines of the current line begin with.
    pub(crate) fn set_hang(&mut self, hang: &str) {
        hang.clone_into(&mut self.hang);
    }

    /// Returns whether nothing was added since the last line ended.
    pub(crate) fn is_at_start(&self) -> bool {
        self.column == 0 && self.blanks == 0 && self.word.is_empty()
    }

    /// Adds text without line breaks.
    pub(crate) fn push(&mut self, text: &str, face: Face, width: usize, out: &mut String) {
        // Where the command that the text is in ends.
        let mut command_end = 0;
        for (at, c) in text.char_indices() {
            if c == '`' && at >= command_end {
                command_end = at + command_length(&text[at..], width);
            }
            if at < command_end {
                self.push_to_word(c, face);
                continue;
            }
            match c {
                ' ' => {
                    self.end_word(width, out);
                    self.blanks += 1;
                }
                '\t' => {
                    self.end_word(width, out);
                    self.blanks += TAB - (self.column + self.blanks) % TAB;
                }
                c => {
                    let last = self.word.last().and_then(|(_, text)| text.chars().last());
                    if last.is_some_and(|last| may_break_between(last, c)) {
                        self.end_word(width, out);
                    }
                    self.push_to_word(c, face);
                }
            }
        }
    }

    fn push_to_word(&mut self, c: char, face: Face) {
        match self.word.last_mut() {
            Some((of, text)) if *of == face => text.push(c),
            _ => self.word.push((face, c.to_string())),
        }
    }

    /// Prints the word that is complete now, on a new line if it does not fit into this one.
    pub(crate) fn end_word(&mut self, width: usize, out: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let whole: String = word.iter().map(|(_, text)| text.as_str()).collect();
        let length = columns(&whole);
        if self.has_words && self.column + self.blanks + length > width {
            self.break_line(width, out);
        } else {
            // Blanks between two faces belong to neither.
            if word.first().is_some_and(|(face, _)| *face != self.face) {
                self.end_face(out);
            }
            self.print_blanks(out);
        }
        let is_too_long = self.column + length > width;
        for (face, text) in word {
            self.set_face(face, out);
            match self.breaks_words && is_too_long {
                true => self.print_broken(&text, face, width, out),
                false => {
                    out.push_str(&text);
                    self.column += columns(&text);
                }
            }
        }
        if self.column > width && width > 0 {
            // The terminal broke the word.
            self.column = (self.column - 1) % width + 1;
        }
        self.has_words = true;
    }

    fn print_blanks(&mut self, out: &mut String) {
        let blanks = std::mem::take(&mut self.blanks);
        out.extend(std::iter::repeat_n(' ', blanks));
        self.column += blanks;
    }

    fn print_broken(&mut self, text: &str, face: Face, width: usize, out: &mut String) {
        for c in text.chars() {
            let length = c.width().unwrap_or(0);
            if self.column > 0 && self.column + length > width {
                self.break_line(width, out);
                self.set_face(face, out);
            }
            out.push(c);
            self.column += length;
        }
    }

    fn break_line(&mut self, width: usize, out: &mut String) {
        self.set_face(Face::Plain, out);
        out.push('\n');
        self.blanks = 0;
        self.column = 0;
        // Leave at least half of the line for the text.
        for c in self.hang.chars() {
            let length = match c {
                '\t' => TAB - self.column % TAB,
                c => c.width().unwrap_or(0),
            };
            if self.column + length > width / 2 {
                break;
            }
            match c {
                '\t' => out.extend(std::iter::repeat_n(' ', length)),
                c => out.push(c),
            }
            self.column += length;
        }
    }

    /// Ends the line. The caller has ended the word.
    pub(crate) fn end_line(&mut self, out: &mut String) {
        self.end_face(out);
        out.push('\n');
        self.column = 0;
        self.blanks = 0;
        self.has_words = false;
        self.hang.clear();
    }

    /// Prints a line as it is, in one face. The flow is at the start of a line.
    pub(crate) fn whole_line(&mut self, text: &str, face: Face, out: &mut String) {
        out.push_str(&self.style.paint(face, text));
        self.end_line(out);
    }

    /// Returns to ordinary text.
    pub(crate) fn end_face(&mut self, out: &mut String) {
        self.set_face(Face::Plain, out);
    }

    fn set_face(&mut self, face: Face, out: &mut String) {
        if self.face == face {
            return;
        }
        if self.face != Face::Plain && self.style.has_colours() {
            out.push_str(RESET);
        }
        out.push_str(&self.style.start(face));
        self.face = face;
    }
}

/// Returns the length of what the backtick at the beginning of a text opens, with both backticks, if it stays on one line: a
/// command that continues on the next line could not be copied.
fn command_length(text: &str, width: usize) -> usize {
    let end = text[1..].find('`').map_or(0, |inner| inner + 2);
    match columns(&text[..end]) <= width * 3 / 4 {
        true => end,
        false => 0,
    }
}

/// Returns whether a line may break between two characters that no blank separates: next to a wide character, as in Chinese
/// and Japanese, but not inside a sequence that makes one picture, nor before a closing mark.
fn may_break_between(last: char, next: char) -> bool {
    let is_wide = |c: char| c.width() == Some(2);
    let joins = |c: char| c.width() == Some(0) || matches!(c, '\u{1f3fb}'..='\u{1f3ff}');
    (is_wide(last) || is_wide(next)) && !joins(last) && !joins(next) && !is_closing(next)
}

/// Returns whether a mark belongs to the character before it.
fn is_closing(c: char) -> bool {
    matches!(
        c,
        '、' | '。'
            | '，'
            | '．'
            | '！'
            | '？'
            | '：'
            | '；'
            | '）'
            | '」'
            | '』'
            | '】'
            | '》'
            | ')'
            | ','
            | '.'
            | '!'
            | '?'
            | ':'
            | ';'
            | '"'
            | '\''
            | ']'
            | '}'
    )
}

/// Columns between two tab stops.
const TAB: usize = 8;
/// Maximum number of digits before the point of a list item.
const DIGITS_MAX: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_stays_on_one_line_if_it_fits() {
        let text = "Add one with `archie mcp add NAME` or so.";
        assert_eq!(wrap(text, 32), "Add one with\n`archie mcp add NAME` or so.");
        // It would leave most of the line before it empty.
        assert_eq!(wrap(text, 24), "Add one with `archie mcp\nadd NAME` or so.");
        assert_eq!(wrap("a lone ` is\na word", 8), "a lone `\nis\na word");
    }

    #[test]
    fn lines_break_between_words_and_keep_their_indentation() {
        assert_eq!(
            wrap("You take ten thousand orders a day.", 16),
            "You take ten\nthousand orders\na day."
        );
        assert_eq!(wrap("    to: ada and bob", 12), "    to: ada\n    and bob");
        assert_eq!(wrap("  - one two three", 11), "  - one two\n    three");
        assert_eq!(wrap("12. one two", 8), "12. one\n    two");
        assert_eq!(wrap("a\n\nb  c", 20), "a\n\nb  c");
        assert_eq!(wrap("", 20), "");
    }

    #[test]
    fn a_quotation_stays_one_on_every_line() {
        assert_eq!(
            wrap("> > pay one million now", 12),
            "> > pay one\n> > million\n> > now"
        );
        assert_eq!(wrap("| pay one million", 9), "| pay one\n| million");
        // However deep it is, half of the line is for the text, and it does not begin like a line of ours.
        let deep = format!("{}to: mallory at once", "> ".repeat(30));
        for line in wrap(&deep, 20).lines() {
            assert!(line.starts_with("> > "), "{line}");
        }
    }

    #[test]
    fn a_word_longer_than_the_line_stays_whole() {
        let url = "https://example.com/a/very/long/path";
        assert_eq!(
            wrap(&format!("see {url} now"), 12),
            format!("see\n{url}\nnow")
        );
    }

    #[test]
    fn columns_are_those_of_the_terminal() {
        assert_eq!(columns("世界"), 4);
        assert_eq!(columns("e\u{301}"), 1);
        assert_eq!(wrap("世界世界世界", 6), "世界世\n界世界");
        assert_eq!(
            wrap("世界世。", 6),
            "世界\n世。",
            "no line begins with a full stop"
        );
        assert_eq!(
            wrap("e\u{301}e\u{301} e\u{301}", 3),
            "e\u{301}e\u{301}\ne\u{301}"
        );
        assert!(!wrap("👩‍👩‍👧👩‍👩‍👧", 2).contains("\u{200d}\n"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let text =
            "Agent: I propose 三つの queues, one per customer; see `b.txt:1` — naïve? ".repeat(5);
        for width in 12..60 {
            for line in wrap(&text, width).lines() {
                assert!(columns(line) <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn a_face_ends_before_the_line_does() {
        let style = Style::new(true, false);
        assert_eq!(
            wrap_in(Face::Dim, "xx yyy", 4, style),
            "\u{1b}[2mxx\u{1b}[0m\n\u{1b}[2myyy\u{1b}[0m"
        );
        assert_eq!(
            wrap_parts(&[(Face::Bold, "a "), (Face::Plain, "b c")], 2, 4, style),
            "\u{1b}[1ma\u{1b}[0m b\n  c"
        );
    }

    #[test]
    fn a_cut_is_after_a_word() {
        assert_eq!(cut("Choose  a\nqueue", 20), "Choose a queue");
        assert_eq!(cut("Choose a message queue", 17), "Choose a message…");
        assert_eq!(cut("Choose a message queue", 16), "Choose a…");
        assert_eq!(cut("Donaudampfschifffahrt", 8), "Donauda…");
        assert_eq!(cut("世界世界", 5), "世界…");
    }
}
