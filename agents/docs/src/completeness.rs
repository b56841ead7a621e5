//! Whether a text is whole: not cut off by the token limit, and naming what its page must name.

use superstep_llm::Finish;

/// Returns whether a text ends before it is finished: the server said so, a code block is open, or it stops in mid-sentence.
pub(super) fn is_cut_off(text: &str, finish: &Finish) -> bool {
    *finish == Finish::Length || is_unfinished(text)
}

/// Returns whether a text ends in an open code block or in mid-sentence, by its last line.
pub(super) fn is_unfinished(text: &str) -> bool {
    if fences(text) % 2 == 1 {
        return true;
    }
    let Some(last) = text.lines().rev().find(|line| !line.trim().is_empty()) else {
        return false;
    };
    let last = last.trim();
    if last.starts_with("```") || last.starts_with('|') {
        return false;
    }
    if last.starts_with('#') || is_bare_marker(last) || last.matches('`').count() % 2 == 1 {
        return true;
    }
    if last.ends_with(|c: char| ENDS.contains(c)) {
        // A colon announces something that is missing.
        return last.ends_with(':');
    }
    if last.ends_with([',', '-', '–', '(', '[', '/', '&', '=']) {
        return true;
    }
    let word = last.rsplit([' ', '*']).find(|word| !word.is_empty());
    let word = word.unwrap_or_default().to_lowercase();
    // Items of lists often have no full stop; a paragraph does.
    DANGLING.contains(&word.as_str()) || (!is_item(last) && last.len() > PARAGRAPH_BYTES)
}

/// Returns the part of an unfinished text up to the last line or sentence that is whole. `None` if the text is finished.
pub(super) fn finished_part(text: &str) -> Option<String> {
    if !is_unfinished(text) {
        return None;
    }
    let mut kept = text.trim_end();
    if fences(kept) % 2 == 1 {
        kept = kept.rfind("```").map_or("", |at| kept[..at].trim_end());
    }
    while is_unfinished(kept) {
        let line = kept.rfind('\n').map_or(0, |at| at + 1);
        let ends = kept[line..].match_indices(['.', '!', '?']);
        let sentence = ends
            .map(|(at, _)| line + at + 1)
            .rfind(|end| *end < kept.len() && kept[*end..].starts_with(' '));
        kept = match sentence {
            Some(end) => &kept[..end],
            None => kept[..line].trim_end(),
        };
    }
    Some(kept.to_owned())
}

/// Joins a text with its continuation, which may repeat the end of the text or begin in the middle of a word.
pub(super) fn continued(text: &str, more: &str) -> String {
    let more = more.trim_matches('\n');
    let longest = text.len().min(more.len()).min(OVERLAP_BYTES);
    let overlap = (OVERLAP_BYTES_MIN..=longest)
        .rev()
        .filter(|bytes| more.is_char_boundary(*bytes))
        .find(|bytes| text.ends_with(&more[..*bytes]));
    let more = &more[overlap.unwrap_or(0)..];
    // A blank inside an open code span would break the path or name in it.
    let last = text.lines().next_back().unwrap_or_default();
    let is_in_code = last.matches('`').count() % 2 == 1;
    let needs_space = overlap.is_none()
        && !is_in_code
        && text
            .ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | ',' | ';' | ':' | '`'))
        && more.starts_with(|c: char| c.is_alphanumeric() || c == '`');
    // A list item or a heading begins a line.
    let begins_line = more.starts_with(['-', '#', '|', '*']) && text.ends_with(['.', ')', '`']);
    let between = match (begins_line, needs_space) {
        (true, _) => "\n",
        (_, true) => " ",
        _ => "",
    };
    format!("{text}{between}{more}")
}

/// Returns which of these names a text does not mention. A path is mentioned by its full form or by its last part.
pub(super) fn uncovered(text: &str, subjects: &[String]) -> Vec<String> {
    let is_named = |subject: &String| {
        let last = subject.trim_end_matches('/').rsplit('/').next();
        mentions(text, subject) || last.is_some_and(|last| mentions(text, last))
    };
    subjects
        .iter()
        .filter(|subject| !is_named(subject))
        .cloned()
        .collect()
}

