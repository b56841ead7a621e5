//! Graphs that ask a person: once, once in a thread, two at a time, and two graphs down.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;

/// A request that a person decides on.
#[derive(Clone, Debug, Default, State)]
struct Decision {
    request: Option<String>,
    decision: Option<Json>,
    completed: bool,
}

async fn decide(state: View<Decision>, cx: NodeCx) -> Result<DecisionUpdate, NodeError> {
    decide_on("Approve the outbound action?", &state, &cx).await
}

async fn decide_nested(state: View<Decision>, cx: NodeCx) -> Result<DecisionUpdate, NodeError> {
    decide_on("Approve nested subgraph action?", &state, &cx).await
}

async fn decide_on(
    prompt: &str,
    state: &Decision,
    cx: &NodeCx,
) -> Result<DecisionUpdate, NodeError> {
    let answer = ask(cx, prompt, state.request.as_deref()).await?;
    Ok(DecisionUpdate::default().decision(answer).completed(true))
}

/// Asks, and returns the answer as an object.
async fn ask(cx: &NodeCx, prompt: &str, request: Option<&str>) -> Result<Json, NodeError> {
    let question = Interrupt::new("review", json!({ "prompt": prompt, "request": request }));
    let answer: Json = cx.interrupt(question).await?;
    Ok(match answer {
        Json::Object(_) | Json::Array(_) => answer,
        value => json!({ "value": value }),
    })
}

pub(super) fn interrupt_graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("interrupt_graph")
        .node("review", decide)
        .edge(START, "review")
        .edge("review", END)
        .inputs(["request", "decision", "completed"])
        .build()?;
    Ok(graph.definition().clone())
}

/// The innermost of three graphs asks.
pub(super) fn nested_interrupt_graph() -> Result<Arc<Definition>, BuildError> {
    let grandchild = Graph::builder("grandchild")
        .node("review", decide_nested)
        .edge(START, "review")
        .edge("review", END)
        .inputs(["request", "decision", "completed"])
        .build()?;
    let child = Graph::builder("child")
        .subgraph("inner", grandchild, pass_down, pass_up)
        .edge(START, "inner")
        .edge("inner", END)
        .inputs(["request", "decision", "completed"])
        .build()?;
    let graph = Graph::builder("nested_interrupt_graph")
        .subgraph("child", child, pass_down, pass_up)
        .edge(START, "child")
        .edge("child", END)
        .inputs(["request", "decision", "completed"])
        .build()?;
    Ok(graph.definition().clone())
}

fn pass_down(outer: &Decision) -> DecisionUpdate {
    all_channels(outer)
}

fn pass_up(_: &Decision, inner: &Decision) -> DecisionUpdate {
    all_channels(inner)
}

fn all_channels(from: &Decision) -> DecisionUpdate {
    let mut update = DecisionUpdate::default().completed(from.completed);
    if from.request.is_some() {
        update = update.request(from.request.clone());
    }
    if from.decision.is_some() {
        update = update.decision(from.decision.clone());
    }
    update
}

/// A request that a person decides on at the first turn of a thread.
#[derive(Clone, Debug, Default, State)]
struct OnceDecision {
    request: Option<String>,
    decision: Option<Json>,
    #[state(name = "completedTurns")]
    completed_turns: u64,
}

pub(super) fn interrupt_once_graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("interrupt_once_graph")
        .node("review", decide_once)
        .edge(START, "review")
        .edge("review", END)
        .inputs(["request", "decision", "completedTurns"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn decide_once(
    state: View<OnceDecision>,
    cx: NodeCx,
) -> Result<OnceDecisionUpdate, NodeError> {
    let update = OnceDecisionUpdate::default().completed_turns(state.completed_turns + 1);
    if state.decision.is_some() {
        return Ok(update);
    }
    let request = state.request.as_deref();
    let answer = ask(&cx, "Approve the outbound action?", request).await?;
    Ok(update.decision(answer))
}

/// Decisions by the id of their prompt.
type DecisionMap = BTreeMap<String, Json>;

/// Prompts, each of which a person decides on.
#[derive(Clone, Debug, Default, State)]
struct Decisions {
    prompts: Vec<String>,
    #[state(reduce = merged)]
    decisions: DecisionMap,
    completed: bool,
}

fn merged(mut before: DecisionMap, added: DecisionMap) -> DecisionMap {
    before.extend(added);
    before
}

#[derive(Serialize, Deserialize)]
struct ReviewedPrompt {
    prompt: String,
}

const REVIEW: SendTo<ReviewedPrompt> = SendTo::new("review");

pub(super) fn multi_interrupt_graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("multi_interrupt_graph")
        .map_node(&REVIEW, review_prompt)
        .node(
            "aggregate",
            |state: View<Decisions>, _: NodeCx| async move {
                let is_decided = |prompt: &String| state.decisions.contains_key(prompt);
                let completed = state.prompts.iter().all(is_decided);
                Ok::<_, NodeError>(DecisionsUpdate::default().completed(completed))
            },
        )
        .route(START, &["review"], |state: &Decisions| {
            let send = |prompt: &String| {
                let prompt = prompt.clone();
                Goto::send(&REVIEW, ReviewedPrompt { prompt })
            };
            state.prompts.iter().map(send).collect::<Vec<_>>()
        })
        .edge("review", "aggregate")
        .edge("aggregate", END)
        .inputs(["prompts", "decisions", "completed"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn review_prompt(item: ReviewedPrompt, cx: NodeCx) -> Result<DecisionsUpdate, NodeError> {
    let prompt = item.prompt;
    let asked = json!({ "prompt": format!("Approve action {prompt}?"), "action": prompt });
    let decision: Json = cx.interrupt(Interrupt::new("review", asked)).await?;
    Ok(DecisionsUpdate::default().decisions(BTreeMap::from([(prompt, decision)])))
}
