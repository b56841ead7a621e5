//! Extracts the text that a person would see in an email: removes tags, and the text that styles or attributes hide.
//!
//! This is not a browser, but it parses HTML as one does. Where it cannot tell whether text is visible, it removes it. It
//! reports what it removed, so that a person can look at the original.

mod invisible;
mod look;
mod rules;
mod tree;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use look::Look;
use rules::{Key, Rules};
use tree::{Data, Element, Tree};

pub use invisible::is_invisible;

/// Visible text of an email, and a description of what was removed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct VisibleText {
    /// Text that a person would see.
    pub text: String,
    /// Description of what was removed; empty if nothing was.
    pub removed: String,
}

/// Returns the visible part of a text that may be HTML.
pub fn visible(source: &str) -> VisibleText {
    match looks_like_html(source) {
        true => visible_html(source),
        false => finish(cut_text(source), 0, Vec::new()),
    }
}

/// Returns the visible part of HTML.
pub fn visible_html(source: &str) -> VisibleText {
    let tree = Tree::read(source);
    let mut painter = TextCollector::new(&tree);
    painter.paint();
    let mut cuts = Vec::new();
    if !tree.cut.is_empty() {
        cuts.push(tree.cut);
    }
    finish(cut_text(&painter.text), painter.hidden, cuts)
}

/// Removes invisible and control characters from a header value, and cuts it to 10,000 bytes.
pub fn plain(text: &str) -> String {
    let head = &text[..text.floor_char_boundary(LINE_BYTES_MAX.min(text.len()))];
    head.chars()
        .filter(|c| !is_invisible(*c) && !c.is_control())
        .collect()
}

/// Returns the text up to [`TEXT_BYTES_MAX`], and whether it was cut.
fn cut_text(text: &str) -> (&str, bool) {
    match text.len() > TEXT_BYTES_MAX {
        true => (&text[..text.floor_char_boundary(TEXT_BYTES_MAX)], true),
        false => (text, false),
    }
}

fn finish(text: (&str, bool), hidden: usize, mut cuts: Vec<&'static str>) -> VisibleText {
    let (text, is_cut) = text;
    let mut invisible = 0;
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if is_invisible(c) => invisible += 1,
            c if invisible::is_odd_space(c) => shown.push(' '),
            c => shown.push(c),
        }
    }
    if is_cut {
        cuts.push("everything after the first 512 KiB of text");
    }
    let mut removed = Vec::new();
    if hidden > 0 {
        removed.push(format!("{hidden} characters of hidden text"));
    }
    if invisible > 0 {
        removed.push(format!("{invisible} invisible characters"));
    }
    removed.extend(cuts.into_iter().map(str::to_owned));
    VisibleText {
        text: tidy(&shown),
        removed: removed.join(", "),
    }
}

/// Returns whether `source` contains a known HTML tag, a comment or a `doctype`.
fn looks_like_html(source: &str) -> bool {
    source.match_indices('<').any(|(at, _)| {
        let rest = source[at + 1..].trim_start_matches('/').as_bytes();
        let end = rest
            .iter()
            .take(NAME_BYTES_MAX)
            .position(|byte| !byte.is_ascii_alphanumeric());
        let Some(end) = end.filter(|end| *end > 0) else {
            return rest.starts_with(b"!--") || rest.starts_with(b"!doctype");
        };
        let name = String::from_utf8_lossy(&rest[..end]).to_ascii_lowercase();
        let is_end = rest[end].is_ascii_whitespace() || matches!(rest[end], b'>' | b'/');
        is_end && TAGS.contains(&name.as_str())
    })
}

/// Walks a document and collects its visible text.
struct TextCollector<'a> {
    tree: &'a Tree,
    rules: Rules,
    /// Number of open elements per key, for keys that some rule requires of an ancestor.
    above: HashMap<Key, usize>,
    text: String,
    hidden: usize,
}

/// An element whose end has not been reached.
struct Open<'a> {
    element: Option<&'a Element>,
    look: Look,
    keys: Vec<Key>,
    /// Next child to visit.
    child: Option<usize>,
    /// Whether a `summary` child was visited; only the first one of a closed `details` is visible.
    has_summary: bool,
    is_silent: bool,
    keeps_spaces: bool,
}

impl<'a> TextCollector<'a> {
    fn new(tree: &'a Tree) -> Self {
        let mut rules = Rules::default();
        for node in tree.nodes() {
            if let Data::Element(element) = &node.data
                && element.name() == "style"
            {
                let mut child = node.first_child;
                while let Some(at) = child {
                    if let Data::Text(sheet) = &tree.node(at).data {
                        rules.read(sheet);
                    }
                    child = tree.node(at).next;
                }
            }
        }
        Self {
            tree,
            rules,
            above: HashMap::new(),
            text: String::new(),
            hidden: 0,
        }
    }

