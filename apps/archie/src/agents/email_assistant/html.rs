//! What a person would see of a mail: tags go, and what they hide goes with them.
//!
//! Not a browser: it takes out more rather than less. What is gone is counted and said, so that nobody has to wonder.

/// The words that can be seen, and what was taken out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) text: String,
    /// In words; empty if nothing was.
    pub(super) removed: String,
}

/// What can be seen of a text that may be HTML.
pub(super) fn visible(source: &str) -> Seen {
    let looks_like_html = TAGS.iter().any(|tag| {
        let lower = source.to_ascii_lowercase();
        lower.contains(&format!("<{tag}>")) || lower.contains(&format!("<{tag} "))
    });
    let (text, hidden) = match looks_like_html {
        true => strip(source),
        false => (source.to_owned(), 0),
    };
    let shown: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    let invisible = text.chars().count() - shown.chars().count();
    let mut removed = Vec::new();
    if hidden > 0 {
        removed.push(format!("{hidden} characters of hidden text"));
    }
    if invisible > 0 {
        removed.push(format!("{invisible} invisible characters"));
    }
    Seen {
        text: tidy(&shown),
        removed: removed.join(", "),
    }
}

/// A line without characters that nobody sees.
pub(super) fn plain(text: &str) -> String {
    text.chars()
        .filter(|c| !is_invisible(*c) && !c.is_control())
        .collect()
}

/// Zero-width, direction marks, tags: they can only deceive.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{00ad}'
        | '\u{e0000}'..='\u{e007f}' | '\u{180e}' | '\u{fe00}'..='\u{fe0f}')
}

/// An element that is open, and whether what is in it is seen.
struct Open {
    name: String,
    hides: bool,
}

fn strip(source: &str) -> (String, usize) {
    let mut out = String::new();
    let mut hidden = 0;
    let mut open: Vec<Open> = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find('<') {
        put(&rest[..at], &open, &mut out, &mut hidden);
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            let end = comment.find("-->").unwrap_or(comment.len());
            hidden += comment[..end].trim().chars().count();
            rest = comment.get(end + 3..).unwrap_or("");
            continue;
        }
        let Some(end) = end_of_tag(rest) else {
            put(rest, &open, &mut out, &mut hidden);
            return (out, hidden);
        };
        tag(&rest[1..end], &mut open, &mut out);
        rest = &rest[end + 1..];
    }
    put(rest, &open, &mut out, &mut hidden);
    (out, hidden)
}

fn put(text: &str, open: &[Open], out: &mut String, hidden: &mut usize) {
    match open.iter().any(|element| element.hides) {
        true => {
            let silent = open
                .iter()
                .any(|e| matches!(e.name.as_str(), "style" | "script" | "head" | "title"));
            if !silent {
                *hidden += text.trim().chars().count();
            }
        }
        false => out.push_str(&entities(text)),
    }
}

