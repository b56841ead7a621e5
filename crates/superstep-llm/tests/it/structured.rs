use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep_llm::structured::{ask as ask_for, output_schema};

use crate::kit::{ask, script};

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Triage {
    /// What to do with it.
    class: Class,
    reason: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Class {
    /// Nobody needs it.
    Ignore,
    Notify,
    Respond,
}

fn otherwise() -> Triage {
    Triage {
        class: Class::Notify,
        reason: "nobody could tell".to_owned(),
    }
}

#[test]
fn a_schema_is_flat_and_closed() {
    let schema = output_schema::<Triage>().unwrap().schema;
    assert_eq!(
        schema,
        json!({
            "type": "object",
            "properties": {
                "class": {"type": "string", "enum": ["notify", "respond", "ignore"], "description": "What to do with it."},
                "reason": {"type": "string"}
            },
            "required": ["class", "reason"],
            "additionalProperties": false
        })
    );
}

#[test]
fn a_form_with_a_choice_of_shapes_is_refused() {
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is wanted")]
    struct Open {
        what: Shape,
    }
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is wanted")]
    enum Shape {
        Round { radius: f64 },
        Square { side: f64 },
    }
    let error = output_schema::<Open>().unwrap_err().to_string();
    assert!(error.contains("`what` has `oneOf`"), "{error}");
}

#[tokio::test]
async fn a_good_answer_is_decoded() {
    let model =
        script(r#"{"at": "triage", "json": {"class": "ignore", "reason": "an advertisement"}}"#);
    let found = ask_for(&model, ask("triage", "50% off"), otherwise)
        .await
        .unwrap();
    assert_eq!(found.value.class, Class::Ignore);
    assert_eq!(found.degraded, None);
    assert!(model.prompts()[0].output.is_some());
}

#[tokio::test]
async fn a_bad_answer_is_repaired_once() {
    let model = script(
        r#"{"at": "triage", "text": "I would ignore it."},
           {"at": "triage", "expect": "does not fit", "text": "```json\n{\"class\": \"ignore\", \"reason\": \"spam\"}\n```"}"#,
    );
    let found = ask_for(&model, ask("triage", "50% off"), otherwise)
        .await
        .unwrap();
    assert_eq!(found.value.class, Class::Ignore);
    assert_eq!(found.replies.len(), 2);
    assert_eq!(found.degraded, None);
}

#[tokio::test]
async fn an_answer_that_cannot_be_repaired_is_marked() {
    let model = script(
        r#"{"at": "triage", "json": {"class": "delete"}}, {"at": "triage", "text": "{\"class\": ", "finish": "length"}"#,
    );
    let found = ask_for(&model, ask("triage", "50% off"), otherwise)
        .await
        .unwrap();
    assert_eq!(found.value, otherwise());
    let why = found.degraded.unwrap();
    assert!(why.contains("cut off"), "{why}");
    model.finish().unwrap();
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema counts")]
enum Act {
    Respond(String),
    Plan(Vec<String>),
}

#[tokio::test]
async fn a_type_with_alternatives_is_named_and_no_model_is_blamed() {
    let model = script("");
    let asked = ask_for(&model, ask("act", "act"), || Act::Plan(Vec::new())).await;
    let error = asked.unwrap_err();
    assert_eq!(error.code(), "model-unsupported-schema");
    let text = error.to_string();
    assert!(
        text.contains("`Act`") && !text.contains("status") && !text.contains("refused"),
        "{text}"
    );
}
