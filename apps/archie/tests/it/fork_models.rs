//! Forks of the five agents that run with another model, over HTTP: which models a caller may choose, and that the other model is
//! the one that is asked and paid.

use std::fs;

use serde_json::{Value as Json, json};

use crate::atris::{Server as Api, ServerReply};
use crate::docs;
use crate::http_agents::Caller;
use crate::kit::Workdir;
use crate::mail::triage_of;
use crate::serve::ServeProcess;
use crate::sheet::kit::sales;

const OTHER: &str = "script:other.json";

/// Starts a server with a second model, which costs money.
fn serve(workdir: &Workdir, replies: &Json, options: &[&str]) -> ServeProcess {
    let mut replies = replies.clone();
    for reply in replies.as_array_mut().unwrap() {
        reply["usage"] = json!({ "input_tokens": 100, "output_tokens": 10 });
    }
    let script = json!({ "price": { "input": 1_000, "output": 1_000 }, "replies": replies });
    fs::write(workdir.path("other.json"), script.to_string()).unwrap();
    let options = [&["--allow-model", OTHER], options].concat();
    ServeProcess::with(workdir.command(), &options)
}

fn fork(checkpoint: &str, model: &str) -> Json {
    json!({ "checkpoint_id": checkpoint, "context": { "model": model } })
}

/// Collects the models that were asked in a span, in order.
fn models(span: &Json, found: &mut Vec<String>) {
    if let Some(model) = span["model"].as_str() {
        found.push(model.to_owned());
    }
    let inner = span["spans"].as_array().into_iter().flatten();
    inner.for_each(|span| models(span, found));
}

/// Runs a thread, forks it before this node with the other model, and returns the values that the fork ends with.
async fn forked(caller: &Caller, input: Json, node: &str) -> Json {
    let first = caller.wait(json!({ "input": input })).await;
    assert!(first["__error__"].is_null(), "{first}");
    let trace = caller.get("/superstep", "/trace").await;
    assert_eq!(trace["cost"]["nano_dollars"], 0, "{trace}");
    let checkpoint = caller.checkpoint_before(node).await;
    let values = caller.wait(fork(&checkpoint, OTHER)).await;
    assert!(values["__error__"].is_null(), "{values}");
    let trace = caller.get("/superstep", "/trace").await;
    let runs = trace["runs"].as_array().unwrap();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    models(&runs[0], &mut before);
    runs[1..].iter().for_each(|run| models(run, &mut after));
    assert!(
        !before.is_empty() && before.iter().all(|name| name == "script.json"),
        "{before:?}"
    );
    assert!(
        !after.is_empty() && after.iter().all(|name| name == "other.json"),
        "{after:?}"
    );
    assert_eq!(
        trace["cost"]["nano_dollars"],
        110_000 * after.len(),
        "{trace}"
    );
    values
}

fn interview() -> Json {
    json!({ "userInput": "analyze: Choose a queue", "fileContents": { "a.md": "One machine.\n" } })
}

