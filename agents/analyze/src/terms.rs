//! Words and numbers of a text, for comparing claims with notes and for finding passages. No model is involved, so the same
//! texts always give the same result.

use std::collections::BTreeSet;

/// Returns the content words of a text in order: lowercase, without endings, without words that carry no content. Texts that
/// are written without spaces give pairs of characters.
pub(super) fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for word in words(text) {
        if word.chars().any(is_unspaced) {
            let chars: Vec<char> = word.chars().collect();
            terms.extend(chars.windows(2).map(|pair| pair.iter().collect::<String>()));
            continue;
        }
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        if !is_number && word.chars().count() > 1 && !is_empty_word(&word) {
            terms.push(stem(&word));
        }
    }
    terms
}

/// Returns the words of a text: lowercase runs of letters and digits, with the apostrophes in them.
pub(super) fn words(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '\'' || c == '’';
    text.split(|c: char| !is_part(c))
        .map(|word| word.trim_matches(['\'', '’']).replace('’', "'"))
        .filter(|word| !word.is_empty())
        .map(|word| word.to_lowercase())
        .collect()
}

/// Returns the first `chars_max` characters of a text.
pub(super) fn beginning(text: &str, chars_max: usize) -> &str {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// A number in a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Quantity {
    /// Its value, rounded to thousandths, so that equal numbers compare equal.
    pub(super) thousandths: i128,
    /// Up to two content words behind it, which say what is counted.
    pub(super) units: Vec<String>,
    /// The words directly before it, such as `at most`.
    pub(super) before: Vec<String>,
}

/// Returns the numbers of a text, written in digits (`14,000`, `2.5`, `10k`) or in words (`ten thousand`).
pub(super) fn quantities(text: &str) -> Vec<Quantity> {
    let tokens = number_tokens(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let Some((value, taken)) = number_at(&tokens[at..]) else {
            at += 1;
            continue;
        };
        let after = tokens[at + taken..]
            .iter()
            .take(4)
            .take_while(|word| number_at(std::slice::from_ref(*word)).is_none());
        let units = after.filter(|word| !is_empty_word(word)).take(2);
        found.push(Quantity {
            thousandths: (value * 1_000.0).round() as i128,
            units: units.map(|word| stem(word)).collect(),
            before: tokens[at.saturating_sub(3)..at].to_vec(),
        });
        at += taken;
    }
    found
}

/// Returns the values of the numbers of a text.
pub(super) fn numbers(text: &str) -> BTreeSet<i128> {
    let all = quantities(text).into_iter();
    all.map(|quantity| quantity.thousandths).collect()
}

/// Splits at everything but letters, digits, and the dots and commas between digits.
fn number_tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.to_lowercase().chars().collect();
    let mut tokens = vec![String::new()];
    for (at, c) in chars.iter().enumerate() {
        let is_digit = |at: Option<usize>| {
            at.and_then(|at| chars.get(at))
                .is_some_and(char::is_ascii_digit)
        };
        let is_inside =
            matches!(c, '.' | ',' | '\'') && is_digit(at.checked_sub(1)) && is_digit(Some(at + 1));
        let is_letter_mark = *c == '\'' && !is_inside;
        if c.is_alphanumeric() || is_inside || is_letter_mark {
            if let Some(token) = tokens.last_mut() {
                token.push(*c);
            }
        } else if tokens.last().is_some_and(|token| !token.is_empty()) {
            tokens.push(String::new());
        }
    }
    tokens.retain(|token| !token.is_empty());
    tokens
}

