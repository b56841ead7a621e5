//! Older versions of a text, forks that keep to a folder of their own, and what `archie diff` sees.

use std::fs;

use serde_json::{Value as Json, json};

use super::acceptance::two_agents;
use super::kit::{NAMED, replies, repository, scores};
use crate::kit::Workdir;

#[test]
fn every_version_of_a_text_can_be_read() {
    let (workdir, docs) = two_agents();
    assert_eq!(workdir.run(&docs, "").code(), Some(0));
    let thread = workdir.thread();
    let versions = ["docs", "versions", &thread];
    let listed = workdir.run(&versions, "").out();
    assert_eq!(
        listed,
        "file-structure  1: 62, 2: 74, 3: 85\ndependency-analyzer  1: 91\n"
    );
    let second = [&versions[..], &["file-structure", "--number", "2"]].concat();
    let second = workdir.run(&second, "").out();
    assert_eq!(
        second,
        format!("Text 1 about `Cart` in `src/cart.rs`. {NAMED}\n")
    );
    let all = [&versions[..], &["file-structure"]].concat();
    let all = workdir.run(&all, "").out();
    assert!(
        all.contains("--- file-structure version 1: 62\nThe first text"),
        "{all}"
    );
    let json = workdir.json(&[&versions[..], &["dependency-analyzer", "--json"]].concat());
    assert_eq!(json[0]["versions"][0]["score"], 91);
    let fourth = [&versions[..], &["file-structure", "--number", "4"]].concat();
    let ran = workdir.run(&fourth, "");
    assert_eq!(ran.code(), Some(1));
    assert!(
        ran.err()
            .contains("there is no version 4 of `file-structure`; there are 3"),
        "{ran:?}"
    );
    let nobody = [&versions[..], &["poet"]].concat();
    let ran = workdir.run(&nobody, "");
    assert!(
        ran.err().contains("the thread has no text of `poet`"),
        "{ran:?}"
    );
    let manifest = fs::read_to_string(workdir.path("repo/.arch-docs/manifest.json")).unwrap();
    assert!(
        !manifest.contains("\"versions\""),
        "pages keep the best one"
    );
}

/// A thread that waits at its gate, with replies for a refinement as it is and for one with a question of a person.
fn at_the_gate() -> Workdir {
    let mut all = replies("file-structure", &[62, 85], &[3]);
    let own = json!({
        "at": "file-structure-Refinement-1", "expect": "What of mine?",
        "text": format!("Text of the copy about `Cart`. {NAMED}")
    });
    let scored = json!({ "at": "file-structure-EvaluateClarity", "expect": "Text of the copy", "json": scores(95) });
    all.insert(1, scored);
    all.insert(0, own);
    let workdir = Workdir::scripted(&all.into());
    repository(&workdir.path(""));
    let args = ["docs", "repo", "--agents", "file-structure", "--gate"];
    let ran = workdir.run(&args, "");
    assert_eq!(ran.code(), Some(3), "{ran:?}");
    workdir
}

#[test]
fn a_fork_with_a_question_of_its_own_writes_into_a_folder_of_its_own() {
    let workdir = at_the_gate();
    let thread = workdir.thread();
    let listed = workdir.run(&["docs", "versions", &thread], "").out();
    assert_eq!(listed, "file-structure  1: 62\n", "it is still at work");
    let copy = workdir.json(&["fork", &thread, "--json"]);
    let copy = copy["thread"].as_str().unwrap();
    let ran = workdir.run(&["resume", &thread], "accept\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let page = workdir.path("repo/.arch-docs/file-structure.md");
    let original = fs::read_to_string(&page).unwrap();
    assert!(original.contains("Text 1 about"), "{original}");

    let ran = workdir.run(&["resume", copy], "add What of mine?\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(&page).unwrap(), original);
    let own = workdir
        .path("repo/.arch-docs/forks")
        .join(&copy[copy.len() - 12..]);
    let forked = fs::read_to_string(own.join("file-structure.md")).unwrap();
    assert!(forked.contains("Text of the copy about"), "{forked}");
    assert!(own.join("index.html").exists());
    let check = workdir.run(
        &["docs", "repo", "--agents", "file-structure", "--check"],
        "",
    );
    assert_eq!(
        check.code(),
        Some(0),
        "pages of a fork are no sources: {check:?}"
    );

    let differ = workdir.run(&["diff", &thread, copy], "").out();
    assert!(
        differ.contains("results[0].metadata.scores[1]:\n  - 85\n  + 95\n"),
        "{differ}"
    );
    assert!(
        differ.contains("results[0].markdown:\n") && differ.contains("  + Text of the copy about"),
        "{differ}"
    );
}

#[test]
fn diff_sees_into_the_subgraphs_of_a_thread() {
    let workdir = at_the_gate();
    let thread = workdir.thread();
    let history = workdir.json(&["history", &thread, "--json"]);
    let entries = history.as_array().unwrap();
    let before = entries
        .iter()
        .find(|entry| entry["nodes"].to_string().contains("evaluateClarity"))
        .and_then(|entry| entry["entry"].as_u64())
        .unwrap();
    let before = format!("{thread}@{before}");
    let differ = workdir.run(&["diff", &before, &thread], "").out();
    assert!(
        differ.contains("ExecuteAgents/Agent/selfQuestions:\n  + Round 1, question 1?\n"),
        "{differ}"
    );
    let json: Json = workdir.json(&["diff", &before, &thread, "--json"]);
    let questions = &json["ExecuteAgents/Agent/selfQuestions"]["other"];
    assert_eq!(questions[2], "Round 1, question 3?", "{json}");
    let same = workdir.run(&["diff", &thread, &thread], "").out();
    assert_eq!(same, "the two are the same\n");
}
