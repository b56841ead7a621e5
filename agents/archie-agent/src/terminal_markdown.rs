//! Renders Markdown at a terminal while it arrives: headings and stressed words in their faces, lists with hanging
//! indentation, tables laid out when they are complete, everything broken between words.
//!
//! Only output is appended; nothing that was printed is drawn again. What cannot be decided yet, such as the rest of
//! `**important`, is held back until it can, at the latest until its line ends. A line break of the author stays one: models
//! and people mean it. Links stay as they are written, so that a reader sees where they lead.
//!
//! The text must be [`printable`](crate::printable::printable) already.

use crate::layout::{LineFlow, columns, list_marker};
use crate::style::{Face, Style};

/// Returns a whole text in Markdown for a terminal of `width` columns. It ends with a line break unless it is empty.
pub fn render(text: &str, width: usize, style: Style) -> String {
    let mut renderer = MarkdownRenderer::new(style);
    let mut out = renderer.push(text.trim_end(), width);
    out.push_str(&renderer.finish(width));
    out
}

/// Returns Markdown after who says it: on the same line, or on the line before a heading, a list, a table or a block.
pub fn labeled(label: &str, text: &str) -> String {
    let text = text.trim_start_matches('\n');
    let first = text.lines().next().unwrap_or_default();
    let is_paragraph = match start_of(first, true) {
        Some(LineStart::Text { prefix, face, .. }) => {
            prefix.trim().is_empty() && face == Face::Plain
        }
        Some(LineStart::Whole) => false,
        None => true,
    };
    match is_paragraph {
        true => format!("{label} {text}"),
        false => format!("{label}\n{text}"),
    }
}

/// Renders Markdown that arrives in pieces.
#[derive(Debug, Default)]
pub struct MarkdownRenderer {
    style: Style,
    flow: LineFlow,
    /// Beginning of the current line that is not printed yet.
    held: String,
    /// Face of the current line, once it is known what kind of line it is.
    face: Option<Face>,
    /// Rows of a table that may have more.
    table: Vec<String>,
    /// Mark that ends the open block of code: its character and its length.
    fence: Option<(char, usize)>,
    /// Text to print before the answer: on its first line, or on a line of its own before a heading, a list or a table.
    label: Option<String>,
}

/// What the beginning of a line says about it.
enum LineStart {
    /// Text after a mark of `taken` bytes, for which `prefix` is shown.
    Text {
        taken: usize,
        prefix: String,
        face: Face,
    },
    /// A line that is handled when it is complete: a row of a table, a fence, a rule.
    Whole,
}

impl MarkdownRenderer {
    /// Creates a renderer for one text.
    pub fn new(style: Style) -> Self {
        Self {
            style,
            flow: LineFlow::new(style),
            ..Self::default()
        }
    }

    /// Sets a text that is printed before the next line, such as who speaks.
    pub fn set_label(&mut self, label: &str) {
        self.label = Some(label.to_owned());
    }

    /// Adds a piece and returns what can be printed now.
    pub fn push(&mut self, text: &str, width: usize) -> String {
        let mut out = String::new();
        let mut lines = text.split('\n');
        self.held.push_str(lines.next().unwrap_or_default());
        for line in lines {
            self.end_line(width, &mut out);
            self.held.push_str(line);
        }
        self.advance(width, &mut out);
        out
    }

    /// Ends the text and returns the rest. The renderer can be used for another text.
    pub fn finish(&mut self, width: usize) -> String {
        let mut out = String::new();
        if !self.held.is_empty() || !self.flow.is_at_start() || self.face.is_some() {
            self.end_line(width, &mut out);
        }
        self.end_table(width, &mut out);
        self.print_label(&mut out);
        *self = Self::new(self.style);
        out
    }

