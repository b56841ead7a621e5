//! The viewer: all pages in one self-contained HTML file, without scripts or network access.
//!
//! Names and pages may come from an untrusted repository. `maud` writes the markup and escapes what it is given; the pages go
//! through `pulldown-cmark` without raw HTML and then through `ammonia`; and a content security policy forbids everything that
//! the file does not need.

use std::collections::{HashMap, HashSet};

use archie_agent::markdown;
use archie_agent::printable::{one_line, printable};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use pulldown_cmark::{CodeBlockKind, CowStr, Event, Parser, Tag, TagEnd};
use sha2::{Digest, Sha256};

use super::mermaid;

/// Renders all pages, given as names and Markdown, into one HTML file.
pub fn html(project: &str, index: &str, pages: &[(String, String)]) -> String {
    let mut all: Vec<Section<'_>> = vec![Section {
        anchor: "index".to_owned(),
        name: "index",
        text: index,
    }];
    for (at, (name, text)) in pages.iter().enumerate() {
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let anchor = match is_plain && !name.is_empty() {
            true => name.clone(),
            false => format!("page-{}", at + 1),
        };
        all.push(Section { anchor, name, text });
    }
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        BASE64_STANDARD.encode(Sha256::digest(STYLE))
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="referrer" content="no-referrer";
                title { (one_line(project)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                nav {
                    @for section in &all {
                        a href=(format!("#{}", section.anchor)) { (one_line(section.name)) }
                    }
                }
                main {
                    @for section in &all {
                        section id=(section.anchor) { (section.body()) }
                    }
                }
            }
        }
    };
    let mut page = page.into_string();
    page.push('\n');
    page
}

struct Section<'a> {
    /// Id of the section, the target of links within the file.
    anchor: String,
    name: &'a str,
    text: &'a str,
}

impl Section<'_> {
    fn body(&self) -> Markup {
        // A page from an untrusted repository may be nested too deeply to render.
        if markdown::is_too_deep(self.text) {
            return html! { pre { (printable(self.text)) } };
        }
        let events = DiagramEvents {
            events: Parser::new_ext(self.text, markdown::DIALECT),
            diagram: None,
            dropped: Vec::new(),
        };
        let mut body = String::new();
        pulldown_cmark::html::push_html(&mut body, events);
        PreEscaped(cleaned(&body))
    }
}

/// Removes all HTML except the elements and attributes that pages use.
fn cleaned(body: &str) -> String {
    let tags = [
        "p",
        "br",
        "hr",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "em",
        "strong",
        "del",
        "code",
        "pre",
        "blockquote",
        "ul",
        "ol",
        "li",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "a",
        "figure",
        "details",
        "summary",
        "svg",
        "rect",
        "line",
        "text",
    ];
    let place = ["x", "y", "width", "height", "rx"];
    let attributes = HashMap::from([
        ("a", HashSet::from(["href"])),
        ("ol", HashSet::from(["start"])),
        ("svg", HashSet::from(["viewBox", "width", "role"])),
        ("rect", HashSet::from(place)),
        ("line", HashSet::from(["x1", "y1", "x2", "y2"])),
        ("text", HashSet::from(["x", "y", "class"])),
    ]);
    ammonia::Builder::empty()
        .tags(HashSet::from(tags))
        .tag_attributes(attributes)
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(ammonia::UrlRelative::PassThrough)
        .link_rel(Some("noopener noreferrer"))
        .clean(body)
        .to_string()
}

/// Markdown events of a page. Draws diagrams, and turns links between pages into links within the file.
struct DiagramEvents<'a, I: Iterator<Item = Event<'a>>> {
    events: I,
    diagram: Option<String>,
    /// For each open link, whether it was dropped.
    dropped: Vec<bool>,
}

impl<'a, I: Iterator<Item = Event<'a>>> Iterator for DiagramEvents<'a, I> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        loop {
            let event = self.events.next()?;
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(ref language)))
                    if &**language == "mermaid" =>
                {
                    self.diagram = Some(String::new());
                }
                Event::Text(text) => match &mut self.diagram {
                    Some(diagram) => diagram.push_str(&text),
                    None => return Some(Event::Text(printable(&text).into())),
                },
                Event::Code(code) => return Some(Event::Code(one_line(&code).into())),
                Event::End(TagEnd::CodeBlock) if self.diagram.is_some() => {
                    let source = self.diagram.take().unwrap_or_default();
                    return Some(Event::Html(picture(&source).into_string().into()));
                }
                Event::Start(Tag::Link {
                    link_type,
                    dest_url,
                    id,
                    ..
                }) => {
                    let is_allowed = markdown::is_allowed_link(&dest_url);
                    self.dropped.push(!is_allowed);
                    if is_allowed {
                        return Some(Event::Start(Tag::Link {
                            link_type,
                            dest_url: within(dest_url),
                            title: "".into(),
                            id,
                        }));
                    }
                }
                Event::End(TagEnd::Link) => {
                    if self.dropped.pop() == Some(false) {
                        return Some(Event::End(TagEnd::Link));
                    }
                }
                // The browser would have to load an image from somewhere; its alternative text remains.
                Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => {}
                Event::Start(Tag::HtmlBlock) => return Some(Event::Start(Tag::Paragraph)),
                Event::End(TagEnd::HtmlBlock) => return Some(Event::End(TagEnd::Paragraph)),
                // Pages contain no markup of their own. Anything that looks like it is shown as text.
                Event::Html(text) | Event::InlineHtml(text) => {
                    return Some(Event::Text(printable(&text).into()));
                }
                other => return Some(other),
            }
        }
    }
}

/// Turns a link to the page `x.md` into a link to the section `x`.
fn within(url: CowStr<'_>) -> CowStr<'_> {
    match url.strip_suffix(".md") {
        Some(page) if !page.contains('/') => format!("#{page}").into(),
        _ => url,
    }
}

/// Renders a flowchart as an image with its source below, and other kinds of diagram as their source.
fn picture(source: &str) -> Markup {
    let drawn = mermaid::parse(source)
        .ok()
        .and_then(|diagram| mermaid::svg(&diagram));
    let source = printable(source);
    match drawn {
        Some(svg) => html! {
            figure { (svg) details { summary { "source" } pre { (source) } } }
        },
        None => html! { pre { (source) } },
    }
}

const STYLE: &str = include_str!("viewer.css");
