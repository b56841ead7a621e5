//! The programs that pages of the book run print what the pages say.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use harness::console::{Session, pages};

/// Runs the program behind `--bin`, as cargo would after a build.
const CARGO: &str = "#!/bin/sh\nwhile [ \"$1\" != --bin ]; do shift; done\nexec \"$PROGRAMS/$2\"\n";

#[test]
fn every_program_of_the_book_prints_what_its_page_says() {
    let pages = pages().unwrap();
    let pages: Vec<_> = pages.iter().filter(|page| page.uses("cargo run")).collect();
    assert!(!pages.is_empty());
    let program = Path::new(env!("CARGO_BIN_EXE_hello_graph"));
    let programs = program.parent().unwrap().display().to_string();
    for page in pages {
        let folder = tempfile::tempdir().unwrap();
        let cargo = folder.path().join("cargo");
        fs::write(&cargo, CARGO.replace("$PROGRAMS", &programs)).unwrap();
        fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
        let session = Session {
            folder: folder.path(),
            programs: &[("cargo", &cargo)],
            replaced: &[],
            environment: &[],
        };
        page.check(&session).unwrap();
    }
}