    /// Prints what is decided of a line that is not complete.
    fn advance(&mut self, width: usize, out: &mut String) {
        if self.fence.is_some() || self.held.is_empty() {
            return;
        }
        if self.face.is_none() {
            let is_block = self.held.trim_start().starts_with(['|', '`', '~']);
            match start_of(&self.held, false) {
                Some(LineStart::Text {
                    taken,
                    prefix,
                    face,
                }) => self.start_text(taken, &prefix, face, width, out),
                // A mark that goes on and on is not one.
                None if self.held.len() > HELD_MAX && !is_block => {
                    self.start_text(0, "", Face::Plain, width, out);
                }
                Some(LineStart::Whole) | None => return,
            }
        }
        self.print_inline(false, width, out);
    }

    fn end_line(&mut self, width: usize, out: &mut String) {
        if let Some((mark, length)) = self.fence {
            let line = std::mem::take(&mut self.held);
            match is_fence_end(&line, mark, length) {
                true => self.fence = None,
                false => self
                    .flow
                    .whole_line(&format!("{CODE_INDENT}{line}"), Face::Code, out),
            }
            return;
        }
        if self.face.is_none() {
            match start_of(&self.held, true) {
                Some(LineStart::Text {
                    taken,
                    prefix,
                    face,
                }) => self.start_text(taken, &prefix, face, width, out),
                Some(LineStart::Whole) => return self.whole_line(width, out),
                // Only blanks.
                None => {
                    self.held.clear();
                    self.end_table(width, out);
                    // A blank line before the first words is not part of an answer.
                    if self.label.is_none() {
                        self.flow.end_line(out);
                    }
                    return;
                }
            }
        }
        self.print_inline(true, width, out);
        self.flow.end_word(width, out);
        self.flow.end_line(out);
        self.face = None;
    }

    fn start_text(
        &mut self,
        taken: usize,
        prefix: &str,
        face: Face,
        width: usize,
        out: &mut String,
    ) {
        self.end_table(width, out);
        let is_paragraph = prefix.trim().is_empty() && face == Face::Plain;
        match self.label.take() {
            Some(label) if is_paragraph => self.flow.push(&label, Face::Bold, width, out),
            Some(label) => self.flow.whole_line(label.trim_end(), Face::Bold, out),
            None => {}
        }
        let hang = match prefix.contains('>') {
            true => prefix.to_owned(),
            false => " ".repeat(prefix.len()),
        };
        self.flow.set_hang(&hang);
        self.flow.push(prefix, Face::Plain, width, out);
        self.held.drain(..taken);
        self.face = Some(face);
    }

    fn print_label(&mut self, out: &mut String) {
        if let Some(label) = self.label.take() {
            self.flow.whole_line(label.trim_end(), Face::Bold, out);
        }
    }

    fn print_inline(&mut self, is_whole: bool, width: usize, out: &mut String) {
        let line_face = self.face.unwrap_or_default();
        let is_whole = is_whole || self.held.len() > HELD_MAX;
        let (parts, used) = inline_parts(&self.held, is_whole);
        for (face, text) in parts {
            let face = if face == Face::Plain { line_face } else { face };
            self.flow.push(&text, face, width, out);
        }
        self.held.drain(..used);
    }

    fn whole_line(&mut self, width: usize, out: &mut String) {
        let line = std::mem::take(&mut self.held);
        let text = line.trim();
        if text.starts_with('|') {
            self.print_label(out);
            self.table.push(line);
            return;
        }
        self.end_table(width, out);
        self.print_label(out);
        let mark = text.chars().next().unwrap_or_default();
        if matches!(mark, '`' | '~') {
            self.fence = Some((mark, run_length(text, mark)));
            return;
        }
        let rule = match self.style.is_plain() {
            true => "---".to_owned(),
            false => "─".repeat(width.min(RULE_COLUMNS)),
        };
        self.flow.whole_line(&rule, Face::Dim, out);
    }

