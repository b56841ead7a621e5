//! Markdown of models, and words of strangers in pages that we write.
//!
//! What the sanitizer gives back is parsed again, in dialects that it does not know of, and rendered as the viewer renders it:
//! nothing in it acts.

use archie::fuzzing::write_page;
use archie_agent::markdown::sanitize;
use archie_agent::printable::{is_hidden, printable};
use archie_docs::viewer;
use pulldown_cmark::{Event, Options, Parser, Tag};

pub(super) fn run(bytes: &[u8]) {
    let Some(text) = super::text(bytes) else {
        return;
    };
    let once = sanitize(text);
    check_page(&once);
    check_page(&sanitize(&once));
    // In front of and behind words of ours.
    check_page(&format!("# Title\n\n- ours\n\n{once}\n\nEnd.\n"));
    check_page(&write_page(text));
    for page in [text, &once] {
        check_view(&viewer::html("project", page, &[]));
    }
}

/// No raw HTML, link or image, whichever dialect reads it, and nothing that steers a terminal.
fn check_page(page: &str) {
    assert_eq!(printable(page), page, "it has hidden characters");
    for dialect in [Options::empty(), FORGES, FORGES.union(OTHERS)] {
        for event in Parser::new_ext(page, dialect) {
            let acts = matches!(
                event,
                Event::Html(_)
                    | Event::InlineHtml(_)
                    | Event::Start(Tag::HtmlBlock | Tag::Link { .. } | Tag::Image { .. })
            );
            assert!(!acts, "{event:?} is left in {page:?}");
        }
    }
}

/// Every element is one that pages are made of, without handlers, and every link leads to the web, a mail address or the page.
fn check_view(html: &str) {
    let empty = viewer::html("project", "", &[]);
    for element in ACTIVE {
        let (found, ours) = (count(html, element), count(&empty, element));
        assert_eq!(found, ours, "`{element}` is in the view");
    }
    for tag in html.split('<').skip(1) {
        // A `>` inside of a value is escaped.
        let tag = tag.split('>').next().unwrap_or_default();
        assert!(!tag.contains(" on"), "a handler is in the view: <{tag}>");
    }
    for link in html.split("href=\"").skip(1) {
        let link = link.split('"').next().unwrap_or_default();
        check_link(&link.replace("&amp;", "&"));
    }
}

fn check_link(link: &str) {
    assert!(!link.chars().any(|c| is_hidden(c) || c == '\\'), "{link:?}");
    // Up to here a browser looks for a scheme.
    let head = link.split(['/', '?', '#']).next().unwrap_or_default();
    let is_allowed = match head.split_once(':') {
        Some((scheme, _)) => ["http", "https", "mailto"]
            .iter()
            .any(|allowed| scheme.eq_ignore_ascii_case(allowed)),
        None => !link.starts_with('/'),
    };
    assert!(is_allowed, "a link leads to {link:?}");
}

/// Elements are written in small letters, as the cleaner writes them.
fn count(html: &str, element: &str) -> usize {
    html.matches(element).count()
}

const FORGES: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_GFM);
const OTHERS: Options = Options::ENABLE_HEADING_ATTRIBUTES
    .union(Options::ENABLE_DEFINITION_LIST)
    .union(Options::ENABLE_SUBSCRIPT)
    .union(Options::ENABLE_SUPERSCRIPT)
    .union(Options::ENABLE_WIKILINKS);

/// What could load, run or send something.
const ACTIVE: [&str; 14] = [
    "<script",
    "<img",
    "<iframe",
    "<object",
    "<embed",
    "<form",
    "<input",
    "<button",
    "<base",
    "<link",
    "<meta",
    "<style",
    "<video",
    "<foreignObject",
];
