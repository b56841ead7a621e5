use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use superstep_llm::{Chunk, Model, ModelError, Patience, Retrying};

use crate::kit::{ask, script};

fn retrying(replies: &str) -> Retrying {
    Retrying::new(Arc::new(script(replies)))
}

#[tokio::test(start_paused = true)]
async fn a_limited_model_is_asked_again_after_the_time_it_said() {
    let model = retrying(
        r#"{"at": "a", "error": {"status": 429, "retry_after_ms": 7000}}, {"at": "a", "text": "now"}"#,
    );
    let begun = tokio::time::Instant::now();
    assert_eq!(model.reply(&ask("a", "go")).await.unwrap().text(), "now");
    assert_eq!(begun.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_too_long_goes_to_the_next_model_at_once() {
    let first = script(r#"{"at": "a", "error": {"status": 429, "retry_after_ms": 86400000}}"#);
    let next = script(r#"{"at": "a", "text": "from the next"}"#);
    let model = Retrying::new(Arc::new(first)).then(Arc::new(next));
    let begun = tokio::time::Instant::now();
    let reply = model.reply(&ask("a", "go")).await.unwrap();
    assert_eq!(reply.text(), "from the next");
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn what_came_before_a_break_is_void_and_said_to_be() {
    let model = retrying(
        r#"{"at": "a", "text": "half of it", "cut_after": 5}, {"at": "a", "text": "whole"}"#,
    );
    let stream = model.stream(&ask("a", "go")).await.unwrap();
    let chunks: Vec<_> = stream.map(|chunk| chunk.unwrap()).collect().await;
    let kinds: Vec<_> = chunks
        .iter()
        .map(|chunk| match chunk {
            Chunk::Text(text) => text.as_str(),
            Chunk::Again { .. } => "(again)",
            Chunk::End(_) => "(end)",
            _ => "?",
        })
        .collect();
    assert_eq!(kinds, ["half ", "(again)", "whole", "(end)"]);
}

#[tokio::test(start_paused = true)]
async fn it_gives_up_after_so_many_tries_with_the_last_error() {
    let down = r#"{"at": "a", "error": {"status": 503, "why": "overloaded"}}"#;
    let model = retrying(&[down; 4].join(","));
    let error = model.reply(&ask("a", "go")).await.unwrap_err();
    assert!(matches!(error, ModelError::Unavailable { status: 503, .. }));
    // Not a fifth time: a fifth would have found no reply.
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_is_not_tried_again() {
    let model = retrying(
        r#"{"at": "a", "error": {"status": 400, "why": "no such model"}}, {"at": "a", "text": "never"}"#,
    );
    let error = model.reply(&ask("a", "go")).await.unwrap_err();
    assert!(matches!(error, ModelError::Refused { status: 400, .. }));
}

#[tokio::test(start_paused = true)]
async fn silence_is_a_failure() {
    let patience = Patience {
        silence_max: Duration::from_secs(5),
        ..Patience::default()
    };
    let model = retrying(r#"{"at": "a", "timeout": true}, {"at": "a", "text": "awake"}"#)
        .patience(patience);
    assert_eq!(model.reply(&ask("a", "go")).await.unwrap().text(), "awake");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_failed_before_its_first_word_is_said_to_be_repeated_before_the_wait() {
    let model = retrying(
        r#"{"at": "a", "error": {"status": 429, "retry_after_ms": 7000}}, {"at": "a", "text": "now"}"#,
    );
    let begun = tokio::time::Instant::now();
    let mut stream = model.stream(&ask("a", "go")).await.unwrap();
    let first = stream.next().await.unwrap().unwrap();
    assert!(
        matches!(first, Chunk::Again { ref why } if why.contains("rate limited")),
        "{first:?}"
    );
    assert_eq!(begun.elapsed().as_secs(), 0);
    assert_eq!(
        stream.next().await.unwrap().unwrap(),
        Chunk::Text("now".to_owned())
    );
    assert_eq!(begun.elapsed().as_secs(), 7);
}
