//! `hitl`: a model whose tool calls a person reviews, as LangChain's `HumanInTheLoopMiddleware` asks it.
//!
//! Names of nodes have no `.` here, so the node of the middleware has a `-`. What a reviewer edited is an ordinary channel,
//! which the middleware hides from `values`.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::label::Labels;
use superstep::prelude::*;
use superstep_agent::{ChatMessage, unanswered_calls};
use superstep_llm::{Message, ToolCall};

use super::python_text::{dumps, repr};
use crate::graphs::chat::{
    ai, ai_calling, end_answer, is_tool_result, show_tool_end, show_tool_start, tool_call,
    tool_result,
};

#[derive(Clone, Debug, Default, State)]
struct Reviewed {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    /// The calls that run in place of the model's, by the id of the call.
    hitl_edited_tool_calls: Option<Json>,
}

/// A person's answer.
#[derive(Deserialize)]
struct Review {
    decisions: Vec<ReviewDecision>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ReviewDecision {
    Approve,
    Edit { edited_action: Json },
    Reject { message: Option<String> },
    Respond { message: String },
}

const REVIEW: &str = "HumanInTheLoopMiddleware-after_model";

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("hitl")
        .node("model", model)
        .node(REVIEW, review)
        .node("tools", tools)
        .edge(START, "model")
        .edge("model", REVIEW)
        .route(REVIEW, &["tools", "model", END], after_review)
        .edge("tools", "model")
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}

/// The model of the original does not stream, so this shows nothing of the message live: clients get each as a whole.
async fn model(state: View<Reviewed>, cx: NodeCx) -> Result<ReviewedUpdate, NodeError> {
    let answer = match state.messages.iter().any(is_tool_result) {
        true => ai("all done"),
        false => {
            let args = json!({ "to": "bob", "body": "hi", "copies": 2 });
            ai_calling(tool_call("tc-1", "send_mail", args))
        }
    };
    let message = cx.message_id(0);
    end_answer(&cx, &message)?;
    Ok(ReviewedUpdate::default().messages(answer.with_id(message)))
}

async fn review(state: View<Reviewed>, cx: NodeCx) -> Result<ReviewedUpdate, NodeError> {
    let calls = unanswered_calls(&state.messages);
    if calls.is_empty() {
        return Ok(ReviewedUpdate::default());
    }
    let review: Review = cx
        .interrupt(Interrupt::new("review", request(&calls)))
        .await?;
    let (decided, asked) = (review.decisions.len(), calls.len());
    if decided != asked {
        let why = format!(
            "Number of human decisions ({decided}) does not match number of hanging tool calls ({asked})."
        );
        return Err(NodeError::fatal(why).with_code("ValueError"));
    }
    let mut update = ReviewedUpdate::default();
    // The original writes the model's message again, with the calls that stay.
    if let Some(last) = state.messages.last() {
        update = update.messages(last.clone());
    }
    let mut edited = serde_json::Map::new();
    for (call, decision) in calls.into_iter().zip(review.decisions) {
        match decision {
            ReviewDecision::Approve => {}
            ReviewDecision::Edit { edited_action } => {
                edited.insert(call.id.clone(), edited_action);
            }
            ReviewDecision::Reject { message } => {
                let refused = Message::tool_error(call, rejection(call, message));
                let refused = ChatMessage::new(refused, Labels::NONE).with_id(result_id(call));
                update = update.messages(refused);
            }
            ReviewDecision::Respond { message } => {
                update = update.messages(tool_result(call, message).with_id(result_id(call)));
            }
        }
    }
    Ok(update.hitl_edited_tool_calls(Json::Object(edited)))
}

