//! `cargo xtask book`: the pages of the repository as an mdBook, and every link of it followed.
//!
//! mdBook renders one folder, and our pages are where a reader of the files looks for them: next to the code. So the pages are
//! copied first, each to the same place below one folder. Links between pages stay as they are written.

mod api;
pub(crate) mod commands;
mod diagram;
mod screens;
mod search;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value as Json;

use crate::error_index;
use crate::markdown::{is_elsewhere, links};
use crate::programs::install_crate;
use crate::studio;
use harness::workspace::{cargo, output_of, program, root};

/// Opens pages of the book in a browser, after building it.
pub(crate) fn run_in_browser() -> anyhow::Result<()> {
    run()?;
    studio::install()?;
    screens::check(&target_folder()?.join("book"))
}

/// Builds the book and fails if one of its links leads nowhere, or if its search does not find what people look for.
pub(crate) fn run() -> anyhow::Result<()> {
    // Without its server and its watcher, which are most of it.
    let features = ["--no-default-features", "--features", "search"];
    let mdbook = install_crate("mdbook", VERSION, &features)?;
    let folder = target_folder()?.join("book");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    copy_pages(&folder)?;
    let mut build = program(&mdbook.display().to_string());
    output_of(build.arg("build").arg(&folder))?;
    let (pages, mut broken) = follow_links(&folder.join("html"))?;
    build_api_pages()?;
    broken.extend(api::broken_links(&target_folder()?)?);
    if !broken.is_empty() {
        bail!("links of the book lead nowhere:\n  {}", broken.join("\n  "));
    }
    search::check(&folder.join("html"))?;
    eprintln!(
        "{pages} pages are in {}; open index.html",
        folder.join("html").display()
    );
    Ok(())
}

/// The pages of the libraries, which the book links to and which link back. Quick if they are there already.
fn build_api_pages() -> anyhow::Result<()> {
    let mut doc = cargo();
    doc.args(["doc", "--quiet", "--workspace", "--no-deps"]);
    // As `verify` builds them: with other flags, cargo would build every page again.
    output_of(doc.env("RUSTDOCFLAGS", "-D warnings")).map(drop)
}

fn target_folder() -> anyhow::Result<PathBuf> {
    let text = output_of(cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Json = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
    let folder = metadata["target_directory"].as_str();
    Ok(PathBuf::from(
        folder.context("cargo metadata names no target folder")?,
    ))
}

/// Copies the chapters and the files that they show or link to.
fn copy_pages(folder: &Path) -> anyhow::Result<()> {
    let summary = fs::read_to_string(root().join(SUMMARY))?;
    let codes = error_index::pages()?.into_keys().collect::<Vec<_>>();
    let summary = from_root(&summary, &codes);
    let chapters: BTreeSet<String> = links(&summary).into_iter().map(|(_, page)| page).collect();
    let mut faults = missing_chapters(&chapters)?;
    let pages = folder.join("pages");
    for chapter in &chapters {
        let mut page = fs::read_to_string(root().join(chapter))
            .with_context(|| format!("`{chapter}`, a page of {SUMMARY}, cannot be read"))?;
        for (line, link) in links(&page) {
            let target = link.split('#').next().unwrap_or_default();
            let path = resolve(chapter, target);
            if is_elsewhere(&link) {
                continue;
            } else if let Some(front) = api::front_page(chapter, &path) {
                page = page.replace(&format!("]({link})"), &format!("]({front})"));
            } else if chapters.contains(&path) {
                page = page.replace(&format!("]({link})"), &format!("]({})", in_book(&link)));
            } else if root().join(&path).is_file() && !path.ends_with(".md") {
                write(&pages.join(&path), &fs::read(root().join(&path))?)?;
            } else {
                faults.push(format!("{chapter}:{line}: `{link}` is not in {SUMMARY}"));
            }
        }
        let page = diagram::draw_diagrams(&page);
        write(&pages.join(in_book(chapter)), page.as_bytes())?;
    }
    if !faults.is_empty() {
        bail!("the book is not whole:\n  {}", faults.join("\n  "));
    }
    write(&pages.join("SUMMARY.md"), in_book(&summary).as_bytes())?;
    for name in ["book.toml", "book.css"] {
        fs::copy(root().join("docs").join(name), folder.join(name))?;
    }
    Ok(())
}

/// mdBook opens a folder with the page `index.md`, as those who show files do with `README.md`.
fn in_book(text: &str) -> String {
    text.replace("README.md", "index.md")
}

fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
    fs::write(path, content).with_context(|| format!("{} cannot be written", path.display()))
}

/// The index with its links as seen from the root of the workspace, and the pages of errors below theirs.
fn from_root(summary: &str, codes: &[String]) -> String {
    let mut text = String::new();
    for line in summary.lines() {
        let Some((before, rest)) = line.split_once("](") else {
            text.push_str(&format!("{line}\n"));
            continue;
        };
        let target = rest.trim_end_matches(')');
        text.push_str(&format!("{before}]({})\n", resolve(SUMMARY, target)));
        if target == "errors/README.md" {
            for code in codes {
                text.push_str(&format!(
                    "  - [{code}]({}/{code}.md)\n",
                    error_index::FOLDER
                ));
            }
        }
    }
    text
}