/// Returns the number at the beginning of the tokens, and how many tokens it has.
fn number_at(tokens: &[String]) -> Option<(f64, usize)> {
    let first = tokens.first()?;
    if first.starts_with(|c: char| c.is_ascii_digit()) {
        let value = digits(first)?;
        return Some(match tokens.get(1).and_then(|word| scale(word)) {
            Some(scale) => (value * scale, 2),
            None => (value, 1),
        });
    }
    // "No" and "a" are words of their own; "hundred" alone is a hundred.
    let (mut total, mut current, mut taken) = (0.0, 0.0, 0);
    for word in tokens {
        if let Some(value) = small(word) {
            current += value;
        } else if let Some(scale) = scale(word) {
            current = f64::max(current, 1.0) * scale;
            if scale >= 1_000.0 {
                total += current;
                current = 0.0;
            }
        } else {
            break;
        }
        taken += 1;
    }
    (taken > 0).then_some((total + current, taken))
}

/// Reads digits with separators and a suffix: `14,000`, `14.000`, `2.5`, `10k`, `300ms`.
fn digits(word: &str) -> Option<f64> {
    let end = word.find(|c: char| c.is_alphabetic()).unwrap_or(word.len());
    let (number, suffix) = word.split_at(end);
    let groups: Vec<&str> = number.split([',', '.', '\'']).collect();
    let is_grouped = groups.len() > 1
        && groups[0].len() <= 3
        && groups[1..].iter().all(|group| group.len() == 3);
    let plain = match is_grouped {
        true => groups.concat(),
        // A single separator is a decimal point, more of them are a date or a version.
        false if groups.len() == 2 => groups.join("."),
        false => groups.concat(),
    };
    let factor = match suffix {
        "k" => 1_000.0,
        "m" | "mio" => 1_000_000.0,
        _ => 1.0,
    };
    plain.parse::<f64>().ok().map(|value| value * factor)
}

fn small(word: &str) -> Option<f64> {
    let known = SMALL.iter().find(|(name, _)| *name == word);
    known.map(|(_, value)| f64::from(*value))
}

fn scale(word: &str) -> Option<f64> {
    match word {
        "hundred" => Some(100.0),
        "thousand" | "tausend" => Some(1_000.0),
        "million" | "millions" | "millionen" => Some(1_000_000.0),
        "billion" | "milliarden" => Some(1_000_000_000.0),
        _ => None,
    }
}

/// "One" and its German counterpart are more often articles or pronouns than numbers, so they are not here.
const SMALL: [(&str, u16); 37] = [
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("thirteen", 13),
    ("fourteen", 14),
    ("fifteen", 15),
    ("sixteen", 16),
    ("seventeen", 17),
    ("eighteen", 18),
    ("nineteen", 19),
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("seventy", 70),
    ("eighty", 80),
    ("ninety", 90),
    ("zwei", 2),
    ("drei", 3),
    ("vier", 4),
    ("fünf", 5),
    ("sechs", 6),
    ("sieben", 7),
    ("acht", 8),
    ("neun", 9),
    ("zehn", 10),
    ("zwanzig", 20),
    ("hundert", 100),
];

/// Languages that can be told apart by their commonest words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    English,
    German,
}

/// Returns the language of a text, if its common words are of one language only.
pub(super) fn language(text: &str) -> Option<Language> {
    let words = words(text);
    let has = |list: &[&str], other: &[&str]| {
        let mut own = words.iter().map(String::as_str);
        own.any(|word| list.contains(&word) && !other.contains(&word))
    };
    match (has(ENGLISH, GERMAN), has(GERMAN, ENGLISH)) {
        (true, false) => Some(Language::English),
        (false, true) => Some(Language::German),
        _ => None,
    }
}

/// Returns whether a word carries no content.
pub(super) fn is_empty_word(word: &str) -> bool {
    ENGLISH.contains(&word) || GERMAN.contains(&word)
}

