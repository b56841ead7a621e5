//! Checks the citations of claims against the notes, in code rather than by the model.

use std::collections::BTreeMap;

use super::state::{Finding, Source, Support};

/// Checks whether the cited file contains the quote. If the quote is in another line, corrects `source.line`.
pub fn check(source: &mut Source, contents: &BTreeMap<String, String>) -> Support {
    let Some(text) = contents.get(&source.file) else {
        return Support::Unsupported;
    };
    let wanted = plain(&source.quote);
    if wanted.chars().count() < QUOTE_CHARS_MIN {
        return Support::Unsupported;
    }
    let lines: Vec<String> = text.lines().map(plain).collect();
    let has = |line: usize| lines.get(line).is_some_and(|line| line.contains(&wanted));
    let at = (source.line as usize).saturating_sub(1);
    if has(at) {
        return Support::Quoted;
    }
    // Take the nearest line with the quote: models miscount lines.
    let found = (0..lines.len())
        .filter(|line| has(*line))
        .min_by_key(|line| line.abs_diff(at));
    match found {
        Some(line) => {
            source.line = u32::try_from(line + 1).unwrap_or(u32::MAX);
            Support::Moved
        }
        None => Support::Unsupported,
    }
}

/// Checks all findings again with other inputs. Returns those that have lost their support.
pub fn recheck(findings: &mut [Finding], contents: &BTreeMap<String, String>) -> Vec<Finding> {
    let mut stale = Vec::new();
    for finding in findings {
        let Some(source) = &mut finding.source else {
            continue;
        };
        let before = finding.support;
        finding.support = check(source, contents);
        if finding.support == Support::Unsupported && before != Support::Unsupported {
            stale.push(finding.clone());
        }
    }
    stale
}

/// Returns the text without the differences that do not matter in a quote: case, whitespace and Markdown marks.
fn plain(text: &str) -> String {
    let words = text
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| "*_`\"“”#>".contains(c)));
    words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
        .to_lowercase()
}

/// Minimum length of a quote, in characters. A shorter one would match almost anywhere.
const QUOTE_CHARS_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(line: u32, quote: &str) -> (Support, u32) {
        let contents = BTreeMap::from([(
            "a.md".to_owned(),
            "# Orders\n\nOrders of **one customer** must stay in order.\nTen thousand a day.\n"
                .to_owned(),
        )]);
        let mut source = Source {
            file: "a.md".to_owned(),
            line,
            quote: quote.to_owned(),
        };
        let support = check(&mut source, &contents);
        (support, source.line)
    }

    #[test]
    fn a_quote_is_looked_up_where_it_is_said_to_be() {
        assert_eq!(
            checked(3, "orders of one customer must stay"),
            (Support::Quoted, 3)
        );
        assert_eq!(checked(1, "Ten thousand a day"), (Support::Moved, 4));
        assert_eq!(checked(3, "a million a day"), (Support::Unsupported, 3));
        assert_eq!(checked(3, "of"), (Support::Unsupported, 3));
        assert_eq!(checked(99, "Ten thousand"), (Support::Moved, 4));
    }
}
