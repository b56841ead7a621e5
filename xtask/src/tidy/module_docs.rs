//! Every crate opens with an essay, and every module says what it owns.

use super::assert_tidy;
use super::files::{self, File};

/// Fewer lines than this are a label, not an essay.
const ESSAY_LINES_MIN: usize = 5;

fn fault_of(file: &File) -> Option<String> {
    let (_, path) = file.split_package()?;
    if !file.is_rust() || !(path.starts_with("src/") || path.starts_with("examples/")) {
        return None;
    }
    let lines = opening_lines(&file.text);
    let wanted = match path {
        "src/lib.rs" => ESSAY_LINES_MIN,
        // The module beside it says what is tested.
        _ if path.ends_with("/tests.rs") => 0,
        _ => 1,
    };
    if lines >= wanted {
        None
    } else if wanted == 1 {
        Some(format!(
            "{}: begin with a `//!` paragraph: what it owns, what it does not",
            file.path
        ))
    } else {
        Some(format!(
            "{}: begin with a `//!` essay: what this is, what it never does, the main types",
            file.path
        ))
    }
}

/// How many lines with words the `//!` block at the very top has.
fn opening_lines(text: &str) -> usize {
    let opening = text.lines().map_while(|line| line.strip_prefix("//!"));
    opening.filter(|line| !line.trim().is_empty()).count()
}

#[test]
fn every_crate_and_module_says_what_it_is() {
    assert_tidy(&files::all().iter().filter_map(fault_of).collect::<Vec<_>>());
}

#[test]
fn a_module_without_words_is_found() {
    let label = "//! The core.\n";
    assert!(fault_of(&File::new("crates/a/src/lib.rs", label)).is_some());
    assert!(fault_of(&File::new("crates/a/src/b.rs", "use x;\n//! Late.\n")).is_some());
    assert!(fault_of(&File::new("crates/a/examples/b.rs", "fn main() {}\n")).is_some());
    assert!(fault_of(&File::new("crates/a/src/b.rs", label)).is_none());
    assert!(fault_of(&File::new("crates/a/src/b/tests.rs", "use x;\n")).is_none());
    assert!(
        fault_of(&File::new(
            "crates/a/src/lib.rs",
            &label.repeat(ESSAY_LINES_MIN)
        ))
        .is_none()
    );
    assert!(fault_of(&File::new("crates/a/tests/it/main.rs", "mod x;\n")).is_none());
}
