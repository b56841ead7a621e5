//! `docs/cli.md`: the help of every command of `archie`.
//!
//! The help is that of the snapshots, which a test of `apps/archie` compares with what the program prints. So this needs no
//! build of the program, and the page cannot differ from it.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Context;
use harness::workspace::root;

/// The page, from the root of the workspace.
pub(crate) const PAGE: &str = "docs/cli.md";
const SNAPSHOTS: &str = "apps/archie/tests/it/snapshots";

/// Rewrites the page.
pub(crate) fn write() -> anyhow::Result<()> {
    let path = root().join(PAGE);
    fs::write(&path, page(&helps()?))
        .with_context(|| format!("{} cannot be written", path.display()))?;
    eprintln!("{PAGE} is written");
    Ok(())
}

/// The help of each command, by its words: `mail ingest`. That of the program itself is under the empty text.
pub(crate) fn helps() -> anyhow::Result<BTreeMap<String, String>> {
    let mut helps = BTreeMap::new();
    for entry in fs::read_dir(root().join(SNAPSHOTS))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(name) = name
            .strip_prefix("help")
            .and_then(|name| name.strip_suffix(".snap"))
        else {
            continue;
        };
        let text = fs::read_to_string(&path)?;
        // Behind the head of the snapshot, which ends with the second line of dashes.
        let help = text.splitn(3, "---\n").nth(2).unwrap_or_default().trim();
        let words = help
            .split_once("\nUsage: archie ")
            .map_or("", |(_, usage)| usage.lines().next().unwrap_or_default());
        let words = words.split(' ').take_while(|word| is_word(word));
        let words = words.collect::<Vec<_>>().join(" ");
        debug_assert_eq!(words.replace(' ', "-"), name.trim_start_matches('-'));
        helps.insert(words, help.to_owned());
    }
    Ok(helps)
}

fn is_word(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
}

/// The text of the page.
pub(crate) fn page(helps: &BTreeMap<String, String>) -> String {
    let mut page = INTRODUCTION.to_owned();
    for (words, help) in helps {
        let (level, name) = match words.split(' ').count() {
            _ if words.is_empty() => ("##", "archie".to_owned()),
            1 => ("##", format!("archie {words}")),
            _ => ("###", format!("archie {words}")),
        };
        // Every command has these, and the first section lists them.
        let help = without_global_options(words, help);
        page.push_str(&format!("\n{level} {name}\n\n```text\n{help}\n```\n"));
    }
    page
}

/// A command's help without the options that all commands have. What is wrapped belongs to the line above it.
fn without_global_options(words: &str, help: &str) -> String {
    if words.is_empty() {
        return help.to_owned();
    }
    let mut lines = Vec::new();
    let mut is_global = false;
    for line in help.lines() {
        let option = line.trim_start();
        // In long help, a blank line is part of what is above it.
        let is_wrapped = option.is_empty() && is_global
            || line.starts_with("         ") && !option.starts_with('-');
        is_global = match is_wrapped {
            true => is_global,
            false => GLOBAL.iter().any(|name| option.starts_with(name)),
        };
        if !is_global {
            lines.push(line);
        }
    }
    lines.join("\n").trim_end().to_owned()
}

const GLOBAL: &[&str] = &[
    "--model <MODEL>",
    "--store <STORE>",
    "--engine <ENGINE>",
    "--budget <BUDGET>",
    "-h, --help",
];

const INTRODUCTION: &str = "\
# Commands of archie

What `archie COMMAND --help` prints. Every command also takes the options that the first section lists, and `--help`. A command that
shows or lists something takes `--json`. [Exit codes](../apps/archie/README.md#exit-codes) are the same for all commands.

<!-- `cargo xtask cli-reference` writes this page from the help texts that a test compares with the program's. -->
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_help_of_today() {
        let written = fs::read_to_string(root().join(PAGE)).unwrap_or_default();
        let is_current = written == page(&helps().unwrap());
        assert!(is_current, "run `cargo xtask cli-reference`");
    }

    #[test]
    fn options_that_all_commands_have_are_listed_once() {
        let help = "Do it\n\nUsage: archie do [OPTIONS]\n\nOptions:\n      --model <MODEL>  A model,\n                       or a script\n      --force          Force it\n  -h, --help           Print help";
        let page = page(&BTreeMap::from([("do".to_owned(), help.to_owned())]));
        let end = "Options:\n      --force          Force it\n```\n";
        assert!(page.contains("## archie do\n\n```text\nDo it\n"), "{page}");
        assert!(page.ends_with(end), "{page}");
    }
}
