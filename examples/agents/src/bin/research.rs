//! Research that fans out: a plan of questions, an agent of its own for each of them, at the same time, and a report.
//!
//! Run it: `cargo run -p example-agents --bin research` (offline, by a script), or with a model:
//! `cargo run -p example-agents --features remote --bin research -- --model ollama:qwen3:8b "Why is dusk red?"`

use std::sync::Arc;

use example_agents::model_from_args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use superstep::prelude::*;
use superstep_agent::{Agent, AgentState, tool};
use superstep_llm::structured::ask;
use superstep_llm::{Message, Model, Request};

#[derive(Clone, Debug, Default, State)]
struct Research {
    topic: String,
    #[state(append)]
    findings: Vec<String>,
    report: String,
}

#[derive(Deserialize, JsonSchema)]
struct Plan {
    /// Two or three questions that can be answered apart from each other.
    questions: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Question(String);

#[derive(Deserialize, JsonSchema)]
struct Lookup {
    /// What to look up, one or two words.
    word: String,
}

const INVESTIGATE: SendTo<Question> = SendTo::new("investigate");

/// Asks for the questions, and sends each to an agent of its own.
struct Planner(Arc<dyn Model>);

impl Node<Research> for Planner {
    async fn run(&self, state: View<Research>, _: NodeCx) -> Result<Command<Research>, NodeError> {
        let prompt = format!("Split this into questions: {}", state.topic);
        let request = Request::new("plan", vec![Message::user(prompt)]);
        let only = || Plan {
            questions: vec![state.topic.clone()],
        };
        let plan = ask(&*self.0, request, only).await?.value;
        let nothing = Command::update(ResearchUpdate::default());
        Ok(plan
            .questions
            .into_iter()
            .fold(nothing, |command, question| {
                command.send(&INVESTIGATE, Question(question))
            }))
    }
}

/// Makes a report of what was found.
struct Writer(Arc<dyn Model>);

impl Node<Research> for Writer {
    async fn run(&self, state: View<Research>, _: NodeCx) -> Result<Command<Research>, NodeError> {
        let found = format!("{}\n\n{}", state.topic, state.findings.join("\n"));
        let prompt = format!("Answer in two sentences, from these findings only.\n{found}");
        let reply = self
            .0
            .reply(&Request::new("write", vec![Message::user(prompt)]))
            .await?;
        Ok(ResearchUpdate::default().report(reply.text()).into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (model, topic) = model_from_args("research.json", "Why is the sky blue, and dusk red?")?;
    let encyclopedia = tool(
        "look_up",
        "What an encyclopedia says of a word.",
        |lookup: Lookup, _| async move {
            Ok(match lookup.word.to_lowercase().as_str() {
                "rayleigh scattering" => "Short waves are scattered more than long ones.",
                "dusk" => "At dusk light goes a long way through the air.",
                _ => "There is no such article.",
            })
        },
    );
    let agent = Agent::builder(model.clone())
        .system("Answer the question in one sentence, from what you look up.")
        .tools([encyclopedia.read()])
        .step_limit(4)
        .build()?;
    let graph = Graph::builder("research")
        .node("plan", Planner(model.clone()))
        .subgraph_worker(
            &INVESTIGATE,
            agent,
            |question| AgentState::ask(question.0),
            |_, agent| ResearchUpdate::default().findings(agent.answer()),
        )
        .node("write", Writer(model))
        .edge(START, "plan")
        .commands("plan", &["investigate"])
        .edge("investigate", "write")
        .edge("write", END)
        .build()?;
    let thread = Runtime::new(Memory::default()).thread(&graph, "research")?;
    let stopped = thread.start(ResearchUpdate::default().topic(topic)).await?;
    for finding in &stopped.state.findings {
        println!("- {finding}");
    }
    println!("{:?}: {}", stopped.outcome, stopped.state.report);
    Ok(())
}
