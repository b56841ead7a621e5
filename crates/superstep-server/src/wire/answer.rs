//! Answers to interrupts. Clients answer a question about an action in three forms: a list with one `HumanResponse`,
//! `{"decisions": […]}`, and the plain answer. All become what the node reads.
//!
//! A node that asks in the form of another framework reads the answer in that form: a list for a request in a list, decisions for
//! `action_requests`. Only the types of edited values are those of the question, because inboxes send texts.

use serde_json::{Value as Json, json};
use superstep::checkpoint::format::InterruptRecord;
use superstep::run::check_answer;

use crate::error::{ApiError, ApiResult};
use crate::json_depth;
use crate::wire::interrupt::ReviewedAction;

/// Reads an answer to an interrupt, and checks it against the interrupt's schema.
pub(crate) fn read_answer(record: &InterruptRecord, answer: &Json) -> ApiResult<Json> {
    let request: Json = record.request.decode()?;
    let answer = if let Some(reviewed) = ReviewedAction::of(&request) {
        decision(record, &request, &reviewed, answer)?
    } else if let Some(reviewed) = listed_action(&request) {
        listed_response(&reviewed, answer)
    } else if let Some(requests) = request["action_requests"].as_array() {
        decisions(requests, &request["review_configs"], answer)?
    } else {
        answer.clone()
    };
    check_answer(record, &answer).map_err(|why| {
        ApiError::invalid(format!(
            "The answer to interrupt `{}` does not fit its schema: {why}",
            record.id
        ))
    })?;
    Ok(answer)
}

fn decision(
    record: &InterruptRecord,
    request: &Json,
    reviewed: &ReviewedAction<'_>,
    answer: &Json,
) -> ApiResult<Json> {
    let only = unwrapped(answer)?;
    if let Json::String(text) = only {
        return Ok(response(record, request, &text.as_str().into()));
    }
    let kind = only.get("type").and_then(Json::as_str).unwrap_or_default();
    let given = only.get("args").unwrap_or(&Json::Null);
    Ok(match kind {
        // An inbox may send the action back with an acceptance, its values turned into text: what counts is the question.
        "accept" | "approve" => json!({ "type": "accept", "args": null }),
        "edit" => {
            let edited = only.get("edited_action").unwrap_or(given);
            json!({ "type": "edit", "args": edited_action(reviewed, edited) })
        }
        "response" | "respond" => {
            let said = [only.get("args"), only.get("message")];
            let said = said.into_iter().flatten().find(|said| !said.is_null());
            let nothing = Json::from("");
            match only.get("result") {
                // The node's own form.
                Some(_) => only.clone(),
                None => response(record, request, said.unwrap_or(&nothing)),
            }
        }
        "reject" => reject(record, request, reviewed, only.get("message")),
        "ignore" => json!({ "type": "ignore", "args": null }),
        _ => only.clone(),
    })
}

/// Returns the one decision in an answer.
fn unwrapped(answer: &Json) -> ApiResult<&Json> {
    let list = match answer {
        Json::Array(list) => list,
        Json::Object(fields) => match fields.get("decisions") {
            Some(Json::Array(list)) => list,
            _ => return Ok(answer),
        },
        _ => return Ok(answer),
    };
    match list.as_slice() {
        [only] => Ok(only),
        _ => Err(ApiError::invalid(format!(
            "The interrupt asks for one decision, and the answer has {}",
            list.len()
        ))),
    }
}

/// Returns the action of a request that is a list with one question about an action.
fn listed_action(request: &Json) -> Option<ReviewedAction<'_>> {
    match request.as_array()?.as_slice() {
        [only] => ReviewedAction::of(only),
        _ => None,
    }
}

/// Returns an answer to a question in a list, its values in the types of the question.
fn listed_response(reviewed: &ReviewedAction<'_>, answer: &Json) -> Json {
    let mut answer = answer.clone();
    if let Some([response]) = answer.as_array_mut().map(Vec::as_mut_slice)
        && let Some(args) = response.pointer_mut("/args/args")
    {
        *args = coerced(reviewed.args, args);
    }
    answer
}

/// Returns an answer to a request of LangChain's middleware: a decision about each action.
fn decisions(requests: &[Json], configs: &Json, answer: &Json) -> ApiResult<Json> {
    let mut decided = match answer {
        // Agent Inbox shows these requests, and answers them in its own form.
        Json::Array(responses) => {
            if responses.len() != requests.len() {
                return Err(ApiError::invalid(format!(
                    "The interrupt asks for {} decisions, and the answer has {}",
                    requests.len(),
                    responses.len()
                )));
            }
            let decisions = requests.iter().zip(responses);
            let decisions = decisions.map(|(request, response)| {
                middleware_decision(may_respond(&request["name"], configs), response)
            });
            json!({ "decisions": decisions.collect::<Vec<_>>() })
        }
        _ => answer.clone(),
    };
    let list = decided.get_mut("decisions").and_then(Json::as_array_mut);
    for (request, decision) in requests.iter().zip(list.into_iter().flatten()) {
        if let Some(args) = decision.pointer_mut("/edited_action/args") {
            *args = coerced(&request["args"], args);
        }
    }
    Ok(decided)
}