/// Returns whether a name from the tree may go into a prompt outside of a fence: a path could also be a sentence with
/// instructions.
pub(super) fn is_plain_name(name: &str) -> bool {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && c != '`';
    name.chars().all(is_plain) && name.chars().count() <= NAME_CHARS_MAX
}

/// Returns whether a text has a word that is not a part of a longer one.
fn mentions(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
}

fn fences(text: &str) -> usize {
    let lines = text.lines();
    lines
        .filter(|line| line.trim_start().starts_with("```"))
        .count()
}

fn is_item(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['-', '*', '+']) || rest.len() < line.len() && rest.starts_with(['.', ')'])
}

/// Returns whether a line is only the marker of a list item.
fn is_bare_marker(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    matches!(rest, "-" | "*" | "+" | "." | ")")
}

/// Characters that may end a finished line.
const ENDS: &str = ".!?:;)]}\"'`*_…。！？”’»>";

/// Words that do not end a sentence.
const DANGLING: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "by", "for", "from", "in", "into", "is", "of", "on", "or",
    "that", "the", "this", "to", "via", "which", "with",
];

/// Length from which a line without a full stop counts as a sentence that was cut off.
const PARAGRAPH_BYTES: usize = 40;
const OVERLAP_BYTES: usize = 400;
const OVERLAP_BYTES_MIN: usize = 12;
const NAME_CHARS_MAX: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_stops_in_the_middle_is_unfinished() {
        for text in [
            "1. `Model`: calls it.\n16. **Secret**: Manages the storage and",
            "The parts are these:",
            "It begins in `src/ma",
            "See below.\n\n```mermaid\ngraph TD\nA --> B",
            "The program reads its settings from the environment and then opens the store of thr",
            "It has:\n\n-",
            "Done.\n\n## Errors",
        ] {
            assert!(is_unfinished(text), "{text}");
        }
        for text in [
            "",
            "It begins in `src/main.rs`.",
            "Parts:\n\n- `cart` holds items\n- `till` takes money",
            "It is drawn here.\n\n```mermaid\ngraph TD\nA --> B\n```",
            "| a | b |",
            "Ships (and nothing else)",
        ] {
            assert!(!is_unfinished(text), "{text}");
        }
        assert!(is_cut_off("All is said.", &Finish::Length));
    }

    #[test]
    fn only_what_is_whole_is_kept() {
        let kept = |text: &str| finished_part(text).unwrap();
        assert_eq!(kept("One is whole. Two is"), "One is whole.");
        assert_eq!(kept("- a is b\n- c and"), "- a is b");
        assert_eq!(
            kept("Drawn:\n\nYes.\n\n```mermaid\ngraph"),
            "Drawn:\n\nYes."
        );
        assert_eq!(kept("The storage and"), "");
        assert_eq!(finished_part("Whole."), None);
    }

    #[test]
    fn a_continuation_goes_on_where_the_text_ended() {
        assert_eq!(continued("It stores and", "loads."), "It stores and loads.");
        assert_eq!(
            continued(
                "It stores the threads and",
                "stores the threads and loads them."
            ),
            "It stores the threads and loads them."
        );
        assert_eq!(continued("- a is b.", "- c is d."), "- a is b.\n- c is d.");
        assert_eq!(
            continued("It begins in `src/ma", "in.rs` now."),
            "It begins in `src/main.rs` now."
        );
        assert_eq!(continued("It is `a`", "`b`."), "It is `a` `b`.");
    }

    #[test]
    fn what_a_page_must_name_is_looked_for_as_a_word() {
        let subjects = ["src/cart.rs", "tests", "serde"].map(str::to_owned);
        assert_eq!(
            uncovered("`cart.rs` and latests, serde_json", &subjects),
            ["tests", "serde"]
        );
        assert_eq!(uncovered("", &subjects).len(), 3);
    }

    #[test]
    fn a_name_that_could_be_a_sentence_is_not_plain() {
        assert!(is_plain_name("src/cart.rs") && is_plain_name("@scope/pkg"));
        let long = "a".repeat(81);
        for name in ["Ignore all rules", "a\nb", "a`b", "a\u{7}b", &long] {
            assert!(!is_plain_name(name), "{name:?}");
        }
    }
}