fn request(calls: &[&ToolCall]) -> Json {
    let describe = |call: &&ToolCall| {
        let (name, args) = (&call.name, &call.args);
        let shown = in_order(args, repr);
        json!({
            "name": name,
            "args": args,
            "description": format!("Tool execution requires approval\n\nTool: {name}\nArgs: {shown}"),
        })
    };
    let allow = |call: &&ToolCall| {
        json!({
            "action_name": call.name,
            "allowed_decisions": ["approve", "edit", "reject", "respond"],
        })
    };
    json!({
        "action_requests": calls.iter().map(describe).collect::<Vec<_>>(),
        "review_configs": calls.iter().map(allow).collect::<Vec<_>>(),
    })
}

fn rejection(call: &ToolCall, reason: Option<String>) -> String {
    let (name, id) = (&call.name, &call.id);
    match reason.filter(|reason| !reason.is_empty()) {
        Some(reason) => {
            format!("User rejected the tool call for `{name}` with reason: {reason}")
        }
        None => format!(
            "User rejected the tool call for `{name}` with id {id}. The tool was not executed. \
             Do not retry this tool call unless the user explicitly requests it."
        ),
    }
}

fn after_review(state: &Reviewed) -> &'static str {
    match state.messages.last() {
        _ if !unanswered_calls(&state.messages).is_empty() => "tools",
        // The person answered in place of the tool.
        Some(last) if is_tool_result(last) => "model",
        _ => END,
    }
}

async fn tools(state: View<Reviewed>, cx: NodeCx) -> Result<ReviewedUpdate, NodeError> {
    let mut update = ReviewedUpdate::default();
    for call in unanswered_calls(&state.messages) {
        let edits = state.hitl_edited_tool_calls.as_ref();
        let edited = edits.and_then(|edits| edits.get(&call.id));
        let args = edited.map_or(&call.args, |edited| &edited["args"]);
        let executed = tool_call(&call.id, &call.name, args.clone());
        show_tool_start(&cx, &executed)?;
        let sent = send_mail(args);
        show_tool_end(&cx, &executed, &sent)?;
        let output = match edited {
            Some(edited) => format!("{}\n{sent}", notice(edited)),
            None => sent,
        };
        update = update.messages(tool_result(call, output).with_id(result_id(call)));
    }
    Ok(update)
}

fn result_id(call: &ToolCall) -> String {
    format!("result-{}", call.id)
}

fn send_mail(args: &Json) -> String {
    let text = |name: &str| args[name].as_str().unwrap_or_default();
    let copies = args["copies"].as_i64().unwrap_or(1);
    format!("sent to {}: {} x{copies}", text("to"), text("body"))
}

/// Tells the model that another call ran than the one it made.
fn notice(edited: &Json) -> String {
    let name = edited["name"].as_str().unwrap_or_default();
    let args = in_order(&edited["args"], dumps);
    format!(
        "Note: a human reviewer replaced this tool call before it ran. The call recorded in your message is the one you \
         produced, not the one that executed. This was intentional and authorized. Do not re-issue your original call. \
         Executed instead: {name} with arguments {args}.\n\nTool response:"
    )
}

/// Prints arguments in the order of the tool's parameters, which a JSON object here does not keep.
fn in_order(args: &Json, print: fn(&Json) -> String) -> String {
    let field = |name: &str| {
        let value = args.get(name)?;
        Some(format!("{}: {}", print(&Json::from(name)), print(value)))
    };
    let fields: Vec<String> = ["to", "body", "copies"]
        .into_iter()
        .filter_map(field)
        .collect();
    format!("{{{}}}", fields.join(", "))
}

#[test]
fn a_question_describes_the_call_as_the_original_does() {
    let call = tool_call(
        "tc-1",
        "send_mail",
        json!({ "to": "bob", "body": "hi", "copies": 2 }),
    );
    let asked = request(&[&call]);
    assert_eq!(
        asked["action_requests"][0]["description"],
        "Tool execution requires approval\n\nTool: send_mail\nArgs: {'to': 'bob', 'body': 'hi', 'copies': 2}"
    );
    assert_eq!(send_mail(&call.args), "sent to bob: hi x2");
}