/// Removes the commonest endings. Crude, but the same for both texts that are compared.
pub(super) fn stem(word: &str) -> String {
    let mut stem = word.trim_end_matches("'s").to_owned();
    for ending in ["ing", "ed", "es", "s", "ly", "e"] {
        let Some(short) = stem.strip_suffix(ending) else {
            continue;
        };
        let is_kept = (ending == "s" && short.ends_with(['s', 'u'])) || short.chars().count() < 3;
        if !is_kept {
            stem = short.to_owned();
            if ending != "ly" {
                break;
            }
        }
    }
    // "Process" and "processes", "plan" and "planned", "machine" and "machines".
    let stem = stem.strip_suffix('e').unwrap_or(&stem);
    let mut chars = stem.chars().rev();
    match (chars.next(), chars.next()) {
        (Some(last), Some(before)) if last == before && !"aeiou".contains(last) => {
            stem[..stem.len() - last.len_utf8()].to_owned()
        }
        _ => stem.to_owned(),
    }
}

/// Returns whether words of this character's script are written without spaces between them.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{0E00}'..='\u{0E7F}')
}

const ENGLISH: &[&str] = &[
    "a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "because",
    "been", "before", "but", "by", "can", "could", "did", "do", "does", "each", "for", "from",
    "had", "has", "have", "he", "her", "here", "his", "how", "i", "if", "in", "into", "is", "it",
    "its", "may", "me", "might", "more", "most", "must", "my", "of", "on", "one", "only", "or",
    "our", "per", "shall", "she", "should", "so", "some", "such", "than", "that", "the", "their",
    "them", "then", "there", "these", "they", "this", "those", "to", "too", "up", "us", "very",
    "was", "we", "were", "what", "when", "where", "which", "while", "who", "why", "will", "with",
    "would", "you", "your",
];

const GERMAN: &[&str] = &[
    "aber", "alle", "als", "am", "an", "auch", "auf", "aus", "bei", "bis", "da", "das", "dass",
    "dem", "den", "der", "des", "die", "dies", "diese", "durch", "ein", "eine", "einem", "einen",
    "einer", "er", "es", "für", "hat", "haben", "ich", "ihr", "im", "in", "ist", "kann", "mehr",
    "mit", "muss", "nach", "noch", "nur", "oder", "sein", "sich", "sie", "sind", "so", "soll",
    "sollen", "um", "und", "uns", "unser", "von", "vor", "was", "wenn", "werden", "wie", "wir",
    "wird", "zu", "zum", "zur", "über",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            &["order", "orders", "ordered", "ordering"][..],
            &["machine", "machines"],
            &["process", "processes", "processed"],
            &["plan", "plans", "planned", "planning"],
            &["queue", "queues"],
            &["customer", "customers", "customer's"],
        ] {
            let stems: BTreeSet<_> = forms.iter().map(|form| stem(form)).collect();
            assert_eq!(stems.len(), 1, "{forms:?}: {stems:?}");
        }
        assert_ne!(stem("contract"), stem("contrast"));
        assert_eq!(
            terms("The machines are in order."),
            [stem("machine"), stem("order")]
        );
        assert_eq!(terms("注文は順番"), ["注文", "文は", "は順", "順番"]);
    }

    #[test]
    fn numbers_are_read_in_digits_and_in_words() {
        let thousand = |text: &str| numbers(text).into_iter().collect::<Vec<_>>();
        for text in [
            "Ten thousand orders",
            "10,000 orders",
            "10.000 Bestellungen",
            "10k a day",
            "10 thousand",
            "zehn tausend",
        ] {
            assert_eq!(thousand(text), [10_000_000], "{text}");
        }
        assert_eq!(thousand("two hundred fifty thousand"), [250_000_000]);
        assert_eq!(thousand("2.5 s and 300ms"), [2_500, 300_000]);
        assert_eq!(thousand("nobody has run it"), Vec::<i128>::new());
        let at_most = &quantities("at most 5 new machines")[0];
        assert_eq!(at_most.before, ["at", "most"]);
        assert_eq!(at_most.units, ["new", stem("machine").as_str()]);
    }

    #[test]
    fn languages_are_told_apart_by_their_common_words() {
        assert_eq!(language("We have the queue"), Some(Language::English));
        assert_eq!(language("Wir haben eine Maschine"), Some(Language::German));
        assert_eq!(language("Kafka 3.7"), None);
    }
}
