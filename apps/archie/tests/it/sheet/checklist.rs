//! Every line of the brief's checklist, by its number.

use std::fs;

use archie_agent::state_of;
use archie_sheet::changes::Verdict;
use archie_sheet::service;
use archie_sheet::state::{Actions, GraphState, GraphStateUpdate, Stopped};
use archie_sheet::{output, state};
use serde_json::{Value as Json, json};
use superstep::{Outcome, State};
use superstep_llm::Message;

use super::kit::{COUNT, Play, calls, code, order, question, sales, says, with_informer};

fn told(state: &GraphState) -> Vec<String> {
    state.messages.iter().map(|kept| kept.text()).collect()
}

async fn accept(play: &Play) -> superstep::RunResult<GraphState> {
    let thread = play.thread();
    let open = thread.interrupts().await.unwrap();
    assert_eq!(open.len(), 1, "it asks once");
    thread
        .answer_as("ada", [(open[0].interrupt.id, Verdict::accept())])
        .await
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn b1_the_state_has_the_fields_of_the_brief_and_nothing_that_lives() {
    let play = Play::with(json!([says("Done")]));
    let stopped = play.run(&with_informer(order())).await;
    let written = serde_json::to_value(played_values(&play).await).unwrap();
    for field in [
        "problem",
        "sandbox",
        "planner",
        "informer",
        "tools",
        "max_steps",
        "messages",
        "step",
        "key_information",
        "workbook",
    ] {
        assert!(
            written.get(field).is_some(),
            "{field} is missing: {written}"
        );
    }
    assert_eq!(written["planner"]["model"], "script:test");
    assert_eq!(written["sandbox"]["kind"], "bubblewrap");
    let tools: Vec<_> = written["tools"].as_object().unwrap().keys().collect();
    assert_eq!(
        tools,
        [
            "AnswerSubmitter",
            "CellRangeReader",
            "Informer",
            "PythonInterpreter",
            "SheetSelector"
        ]
    );
    // What was stored is all there is: another process has the same.
    assert_eq!(stopped.state.step, 1);
}

async fn played_values(play: &Play) -> Json {
    play.thread()
        .state()
        .await
        .unwrap()
        .unwrap()
        .values
        .decode()
        .unwrap()
}

#[tokio::test]
async fn b1_messages_are_added_by_id_and_a_step_is_set() {
    let mut state = GraphState::default();
    let message = |text: &str| superstep_agent::ChatMessage::user(text).with_id("m1");
    state.apply(GraphStateUpdate::default().messages(message("one")).step(1));
    state.apply(GraphStateUpdate::default().messages(message("two")).step(2));
    assert_eq!((told(&state), state.step), (vec!["two".to_owned()], 2));
}

#[tokio::test]
async fn b2_the_planner_is_sent_the_messages_and_its_reply_is_appended() {
    let play = Play::with(json!([
        { "at": "planner_node", "expect": ["Count each Product", "sheet \"Sales\": 5 rows"], "text": "I think about it." },
        { "at": "planner_node", "expect": "there was no action", "text": "Finish: 5 rows" }
    ]));
    let stopped = play.run(&question()).await;
    assert_eq!(stopped.outcome, Outcome::Finished);
    let told = told(&stopped.state);
    assert_eq!(told[0], "Count each Product");
    assert_eq!(told[1], "I think about it.");
    assert!(matches!(
        stopped.state.messages[1].message,
        Message::Assistant(_)
    ));
    assert_eq!(stopped.state.answer, "5 rows");
    play.script.finish().unwrap();
}

#[tokio::test]
async fn b3_the_tool_runs_in_the_sandbox_and_its_observation_is_a_tool_message() {
    let play = Play::with(json!([code("print five rows"), says("Done")]));
    let stopped = play.run(&order()).await;
    let Message::Tool(result) = &stopped.state.messages[2].message else {
        panic!("{:?}", stopped.state.messages)
    };
    assert!(result.content.text().contains("five rows"), "{result:?}");
    assert_eq!(result.name, "PythonInterpreter");
    // The first run opens and saves, so that changes are told against that.
    assert_eq!(*play.ran.lock().unwrap(), ["workbook\n", "print five rows"]);
    assert_eq!(stopped.state.journal[0].input, "print five rows");
}

#[tokio::test]
async fn b3_text_actions_and_calls_of_tools_both_work() {
    let text = "Think: look\nAction: PythonInterpreter\nAction Input:\n```python\nprint hello\n```";
    let play = Play::with(json!([
        { "at": "planner_node", "expect": "Action Input:", "text": text },
        { "at": "planner_node", "expect": "Observation: hello", "text": "Finish: done" }
    ]));
    let stopped = play.run(&state_of_text()).await;
    assert_eq!(stopped.state.stopped, Some(Stopped::Finished));
    assert!(
        matches!(&stopped.state.messages[2].message, Message::Tool(result) if result.tool_call_id == "step-1")
    );
    play.script.finish().unwrap();
}

fn state_of_text() -> archie_sheet::service::AnalysisRequest {
    archie_sheet::service::AnalysisRequest {
        actions: Actions::Text,
        ..question()
    }
}

#[tokio::test]
async fn b3_what_the_model_does_wrong_is_an_observation() {
    let play = Play::with(json!([
        says("Action: PythonInterpreter\nprint(1)"),
        { "at": "planner_node", "expect": "has no `Action Input:`", "tool_calls": [{ "name": "Calculator", "args": {} }] },
        { "at": "planner_node", "expect": "there is no tool `Calculator`", "tool_calls": [{ "name": "PythonInterpreter", "args": { "text": 1 } }] },
        { "at": "planner_node", "expect": "needs `code`", "tool_calls": [{ "name": "PythonInterpreter", "args": { "code": "fail KeyError: 'product'" } }] },
        { "at": "planner_node", "expect": ["KeyError: 'product'", "Hint: columns are named exactly"], "text": "Done" }
    ]));
    let stopped = play.run(&question()).await;
    assert_eq!(
        (stopped.outcome, stopped.state.step),
        (Outcome::Finished, 5)
    );
    play.script.finish().unwrap();
}

#[tokio::test]
async fn b3_the_other_tools_select_read_and_submit() {
    let play = Play::with(json!([
        calls("SheetSelector", json!({ "sql": "SELECT \"Product\", sum(\"Amount\") AS s FROM \"Sales\" GROUP BY 1 ORDER BY 1" })),
        { "at": "planner_node", "expect": "| Tea | 5 |", "tool_calls": [{ "name": "SheetSelector", "args": { "sql": "DROP TABLE \"Sales\"" } }] },
        { "at": "planner_node", "expect": "not authorized", "tool_calls": [{ "name": "CellRangeReader", "args": { "range": "Sales!A1:B2" } }] },
        { "at": "planner_node", "expect": "B2: 3", "tool_calls": [{ "name": "CellRangeReader", "args": { "range": "Sales!A1:K2" } }] },
        { "at": "planner_node", "expect": "ten columns at most", "tool_calls": [{ "name": "AnswerSubmitter", "args": { "answer": "5" } }] },
    ]));
    let stopped = play.run(&question()).await;
    assert_eq!(stopped.state.answer, "5");
    assert_eq!(stopped.state.stopped, Some(Stopped::Finished));
    assert!(play.ran.lock().unwrap().is_empty(), "no code was run");
    play.script.finish().unwrap();
}

#[tokio::test]
async fn b4_the_informer_adds_key_information_for_the_planner() {
    let play = Play::with(json!([
        calls("Informer", json!({ "question": "Which products are there?" })),
        { "at": "informer_node", "expect": ["Which products are there?", "\"Product\" (text)"],
          "json": { "action": "select", "sql": "SELECT DISTINCT \"Product\" FROM \"Sales\" ORDER BY 1" } },
        { "at": "planner_node", "expect": ["Key information", "| Coffee |"], "text": "Done" }
    ]));
    let stopped = play.run(&with_informer(order())).await;
    let known = stopped.state.key_information.unwrap();
    assert!(known.text.contains("| Tea |"), "{known:?}");
    assert_eq!(known.snapshot, stopped.state.workbook.snapshot);
    assert_eq!(stopped.state.step, 2, "the informer costs no step");
    play.script.finish().unwrap();
}

#[tokio::test]
async fn b4_without_the_flag_there_is_no_informer() {
    let play = Play::with(json!([
        calls("Informer", json!({ "question": "Which products are there?" })),
        { "at": "planner_node", "expect": "there is no informer in this run", "text": "Done" }
    ]));
    let stopped = play.run(&order()).await;
    assert_eq!(stopped.state.key_information, None);
    assert!(!stopped.state.tools.contains_key("Informer"));
    play.script.finish().unwrap();
}

#[tokio::test]
async fn b4_the_informer_tries_three_times_and_may_pass() {
    let wrong =
        |sql: &str| json!({ "at": "informer_node", "json": { "action": "select", "sql": sql } });
    let play = Play::with(json!([
        calls("Informer", json!({ "question": "?" })),
        wrong("SELECT nothing"),
        { "at": "informer_node", "expect": "The last SELECT failed: ", "json": { "action": "select", "sql": "DELETE FROM \"Sales\"" } },
        { "at": "informer_node", "expect": "The last SELECT failed: SQLite says: not authorized", "json": { "action": "select", "sql": "SELECT" } },
        { "at": "planner_node", "expect": "incomplete input", "tool_calls": [{ "name": "Informer", "args": { "question": "again" } }] },
        { "at": "informer_node", "json": { "action": "pass", "sql": "" } },
        { "at": "planner_node", "expect": "nothing was looked up", "text": "Done" }
    ]));
    let stopped = play.run(&with_informer(question())).await;
    assert_eq!(
        (stopped.outcome, stopped.state.step),
        (Outcome::Finished, 3)
    );
    play.script.finish().unwrap();
}

#[tokio::test]
async fn b4_a_planner_that_only_thinks_is_informed_of_what_changed() {
    let lookup = json!({ "at": "informer_node", "json": { "action": "select", "sql": "SELECT count(*) AS n FROM \"Sales\"" } });
    let play = Play::with(json!([
        says("I wonder how many rows there are."),
        lookup,
        { "at": "planner_node", "expect": "| 5 |", "text": "I wonder still." },
        { "at": "planner_node", "expect": "there was no action", "text": "Done" }
    ]));
    let stopped = play.run(&with_informer(question())).await;
    assert_eq!(stopped.outcome, Outcome::Finished);
    play.script.finish().unwrap();
}

#[tokio::test]
async fn b5_it_begins_with_the_planner_and_comes_back_to_it_after_every_tool() {
    let play = Play::with(json!([code(COUNT), says("Done")]));
    play.run(&order()).await;
    let stopped = accept(&play).await;
    assert_eq!(stopped.outcome, Outcome::Finished);
    let trace = play.thread().trace().await.unwrap().to_string();
    let nodes: Vec<&str> = [
        "planner_node",
        "tool_node",
        "planner_node",
        "change_set_node",
    ]
    .into();
    let mut rest = trace.as_str();
    for node in nodes {
        let at = rest
            .find(node)
            .unwrap_or_else(|| panic!("{node} is not there: {trace}"));
        rest = &rest[at + node.len()..];
    }
}

#[tokio::test]
async fn b5_too_many_steps_end_it_and_the_partial_workbook_is_saved() {
    let mut replies = vec![code(COUNT)];
    replies.extend((0..3).map(|at| code(&format!("print {at}"))));
    let play = Play::with(Json::Array(replies));
    let limited = archie_sheet::service::AnalysisRequest {
        max_steps: 4,
        ..order()
    };
    let stopped = play.run(&limited).await;
    assert_eq!(
        (stopped.state.step, stopped.state.stopped),
        (4, Some(Stopped::StepLimit))
    );
    let stopped = accept(&play).await;
    let files = output::files(&play.snapshots, play.thread().id(), &stopped.state).unwrap();
    let report = String::from_utf8(files["report.md"].clone()).unwrap();
    assert!(report.contains("stopped: step limit"), "{report}");
    let saved = archie_sheet::book::read(&files["workbook_new.xlsx"]).unwrap();
    assert_eq!(saved.sheets.len(), 2);
    play.script.finish().unwrap();
}

#[tokio::test]
async fn b6_run_analysis_makes_the_state_from_its_parts_and_runs_the_graph() {
    let play = Play::with(json!([code(COUNT), says("Finish: four products")]));
    let opened = play.open(&sales());
    let thread = play.thread();
    let ran = service::run_analysis(&thread, &with_informer(order()), &opened)
        .await
        .unwrap();
    assert!(
        matches!(ran.outcome, Outcome::Paused(_)),
        "it asks about the changes: {:?}",
        ran.outcome
    );
    let state: GraphState = state_of(&thread).await.unwrap();
    assert_eq!(state.problem.id, thread.id().to_string());
    assert_eq!(state.problem.workbook, opened.handle);
    assert_eq!(state.planner.model, "script:test");
    assert_eq!((state.max_steps, state.step), (10, 2));
    assert!(state.informer.is_some() && state.tools.contains_key("PythonInterpreter"));
    assert_eq!(told(&state)[0], "Count each Product in a new sheet");
    assert_eq!(state.journal.len(), 1);
    // A second call continues with what is there, and asks the model nothing.
    let again = service::run_analysis(&thread, &with_informer(order()), &opened)
        .await
        .unwrap();
    assert!(matches!(again.outcome, Outcome::Paused(_)));
    play.script.finish().unwrap();
}

#[tokio::test]
async fn b7_the_problem_is_a_handle_and_the_workbook_state_a_snapshot_with_lines() {
    let play = Play::with(json!([code(COUNT), says("Done")]));
    let stopped = play.run(&order()).await;
    let state::SheetProblem {
        id,
        instruction,
        workbook,
        ..
    } = &stopped.state.problem;
    assert_eq!(
        (id.as_str(), instruction.as_str()),
        ("t1", "Count each Product in a new sheet")
    );
    assert!(workbook.path.ends_with("sales.xlsx") && workbook.hash.len() == 32);
    let now = &stopped.state.workbook;
    assert_ne!(now.snapshot, now.baseline);
    assert_eq!(
        now.sheets[1],
        "sheet \"Counts\": 4 rows, 2 columns, header in row 1: \"Product\" (text), \"Count\" (number)"
    );
    let before = fs::read(&workbook.path).unwrap();
    assert_eq!(before, sales(), "the input is never written");
}

#[tokio::test]
async fn b5_the_change_set_names_cells_steps_and_lines() {
    let play = Play::with(json!([
        code("fail KeyError: 'x'"),
        code(COUNT),
        says("Done")
    ]));
    play.run(&order()).await;
    let open = play.thread().interrupts().await.unwrap();
    let request: Json = open[0].interrupt.request.decode().unwrap();
    assert_eq!(
        request["summary"],
        "Changes: new sheet Counts (10 cells): Counts!A1:B5 added (10 cells); formats and charts: Counts: width of columns A, B; unchanged: Sales."
    );
    assert_eq!(
        request["ranges"][0]["shown"][3],
        "Counts!B2: empty → 1 (step 2, line 4)"
    );
    assert_eq!(open[0].interrupt.kind, "approval");
}

#[tokio::test]
async fn a_failed_check_reopens_the_loop_once_and_then_the_person_decides() {
    let play = Play::with(json!([
        code("empty Sales!A2\nempty Sales!B2"),
        says("Done"),
        { "at": "planner_node", "expect": "no row of the input was emptied: 1 were", "text": "Finish: it is meant to be so" },
    ]));
    let stopped = play.run(&order()).await;
    assert!(
        matches!(stopped.outcome, Outcome::Paused(_)),
        "{:?}",
        stopped.outcome
    );
    let open = play.thread().interrupts().await.unwrap();
    let request: Json = open[0].interrupt.request.decode().unwrap();
    let failed: Vec<_> = request["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["ok"] == false)
        .collect();
    assert_eq!(failed.len(), 1, "{request}");
    play.script.finish().unwrap();
}

#[tokio::test]
async fn an_answer_that_cannot_be_carried_out_is_asked_again_with_the_reason() {
    let play = Play::with(json!([code(COUNT), says("Done")]));
    play.run(&order()).await;
    let thread = play.thread();
    let open = thread.interrupts().await.unwrap();
    let wrong = Verdict::from_line("e reject Sales!A1").unwrap();
    let stopped = thread
        .answer_as("ada", [(open[0].interrupt.id, wrong)])
        .await
        .unwrap()
        .unwrap();
    assert!(matches!(stopped.outcome, Outcome::Paused(_)));
    let open = thread.interrupts().await.unwrap();
    let request: Json = open[0].interrupt.request.decode().unwrap();
    assert!(
        request["problem"]
            .as_str()
            .unwrap()
            .contains("nothing was changed in `Sales!A1`"),
        "{request}"
    );
    let edit = Verdict::from_line("e reject Counts!A5:B5; set Counts!B4=22").unwrap();
    let stopped = thread
        .answer_as("ada", [(open[0].interrupt.id, edit)])
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stopped.outcome, Outcome::Finished);
    let files = output::files(&play.snapshots, thread.id(), &stopped.state).unwrap();
    let saved = archie_sheet::book::read(&files["workbook_new.xlsx"]).unwrap();
    let counts = saved.sheet("Counts").unwrap();
    let at = |text: &str| counts.content(super::kit::place(text));
    assert_eq!(
        (at("B4"), at("A5")),
        (Some(super::kit::content("22")), None)
    );
}
