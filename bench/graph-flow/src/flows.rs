//! The graphs of the workloads.

use std::sync::Arc;

use bench_rounds::message;
use graph_flow::{Context, FanOutTask, Graph, GraphBuilder, NextAction, Result, Task, TaskResult};

pub const NODES: usize = 20;

/// Appends a message and counts.
struct Step {
    id: String,
    next: NextAction,
}

#[async_trait::async_trait]
impl Task for Step {
    fn id(&self) -> &str {
        &self.id
    }

    async fn run(&self, context: Context) -> Result<TaskResult> {
        let step: usize = context.get("step").unwrap_or(0);
        context.add_assistant_message(message(step).to_owned());
        context.set("step", step + 1)?;
        Ok(TaskResult::new(None, self.next.clone()))
    }
}

/// Waits until somebody put an answer into the session.
struct Ask;

#[async_trait::async_trait]
impl Task for Ask {
    fn id(&self) -> &str {
        "ask"
    }

    async fn run(&self, context: Context) -> Result<TaskResult> {
        let Some(answer) = context.get::<String>("answer") else {
            let question = Some("approve?".to_owned());
            return Ok(TaskResult::new(question, NextAction::WaitForInput));
        };
        context.add_assistant_message(answer);
        let step: usize = context.get("step").unwrap_or(0);
        context.set("step", step + 1)?;
        Ok(TaskResult::new(None, NextAction::ContinueAndExecute))
    }
}

/// One branch.
struct Branch(String);

#[async_trait::async_trait]
impl Task for Branch {
    fn id(&self) -> &str {
        &self.0
    }

    async fn run(&self, _: Context) -> Result<TaskResult> {
        Ok(TaskResult::new(Some(self.0.clone()), NextAction::End))
    }
}

fn step(id: impl Into<String>, next: NextAction) -> Arc<dyn Task> {
    Arc::new(Step {
        id: id.into(),
        next,
    })
}

pub fn chain(next: NextAction) -> Result<Arc<Graph>> {
    let name = |at: usize| format!("n{at}");
    let mut builder = GraphBuilder::new("chain");
    for at in 0..NODES {
        let is_last = at + 1 == NODES;
        let next = if is_last {
            NextAction::End
        } else {
            next.clone()
        };
        builder = builder.add_task(step(name(at), next));
    }
    for at in 1..NODES {
        builder = builder.add_edge(name(at - 1), name(at));
    }
    Ok(Arc::new(builder.build()?))
}

pub fn looped(turns: usize) -> Result<Arc<Graph>> {
    let goes_on = move |context: &Context| context.get::<usize>("step").unwrap_or(0) < 2 * turns;
    let builder = GraphBuilder::new("loop")
        .add_task(step("planner", NextAction::Continue))
        .add_task(step("tool", NextAction::Continue))
        .add_task(step("finish", NextAction::End))
        .add_edge("planner", "tool")
        .add_conditional_edge("tool", goes_on, "planner", "finish");
    Ok(Arc::new(builder.build()?))
}

/// Its fan-out has a fixed list of children: there is no sending to as many as the state asks for.
pub fn fan_out(branches: usize) -> Result<Arc<Graph>> {
    let branch = |at: usize| Arc::new(Branch(format!("w{at}"))) as Arc<dyn Task>;
    let builder = GraphBuilder::new("fan")
        .add_task(FanOutTask::new("fan", (0..branches).map(branch).collect()))
        .add_task(step("join", NextAction::End))
        .add_edge("fan", "join");
    Ok(Arc::new(builder.build()?))
}

pub fn approval() -> Result<Arc<Graph>> {
    let builder = GraphBuilder::new("approval")
        .add_task(step("draft", NextAction::ContinueAndExecute))
        .add_task(Arc::new(Ask))
        .add_task(step("done", NextAction::End))
        .add_edge("draft", "ask")
        .add_edge("ask", "done");
    Ok(Arc::new(builder.build()?))
}
