//! Divides a page into blocks: what is in one paragraph, list item, table row or line of a diagram is said together.

use crate::mermaid;

/// A part of a text whose names belong together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TextBlock {
    /// Headings above the block, the outermost first.
    pub(super) headings: String,
    pub(super) text: String,
}

/// Returns the blocks of a Markdown text.
pub(super) fn blocks(text: &str) -> Vec<TextBlock> {
    let mut reading = Reading::default();
    for line in text.lines() {
        reading.line(line);
    }
    if let Some(code) = reading.fence.take() {
        reading.add_code(&code);
    }
    reading.end_block();
    reading.blocks
}

/// Returns whether a text has a name that is not a part of a longer word.
pub(super) fn mentions(text: &str, name: &str) -> bool {
    let is_whole = |at: usize| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        let is_tail = name.starts_with(is_word_char) && before.is_some_and(is_word_char);
        let is_head = name.ends_with(is_word_char) && after.is_some_and(is_word_char);
        !is_tail && !is_head
    };
    !name.is_empty() && text.match_indices(name).any(|(at, _)| is_whole(at))
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[derive(Debug, Default)]
struct Reading {
    /// Level and text of the headings above the current line.
    headings: Vec<(usize, String)>,
    /// Block that has begun.
    open: String,
    /// Lines of a code block that has begun.
    fence: Option<String>,
    blocks: Vec<TextBlock>,
}

impl Reading {
    fn line(&mut self, line: &str) {
        let line = line.trim();
        if line.starts_with("```") {
            match self.fence.take() {
                Some(code) => self.add_code(&code),
                None => {
                    self.end_block();
                    self.fence = Some(String::new());
                }
            }
            return;
        }
        if let Some(code) = &mut self.fence {
            code.push_str(line);
            code.push('\n');
            return;
        }
        let level = line.len() - line.trim_start_matches('#').len();
        let is_row = line.starts_with('|');
        if level > 0 || is_row || is_item(line) || line.is_empty() {
            self.end_block();
        }
        if level > 0 {
            self.add_heading(level, line);
        }
        self.open.push_str(line);
        self.open.push(' ');
        if level > 0 || is_row {
            self.end_block();
        } else if announces(line) {
            self.end_block();
            self.add_heading(ANNOUNCEMENT, line);
        }
    }

    fn add_heading(&mut self, level: usize, line: &str) {
        self.headings.retain(|(above, _)| *above < level);
        self.headings.push((level, line.to_owned()));
    }

    fn end_block(&mut self) {
        let text = std::mem::take(&mut self.open);
        self.add(text.trim().to_owned());
    }

    fn add(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        let headings = self.headings.iter().map(|(_, text)| text.as_str());
        self.blocks.push(TextBlock {
            headings: headings.collect::<Vec<_>>().join(" "),
            text,
        });
    }

    /// Adds a code block: the edges of a diagram, else its lines.
    fn add_code(&mut self, code: &str) {
        match mermaid::parse(code) {
            Ok(diagram) if !diagram.edges.is_empty() => {
                for (from, to, label) in &diagram.edges {
                    let (from_id, from) = &diagram.nodes[*from];
                    let (to_id, to) = &diagram.nodes[*to];
                    self.add(format!("{from_id} {from} {label} {to_id} {to}"));
                }
            }
            _ => {
                for line in code.lines() {
                    self.add(line.to_owned());
                }
            }
        }
    }
}

/// Returns whether a line is a list item.
fn is_item(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = match rest.len() < line.len() {
        true => rest.strip_prefix(['.', ')']),
        false => rest.strip_prefix(['-', '*', '+']),
    };
    rest.is_some_and(|rest| rest.starts_with(' '))
}

/// Returns whether a line is used as a heading: small models write `**Entry points**:` instead of one.
fn announces(line: &str) -> bool {
    line.ends_with(':')
        || line.ends_with(":**")
        || line.starts_with("**") && line.ends_with("**") && line.matches("**").count() == 2
}

/// Level of a line that is used as a heading: below all headings.
const ANNOUNCEMENT: usize = 7;
