//! Models that do not come to an end by themselves: they answer and go on, repeat themselves, or come to nothing. The scripts
//! replay what a small local model did with a workbook whose names need quotes.

use std::fs;

use serde_json::{Value as Json, json};

use super::kit::{COUNT, Play, calls, code, order, question, says, with_informer, workbook};
use crate::kit::{Ran, Workdir};
use archie_sheet::service::AnalysisRequest;
use archie_sheet::state::{Actions, Stopped};
use superstep::Outcome;

/// Orders by region. Neither the sheet nor one of its columns can be written in SQL without quotes.
fn orders() -> Vec<u8> {
    workbook(&[(
        "Orders 2026",
        &[
            &["Region", "Net amount", "Units"],
            &["North", "10", "1"],
            &["South", "20", "2"],
            &["North", "30", "3"],
        ],
    )])
}

const UNQUOTED: &str = "SELECT Region, SUM(Net amount) FROM Orders 2026 GROUP BY Region";
const QUOTED: &str = r#"SELECT "Region", SUM("Net amount") FROM "Orders 2026" GROUP BY "Region""#;
const NAMES: &str = r#"- FROM "Orders 2026": "row", "Region", "Net amount", "Units""#;

fn run(replies: &Json, more: &[&str]) -> (Workdir, Ran) {
    let workdir = Workdir::scripted(replies);
    fs::write(workdir.path("orders.xlsx"), orders()).unwrap();
    let mut args = vec![
        "sheet",
        "orders.xlsx",
        "--instruction",
        "What is the net amount of each region?",
    ];
    args.extend(more);
    let ran = workdir.run(&args, "");
    (workdir, ran)
}

fn submits(answer: &str) -> Json {
    calls("AnswerSubmitter", json!({ "answer": answer }))
}

fn after(mut reply: Json, expected: &str) -> Json {
    reply["expect"] = json!(expected);
    reply
}

#[test]
fn an_accepted_answer_ends_the_run() {
    let replies = json!([
        after(calls("SheetSelector", json!({ "sql": QUOTED })), QUOTED),
        after(submits("North 40, South 20"), "| North | 40 |"),
        // What the model would go on with, if it were asked again.
        submits("the answer is taken down"),
    ]);
    let (workdir, ran) = run(&replies, &[]);
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(ran.out().contains("North 40, South 20\n"), "{ran:?}");
    assert_eq!(workdir.asked("planner_node"), 2, "it is not asked again");
    assert!(
        !workdir.path("out/workbook_new.xlsx").exists(),
        "nothing was changed, so there is no new workbook"
    );
    let report = fs::read_to_string(workdir.path("out/report.md")).unwrap();
    assert!(report.contains("> North 40, South 20"), "{report}");
}

#[test]
fn an_unquoted_name_and_parroted_answers_end_in_a_failure_and_not_in_a_finish() {
    let parroted = "The answer to the question is taken down.";
    let mut replies = vec![
        calls("SheetSelector", json!({ "sql": UNQUOTED })),
        after(submits(parroted), NAMES),
        after(submits(parroted), "these are the words of the tool"),
        after(submits(parroted), "you made exactly this call before"),
    ];
    replies.extend((0..6).map(|_| submits(parroted)));
    let (workdir, ran) = run(&Json::Array(replies), &[]);
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    let out = ran.out();
    assert!(
        out.contains("No result: there is no answer, and the workbook is unchanged"),
        "{out}"
    );
    assert!(
        out.contains("stopped: the model made the same call three times"),
        "{out}"
    );
    assert!(!out.contains("Finish →"), "{out}");
    assert_eq!(workdir.asked("planner_node"), 4, "six calls are saved");
    assert!(!workdir.path("out/workbook_new.xlsx").exists());
    let report = fs::read_to_string(workdir.path("out/report.md")).unwrap();
    assert!(report.contains("**No result**"), "{report}");
}

#[test]
fn the_same_wrong_call_as_text_is_explained_once_and_then_ends_the_run() {
    let wrong = says(&format!(
        "Think: I sum up\nAction: SheetSelector\nAction Input: {UNQUOTED}"
    ));
    let replies = json!([
        // The prompt shows once how names are quoted, with those of this workbook.
        after(
            wrong.clone(),
            r#"SELECT "Region", SUM("Net amount") FROM "Orders 2026""#
        ),
        after(wrong.clone(), NAMES),
        after(wrong.clone(), "you made exactly this call before"),
        wrong,
    ]);
    let (workdir, ran) = run(&replies, &["--actions", "text"]);
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert_eq!(workdir.asked("planner_node"), 3);
    assert!(
        ran.out()
            .contains("the model made the same call three times"),
        "{ran:?}"
    );
}

#[test]
fn a_script_can_read_that_there_is_no_result() {
    let (_, ran) = run(
        &json!([says("Done"), says("Done."), says("Finish")]),
        &["--json"],
    );
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    let told: Json = serde_json::from_str(&ran.out()).unwrap();
    assert_eq!(
        (&told["has_result"], &told["answer"]),
        (&json!(false), &json!(""))
    );
    let files = told["files"].as_array().unwrap();
    assert_eq!(files.len(), 1, "only the report: {told}");
}

fn read() -> Json {
    calls("CellRangeReader", json!({ "range": "Sales!A1:B2" }))
}

