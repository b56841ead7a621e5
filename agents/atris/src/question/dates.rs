//! Dates in a question: `2026-12-03`, `2026-12-03 10:00`, `3 December 2026`, `December 3rd, 2026`.
//!
//! A date is sent as it was said, in the order of ISO 8601. No time zone is added: the question does not state one.

use super::Word;

/// Reads a date that begins at a word. Returns it with the index of the word after it.
pub(super) fn read(words: &[Word], at: usize) -> Option<(usize, String)> {
    let (end, date) = iso(words, at).or_else(|| spelled(words, at))?;
    // A time may follow, with or without `at`.
    let text = |at: usize| words.get(at).map(|word| word.text.as_str());
    let next = if text(end) == Some("at") {
        end + 1
    } else {
        end
    };
    match text(next).and_then(time) {
        Some(time) if !date.contains('T') => Some((next + 1, format!("{date}T{time}"))),
        _ => Some((end, date)),
    }
}

fn iso(words: &[Word], at: usize) -> Option<(usize, String)> {
    let text = words[at].text.as_str();
    let (date, rest) = text.split_at_checked(10)?;
    let parts: Vec<&str> = date.split('-').collect();
    let [year, month, day] = parts.as_slice() else {
        return None;
    };
    let is_date = year.len() == 4 && year.parse::<u16>().is_ok();
    let is_rest = rest.is_empty() || (rest.starts_with('T') && rest.contains(':'));
    (is_date && is_rest && is_day(month.parse().ok()?, day.parse().ok()?))
        .then(|| (at + 1, text.to_owned()))
}

fn spelled(words: &[Word], at: usize) -> Option<(usize, String)> {
    let text = |at: usize| words.get(at).map(|word| word.lower.as_str());
    let (one, two, year) = (text(at)?, text(at + 1)?, text(at + 2)?);
    let (month, day) = match (month(one), month(two)) {
        (Some(month), _) => (month, day(two)?),
        (None, Some(month)) => (month, day(one)?),
        (None, None) => return None,
    };
    let year: u16 = year
        .parse()
        .ok()
        .filter(|year| (1_000..10_000).contains(year))?;
    is_day(month, day).then(|| (at + 3, format!("{year:04}-{month:02}-{day:02}")))
}

fn month(word: &str) -> Option<u8> {
    let is_it = |name: &&str| *name == word || (word.len() == 3 && name.starts_with(word));
    let at = MONTHS.iter().position(is_it)?;
    u8::try_from(at + 1).ok()
}

fn day(word: &str) -> Option<u8> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let ending = &word[digits.len()..];
    ["", "st", "nd", "rd", "th"]
        .contains(&ending)
        .then(|| digits.parse().ok())?
}

fn time(word: &str) -> Option<String> {
    let (hour, minute) = word.split_once(':')?;
    let is_time =
        hour.parse::<u8>().ok()? < 24 && minute.len() == 2 && minute.parse::<u8>().ok()? < 60;
    is_time.then(|| format!("{hour:0>2}:{minute}:00"))
}

fn is_day(month: u8, day: u8) -> bool {
    (1..=12).contains(&month) && (1..=31).contains(&day)
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

#[cfg(test)]
mod tests {
    use crate::question::{MentionKind, Question};

    #[test]
    fn dates_are_read_in_the_usual_spellings_and_nothing_is_added() {
        for (text, date) in [
            ("on 2026-12-03", "2026-12-03"),
            ("on 2026-12-03 at 9:30", "2026-12-03T09:30:00"),
            ("at 2026-12-03T09:30:00Z", "2026-12-03T09:30:00Z"),
            ("on 3 December 2026", "2026-12-03"),
            ("on Dec 3rd, 2026", "2026-12-03"),
        ] {
            let question = Question::new(text);
            let dates: Vec<_> = question
                .mentions
                .iter()
                .filter(|mention| mention.kind == MentionKind::Date)
                .map(|mention| mention.value.as_str())
                .collect();
            assert_eq!(dates, [date], "{text}");
        }
        let no_date = Question::new("show 2026-13-40 and may 5 people");
        assert!(
            no_date
                .mentions
                .iter()
                .all(|mention| mention.kind != MentionKind::Date)
        );
    }
}
