//! `cargo xtask book --commands ARCHIE`: the commands of the pages, run with this program.
//!
//! CI does the same in the tests of `apps/archie` and of the examples. This is for writing: it needs no build.

use std::path::Path;

use anyhow::{Context, bail};
use harness::console::{Page, RESTATE, Session, faults, free_addresses, pages};

/// Runs the commands of all pages, or of those that are named, and fails with every page that says something else.
pub(crate) fn run(archie: &str, named: &[String]) -> anyhow::Result<()> {
    let archie = Path::new(archie)
        .canonicalize()
        .with_context(|| format!("`{archie}` is not there"))?;
    let pages = match named {
        [] => pages()?,
        named => named
            .iter()
            .map(|path| Page::read(path))
            .collect::<anyhow::Result<_>>()?,
    };
    // Programs of the examples are run by their own tests, and Restate has one worker at a time.
    let is_elsewhere = |page: &&Page| page.uses("cargo run") || page.uses(RESTATE[0]);
    let (skipped, pages): (Vec<&Page>, Vec<&Page>) = pages.iter().partition(is_elsewhere);
    // Without one, the demo makes an environment of its own, which takes a minute.
    let python = std::env::var("ARCHIE_PYTHON").ok();
    let environment: Vec<(&str, String)> = python
        .into_iter()
        .map(|python| ("ARCHIE_PYTHON", python))
        .collect();
    let faults = faults(&pages, |page| {
        let folder = tempfile::tempdir()?;
        page.check(&Session {
            folder: folder.path(),
            programs: &[("archie", &archie)],
            replaced: &free_addresses()?,
            environment: &environment,
        })
    });
    if !faults.is_empty() {
        bail!("{} page(s):\n\n{}", faults.len(), faults.join("\n\n"));
    }
    let count = pages.len();
    eprintln!("the commands of {count} pages print what the pages say");
    for page in skipped {
        let page = &page.path;
        eprintln!("not run here, but by the tests of the examples or of archie: {page}");
    }
    Ok(())
}
