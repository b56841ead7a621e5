//! The only way to put untrusted text into a Markdown page that we write.
//!
//! [`text`], [`code`] and [`fenced`] escape names and values so that they stay literal. [`sanitize`] takes Markdown that a
//! model wrote and returns Markdown without raw HTML, links and images, keeping their text. [`sanitize`] does not rely on a
//! particular renderer: it parses its output again before it returns it.

use std::borrow::Cow;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use pulldown_cmark_to_cmark::{Options as Style, cmark_with_options};

use crate::printable::{is_hidden, one_line, printable};

/// The Markdown dialect that we read: the extensions of code forges that we write ourselves.
pub const DIALECT: Options = Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH);

/// Every extension that some renderer may apply to a page.
const ANY_DIALECT: Options = DIALECT
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_GFM);

/// Returns untrusted text for one line of Markdown, escaped so that it stays literal: no markup, no line break.
pub fn text(words: &str) -> String {
    let line = one_line(&words.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut out = String::with_capacity(line.len());
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        let next = line[at + c.len_utf8()..].chars().next().unwrap_or(' ');
        match c {
            '&' => out.push_str("&amp;"),
            // An escaped `\|` would still end a table cell in some dialects.
            '|' => out.push_str("&#124;"),
            '\\' | '`' | '*' | '[' | ']' | '<' | '~' => out.extend(['\\', c]),
            '_' if !(before.is_alphanumeric() && next.is_alphanumeric()) => out.push_str("\\_"),
            // These would start a heading, a list or a quotation, or underline a heading.
            '#' | '=' | '>' if at == 0 => out.extend(['\\', c]),
            '-' | '+' | ':' if at == 0 && (next == ' ' || next == c) => out.extend(['\\', c]),
            '.' | ')' if at == digits && at > 0 && next == ' ' => out.extend(['\\', c]),
            c => out.push(c),
        }
        before = c;
    }
    out
}

/// Returns a name as inline code on one line, between more backticks than it has in a row. A name with `|` becomes escaped text
/// instead.
pub fn code(name: &str) -> String {
    let name = one_line(name);
    if name.is_empty() {
        return name;
    }
    if name.contains('|') {
        // It would end a table cell even inside code.
        return text(&name);
    }
    let fence = "`".repeat(longest_run(&name) + 1);
    let needs_room = name.starts_with(['`', ' ']) || name.ends_with(['`', ' ']);
    let room = if needs_room { " " } else { "" };
    format!("{fence}{room}{name}{room}{fence}")
}

/// Returns a fenced code block that its content cannot close.
pub fn fenced(language: &str, content: &str) -> String {
    let content = printable(content);
    let fence = "`".repeat((longest_run(&content) + 1).max(3));
    let end = match content.is_empty() || content.ends_with('\n') {
        true => "",
        false => "\n",
    };
    format!("{fence}{language}\n{content}{end}{fence}\n")
}

/// Returns untrusted text as a quotation, line by line, with its markup escaped.
pub fn quoted_text(words: &str) -> String {
    quoted(&words.lines().map(text).collect::<Vec<_>>().join("\n"))
}

/// Returns Markdown as a quotation, so that a reader sees that it is quoted, whatever it imitates.
pub fn quoted(markdown: &str) -> String {
    let line = |line: &str| format!("> {line}").trim_end().to_owned() + "\n";
    markdown.trim_end().lines().map(line).collect()
}

/// Returns a path as a link target that can neither have a scheme, point to another host, nor end the link.
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

/// Returns a model's Markdown as Markdown without raw HTML, links and images. Falls back to escaped text if that is not
/// possible.
pub fn sanitize(markdown: &str) -> String {
    match tame(markdown) {
        Some(events) => emit(&events).unwrap_or_else(|| plain(markdown)),
        None => plain(markdown),
    }
}

/// Returns the events of a model's Markdown with raw HTML as text and without links and images, or `None` if it is nested more
/// than `DEPTH_MAX` levels deep.
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
            // The parser returns an HTML block line by line.
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
            // Remove elements that contained only an image or a link.
            Event::End(end) if is_left_empty(&tame, end) => {
                tame.pop();
            }
            other => tame.push(other),
        }
    }
    Some(tame)
}

/// Returns whether a page is nested deeper than any page we write, including a model's Markdown inside one of our lists or
/// quotations. HTML renderers take time proportional to the square of the depth.
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

/// Returns events as Markdown, or `None` if they cannot be written or the result would contain raw HTML, links or images.
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

/// Returns whether Markdown has no raw HTML, links or images in any dialect.
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

/// Returns the text with all markup escaped, line by line; the fallback for input that [`sanitize`] cannot keep as Markdown.
fn plain(markdown: &str) -> String {
    markdown.lines().map(text).collect::<Vec<_>>().join("\n")
}

/// Returns whether a page may link to this URL: `http`, `https`, `mailto`, or a path relative to the page. No other scheme is
/// allowed.
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
        // A leading `//` means another host, a leading `/` the root of the disk.
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

/// Maximum nesting of a model's Markdown. Anything deeper is an attack on the renderer.
const DEPTH_MAX: usize = 24;

#[cfg(test)]
mod tests;
