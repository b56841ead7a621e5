//! Studio's tests in the browser run somewhere, and `docs/studio.md` names figures that they note.

use std::fs;

use serde_json::Value as Json;

use super::assert_tidy;
use crate::steps::{Action, STEPS};
use harness::workspace::root;

const TESTS: &str = "studio/e2e";
const CONFIG: &str = "studio/vitest.e2e.config.ts";
const PAGE: &str = "docs/studio.md";
const RESULTS: &str = "results/studio.json";

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names of the files of tests.
fn names() -> Vec<String> {
    let folder = fs::read_dir(root().join(TESTS)).unwrap();
    let files = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = files
        .filter_map(|file| Some(file.strip_suffix(".test.ts")?.to_owned()))
        .collect();
    names.sort_unstable();
    names
}

/// The files that a step runs by name.
fn in_steps() -> Vec<&'static str> {
    let name = |action: &Action| match action {
        Action::Cargo {
            args: ["xtask", "studio", "browser", name, "--long"],
            ..
        } => Some(*name),
        _ => None,
    };
    STEPS.iter().filter_map(|step| name(&step.action)).collect()
}

/// Files that no step runs, and steps without a file.
fn unused(names: &[String], config: &str, in_steps: &[&str]) -> Vec<String> {
    let is_quick = |name: &str| config.contains(&format!("\"{name}\""));
    let idle = names
        .iter()
        .filter(|name| !is_quick(name.as_str()) && !in_steps.contains(&name.as_str()))
        .map(|name| format!("{TESTS}/{name}.test.ts is neither in {CONFIG} nor in a long step"));
    let missing = in_steps
        .iter()
        .filter(|step| !names.iter().any(|name| name == *step))
        .map(|step| format!("a step runs {TESTS}/{step}.test.ts, which does not exist"));
    idle.chain(missing).collect()
}

#[test]
fn every_test_in_the_browser_is_run_by_a_step() {
    assert_tidy(&unused(&names(), &read(CONFIG), &in_steps()));
}

#[test]
fn a_test_that_nothing_runs_and_a_step_without_a_test_are_found() {
    let names = ["agents", "speed", "idle"].map(str::to_owned);
    let found = unused(&names, "const quick = [\"agents\"];", &["speed", "gone"]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("idle") && found[1].contains("gone"));
}

/// The figures that a page names, as `file.figure`, each with the number behind it if it gives one: "`networks.cuts`: 200".
fn cited(page: &str) -> Vec<(&str, &str, Option<f64>)> {
    let mut found = Vec::new();
    for (at, code) in page.split('`').enumerate() {
        // Every second part is between backticks.
        if at.is_multiple_of(2) {
            continue;
        }
        let Some((file, figure)) = code.split_once('.') else {
            continue;
        };
        let is_name = |text: &str| {
            !text.is_empty()
                && text
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        if !is_name(file) || !is_name(figure) {
            continue;
        }
        let rest = page.split('`').nth(at + 1).unwrap_or_default();
        let number = rest.strip_prefix(": ").map(|rest| {
            let is_part = |c: char| c.is_ascii_digit() || c == ',' || c == '.';
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            rest[..end].trim_end_matches(['.', ',']).replace(',', "")
        });
        found.push((file, figure, number.and_then(|number| number.parse().ok())));
    }
    found
}

/// Figures that no test notes, and numbers that are not those of the results.
fn wrong_figures(
    page: &str,
    source: impl Fn(&str) -> Option<String>,
    results: Option<&Json>,
) -> Vec<String> {
    let recorded = |file: &str, figure: &str| {
        let rows = results?["rows"].as_array()?;
        rows.iter().find(|row| row["name"] == file)?["figures"][figure].as_f64()
    };
    let mut faults = Vec::new();
    for (file, figure, number) in cited(page) {
        let Some(source) = source(file) else {
            continue;
        };
        if !source.contains(figure) {
            faults.push(format!("{file}.test.ts notes no `{figure}`"));
        }
        let measured = recorded(file, figure);
        if number.is_some() && number != measured {
            faults.push(format!(
                "`{file}.{figure}` is {number:?} on the page and {measured:?} in {RESULTS}"
            ));
        }
    }
    faults
}

#[test]
fn the_page_names_figures_that_tests_note() {
    let page = read(PAGE);
    assert!(cited(&page).len() > 5, "{PAGE} names no figures");
    let source = |file: &str| {
        let path = format!("{TESTS}/{file}.test.ts");
        fs::read_to_string(root().join(path)).ok()
    };
    let results = fs::read_to_string(root().join(RESULTS)).ok();
    let results: Option<Json> = results.map(|text| serde_json::from_str(&text).unwrap());
    assert_tidy(&wrong_figures(&page, source, results.as_ref()));
}

#[test]
fn a_figure_that_no_test_notes_and_a_wrong_number_are_found() {
    let page =
        "`networks.cuts`: 200, `networks.kills`: 1,050, `networks.none`, and `example.com`: 3";
    let source = |file: &str| (file == "networks").then(|| "note({ cuts, kills })".to_owned());
    let recorded = |kills: u64| {
        let figures = serde_json::json!({ "cuts": 200, "kills": kills });
        serde_json::json!({ "rows": [{ "name": "networks", "figures": figures }] })
    };
    let found = |results: Option<&Json>| wrong_figures(page, source, results).len();
    assert_eq!(found(Some(&recorded(1_050))), 1);
    assert_eq!(found(Some(&recorded(50))), 2);
    assert_eq!(found(None), 3);
}
