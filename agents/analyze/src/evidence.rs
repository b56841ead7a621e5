//! Checks the citations of claims against the notes, in code rather than by the model: whether a quote is in the cited line,
//! and whether that line has to do with the claim.

use std::collections::{BTreeMap, BTreeSet};

use super::contradiction::is_negated;
use super::pdf::{is_pdf, page_beginning, page_of};
use super::state::{Evidence, Finding, Source, Support};
use super::terms::{beginning, language, numbers, terms};

/// Checks the citation of a finding, and how far the cited line supports the claim.
pub fn check_finding(finding: &mut Finding, contents: &BTreeMap<String, String>) {
    let Some(source) = &mut finding.source else {
        finding.evidence = None;
        return;
    };
    finding.support = check(source, contents);
    source.page = match (finding.support, contents.get(&source.file)) {
        (Support::Quoted | Support::Moved, Some(text)) => page_of(&source.file, text, source.line),
        _ => None,
    };
    finding.evidence = Some(match finding.support {
        Support::Quoted | Support::Moved => {
            let text = contents.get(&source.file).map_or("", String::as_str);
            let at = (source.line as usize).saturating_sub(1);
            compare(&finding.claim, text.lines().nth(at).unwrap_or_default())
        }
        Support::Unsupported | Support::Said => Evidence::Unsupported,
    });
}

/// Lines of the notes by their content words, so that the line that says a claim is found without comparing it with every line.
#[derive(Debug, Default)]
pub(super) struct NoteLines<'a> {
    lines: Vec<NoteLine<'a>>,
    by_term: BTreeMap<String, Vec<usize>>,
}

#[derive(Debug, Clone, Copy)]
struct NoteLine<'a> {
    file: &'a str,
    number: u32,
    /// Page of the line, if the note is a PDF file.
    page: Option<u32>,
    text: &'a str,
}

impl<'a> NoteLines<'a> {
    pub(super) fn of(notes: &'a BTreeMap<String, String>) -> Self {
        let mut all = Self::default();
        for (file, text) in notes {
            let has_pages = is_pdf(file);
            let mut page = None;
            for (number, text) in (1..).zip(text.lines()) {
                if has_pages {
                    page = page_beginning(text).or(page);
                }
                let at = all.lines.len();
                all.lines.push(NoteLine {
                    file,
                    number,
                    page,
                    text,
                });
                let found: BTreeSet<String> = terms(text).into_iter().collect();
                for term in found {
                    all.by_term.entry(term).or_default().push(at);
                }
            }
        }
        all
    }

    /// Returns the line that says most of a claim, if one says it.
    fn saying(&self, claim: &str) -> Option<Source> {
        let wanted: BTreeSet<String> = terms(claim).into_iter().collect();
        let mut shared: BTreeMap<usize, usize> = BTreeMap::new();
        for at in wanted
            .iter()
            .filter_map(|term| self.by_term.get(term))
            .flatten()
        {
            *shared.entry(*at).or_default() += 1;
        }
        let mut likely: Vec<(usize, usize)> = shared
            .into_iter()
            .filter(|(_, shared)| is_most(*shared, wanted.len()))
            .collect();
        likely.sort_by_key(|(at, shared)| (std::cmp::Reverse(*shared), *at));
        let lines = likely
            .iter()
            .take(LINES_COMPARED)
            .map(|(at, _)| self.lines[*at]);
        let mut saying = lines.filter(|line| says(line.text, claim));
        let line = saying.next()?;
        Some(Source {
            file: line.file.to_owned(),
            line: line.number,
            page: line.page,
            quote: beginning(line.text.trim(), QUOTE_CHARS_MAX).to_owned(),
        })
    }
}

/// Cites the line that says most of a claim, if the model cites none that supports it. A claim that repeats an answer of the
/// person needs no note, so a wrong citation is removed from it.
pub(super) fn cite(finding: &mut Finding, notes: &NoteLines<'_>, answers: &[&str]) {
    if finding.evidence == Some(Evidence::Supported) {
        return;
    }
    if answers.iter().any(|answer| says(answer, &finding.claim)) {
        finding.source = None;
        finding.support = Support::Said;
        finding.evidence = None;
        return;
    }
    if let Some(source) = notes.saying(&finding.claim) {
        finding.source = Some(source);
        finding.support = Support::Quoted;
        finding.evidence = Some(Evidence::Supported);
    }
}