    fn paint(&mut self) {
        let mut open = vec![Open {
            element: None,
            look: Look::default(),
            keys: Vec::new(),
            child: self.tree.node(Tree::ROOT).first_child,
            has_summary: false,
            is_silent: false,
            keeps_spaces: false,
        }];
        while let Some(top) = open.last_mut() {
            let Some(at) = top.child else {
                self.close(top);
                open.pop();
                continue;
            };
            let tree = self.tree;
            let node = tree.node(at);
            top.child = node.next;
            match &node.data {
                Data::Text(text) => self.add(text, top),
                Data::Comment(text) => self.hidden += count(text),
                Data::Other => {}
                Data::Element(element) => {
                    let next = self.open(element, node.first_child, top);
                    open.push(next);
                }
            }
        }
    }

    fn open(
        &mut self,
        element: &'a Element,
        child: Option<usize>,
        parent: &mut Open<'a>,
    ) -> Open<'a> {
        let name = element.name();
        match name {
            "br" => self.text.push('\n'),
            "td" | "th" if !self.text.ends_with([' ', '\n']) => self.text.push(' '),
            name if BLOCKS.contains(&name) => self.end_line(),
            _ => {}
        }
        let keys = Key::of(element);
        let look = match &keys {
            Some(keys) => {
                let above = &self.above;
                let is_inside = |key: &Key| above.get(key).is_some_and(|count| *count > 0);
                let declared = self.rules.of(element, keys, is_inside);
                parent.look.inside(element, &declared)
            }
            None => parent.look.gone(),
        };
        let is_summary = name == "summary" && !parent.has_summary;
        parent.has_summary |= is_summary;
        let is_folded = parent.element.is_some_and(|parent| {
            parent.name() == "details" && parent.attribute("open").is_none() && !is_summary
        });
        let is_gone = is_folded
            || UNSEEN.contains(&name)
            || SILENT.contains(&name)
            || element.attribute("hidden").is_some()
            || element.attribute("popover").is_some()
            || (name == "dialog" && element.attribute("open").is_none())
            || (name == "marquee"
                && ["width", "height"]
                    .iter()
                    .any(|side| element.attribute(side) == Some("0")));
        let keys = keys.unwrap_or_default();
        for key in keys.iter().filter(|key| self.rules.ancestors.contains(key)) {
            *self.above.entry(key.clone()).or_default() += 1;
        }
        Open {
            look: if is_gone { look.gone() } else { look },
            is_silent: parent.is_silent || SILENT.contains(&name),
            keeps_spaces: parent.keeps_spaces || matches!(name, "pre" | "textarea"),
            element: Some(element),
            keys,
            child,
            has_summary: false,
        }
    }

    fn close(&mut self, open: &Open<'a>) {
        for key in &open.keys {
            if let Some(count) = self.above.get_mut(key) {
                *count -= 1;
            }
        }
        if open
            .element
            .is_some_and(|element| BLOCKS.contains(&element.name()))
        {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn add(&mut self, text: &str, inside: &Open<'a>) {
        let is_folded = inside.element.is_some_and(|element| {
            element.name() == "details" && element.attribute("open").is_none()
        });
        if inside.look.hides() || is_folded {
            if !inside.is_silent {
                self.hidden += count(text);
            }
            return;
        }
        if inside.keeps_spaces {
            self.text.push_str(text);
            return;
        }
        for c in text.chars() {
            match c.is_ascii_whitespace() {
                true if self.text.ends_with([' ', '\n']) || self.text.is_empty() => {}
                true => self.text.push(' '),
                false => self.text.push(c),
            }
        }
    }
}

fn count(text: &str) -> usize {
    text.trim().chars().count()
}

/// Collapses consecutive empty lines into one and trims the ends.
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

/// Maximum text passed to a model, in bytes.
const TEXT_BYTES_MAX: usize = 512 << 10;
/// Maximum length of a subject, a name or an address, in bytes.
const LINE_BYTES_MAX: usize = 10_000;
const NAME_BYTES_MAX: usize = 16;

/// Tags that make a text count as HTML.
const TAGS: &[&str] = &[
    "a",
    "abbr",
    "address",
    "article",
    "aside",
    "b",
    "base",
    "bdo",
    "big",
    "blockquote",
    "body",
    "br",
    "button",
    "center",
    "code",
    "dd",
    "del",
    "details",
    "dialog",
    "div",
    "dl",
    "dt",
    "em",
    "fieldset",
    "figure",
    "font",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "i",
    "iframe",
    "img",
    "input",
    "ins",
    "label",
    "li",
    "link",
    "main",
    "map",
    "mark",
    "marquee",
    "meta",
    "nav",
    "noscript",
    "object",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "script",
    "section",
    "select",
    "small",
    "span",
    "strike",
    "strong",
    "style",
    "sub",
    "summary",
    "sup",
    "svg",
    "table",
    "tbody",
    "td",
    "template",
    "textarea",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "tt",
    "u",
    "ul",
    "var",
    "video",
];
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "caption",
    "center",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "tr",
    "ul",
];
/// Elements that contain no text for a reader; their content does not count as hidden text.
const SILENT: &[&str] = &["head", "script", "style", "title"];
/// Elements that mail programs do not show, or replace with something else.
const UNSEEN: &[&str] = &[
    "applet", "area", "audio", "canvas", "datalist", "embed", "frameset", "iframe", "map", "math",
    "meter", "noembed", "noframes", "noscript", "object", "progress", "rp", "select", "svg",
    "template", "video",
];