    fn end_table(&mut self, width: usize, out: &mut String) {
        let rows = std::mem::take(&mut self.table);
        let is_table = rows.get(1).is_some_and(|row| is_delimiter_row(row));
        if is_table {
            out.push_str(&Table::new(&rows).lay_out(width, self.style));
            return;
        }
        for row in rows {
            let (parts, _) = inline_parts(&row, true);
            for (face, text) in parts {
                self.flow.push(&text, face, width, out);
            }
            self.flow.end_word(width, out);
            self.flow.end_line(out);
        }
    }
}

/// Returns what kind of line begins with this text. `None` if more of it must be known first, or if it is blank.
fn start_of(held: &str, is_whole: bool) -> Option<LineStart> {
    let rest = held.trim_start_matches(' ');
    let indent = &held[..held.len() - rest.len()];
    let text = |taken: usize, mark: &str, face: Face| {
        Some(LineStart::Text {
            taken: indent.len() + taken,
            prefix: format!("{indent}{mark}"),
            face,
        })
    };
    let first = rest.chars().next()?;
    let run = run_length(rest, first);
    let is_cut = run == rest.len() && !is_whole;
    match first {
        '|' => Some(LineStart::Whole),
        '`' | '~' if run >= FENCE_MIN => Some(LineStart::Whole),
        '`' | '~' | '#' if is_cut => None,
        '#' if run <= HEADING_MAX && rest[run..].starts_with(' ') => text(run + 1, "", Face::Bold),
        '-' | '*' | '_' | '+' if rest.chars().all(|c| c == first || c == ' ') => {
            let count = rest.chars().filter(|c| *c == first).count();
            match is_whole {
                true if count >= RULE_MIN && first != '+' => Some(LineStart::Whole),
                true => text(0, "", Face::Plain),
                false => None,
            }
        }
        '>' if is_cut => None,
        '>' => {
            let blank = usize::from(rest[1..].starts_with(' '));
            text(1 + blank, "> ", Face::Plain)
        }
        _ if first.is_ascii_digit() && !is_whole => {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let after = &rest.as_bytes()[digits..];
            match after {
                [] | [b'.' | b')'] => None,
                _ => start_of_item(rest, text),
            }
        }
        _ => start_of_item(rest, text),
    }
}

fn start_of_item(
    rest: &str,
    text: impl Fn(usize, &str, Face) -> Option<LineStart>,
) -> Option<LineStart> {
    match list_marker(rest) {
        Some(marker) => text(marker.len(), &marker.replace(['*', '+'], "-"), Face::Plain),
        None => text(0, "", Face::Plain),
    }
}

fn run_length(text: &str, mark: char) -> usize {
    let run = text.chars().take_while(|c| *c == mark);
    run.map(char::len_utf8).sum()
}

fn is_fence_end(line: &str, mark: char, length: usize) -> bool {
    let line = line.trim();
    run_length(line, mark) == line.len() && line.len() >= length
}

type Parts = Vec<(Face, String)>;

/// Splits a line into parts with their faces. Returns them with the number of bytes that they cover: what cannot be decided
/// yet is left, unless the line is whole.
fn inline_parts(text: &str, is_whole: bool) -> (Parts, usize) {
    let (mut parts, mut at) = (Parts::new(), 0);
    while at < text.len() {
        let rest = &text[at..];
        let plain = rest.find(['*', '`', '\\', '&']).unwrap_or(rest.len());
        if plain > 0 {
            add_part(&mut parts, Face::Plain, &rest[..plain]);
            at += plain;
            continue;
        }
        let Some((found, used)) = marked_part(rest, is_whole) else {
            break;
        };
        for (face, text) in found {
            add_part(&mut parts, face, &text);
        }
        at += used;
    }
    (parts, at)
}

fn add_part(parts: &mut Parts, face: Face, text: &str) {
    match parts.last_mut() {
        Some((of, before)) if *of == face => before.push_str(text),
        _ => parts.push((face, text.to_owned())),
    }
}

