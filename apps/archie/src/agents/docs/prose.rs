//! What the model wrote, made fit for a page: nothing that does not hold, no links, no markup of its own, no diagram that cannot
//! be drawn. Headings, tables and numbers of a page come from us.

use super::accuracy;
use super::mermaid;
use super::scan::Tree;

/// A text that is fit for a page.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Tidy {
    pub(super) text: String,
    /// Sentences that claimed what does not hold.
    pub(super) dropped: u32,
    /// Why diagrams were left out.
    pub(super) broken: Vec<String>,
}

impl Tidy {
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

/// Makes a text fit for a page.
pub(super) fn tidied(text: &str, tree: &Tree) -> Tidy {
    let mut tidy = Tidy::default();
    let mut out = String::new();
    let mut block: Option<(String, String)> = None;
    for line in text.lines() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut block, fence) {
            (None, Some(language)) => block = Some((language.trim().to_owned(), String::new())),
            (None, None) => {
                out.push_str(&plain_line(line));
                out.push('\n');
            }
            (Some((_, content)), None) => {
                content.push_str(line);
                content.push('\n');
            }
            (Some((language, content)), Some(_)) => {
                if language == "mermaid" {
                    match mermaid::parse(content) {
                        Ok(_) => out.push_str(&format!("```mermaid\n{content}```\n")),
                        Err(error) => tidy.broken.push(error.to_string()),
                    }
                }
                // Other code is not the model's to write: what there is stands in the tree.
                block = None;
            }
        }
    }
    if block.is_some() {
        tidy.broken.push("it is not closed".to_owned());
    }
    let (kept, dropped) = accuracy::cleaned(&out, tree);
    tidy.dropped = dropped;
    tidy.text = squeezed(&kept);
    tidy
}

/// A line without headings, links and markup.
fn plain_line(line: &str) -> String {
    let trimmed = line.trim_start();
    let level = trimmed.chars().take_while(|c| *c == '#').count();
    let is_heading = level > 0 && trimmed[level..].starts_with(' ');
    let mut out = String::new();
    let line = match is_heading {
        true => {
            out.push_str("### ");
            trimmed[level..].trim().trim_end_matches('#')
        }
        false => line,
    };
    let mut in_code = false;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if c == '`' {
            in_code = !in_code;
        } else if !in_code
            && (c == '[' || rest.starts_with("!["))
            && let Some((label, after)) = link(rest)
        {
            out.push_str(&label.replace('<', "&lt;"));
            rest = after;
            continue;
        }
        match (c, in_code) {
            ('<', false) => out.push_str("&lt;"),
            (c, _) => out.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    if in_code {
        // A backquote that is never closed would swallow the rest of the page.
        out = out.replacen('`', "", out.matches('`').count());
    }
    out
}

/// `[label](target)` and `![label](target)`.
fn link(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("![").or_else(|| text.strip_prefix('['))?;
    let (label, after) = inner.split_once("](")?;
    let (_, after) = after.split_once(')')?;
    (!label.contains('[')).then_some((label, after))
}

/// Never more than one empty line, no bullet without words, no heading without a text below it.
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
            "### Title\nSee the docs and &lt;script>alert(1)&lt;/script>.\n\n```mermaid\ngraph TD\nA --> B\n```"
        );
        assert_eq!(tidy.warnings().len(), 1, "{tidy:?}");
    }
}