/// Returns whether a text says a claim, in a sentence or as a whole: all of its numbers, most of its words, and with a negation
/// only if the claim has one, too. Stricter than [`compare`], because the model did not name this text as the source.
fn says(text: &str, claim: &str) -> bool {
    let wanted: BTreeSet<String> = terms(claim).into_iter().collect();
    let says = |part: &str| {
        let found: BTreeSet<String> = terms(part).into_iter().collect();
        is_most(wanted.intersection(&found).count(), wanted.len())
            && is_negated(part) == is_negated(claim)
            && compare(claim, part) == Evidence::Supported
    };
    says(text) || text.split(". ").flat_map(|part| part.split("; ")).any(says)
}

fn is_most(shared: usize, of: usize) -> bool {
    shared >= SHARED_MIN && shared * 5 >= of * 3
}

/// Compares a claim with the line that it cites, by their content words and their numbers. A claim whose numbers are all
/// different from those of the line, or that shares no word with it, is unsupported; a line in another language is weak,
/// because its words cannot be compared.
pub fn compare(claim: &str, line: &str) -> Evidence {
    let (claimed, cited) = (numbers(claim), numbers(line));
    let agreeing = claimed.intersection(&cited).count();
    if agreeing == 0 && !claimed.is_empty() && !cited.is_empty() {
        return Evidence::Unsupported;
    }
    let of_claim: BTreeSet<String> = terms(claim).into_iter().collect();
    let of_line: BTreeSet<String> = terms(line).into_iter().collect();
    let shared = of_claim.intersection(&of_line).count();
    if shared + agreeing == 0 {
        let languages = (language(claim), language(line));
        return match languages {
            (Some(one), Some(other)) if one != other => Evidence::Weak,
            _ => Evidence::Unsupported,
        };
    }
    // A short line can support a long claim in full, and the other way round.
    let smaller = of_claim.len().min(of_line.len()).max(1);
    let is_close = (shared + agreeing) * 3 >= smaller;
    match is_close && agreeing == claimed.len() {
        true => Evidence::Supported,
        false => Evidence::Weak,
    }
}

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
        if finding.source.is_none() {
            continue;
        }
        let (support, evidence) = (finding.support, finding.evidence);
        check_finding(finding, contents);
        let is_lost = finding.support == Support::Unsupported && support != Support::Unsupported;
        // The quote may still be there, in a line that now says something else.
        let is_changed = finding.evidence == Some(Evidence::Unsupported)
            && evidence.is_some_and(|before| before != Evidence::Unsupported);
        if is_lost || is_changed {
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
/// Maximum length of a quote that the program takes from a note, in characters.
const QUOTE_CHARS_MAX: usize = 200;
/// Number of lines that a claim is compared with, those with the most words of it first.
const LINES_COMPARED: usize = 20;
/// Minimum number of words that a claim and a text share if the text says the claim.
const SHARED_MIN: usize = 2;

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
            page: None,
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

    #[test]
    fn a_quotation_that_has_nothing_to_do_with_its_claim_does_not_support_it() {
        let line =
            "Mara: SQS FIFO has 300 transactions a second per group, which is enough for us.";
        for (claim, evidence) in [
            // The quote is in the notes, but neither its words nor its numbers are those of the claim.
            (
                "The person wants to avoid creating new vendors until March 2027.",
                Evidence::Unsupported,
            ),
            ("Nobody wants new vendors.", Evidence::Unsupported),
            (
                "SQS FIFO handles 14,000 transactions a second.",
                Evidence::Unsupported,
            ),
            (
                "SQS FIFO has a limit of 300 transactions a second.",
                Evidence::Supported,
            ),
            ("SQS FIFO is enough.", Evidence::Supported),
            // Shares a word, and adds a number that the line does not have.
            (
                "300 transactions a second are enough until 2027.",
                Evidence::Weak,
            ),
            (
                "Costs, hiring, vendors, contracts and audits all speak for a second region.",
                Evidence::Weak,
            ),
        ] {
            assert_eq!(compare(claim, line), evidence, "{claim}");
        }
    }

    #[test]
    fn a_claim_without_a_usable_source_gets_the_line_that_says_it() {
        let notes = BTreeMap::from([(
            "hosting.md".to_owned(),
            "# Hosting\nThe contract with Nordhost ends on 31 March 2027.\nWe pay 480 euro a month for three servers.\n"
                .to_owned(),
        )]);
        let answers = ["We cannot have downtime. The budget limit is 650 euro a month."];
        let cited = |claim: &str, file: &str| {
            let mut finding = Finding {
                source: Some(Source {
                    file: file.to_owned(),
                    line: 5,
                    page: None,
                    quote: "something else".to_owned(),
                }),
                ..Finding::said(crate::state::Section::Assumptions, claim)
            };
            check_finding(&mut finding, &notes);
            cite(&mut finding, &NoteLines::of(&notes), &answers);
            finding
        };
        let found = cited("The contract with Nordhost ends in March 2027.", "lease.md");
        assert_eq!(found.evidence, Some(Evidence::Supported));
        let source = found.source.unwrap();
        assert_eq!((source.file.as_str(), source.line), ("hosting.md", 2));
        let said = cited("The budget limit is 650 euro a month.", "budget.md");
        assert_eq!((said.source, said.support), (None, Support::Said));
        for wrong in [
            "We pay 900 euro a month for three servers.",
            "The contract with Nordhost never ends in March 2027.",
            "The person wants to stay in this city.",
            "We should move.",
        ] {
            let finding = cited(wrong, "hosting.md");
            assert_eq!(finding.evidence, Some(Evidence::Unsupported), "{wrong}");
        }
    }

    #[test]
    fn a_quotation_from_a_pdf_file_has_its_page() {
        let text =
            "--- page 1 ---\nHosting\n--- page 2 ---\nThe contract with Nordhost ends in March.\n";
        let notes = BTreeMap::from([
            ("lease.pdf".to_owned(), text.to_owned()),
            ("lease.md".to_owned(), text.to_owned()),
        ]);
        let cited = |file: &str, line: u32| {
            let mut finding = Finding {
                source: Some(Source {
                    file: file.to_owned(),
                    line,
                    page: Some(9),
                    quote: "The contract with Nordhost ends".to_owned(),
                }),
                ..Finding::said(
                    crate::state::Section::Assumptions,
                    "The contract with Nordhost ends in March.",
                )
            };
            check_finding(&mut finding, &notes);
            cite(&mut finding, &NoteLines::of(&notes), &[]);
            let source = finding.source.unwrap();
            (source.file, source.line, source.page)
        };
        assert_eq!(cited("lease.pdf", 1), ("lease.pdf".to_owned(), 4, Some(2)));
        assert_eq!(cited("lease.md", 4), ("lease.md".to_owned(), 4, None));
        // In no such note: the program finds the line, in the note that comes first.
        assert_eq!(cited("other.pdf", 4), ("lease.md".to_owned(), 4, None));
    }

    #[test]
    fn number_words_agree_with_digits_and_another_language_is_weak() {
        let line = "Ten thousand orders a day.";
        assert_eq!(
            compare("The load is 10,000 orders a day.", line),
            Evidence::Supported
        );
        assert_eq!(
            compare("The load is 90,000 orders a day.", line),
            Evidence::Unsupported
        );
        assert_eq!(
            compare("The budget is fixed.", "Wir haben nur eine Maschine."),
            Evidence::Weak
        );
        assert_eq!(compare("Load stays.", ""), Evidence::Unsupported);
    }

    #[test]
    fn a_changed_number_beside_the_quote_is_found_again() {
        let notes = |count: &str| {
            let text = format!("We expect {count} orders a day.\n");
            BTreeMap::from([("a.md".to_owned(), text)])
        };
        let mut findings = [Finding {
            claim: "There are 10,000 orders a day.".to_owned(),
            source: Some(Source {
                file: "a.md".to_owned(),
                line: 1,
                page: None,
                quote: "orders a day".to_owned(),
            }),
            ..Finding::said(crate::state::Section::Decisions, "")
        }];
        check_finding(&mut findings[0], &notes("10,000"));
        assert_eq!(findings[0].evidence, Some(Evidence::Supported));
        assert!(recheck(&mut findings, &notes("10,000")).is_empty());
        assert_eq!(recheck(&mut findings, &notes("90,000")).len(), 1);
        // Findings of older versions have no verdict: only a lost quote reopens them.
        findings[0].support = Support::Quoted;
        findings[0].evidence = None;
        assert!(recheck(&mut findings, &notes("90,000")).is_empty());
    }
}
