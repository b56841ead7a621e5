//! The pages of the five agents have the same sections, and their scores are those of `results/evaluation.json`.

use std::fs;

use serde_json::Value as Json;

use super::assert_tidy;
use harness::workspace::root;

/// Pages, each with the agent's name in the results.
const PAGES: &[(&str, &str)] = &[
    ("docs/analyze.md", "analyze"),
    ("docs/docs-agent.md", "docs"),
    ("docs/sheet.md", "sheet"),
    ("docs/atris.md", "atris"),
    ("docs/mail.md", "mail"),
];

/// What each page must have; the first one begins with these words.
const SECTIONS: &[&str] = &[
    "## An example, from",
    "## Limits",
    "## Scores",
    "## Change its prompts and tools",
];

/// What is wrong with a page. `recorded` returns the figure of a measure in a run, such as `18 of 42`.
fn faults(path: &str, page: &str, recorded: impl Fn(&str, &str) -> Option<String>) -> Vec<String> {
    let mut faults = Vec::new();
    for section in SECTIONS {
        let found = page.lines().filter(|line| line.starts_with(section));
        if found.count() != 1 {
            faults.push(format!("{path}: not one section `{section}`"));
        }
    }
    let scores = page.split("\n## Scores\n").nth(1).unwrap_or_default();
    let scores = scores.split("\n## ").next().unwrap_or_default();
    let mut rows = scores.lines().filter(|line| line.starts_with("| "));
    let runs = cells(rows.next().unwrap_or_default());
    let mut figures = 0;
    for row in rows.skip(1) {
        let row = cells(row);
        let Some((measure, shown)) = row.split_first() else {
            continue;
        };
        for (run, figure) in runs.iter().skip(1).zip(shown) {
            let found = recorded(run, measure).unwrap_or_default();
            figures += 1;
            if found != *figure {
                faults.push(format!(
                    "{path}: `{measure}`, `{run}`: the page says `{figure}`, the results `{found}`"
                ));
            }
        }
    }
    if figures == 0 {
        faults.push(format!("{path}: no scores"));
    }
    faults
}

fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

/// The figure of a measure of an agent in the results.
fn recorded(results: &Json, agent: &str, run: &str, measure: &str) -> Option<String> {
    let mut runs = results["runs"].as_array()?.iter();
    let run = runs.find(|one| one["agent"] == agent && one["which"] == run)?;
    let mut measures = run["measures"].as_array()?.iter();
    let measure = measures.find(|one| one["name"] == measure)?;
    Some(format!(
        "{} of {}",
        measure["right"].as_u64()?,
        measure["of"].as_u64()?
    ))
}

#[test]
fn each_agent_has_an_example_limits_scores_and_a_way_to_change_it() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let results: Json = serde_json::from_str(&read("results/evaluation.json")).unwrap();
    let mut all = Vec::new();
    for (path, agent) in PAGES {
        let of_agent = |run: &str, measure: &str| recorded(&results, agent, run, measure);
        all.extend(faults(path, &read(path), of_agent));
    }
    assert_tidy(&all);
}

#[test]
fn a_missing_section_and_a_wrong_figure_are_found() {
    let page = "# a\n\n## An example, from a to b\n\n## Limits\n\n## Scores\n\n\
        | counted | now | plain |\n| --- | --- | --- |\n| right | 1 of 2 | |\n\n## Change its prompts and tools\n";
    let right = |run: &str, measure: &str| {
        ((run, measure) == ("now", "right")).then(|| "1 of 2".to_owned())
    };
    assert!(faults("a.md", page, right).is_empty());
    assert_eq!(
        faults("a.md", page, |_, _| Some("2 of 2".to_owned())).len(),
        2
    );
    assert_eq!(
        faults("a.md", &page.replace("## Limits", "## Lim"), right).len(),
        1
    );
    assert_eq!(
        faults("a.md", &page.replace("| right | 1 of 2 | |\n", ""), right).len(),
        1
    );
}
