//! The programs that pages of the book run print what the pages say.

use std::path::Path;

use harness::console::faults_of_programs;

#[test]
fn every_program_of_the_book_prints_what_its_page_says() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_hello_graph"));
    let faults = faults_of_programs("example-graphs", program, folder.path(), &[]).unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}
