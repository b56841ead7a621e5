//! What the model sees of the notes. Notes that fit its context are shown whole. Of larger ones, the model sees the passages that
//! match the query best, always the same ones, and for each turn a few more that match the conversation.
//!
//! The ranking is BM25 over the content words, in code. Summaries by the model would cost a call for every part of the notes,
//! hours with a local model, and a summary cannot be quoted; a passage keeps its file and its line numbers. What is always shown
//! comes first and stays the same, so a server can reuse what it computed for it; what a turn adds comes last.

use std::collections::{BTreeMap, BTreeSet};

use super::state::{NotesShown, PartlyShown};
use super::terms::terms;

/// The notes of an analysis, as the model sees them.
#[derive(Debug)]
pub(super) struct NotesView<'a> {
    /// Text for the system message.
    pub(super) text: String,
    /// What does not fit; `None` if everything does.
    pub(super) shown: Option<NotesShown>,
    index: Option<Index<'a>>,
    /// Passages of the index that are in `text`.
    chosen: BTreeSet<usize>,
    /// Room for the passages of a turn, in bytes.
    turn_bytes: usize,
}

impl<'a> NotesView<'a> {
    /// Shows the notes within a context of this many tokens. Without a known size, shows them whole.
    pub(super) fn new(
        files: &'a BTreeMap<String, String>,
        query: &str,
        context_size: Option<u64>,
    ) -> Self {
        let whole = whole(files);
        let room = context_size.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        let room = room.map(|tokens| tokens.saturating_mul(TOKEN_BYTES));
        let fits = room.is_none_or(|room| whole.len() <= room / 10 * 6);
        let (Some(room), Some(context_size), false) = (room, context_size, fits) else {
            return Self {
                text: whole,
                shown: None,
                index: None,
                chosen: BTreeSet::new(),
                turn_bytes: 0,
            };
        };
        let index = Index::new(files);
        let chosen = index.choose(query, room / 100 * 45, &BTreeSet::new(), Heads::Shown);
        let partly = files.iter().filter_map(|(name, text)| {
            let of_note = chosen.iter().map(|at| &index.passages[*at]);
            let shown = of_note
                .filter(|passage| passage.file == name)
                .flat_map(|passage| &passage.lines)
                .filter(|line| !is_cut(line))
                .count();
            let lines = text.lines().count();
            (shown < lines).then(|| PartlyShown {
                name: name.clone(),
                shown,
                lines,
            })
        });
        let shown = NotesShown {
            context_size,
            partly: partly.collect(),
        };
        Self {
            text: index.render(&chosen),
            shown: Some(shown),
            chosen,
            turn_bytes: room / 100 * 10,
            index: Some(index),
        }
    }

    /// Returns further passages that match what was said last. Empty if the notes are shown whole or nothing matches.
    pub(super) fn for_turn(&self, said: &str) -> String {
        let Some(index) = &self.index else {
            return String::new();
        };
        let chosen = index.choose(said, self.turn_bytes, &self.chosen, Heads::Left);
        match chosen.is_empty() {
            true => String::new(),
            false => index.render(&chosen),
        }
    }
}

/// Returns every note with numbered lines.
fn whole(files: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (name, content) in files {
        text.push_str(&format!("=== {name}\n"));
        for (number, line) in content.lines().enumerate() {
            text.push_str(&format!("{}: {line}\n", number + 1));
        }
    }
    text
}

/// Whether the beginning of each note is shown, so that the model knows what there is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heads {
    Shown,
    Left,
}

/// A few lines of a note that belong together.
#[derive(Debug)]
struct Passage<'a> {
    file: &'a str,
    /// Index of the first line.
    first: usize,
    lines: Vec<&'a str>,
    bytes: usize,
    term_counts: BTreeMap<String, u32>,
    length: f64,
}

/// The passages of all notes, with what a ranking needs.
#[derive(Debug)]
struct Index<'a> {
    passages: Vec<Passage<'a>>,
    /// Number of passages that have a term.
    frequency: BTreeMap<String, u32>,
    average_length: f64,
}

impl<'a> Index<'a> {
    fn new(files: &'a BTreeMap<String, String>) -> Self {
        let mut passages = Vec::new();
        for (name, text) in files {
            split(name, text, &mut passages);
        }
        let mut frequency: BTreeMap<String, u32> = BTreeMap::new();
        for passage in &passages {
            for term in passage.term_counts.keys() {
                *frequency.entry(term.clone()).or_default() += 1;
            }
        }
        let total: f64 = passages.iter().map(|passage| passage.length).sum();
        let average_length = (total / (passages.len().max(1) as f64)).max(1.0);
        Self {
            passages,
            frequency,
            average_length,
        }
    }