#[tokio::test]
async fn an_answer_that_nothing_supports_is_refused_twice_and_a_change_that_was_not_made_too() {
    let play = Play::with(json!([
        submits("42 units"),
        after(
            submits("It is Tea."),
            "no result states 42. Look it up first"
        ),
        after(read(), "nothing was looked up yet"),
        submits("42 units"),
    ]));
    let stopped = play.run(&question()).await;
    assert_eq!(stopped.state.answer, "42 units", "the planner insists");
    play.script.finish().unwrap();
    let play = Play::with(json!([
        says("Finish: the sheet is there"),
        after(submits("I made it."), "nothing was changed yet"),
        after(code(COUNT), "nothing was changed yet"),
        says("Finish: the sheet is there"),
    ]));
    let stopped = play.run(&order()).await;
    assert!(matches!(stopped.outcome, Outcome::Paused(_)), "{stopped:?}");
    assert_eq!(stopped.state.answer, "the sheet is there");
    play.script.finish().unwrap();
}

#[tokio::test]
async fn the_first_accepted_answer_stays() {
    // Two answers in one message: the first ends the run, the second is not run.
    let play = Play::with(json!([read(), { "at": "planner_node", "tool_calls": [
        { "id": "a", "name": "AnswerSubmitter", "args": { "answer": "four products" } },
        { "id": "b", "name": "AnswerSubmitter", "args": { "answer": "five products" } },
    ]}]));
    let stopped = play.run(&question()).await;
    assert_eq!(stopped.outcome, Outcome::Finished);
    assert_eq!(stopped.state.answer, "four products");
    assert_eq!(stopped.state.stopped, Some(Stopped::Finished));
    let last = stopped.state.messages.last().unwrap().text();
    assert_eq!(last, "not run: the work has ended");
}

#[tokio::test]
async fn an_answer_after_changes_leads_to_the_question_about_them() {
    let play = Play::with(json!([code(COUNT), submits("four products")]));
    let stopped = play.run(&order()).await;
    assert!(matches!(stopped.outcome, Outcome::Paused(_)));
    assert_eq!(stopped.state.answer, "four products");
    play.script.finish().unwrap();
}

#[tokio::test]
async fn after_failed_checks_a_new_answer_replaces_the_first_one() {
    let play = Play::with(json!([
        code("empty Sales!A2\nempty Sales!B2"),
        submits("one row is gone"),
        after(
            submits("it was a duplicate"),
            "no row of the input was emptied"
        ),
    ]));
    let stopped = play.run(&order()).await;
    assert!(matches!(stopped.outcome, Outcome::Paused(_)));
    assert_eq!(stopped.state.answer, "it was a duplicate");
    play.script.finish().unwrap();
}

#[tokio::test]
async fn an_empty_answer_is_refused_and_a_number_is_an_answer() {
    let play = Play::with(json!([
        submits("  "),
        after(
            calls("AnswerSubmitter", json!({ "answer": 5 })),
            "the answer is empty"
        ),
    ]));
    let stopped = play.run(&question()).await;
    assert_eq!(stopped.state.answer, "5");
    play.script.finish().unwrap();
}

#[tokio::test]
async fn a_call_may_be_made_again_when_the_workbook_has_changed() {
    let select = calls(
        "SheetSelector",
        json!({ "sql": r#"SELECT COUNT(*) AS n FROM "Sales""# }),
    );
    let play = Play::with(json!([
        select,
        code("set Sales!A7 Juice"),
        after(select.clone(), "changed: Sales!A7"),
        after(submits("six rows"), "| 6 |"),
    ]));
    let stopped = play.run(&order()).await;
    assert_eq!(stopped.state.answer, "six rows");
    play.script.finish().unwrap();
}

#[tokio::test]
async fn code_that_changed_the_workbook_is_not_run_twice() {
    let play = Play::with(json!([
        code(COUNT),
        code(COUNT),
        after(says("Finish: done"), "you made exactly this call before"),
    ]));
    play.run(&order()).await;
    let ran = play.ran.lock().unwrap().clone();
    assert_eq!(ran, ["workbook\n", COUNT], "once, after the opening");
    play.script.finish().unwrap();
}

#[tokio::test]
async fn a_question_to_the_informer_and_a_message_without_an_action_are_repeats_too() {
    let ask = calls("Informer", json!({ "question": "Which products?" }));
    let lookup = json!({ "at": "informer_node", "json": { "action": "select", "sql": "SELECT DISTINCT \"Product\" FROM \"Sales\"" } });
    let play = Play::with(json!([
        ask,
        lookup,
        ask,
        after(ask.clone(), "you made exactly this call before"),
    ]));
    let stopped = play.run(&with_informer(order())).await;
    assert_eq!(stopped.state.stopped, Some(Stopped::Repeated));
    play.script.finish().unwrap();

    let thinks = says("I should count the rows.");
    let play = Play::with(json!([
        thinks,
        thinks,
        after(thinks.clone(), "You wrote exactly the same before"),
    ]));
    let text = AnalysisRequest {
        actions: Actions::Text,
        ..order()
    };
    let stopped = play.run(&text).await;
    assert_eq!(stopped.state.stopped, Some(Stopped::Repeated));
    play.script.finish().unwrap();
}
