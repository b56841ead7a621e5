use super::*;
use crate::scan::{Progress, scan};

/// Returns a page that names everything that is expected.
fn reference(repository: &SampleRepository) -> String {
    let mut text = "# Reference\n\n".to_owned();
    for symbol in &repository.symbols {
        text.push_str(&format!("- `{}` is in `{}`\n", symbol.name, symbol.file));
    }
    for relation in &repository.relations {
        text.push_str(&format!(
            "- `{}` uses `{}`\n",
            relation.from[0], relation.to[0]
        ));
    }
    text.push_str("\n## Entry points\n\n| Name | File |\n| --- | --- |\n");
    for entry in &repository.entry_points {
        text.push_str(&format!("| `{}` | `{}` |\n", entry.name, entry.file));
    }
    text
}

fn scored(repository: &SampleRepository, text: &str) -> RepositoryScore {
    let page = PageText {
        text: text.to_owned(),
        is_complete: true,
    };
    score(repository, &[page], 1)
}

fn tidewatch() -> SampleRepository {
    repositories().unwrap().remove(0)
}

#[test]
fn there_are_five_repositories_and_each_has_what_is_expected_of_it() {
    let all = repositories().unwrap();
    let languages: Vec<&str> = all.iter().map(|one| one.language.as_str()).collect();
    assert_eq!(languages, ["Rust", "Python", "TypeScript", "Go", "mixed"]);
    for repository in &all {
        let file = |path: &str| repository.files.iter().find(|file| file.path == path);
        let lines: usize = repository
            .files
            .iter()
            .map(|file| file.text.lines().count())
            .sum();
        assert!((120..=250).contains(&lines), "{}: {lines}", repository.name);
        assert!(file("README.md").is_some());
        let symbols = repository.symbols.iter().map(|one| (&one.name, &one.file));
        let entries = repository
            .entry_points
            .iter()
            .map(|one| (&one.name, &one.file));
        for (name, path) in symbols.chain(entries) {
            let text = &file(path).unwrap().text;
            assert!(blocks::mentions(text, name), "{name} in {path}");
        }
        for relation in &repository.relations {
            assert!(!relation.from.is_empty() && !relation.to.is_empty());
            for name in relation.from.iter().chain(&relation.to) {
                assert!(repository.has(name), "{name} in {}", repository.name);
            }
        }
        for trap in &repository.traps {
            assert!(!repository.has(trap), "{trap} in {}", repository.name);
        }
    }
}

#[test]
fn the_scan_reads_every_file_and_finds_a_program() {
    for repository in repositories().unwrap() {
        let folder = tempfile::tempdir().unwrap();
        repository.write(folder.path()).unwrap();
        let tree = scan(folder.path(), &ScanOptions::default(), &Progress::default()).unwrap();
        assert_eq!(
            tree.files.len(),
            repository.files.len(),
            "{}",
            repository.name
        );
        let is_entry = tree.files.iter().any(|file| file.is_entry);
        let is_declared = tree
            .packages
            .iter()
            .any(|package| !package.entries.is_empty());
        assert!(is_entry || is_declared, "{}", repository.name);
    }
}

#[test]
fn a_text_that_names_everything_scores_full() {
    for repository in repositories().unwrap() {
        let score = scored(&repository, &reference(&repository));
        assert!(score.is_full(), "{score:?}");
        for count in [
            score.symbols,
            score.relations,
            score.entry_points,
            score.names,
        ] {
            assert!(count.is_full() && count.of > 0, "{score:?}");
        }
    }
}

#[test]
fn an_invented_name_lowers_precision() {
    let repository = tidewatch();
    let text = reference(&repository);
    let full = scored(&repository, &text).names;
    for (more, invented) in [
        (
            "It calls `FloodService::notify(level)`.",
            "FloodService::notify",
        ),
        ("See `src/flood/service.rs:12`.", "src/flood/service.rs"),
        ("A GaugeReader reads the file.", "GaugeReader"),
    ] {
        let score = scored(&repository, &format!("{text}\n{more}\n"));
        assert_eq!(score.invented, [invented]);
        assert_eq!(
            (score.names.found, score.names.of),
            (full.found, full.of + 1)
        );
    }
    // These are not claims about the repository.
    let more =
        "Run `cargo build --release`; `Box`, `8080`, `\"text\"` and `--flag` are not names of it.";
    let score = scored(&repository, &format!("{text}\n{more}\n"));
    assert_eq!(score.names, full, "{:?}", score.invented);
}

#[test]
fn an_empty_text_scores_nothing() {
    for repository in repositories().unwrap() {
        let score = score(&repository, &[], WRITERS.len());
        for count in [
            score.symbols,
            score.relations,
            score.entry_points,
            score.pages,
        ] {
            assert!(count.found == 0 && count.of > 0, "{score:?}");
        }
        assert_eq!(score.names, FoundCount::default());
    }
}

#[test]
fn a_relation_is_said_in_one_paragraph_item_row_or_edge() {
    let repository = tidewatch();
    let found = |text: &str| scored(&repository, text).relations.found;
    assert_eq!(found("The `AlarmDetector` asks\nits `Limits`."), 1);
    assert_eq!(found("- `AlarmDetector`\n- `Limits`"), 0);
    assert_eq!(found("`AlarmDetector` decides.\n\n`Limits` are loaded."), 0);
    assert_eq!(found("| `src/alarm.rs` | `src/limits.rs` | 1 |"), 1);
    let drawn =
        "```mermaid\ngraph TD\n  a[\"src/alarm.rs\"]\n  b[\"src/limits.rs\"]\n  a --> b\n```";
    assert_eq!(found(drawn), 1);
}

#[test]
fn an_entry_point_is_named_as_one() {
    let repository = tidewatch();
    let found = |text: &str| scored(&repository, text).entry_points.found;
    assert_eq!(found("The file `src/main.rs` has 60 lines."), 0);
    assert_eq!(found("The main parts of the program are small."), 0);
    assert_eq!(found("It starts in `src/main.rs`."), 1);
    assert_eq!(found("**Entry points**:\n\n- `main`\n- `run_check`"), 2);
}

#[test]
fn the_plain_prompt_begins_with_the_readme_and_is_cut() {
    let mut repository = tidewatch();
    let prompt = plain_prompt(&repository);
    assert!(prompt.contains("README.md:\n\n# tidewatch") && prompt.contains("src/limits.rs:"));
    repository.files[3].text = "long ".repeat(10_000);
    assert_eq!(plain_prompt(&repository).len(), PLAIN_BYTES);
}

#[test]
fn a_set_of_which_nothing_could_be_documented_has_no_score() {
    let repository = tidewatch();
    let mut evaluation = Evaluation::default();
    evaluation.add(&repository, 1, Err(anyhow::anyhow!("no server")));
    let error = evaluation.clone().checked().unwrap_err();
    assert!(error.to_string().ends_with("no server"));
    let page = PageText {
        text: reference(&repository),
        is_complete: true,
    };
    evaluation.add(&repository, 1, Ok(vec![page]));
    let pages = evaluation.checked().unwrap().total(|score| score.pages);
    assert_eq!((pages.found, pages.of), (1, 2));
}
