//! The graphs that the server of the trials has: steps with effects, questions, and a chat without a model.

use std::sync::Arc;
use std::time::Duration;

use harness::prng::mix;
use serde_json::{Value as Json, json};
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::label::Labels;
use superstep::prelude::*;
use superstep_agent::ChatMessage;
use superstep_llm::Message;

use crate::ledger::{Ledger, Report};

/// Returns all of them. The name of a graph is the one by which clients ask for it.
pub(crate) fn definitions(ledger: &Arc<Ledger>) -> Result<Vec<Arc<Definition>>, BuildError> {
    Ok(vec![steps(ledger)?, questions(ledger)?, chat()?])
}

/// What the runs of a thread leave behind.
#[derive(Clone, Debug, Default, State)]
struct Job {
    /// A name that the client gave to the run in progress, and to no other.
    mark: String,
    /// How long the second step waits between its effects.
    ms: u64,
    /// `MARK:NODE` of every node that ended.
    #[state(append)]
    done: Vec<String>,
    #[state(append)]
    answers: Vec<u64>,
}

/// Three nodes, one after the other; every node has two effects.
fn steps(ledger: &Arc<Ledger>) -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::<Job>::builder("steps")
        .node("first", EffectNode::new("first", ledger))
        .node("second", EffectNode::new("second", ledger))
        .node("third", EffectNode::new("third", ledger))
        .edge(START, "first")
        .edge("first", "second")
        .edge("second", "third")
        .edge("third", END)
        .inputs(["mark", "ms"])
        .build()?;
    Ok(graph.definition().clone())
}

/// Two questions, and effects after each answer.
fn questions(ledger: &Arc<Ledger>) -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::<Job>::builder("questions")
        .node("ask_one", ask_one)
        .node("act_one", EffectNode::new("act_one", ledger))
        .node("ask_two", ask_two)
        .node("act_two", EffectNode::new("act_two", ledger))
        .edge(START, "ask_one")
        .edge("ask_one", "act_one")
        .edge("act_one", "ask_two")
        .edge("ask_two", "act_two")
        .edge("act_two", END)
        .inputs(["mark", "ms"])
        .build()?;
    Ok(graph.definition().clone())
}

/// A node whose body reports itself and its two effects.
struct EffectNode {
    name: &'static str,
    ledger: Arc<Ledger>,
}

impl EffectNode {
    fn new(name: &'static str, ledger: &Arc<Ledger>) -> Self {
        let ledger = ledger.clone();
        Self { name, ledger }
    }

    /// An effect of 1 to 10 ms, recorded as a step. Its key is the same in every process that does it.
    async fn effect(&self, step: &str, mark: &str, cx: &NodeCx) -> Result<(), NodeError> {
        let key = format!("{mark}/{}/{step}", self.name);
        cx.step(step, || async {
            self.report(cx, "start", &key).await;
            tokio::time::sleep(Duration::from_micros(1_500 + mix(0, &key) % 9_000)).await;
            Ok::<_, NodeError>(())
        })
        .await?;
        self.report(cx, "acked", &key).await;
        Ok(())
    }

    async fn report(&self, cx: &NodeCx, phase: &str, key: &str) {
        let report = Report {
            thread: cx.thread().name(),
            phase,
            key,
            detail: u64::from(cx.attempt()),
        };
        self.ledger.report(report).await;
    }
}

impl Node<Job> for EffectNode {
    async fn run(&self, job: View<Job>, cx: NodeCx) -> Result<Command<Job>, NodeError> {
        let mark = job.mark.clone();
        let body = format!("{mark}/{}", self.name);
        self.report(&cx, "body", &body).await;
        self.effect("one", &mark, &cx).await?;
        if self.name == "second" {
            tokio::time::sleep(Duration::from_millis(job.ms)).await;
        }
        self.effect("two", &mark, &cx).await?;
        let done = format!("{mark}:{}", self.name);
        Ok(JobUpdate::default().done(done).into())
    }
}

async fn ask_one(_: View<Job>, cx: NodeCx) -> Result<JobUpdate, NodeError> {
    let answer: u64 = cx.interrupt(Interrupt::new("one", "which one?")).await?;
    Ok(JobUpdate::default().answers(answer))
}

async fn ask_two(_: View<Job>, cx: NodeCx) -> Result<JobUpdate, NodeError> {
    let answer: u64 = cx.interrupt(Interrupt::new("two", "and now?")).await?;
    Ok(JobUpdate::default().answers(answer))
}

/// A conversation.
#[derive(Clone, Debug, Default, State)]
struct Chat {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    prompt: String,
    /// Whether a person is asked in the end.
    asks: bool,
}

/// A message in tokens, one as a whole, and another one in tokens.
fn chat() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::<Chat>::builder("chat")
        .node("think", think)
        .node("note", note)
        .node("answer", answer)
        .node("confirm", confirm)
        .edge(START, "think")
        .edge("think", "note")
        .edge("note", "answer")
        .edge("answer", "confirm")
        .edge("confirm", END)
        .inputs(["prompt", "asks"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn think(chat: View<Chat>, cx: NodeCx) -> Result<ChatUpdate, NodeError> {
    cx.emit(json!({ "name": "progress", "at": "think" }))?;
    let text = format!(
        "Let me think about {} for a while, word by word.",
        chat.prompt
    );
    speak(&text, &cx).await?;
    Ok(ChatUpdate::default().messages(said(text, &cx)))
}

async fn note(_: View<Chat>, cx: NodeCx) -> Result<ChatUpdate, NodeError> {
    cx.emit(json!({ "name": "progress", "at": "note" }))?;
    Ok(ChatUpdate::default().messages(said("A note that nobody saw being written.", &cx)))
}

async fn answer(chat: View<Chat>, cx: NodeCx) -> Result<ChatUpdate, NodeError> {
    let text = format!(
        "This is what I have to say about {}: it comes in tokens, and every one of them counts.",
        chat.prompt
    );
    speak(&text, &cx).await?;
    cx.emit(json!({ "name": "progress", "at": "answer" }))?;
    Ok(ChatUpdate::default().messages(said(text, &cx)))
}

async fn confirm(chat: View<Chat>, cx: NodeCx) -> Result<ChatUpdate, NodeError> {
    if chat.asks {
        let _: Json = cx.interrupt(Interrupt::new("good", "Are we good?")).await?;
    }
    Ok(ChatUpdate::default())
}

/// Shows the words of a text as a model would that streams them, and the end of the message.
async fn speak(text: &str, cx: &NodeCx) -> Result<(), NodeError> {
    let message = cx.message_id(0);
    for word in text.split_inclusive(' ') {
        cx.emit_live(json!({ "event": "token", "message": message, "text": word }))?;
        tokio::time::sleep(TOKEN).await;
    }
    cx.emit_live(json!({
        "event": "model_ended", "message": message, "input_tokens": 3, "output_tokens": 12,
    }))
}

fn said(text: impl Into<String>, cx: &NodeCx) -> ChatMessage {
    ChatMessage::new(Message::assistant(text), Labels::NONE).with_id(cx.message_id(0))
}

/// The pause between two tokens.
const TOKEN: Duration = Duration::from_millis(4);