fn asks(question: &str) -> Json {
    json!([{ "at": "initial", "text": question }])
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_asks_the_question_of_an_interview() {
    let workdir = Workdir::scripted(&asks("Is ordering required?"));
    let server = serve(&workdir, &asks("What must not happen?"), &[]);
    let caller = Caller::new(&server, "analyze").await;
    let values = forked(&caller, interview(), "ANALYSIS_PREPARE").await;
    let asked = &values["__interrupt__"][0]["value"];
    assert_eq!(asked["query"], "What must not happen?");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_plans_the_work_on_a_workbook() {
    let finish =
        |answer: &str| json!([{ "at": "planner_node", "text": format!("Finish: {answer}") }]);
    let workdir = Workdir::scripted(&finish("It lists sales."));
    let server = serve(&workdir, &finish("It lists products."), &[]);
    let caller = Caller::new(&server, "sheet").await;
    caller.upload("sales.xlsx", sales()).await;
    let task = json!({ "workbook": "sales.xlsx", "instruction": "What is this?", "max_steps": 1 });
    let values = forked(&caller, json!({ "task": task }), "planner_node").await;
    assert_eq!(values["answer"], "It lists products.");
}

/// The fork begins where the writers have their tasks, which name the model of the first run.
#[tokio::test(flavor = "multi_thread")]
async fn another_model_writes_pages_which_name_it() {
    let replies = Json::from(docs::replies("file-structure", &[85], &[]));
    let workdir = Workdir::scripted(&replies);
    let server = serve(&workdir, &replies, &[]);
    let caller = Caller::new(&server, "docs").await;
    for (path, text) in docs::kit::FILES {
        if !path.starts_with('.') && !path.starts_with("target") {
            caller.upload(&format!("shop/{path}"), text).await;
        }
    }
    let task = json!({ "folder": "shop", "agents": ["file-structure"], "maxIterations": 0 });
    forked(&caller, json!({ "task": task }), "ExecuteAgents").await;
    let manifest = caller.text("results/manifest.json").await;
    assert!(manifest.contains(OTHER), "{manifest}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_chooses_the_call_of_an_api() {
    const SHOP: &str = "openapi: 3.0.3\ninfo: {title: Shop}\nservers: [{url: 'https://shop.example.com'}]\npaths:\n  /pets:\n    get:\n      operationId: listPets\n      summary: List all pets\n      tags: [pets]\n      responses: {'200': {description: pets}}\n  /carts:\n    get:\n      operationId: listCarts\n      summary: List all carts\n      tags: [carts]\n      responses: {'200': {description: carts}}\n";
    let chooses =
        |category: &str| json!([{ "at": "extract_category_node", "json": { "choice": category } }]);
    let api = Api::start(|_| ServerReply::Json(200, json!([{ "id": 7 }])));
    let workdir = Workdir::scripted(&chooses("pets"));
    fs::write(workdir.path("shop.yaml"), SHOP).unwrap();
    let host = api.host();
    let added = [
        "api",
        "add",
        "shop.yaml",
        "--name",
        "shop",
        "--allow-host",
        &host,
    ];
    assert_eq!(workdir.run(&added, "").code(), Some(0));
    let server = serve(&workdir, &chooses("carts"), &[]);
    let caller = Caller::new(&server, "atris").await;
    // No word of the question is one of the API's.
    let input = json!({ "query": "@shop xyzzy" });
    forked(&caller, input, "extract_category_node").await;
    assert_eq!(api.lines(), ["GET /pets", "GET /carts"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_sorts_a_mail() {
    let workdir = Workdir::scripted(&json!([triage_of("bob@example.com", "ignore")]));
    let server = serve(
        &workdir,
        &json!([triage_of("bob@example.com", "notify")]),
        &[],
    );
    let caller = Caller::new(&server, "email_assistant").await;
    let mail = json!({
        "id": "q4", "message_id": "q4@x", "from": "Bob <bob@example.com>", "to": "alice@example.com",
        "account": "alice@example.com", "subject": "Q4 report?", "page_content": "When is the report ready?",
    });
    let values = forked(&caller, json!({ "email_input": mail }), "triage_router").await;
    assert!(values["__interrupt__"].is_array(), "{values}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_with_another_model_spends_from_the_same_budget() {
    let workdir = Workdir::scripted(&asks("Is ordering required?"));
    let server = serve(
        &workdir,
        &asks("What must not happen?"),
        &["--budget", "1c"],
    );
    let caller = Caller::new(&server, "analyze").await;
    caller.begin(interview()).await;
    let checkpoint = caller.checkpoint_before("ANALYSIS_PREPARE").await;
    let values = caller.wait(fork(&checkpoint, OTHER)).await;
    let asked = &values["__interrupt__"][0]["value"];
    assert_eq!(asked["limit"], 1, "{values}");
    let values = caller.answer(json!({ "type": "raise", "by": 1 })).await;
    let asked = &values["__interrupt__"][0]["value"];
    assert_eq!(asked["query"], "What must not happen?", "{values}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_the_operator_did_not_allow_is_refused_before_anything_runs() {
    let workdir = Workdir::scripted(&asks("Is ordering required?"));
    // A file that exists, and would answer.
    let secret = workdir.path("secret.json");
    fs::write(&secret, json!({ "replies": asks("Opened!") }).to_string()).unwrap();
    let server = ServeProcess::start(&workdir);
    let caller = Caller::new(&server, "analyze").await;
    caller.begin(interview()).await;
    let checkpoint = caller.checkpoint_before("ANALYSIS_PREPARE").await;
    let before = caller.get("", "/state").await;
    for model in [
        format!("script:{}", secret.display()),
        "script:secret.json".to_owned(),
        "cassette:/etc/passwd".to_owned(),
        "openai:gpt-4o".to_owned(),
        "ollama:llama3".to_owned(),
        "no model at all".to_owned(),
        String::new(),
    ] {
        let (status, why) = caller.try_wait(fork(&checkpoint, &model)).await;
        assert_eq!(status, 422, "{model}: {why}");
        let why = why["detail"].as_str().unwrap();
        assert!(
            why.contains("`model` of the context must be one of"),
            "{why}"
        );
        assert!(why.contains("script:script.json"), "{why}");
    }
    let odd = json!({ "checkpoint_id": checkpoint, "context": { "model": { "name": OTHER } } });
    assert_eq!(caller.try_wait(odd).await.0, 422);
    assert_eq!(
        caller.get("", "/state").await,
        before,
        "the thread is as it was"
    );
    let runs = caller.get("", "/runs").await;
    assert_eq!(runs.as_array().unwrap().len(), 1, "no run was stored");
}

#[test]
fn a_server_does_not_start_with_a_model_that_cannot_be_opened() {
    let workdir = Workdir::scripted(&json!([]));
    let options = ["serve", "--listen", "127.0.0.1:0", "--allow-model"];
    for (model, why) in [
        ("script:missing.json", "No such file"),
        ("no model at all", "is not a model"),
    ] {
        let ran = workdir.run(&[&options[..], &[model]].concat(), "");
        assert_eq!(ran.code(), Some(1), "{ran:?}");
        let told = ran.err();
        assert!(
            told.contains(&format!("the model `{model}`")) && told.contains(why),
            "{told}"
        );
    }
}
