//! The acceptance of `docs`, with the real program and a script.

use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::kit::{replies, repository, scores};
use crate::kit::Workdir;

/// All seven agents; two of them as in the acceptance, the others good enough at once.
fn all_agents() -> Json {
    let mut all = replies("file-structure", &[62, 74, 85], &[4, 3]);
    all.extend(replies("dependency-analyzer", &[91], &[]));
    for agent in OTHERS {
        all.extend(replies(agent, &[90], &[]));
    }
    all.into()
}

const OTHERS: [&str; 5] = [
    "architecture-analyzer",
    "flow-analyzer",
    "schema-analyzer",
    "pattern-analyzer",
    "security-analyzer",
];

fn workdir(replies: &Json) -> Workdir {
    let workdir = Workdir::scripted(replies);
    repository(&workdir.path(""));
    workdir
}

fn page(workdir: &Workdir, name: &str) -> String {
    fs::read_to_string(workdir.path("repo/.arch-docs").join(name))
        .unwrap_or_else(|_| panic!("{name} is missing"))
}

fn calls(workdir: &Workdir) -> usize {
    fs::read_to_string(workdir.path("ledger"))
        .unwrap_or_default()
        .lines()
        .count()
}

const TWO: [&str; 6] = [
    "docs",
    "./repo",
    "--output",
    "repo/.arch-docs",
    "--agents",
    "file-structure,dependency-analyzer",
];

