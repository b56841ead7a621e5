use std::sync::Arc;

use superstep_llm::{Cassette, Message, Model, ModelError, Recorder, Request, Secret};

use crate::kit::{ask, script};

#[tokio::test]
async fn what_was_recorded_is_played_back() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape.jsonl");
    let model = script(
        r#"{"at": "a", "text": "Hello, Ada.", "usage": {"input_tokens": 3, "output_tokens": 2}}"#,
    );
    let recorder = Recorder::new(Arc::new(model), &tape, Vec::new()).unwrap();
    let said = recorder.reply(&ask("a", "I am Ada")).await.unwrap();
    let cassette = Cassette::open(&tape).unwrap();
    assert!(cassette.finish().is_err());
    assert_eq!(cassette.reply(&ask("a", "I am Ada")).await.unwrap(), said);
    cassette.finish().unwrap();
}

#[tokio::test]
async fn another_request_is_refused_and_the_difference_named() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape.jsonl");
    let model = script(r#"{"at": "a", "text": "Hello."}"#);
    let recorder = Recorder::new(Arc::new(model), &tape, Vec::new()).unwrap();
    recorder.reply(&ask("a", "I am Ada")).await.unwrap();
    let cassette = Cassette::open(&tape).unwrap();
    let error = cassette.reply(&ask("a", "I am Bob")).await.unwrap_err();
    assert!(matches!(error, ModelError::Unexpected { .. }));
    assert!(error.to_string().contains("I am Bob"), "{error}");
}

#[tokio::test]
async fn another_temperature_or_stop_text_is_another_request() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape.jsonl");
    let model = script(r#"{"at": "a", "text": "Hello."}"#);
    let recorder = Recorder::new(Arc::new(model), &tape, Vec::new()).unwrap();
    let recorded = ask("a", "hi").temperature(0.5).stop("END");
    recorder.reply(&recorded).await.unwrap();
    let cassette = Cassette::open(&tape).unwrap();
    for other in [
        recorded.clone().temperature(0.7),
        recorded.clone().top_p(0.5),
        recorded.clone().stop("STOP"),
        recorded.clone().seed(1),
    ] {
        let error = cassette.reply(&other).await.unwrap_err();
        assert!(matches!(error, ModelError::Unexpected { .. }), "{error}");
    }
    cassette.reply(&recorded).await.unwrap();
}

#[tokio::test]
async fn secrets_do_not_get_onto_the_tape() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape.jsonl");
    let model =
        script(r#"{"at": "a", "text": "your key is sk-abcdefghijklmnopqrstuvwxyz and hunter2"}"#);
    let recorder = Recorder::new(Arc::new(model), &tape, vec![Secret::new("hunter2")]).unwrap();
    let request = Request::new(
        "a",
        vec![Message::user(
            "my password is hunter2, sk-abcdefghijklmnopqrstuvwxyz",
        )],
    );
    recorder.reply(&request).await.unwrap();
    let written = std::fs::read_to_string(&tape).unwrap();
    assert!(!written.contains("hunter2"), "{written}");
    assert!(!written.contains("sk-abc"), "{written}");
    assert!(written.contains("[secret]"));
}