/// Pages of `docs/` and of the folders of the book's parts that the index does not list.
fn missing_chapters(chapters: &BTreeSet<String>) -> anyhow::Result<Vec<String>> {
    let mut missing = Vec::new();
    let parts = FOLDERS.iter().map(|part| format!("docs/{part}"));
    for folder in std::iter::once("docs".to_owned()).chain(parts) {
        for entry in fs::read_dir(root().join(&folder))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let path = format!("{folder}/{name}");
            if name.ends_with(".md") && path != SUMMARY && !chapters.contains(&path) {
                missing.push(format!("{path} is not in {SUMMARY}"));
            }
        }
    }
    Ok(missing)
}

/// Where a link of a file leads, from the folder that the file's own path begins in.
fn resolve(file: &str, link: &str) -> String {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// How many pages there are, and the links of them that lead to no file or to no place in it.
fn follow_links(folder: &Path) -> anyhow::Result<(usize, Vec<String>)> {
    let mut files = BTreeMap::new();
    read_files(folder, folder, &mut files)?;
    let pages = files.iter().filter(|(path, _)| path.ends_with(".html"));
    // What a server shows for an address that it does not have: its links begin at the root of the server.
    let pages: Vec<_> = pages.filter(|(path, _)| *path != "404.html").collect();
    let mut broken = Vec::new();
    for (path, text) in &pages {
        let links = ["href", "src"]
            .into_iter()
            .flat_map(|name| values(text, name));
        let links = links.filter(|link| !is_external(link) && !api::is_api_page(link));
        for link in links {
            let (target, place) = link.split_once('#').unwrap_or((link, ""));
            let target = match target.is_empty() {
                true => (*path).clone(),
                false => resolve(path, target),
            };
            let found = files.get(&target);
            let has_place =
                |text: &String| place.is_empty() || values(text, "id").any(|id| id == place);
            if !found.is_some_and(has_place) {
                broken.push(format!("{path}: `{link}`"));
            }
        }
    }
    Ok((pages.len(), broken))
}

fn is_external(link: &str) -> bool {
    ["http:", "https:", "mailto:", "data:"]
        .iter()
        .any(|scheme| link.starts_with(scheme))
}

fn read_files(
    root: &Path,
    folder: &Path,
    files: &mut BTreeMap<String, String>,
) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_files(root, &path, files)?;
            continue;
        }
        let parts = path.strip_prefix(root)?.components();
        let parts = parts.map(|part: Component<'_>| part.as_os_str().to_string_lossy());
        let name = parts.collect::<Vec<_>>().join("/");
        let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        files.insert(name, text);
    }
    Ok(())
}

/// The values of an attribute, wherever a tag has it. mdBook writes them in double quotes.
fn values<'a>(html: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    html.split(&format!(" {attribute}=\""))
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap_or_default())
        .collect::<Vec<_>>()
        .into_iter()
}

const SUMMARY: &str = "docs/SUMMARY.md";
/// Folders of `docs/` whose pages are all chapters. Pages of errors and runbooks are listed elsewhere, too.
const FOLDERS: &[&str] = &["start", "concepts", "howto", "inside"];
/// A newer one may write other links.
const VERSION: &str = "0.5.4";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_seen_from_the_root() {
        assert_eq!(resolve("docs/a.md", "../README.md"), "README.md");
        assert_eq!(resolve("docs/a.md", "errors/b.md"), "docs/errors/b.md");
        assert_eq!(
            from_root("- [E](errors/README.md)\n", &["a-b".to_owned()]),
            "- [E](docs/errors/README.md)\n  - [a-b](docs/errors/a-b.md)\n"
        );
    }

    #[test]
    fn every_page_of_the_docs_is_a_chapter() {
        let summary = fs::read_to_string(root().join(SUMMARY)).unwrap();
        let chapters = links(&from_root(&summary, &[])).into_iter();
        let chapters: BTreeSet<String> = chapters.map(|(_, page)| page).collect();
        assert!(missing_chapters(&chapters).unwrap().is_empty());
        assert!(!missing_chapters(&BTreeSet::new()).unwrap().is_empty());
    }

    #[test]
    fn a_link_to_no_page_or_to_no_place_is_broken() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("b.html", r#"<h1 id="there">b</h1>"#);
        write(
            "a.html",
            r##"<a href="b.html#there">1</a> <a href="https://example.com">2</a> <img src="c.svg"> <a href="b.html#no">3</a>"##,
        );
        let (pages, broken) = follow_links(folder.path()).unwrap();
        assert_eq!(pages, 2);
        assert_eq!(broken, ["a.html: `b.html#no`", "a.html: `c.svg`"]);
    }
}