/// A repository and a script for two agents, and what to type.
pub(crate) fn two_agents() -> (Workdir, [&'static str; 6]) {
    (workdir(&all_agents()), TWO)
}

#[test]
fn the_acceptance_scenario() {
    let workdir = workdir(&all_agents());
    let ran = workdir.run(&TWO, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let out = ran.out();
    assert!(out.contains("shop: 6 files in 2 directories"), "{out}");
    assert!(
        out.contains("file-structure  62 → Q4 → 74 → Q3 → 85 ✓ 2 iterations"),
        "{out}"
    );
    assert!(
        out.contains("dependency-analyzer  91 ✓ 0 iterations"),
        "{out}"
    );
    assert!(out.contains("estimate: 4 to 22 model calls"), "{out}");
    assert!(
        out.contains("10 model calls, 1000 tokens in, 200 out"),
        "{out}"
    );
    let structure = page(&workdir, "file-structure.md");
    assert!(structure.starts_with("# File Structure\n"), "{structure}");
    assert!(
        structure.contains("Text 2 about `Cart` in [`src/cart.rs`](../src/cart.rs)."),
        "{structure}"
    );
    assert!(
        structure.contains("6 files in 2 directories"),
        "{structure}"
    );
    assert!(page(&workdir, "dependency-analyzer.md").contains("| `serde` | 1.0 | normal | 1 |"));
    let index = page(&workdir, "index.md");
    assert!(
        index.contains(
            "| [File Structure](file-structure.md) | Analyzed 6 files in 2 directories | 0.85 |"
        ),
        "{index}"
    );
    let manifest: Json = serde_json::from_str(&page(&workdir, "manifest.json")).unwrap();
    let result = &manifest["agents"]["file-structure"]["result"];
    assert_eq!(result["confidence"], 0.85);
    assert_eq!(result["warnings"].as_array().unwrap().len(), 2, "{result}");
}

#[test]
fn c9_archie_trace_shows_the_names_of_the_brief() {
    let workdir = workdir(&all_agents());
    assert_eq!(workdir.run(&TWO, "").code(), Some(0));
    let shown = workdir.run(&["trace", &workdir.thread()], "").out();
    let of = |agent: &str, parts: &[&str]| -> Vec<String> {
        let parts = parts.iter().map(|part| format!("{agent}-{part}"));
        let begin = ["ExecuteAgents".to_owned(), format!("Agent-{agent}")];
        begin.into_iter().chain(parts).collect()
    };
    let around = [
        "DocumentationGeneration-Complete",
        "ScanProjectStructure",
        "CreateExecutionContext",
        "ExecuteAgents",
        "AggregateResults",
    ];
    let refined = [
        "InitialAnalysis",
        "EvaluateClarity",
        "GenerateQuestions",
        "Refinement-1",
        "EvaluateClarity",
        "GenerateQuestions",
        "Refinement-2",
        "EvaluateClarity",
        "Finalize",
    ];
    let at_once = ["InitialAnalysis", "EvaluateClarity", "Finalize"];
    for names in [
        around.map(str::to_owned).to_vec(),
        of("file-structure", &refined),
        of("dependency-analyzer", &at_once),
    ] {
        let mut rest = shown.as_str();
        for name in names {
            let at = rest
                .find(&name)
                .unwrap_or_else(|| panic!("{name} is not where it should be:\n{shown}"));
            rest = &rest[at + name.len()..];
        }
    }
}

#[test]
fn c10_all_seven_agents_work_side_by_side_and_every_page_is_there() {
    let workdir = workdir(&all_agents());
    let ran = workdir.run(&["docs", "repo"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    for (agent, title) in [
        ("file-structure", "File Structure"),
        ("dependency-analyzer", "Dependencies"),
        ("architecture-analyzer", "Architecture"),
        ("flow-analyzer", "Flow"),
        ("schema-analyzer", "Schemas"),
        ("pattern-analyzer", "Patterns"),
        ("security-analyzer", "Security"),
    ] {
        let text = page(&workdir, &format!("{agent}.md"));
        assert!(text.starts_with(&format!("# {title}\n")), "{text}");
    }
    let view = page(&workdir, "index.html");
    assert_eq!(view.matches("<script").count(), 1, "only the search");
    for outside in ["http://", "https://", " src="] {
        assert!(
            !view.contains(outside),
            "the viewer needs nothing from {outside}"
        );
    }
    assert!(
        view.contains("href=\"#file-structure\"")
            && view.contains("<section id=\"security-analyzer\">")
    );
    links_lead_somewhere(&workdir.path("repo/.arch-docs"));
}

/// Every relative link of every page leads to a file.
fn links_lead_somewhere(folder: &Path) {
    let mut links = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "md") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap();
            let target = target.split('#').next().unwrap();
            assert!(
                folder.join(target).exists(),
                "{} links to {target}",
                path.display()
            );
            links += 1;
        }
    }
    assert!(links > 5, "{links}");
}

#[test]
fn depth_include_and_exclude_take_effect() {
    let one = ["docs", "./repo", "--agents", "file-structure"];
    for (depth, refinements) in [("quick", 1), ("normal", 3), ("deep", 5)] {
        let scores = [20, 30, 40, 50, 60, 70];
        let replies = replies("file-structure", &scores, &[3; 5]);
        let workdir = workdir(&replies.into());
        let ran = workdir.run(&[&one[..], &["--depth", depth]].concat(), "");
        assert_eq!(ran.code(), Some(0), "{ran:?}");
        let refined = (1..=5)
            .filter(|round| workdir.asked(&format!("file-structure-Refinement-{round}")) > 0)
            .count();
        assert_eq!(refined, refinements, "{depth}");
    }
    for (option, has_cart, has_main) in [
        (["--include", "src/cart.rs"], true, false),
        (["--exclude", "src/cart.rs"], false, true),
    ] {
        let workdir = workdir(&all_agents());
        let once = ["--no-self-questioning"];
        let ran = workdir.run(&[&one[..], &option, &once].concat(), "");
        assert_eq!(ran.code(), Some(0), "{ran:?}");
        let manifest: Json = serde_json::from_str(&page(&workdir, "manifest.json")).unwrap();
        let data = &manifest["agents"]["file-structure"]["result"]["data"];
        let tree = data["tree"].as_str().unwrap();
        let found = ["cart.rs", "main.rs"].map(|name| tree.contains(name));
        assert_eq!(found, [has_cart, has_main], "{option:?}: {tree}");
    }
}

#[test]
fn a_second_run_without_changes_asks_nothing_and_writes_nothing() {
    let workdir = workdir(&all_agents());
    workdir.run(&["docs", "repo"], "");
    let before = (
        calls(&workdir),
        page(&workdir, "index.html"),
        page(&workdir, "manifest.json"),
    );
    for args in [&["docs", "repo"][..], &["docs", "repo", "--incremental"]] {
        let ran = workdir.run(args, "");
        assert_eq!(ran.code(), Some(0), "{ran:?}");
        assert!(
            ran.out().contains("nothing has changed") && ran.out().contains("0 model calls"),
            "{ran:?}"
        );
    }
    assert_eq!(
        (
            calls(&workdir),
            page(&workdir, "index.html"),
            page(&workdir, "manifest.json")
        ),
        before
    );
    assert_eq!(
        workdir
            .json(&["threads", "--json"])
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn one_changed_file_redoes_only_what_depends_on_it() {
    let mut all = all_agents();
    let more = ["dependency-analyzer"]
        .iter()
        .flat_map(|agent| replies(agent, &[90], &[]));
    all.as_array_mut().unwrap().extend(more);
    let workdir = workdir(&all);
    workdir.run(&["docs", "repo"], "");
    let before = calls(&workdir);
    let manifest = "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nserde = \"1.0\"\nlibc = \"0.2\"\n";
    fs::write(workdir.path("repo/Cargo.toml"), manifest).unwrap();
    let check = workdir.run(&["docs", "repo", "--check"], "");
    assert_eq!(check.code(), Some(1), "{check:?}");
    assert!(
        check
            .out()
            .contains("stale: dependency-analyzer: its facts have changed"),
        "{check:?}"
    );
    assert_eq!(check.out().matches("stale:").count(), 1, "{check:?}");
    let structure = page(&workdir, "file-structure.md");
    let ran = workdir.run(&["docs", "repo", "--incremental"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(calls(&workdir) - before, 2, "one agent, a text and a score");
    assert!(page(&workdir, "dependency-analyzer.md").contains("`libc`"));
    assert_eq!(page(&workdir, "file-structure.md"), structure);
    assert_eq!(
        workdir.run(&["docs", "repo", "--check"], "").code(),
        Some(0)
    );
}

#[test]
fn a_changed_source_file_redoes_the_agents_that_read_of_it_and_no_others() {
    let mut all = all_agents();
    // A script says the same to the same text, so the first agent refines as often as before.
    let mut more = replies("file-structure", &[62, 74, 85], &[4, 3]);
    for agent in ["dependency-analyzer"].into_iter().chain(OTHERS) {
        more.extend(replies(agent, &[90], &[]));
    }
    all.as_array_mut().unwrap().extend(more);
    let workdir = workdir(&all);
    workdir.run(&["docs", "repo"], "");
    let cart = workdir.path("repo/src/cart.rs");
    let text = fs::read_to_string(&cart).unwrap();
    let stale = |text: &str| -> Vec<String> {
        fs::write(&cart, text).unwrap();
        let check = workdir.json(&["docs", "repo", "--check", "--json"]);
        let stale = check["stale"].as_array().unwrap().iter();
        stale
            .map(|stale| stale["agent"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(stale(&format!("{text}// A remark.\n")).is_empty());
    let by_body = ["architecture-analyzer", "flow-analyzer", "pattern-analyzer"];
    let other_body = text.replace("self.items.push(item);", "self.items.insert(0, item);");
    assert_eq!(stale(&other_body), by_body, "they read bodies");
    let grown = format!("{text}\npub struct Voucher {{\n    pub code: String,\n}}\n");
    assert_eq!(stale(&grown).len(), 7, "all read what is public");
    let before = calls(&workdir);
    let ran = workdir.run(&["docs", "repo", "--incremental"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(calls(&workdir) - before, 2 * 7 + 2 * 3);
    assert!(page(&workdir, "schema-analyzer.md").contains("Voucher"));
    assert!(stale(&grown).is_empty());
}

#[test]
fn what_the_budget_ended_is_said_and_made_by_the_next_run() {
    let mut all = replies("file-structure", &[90], &[]);
    // The first run has a text and no score.
    all.insert(0, all[0].clone());
    let workdir = workdir(&all.into());
    let one = ["docs", "repo", "--agents", "file-structure"];
    let ran = workdir.run(&[&["--budget", "1c"], &one[..]].concat(), "stop\n");
    assert_eq!(ran.code(), Some(4), "{ran:?}");
    assert!(ran.out().contains("stopped at the budget"), "{ran:?}");
    let check = workdir.run(&[&one[..], &["--check"]].concat(), "");
    assert_eq!(check.code(), Some(1), "{check:?}");
    let stale = "stale: file-structure: the budget ended it";
    assert!(check.out().contains(stale), "{check:?}");
    let ran = workdir.run(&one, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let check = workdir.run(&[&one[..], &["--check"]].concat(), "");
    assert_eq!(check.code(), Some(0), "{check:?}");
}

#[test]
fn a_page_draws_which_package_uses_which() {
    let workdir = workdir(&all_agents());
    let api = "[package]\nname = \"api\"\nversion = \"0.1.0\"\n\n[dependencies]\nshop = { path = \"..\" }\n";
    fs::create_dir(workdir.path("repo/api")).unwrap();
    fs::write(workdir.path("repo/api/Cargo.toml"), api).unwrap();
    let ran = workdir.run(&["docs", "repo", "--agents", "dependency-analyzer"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let text = page(&workdir, "dependency-analyzer.md");
    for part in ["```mermaid\ngraph TD\n", "[\"api\"]", "[\"shop\"]", " --> "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(page(&workdir, "index.html").contains("<svg"));
}

#[test]
fn check_tells_of_what_a_text_says_that_is_no_longer_so() {
    let workdir = workdir(&all_agents());
    workdir.run(&["docs", "repo", "--agents", "dependency-analyzer"], "");
    let fresh = workdir.run(
        &["docs", "repo", "--agents", "dependency-analyzer", "--check"],
        "",
    );
    assert_eq!(fresh.code(), Some(0), "{fresh:?}");
    // Its text names src/main.rs.
    fs::rename(
        workdir.path("repo/src/main.rs"),
        workdir.path("repo/src/start.rs"),
    )
    .unwrap();
    let stale = workdir.run(
        &["docs", "repo", "--agents", "dependency-analyzer", "--check"],
        "",
    );
    assert_eq!(stale.code(), Some(1), "{stale:?}");
    assert!(
        stale.out().contains("no longer so: path src/main.rs"),
        "{stale:?}"
    );
    fs::rename(
        workdir.path("repo/src/start.rs"),
        workdir.path("repo/src/main.rs"),
    )
    .unwrap();
    fs::write(
        workdir.path("repo/.arch-docs/dependency-analyzer.md"),
        "mine",
    )
    .unwrap();
    let edited = workdir.run(
        &["docs", "repo", "--agents", "dependency-analyzer", "--check"],
        "",
    );
    assert!(edited.out().contains("its page was edited"), "{edited:?}");
    let missing = workdir.json(&[
        "docs",
        "repo",
        "--agents",
        "flow-analyzer",
        "--check",
        "--json",
    ]);
    assert_eq!(missing["stale"][0]["why"], "not made yet");
}

#[test]
fn since_a_commit_only_what_differs_is_made() {
    let workdir = workdir(&replies("dependency-analyzer", &[90], &[]).into());
    let repo = workdir.path("repo");
    let git = |args: &[&str]| {
        let done = std::process::Command::new("git")
            .arg("-C")
            .arg(&repo)
            .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
            .args(args)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    let ran = workdir.run(&["docs", "repo", "--since", "HEAD"], "");
    assert!(ran.out().contains("nothing has changed"), "{ran:?}");
    let manifest = fs::read_to_string(repo.join("Cargo.toml")).unwrap() + "libc = \"0.2\"\n";
    fs::write(repo.join("Cargo.toml"), manifest).unwrap();
    let ran = workdir.run(&["docs", "repo", "--since", "HEAD"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(calls(&workdir), 2);
    let bad = workdir.run(&["docs", "repo", "--since", "nowhere"], "");
    assert_eq!(bad.code(), Some(1));
    assert!(bad.err().contains("git knows no `nowhere`"), "{bad:?}");
}

/// A script whose process dies in the first refinement, and what to type.
pub(crate) fn killed_in_a_refinement() -> (Workdir, [&'static str; 6]) {
    let mut all = all_agents();
    let at = all
        .as_array()
        .unwrap()
        .iter()
        .position(|reply| reply["at"] == "file-structure-Refinement-1")
        .unwrap();
    all.as_array_mut().unwrap().insert(
        at,
        json!({ "at": "file-structure-Refinement-1", "kill": true }),
    );
    (workdir(&all), TWO)
}

#[test]
fn killed_in_a_refinement_it_repeats_only_that_call() {
    let (workdir, args) = killed_in_a_refinement();
    let ran = workdir.run(&args, "");
    assert_eq!(ran.code(), None, "{ran:?}");
    let ran = workdir.run(&["resume", &workdir.thread()], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(ran.out().contains("62 → Q4 → 74 → Q3 → 85"), "{ran:?}");
    let again: Vec<usize> = [
        "file-structure-InitialAnalysis",
        "file-structure-Refinement-1",
        "file-structure-Refinement-2",
        "dependency-analyzer-InitialAnalysis",
    ]
    .iter()
    .map(|label| workdir.asked(label))
    .collect();
    assert_eq!(again, [1, 2, 1, 1]);
}

#[test]
fn at_the_limit_it_warns_and_gives_the_best() {
    let workdir = workdir(&replies("file-structure", &[62, 85, 91, 70], &[4, 3, 3]).into());
    let ran = workdir.run(
        &[
            "docs",
            "repo",
            "--agents",
            "file-structure",
            "--clarity-threshold",
            "99",
            "--max-iterations",
            "3",
            "--json",
        ],
        "",
    );
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let told: Json = serde_json::from_str(&ran.out()).unwrap();
    let result = &told["results"][0];
    assert_eq!(result["metadata"]["iterations"], 3);
    assert_eq!(result["confidence"], 0.91);
    assert!(
        result["warnings"]
            .to_string()
            .contains("Stopped after 3 iterations at 91, below the threshold of 99")
    );
}

#[test]
fn c12_at_the_gate_a_person_adds_a_question_and_leaves_and_comes_back() {
    let mut all = replies("file-structure", &[62, 85], &[3]);
    all[3]["expect"] = json!("What of mine?");
    let workdir = workdir(&all.into());
    let args = ["docs", "repo", "--agents", "file-structure", "--gate"];
    let ran = workdir.run(&args, "");
    assert_eq!(ran.code(), Some(3), "{ran:?}");
    assert!(
        ran.out()
            .contains("file-structure: refine again (1 of 3)? Scores 62, 80 is enough."),
        "{ran:?}"
    );
    assert!(ran.out().contains("  3. Round 1, question 3?"), "{ran:?}");
    let inbox = workdir.json(&["inbox", "--json"]);
    assert_eq!(inbox[0]["kind"], "gate", "{inbox}");
    let ran = workdir.run(&["resume", &workdir.thread()], "add What of mine?\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(ran.out().contains("62 → Q4 → 85 ✓"), "{ran:?}");
}

#[test]
fn c12_questions_go_to_the_agent_whose_subject_they_are() {
    let mut all = replies("file-structure", &[62, 64], &[3]);
    let asks = all
        .iter_mut()
        .find(|reply| reply["at"] == "file-structure-GenerateQuestions")
        .unwrap();
    asks["json"]["missing"] = json!(["which version of each dependency is used"]);
    // What is missing is what the last round found missing.
    all.extend(replies("dependency-analyzer", &[85], &[]));
    all.push(json!({ "at": "dependency-analyzer-Refinement-1", "expect": "which version of each dependency is used", "text": "`serde` 1.0 is used." }));
    all.push(json!({ "at": "dependency-analyzer-EvaluateClarity", "json": scores(95) }));
    let workdir = workdir(&all.into());
    let mut args = TWO.to_vec();
    args.push("--share-questions");
    let ran = workdir.run(&args, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(
        ran.out()
            .contains("dependency-analyzer  85 → Q1 → 95 ✓ 1 iteration"),
        "{ran:?}"
    );
    assert!(page(&workdir, "dependency-analyzer.md").contains("`serde` 1.0 is used."));
}

#[test]
fn c12_thresholds_are_learned_from_what_an_agent_usually_comes_to() {
    // What is asked is the same each time, and so is what a script says to it.
    let all = replies("flow-analyzer", &[72], &[]);
    let workdir = workdir(&all.into());
    let base = ["docs", "repo", "--agents", "flow-analyzer", "--force"];
    for _ in 0..3 {
        let mut args = base.to_vec();
        args.push("--no-self-questioning");
        assert_eq!(workdir.run(&args, "").code(), Some(0));
    }
    let mut args = base.to_vec();
    args.push("--learn-threshold");
    let ran = workdir.run(&args, "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(
        ran.out().contains("flow-analyzer  72 ✓ 0 iterations"),
        "72 is what it usually comes to: {ran:?}"
    );
    let manifest: Json = serde_json::from_str(&page(&workdir, "manifest.json")).unwrap();
    assert_eq!(
        manifest["agents"]["flow-analyzer"]["history"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
    assert_eq!(
        manifest["agents"]["flow-analyzer"]["result"]["metadata"]["threshold"],
        72
    );
}

#[test]
fn a_failed_agent_keeps_what_the_others_have_and_goes_on_alone() {
    let mut all = replies("dependency-analyzer", &[91], &[]);
    all.push(json!({ "at": "file-structure-InitialAnalysis", "error": { "status": 400, "why": "no credit" } }));
    all.extend(replies("file-structure", &[90], &[]));
    let workdir = workdir(&all.into());
    let ran = workdir.run(&TWO, "");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert!(
        ran.err().contains("no credit") && ran.err().contains("archie resume"),
        "{ran:?}"
    );
    let ran = workdir.run(&["resume", &workdir.thread()], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(workdir.asked("dependency-analyzer-InitialAnalysis"), 1);
    assert_eq!(workdir.asked("dependency-analyzer-EvaluateClarity"), 1);
}