/// Reads what begins with a mark: an escaped character, an entity, code or stressed words. `None` if more of the line must be
/// known first.
fn marked_part(rest: &str, is_whole: bool) -> Option<(Parts, usize)> {
    let literal = |length: usize| {
        let text = rest[..length].to_owned();
        Some((vec![(Face::Plain, text)], length))
    };
    let first = rest.chars().next()?;
    let run = run_length(rest, first);
    let after = &rest[run..];
    let undecided = |length: usize| match is_whole {
        true => literal(length),
        false => None,
    };
    match first {
        '\\' => match rest[1..].chars().next() {
            Some(c) if c.is_ascii_punctuation() => {
                Some((vec![(Face::Plain, c.to_string())], 1 + c.len_utf8()))
            }
            Some(_) => literal(1),
            None => undecided(1),
        },
        '&' => match ENTITIES.iter().find(|(name, _)| rest.starts_with(name)) {
            Some((name, text)) => Some((vec![(Face::Plain, (*text).to_owned())], name.len())),
            None if ENTITIES.iter().any(|(name, _)| name.starts_with(rest)) => undecided(1),
            None => literal(1),
        },
        '`' => match end_of_code(after, run) {
            Some(end) => {
                let code = &after[..end];
                let inner = code
                    .strip_prefix(' ')
                    .and_then(|code| code.strip_suffix(' '));
                let code = inner.filter(|code| !code.trim().is_empty()).unwrap_or(code);
                Some((vec![(Face::Code, code.to_owned())], run + end + run))
            }
            None => undecided(run),
        },
        _ if after.is_empty() => undecided(run),
        _ if run > STARS_MAX || after.starts_with(char::is_whitespace) => literal(run),
        _ => match end_of_stars(after, run) {
            Some(end) => {
                let face = if run > 1 { Face::Bold } else { Face::Italic };
                let (mut parts, _) = inline_parts(&after[..end], true);
                for part in &mut parts {
                    if matches!(part.0, Face::Plain | Face::Italic) {
                        part.0 = face;
                    }
                }
                Some((parts, run + end + run))
            }
            None => undecided(run),
        },
    }
}

/// Returns where the code ends that began with `run` backticks.
fn end_of_code(after: &str, run: usize) -> Option<usize> {
    let mut at = 0;
    let near = near(after);
    while let Some(found) = near[at..].find('`') {
        let length = run_length(&after[at + found..], '`');
        if length == run {
            return Some(at + found);
        }
        at += found + length;
        if at > near.len() {
            break;
        }
    }
    None
}

/// Returns where the stressed words end that began with `run` stars.
fn end_of_stars(after: &str, run: usize) -> Option<usize> {
    let mut chars = near(after).char_indices();
    let mut before = ' ';
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            before = chars.next().map_or(' ', |(_, c)| c);
            continue;
        }
        if c != '*' {
            before = c;
            continue;
        }
        let length = run_length(&after[at..], '*');
        let is_end = length == run || (length > run && length <= STARS_MAX && run != 1);
        if is_end && !before.is_whitespace() && at > 0 {
            return Some(at + length - run);
        }
        (1..length).for_each(|_| {
            chars.next();
        });
        before = '*';
    }
    None
}

