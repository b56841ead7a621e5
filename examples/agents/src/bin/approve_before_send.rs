//! Two mails that a person must approve: one is accepted, one is edited, and both are sent once. The process may die anywhere
//! in between; the thread is in a file.
//!
//! Run it: `cargo run -p example-agents --bin approve_before_send` (offline, by a script), or with a model:
//! `cargo run -p example-agents --features remote --bin approve_before_send -- --model anthropic:claude-sonnet-4-5`

use std::time::Duration;

use example_agents::model_from_args;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use superstep::{Outcome, Runtime};
use superstep_agent::{Agent, AgentState, Approval, ToolCx, tool};
use superstep_sqlite::Sqlite;

#[derive(Deserialize, JsonSchema)]
struct Mail {
    /// The address.
    to: String,
    /// What it says.
    text: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let question = "Tell ada@example.org and bob@example.org that we meet at nine.";
    let (model, question) = model_from_args("approve_before_send.json", question)?;

    // A provider that takes a key drops a second mail under it, so the class is `keyed`. Without that: leave it `unsafe`.
    let send = tool(
        "send_mail",
        "Sends a mail.",
        |mail: Mail, cx: ToolCx| async move {
            println!(
                "  sending to {}: {:?} (key {})",
                mail.to,
                mail.text,
                cx.idempotency_key()
            );
            Ok("sent")
        },
    )
    .keyed()
    .approved_by_a_person(
        Approval::always()
            .described(|mail| format!("Send a mail to {}?", mail["to"]))
            .within(Duration::from_secs(24 * 60 * 60)),
    );
    let graph = Agent::builder(model).tools([send]).build()?;

    let dir = tempfile::tempdir()?;
    let runtime = Runtime::new(Sqlite::open(dir.path().join("mail.db"))?);
    let thread = runtime.thread(&graph, "meeting")?;
    let mut stopped = thread.start(AgentState::ask(question)).await?;
    let mut first = true;
    // Both questions are there at once. Here they are answered one by one, as an inbox would.
    while let Outcome::Paused(questions) = &stopped.outcome {
        println!("{} open", questions.len());
        let request: Json = questions[0].request.decode()?;
        println!(
            "{}: {}",
            request["description"], request["action_request"]["args"]
        );
        let answer = match std::mem::take(&mut first) {
            true => json!({ "type": "accept" }),
            false => {
                let mut args = request["action_request"]["args"].clone();
                args["text"] = json!("We meet at nine. Bring cake.");
                json!({ "type": "edit", "args": args })
            }
        };
        let answered = thread.answer(questions[0].id, answer).await?;
        stopped = answered.ok_or("somebody else runs this thread")?;
    }
    println!("{:?}: {}", stopped.outcome, stopped.state.answer());
    Ok(())
}
