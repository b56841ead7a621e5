//! No test and no example is switched off, and no test passes because something panicked somewhere.

use super::assert_tidy;
use super::files::{self, File};
use super::rust_code::{code_only, line_of, words};

fn faults_of(file: &File) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        if is_ignored_fence(line) {
            faults.push(format!(
                "{}:{}: an example that nothing compiles; `no_run` is fine",
                file.path,
                number + 1
            ));
        }
    }
    if !file.is_rust() {
        return faults;
    }
    let code = code_only(&file.text);
    for (place, word) in words(&code) {
        let attribute = code[..place].trim_end().ends_with(['[', ',']);
        if word == "should_panic"
            || (word == "ignore" && attribute && is_in_attribute(&code, place))
        {
            faults.push(format!(
                "{}:{}: a test with `{word}`",
                file.path,
                line_of(&code, place)
            ));
        }
    }
    faults
}

/// A code fence of a doc comment or a Markdown file whose info string holds `ignore`.
fn is_ignored_fence(line: &str) -> bool {
    let text = line
        .trim_start()
        .trim_start_matches("//!")
        .trim_start_matches("///")
        .trim_start();
    let Some(info) = text.strip_prefix("```") else {
        return false;
    };
    info.split([',', ' ', '{', '}'])
        .any(|word| word == "ignore" || word.starts_with("ignore-"))
}

/// `#[ignore]` or `#[cfg_attr(.., ignore)]`.
fn is_in_attribute(code: &str, place: usize) -> bool {
    let line = code[..place].rsplit('\n').next().unwrap_or_default();
    line.contains("#[")
}

#[test]
fn no_test_or_example_is_switched_off() {
    let files = files::all();
    let checked = files
        .iter()
        .filter(|file| (file.is_of_a_crate() && file.is_rust()) || file.path.ends_with(".md"));
    assert_tidy(&checked.flat_map(faults_of).collect::<Vec<_>>());
}

#[test]
fn a_switched_off_test_is_found() {
    let text = "/// ```ignore\n//! ```rust,ignore\n/// ```no_run\n#[ignore]\n#[ignore = \"slow\"]\n#[should_panic]\n\
                #[cfg_attr(miri, ignore)]\n// #[ignore] in words\nlet ignore = [a, ignore];\n";
    assert_eq!(
        faults_of(&File::new("a.rs", text)),
        [
            "a.rs:1: an example that nothing compiles; `no_run` is fine",
            "a.rs:2: an example that nothing compiles; `no_run` is fine",
            "a.rs:4: a test with `ignore`",
            "a.rs:5: a test with `ignore`",
            "a.rs:6: a test with `should_panic`",
            "a.rs:7: a test with `ignore`",
        ]
    );
    assert_eq!(
        faults_of(&File::new("a.md", "```rust,ignore\n#[ignore]\n")).len(),
        1
    );
}
