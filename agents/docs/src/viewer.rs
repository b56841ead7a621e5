//! The viewer: all pages in one self-contained HTML file, with a sidebar and a search, without network access.
//!
//! Names and pages may come from an untrusted repository. `maud` writes the markup and escapes what it is given; the pages go
//! through `pulldown-cmark` without raw HTML and then through `ammonia`; and a content security policy forbids everything that
//! the file does not need. The only script is `viewer.js`, which the policy allows by its hash; it searches the pages and writes no
//! markup. Without scripts, everything but the search works: the sidebar, the themes and the browser's own search.

use std::collections::{HashMap, HashSet};

use archie_agent::markdown;
use archie_agent::printable::{one_line, printable};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Parser, Tag, TagEnd};
use sha2::{Digest, Sha256};

use super::mermaid;

/// Renders all pages, given as names and Markdown, into one HTML file.
pub fn html(project: &str, index: &str, pages: &[(String, String)]) -> String {
    let mut all: Vec<Section<'_>> = vec![Section {
        anchor: "index".to_owned(),
        title: "Overview".to_owned(),
        text: index,
    }];
    for (at, (name, text)) in pages.iter().enumerate() {
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let anchor = match is_plain && !name.is_empty() {
            true => name.clone(),
            false => format!("page-{}", at + 1),
        };
        let title = page_title(text).unwrap_or_else(|| one_line(name));
        all.push(Section {
            anchor,
            title,
            text,
        });
    }
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
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
                nav aria-label="Pages" {
                    h2 { (one_line(project)) }
                    // The script shows it: without scripts it would do nothing.
                    input id="search" type="search" placeholder="Search" aria-label="Search all pages" autocomplete="off" hidden;
                    p id="search-note" role="status" {}
                    ul {
                        @for section in &all {
                            li data-page=(section.anchor) {
                                a href=(format!("#{}", section.anchor)) { (section.title) }
                                (section.outline())
                            }
                        }
                    }
                    (themes())
                }
                main {
                    @for section in &all {
                        section id=(section.anchor) { (section.body()) }
                    }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    let mut page = page.into_string();
    page.push('\n');
    page
}

/// Returns the choice of light and dark. The style sheet reads it; it needs no script.
fn themes() -> Markup {
    html! {
        fieldset aria-label="Theme" {
            @for (id, name) in [("theme-auto", "auto"), ("theme-light", "light"), ("theme-dark", "dark")] {
                label {
                    input id=(id) type="radio" name="theme" checked[id == "theme-auto"];
                    " " (name)
                }
            }
        }
    }
}

/// Returns the text of a page's first heading, which a reader understands better than the name of an agent.
pub(super) fn page_title(text: &str) -> Option<String> {
    let title = headings(text).into_iter().next()?;
    (title.level == HeadingLevel::H1 && !title.text.trim().is_empty()).then_some(title.text)
}

/// A heading of a page.
struct Heading {
    level: HeadingLevel,
    text: String,
}

/// Returns the headings of a page, in order.
fn headings(text: &str) -> Vec<Heading> {
    let mut found: Vec<Heading> = Vec::new();
    let mut is_open = false;
    for event in Parser::new_ext(text, markdown::DIALECT) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                is_open = true;
                found.push(Heading {
                    level,
                    text: String::new(),
                });
            }
            Event::End(TagEnd::Heading(_)) => is_open = false,
            Event::Text(words) | Event::Code(words) if is_open => {
                if let Some(heading) = found.last_mut() {
                    heading.text.push_str(&one_line(&words));
                }
            }
            _ => {}
        }
    }
    found
}

struct Section<'a> {
    /// Id of the section, the target of links within the file.
    anchor: String,
    /// What the sidebar calls it.
    title: String,
    text: &'a str,
}

