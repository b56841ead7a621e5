//! Cleans the model's prose for a page: removes unsupported claims, links, raw HTML and invalid diagrams. The headings, tables
//! and numbers of a page come from the program.

use archie_agent::markdown;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};

use super::accuracy;
use super::mermaid;
use super::scan::Tree;

/// Prose that may be put on a page.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CleanProse {
    pub(super) text: String,
    /// Number of sentences removed for unsupported claims.
    pub(super) dropped: u32,
    /// Why diagrams were removed, one entry each.
    pub(super) broken: Vec<String>,
}

impl CleanProse {
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        match self.dropped {
            0 => {}
            1 => {
                warnings.push("1 statement was left out: the tree does not bear it out".to_owned())
            }
            more => warnings.push(format!(
                "{more} statements were left out: the tree does not bear them out"
            )),
        }
        let broken = self
            .broken
            .iter()
            .map(|why| format!("A diagram was left out: {why}"));
        warnings.extend(broken);
        warnings
    }
}

/// Cleans a text of the model.
pub(super) fn tidied(text: &str, tree: &Tree) -> CleanProse {
    let mut tidy = CleanProse::default();
    let written = match markdown::tame(text) {
        Some(events) => markdown::emit(&fit(events, &mut tidy.broken)),
        None => None,
    };
    let written = written.unwrap_or_else(|| markdown::sanitize(text));
    let (kept, dropped) = accuracy::cleaned(&written, tree);
    tidy.dropped = dropped;
    // A removed sentence may have opened markup that a later one closes.
    tidy.text = markdown::sanitize(&squeezed(&kept));
    tidy
}

/// Keeps text, valid diagrams and headings, which all become level 3. Removes other code blocks.
fn fit<'a>(events: Vec<Event<'a>>, broken: &mut Vec<String>) -> Vec<Event<'a>> {
    let mut fit = Vec::new();
    let mut block: Option<(bool, String)> = None;
    for event in events {
        match (&mut block, event) {
            (None, Event::Start(Tag::CodeBlock(kind))) => {
                let is_diagram =
                    matches!(kind, CodeBlockKind::Fenced(language) if &*language == "mermaid");
                block = Some((is_diagram, String::new()));
            }
            (Some((_, content)), Event::Text(text)) => content.push_str(&text),
            (Some((is_diagram, content)), Event::End(TagEnd::CodeBlock)) => {
                // The model must not write code: the tree has the real one.
                if *is_diagram {
                    match mermaid::tame(content) {
                        Ok(diagram) => fit.extend(drawn(diagram)),
                        Err(error) => broken.push(error.to_string()),
                    }
                }
                block = None;
            }
            (_, Event::Start(Tag::Heading { .. })) => fit.push(Event::Start(Tag::Heading {
                level: LEVEL,
                id: None,
                classes: Vec::new(),
                attrs: Vec::new(),
            })),
            (_, Event::End(TagEnd::Heading(_))) => fit.push(Event::End(TagEnd::Heading(LEVEL))),
            // A rule separates the program's footer from the prose.
            (_, Event::Rule) => {}
            (_, other) => fit.push(other),
        }
    }
    fit
}

fn drawn<'a>(diagram: String) -> [Event<'a>; 3] {
    [
        Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced("mermaid".into()))),
        Event::Text(diagram.into()),
        Event::End(TagEnd::CodeBlock),
    ]
}

const LEVEL: HeadingLevel = HeadingLevel::H3;

/// Collapses blank lines, and removes empty list items and headings without text below them.
fn squeezed(text: &str) -> String {
    let is_bare = |line: &str| {
        let words = line.trim().trim_start_matches(|c: char| c.is_ascii_digit());
        matches!(words, "-" | "*" | "+" | "." | ")")
    };
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !is_bare(line))
        .collect();
    let mut kept: Vec<&str> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let next = lines[at + 1..].iter().find(|line| !line.is_empty());
        let is_empty_heading =
            line.starts_with("### ") && next.is_none_or(|next| next.starts_with("### "));
        let is_second = line.is_empty() && kept.last().is_none_or(|last| last.is_empty());
        if !is_empty_heading && !is_second {
            kept.push(line);
        }
    }
    while kept.last().is_some_and(|last| last.is_empty()) {
        kept.pop();
    }
    kept.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_and_drawable_diagrams_are_left() {
        let text = "# Title\nSee [the docs](https://example.org/x) and <script>alert(1)</script>.\n\n\n```rust\nfn x() {}\n```\n\
            ```mermaid\ngraph TD\nA --> B\n```\n```mermaid\ngraph TD\nA -->\n```\n## Empty\n";
        let tidy = tidied(text, &Tree::default());
        assert_eq!(
            tidy.text,
            "### Title\n\nSee the docs and \\<script>alert(1)\\</script>.\n\n```mermaid\ngraph TD\nA --> B\n```"
        );
        assert_eq!(tidy.warnings().len(), 1, "{tidy:?}");
    }

    /// Five inputs that once left a link or HTML active in a page.
    #[test]
    fn no_spelling_of_a_link_or_of_html_is_left_alive() {
        for text in [
            "[a [b](http://x.example)](http://evil.example)",
            "[click\nhere](http://evil.example)",
            "See [it][1].\n\n[1]: http://evil.example",
            "\\`<img src=http://evil.example/x>\\`",
            "a `b\n\n<script src=//evil.example></script> `",
            "~~~html\n</code><script>\n~~~",
            "<http://evil.example> ![x](http://evil.example/y.png)",
            "```mermaid\ngraph TD\nA[\"<img src=x onerror=alert(1)>\"] --> B\nclick A href \"javascript:alert(1)\"\n%%{init: {\"securityLevel\": \"loose\"}}%%\n```",
        ] {
            let tidy = tidied(text, &Tree::default());
            assert!(markdown::is_tame(&tidy.text), "{text:?}: {}", tidy.text);
            for gone in ["click A", "init:", "<img src=x"] {
                assert!(!tidy.text.contains(gone), "{text:?}: {}", tidy.text);
            }
        }
    }
}