/// Returns the beginning of a text in which an end is looked for. Without a limit, a line of nothing but marks would take time
/// by the square of its length.
fn near(text: &str) -> &str {
    if text.len() <= HELD_MAX {
        return text;
    }
    let mut end = HELD_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A table with its cells split.
struct Table {
    header: Vec<Parts>,
    rows: Vec<Vec<Parts>>,
}

impl Table {
    /// Splits rows of which the second one is the delimiter.
    fn new(rows: &[String]) -> Self {
        let parts = |row: &String| -> Vec<Parts> {
            let cells = cells_of(row).into_iter();
            cells.map(|cell| inline_parts(&cell, true).0).collect()
        };
        let mut split = rows.iter().map(parts);
        let header = split.next().unwrap_or_default();
        Self {
            header,
            rows: split.skip(1).collect(),
        }
    }

    fn lay_out(&self, width: usize, style: Style) -> String {
        match self.column_widths(width) {
            Some(widths) => self.as_columns(&widths, style),
            None => self.as_records(width, style),
        }
    }

    /// Returns the number of columns. A row with more cells than the header loses none of them.
    fn column_count(&self) -> usize {
        let rows = self.rows.iter().map(Vec::len);
        rows.max().unwrap_or(0).max(self.header.len())
    }

    /// Returns the width of each column, or `None` if they cannot all have a readable width.
    fn column_widths(&self, width: usize) -> Option<Vec<usize>> {
        let count = self.column_count();
        let room = width.checked_sub(GAP.len() * count.checked_sub(1)?)?;
        let of = |row: &Vec<Parts>, at: usize| row.get(at).map_or(0, width_of);
        let natural = (0..count).map(|at| {
            let rows = self.rows.iter().map(|row| of(row, at));
            let widest = rows.max().unwrap_or(0).max(of(&self.header, at));
            widest.clamp(1, room.max(1))
        });
        let mut widths: Vec<usize> = natural.collect();
        let mut all: usize = widths.iter().sum();
        while all > room {
            let widest = widths.iter_mut().max()?;
            if *widest <= CELL_MIN {
                return None;
            }
            *widest -= 1;
            all -= 1;
        }
        Some(widths)
    }

    fn as_columns(&self, widths: &[usize], style: Style) -> String {
        let mut out = String::new();
        push_row(&mut out, &self.header, widths, Face::Bold, style);
        let line = if style.is_plain() { "-" } else { "─" };
        let rules: Vec<_> = widths.iter().map(|width| line.repeat(*width)).collect();
        out.push_str(&style.paint(Face::Dim, &rules.join(GAP)));
        out.push('\n');
        for row in &self.rows {
            push_row(&mut out, row, widths, Face::Plain, style);
        }
        out
    }

    /// Returns each row as a list of cells with their names.
    fn as_records(&self, width: usize, style: Style) -> String {
        let mut out = String::new();
        for (at, row) in self.rows.iter().enumerate() {
            if at > 0 {
                out.push('\n');
            }
            for (at, cell) in row.iter().enumerate() {
                let mut flow = LineFlow::new(style);
                flow.set_hang("  ");
                if let Some(name) = self.header.get(at) {
                    for (face, text) in in_face(name, Face::Bold) {
                        flow.push(&text, face, width, &mut out);
                    }
                    flow.push(": ", Face::Plain, width, &mut out);
                }
                for (face, text) in cell {
                    flow.push(text, *face, width, &mut out);
                }
                flow.end_word(width, &mut out);
                flow.end_line(&mut out);
            }
        }
        out
    }
}

fn in_face(parts: &Parts, face: Face) -> Parts {
    let parts = parts.iter();
    let in_face = parts.map(|(of, text)| match of {
        Face::Plain => (face, text.clone()),
        of => (*of, text.clone()),
    });
    in_face.collect()
}

fn width_of(parts: &Parts) -> usize {
    parts.iter().map(|(_, text)| columns(text)).sum()
}

fn push_row(out: &mut String, row: &[Parts], widths: &[usize], face: Face, style: Style) {
    let lines = |style: Style| -> Vec<Vec<String>> {
        let cells = widths.iter().enumerate().map(|(at, width)| {
            let cell = row.get(at).map(|cell| in_face(cell, face));
            cell_lines(&cell.unwrap_or_default(), *width, style)
        });
        cells.collect()
    };
    // Without faces, a line's text has the width that is seen.
    let (shown, measured) = (lines(style), lines(Style::default()));
    let height = shown.iter().map(Vec::len).max().unwrap_or(0).max(1);
    for line in 0..height {
        let mut text = String::new();
        for (at, width) in widths.iter().enumerate() {
            let cell = shown[at].get(line).map_or("", String::as_str);
            let taken = measured[at].get(line).map_or(0, |cell| columns(cell));
            text.push_str(cell);
            if at + 1 < widths.len() {
                text.push_str(&" ".repeat(width.saturating_sub(taken)));
                text.push_str(GAP);
            }
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
}

fn cell_lines(cell: &Parts, width: usize, style: Style) -> Vec<String> {
    let mut flow = LineFlow::breaking_words(style);
    let mut out = String::new();
    for (face, text) in cell {
        flow.push(text, *face, width, &mut out);
    }
    flow.end_word(width, &mut out);
    flow.end_face(&mut out);
    out.split('\n').map(str::to_owned).collect()
}

/// Splits a row of a table at its bars, except escaped ones.
fn cells_of(row: &str) -> Vec<String> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let (mut cells, mut cell) = (Vec::new(), String::new());
    let mut chars = row.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                cell.push(c);
                cell.extend(chars.next());
            }
            '|' => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            c => cell.push(c),
        }
    }
    if !cell.trim().is_empty() {
        cells.push(cell.trim().to_owned());
    }
    cells.truncate(CELLS_MAX);
    cells
}