impl Section<'_> {
    /// Returns links to the second-level headings of the page.
    fn outline(&self) -> Markup {
        if markdown::is_too_deep(self.text) {
            return Markup::default();
        }
        let headings = headings(self.text);
        let links: Vec<_> = headings
            .iter()
            .enumerate()
            .filter(|(_, heading)| heading.level == HeadingLevel::H2)
            .take(OUTLINE_MAX)
            .collect();
        html! {
            @if !links.is_empty() {
                ul {
                    @for (at, heading) in links {
                        li { a href=(format!("#{}", heading_id(&self.anchor, at))) { (heading.text) } }
                    }
                }
            }
        }
    }

    fn body(&self) -> Markup {
        // A page from an untrusted repository may be nested too deeply to render.
        if markdown::is_too_deep(self.text) {
            return html! { pre { (printable(self.text)) } };
        }
        let events = DiagramEvents {
            events: Parser::new_ext(self.text, markdown::DIALECT),
            anchor: &self.anchor,
            headings: 0,
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
        "polygon",
        "text",
    ];
    let place = ["x", "y", "width", "height", "rx"];
    let attributes = HashMap::from([
        ("a", HashSet::from(["href"])),
        ("ol", HashSet::from(["start"])),
        // Only we give headings an id: pages have no raw HTML, and their dialect has no attributes.
        ("h1", HashSet::from(["id"])),
        ("h2", HashSet::from(["id"])),
        ("h3", HashSet::from(["id"])),
        ("svg", HashSet::from(["viewBox", "width", "role"])),
        ("rect", HashSet::from(place)),
        ("line", HashSet::from(["x1", "y1", "x2", "y2"])),
        ("polygon", HashSet::from(["points"])),
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

/// Returns the id of a heading, by its number within the page.
fn heading_id(anchor: &str, at: usize) -> String {
    format!("{anchor}.{}", at + 1)
}

/// Markdown events of a page. Draws diagrams, gives headings an id, and turns links between pages into links within the file.
struct DiagramEvents<'a, 'p, I: Iterator<Item = Event<'a>>> {
    events: I,
    /// Id of the page's section.
    anchor: &'p str,
    /// Number of headings so far.
    headings: usize,
    diagram: Option<String>,
    /// For each open link, whether it was dropped.
    dropped: Vec<bool>,
}

impl<'a, I: Iterator<Item = Event<'a>>> Iterator for DiagramEvents<'a, '_, I> {
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
                Event::Start(Tag::Heading { level, .. }) => {
                    let id = heading_id(self.anchor, self.headings);
                    self.headings += 1;
                    return Some(Event::Start(Tag::Heading {
                        level,
                        id: Some(id.into()),
                        classes: Vec::new(),
                        attrs: Vec::new(),
                    }));
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
const SCRIPT: &str = include_str!("viewer.js");
/// Maximum number of headings of a page in the sidebar.
const OUTLINE_MAX: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> String {
        html(
            "shop",
            "# shop\n\n[Parts](parts.md)",
            &[("parts".to_owned(), text.to_owned())],
        )
    }

    #[test]
    fn the_sidebar_has_titles_and_headings_that_lead_somewhere() {
        let shown = page("# Parts of it\n\n## First `one`\n\ntext\n\n### Deeper\n\n## Second\n");
        assert!(shown.contains(">Overview</a>"), "{shown}");
        assert!(
            shown.contains("<a href=\"#parts\">Parts of it</a>"),
            "{shown}"
        );
        for (id, text) in [("parts.2", "First one"), ("parts.4", "Second")] {
            assert!(
                shown.contains(&format!("<a href=\"#{id}\">{text}</a>")),
                "{shown}"
            );
            assert!(shown.contains(&format!("<h2 id=\"{id}\">")), "{shown}");
        }
    }

    #[test]
    fn one_script_is_allowed_by_its_hash_and_nothing_else() {
        let shown = page("# <script>alert(1)</script>\n\n<script>alert(2)</script> {#search}\n");
        assert_eq!(shown.matches("<script").count(), 1, "{shown}");
        assert!(shown.contains(&format!("<script>{SCRIPT}</script>")));
        let hash = BASE64_STANDARD.encode(Sha256::digest(SCRIPT));
        assert!(
            shown.contains(&format!("script-src &apos;sha256-{hash}&apos;"))
                || shown.contains(&format!("script-src 'sha256-{hash}'")),
            "{shown}"
        );
        assert!(
            !shown.contains("unsafe-inline") && !shown.contains("src="),
            "{shown}"
        );
        // The end of the script element cannot come from within it, and it writes no markup.
        assert!(!SCRIPT.contains("</") && !SCRIPT.contains("innerHTML") && !SCRIPT.contains('<'));
    }

    #[test]
    fn diagrams_have_arrow_heads_and_a_width_that_fits() {
        let wide: String = (0..30).map(|at| format!("A --> B{at}\n")).collect();
        let shown = page(&format!("# P\n\n```mermaid\ngraph TD\n{wide}```\n"));
        assert_eq!(shown.matches("<polygon points=").count(), 30, "{shown}");
        let width = shown.split("viewBox=\"0 0 ").nth(1).unwrap();
        let width: usize = width.split(' ').next().unwrap().parse().unwrap();
        assert!(width <= 1_024, "{width}");
    }
}
