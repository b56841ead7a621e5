//! The viewer: all pages in one HTML file that needs nothing else, no network and no script.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::mermaid::{self, escaped};

/// All pages in one file.
pub(super) fn html(project: &str, index: &str, pages: &[(String, String)]) -> String {
    let mut links = String::from("<a href=\"#index\">index</a>");
    let mut sections = section("index", index);
    for (name, text) in pages {
        links.push_str(&format!("<a href=\"#{name}\">{name}</a>"));
        sections.push_str(&section(name, text));
    }
    include_str!("viewer.html")
        .replace("{{title}}", &escaped(project))
        .replace("{{links}}", &links)
        .replace("{{sections}}", &sections)
}

fn section(name: &str, text: &str) -> String {
    let mut out = format!("<section id=\"{name}\">\n");
    let events = Drawn {
        events: Parser::new_ext(text, Options::ENABLE_TABLES),
        diagram: None,
    };
    html::push_html(&mut out, events);
    out.push_str("</section>\n");
    out
}

/// The events of a page, with diagrams drawn and links between pages turned into links within the file.
struct Drawn<'a, I: Iterator<Item = Event<'a>>> {
    events: I,
    diagram: Option<String>,
}

impl<'a, I: Iterator<Item = Event<'a>>> Iterator for Drawn<'a, I> {
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
                Event::Text(text) if self.diagram.is_some() => {
                    if let Some(diagram) = &mut self.diagram {
                        diagram.push_str(&text);
                    }
                }
                Event::End(TagEnd::CodeBlock) if self.diagram.is_some() => {
                    let source = self.diagram.take().unwrap_or_default();
                    return Some(Event::Html(picture(&source).into()));
                }
                Event::Start(Tag::Link {
                    link_type,
                    dest_url,
                    title,
                    id,
                }) => {
                    return Some(Event::Start(Tag::Link {
                        link_type,
                        dest_url: within(dest_url),
                        title,
                        id,
                    }));
                }
                // Pages hold no markup of their own; what looks like it is shown as it is.
                Event::Html(text) | Event::InlineHtml(text) => return Some(Event::Text(text)),
                other => return Some(other),
            }
        }
    }
}

/// `x.md` is the section `x`.
fn within(url: CowStr<'_>) -> CowStr<'_> {
    match url.strip_suffix(".md") {
        Some(page) if !page.contains('/') => format!("#{page}").into(),
        _ => url,
    }
}

/// A flowchart as a picture, with its source below; other kinds as their source.
fn picture(source: &str) -> String {
    let drawn = mermaid::parse(source)
        .ok()
        .and_then(|diagram| mermaid::svg(&diagram));
    let source = escaped(source);
    match drawn {
        Some(svg) => format!(
            "<figure>{svg}<details><summary>source</summary><pre>{source}</pre></details></figure>\n"
        ),
        None => format!("<pre>{source}</pre>\n"),
    }
}
