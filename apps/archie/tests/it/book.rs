//! The commands of the book's pages are executed, and print what the pages say.

use std::path::Path;

use harness::console::{Page, Session, faults, pages};
use superstep_conformance::services;

#[test]
fn every_command_of_the_book_prints_what_its_page_says() {
    let archie = Path::new(env!("CARGO_BIN_EXE_archie"));
    let pages = pages().unwrap();
    // The programs of the examples are run by their own tests.
    let pages: Vec<&Page> = pages
        .iter()
        .filter(|page| !page.uses("cargo run"))
        .collect();
    assert!(pages.len() >= 20, "{} pages", pages.len());
    // Otherwise the demo makes an environment, for which pip loads 260 MB.
    let python = services::program("sandbox");
    let faults = faults(&pages, |page| {
        let folder = tempfile::tempdir()?;
        let address = format!("127.0.0.1:{}", free_ports::free_port());
        page.check(&Session {
            folder: folder.path(),
            programs: &[("archie", archie)],
            replaced: &[("127.0.0.1:2024", address)],
            environment: &[("ARCHIE_PYTHON", python.clone())],
        })
    });
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}