    /// BM25 with its usual parameters.
    fn score(&self, passage: &Passage<'_>, query: &BTreeSet<String>) -> f64 {
        let count = self.passages.len() as f64;
        let scores = query.iter().map(|term| {
            let Some(hits) = passage.term_counts.get(term) else {
                return 0.0;
            };
            let having = f64::from(self.frequency.get(term).copied().unwrap_or_default());
            let rarity = (1.0 + (count - having + 0.5) / (having + 0.5)).ln();
            let hits = f64::from(*hits);
            let length = 1.0 - B + B * passage.length / self.average_length;
            rarity * hits * (K1 + 1.0) / (hits + K1 * length)
        });
        scores.sum()
    }

    /// Chooses the passages that match best and fit into `room` bytes.
    fn choose(
        &self,
        query: &str,
        room: usize,
        without: &BTreeSet<usize>,
        heads: Heads,
    ) -> BTreeSet<usize> {
        let query: BTreeSet<String> = terms(query).into_iter().collect();
        let scores: Vec<f64> = self
            .passages
            .iter()
            .map(|passage| self.score(passage, &query))
            .collect();
        let mut order: Vec<usize> = (0..self.passages.len()).collect();
        // Stable, so that equal scores keep the order of the notes.
        order.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
        let mut chosen = BTreeSet::new();
        let mut left = room;
        let mut take = |at: usize, left: &mut usize| {
            let passage = &self.passages[at];
            let bytes = passage.bytes + passage.file.len() + GAP_BYTES;
            if bytes <= *left && !without.contains(&at) && chosen.insert(at) {
                *left -= bytes;
            }
        };
        if heads == Heads::Shown {
            let mut for_heads = room / 4;
            for at in (0..self.passages.len()).filter(|at| self.passages[*at].first == 0) {
                take(at, &mut for_heads);
            }
            left = left * 3 / 4 + for_heads;
        }
        for at in order {
            // For a turn, a passage that matches nothing only takes room. The fixed part is filled.
            if scores[at] > 0.0 || heads == Heads::Shown {
                take(at, &mut left);
            }
        }
        chosen
    }

    /// Returns passages in the order of the notes, with numbered lines and a mark where lines are missing.
    fn render(&self, chosen: &BTreeSet<usize>) -> String {
        let mut text = String::new();
        let mut before: Option<usize> = None;
        let is_same_note = |one: usize, other: usize| {
            let file = |at: usize| self.passages.get(at).map(|passage| passage.file);
            file(one) == file(other)
        };
        for at in chosen {
            let passage = &self.passages[*at];
            let last = before.filter(|last| is_same_note(*last, *at));
            if last.is_none() {
                if before.is_some_and(|end| is_same_note(end, end + 1)) {
                    text.push_str(LEFT_OUT);
                }
                text.push_str(&format!("=== {}\n", passage.file));
            }
            let is_gap = match last {
                Some(last) => last + 1 != *at,
                None => passage.first > 0,
            };
            if is_gap {
                text.push_str(LEFT_OUT);
            }
            for (line_at, line) in passage.lines.iter().enumerate() {
                let number = passage.first + line_at + 1;
                let mark = if is_cut(line) { CUT } else { "" };
                text.push_str(&format!("{number}: {}{mark}\n", shortened(line)));
            }
            before = Some(*at);
        }
        if before.is_some_and(|end| is_same_note(end, end + 1)) {
            text.push_str(LEFT_OUT);
        }
        text
    }
}

/// Splits a note at headings and blank lines, and where a passage becomes too long.
fn split<'a>(file: &'a str, text: &'a str, passages: &mut Vec<Passage<'a>>) {
    let mut lines: Vec<&str> = Vec::new();
    let mut first = 0;
    let mut bytes = 0;
    for (at, line) in text.lines().enumerate() {
        let is_heading = line.starts_with('#');
        let was_blank = lines.last().is_some_and(|line| line.trim().is_empty());
        let is_full = bytes >= PASSAGE_BYTES || lines.len() >= PASSAGE_LINES;
        let is_paragraph = was_blank && bytes >= PASSAGE_BYTES / 3;
        if !lines.is_empty() && (is_heading || is_full || is_paragraph) {
            passages.push(passage(file, first, std::mem::take(&mut lines)));
            bytes = 0;
        }
        if lines.is_empty() {
            first = at;
        }
        lines.push(line);
        bytes += shortened(line).len() + 1;
    }
    if !lines.is_empty() {
        passages.push(passage(file, first, lines));
    }
}

fn passage<'a>(file: &'a str, first: usize, lines: Vec<&'a str>) -> Passage<'a> {
    let mut term_counts: BTreeMap<String, u32> = BTreeMap::new();
    let mut length = 0.0;
    for line in &lines {
        for term in terms(line) {
            *term_counts.entry(term).or_default() += 1;
            length += 1.0;
        }
    }
    let bytes = lines
        .iter()
        .map(|line| {
            let mark = if is_cut(line) { CUT.len() } else { 0 };
            shortened(line).len() + mark + NUMBER_BYTES
        })
        .sum();
    Passage {
        file,
        first,
        lines,
        bytes,
        term_counts,
        length,
    }
}

/// Returns the beginning of a line that would fill the context by itself.
fn shortened(line: &str) -> &str {
    if !is_cut(line) {
        return line;
    }
    let mut end = LINE_BYTES_MAX;
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}

