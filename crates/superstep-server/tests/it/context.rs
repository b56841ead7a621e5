//! The context of a run: what its caller chooses besides the input, within the schema that the graph declares.

use http::StatusCode;
use serde_json::{Value as Json, json};
use superstep::prelude::*;
use superstep::registry::MemoryRegistry;

use crate::kit::{Client, Reply};

#[derive(Clone, Debug, Default, State)]
struct Letter {
    topic: String,
    #[state(append)]
    tones: Vec<String>,
}

/// Writes the tone that the context chooses.
async fn write(_: View<Letter>, cx: NodeCx) -> Result<LetterUpdate, NodeError> {
    let context: Option<Json> = cx.context()?;
    let tone = context.and_then(|context| Some(context["tone"].as_str()?.to_owned()));
    Ok(LetterUpdate::default().tones(tone.unwrap_or_else(|| "plain".to_owned())))
}

fn letter() -> Graph<Letter> {
    Graph::builder("letter")
        .inputs(["topic"])
        .context_schema(json!({
            "type": "object",
            "properties": { "tone": { "type": "string", "enum": ["dry", "warm"] } },
        }))
        .node("draft", write)
        .node("polish", write)
        .edge(START, "draft")
        .edge("draft", "polish")
        .edge("polish", END)
        .build()
        .unwrap()
}

async fn client() -> Client {
    let registry = MemoryRegistry::new();
    let builder = Client::builder(Runtime::new(Memory::default()), &registry);
    Client::of(builder.graph(letter().definition())).await
}

fn run(fields: Json) -> Json {
    let mut body = json!({ "assistant_id": "letter", "input": { "topic": "tea" } });
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// What is said to a caller whose context does not fit.
#[track_caller]
fn assert_refused(reply: &Reply) {
    assert_eq!(
        reply.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "{}",
        reply.json
    );
    let why = reply.json.to_string();
    assert!(
        why.contains("`tone` of the context must be one of"),
        "{why}"
    );
}

#[tokio::test]
async fn a_context_that_does_not_fit_is_refused_before_anything_runs() {
    let client = client().await;
    let thread = client.thread().await;
    for wrong in [
        json!({ "context": { "tone": "rude" } }),
        json!({ "config": { "configurable": { "tone": "rude" } } }),
    ] {
        let path = format!("{thread}/runs/wait");
        assert_refused(&client.post(&path, run(wrong.clone())).await);
        assert_refused(&client.post("/runs/wait", run(wrong)).await);
    }
    assert_eq!(client.history(&thread).await, Vec::<Json>::new());
    let runs = client.get(&format!("{thread}/runs")).await.ok();
    assert_eq!(runs, json!([]));
    let done = client
        .wait(&thread, run(json!({ "context": { "tone": "dry" } })))
        .await;
    assert_eq!(done["tones"], json!(["dry", "dry"]));
}

#[tokio::test]
async fn an_assistant_whose_context_does_not_fit_cannot_start_a_run() {
    let client = client().await;
    let new = json!({ "graph_id": "letter", "context": { "tone": "rude" } });
    let rude = client.post("/assistants", new).await.ok()["assistant_id"].clone();
    let thread = client.thread().await;
    let path = format!("{thread}/runs/wait");
    let body = run(json!({ "assistant_id": rude }));
    assert_refused(&client.post(&path, body).await);
    // What the request says goes before what the assistant says.
    let body = run(json!({ "assistant_id": rude, "context": { "tone": "warm" } }));
    let done = client.post(&path, body).await.ok();
    assert_eq!(done["tones"], json!(["warm", "warm"]));
    let cron =
        json!({ "assistant_id": rude, "schedule": "0 0 1 1 *", "input": { "topic": "tea" } });
    assert_refused(&client.post("/runs/crons", cron).await);
}

#[tokio::test]
async fn a_fork_runs_in_another_context_and_one_that_does_not_fit_changes_nothing() {
    let client = client().await;
    let thread = client.thread().await;
    client
        .wait(&thread, run(json!({ "context": { "tone": "dry" } })))
        .await;
    let history = client.history(&thread).await;
    let before = history
        .iter()
        .find(|state| state["next"] == json!(["polish"]));
    let checkpoint = before.unwrap()["checkpoint"]["checkpoint_id"].clone();
    let fork = |tone: &str| {
        json!({
            "assistant_id": "letter", "checkpoint_id": checkpoint, "context": { "tone": tone },
        })
    };
    let path = format!("{thread}/runs/wait");
    assert_refused(&client.post(&path, fork("rude")).await);
    assert_eq!(client.history(&thread).await.len(), history.len());
    let done = client.post(&path, fork("warm")).await.ok();
    assert_eq!(done["tones"], json!(["dry", "warm"]));
}
