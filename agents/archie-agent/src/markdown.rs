//! The one way to put a stranger's text into a Markdown page that we write.
//!
//! [`text`], [`code`] and [`fenced`] spell names and values so that they stay what they are. [`sanitize`] takes Markdown that a
//! model wrote and gives Markdown back without raw HTML, links and images; what they said stays as text. Both hold whoever
//! renders the page: what is emitted is parsed again before it is used.

use std::borrow::Cow;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use pulldown_cmark_to_cmark::{Options as Style, cmark_with_options};

use crate::printable::{is_hidden, one_line, printable};

/// What we read of a page: the dialect of forges, as far as we write it.
pub const DIALECT: Options = Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH);

/// Everything that some renderer may find in a page.
const ANY_DIALECT: Options = DIALECT
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_GFM);

/// Returns a stranger's words for one line of Markdown, where they mean nothing but themselves: no markup, no line break.
pub fn text(words: &str) -> String {
    let line = one_line(&words.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut out = String::with_capacity(line.len());
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        let next = line[at + c.len_utf8()..].chars().next().unwrap_or(' ');
        match c {
            '&' => out.push_str("&amp;"),
            // A backslash before it would end a cell in some dialects.
            '|' => out.push_str("&#124;"),
            '\\' | '`' | '*' | '[' | ']' | '<' | '~' => out.extend(['\\', c]),
            '_' if !(before.is_alphanumeric() && next.is_alphanumeric()) => out.push_str("\\_"),
            // What would begin a heading, a list, a quotation or a line below a heading.
            '#' | '=' | '>' if at == 0 => out.extend(['\\', c]),
            '-' | '+' | ':' if at == 0 && (next == ' ' || next == c) => out.extend(['\\', c]),
            '.' | ')' if at == digits && at > 0 && next == ' ' => out.extend(['\\', c]),
            c => out.push(c),
        }
        before = c;
    }
    out
}

/// Returns a name as code: on one line, between more backquotes than it has in a row.
pub fn code(name: &str) -> String {
    let name = one_line(name);
    if name.is_empty() {
        return name;
    }
    if name.contains('|') {
        // It would end a cell, also in code.
        return text(&name);
    }
    let fence = "`".repeat(longest_run(&name) + 1);
    let needs_room = name.starts_with(['`', ' ']) || name.ends_with(['`', ' ']);
    let room = if needs_room { " " } else { "" };
    format!("{fence}{room}{name}{room}{fence}")
}

/// Returns a block of code that nothing inside can close.
pub fn fenced(language: &str, content: &str) -> String {
    let content = printable(content);
    let fence = "`".repeat((longest_run(&content) + 1).max(3));
    let end = match content.is_empty() || content.ends_with('\n') {
        true => "",
        false => "\n",
    };
    format!("{fence}{language}\n{content}{end}{fence}\n")
}

/// Returns each line of a stranger's words as a quotation, without markup of their own.
pub fn quoted_text(words: &str) -> String {
    quoted(&words.lines().map(text).collect::<Vec<_>>().join("\n"))
}

/// Returns Markdown as a quotation: whatever it imitates, it is seen to be quoted.
pub fn quoted(markdown: &str) -> String {
    let line = |line: &str| format!("> {line}").trim_end().to_owned() + "\n";
    markdown.trim_end().lines().map(line).collect()
}

/// Returns a path as the target of a link: never a scheme, another host, or the end of the link.
pub fn target(path: &str) -> String {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'.')
        .remove(b'-')
        .remove(b'_')
        .remove(b'/');
    let path = utf8_percent_encode(path.trim_start_matches('/'), KEPT);
    path.to_string()
}

/// Returns a model's Markdown without raw HTML, links and images, as Markdown again.
pub fn sanitize(markdown: &str) -> String {
    match tame(markdown) {
        Some(events) => emit(&events).unwrap_or_else(|| plain(markdown)),
        None => plain(markdown),
    }
}