/// Whether the person may answer in the place of this tool.
fn may_respond(tool: &Json, configs: &Json) -> bool {
    let mut configs = configs.as_array().into_iter().flatten();
    let config = configs.find(|config| config["action_name"] == *tool);
    let allowed = config.and_then(|config| config["allowed_decisions"].as_array());
    allowed.is_some_and(|allowed| allowed.iter().any(|way| way == "respond"))
}

/// Returns a response of Agent Inbox as the middleware reads it.
fn middleware_decision(may_respond: bool, response: &Json) -> Json {
    let args = &response["args"];
    match response["type"].as_str().unwrap_or_default() {
        "accept" => json!({ "type": "approve" }),
        "edit" => json!({
            "type": "edit",
            "edited_action": { "name": args["action"], "args": args["args"] },
        }),
        "response" if may_respond => json!({ "type": "respond", "message": args }),
        "response" => json!({ "type": "reject", "message": args }),
        "ignore" => json!({ "type": "reject" }),
        _ => response.clone(),
    }
}

/// Returns a refusal. One with a reason becomes an answer in the tool's place, so that the model learns the reason.
fn reject(
    record: &InterruptRecord,
    request: &Json,
    reviewed: &ReviewedAction<'_>,
    why: Option<&Json>,
) -> Json {
    let why = why.filter(|why| why.as_str().is_some_and(|why| !why.trim().is_empty()));
    match why {
        Some(why) if reviewed.allows("respond") => response(record, request, why),
        None if !reviewed.allows("ignore") => {
            response(record, request, &"The person rejected the call.".into())
        }
        _ => json!({ "type": "ignore", "args": null }),
    }
}

fn response(record: &InterruptRecord, request: &Json, said: &Json) -> Json {
    match record.kind.as_str() {
        // The node reads what the person says as the result of the call.
        "outcome_unknown" => json!({ "type": "response", "result": said }),
        "elicitation" => json!({ "type": "response", "args": filled_form(&request["form"], said) }),
        _ => json!({ "type": "response", "args": said }),
    }
}

/// Returns the form that a person filled in with a text field: as JSON, or as the value of the only field.
fn filled_form(form: &Json, said: &Json) -> Json {
    let Json::String(text) = said else {
        return said.clone();
    };
    if let Some(read @ Json::Object(_)) = json_depth::read_inner(text) {
        return read;
    }
    let fields = form.get("properties").and_then(Json::as_object);
    let Some(fields) = fields.filter(|fields| fields.len() == 1) else {
        return said.clone();
    };
    let mut filled = json!({});
    for (name, schema) in fields {
        filled[name] = typed(schema["type"].as_str().unwrap_or("string"), text);
    }
    filled
}

/// Returns the edited action, its values in the types that the question has them in: inboxes send texts.
fn edited_action(reviewed: &ReviewedAction<'_>, edited: &Json) -> Json {
    let name = edited.get("action").or_else(|| edited.get("name"));
    match (name, edited.get("args")) {
        (Some(name), Some(args)) if args.is_object() => {
            json!({ "action": name, "args": coerced(reviewed.args, args) })
        }
        _ => json!({ "action": reviewed.action, "args": coerced(reviewed.args, edited) }),
    }
}

/// Converts texts back into the type that the same place of the original has. What cannot be converted stays a text, and is for the
/// tool's schema to refuse.
fn coerced(original: &Json, given: &Json) -> Json {
    match (original, given) {
        (Json::Object(original), Json::Object(given)) => {
            let field = |(name, value): (&String, &Json)| {
                let original = original.get(name).unwrap_or(&Json::Null);
                (name.clone(), coerced(original, value))
            };
            Json::Object(given.iter().map(field).collect())
        }
        (Json::Array(original), Json::Array(given)) => {
            let sample = original.first().unwrap_or(&Json::Null);
            given.iter().map(|item| coerced(sample, item)).collect()
        }
        (Json::Number(_), Json::String(text)) => typed("number", text),
        (Json::Bool(_), Json::String(text)) => typed("boolean", text),
        (Json::Array(_), Json::String(text)) => typed("array", text),
        (Json::Object(_), Json::String(text)) => typed("object", text),
        _ => given.clone(),
    }
}