/// Returns whether only the beginning of a line is shown.
fn is_cut(line: &str) -> bool {
    line.len() > LINE_BYTES_MAX
}

/// As [`superstep_llm::fit`] estimates.
const TOKEN_BYTES: usize = 3;
const PASSAGE_BYTES: usize = 600;
const PASSAGE_LINES: usize = 12;
const LINE_BYTES_MAX: usize = 1_200;
/// Room for the number of a line, the colon, the space and the line break.
const NUMBER_BYTES: usize = 9;
/// Marks where lines are missing.
const LEFT_OUT: &str = "[lines left out]\n";
/// Marks a line of which only the beginning is shown.
const CUT: &str = " [rest of the line left out]";
/// Room for two marks of missing lines and the head of a note.
const GAP_BYTES: usize = 40;
const K1: f64 = 1.2;
const B: f64 = 0.75;

#[cfg(test)]
mod tests {
    use super::*;

    fn notes() -> BTreeMap<String, String> {
        let mut big = String::from("# Log\n\n");
        for day in 1..200 {
            big.push_str(&format!(
                "## Day {day}\n\nThe team looked at dashboards and wrote reports about them.\n\n"
            ));
            if day == 150 {
                big.push_str("RabbitMQ lost three messages when the disk was full.\n\n");
            }
        }
        BTreeMap::from([
            (
                "a.md".to_owned(),
                "# Orders\n\nTen thousand orders a day.\n".to_owned(),
            ),
            ("log.md".to_owned(), big),
        ])
    }

    #[test]
    fn notes_that_fit_are_shown_whole() {
        let notes = notes();
        for size in [None, Some(1 << 20)] {
            let view = NotesView::new(&notes, "queue", size);
            assert_eq!(view.shown, None);
            assert!(view.text.contains("RabbitMQ lost three messages"));
            assert_eq!(view.for_turn("RabbitMQ"), "");
        }
    }

    #[test]
    fn of_larger_notes_the_matching_passages_are_shown_with_their_lines() {
        let notes = notes();
        let size = 2_048;
        let view = NotesView::new(&notes, "Which queue for the orders?", Some(size));
        assert!(
            view.text.len() as u64 <= size * 3 * 45 / 100 + 200,
            "{}",
            view.text.len()
        );
        // The beginning of every note, and what was left out is marked.
        assert!(
            view.text.contains("=== a.md\n1: # Orders\n"),
            "{}",
            view.text
        );
        assert!(
            view.text.contains("=== log.md\n1: # Log\n"),
            "{}",
            view.text
        );
        assert!(view.text.contains("[lines left out]"), "{}", view.text);
        assert!(!view.text.contains("RabbitMQ"), "{}", view.text);
        let shown = view.shown.as_ref().unwrap();
        let names: Vec<_> = shown.partly.iter().map(|note| note.name.as_str()).collect();
        assert_eq!(names, ["log.md"], "the small one is shown whole");
        assert!(shown.partly[0].shown < shown.partly[0].lines);
        // What the person talks about comes with its line.
        let line = notes["log.md"]
            .lines()
            .position(|line| line.contains("RabbitMQ"))
            .unwrap()
            + 1;
        let turn = view.for_turn("Did RabbitMQ ever lose messages?");
        let wanted = format!("{line}: RabbitMQ lost three messages");
        assert!(turn.contains(&wanted), "{turn}");
        assert!(turn.len() as u64 <= size * 3 / 10, "{}", turn.len());
        assert_eq!(view.for_turn("zebra"), "");
        // And the query finds it from the beginning.
        let view = NotesView::new(&notes, "Is RabbitMQ safe?", Some(size));
        assert!(view.text.contains(&wanted), "{}", view.text);
    }

    #[test]
    fn the_fixed_part_is_the_same_for_the_same_query() {
        let notes = notes();
        let text = || NotesView::new(&notes, "RabbitMQ", Some(2_048)).text;
        assert_eq!(text(), text());
    }

    #[test]
    fn a_line_that_is_cut_is_marked_and_does_not_count_as_shown() {
        let text = format!("# Log\n{}\n", "x".repeat(1 << 16));
        let notes = BTreeMap::from([("a.md".to_owned(), text)]);
        let view = NotesView::new(&notes, "x", Some(4_096));
        assert!(view.text.contains("x [rest of the line left out]\n"));
        let shown = view.shown.unwrap();
        assert_eq!((shown.partly[0].shown, shown.partly[0].lines), (1, 2));
    }

    #[test]
    fn hostile_notes_are_shown_within_the_room() {
        for text in [
            "x".repeat(1 << 20),
            "\n".repeat(1 << 18),
            "é".repeat(1 << 18),
        ] {
            let notes = BTreeMap::from([("a.md".to_owned(), text)]);
            let view = NotesView::new(&notes, "x", Some(1_024));
            assert!(view.text.len() <= 3_072, "{}", view.text.len());
            assert!(view.shown.is_some());
        }
    }
}
