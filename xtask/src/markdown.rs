//! Markdown without what is not prose, for every check that reads pages or doc comments.
//!
//! This is not a parser: it knows fenced blocks, code spans, comments and inline links, which is what our pages use.

/// The text with code blocks, code spans and HTML comments replaced by blanks. Lines and places stay where they are, and a
/// blanked span counts as a word: one `` ` `` is left of it.
pub(crate) fn prose(text: &str) -> String {
    let mut prose = String::with_capacity(text.len());
    let mut fence = None;
    for paragraph in text.split_inclusive("\n\n") {
        let mut rest = String::with_capacity(paragraph.len());
        for line in paragraph.split_inclusive('\n') {
            let mark = fence_of(line);
            let is_code = fence.is_some() || mark.is_some();
            match (fence, mark) {
                (None, Some(mark)) => fence = Some(mark),
                (Some(open), Some(mark)) if open == mark => fence = None,
                _ => {}
            }
            match is_code {
                true => blank(line, &mut rest),
                false => rest.push_str(line),
            }
        }
        blank_spans(&rest, &mut prose);
    }
    prose
}

/// The targets of the inline links and pictures of a page, with their lines. What is in code is code.
pub(crate) fn links(page: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in prose(page).lines().enumerate() {
        for target in line.split("](").skip(1) {
            let target = target.split(')').next().unwrap_or_default();
            links.push((number + 1, target.to_owned()));
        }
    }
    links
}

/// Whether a link leads to a page of the web, or to a place of its own page.
pub(crate) fn is_elsewhere(link: &str) -> bool {
    link.contains("://") || link.starts_with('#') || link.starts_with("mailto:")
}

/// The doc comments of a Rust file as Markdown, each on the lines that it has there.
pub(crate) fn of_doc_comments(rust: &str) -> String {
    let mut text = String::new();
    for line in rust.lines() {
        let code = line.trim_start();
        let comment = code.strip_prefix("//!").or_else(|| {
            let comment = code.strip_prefix("///")?;
            // Four slashes are an ordinary comment.
            (!comment.starts_with('/')).then_some(comment)
        });
        let comment = comment.unwrap_or_default();
        text.push_str(comment.strip_prefix(' ').unwrap_or(comment));
        text.push('\n');
    }
    text
}

fn fence_of(line: &str) -> Option<&'static str> {
    let line = line.trim_start().trim_start_matches("> ");
    ["```", "~~~"]
        .into_iter()
        .find(|mark| line.starts_with(mark))
}

/// A span ends with as many backticks as it begins with, and in its paragraph.
fn blank_spans(paragraph: &str, prose: &mut String) {
    let mut rest = paragraph;
    while let Some(start) = rest.find(['`', '<']) {
        let (before, from) = rest.split_at(start);
        prose.push_str(before);
        let end = match from.starts_with('`') {
            true => end_of_span(from),
            false if from.starts_with("<!--") => from.find("-->").map(|end| end + 3),
            false => None,
        };
        let end = end.unwrap_or_else(|| from.len() - from.trim_start_matches(['`', '<']).len());
        if from.starts_with('`') {
            prose.push('`');
            blank(&from[1..end], prose);
        } else if from.starts_with("<!--") {
            blank(&from[..end], prose);
        } else {
            prose.push_str(&from[..end]);
        }
        rest = &from[end..];
    }
    prose.push_str(rest);
}

fn end_of_span(from: &str) -> Option<usize> {
    let ticks = from.len() - from.trim_start_matches('`').len();
    let mark = &from[..ticks];
    let mut at = ticks;
    while let Some(found) = from[at..].find(mark) {
        let end = at + found + ticks;
        let is_longer = from[end..].starts_with('`') || from[..at + found].ends_with('`');
        if !is_longer || at + found == ticks {
            return Some(end);
        }
        at = end + from[end..].len() - from[end..].trim_start_matches('`').len();
    }
    None
}

fn blank(text: &str, into: &mut String) {
    for c in text.chars() {
        match c {
            '\n' => into.push('\n'),
            // As many bytes as before, so places stay.
            other => (0..other.len_utf8()).for_each(|_| into.push(' ')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_code_is_not_prose() {
        let text = "a `b` c ``d ` e`` f\n```rust\ng\n\nh\n```\ni `j\nk` l <!-- m --> n < o\n";
        let prose = prose(text);
        let words: Vec<&str> = prose.split_whitespace().collect();
        assert_eq!(
            words,
            ["a", "`", "c", "`", "f", "i", "`", "l", "n", "<", "o"]
        );
        assert_eq!(prose.len(), text.len());
        assert_eq!(prose.lines().count(), text.lines().count());
    }

    #[test]
    fn a_backtick_that_nothing_closes_ends_with_its_paragraph() {
        assert_eq!(prose("a ` b\n\nc ` d"), "a ` b\n\nc ` d");
    }

    #[test]
    fn doc_comments_keep_their_lines() {
        let rust = "//! A\nfn a() {} // b\n    /// C\n    ///\n    //// d\n";
        assert_eq!(of_doc_comments(rust), "A\n\nC\n\n\n");
    }

    #[test]
    fn links_have_their_lines() {
        let page = "[a](b.md)\n`[c](d)`\n![e](f.svg) and [g](#h)\n";
        let wanted = [(1, "b.md"), (3, "f.svg"), (3, "#h")];
        assert_eq!(
            links(page),
            wanted.map(|(line, target)| (line, target.to_owned()))
        );
        assert!(is_elsewhere("#h") && is_elsewhere("https://example.com") && !is_elsewhere("b.md"));
    }
}