fn typed(kind: &str, text: &str) -> Json {
    let read = json_depth::read_inner(text.trim());
    let is_typed = |value: &Json| match kind {
        "number" | "integer" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    read.filter(is_typed)
        .unwrap_or_else(|| match (kind, text.trim()) {
            // As Python writes them.
            ("boolean", "True") => true.into(),
            ("boolean", "False") => false.into(),
            _ => text.into(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::interrupt::samples;

    fn read(answer: Json) -> Json {
        read_answer(&samples::approval(), &answer).unwrap()
    }

    #[test]
    fn all_three_forms_accept() {
        let accepted = json!({ "type": "accept", "args": null });
        for answer in [
            json!([{ "type": "accept", "args": { "action": "refund", "args": { "cents": "900" } } }]),
            json!({ "decisions": [{ "type": "approve" }] }),
            json!({ "type": "accept" }),
        ] {
            assert_eq!(read(answer), accepted);
        }
    }

    #[test]
    fn edited_texts_get_the_types_of_the_question() {
        let edited = json!({
            "type": "edit",
            "args": { "action": "refund", "args": { "cents": 450, "urgent": false, "to": "42" } },
        });
        let args = json!({ "cents": "450", "urgent": "False", "to": "42" });
        for answer in [
            json!([{ "type": "edit", "args": { "action": "refund", "args": args } }]),
            json!({ "decisions": [{ "type": "edit", "edited_action": { "name": "refund", "args": args } }] }),
            json!({ "type": "edit", "args": args }),
        ] {
            assert_eq!(read(answer), edited);
        }
        let wrong = read(json!([{ "type": "edit", "args": { "cents": "many" } }]));
        assert_eq!(wrong["args"]["args"]["cents"], "many");
    }

    #[test]
    fn a_rejection_with_a_reason_is_a_response() {
        let ignored = json!({ "type": "ignore", "args": null });
        let said = json!({ "type": "response", "args": "too much" });
        assert_eq!(read(json!([{ "type": "ignore", "args": null }])), ignored);
        assert_eq!(
            read(json!({ "decisions": [{ "type": "reject" }] })),
            ignored
        );
        assert_eq!(
            read(json!({ "decisions": [{ "type": "reject", "message": "too much" }] })),
            said
        );
        assert_eq!(
            read(json!([{ "type": "response", "args": "too much" }])),
            said
        );
        assert_eq!(read(json!("too much")), said);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refuse = |answer: Json| read_answer(&samples::approval(), &answer).unwrap_err();
        assert!(
            refuse(json!({ "type": "expired" }))
                .detail
                .contains("schema")
        );
        let two = json!({ "decisions": [{ "type": "approve" }, { "type": "approve" }] });
        assert!(refuse(two).detail.contains("one decision"));
    }

    #[test]
    fn a_question_in_a_list_gets_a_list_with_the_types_of_the_question() {
        let request = json!([{
            "action_request": { "action": "refund", "args": { "cents": 900 } },
            "config": { "allow_accept": true, "allow_edit": true },
        }]);
        let question = samples::record("question", &request, None);
        let edit = |cents: Json| json!([{ "type": "edit", "args": { "action": "refund", "args": { "cents": cents } } }]);
        let read = |answer: Json| read_answer(&question, &answer).unwrap();
        assert_eq!(read(edit(json!("450"))), edit(json!(450)));
        for same in [
            json!([{ "type": "ignore", "args": null }]),
            json!({ "type": "ignore" }),
        ] {
            assert_eq!(read(same.clone()), same);
        }
    }

    #[test]
    fn a_request_of_the_middleware_gets_decisions() {
        let request = json!({
            "action_requests": [{ "name": "refund", "args": { "cents": 900 } }],
            "review_configs": [{ "action_name": "refund", "allowed_decisions": ["approve", "edit", "reject"] }],
        });
        let question = samples::record("question", &request, None);
        let read = |answer: Json| read_answer(&question, &answer);
        let edited = json!({ "decisions": [{
            "type": "edit", "edited_action": { "name": "refund", "args": { "cents": 450 } },
        }] });
        let texts = json!({ "cents": "450" });
        for (answer, decision) in [
            (
                json!([{ "type": "accept", "args": { "action": "refund", "args": {} } }]),
                json!({ "decisions": [{ "type": "approve" }] }),
            ),
            (
                json!([{ "type": "edit", "args": { "action": "refund", "args": texts } }]),
                edited.clone(),
            ),
            (
                json!({ "decisions": [{ "type": "edit", "edited_action": { "name": "refund", "args": texts } }] }),
                edited,
            ),
            (
                json!([{ "type": "response", "args": "too much" }]),
                json!({ "decisions": [{ "type": "reject", "message": "too much" }] }),
            ),
        ] {
            assert_eq!(read(answer).unwrap(), decision);
        }
        let two = json!([{ "type": "accept" }, { "type": "accept" }]);
        assert!(read(two).unwrap_err().detail.contains("1 decisions"));
        assert_eq!(read(json!("go")).unwrap(), "go");
    }

    #[test]
    fn answers_to_other_questions_pass_as_they_are() {
        let question = samples::record("question", &json!({ "text": "Which?" }), None);
        for answer in [json!([{ "type": "accept" }]), json!("blue"), json!(null)] {
            assert_eq!(read_answer(&question, &answer).unwrap(), answer);
        }
    }
}
