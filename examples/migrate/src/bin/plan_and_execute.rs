//! Plan, execute a step, plan again.

use std::sync::Arc;

use example_migrate::{form, say, script};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use superstep::prelude::*;
use superstep_agent::{ask_model, ask_model_for};
use superstep_llm::{Message, Model, Request};

/// Steps to follow, in order.
#[derive(Default, Deserialize, JsonSchema)]
struct Plan {
    steps: Vec<String>,
}

/// Either the remaining steps, or the final answer when no more steps are needed.
#[derive(Default, Deserialize, JsonSchema)]
struct Act {
    #[serde(default)]
    steps: Vec<String>,
    answer: Option<String>,
}

#[derive(Clone, Debug, Default, State)]
struct Work {
    task: String,
    plan: Vec<String>,
    #[state(append)]
    past: Vec<(String, String)>,
    answer: Option<String>,
}

type Models = Arc<dyn Model>;

fn request(text: String) -> Request {
    Request::new("worker", vec![Message::user(text)])
}

async fn plan(model: Models, work: View<Work>, cx: NodeCx) -> Result<WorkUpdate, NodeError> {
    let asked = request(format!("Make a plan for: {}", work.task));
    let plan = ask_model_for(&*model, asked, &cx, Plan::default).await?;
    Ok(WorkUpdate::default().plan(plan.value.steps))
}

async fn execute(model: Models, work: View<Work>, cx: NodeCx) -> Result<WorkUpdate, NodeError> {
    let step = work.plan.first().ok_or("the plan is empty")?;
    let asked = request(format!("Done so far: {:?}. Now do: {step}", work.past));
    let reply = ask_model(&*model, &asked, &cx).await?;
    Ok(WorkUpdate::default().past((step.clone(), reply.text())))
}

async fn replan(model: Models, work: View<Work>, cx: NodeCx) -> Result<WorkUpdate, NodeError> {
    let Work {
        task, plan, past, ..
    } = &*work;
    let asked = request(format!(
        "Task: {task}. Plan: {plan:?}. Done: {past:?}. What is left?"
    ));
    let act = ask_model_for(&*model, asked, &cx, Act::default)
        .await?
        .value;
    Ok(WorkUpdate::default().plan(act.steps).answer(act.answer))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = script(
        "worker",
        [
            form(json!({ "steps": ["find the winner", "find the home town"] })),
            say("The winner is the player in lane 4."),
            form(json!({ "steps": ["find the home town of the player in lane 4"] })),
            say("The home town is Turku."),
            form(json!({ "answer": "The winner comes from Turku." })),
        ],
    );
    let graph = Graph::builder("work")
        .node("plan", with(&model, plan))
        .node("execute", with(&model, execute))
        .node("replan", with(&model, replan))
        .edge(START, "plan")
        .edge("plan", "execute")
        .edge("execute", "replan")
        .route("replan", &["execute", END], |work: &Work| {
            match work.answer {
                Some(_) => END,
                None => "execute",
            }
        })
        .build()?;
    let thread = Runtime::new(Memory::default()).thread(&graph, "work")?;
    let input = WorkUpdate::default().task("Where does the winner come from?");
    let result = thread.start(input).await?;
    for (step, outcome) in &result.state.past {
        println!("{step}: {outcome}");
    }
    println!("{}", result.state.answer.unwrap_or_default());
    Ok(())
}
