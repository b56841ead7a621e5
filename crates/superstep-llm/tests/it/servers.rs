//! How the words of servers become our errors.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use superstep_llm::{Chunk, Finish, Model, ModelError};

use crate::kit::ask;
use crate::server_kit::{canned, events, refusal, remote};

async fn refused(answer: String) -> ModelError {
    let server = canned(vec![answer]);
    let model = remote("openai", "x", &server.url);
    model.reply(&ask("a", "hi")).await.unwrap_err()
}

#[tokio::test]
async fn a_limit_says_how_long_to_wait() {
    let error = refused(refusal(
        "429 Too Many Requests",
        "retry-after: 12\r\n",
        "{}",
    ))
    .await;
    assert_eq!(error.retry_after(), Some(Duration::from_secs(12)));
    let error = refused(refusal(
        "429 Too Many Requests",
        "retry-after-ms: 250\r\n",
        "{}",
    ))
    .await;
    assert_eq!(error.retry_after(), Some(Duration::from_millis(250)));
    assert!(matches!(error, ModelError::RateLimited { .. }));
}

#[tokio::test]
async fn what_may_pass_is_told_from_what_will_not() {
    let error = refused(refusal(
        "503 Service Unavailable",
        "",
        r#"{"error": {"message": "loading"}}"#,
    ))
    .await;
    assert!(error.is_retryable(), "{error:?}");
    assert!(error.to_string().contains("loading"), "{error}");
    let error = refused(refusal(
        "404 Not Found",
        "",
        r#"{"error": {"message": "no such model"}}"#,
    ))
    .await;
    assert!(!error.is_retryable(), "{error:?}");
    let long = r#"{"error": {"message": "the request exceeds the available context size"}}"#;
    let error = refused(refusal("400 Bad Request", "", long)).await;
    assert!(matches!(error, ModelError::TooLong { .. }), "{error:?}");
}

#[tokio::test]
async fn every_setting_of_a_request_reaches_the_server() {
    let server = canned(vec![events(&[
        r#"{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ])]);
    let request = ask("a", "hi")
        .tokens_max(16)
        .temperature(0.25)
        .top_p(0.5)
        .stop("END")
        .seed(7);
    let model = remote("openai", "x", &server.url);
    model.reply(&request).await.unwrap();
    let asked = server.asked.lock().unwrap();
    let (_, body) = asked[0].split_once("\r\n\r\n").unwrap();
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    for (name, value) in [
        ("temperature", json!(0.25)),
        ("top_p", json!(0.5)),
        ("stop", json!(["END"])),
        ("seed", json!(7)),
        ("max_tokens", json!(16)),
    ] {
        assert_eq!(body[name], value, "{name} of {body}");
    }
}

#[tokio::test]
async fn nobody_there_is_said_so() {
    let model = remote("openai", "x", "http://127.0.0.1:9/v1");
    let error = model.reply(&ask("a", "hi")).await.unwrap_err();
    assert!(matches!(error, ModelError::Unreachable { .. }), "{error:?}");
    assert!(error.is_retryable());
}

#[tokio::test]
async fn a_call_that_comes_in_pieces_is_put_together() {
    let server = canned(vec![events(&[
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"add","arguments":""}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9}}"#,
        "[DONE]",
    ])]);
    let model = remote("openai", "x", &server.url);
    let chunks: Vec<_> = model
        .stream(&ask("a", "1+1"))
        .await
        .unwrap()
        .collect()
        .await;
    let fragments: Vec<_> = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Ok(Chunk::ToolCall {
                index,
                id,
                name,
                args,
            }) => Some((*index, id.as_str(), name.as_str(), args.as_str())),
            _ => None,
        })
        .collect();
    let fragment = |args| (0, "c1", "add", args);
    assert_eq!(
        fragments,
        [fragment(""), fragment(r#"{"a":"#), fragment("1}")]
    );
    let Some(Ok(Chunk::End(reply))) = chunks.last() else {
        panic!("the end is missing: {chunks:?}");
    };
    assert_eq!(reply.finish, Finish::ToolCalls);
    let call = &reply.answer.tool_calls[0];
    assert_eq!(
        (call.id.as_str(), call.name.as_str(), &call.args["a"]),
        ("c1", "add", &1.into())
    );
    assert_eq!(reply.usage.unwrap().input_tokens, 5);
}

#[tokio::test]
async fn gemini_and_ollama_are_spoken_to_in_their_own_forms() {
    let gemini = events(&[
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Hello"}]},"index":0}]}"#,
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":" you"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"totalTokenCount":7}}"#,
    ]);
    let lines = [
        "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\n\r",
        r#"{"model":"x","message":{"role":"assistant","content":"Hello"},"done":false}"#,
        r#"{"model":"x","message":{"role":"assistant","content":" you"},"done":true,"done_reason":"stop","prompt_eval_count":5,"eval_count":2}"#,
        "",
    ];
    for (provider, answer, path) in [
        ("gemini", gemini, "/models/x:streamGenerateContent"),
        ("ollama", lines.join("\n"), "/api/chat"),
    ] {
        let server = canned(vec![answer]);
        let model = remote(provider, "x", &server.url);
        let reply = model.reply(&ask("a", "hi")).await.unwrap();
        assert_eq!(reply.text(), "Hello you", "{provider}");
        assert_eq!(reply.finish, Finish::Stop, "{provider}");
        let usage = reply.usage.unwrap();
        assert_eq!(
            (usage.input_tokens, usage.output_tokens),
            (5, 2),
            "{provider}"
        );
        let asked = server.asked.lock().unwrap();
        assert!(asked[0].lines().next().unwrap().contains(path), "{asked:?}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_an_error() {
    let server = canned(vec![events(&[
        r#"{"choices":[{"index":0,"delta":{"content":"half"}}]}"#,
    ])]);
    let model = remote("openai", "x", &server.url);
    let chunks: Vec<_> = model.stream(&ask("a", "hi")).await.unwrap().collect().await;
    assert_eq!(chunks[0], Ok(Chunk::Text("half".to_owned())));
    assert!(chunks.last().unwrap().is_err(), "{chunks:?}");
}

#[tokio::test]
async fn a_server_is_asked_how_many_requests_it_processes_at_once() {
    let props = refusal("200 OK", "", r#"{"total_slots": 2}"#);
    let server = canned(vec![props]);
    let model = remote("openai", "x", &server.url);
    assert_eq!(model.slots().await, Some(2));
    let asked = server.asked.lock().unwrap();
    assert!(asked[0].starts_with("GET /props "), "{asked:?}");
}

#[tokio::test]
async fn a_server_that_does_not_tell_its_slots_is_no_error() {
    let server = canned(vec![refusal("404 Not Found", "", "{}")]);
    let model = remote("openai", "x", &server.url);
    assert_eq!(model.slots().await, None);
}
