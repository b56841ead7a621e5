//! Links between the book and the pages that rustdoc makes of the libraries: both are in the target folder, next to each other.
//!
//! A page of the repository links to the `lib.rs` of a library, where its introduction is. In the book, that is its front page.

use std::fs;
use std::path::Path;

use super::{BTreeSet, read_files, resolve, values};
use crate::metadata::{Metadata, Package};

/// Where a link of this chapter to this file leads in the book, if the file is the front page of a library.
pub(super) fn front_page(chapter: &str, file: &str) -> Option<String> {
    let name = match file.strip_suffix("/src/lib.rs")?.split_once('/')? {
        ("agents", agent) if agent != "archie-agent" => format!("archie-{agent}"),
        ("agents" | "apps" | "crates", name) => name.to_owned(),
        _ => return None,
    };
    let up = "../".repeat(chapter.split('/').count() - 1);
    Some(format!("{up}{TO_API}{}/index.html", name.replace('-', "_")))
}

/// Whether a link of the book leads to pages of rustdoc.
pub(super) fn is_api_page(link: &str) -> bool {
    link.trim_start_matches("../").starts_with("doc/") && link.starts_with("../")
}

/// What is missing, or leads nowhere, between the book and the front pages of the published libraries.
pub(super) fn broken_links(target: &Path) -> anyhow::Result<Vec<String>> {
    let book = target.join("book/html");
    let mut pages = std::collections::BTreeMap::new();
    read_files(&book, &book, &mut pages)?;
    let links = pages.iter().filter(|(path, _)| path.ends_with(".html"));
    let links = links.flat_map(|(page, text)| values(text, "href").map(move |link| (page, link)));
    let mut linked = BTreeSet::new();
    let mut broken = Vec::new();
    for (page, link) in links.filter(|(_, link)| is_api_page(link)) {
        let file = resolve(page, link);
        if !target.join(&file).is_file() {
            broken.push(format!("{page}: `{link}`"));
        }
        linked.insert(file);
    }
    let metadata = Metadata::read()?;
    for library in metadata.published().filter_map(Package::library) {
        let front = format!("doc/{library}/index.html");
        if !linked.contains(&front) {
            broken.push(format!("no page of the book links to `{front}`"));
        }
        let text = fs::read_to_string(target.join(&front)).unwrap_or_default();
        let back: Vec<_> = values(&text, "href")
            .filter(|link| link.contains("book/html/"))
            .collect();
        if back.is_empty() {
            broken.push(format!("{front} links to no page of the book"));
        } else if !text.contains("cargo xtask book") {
            broken.push(format!(
                "{front} does not say where its links to the book work"
            ));
        }
        for link in back
            .into_iter()
            .filter(|link| !target.join(resolve(&front, link)).is_file())
        {
            broken.push(format!("{front}: `{link}`"));
        }
    }
    Ok(broken)
}

/// From the root of the book to the pages of rustdoc.
const TO_API: &str = "../../doc/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_of_a_library_is_its_front_page() {
        let front = front_page("docs/howto/a.md", "crates/superstep-core/src/lib.rs");
        let front = front.unwrap();
        assert_eq!(front, "../../../../doc/superstep_core/index.html");
        assert!(is_api_page(&front));
        assert_eq!(
            resolve("docs/howto/a.html", &front),
            "doc/superstep_core/index.html"
        );
        assert_eq!(
            front_page("docs/a.md", "crates/superstep/src/graph.rs"),
            None
        );
        let agent = front_page("docs/a.md", "agents/email-assistant/src/lib.rs").unwrap();
        assert_eq!(agent, "../../../doc/archie_email_assistant/index.html");
        let host = front_page("docs/a.md", "agents/archie-agent/src/lib.rs").unwrap();
        assert_eq!(host, "../../../doc/archie_agent/index.html");
        assert!(!is_api_page("../docs/a.html"));
    }

    #[test]
    fn a_library_without_links_in_both_directions_is_a_fault() {
        let target = tempfile::tempdir().unwrap();
        fs::create_dir_all(target.path().join("book/html")).unwrap();
        let page = "<a href=\"../../doc/superstep/index.html\">superstep</a>";
        fs::write(target.path().join("book/html/a.html"), page).unwrap();
        let broken = broken_links(target.path()).unwrap();
        assert!(broken.contains(&"a.html: `../../doc/superstep/index.html`".to_owned()));
        assert!(
            broken.contains(&"doc/superstep/index.html links to no page of the book".to_owned())
        );
        assert!(
            broken.contains(
                &"no page of the book links to `doc/superstep_core/index.html`".to_owned()
            )
        );
    }
}
