//! `docs/coverage.md` is what its data gives, and every test that it names exists.

use std::fs;

use super::assert_tidy;
use crate::coverage::{DATA, PAGE, fault_of_test, faults, page, parse, read};
use harness::workspace::root;

#[test]
fn every_row_of_the_coverage_has_its_verdict_and_its_tests() {
    let sections = read().unwrap();
    let source = |path: &str| fs::read_to_string(root().join(path)).ok();
    assert_tidy(&faults(&sections, source));
}

#[test]
fn the_page_on_coverage_is_what_its_data_gives() {
    let written = fs::read_to_string(root().join(PAGE)).unwrap_or_default();
    assert!(
        written == page(&read().unwrap()),
        "{PAGE} is not what {DATA} gives; run `cargo xtask coverage`"
    );
}

/// A table with these rows, each a verdict and more lines.
fn data(rows: &[(&str, &str)]) -> String {
    let mut text = "[[section]]\ntitle = \"S\"\n[[section.group]]\ntitle = \"G\"\n".to_owned();
    for (verdict, more) in rows {
        text.push_str(&format!(
            "[[section.group.row]]\nfeature = \"F\"\nverdict = \"{verdict}\"\n{more}\n"
        ));
    }
    text
}

#[test]
fn a_row_without_what_it_needs_is_found() {
    let sections = parse(&data(&[
        ("yes", "tests = [\"a.rs::holds\"]"),
        ("later", "area = \"server\""),
        ("partial", ""),
        ("yes", ""),
        (
            "yes",
            "tests = [\"a.rs::gone\", \"b.rs::holds\", \"holds\"]",
        ),
        ("later", ""),
        ("different", "tests = [\"a.rs::holds\"]"),
        ("no", ""),
    ]));
    let source = |path: &str| (path == "a.rs").then(|| "#[test]\nfn holds() {}\n".to_owned());
    assert_eq!(
        faults(&sections.unwrap(), source),
        [
            "G: F: there is no verdict `partial`; there are yes, different, later, no",
            "G: F: no test shows it",
            "G: F: `a.rs` has no test `gone`",
            "G: F: `b.rs` is not there",
            "G: F: `holds` is not `path.rs::name`",
            "G: F: `area` of a later row is one of server, Studio, terminal, company, not ``",
            "G: F: `remark` does not say why",
            "G: F: `remark` does not say why",
        ]
    );
    assert!(parse(&data(&[("yes", "test = \"a.rs::holds\"")])).is_err());
}

#[test]
fn a_test_in_typescript_is_found_by_its_title() {
    let text = "test(\"opens\", async () => {\n});\n  it.each(all)(\n    \"$one closes\",\n\
        // test(\"is gone\", async () => {\nconst no = [\"test\", \"fake\", 1];\n";
    let source = |path: &str| (path == "a.test.ts").then(|| text.to_owned());
    let fault = |title: &str| fault_of_test(&format!("a.test.ts::{title}"), source);
    assert_eq!(fault("opens"), None);
    assert_eq!(fault("$one closes"), None);
    for title in ["is gone", "fake", "closes"] {
        let expected = format!("`a.test.ts` has no test `{title}`");
        assert_eq!(fault(title), Some(expected));
    }
}

#[test]
fn a_row_links_to_its_tests() {
    let rows = [
        ("yes", "remark = \"R\"\ntests = [\"a.rs::x\", \"b.rs::y\"]"),
        ("later", "area = \"Studio\""),
    ];
    let text = page(&parse(&data(&rows)).unwrap());
    assert!(text.ends_with(
        "\n## S\n\n### G\n\n| feature | covered | shown by |\n| --- | --- | --- |\n\
         | F | yes: R | [`x`](../a.rs), [`y`](../b.rs) |\n| F | later: Studio |  |\n"
    ));
}
