//! The result of `analyze` part by part: with a small model, an answer that is cut, one that is no answer, a process that is
//! killed in between, and a budget that ends in between. And what the page says about evidence and contradictions.

use std::fs;

use serde_json::{Value as Json, json};

use crate::kit::{Workdir, with_context};

const ANALYZE: [&str; 5] = [
    "analyze",
    "--query",
    "Choose a queue",
    "--inputs",
    "./notes",
];

fn asks() -> Json {
    json!({ "at": "initial", "text": "Is ordering required?" })
}

/// The answer for one heading.
fn part(heading: &str, field: &str, claims: Json) -> Json {
    let expect = format!("one part of what came of it: {heading}.");
    json!({ "at": "final", "expect": expect, "json": { field: claims } })
}

fn parts() -> Vec<Json> {
    let machine = json!({ "claim": "One machine is enough.", "file": "b.txt", "line": 1, "quote": "We have one machine" });
    vec![
        part(
            "Assumptions",
            "assumptions",
            json!([{ "claim": "The load stays." }]),
        ),
        part(
            "Main components",
            "components",
            json!([{ "claim": "A queue." }]),
        ),
        part("Alternatives and trade-offs", "alternatives", json!([])),
        part("Decisions and why", "decisions", json!([machine])),
        part(
            "Open questions",
            "open_questions",
            json!([{ "claim": "Who is called at night?" }]),
        ),
    ]
}

fn script(parts: Vec<Json>) -> Json {
    let mut replies = vec![asks()];
    replies.extend(parts);
    Json::Array(replies)
}

/// Returns the text below a heading of the page.
fn below(page: &str, heading: &str) -> String {
    let (_, rest) = page.split_once(&format!("## {heading}\n\n")).unwrap();
    rest.split("\n## ").next().unwrap().trim_end().to_owned()
}

