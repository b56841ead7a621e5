//! Tests of a node, of a graph with a scripted model, and of a graph that waits for a person.

use std::sync::Arc;

use example_migrate::{say, script};
use superstep::prelude::*;
use superstep::{Seq, TestCx};
use superstep_agent::ask_model;
use superstep_llm::{Message, Model, Request};

#[derive(Clone, Debug, Default, PartialEq, State)]
struct Mail {
    text: String,
    kind: String,
    outcome: String,
}

async fn classify(mail: View<Mail>, _: NodeCx) -> Result<MailUpdate, NodeError> {
    let is_refund = mail.text.contains("refund");
    Ok(MailUpdate::default().kind(if is_refund { "refund" } else { "question" }))
}

fn route(mail: &Mail) -> &'static str {
    if mail.kind == "refund" {
        "approve"
    } else {
        "answer"
    }
}

async fn approve(_: View<Mail>, cx: NodeCx) -> Result<MailUpdate, NodeError> {
    let is_approved: bool = cx.interrupt(Interrupt::new("approve", "Refund?")).await?;
    Ok(MailUpdate::default().outcome(if is_approved { "refunded" } else { "refused" }))
}

async fn answer(
    model: Arc<dyn Model>,
    mail: View<Mail>,
    cx: NodeCx,
) -> Result<MailUpdate, NodeError> {
    let request = Request::new("answer", vec![Message::user(&mail.text)]);
    Ok(MailUpdate::default().outcome(ask_model(&*model, &request, &cx).await?.text()))
}

fn thread(model: Arc<dyn Model>) -> Thread<Mail> {
    let graph = Graph::builder("mail")
        .node("classify", classify)
        .node("approve", approve)
        .node("answer", with(&model, answer))
        .edge(START, "classify")
        .route("classify", &["approve", "answer"], route)
        .edge("approve", END)
        .edge("answer", END)
        .build();
    Runtime::new(Memory::default())
        .thread(&graph.unwrap(), "test")
        .unwrap()
}

fn mail(text: &str) -> MailUpdate {
    MailUpdate::default().text(text)
}

#[tokio::test]
async fn a_node() {
    let mut state = Mail {
        text: "I want a refund".to_owned(),
        ..Mail::default()
    };
    state.apply(
        classify(View::of(state.clone()), TestCx::new().cx())
            .await
            .unwrap(),
    );
    assert_eq!((state.kind.as_str(), route(&state)), ("refund", "approve"));
}

#[tokio::test]
async fn a_graph_with_a_scripted_model() {
    let thread = thread(script("answer", [say("At nine.")]));
    let result = thread.start(mail("When do you open?")).await.unwrap();
    assert_eq!(result.state.outcome, "At nine.");
    let checkpoints = thread.checkpoints(Seq(0), 100).await.unwrap();
    assert_eq!(checkpoints[1].next, ["answer"]);
}

#[tokio::test]
async fn a_graph_that_waits_for_a_person() {
    let thread = thread(script("answer", []));
    let paused = thread.start(mail("A refund, please")).await.unwrap();
    assert_eq!(
        paused.interrupts()[0].request.decode::<String>().unwrap(),
        "Refund?"
    );
    let result = thread.resume_with(true).await.unwrap();
    assert_eq!(result.state.outcome, "refunded");
}
