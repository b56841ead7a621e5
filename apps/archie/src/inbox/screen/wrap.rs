//! Breaks a text into the rows of a pane, between words, by the columns that its characters take.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// A row of a pane: a part of the text, and how far it is moved to the right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Bytes of the text, without the line break.
    pub(super) range: Range<usize>,
    /// Columns left free before it. Rows that continue a line begin where the line began.
    pub(super) indent: usize,
}

/// Returns the rows of a text in a pane of this width, at least one.
pub(super) fn wrap(text: &str, width: usize) -> Vec<Row> {
    let width = width.max(COLUMNS_MIN);
    let mut rows = Vec::new();
    let mut start = 0;
    for line in text.split('\n') {
        wrap_line(line, start, width, &mut rows);
        start += line.len() + 1;
    }
    rows
}

fn wrap_line(line: &str, start: usize, width: usize, rows: &mut Vec<Row>) {
    let spaces = line.len() - line.trim_start_matches(' ').len();
    let hanging = spaces.min(width / 2);
    let mut row = 0..0;
    let (mut indent, mut column) = (0, 0);
    // Where the row may end: after the last space in it.
    let mut gap = 0;
    for (at, sign) in line.grapheme_indices(true) {
        let columns = sign.width();
        if indent + column + columns > width && at > row.start {
            // A word that is longer than a row breaks anywhere.
            row.end = if gap > row.start { gap } else { at };
            rows.push(placed(&row, start, indent));
            indent = hanging;
            column = line[row.end..at].width();
            row = row.end..row.end;
        }
        column += columns;
        if sign == " " && at + 1 > spaces {
            gap = at + 1;
        }
    }
    row.end = line.len();
    rows.push(placed(&row, start, indent));
}

fn placed(row: &Range<usize>, start: usize, indent: usize) -> Row {
    Row {
        range: start + row.start..start + row.end,
        indent,
    }
}

/// A narrower pane than this cuts its rows off. A wide character needs two columns.
const COLUMNS_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, width: usize) -> Vec<String> {
        let rows = wrap(text, width);
        rows.into_iter()
            .map(|row| format!("{}{}", " ".repeat(row.indent), &text[row.range]))
            .collect()
    }

    #[test]
    fn rows_break_between_words_and_keep_the_indent_of_their_line() {
        assert_eq!(shown("", 10), [""]);
        assert_eq!(
            shown("Send this to\n  everyone who asked\n", 12),
            ["Send this to", "  everyone ", "  who asked", ""]
        );
        assert_eq!(shown("abcdefghij", 4), ["abcd", "efgh", "ij"]);
    }

    #[test]
    fn wide_and_combined_characters_take_the_columns_that_a_terminal_gives_them() {
        assert_eq!(shown("日本語のメール", 6), ["日本語", "のメー", "ル"]);
        assert_eq!(
            shown("e\u{301}e\u{301}e\u{301}e\u{301}e", 4),
            ["e\u{301}e\u{301}e\u{301}e\u{301}", "e"]
        );
        assert_eq!(shown("שלום עולם", 5), ["שלום ", "עולם"]);
    }

    #[test]
    fn rows_hold_the_whole_text_at_every_width() {
        let text = "To: a@example.com\n    日本語 and a-word-that-is-longer-than-a-row, e\u{301}\n\n  end ";
        for width in 0..60 {
            let rows = wrap(text, width);
            let mut at = 0;
            for row in rows {
                assert!(
                    row.range.start == at || row.range.start == at + 1,
                    "{width}"
                );
                assert!(text[at..row.range.start].chars().all(|c| c == '\n'));
                let columns = row.indent + text[row.range.clone()].trim_end().width();
                assert!(columns <= width.max(COLUMNS_MIN), "{width}: {columns}");
                at = row.range.end;
            }
            assert_eq!(at, text.len());
        }
    }
}
