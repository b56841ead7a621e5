//! Map and reduce, with a join of unequal paths.

use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Jokes {
    topic: String,
    audience: String,
    subjects: Vec<String>,
    #[state(append)]
    jokes: Vec<String>,
    best: String,
}

const WRITE_JOKE: SendTo<String> = SendTo::new("write_joke");

async fn list_subjects(state: View<Jokes>, _: NodeCx) -> Result<JokesUpdate, NodeError> {
    let kinds = ["lazy", "hungry", "angry"].iter();
    let subjects: Vec<_> = kinds
        .map(|kind| format!("{kind}-{}", state.topic))
        .collect();
    Ok(JokesUpdate::default().subjects(subjects))
}

async fn look_up_audience(_: View<Jokes>, _: NodeCx) -> Result<JokesUpdate, NodeError> {
    Ok(JokesUpdate::default().audience("children"))
}

async fn write_joke(subject: String, _: NodeCx) -> Result<JokesUpdate, NodeError> {
    Ok(JokesUpdate::default().jokes(format!("A joke about {subject}")))
}

async fn pick_best(state: View<Jokes>, _: NodeCx) -> Result<JokesUpdate, NodeError> {
    let longest = state
        .jokes
        .iter()
        .max_by_key(|joke| joke.len())
        .ok_or("no jokes")?;
    Ok(JokesUpdate::default().best(format!("{longest}, for {}", state.audience)))
}

fn fan_out(state: &Jokes) -> Vec<Goto<Jokes>> {
    state
        .subjects
        .iter()
        .map(|subject| Goto::send(&WRITE_JOKE, subject.clone()))
        .collect()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = Graph::builder("jokes")
        .node("list_subjects", list_subjects)
        .node("look_up_audience", look_up_audience)
        .map_node(&WRITE_JOKE, write_joke)
        .node("pick_best", pick_best)
        .edge(START, "list_subjects")
        .edge(START, "look_up_audience")
        .route("list_subjects", &["write_joke"], fan_out)
        // The two paths have one and two steps; pick_best waits for both.
        .join(&["write_joke", "look_up_audience"], "pick_best")
        .edge("pick_best", END)
        .build()?;
    let thread = Runtime::new(Memory::default()).thread(&graph, "jokes")?;
    let result = thread.start(JokesUpdate::default().topic("cats")).await?;
    println!("{:?}\n{}", result.state.jokes, result.state.best);
    Ok(())
}