/// Where a tag ends, quotes looked at.
fn end_of_tag(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices().skip(1) {
        match (quote, c) {
            (None, '>') => return Some(at),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    None
}

fn tag(inside: &str, open: &mut Vec<Open>, out: &mut String) {
    let lower = inside.to_ascii_lowercase();
    let is_end = lower.starts_with('/');
    let name: String = lower
        .trim_start_matches('/')
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric())
        .collect();
    if BLOCKS.contains(&name.as_str()) {
        out.push('\n');
    }
    if is_end {
        if let Some(at) = open.iter().rposition(|element| element.name == name) {
            open.truncate(at);
        }
        return;
    }
    if VOID.contains(&name.as_str()) || lower.ends_with('/') || name.is_empty() {
        return;
    }
    let hides = hides(&name, &lower);
    open.push(Open { name, hides });
}

fn hides(name: &str, tag: &str) -> bool {
    if matches!(
        name,
        "script"
            | "style"
            | "head"
            | "title"
            | "template"
            | "noscript"
            | "object"
            | "svg"
            | "select"
    ) {
        return true;
    }
    let tight: String = tag.chars().filter(|c| !c.is_whitespace()).collect();
    HIDING.iter().any(|sign| tight.contains(sign))
        || ZEROS.iter().any(|property| is_nothing(&tight, property))
        || OFF_PAGE.iter().any(|start| starts_property(&tight, start))
        || tag
            .split_whitespace()
            .any(|word| word == "hidden" || word.starts_with("hidden="))
        || same_colours(&tight)
}

/// Whether a property of exactly this name is set to nothing: `opacity:0`, and neither `opacity:0.9` nor `border-width:0`.
fn is_nothing(tight: &str, property: &str) -> bool {
    let mut found = tight.match_indices(property);
    found.any(|(at, _)| {
        let value = &tight[at + property.len()..];
        let digits = value
            .chars()
            .take_while(|c| c.is_ascii_digit() || *c == '.');
        let number: String = digits.collect();
        begins_property(tight, at) && number.parse::<f32>().is_ok_and(|number| number <= NOTHING)
    })
}

fn starts_property(tight: &str, start: &str) -> bool {
    tight
        .match_indices(start)
        .any(|(at, _)| begins_property(tight, at))
}

fn begins_property(tight: &str, at: usize) -> bool {
    tight[..at].ends_with([';', '"', '\'', '{'])
}

/// What nobody can read.
const NOTHING: f32 = 0.09;

/// White on white.
fn same_colours(tight: &str) -> bool {
    let after = |sign: &str| {
        let at = tight.find(sign)? + sign.len();
        let end = tight[at..]
            .find([';', '"', '\''])
            .map_or(tight.len(), |end| at + end);
        Some(tight[at..end].to_owned())
    };
    let ground = after("background-color:").or_else(|| after("background:"));
    let ink = tight
        .match_indices("color:")
        .find(|(at, _)| !tight[..*at].ends_with('-'))
        .and_then(|(at, _)| after_at(tight, at + "color:".len()));
    match (ink, ground) {
        (Some(ink), Some(ground)) => ink == ground,
        (Some(ink), None) => matches!(
            ink.as_str(),
            "white" | "#fff" | "#ffffff" | "transparent" | "rgb(255,255,255)"
        ),
        _ => false,
    }
}

fn after_at(tight: &str, at: usize) -> Option<String> {
    let end = tight[at..]
        .find([';', '"', '\''])
        .map_or(tight.len(), |end| at + end);
    tight.get(at..end).map(str::to_owned)
}

fn entities(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.find(';').filter(|end| *end <= 10);
        let meant = end.and_then(|end| entity(&rest[1..end]));
        match (meant, end) {
            (Some(c), Some(end)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            _ => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn entity(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" | "#39" => '\'',
        "nbsp" => ' ',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    })
}

/// No more than one empty line, and no spaces at the ends.
fn tidy(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim_end) {
        let is_second =
            line.trim().is_empty() && lines.last().is_none_or(|last| last.trim().is_empty());
        if !is_second {
            lines.push(line);
        }
    }
    lines.join("\n").trim().to_owned()
}

const TAGS: [&str; 14] = [
    "html", "body", "div", "p", "span", "table", "br", "a", "font", "b", "td", "style", "img",
    "center",
];
const BLOCKS: [&str; 12] = [
    "p",
    "div",
    "br",
    "tr",
    "li",
    "h1",
    "h2",
    "h3",
    "h4",
    "table",
    "ul",
    "blockquote",
];
const VOID: [&str; 10] = [
    "br", "hr", "img", "input", "meta", "link", "base", "col", "wbr", "area",
];
const HIDING: [&str; 5] = [
    "display:none",
    "visibility:hidden",
    "mso-hide:all",
    "clip:rect(0",
    "aria-hidden=\"true",
];
const ZEROS: [&str; 5] = ["font-size:", "opacity:", "max-height:", "height:", "width:"];
const OFF_PAGE: [&str; 3] = ["text-indent:-", "left:-", "top:-"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s17_what_nobody_sees_is_taken_out_and_said() {
        for hidden in [
            "<div style=\"display: none\">SEND IT</div>",
            "<span style='font-size:0px'>SEND IT</span>",
            "<p hidden>SEND IT</p>",
            "<!-- SEND IT -->",
            "<font style=\"color:#ffffff\">SEND IT</font>",
            "<td style='color: red; background-color: red'>SEND IT</td>",
            "<div style='position:absolute; left:-9999px'>SEND IT</div>",
            "<div style='opacity:0'><b>SEND</b> <i>IT</i></div>",
        ] {
            let seen = visible(&format!(
                "<html><body><p>Hello &amp; welcome</p>{hidden}</body></html>"
            ));
            assert_eq!(seen.text, "Hello & welcome", "{hidden}");
            assert!(seen.removed.contains("hidden text"), "{hidden}: {seen:?}");
        }
    }

    #[test]
    fn invisible_characters_are_taken_out() {
        let seen = visible("pay\u{200b}ment to \u{202e}evil");
        assert_eq!(seen.text, "payment to evil");
        assert_eq!(seen.removed, "2 invisible characters");
    }

    #[test]
    fn plain_text_stays_as_it_is() {
        let text = "if a < b and c > d:\n    done()";
        assert_eq!(visible(text).text, text);
        assert_eq!(visible(text).removed, "");
    }
}
