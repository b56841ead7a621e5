//! Removes what a model repeats from its earlier turns, and sentences that were cut off. A small model falls into repeating
//! itself, and every repetition in the history makes the next one more likely.

use std::collections::BTreeSet;

use super::terms::words;

/// Returns the text without sentences of these earlier turns. Short sentences stay: "Does that fit?" may be asked twice.
pub(super) fn without_repeats<'a>(text: &str, earlier: impl Iterator<Item = &'a str>) -> String {
    let known: BTreeSet<String> = earlier
        .flat_map(str::lines)
        .flat_map(sentences)
        .map(bare)
        .collect();
    let is_repeated = |sentence: &str| {
        let bare = bare(sentence);
        bare.split(' ').count() >= REPEATED_WORDS_MIN && known.contains(&bare)
    };
    if !text.lines().flat_map(sentences).any(is_repeated) {
        return text.to_owned();
    }
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let kept: String = sentences(line)
            .filter(|sentence| !is_repeated(sentence))
            .collect();
        let is_emptied = kept.trim().is_empty() && !line.trim().is_empty();
        // A blank line stays one, but a repeated line leaves none, and two blank lines become one.
        let is_second_blank =
            kept.trim().is_empty() && lines.last().is_none_or(|last| last.is_empty());
        if !is_emptied && !is_second_blank {
            lines.push(kept.trim_end().to_owned());
        }
    }
    let text = lines.join("\n").trim().to_owned();
    match text.contains(char::is_alphanumeric) {
        true => text,
        false => String::new(),
    }
}

/// Returns the text up to the end of its last whole sentence or line; all of it if it has none.
pub(super) fn whole_sentences(text: &str) -> &str {
    let end = text.rfind(['.', '!', '?', '\n']).map(|at| at + 1);
    let whole = end.map_or("", |end| text[..end].trim_end());
    // `1.` at the end of the text begins an item of a list.
    let is_number = |line: &str| line.trim_end_matches('.').parse::<u32>().is_ok();
    let whole = match whole.lines().last() {
        Some(last) if is_number(last.trim()) => whole[..whole.len() - last.len()].trim_end(),
        _ => whole,
    };
    if whole.is_empty() { text } else { whole }
}

fn sentences(line: &str) -> impl Iterator<Item = &str> {
    line.split_inclusive(['.', '!', '?'])
}

/// Returns the words of a sentence, without punctuation and markup.
fn bare(sentence: &str) -> String {
    words(sentence).join(" ")
}

/// Minimum length of a sentence that counts as repeated, in words.
const REPEATED_WORDS_MIN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_of_earlier_turns_are_removed_and_the_rest_stays() {
        let earlier = "The lease ends in June of next year.\n\n- **Stay**: cheap, but there is no room to grow.\nDoes that fit?";
        let repeat = |text: &str| without_repeats(text, [earlier].into_iter());
        assert_eq!(
            repeat("You have a budget. The lease ends in June of next year. Does that fit?"),
            "You have a budget. Does that fit?"
        );
        assert_eq!(
            repeat(
                "You have a budget.\n\n- Stay: cheap, but there is no room to grow.\n\nHow many?"
            ),
            "You have a budget.\n\nHow many?"
        );
        assert_eq!(repeat(&earlier.replace("\nDoes that fit?", "")), "");
        let new = "  - a\n\n\n  - b  ";
        assert_eq!(repeat(new), new, "nothing repeated, nothing changed");
    }

    #[test]
    fn a_cut_text_ends_with_its_last_whole_sentence() {
        for (text, whole) in [
            ("It is cheap. It has", "It is cheap."),
            ("Options:\n1. Stay\n2. Move becau", "Options:\n1. Stay"),
            ("no end at all", "no end at all"),
            ("Whole.", "Whole."),
            ("", ""),
        ] {
            assert_eq!(whole_sentences(text), whole, "{text}");
        }
    }
}
