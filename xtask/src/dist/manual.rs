//! Pages for `man`, one for each command: the help of the program in the language of its pages.
//!
//! The help is that of the snapshots that a test compares with the program, so a page cannot differ from it.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::release::Release;

/// Returns the names and the texts of the pages, from the help of each command.
pub(super) fn pages(release: &Release, helps: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let page = |(words, help): (&String, &String)| {
        let related = helps.keys().filter(|other| is_next_to(words, other));
        let related: Vec<String> = related.map(|words| name(words)).collect();
        let text = page(release, words, &Help::parse(help), &related);
        (format!("{}.1", name(words)), text)
    };
    helps.iter().map(page).collect()
}

/// Whether one command is directly below the other.
fn is_next_to(words: &str, other: &str) -> bool {
    let above = |words: &str| {
        words
            .rsplit_once(' ')
            .map_or("", |(above, _)| above)
            .to_owned()
    };
    words != other && (above(words) == other || (!other.is_empty() && above(other) == words))
}

/// `archie-mail-rules`, as `git` names its pages.
fn name(words: &str) -> String {
    let names = std::iter::once("archie").chain(words.split_whitespace());
    names.collect::<Vec<_>>().join("-")
}

/// The parts of a command's help.
#[derive(Debug, Default, PartialEq, Eq)]
struct Help {
    about: Vec<String>,
    usage: Vec<String>,
    sections: Vec<Section>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Section {
    title: String,
    items: Vec<Item>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Item {
    term: String,
    paragraphs: Vec<String>,
}

impl Help {
    /// Reads what clap prints: paragraphs, the usage, and sections of indented items.
    fn parse(text: &str) -> Self {
        let mut help = Self::default();
        // Whether the next text begins a paragraph.
        let mut begins = true;
        let mut is_usage = false;
        for line in text.lines() {
            let words = line.trim();
            let indent = line.len() - line.trim_start().len();
            if words.is_empty() {
                (begins, is_usage) = (true, false);
            } else if let Some(usage) = line.strip_prefix("Usage: ") {
                help.usage.push(usage.to_owned());
                is_usage = true;
            } else if is_usage {
                help.usage.push(words.to_owned());
            } else if help.usage.is_empty() {
                add(&mut help.about, words, begins);
                begins = false;
            } else if let (0, Some(title)) = (indent, line.strip_suffix(':')) {
                let title = title.to_owned();
                let items = Vec::new();
                help.sections.push(Section { title, items });
            } else if let Some(section) = help.sections.last_mut() {
                section.add(words, indent, begins);
                begins = false;
            } else {
                add(&mut help.about, words, begins);
                begins = false;
            }
        }
        help
    }
}

impl Section {
    fn add(&mut self, words: &str, indent: usize, begins: bool) {
        match self.items.last_mut() {
            // An item of a list is a paragraph of its own.
            Some(item) if indent > TERM_INDENT_MAX => {
                add(
                    &mut item.paragraphs,
                    words,
                    begins || words.starts_with("- "),
                );
            }
            _ => {
                let (term, text) = words.split_once("  ").unwrap_or((words, ""));
                let mut item = Item {
                    term: term.to_owned(),
                    paragraphs: Vec::new(),
                };
                if !text.is_empty() {
                    add(&mut item.paragraphs, text.trim(), true);
                }
                self.items.push(item);
            }
        }
    }
}

/// Adds words to the last paragraph, or as a new one.
fn add(paragraphs: &mut Vec<String>, words: &str, begins: bool) {
    match paragraphs.last_mut() {
        Some(last) if !begins => {
            last.push(' ');
            last.push_str(words);
        }
        _ => paragraphs.push(words.to_owned()),
    }
}

/// Options without a short form are this far in; texts are farther.
const TERM_INDENT_MAX: usize = 6;

fn page(release: &Release, words: &str, help: &Help, related: &[String]) -> String {
    let name = name(words);
    let timestamp = release.timestamp();
    let date = timestamp.split('T').next().unwrap_or_default();
    let version = &release.version;
    let title = escaped(&name.to_uppercase());
    let mut page = format!(".TH {title} 1 {date} \"archie {version}\" Archie\n");
    let mut text = String::new();
    let mut about = help.about.iter();
    if let Some(first) = about.next() {
        let first = escaped(first.trim_end_matches('.'));
        let _ = write!(text, ".SH NAME\n{} \\- {first}\n", escaped(&name));
    }
    text.push_str(".SH SYNOPSIS\n.nf\n");
    for usage in &help.usage {
        let _ = writeln!(text, "{}", line(usage));
    }
    text.push_str(".fi\n");
    for (at, paragraph) in about.enumerate() {
        let start = if at == 0 { ".SH DESCRIPTION" } else { ".PP" };
        let _ = write!(text, "{start}\n{}\n", line(paragraph));
    }
    for section in &help.sections {
        let _ = writeln!(text, ".SH {}", escaped(&section.title.to_uppercase()));
        for item in &section.items {
            let _ = write!(text, ".TP\n\\fB{}\\fR\n", escaped(&item.term));
            for (at, paragraph) in item.paragraphs.iter().enumerate() {
                let start = match (at, paragraph.starts_with("- ")) {
                    (0, _) => "",
                    (_, true) => ".br\n",
                    _ => ".IP\n",
                };
                let _ = writeln!(text, "{start}{}", line(paragraph));
            }
        }
    }
    if !related.is_empty() {
        let related = related
            .iter()
            .map(|name| format!("\\fB{}\\fR(1)", escaped(name)));
        let related: Vec<_> = related.collect();
        let _ = write!(text, ".SH SEE ALSO\n{}\n", related.join(", "));
    }
    page.push_str(&text);
    page
}

/// Text that begins a line: a dot or a quotation mark there would be a command.
fn line(text: &str) -> String {
    let text = escaped(text);
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli_reference;
    use crate::dist::release;

    const HELP: &str = "\
Do it

.Twice, if
needed.

Usage: archie do [OPTIONS] <WHAT>

Arguments:
  <WHAT>  What to do

Options:
      --way <WAY>
          The way

          Possible values:
          - left: Left
          - right: Right,
            really

  -h, --help  Print
              help";

    #[test]
    fn help_becomes_a_page() {
        let helps = BTreeMap::from([
            (
                String::new(),
                "Archie\n\nUsage: archie [COMMAND]".to_owned(),
            ),
            ("do".to_owned(), HELP.to_owned()),
            ("do it".to_owned(), "It\n\nUsage: archie do it".to_owned()),
            (
                "other".to_owned(),
                "Other\n\nUsage: archie other".to_owned(),
            ),
        ]);
        let pages = pages(&release::example(), &helps);
        let names: Vec<_> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "archie.1",
                "archie-do.1",
                "archie-do-it.1",
                "archie-other.1"
            ]
        );
        assert_eq!(
            pages[1].1,
            "\
.TH ARCHIE\\-DO 1 2023-11-14 \"archie 1.2.3\" Archie
.SH NAME
archie\\-do \\- Do it
.SH SYNOPSIS
.nf
archie do [OPTIONS] <WHAT>
.fi
.SH DESCRIPTION
\\&.Twice, if needed.
.SH ARGUMENTS
.TP
\\fB<WHAT>\\fR
What to do
.SH OPTIONS
.TP
\\fB\\-\\-way <WAY>\\fR
The way
.IP
Possible values:
.br
\\- left: Left
.br
\\- right: Right, really
.TP
\\fB\\-h, \\-\\-help\\fR
Print help
.SH SEE ALSO
\\fBarchie\\fR(1), \\fBarchie\\-do\\-it\\fR(1)
"
        );
    }

    #[test]
    fn each_command_has_a_page_with_its_name_and_its_options() {
        let helps = cli_reference::helps().unwrap();
        let pages = pages(&release::example(), &helps);
        assert_eq!(pages.len(), helps.len());
        for ((name, page), help) in pages.iter().zip(helps.values()) {
            for part in [
                ".SH NAME\narchie",
                "\n.SH SYNOPSIS\n.nf\narchie",
                "\\-\\-help\\fR\n",
            ] {
                assert!(page.contains(part), "{name} has no {part:?}:\n{page}");
            }
            let options = |text: &str, start: &str| text.matches(start).count();
            let terms = options(help, "\n      --") + options(help, "\n  -");
            let written = options(page, ".TP\n\\fB\\-");
            assert_eq!(written, terms, "options of {name}:\n{page}");
        }
    }
}
