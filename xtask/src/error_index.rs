//! `docs/errors/README.md`: a line for each page, taken from the page itself.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Context;

use harness::workspace::root;

/// The folder of the pages, from the root of the workspace.
pub(crate) const FOLDER: &str = "docs/errors";

/// The families, in the order of the index: the beginning of their codes, and what they are about.
const FAMILIES: &[(&str, &str)] = &[
    ("name", "Names and ids"),
    ("build", "Building a graph"),
    ("value", "Values on their way into the store and back"),
    ("update", "Updates that break a rule of the state"),
    ("node", "Nodes that fail"),
    ("open", "Opening a thread"),
    ("migration", "State of another version"),
    ("checkpoint", "The checkpointer"),
    ("format", "Stored bytes"),
    ("store", "The long-term store"),
    ("encryption", "Encryption at rest"),
    ("budget", "Budgets"),
    ("drive", "Driving threads"),
    ("restate", "Asking a cluster"),
    ("worker", "Workers of a cluster"),
    ("cron", "Orders by the clock"),
    ("schedule", "Schedules"),
    ("model", "Asking models"),
    ("tool", "Tools of agents"),
    ("mcp", "MCP servers"),
    ("memory", "What agents remember"),
    ("protocol", "Drivers that call out of turn"),
];

/// Rewrites the index.
pub(crate) fn write() -> anyhow::Result<()> {
    let path = root().join(FOLDER).join("README.md");
    fs::write(&path, index(&pages()?))
        .with_context(|| format!("{} cannot be written", path.display()))?;
    eprintln!("{FOLDER}/README.md is written");
    Ok(())
}

/// The pages by code, without the index.
pub(crate) fn pages() -> anyhow::Result<BTreeMap<String, String>> {
    let folder = root().join(FOLDER);
    let mut pages = BTreeMap::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("{FOLDER} cannot be read"))? {
        let path = entry?.path();
        let Some(code) = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".md"))
        else {
            continue;
        };
        if code != "README" {
            pages.insert(code.to_owned(), fs::read_to_string(&path)?);
        }
    }
    Ok(pages)
}

/// The text of the index.
pub(crate) fn index(pages: &BTreeMap<String, String>) -> String {
    let mut text = INTRODUCTION.to_owned();
    let known = FAMILIES.iter().copied();
    for (family, title) in known.chain(std::iter::once(("", "Others"))) {
        let of_family = pages
            .iter()
            .filter(|(code, _)| family_of(code) == family)
            .collect::<Vec<_>>();
        if of_family.is_empty() {
            continue;
        }
        text.push_str(&format!(
            "\n## {title}\n\n| code | in one line |\n| --- | --- |\n"
        ));
        for (code, page) in of_family {
            text.push_str(&format!("| [`{code}`]({code}.md) | {} |\n", summary(page)));
        }
    }
    text
}

fn family_of(code: &str) -> &str {
    let family = code.split('-').next().unwrap_or_default();
    if FAMILIES.iter().any(|(known, _)| *known == family) {
        family
    } else {
        ""
    }
}

/// The first paragraph under the title.
pub(crate) fn summary(page: &str) -> String {
    let lines = page
        .lines()
        .skip(1)
        .skip_while(|line| line.trim().is_empty());
    lines
        .take_while(|line| !line.trim().is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

const INTRODUCTION: &str = "\
# Error index

Every error of Superstep has a code that does not change. `error.code()` gives it, log lines and failed
runs show it in brackets, and its page here says what happened, why, and what to do.

A pause, a limit and a cancellation are not errors: they are ways for a run to stop, and they have no code.

<!-- The tables are written by `cargo xtask error-index` from the first paragraph of each page. -->
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_index_is_the_first_paragraph_of_its_page() {
        let page = "# name-node\n\nNot a name\nof a node.\n\n> the message\n";
        let pages = BTreeMap::from([
            ("name-node".to_owned(), page.to_owned()),
            ("odd-one".to_owned(), page.to_owned()),
        ]);
        let text = index(&pages);
        assert!(text.contains("## Names and ids\n\n| code | in one line |\n| --- | --- |\n| [`name-node`](name-node.md) | Not a name of a node. |\n"));
        assert!(text.contains(
            "## Others\n\n| code | in one line |\n| --- | --- |\n| [`odd-one`](odd-one.md)"
        ));
    }
}
