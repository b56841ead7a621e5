//! The programs that pages of the book run print what the pages say.

use std::path::Path;

use harness::console::faults_of_programs;
use superstep_conformance::services;

#[test]
fn every_program_of_the_book_prints_what_its_page_says() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_support"));
    // The clients of others that pages show.
    let environment = [
        ("PYTHONPATH", services::address("clients", "python")),
        ("NODE_MODULES", services::address("clients", "node_modules")),
    ];
    let faults = faults_of_programs("example-book", program, folder.path(), &environment).unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}