#[test]
fn a_small_model_writes_the_result_one_heading_at_a_time() {
    let workdir = with_context(8_192, &script(parts()));
    let ran = workdir.run(&ANALYZE, "DONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let page = workdir.result();
    assert!(!page.contains("Degraded"), "{page}");
    assert_eq!(below(&page, "Main components"), "- A queue.");
    assert_eq!(below(&page, "Alternatives and trade-offs"), "None.");
    assert_eq!(
        below(&page, "Decisions and why"),
        "- One machine is enough.\n  - supported: `b.txt:1` says \"We have one machine\""
    );
    let asked = workdir.requests("final");
    assert_eq!(asked.len(), 5);
    for (request, field) in asked.iter().zip(["assumptions", "components"]) {
        let list = &request["output"]["schema"]["properties"][field];
        assert_eq!(list["maxItems"], 6, "{request}");
        assert_eq!(list["items"]["properties"]["claim"]["maxLength"], 240);
        assert!(
            request["tokens_max"].as_u64().unwrap() <= 1_024,
            "{request}"
        );
    }
    // The person sees how far it is.
    let out = ran.out();
    assert!(out.contains("writing open questions (5 of 5)"), "{out}");
}

#[test]
fn a_cut_heading_keeps_its_complete_claims() {
    let mut cut = parts();
    let text = r#"{"components": [{"claim": "A queue."}, {"claim": "A table."}, {"claim": "A wor"#;
    let expect = "one part of what came of it: Main components.";
    cut[1] = json!({ "at": "final", "expect": expect, "text": text, "finish": "length" });
    let workdir = with_context(4_096, &script(cut));
    let ran = workdir.run(&ANALYZE, "DONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let page = workdir.result();
    assert!(!page.contains("Degraded"), "{page}");
    assert_eq!(
        below(&page, "Main components"),
        "- A queue.\n- A table.\n\nThe model's list was cut off here; 2 complete claims kept."
    );
    assert!(
        below(&page, "Open questions").contains("at night"),
        "{page}"
    );
    assert_eq!(workdir.asked("final"), 5, "nothing was asked twice");
    assert!(ran.out().contains("check: 1 heading incomplete"), "{ran:?}");
}

#[test]
fn a_heading_that_cannot_be_had_says_so_alone_and_its_retry_says_what_was_wrong() {
    let mut bad = parts();
    let expect = "one part of what came of it: Main components.";
    let wrong = "Your last answer could not be used: it is not JSON.";
    bad[1] = json!({ "at": "final", "expect": expect, "text": "Solution APPROVED." });
    let again = json!({ "at": "final", "expect": [expect, wrong], "text": r#"{"components": [{"cla"#, "finish": "length" });
    bad.insert(2, again);
    let workdir = with_context(8_192, &script(bad));
    let ran = workdir.run(&ANALYZE, "DONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(
        ran.out().contains("again, because it is not JSON"),
        "{ran:?}"
    );
    let page = workdir.result();
    let degraded = "**Degraded:** `script:script.json` gave no usable answer for Main components.";
    let plain = page.replace('\\', "");
    assert!(plain.contains(degraded), "{page}");
    let missing = below(&page, "Main components");
    assert!(missing.starts_with("Not available: "), "{missing}");
    assert!(
        missing.contains("cut off before the first claim"),
        "{missing}"
    );
    assert_eq!(below(&page, "Assumptions"), "- The load stays.");
    assert!(
        below(&page, "Decisions and why").contains("One machine"),
        "{page}"
    );
    assert!(
        below(&page, "Interview").contains("Is ordering required?"),
        "{page}"
    );
    assert_eq!(workdir.asked("final"), 6);
    let shown = workdir.json(&["show", &workdir.thread(), "--json"]);
    let gaps = &shown["values"]["gaps"];
    assert!(gaps["components"]["missing"]["why"].is_string(), "{gaps}");
    assert_eq!(gaps.as_object().unwrap().len(), 1, "{gaps}");
}

#[test]
fn of_a_cut_whole_result_the_complete_headings_stay_and_only_the_others_are_asked_for() {
    let cut = r#"{"assumptions": [{"claim": "The load stays."}], "components": [{"claim": "A queue."}], "alternatives": [{"claim": "Kaf"#;
    let mut replies = vec![json!({ "at": "final", "text": cut, "finish": "length" })];
    replies.extend(parts().split_off(2));
    let workdir = Workdir::scripted(&script(replies));
    let ran = workdir.run(&ANALYZE, "DONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(workdir.asked("final"), 4, "one whole, and three headings");
    let page = workdir.result();
    assert!(!page.contains("Degraded"), "{page}");
    assert_eq!(below(&page, "Assumptions"), "- The load stays.");
    assert_eq!(below(&page, "Main components"), "- A queue.");
    assert!(
        below(&page, "Decisions and why").contains("One machine"),
        "{page}"
    );
    assert!(ran.out().contains("kept 2 headings"), "{ran:?}");
}

#[test]
fn a_process_killed_between_headings_repeats_one_call_and_loses_no_heading() {
    let calm = with_context(8_192, &script(parts()));
    assert_eq!(calm.run(&ANALYZE, "DONE\n").code(), Some(0));
    for at in 0..5 {
        let mut deadly = parts();
        let expect = deadly[at]["expect"].clone();
        deadly.insert(at, json!({ "at": "final", "expect": expect, "kill": true }));
        let workdir = with_context(8_192, &script(deadly));
        let ran = workdir.run(&ANALYZE, "DONE\n");
        assert_eq!(ran.code(), None, "{ran:?}");
        let ran = workdir.run(&["resume", &workdir.thread()], "");
        assert_eq!(ran.code(), Some(0), "{ran:?}");
        assert_eq!(workdir.result(), calm.result(), "killed at heading {at}");
        // The fifth and the one that was killed; the headings before it are not asked for again.
        assert_eq!(workdir.asked("final"), 6, "killed at heading {at}");
    }
}

#[test]
fn a_budget_that_ends_between_headings_keeps_those_that_are_written() {
    let workdir = with_context(8_192, &script(parts()));
    let budget = ["--budget", "3c"];
    let analyze = [&budget[..], &ANALYZE[..]].concat();
    let ran = workdir.run(&analyze, "DONE\nstop\n");
    assert_eq!(ran.code(), Some(4), "{ran:?}");
    assert_eq!(workdir.asked("final"), 2);
    let shown = workdir.json(&["show", &workdir.thread(), "--json"]);
    assert_eq!(
        shown["values"]["drafted"],
        json!(["assumptions", "components"])
    );
    let id = workdir.thread();
    let resume = [&budget[..], &["resume", &id]].concat();
    let ran = workdir.run(&resume, "raise 5\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(workdir.asked("final"), 5, "no heading was paid for twice");
    let page = workdir.result();
    assert_eq!(below(&page, "Assumptions"), "- The load stays.");
    assert!(
        below(&page, "Open questions").contains("at night"),
        "{page}"
    );
}

#[test]
fn the_page_says_whether_a_quotation_supports_its_claim() {
    let said = "Mara: SQS FIFO has 300 transactions a second per group.";
    let claim = |claim: &str| json!({ "claim": claim, "file": "meeting.md", "line": 1, "quote": "SQS FIFO has 300 transactions" });
    let workdir = Workdir::scripted(&json!([
        asks(),
        { "at": "final", "json": {
            "assumptions": [
                claim("The person wants to avoid creating new vendors until March 2027."),
                claim("SQS FIFO has 300 transactions a second per group."),
                claim("Costs, hiring, audits and contracts matter more than transactions do."),
                { "claim": "Kafka is fast.", "file": "meeting.md", "line": 1, "quote": "Kafka is fast" }
            ],
            "components": [], "alternatives": [], "decisions": [], "open_questions": []
        } }
    ]));
    fs::write(workdir.notes().join("meeting.md"), format!("{said}\n")).unwrap();
    let ran = workdir.run(&ANALYZE, "DONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let page = below(&workdir.result(), "Assumptions");
    let marks: Vec<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("  - "))
        .collect();
    let place = "`meeting.md:1`";
    assert_eq!(
        marks,
        [
            format!(
                "**unsupported**: {place} says \"SQS FIFO has 300 transactions\", which is about something else"
            ),
            format!("supported: {place} says \"SQS FIFO has 300 transactions\""),
            format!(
                "**weak**: {place} says \"SQS FIFO has 300 transactions\", which says only part of it"
            ),
            format!("**unsupported**: {place} does not say \"Kafka is fast\""),
        ],
        "{page}"
    );
    assert!(
        ran.out()
            .contains("check: 2 claims unsupported, 1 claim weakly supported"),
        "{ran:?}"
    );
}

#[test]
fn a_decision_against_an_answer_of_the_person_is_flagged() {
    let workdir = Workdir::scripted(&json!([
        { "at": "initial", "text": "Kafka or RabbitMQ?" },
        { "at": "followup", "text": "How many machines?" },
        { "at": "followup", "text": "Shall we go?" },
        { "at": "final", "json": {
            "assumptions": [], "components": [], "alternatives": [{ "claim": "Kafka would order by key." }],
            "decisions": [
                { "claim": "Orders go through Kafka." }, { "claim": "Buy 9 machines." },
                { "claim": "RabbitMQ runs on 4 machines." }
            ],
            "open_questions": []
        } }
    ]));
    let ran = workdir.run(&ANALYZE, "RabbitMQ\nat most 5 new machines\nDONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let page = workdir.result();
    assert_eq!(
        below(&page, "Decisions and why"),
        "- Orders go through Kafka.\n  - **may contradict your answer**: you said \"RabbitMQ\"\n\
         - Buy 9 machines.\n  - **may contradict your answer**: you said \"at most 5 new machines\"\n\
         - RabbitMQ runs on 4 machines."
    );
    assert!(
        !below(&page, "Alternatives and trade-offs").contains("contradict"),
        "{page}"
    );
    assert!(
        ran.out()
            .contains("2 decisions may contradict your answers"),
        "{ran:?}"
    );
}
