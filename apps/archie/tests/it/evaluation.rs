//! `archie eval`: agents scored on the cases that come with them.

use superstep_conformance::services;

use crate::kit::Workdir;
use crate::model_server::{Fault, ModelServer};

#[test]
fn atris_is_scored_without_a_model() {
    let workdir = Workdir::with_model("");
    let report = workdir.json(&["eval", "atris", "--cases", "30", "--json"]);
    assert_eq!(report["model"], "none");
    let right = &report["measures"][0];
    assert_eq!(
        (&right["name"], &right["of"]),
        (&"right".into(), &30.into())
    );
    let share = right["share"].as_f64().unwrap();
    let (low, high) = (
        right["low"].as_f64().unwrap(),
        right["high"].as_f64().unwrap(),
    );
    assert!(share > 0.8 && low < share && share <= high, "{report}");
    assert_eq!(report["forbidden"]["count"], 0, "{report}");
}

#[test]
fn a_model_that_sorts_mails_badly_gets_a_bad_score_and_answers_no_fraud() {
    // Fills every form with the first category, so it ignores what it is asked about.
    let server = ModelServer::start(Fault::OneSlot);
    let workdir = Workdir::with_model("openai:m").with_environment("OPENAI_BASE_URL", &server.url);
    let ran = workdir.run(&["eval", "mail", "--cases", "20"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let out = ran.out();
    assert!(out.starts_with("mail, model openai:m, "), "{out}");
    let right = out.lines().find(|line| line.starts_with("  right  "));
    assert!(right.unwrap().contains(" of 20, 0."), "{out}");
    assert!(out.contains("replies to fraud         0\n"), "{out}");
    assert!(out.contains("  wrong: "), "{out}");
    let none = Workdir::with_model("").run(&["eval", "mail"], "");
    assert_eq!(none.code(), Some(1), "{none:?}");
    assert!(none.err().contains("--model"), "{none:?}");
}

#[test]
fn a_scripted_model_is_scored_for_every_agent_and_its_plain_prompt() {
    // Fills every form with the first choice and says the same to everything, so the scores are bad, and still scores.
    let server = ModelServer::start(Fault::OneSlot);
    let workdir = Workdir::with_model("openai:m").with_environment("OPENAI_BASE_URL", &server.url);
    for (agent, first) in [
        ("analyze", "results not degraded"),
        ("docs", "symbols found"),
        ("atris", "right"),
        ("mail", "right"),
        ("sheet", "right, questions"),
    ] {
        let report = workdir.json(&["eval", agent, "--plain", "--cases", "2", "--json"]);
        assert_eq!(report["agent"], agent);
        assert_eq!(
            (&report["plain"], &report["model"]),
            (&true.into(), &"openai:m".into())
        );
        assert_eq!(report["measures"][0]["name"], first, "{report}");
        assert!(report["forbidden"].is_null(), "{report}");
    }
}

/// What a model of 1.5 billion parameters comes to on a processor, with room for the luck of a sample. Takes about half an hour.
#[test]
fn a_small_real_model_keeps_the_figures_of_the_documentation() {
    if std::env::var_os("SUPERSTEP_LONG").is_none() {
        return;
    }
    let workdir = Workdir::with_model("openai:qwen2.5-coder-1.5b")
        .with_environment("OPENAI_BASE_URL", &services::url("model-large"));
    for (agent, cases, least) in [
        ("analyze", "3", 2),
        ("atris", "120", 100),
        ("mail", "40", 32),
    ] {
        let report = workdir.json(&["eval", agent, "--cases", cases, "--json"]);
        eprintln!("{report}");
        let right = report["measures"][0]["right"].as_u64().unwrap();
        assert!(right >= least, "{report}");
        assert!(
            report["forbidden"].is_null() || report["forbidden"]["count"] == 0,
            "{report}"
        );
    }
}
