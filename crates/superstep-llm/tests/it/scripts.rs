use std::time::Duration;

use futures_util::StreamExt;
use superstep_llm::{Chunk, Cost, Finish, Model, ModelError, Script};

use crate::kit::{ask, script};

#[tokio::test]
async fn replies_come_in_the_order_of_their_label() {
    let model = script(
        r#"{"at": "plan", "text": "one"}, {"at": "act", "text": "two"}, {"at": "plan", "text": "three"}"#,
    );
    let mut said = Vec::new();
    for label in ["plan", "plan", "act"] {
        said.push(model.reply(&ask(label, "go")).await.unwrap().text());
    }
    assert_eq!(said, ["one", "three", "two"]);
    model.finish().unwrap();
    assert_eq!(model.prompts().len(), 3);
}

#[tokio::test]
async fn an_unexpected_request_and_an_unused_reply_are_errors() {
    let model = script(r#"{"at": "plan", "expect": "rows", "text": "one"}"#);
    let error = model.reply(&ask("plan", "columns")).await.unwrap_err();
    assert!(
        matches!(&error, ModelError::Unexpected { label, .. } if label == "plan"),
        "{error}"
    );
    let error = model.reply(&ask("other", "rows")).await.unwrap_err();
    assert!(
        error.to_string().contains("no reply for `other`"),
        "{error}"
    );
    let unused = model.finish().unwrap_err().to_string();
    assert!(unused.contains("reply 0 was never requested"), "{unused}");
}

#[tokio::test]
async fn calls_side_by_side_find_theirs_by_what_they_say() {
    let model = script(
        r#"{"at": "grade", "expect": "part 1", "text": "A"}, {"at": "grade", "expect": "part 2", "text": "B"}"#,
    );
    let (first, second) = (
        ask("grade", "this is part 2"),
        ask("grade", "this is part 1"),
    );
    let (second, first) = tokio::join!(model.reply(&first), model.reply(&second));
    assert_eq!(first.unwrap().text(), "A");
    assert_eq!(second.unwrap().text(), "B");
}

#[tokio::test]
async fn a_reply_has_calls_and_usage_and_is_streamed_word_by_word() {
    let model = script(
        r#"{"at": "act", "text": "I will count.", "tool_calls": [{"name": "count", "args": {"of": "rows"}}],
            "usage": {"input_tokens": 7, "output_tokens": 3}}"#,
    );
    let chunks: Vec<_> = model
        .stream(&ask("act", "go"))
        .await
        .unwrap()
        .collect()
        .await;
    let words: Vec<_> = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Ok(Chunk::Text(text)) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(words, ["I ", "will ", "count."]);
    let calls: Vec<_> = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Ok(Chunk::ToolCall {
                index, name, args, ..
            }) => Some((*index, name.as_str(), args.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(calls, [(0, "count", r#"{"of":"rows"}"#)]);
    let Some(Ok(Chunk::End(reply))) = chunks.last() else {
        panic!("the end is missing");
    };
    assert_eq!(reply.finish, Finish::ToolCalls);
    assert_eq!(reply.answer.tool_calls[0].args["of"], "rows");
    assert_eq!(reply.usage.unwrap().total_tokens(), 10);
}

#[tokio::test(start_paused = true)]
async fn failures_can_be_scripted() {
    let model = script(
        r#"{"at": "a", "error": {"status": 429, "retry_after_ms": 50}}, {"at": "a", "text": "half of it", "cut_after": 4},
           {"at": "a", "timeout": true}, {"at": "a", "delay_ms": 1000, "text": "late"}"#,
    );
    let request = ask("a", "go");
    let limited = model.reply(&request).await.unwrap_err();
    assert_eq!(limited.retry_after(), Some(Duration::from_millis(50)));
    assert_eq!(model.reply(&request).await.unwrap_err(), ModelError::Cut);
    let silent = tokio::time::timeout(Duration::from_secs(3600), model.reply(&request)).await;
    assert!(silent.is_err());
    let begun = tokio::time::Instant::now();
    assert_eq!(model.reply(&request).await.unwrap().text(), "late");
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn with_a_ledger_a_program_goes_on_where_it_died() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let replies = r#"{"at": "a", "error": {"status": 500}}, {"at": "a", "text": "one"}, {"at": "a", "text": "two"}"#;
    let open = || script(replies).with_ledger(&ledger).unwrap();
    let before = open();
    assert!(before.reply(&ask("a", "first")).await.is_err());
    assert_eq!(
        before.reply(&ask("a", "first")).await.unwrap().text(),
        "one"
    );
    drop(before);
    let after = open();
    assert_eq!(after.reply(&ask("a", "first")).await.unwrap().text(), "one");
    assert_eq!(
        after.reply(&ask("a", "second")).await.unwrap().text(),
        "two"
    );
    after.finish().unwrap();
    assert_eq!(after.prompts().len(), 4);
}

#[test]
fn what_is_no_script_says_where() {
    let error = Script::parse("x", r#"{"replies": [{"at": "a", "txt": "typo"}]}"#).unwrap_err();
    assert!(error.to_string().contains("unknown field `txt`"), "{error}");
    let error = Script::open("/nowhere/x.json").unwrap_err();
    assert!(matches!(error, ModelError::BadFile { .. }));
}

#[tokio::test]
async fn a_recording_of_another_model_reports_that_model_and_its_cost() {
    let model = script(
        r#"{"at": "a", "text": "one", "model": "openai:small", "cost": {"nano_dollars": 7}, "reasoning": "why"},
           {"at": "a", "text": "two", "cost": "unknown"}"#,
    );
    let one = model.reply(&ask("a", "x")).await.unwrap();
    assert_eq!(one.model.to_string(), "openai:small");
    assert_eq!(one.cost, Cost::NanoDollars(7));
    assert_eq!(one.answer.reasoning.as_deref(), Some("why"));
    let two = model.reply(&ask("a", "x")).await.unwrap();
    assert_eq!(two.model, *model.name());
    assert_eq!(two.cost, Cost::Unknown);
}

#[tokio::test]
async fn a_repeating_script_gives_the_same_request_the_same_reply() {
    let replies = r#"{"at": "a", "text": "one"}, {"at": "a", "text": "two"}"#;
    let model = script(replies).repeating();
    for (asked, said) in [("x", "one"), ("y", "two"), ("x", "one"), ("y", "two")] {
        assert_eq!(model.reply(&ask("a", asked)).await.unwrap().text(), said);
    }
    model.finish().unwrap();
    let plain = script(replies);
    for said in ["one", "two"] {
        assert_eq!(plain.reply(&ask("a", "x")).await.unwrap().text(), said);
    }
}
