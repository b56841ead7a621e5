//! Whether what was printed is what a page says.

use std::collections::BTreeMap;

/// Ids of a page, each with the one of the session that it stands for.
pub(super) type Ids = BTreeMap<String, String>;

/// The ids that are bound after these lines were printed; none if a page says something else.
pub(super) fn match_lines(wanted: &[&str], lines: &[&str], ids: &Ids) -> Option<Ids> {
    match (wanted, lines) {
        ([], []) => Some(ids.clone()),
        (["…", rest @ ..], _) => {
            (0..=lines.len()).find_map(|skipped| match_lines(rest, &lines[skipped..], ids))
        }
        ([first, rest @ ..], [line, lines @ ..]) => {
            let ids = match_words(&words(first), &words(line), ids)?;
            match_lines(rest, lines, &ids)
        }
        _ => None,
    }
}

fn match_words(wanted: &[&str], found: &[&str], ids: &Ids) -> Option<Ids> {
    match (wanted, found) {
        ([], []) => Some(ids.clone()),
        (["…", rest @ ..], _) => {
            (0..=found.len()).find_map(|skipped| match_words(rest, &found[skipped..], ids))
        }
        ([wanted, rest @ ..], [word, found @ ..]) => {
            let ids = match_word(wanted, word, ids)?;
            match_words(rest, found, &ids)
        }
        _ => None,
    }
}

fn match_word(wanted: &str, word: &str, ids: &Ids) -> Option<Ids> {
    if is_date(wanted) && is_date(word) {
        return Some(ids.clone());
    }
    if !is_id(wanted) {
        return (wanted == word).then(|| ids.clone());
    }
    // The beginning of a thread's id is as long as it must be to name one thread.
    let is_beginning = |id: &str| (8..36).contains(&id.len());
    let is_as_long = wanted.len() == word.len() || (is_beginning(wanted) && is_beginning(word));
    let is_like = is_as_long && word.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit());
    let is_bound = ids.get(wanted).is_none_or(|bound| bound == word);
    (is_like && is_bound).then(|| {
        let mut ids = ids.clone();
        ids.insert(wanted.to_owned(), word.to_owned());
        ids
    })
}

/// Hexadecimal with a digit and a letter, of six or more, dashes between them allowed.
fn is_id(word: &str) -> bool {
    let has = |is: fn(&u8) -> bool| word.bytes().any(|byte| is(&byte));
    word.len() >= 6
        && word
            .bytes()
            .all(|b| b == b'-' || b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_lowercase)
}

fn is_date(word: &str) -> bool {
    let parts: Vec<&str> = word.split('-').collect();
    let are_numbers = parts
        .iter()
        .all(|part| part.bytes().all(|b| b.is_ascii_digit()));
    are_numbers && parts.iter().map(|part| part.len()).eq([4, 2, 2])
}

/// A line as words and what is between them, each character of that alone.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_alphanumeric() || c == '-';
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end.max(match is_part(first) {
            true => 0,
            false => first.len_utf8(),
        }));
        words.push(word);
        rest = after;
    }
    words
}

pub(super) fn replace_words(text: &str, ids: &Ids) -> String {
    let replace = |word: &str| ids.get(word).map_or(word, String::as_str).to_owned();
    text.split_inclusive('\n')
        .flat_map(words)
        .map(replace)
        .collect()
}