fn is_delimiter_row(row: &str) -> bool {
    let cells = cells_of(row);
    let is_delimiter =
        |cell: &String| cell.contains('-') && cell.chars().all(|c| matches!(c, '-' | ':' | ' '));
    !cells.is_empty() && cells.iter().all(is_delimiter)
}

/// Entities that our own pages contain.
const ENTITIES: [(&str, &str); 6] = [
    ("&amp;", "&"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&#124;", "|"),
    ("&#39;", "'"),
];

/// How many bytes of a line are held back at most, and how far apart the two ends of a stressed text may be.
const HELD_MAX: usize = 1_000;
const HEADING_MAX: usize = 6;
const FENCE_MIN: usize = 3;
const RULE_MIN: usize = 3;
const STARS_MAX: usize = 3;
const RULE_COLUMNS: usize = 40;
const CODE_INDENT: &str = "    ";
/// Space between two columns of a table.
const GAP: &str = "  ";
/// Minimum width of a column that had to be narrowed.
const CELL_MIN: usize = 8;
const CELLS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, width: usize) -> String {
        render(text, width, Style::default())
    }

    fn streamed(text: &str, width: usize, style: Style) -> String {
        let mut renderer = MarkdownRenderer::new(style);
        let mut out = String::new();
        for c in text.trim_end().chars() {
            out.push_str(&renderer.push(&c.to_string(), width));
        }
        out + &renderer.finish(width)
    }

    const PAGE: &str = "# What I understood\n\nYou take **ten thousand** orders a `day`, and *one* machine.\n\n\
                        - first item that is rather long\n  - nested item with words\n12. numbered item that wraps\n\n\
                        > quoted words of a note that wraps\n\n| Option | Cost |\n| --- | ---: |\n| **Kafka** | 3 \\| 4 |\n| none | `0` |\n\n\
                        ```rust\nfn main() { let long = \"a line of code that is not wrapped\"; }\n```\n---\nDone.\n";

    #[test]
    fn a_page_is_rendered_without_its_marks() {
        assert_eq!(
            plain(PAGE, 24),
            "What I understood\n\n\
             You take ten thousand\norders a day, and one\nmachine.\n\n\
             - first item that is\n  rather long\n  - nested item with\n    words\n12. numbered item that\n    wraps\n\n\
             > quoted words of a note\n> that wraps\n\n\
             Option  Cost\n──────  ─────\nKafka   3 | 4\nnone    0\n\n    \
             fn main() { let long = \"a line of code that is not wrapped\"; }\n\
             ────────────────────────\nDone.\n"
        );
    }

    #[test]
    fn pieces_give_the_same_as_the_whole() {
        for style in [
            Style::default(),
            Style::new(true, false),
            Style::new(false, true),
        ] {
            for width in [10, 24, 80] {
                assert_eq!(streamed(PAGE, width, style), render(PAGE, width, style));
            }
        }
    }

    #[test]
    fn words_are_printed_as_they_come() {
        let mut renderer = MarkdownRenderer::new(Style::default());
        assert_eq!(renderer.push("You take **ten", 40), "You take");
        assert_eq!(renderer.push(" thousand** ord", 40), " ten thousand");
        assert_eq!(renderer.push("ers\n", 40), " orders\n");
        assert_eq!(renderer.finish(40), "");
    }

    #[test]
    fn faces_follow_the_marks() {
        let style = Style::new(true, false);
        assert_eq!(
            render("## A `b`\n**c** *d*", 40, style),
            "\u{1b}[1mA\u{1b}[0m \u{1b}[36mb\u{1b}[0m\n\u{1b}[1mc\u{1b}[0m \u{1b}[3md\u{1b}[0m\n"
        );
    }

    #[test]
    fn marks_without_their_end_are_text() {
        for text in [
            "2 * 3 * 4",
            "a ** b",
            "**open",
            "`open",
            "*.rs and *.md",
            "snake_case and __init__",
            "C:\\dir",
            "AT&T & co",
            "#5",
            "-5 degrees",
            "3.14",
            "- ",
            "\\u{1b}[2J",
            "1",
            "*",
        ] {
            assert_eq!(plain(text, 80).trim_end(), text.trim_end());
        }
        assert_eq!(plain("\\*a\\* &amp; &#124; \\\\", 80), "*a* & | \\\n");
        assert_eq!(plain("&#27;[2J &#x1b;", 80), "&#27;[2J &#x1b;\n");
    }

    #[test]
    fn a_label_is_on_the_line_of_a_paragraph_and_before_anything_else() {
        let labeled = |text: &str| {
            let mut renderer = MarkdownRenderer::new(Style::default());
            renderer.set_label("Agent: ");
            renderer.push(text, 40) + &renderer.finish(40)
        };
        assert_eq!(labeled("Is it?"), "Agent: Is it?\n");
        assert_eq!(labeled("\n\nIs it?"), "Agent: Is it?\n");
        assert_eq!(labeled("# Head\nIs it?"), "Agent:\nHead\nIs it?\n");
        assert_eq!(labeled("- one"), "Agent:\n- one\n");
        assert_eq!(labeled("| a |\n|---|\n| b |"), "Agent:\na\n─\nb\n");
        assert_eq!(labeled(""), "Agent:\n");
        for text in ["Is it?", "# Head\nIs it?", "- one"] {
            let whole = super::labeled("Agent:", text);
            assert_eq!(plain(&whole, 40), labeled(text));
        }
    }

    #[test]
    fn a_table_fits_or_becomes_a_list() {
        let table = "| Name | What it is for |\n|---|---|\n| queue | keeps orders until a worker takes them |\n| https://example.com/long | x |";
        let shown = plain(table, 36);
        for line in shown.lines() {
            assert!(columns(line) <= 36, "{shown}");
        }
        assert!(shown.contains("keeps orders"), "{shown}");
        let wide = format!(
            "|{}\n|{}\n|{}",
            " h |".repeat(9),
            "---|".repeat(9),
            " some words |".repeat(9)
        );
        assert!(plain(&wide, 40).starts_with("h: some words\nh: some words\n"));
        assert_eq!(
            plain("| not a table |\nwords", 40),
            "| not a table |\nwords\n"
        );
        // What the header does not announce is not lost.
        assert_eq!(plain("| a |\n|---|\n| b | c |", 40), "a\n─  ─\nb  c\n");
    }

    #[test]
    fn lines_of_nothing_but_marks_take_no_time() {
        for mark in ["*a ", "`", "**a", "\\*", "&amp", "| ", "> "] {
            let text = format!("{}\nend", mark.repeat(10_000));
            assert!(plain(&text, 80).contains("end"));
        }
        let dashes = "-".repeat(20_000);
        assert!(streamed(&dashes, 80, Style::default()).contains("---"));
    }
}