/// Returns the events of a model's Markdown with raw HTML as text and without links and images; none if it is nested so deep
/// that nobody could mean it.
pub fn tame(markdown: &str) -> Option<Vec<Event<'_>>> {
    let mut tame = Vec::new();
    let mut depth = 0_usize;
    for event in Parser::new_ext(markdown, DIALECT) {
        match event {
            Event::Start(Tag::Link { .. } | Tag::Image { .. })
            | Event::End(TagEnd::Link | TagEnd::Image) => continue,
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return None;
        }
        match event {
            Event::Start(Tag::HtmlBlock) => tame.push(Event::Start(Tag::Paragraph)),
            Event::End(TagEnd::HtmlBlock) if is_left_empty(&tame, TagEnd::Paragraph) => {
                tame.pop();
            }
            Event::End(TagEnd::HtmlBlock) => tame.push(Event::End(TagEnd::Paragraph)),
            // A block comes line by line.
            Event::Html(html) if !html.trim().is_empty() => {
                if matches!(tame.last(), Some(Event::Text(_))) {
                    tame.push(Event::SoftBreak);
                }
                tame.push(Event::Text(printable(html.trim()).into()));
            }
            Event::Html(_) => {}
            Event::InlineHtml(html) => {
                for (at, line) in html.lines().enumerate() {
                    if at > 0 {
                        tame.push(Event::SoftBreak);
                    }
                    tame.push(Event::Text(printable(line.trim()).into()));
                }
            }
            Event::Text(text) => tame.push(Event::Text(printable(&text).into())),
            Event::Code(code) => tame.push(Event::Code(one_line(&code).into())),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                let language = language.split_whitespace().next().unwrap_or_default();
                let is_plain = language.chars().all(|c| c.is_ascii_alphanumeric());
                let language = if is_plain {
                    language.to_owned()
                } else {
                    String::new()
                };
                let kind = CodeBlockKind::Fenced(language.into());
                tame.push(Event::Start(Tag::CodeBlock(kind)));
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)) => {
                let kind = CodeBlockKind::Fenced("".into());
                tame.push(Event::Start(Tag::CodeBlock(kind)));
            }
            // What held nothing but a picture or a link is gone with it.
            Event::End(end) if is_left_empty(&tame, end) => {
                tame.pop();
            }
            other => tame.push(other),
        }
    }
    Some(tame)
}

/// Returns whether a page is nested deeper than any that we write, where a model's Markdown is part of a list or a quotation of
/// ours. Readers of HTML take time in proportion to the square of the depth.
pub fn is_too_deep(page: &str) -> bool {
    let mut depth = 0_usize;
    Parser::new_ext(page, DIALECT).any(|event| {
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > 2 * DEPTH_MAX
    })
}

fn is_left_empty(events: &[Event<'_>], end: TagEnd) -> bool {
    matches!(
        (events.last(), end),
        (Some(Event::Start(Tag::Paragraph)), TagEnd::Paragraph)
            | (Some(Event::Start(Tag::Emphasis)), TagEnd::Emphasis)
            | (Some(Event::Start(Tag::Strong)), TagEnd::Strong)
            | (
                Some(Event::Start(Tag::Strikethrough)),
                TagEnd::Strikethrough
            )
            | (Some(Event::Start(Tag::Heading { .. })), TagEnd::Heading(_))
    )
}

/// Returns events as Markdown; none if that would mean something else than they do.
pub fn emit(events: &[Event<'_>]) -> Option<String> {
    let style = Style {
        code_block_token_count: 3,
        list_token: '-',
        ..Style::default()
    };
    let mut out = String::new();
    cmark_with_options(events.iter(), &mut out, DIALECT, style).ok()?;
    is_tame(&out).then_some(out)
}

/// Returns whether Markdown has no raw HTML, no link and no image, in any dialect.
pub fn is_tame(markdown: &str) -> bool {
    Parser::new_ext(markdown, ANY_DIALECT).all(|event| {
        !matches!(
            event,
            Event::Html(_)
                | Event::InlineHtml(_)
                | Event::Start(Tag::HtmlBlock | Tag::Link { .. } | Tag::Image { .. })
        )
    })
}

/// Returns the text with nothing of its markup alive: what is left for input that has no tame form.
fn plain(markdown: &str) -> String {
    markdown.lines().map(text).collect::<Vec<_>>().join("\n")
}

/// Returns whether a page may link there: a web page, a mail address, or a place beside the page. Never another scheme.
pub fn is_allowed_link(url: &str) -> bool {
    if url
        .chars()
        .any(|c| is_hidden(c) || c.is_whitespace() || c == '\\')
    {
        return false;
    }
    let head = url.split(['/', '?', '#']).next().unwrap_or_default();
    match head.split_once(':') {
        Some((scheme, _)) => {
            let scheme: Cow<'_, str> = scheme.to_ascii_lowercase().into();
            matches!(&*scheme, "http" | "https" | "mailto")
        }
        // Two slashes would be another host, one the top of the disk.
        None => !url.starts_with('/'),
    }
}

fn longest_run(text: &str) -> usize {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Lists in quotations in lists: deeper than this is an attack on whoever reads it.
const DEPTH_MAX: usize = 24;

#[cfg(test)]
mod tests;
