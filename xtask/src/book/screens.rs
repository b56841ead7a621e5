//! The book in a browser: pages of each kind in two themes and at two widths. Fails if one is wider than its window, shows a picture
//! that is not there, or asks another host for something. The pictures stay in the target folder, to be looked at.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use harness::workspace::{output_of, program, root};

/// At least one of each part of the book, and those with the widest tables, blocks and diagrams.
const PAGES: [&str; 12] = [
    "index.html",
    "docs/start/first-graph.html",
    "docs/start/first-deploy.html",
    "docs/concepts/durability.html",
    "docs/concepts/graphs-and-supersteps.html",
    "docs/concepts/labels-and-policies.html",
    "docs/howto/cap-cost.html",
    "docs/sheet.html",
    "docs/guarantees.html",
    "docs/benchmarks.html",
    "docs/cli.html",
    "docs/inside/a-superstep.html",
];

/// `folder` has the book in `html`. The packages of Studio have to be installed: one of them drives the browser.
pub(super) fn check(folder: &Path) -> anyhow::Result<()> {
    let script = folder.join("screens.mjs");
    fs::write(&script, include_str!("screens.mjs"))?;
    let pictures = folder.join("screens");
    let mut node = program("node");
    node.arg(&script).arg(folder.join("html")).arg(&pictures);
    node.args(PAGES).env("PACKAGES", root().join("studio"));
    let printed = output_of(&mut node)?;
    let faults: Vec<String> = serde_json::from_str(&printed).context("node printed no JSON")?;
    if !faults.is_empty() {
        bail!("the book in a browser:\n  {}", faults.join("\n  "));
    }
    eprintln!(
        "pictures of {} pages are in {}",
        PAGES.len(),
        pictures.display()
    );
    Ok(())
}
