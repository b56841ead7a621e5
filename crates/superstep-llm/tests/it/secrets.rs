use superstep_llm::{Model, ModelError};

use crate::kit::ask;
use crate::server_kit::{KEY, canned, refusal, remote};

#[tokio::test]
async fn a_key_is_sent_and_never_shown() {
    let body = format!(r#"{{"error": {{"message": "the key {KEY} is wrong"}}}}"#);
    let answers = vec![
        refusal("401 Unauthorized", "", &body),
        refusal("400 Bad Request", "", &body),
    ];
    let server = canned(answers);
    let model = remote("openai", "x", &server.url);
    assert!(!format!("{model:?}").contains(KEY));
    let error = model.reply(&ask("a", "hi")).await.unwrap_err();
    assert!(
        matches!(
            error,
            ModelError::Unauthorized {
                status: 401,
                key: "OPENAI_API_KEY",
                ..
            }
        ),
        "{error:?}"
    );
    let error = model.reply(&ask("a", "hi")).await.unwrap_err();
    assert!(error.to_string().contains("[secret]"), "{error}");
    assert!(!format!("{error} {error:?}").contains(KEY));
    let asked = server.asked.lock().unwrap();
    assert!(asked[0].contains(&format!("Bearer {KEY}")), "{}", asked[0]);
}
