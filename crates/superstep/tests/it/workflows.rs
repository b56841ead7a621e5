//! A durable function: steps once, interrupts that wait, a new argument per run.

use superstep::prelude::*;

use crate::kit::{Count, memory};

fn essay(calls: &Count) -> Graph<superstep::WorkflowState<String, String>> {
    let calls = calls.clone();
    workflow("essay", move |topic: String, cx: NodeCx| {
        let calls = calls.clone();
        async move {
            let draft = cx
                .step("write", || async {
                    Ok(format!("{topic}, draft {}", calls.up()))
                })
                .await?;
            let better: Option<String> = cx.interrupt(Interrupt::new("correct", &draft)).await?;
            Ok(better.unwrap_or(draft))
        }
    })
    .unwrap()
}

#[tokio::test]
async fn a_step_of_a_workflow_runs_once_and_its_question_waits_for_another_process() {
    let (store, calls) = (Memory::default(), Count::default());
    let thread = Runtime::new(store.clone())
        .thread(&essay(&calls), "t")
        .unwrap();
    let paused = thread.start("cats".to_owned().into()).await.unwrap();
    let Outcome::Paused(questions) = &paused.outcome else {
        panic!("{paused:?}")
    };
    let elsewhere = Runtime::new(store).thread(&essay(&calls), "t").unwrap();
    assert_eq!(questions[0].request.to_string(), r#""cats, draft 1""#);
    let done = elsewhere.resume_with(None::<String>).await.unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
    assert_eq!(done.state.output.as_deref(), Some("cats, draft 1"));
    assert_eq!(calls.get(), 1);
}

#[tokio::test]
async fn a_new_argument_is_a_new_run_without_the_old_return_value() {
    let calls = Count::default();
    let thread = memory().thread(&essay(&calls), "t").unwrap();
    for topic in ["cats", "dogs"] {
        let paused = thread.start(topic.to_owned().into()).await.unwrap();
        assert_eq!(paused.state.output, None);
        let Outcome::Paused(questions) = &paused.outcome else {
            panic!("{paused:?}")
        };
        let better = Some(format!("All about {topic}"));
        let done = thread
            .answer(questions[0].id, better.clone())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(done.state.output, better);
    }
    assert_eq!(calls.get(), 2);
}

#[tokio::test]
async fn a_workflow_without_an_argument_fails_with_what_to_do() {
    let thread = memory().thread(&essay(&Count::default()), "t").unwrap();
    let failed = thread
        .start(superstep::WorkflowUpdate::default())
        .await
        .unwrap();
    let Outcome::Failed(failures) = failed.outcome else {
        panic!("{failed:?}")
    };
    assert!(failures[0].message.contains("start it with its argument"));
}

#[tokio::test]
async fn a_workflow_that_takes_and_returns_nothing_has_returned() {
    let nothing = workflow("nothing", |(): (), cx: NodeCx| async move {
        cx.interrupt::<bool>(Interrupt::new("go", "on?")).await?;
        Ok::<Option<u8>, NodeError>(None)
    })
    .unwrap();
    let store = Memory::default();
    let thread = Runtime::new(store.clone()).thread(&nothing, "t").unwrap();
    thread.start(().into()).await.unwrap();
    let elsewhere = Runtime::new(store).thread(&nothing, "t").unwrap();
    let done = elsewhere.answer_only(true).await.unwrap().unwrap();
    assert_eq!(done.state.output, Some(None));
    let stored = elsewhere.result().await.unwrap().unwrap();
    assert_eq!(stored.state.output, Some(None));
    let json = serde_json::to_value(&done.state).unwrap();
    let read: superstep::WorkflowState<(), Option<u8>> = serde_json::from_value(json).unwrap();
    assert_eq!(read, done.state);
}
