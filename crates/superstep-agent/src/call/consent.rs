//! Approval of a call: whether it is needed, and what the answer allows.

use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use superstep_core::label::{Label, Labels, Verdict};
use superstep_core::{Interrupt, NodeError, schema};

use crate::approval::{Approval, When};
use crate::call::{Asking, Decision, RequestedCall, ToolCallResult};
use crate::digest::digest;

/// Outcome of the approval.
pub(super) enum Consent {
    /// Call the tool, with exactly these arguments.
    Given { args: Json, decision: Decision },
    /// Do not call the tool; use this result instead.
    Withheld(ToolCallResult, Decision),
}

/// Answer to an approval interrupt, in the form that inboxes send.
#[derive(Debug, Deserialize)]
struct Answered {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(default)]
    args: Json,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Accept,
    Edit,
    Response,
    Ignore,
    /// Sent by the interrupt's deadline: no answer arrived in time.
    Expired,
}

/// Whether a person must be asked, and why.
enum Need {
    No,
    Yes {
        why: Option<String>,
    },
    /// The label policy refuses the call; no person can approve it.
    Never {
        why: String,
    },
}

/// Asks a person if needed, until there is an answer that can be acted on.
pub(super) async fn of(
    wanted: &RequestedCall<'_>,
    args: Json,
    asking: &Asking<'_>,
) -> Result<Consent, NodeError> {
    let why = match need(wanted, &args, asking).await? {
        Need::No => {
            let decision = Decision::Unasked;
            return Ok(Consent::Given { args, decision });
        }
        Need::Never { why } => {
            return Ok(Consent::Withheld(
                ToolCallResult::error(why),
                Decision::Refused,
            ));
        }
        Need::Yes { why } => why,
    };
    let approval = wanted.tool.approval.clone().unwrap_or_default();
    let mut problem = None;
    let mut asked = 0_u32;
    loop {
        let question = question(wanted, &approval, &args, asked, &why, problem.as_deref());
        let answer: Answered = asking.ask(question).await?;
        asked += 1;
        match answer.kind {
            Kind::Accept => {
                let decision = Decision::Accepted;
                return Ok(Consent::Given { args, decision });
            }
            Kind::Edit => match edited(wanted, answer.args) {
                Ok(args) => {
                    let decision = Decision::Edited;
                    return Ok(Consent::Given { args, decision });
                }
                Err(wrong) => problem = Some(wrong),
            },
            Kind::Response => {
                let said = ToolCallResult::said(words(&answer.args));
                return Ok(Consent::Withheld(said, Decision::Answered));
            }
            Kind::Ignore => {
                let why = format!(
                    "`{}` was not called: a person said no. Do not call it again for this.",
                    wanted.tool.name()
                );
                return Ok(Consent::Withheld(
                    ToolCallResult::error(why),
                    Decision::Ignored,
                ));
            }
            Kind::Expired => {
                let why = format!(
                    "`{}` was not called: it was not approved before its deadline.",
                    wanted.tool.name()
                );
                return Ok(Consent::Withheld(
                    ToolCallResult::error(why),
                    Decision::Expired,
                ));
            }
        }
    }
}

async fn need(
    wanted: &RequestedCall<'_>,
    args: &Json,
    asking: &Asking<'_>,
) -> Result<Need, NodeError> {
    let verdict = match wanted.tool.takes_everything {
        true => Verdict::Accepted,
        false => wanted.tool.policy().check(wanted.labels),
    };
    let by_labels = match verdict {
        Verdict::Accepted => None,
        Verdict::NeedsApproval(labels) => Some(reason_to_ask(&labels)),
        Verdict::Refused(labels) => {
            let why = format!(
                "`{}` was not called: it must not be given data labeled {labels}, and no approval overrides this.",
                wanted.tool.name()
            );
            return Ok(Need::Never { why });
        }
    };
    let by_rule = match wanted.tool.approval.as_ref().map(Approval::need) {
        None | Some(When::ByLabels) => false,
        Some(When::Always) => true,
        // Recorded: a predicate that changes its result after the answer must not let the call pass without reading the
        // answer.
        Some(When::If(needs)) => {
            let said = needs(args, wanted.labels);
            let name = format!("{}:asks", wanted.id);
            asking.cx.step(name, || async move { Ok(said) }).await?
        }
    };
    Ok(match (by_labels, by_rule) {
        (None, false) => Need::No,
        (why, _) => Need::Yes { why },
    })
}

/// Says to a person why they are asked about a call that was made from labeled data.
fn reason_to_ask(labels: &Labels) -> String {
    let read = labels.iter().map(|label| match label {
        label if *label == Label::PRIVATE => "your private data".to_owned(),
        label if *label == Label::UNTRUSTED => "text from outside".to_owned(),
        label => format!("data marked `{label}`"),
    });
    let mut why = format!(
        "You are asked because the agent had read {} when it wrote this call.",
        read.collect::<Vec<_>>().join(" and ")
    );
    if labels.iter().any(|label| *label == Label::UNTRUSTED) {
        why.push_str(" Such text may try to make it do something that you do not want.");
    }
    if labels.iter().any(|label| *label == Label::PRIVATE) {
        why.push_str(" Check that nothing private leaves with it.");
    }
    why
}

fn question(
    wanted: &RequestedCall<'_>,
    approval: &Approval,
    args: &Json,
    asked: u32,
    why: &Option<String>,
    problem: Option<&str>,
) -> Interrupt {
    let digest = digest(wanted.tool.name(), args);
    // The digest is in the key, so an answer can never apply to another call than the one it was given for.
    let key = format!("approve:{}:{digest}:{asked}", wanted.id);
    let described = approval.description(args);
    let described = described.unwrap_or_else(|| format!("May `{}` be called?", wanted.tool.name()));
    let said: Vec<_> = [Some(described.as_str()), why.as_deref(), problem]
        .into_iter()
        .flatten()
        .collect();
    let mut request = json!({
        "action_request": wanted.action_request(args),
        "config": approval.config(),
        "description": said.join("\n\n"),
        "tool_call_id": wanted.id,
        "labels": wanted.labels,
        "digest": digest,
    });
    let optional = optional_args(&wanted.tool.spec.schema, args);
    if approval.allows_edit() && !optional.is_empty() {
        request["optional_args"] = Json::Object(optional);
    }
    let question = Interrupt::new(key, request)
        .kind("approval")
        .schema(approval.schema());
    match approval.within {
        Some(limit) => question
            .within(limit)
            .or_answer(json!({ "type": "expired" })),
        None => question,
    }
}

/// Returns the schemas of the arguments that the tool takes and the call does not have.
fn optional_args(schema: &Json, args: &Json) -> Map<String, Json> {
    let all = schema["properties"].as_object().into_iter().flatten();
    let missing = all.filter(|(name, _)| args.get(name.as_str()).is_none());
    missing
        .map(|(name, schema)| (name.clone(), schema.clone()))
        .collect()
}

/// Returns the edited arguments, if they fit the tool's schema.
///
/// Inboxes send the whole action back, other clients only its arguments.
fn edited(wanted: &RequestedCall<'_>, given: Json) -> Result<Json, String> {
    let is_action = given.as_object().is_some_and(|fields| {
        fields.len() == 2 && fields.contains_key("action") && fields.contains_key("args")
    });
    let args = match is_action && given["args"].is_object() {
        true if given["action"] != wanted.tool.name() => {
            return Err(
                "The last answer was not taken: an edit cannot change which tool is called."
                    .to_owned(),
            );
        }
        true => given["args"].clone(),
        false => given,
    };
    match schema::check(&wanted.tool.spec.schema, &args, "the call") {
        Ok(()) => Ok(args),
        Err(why) => Err(format!("The last answer was not taken: {why}.")),
    }
}

fn words(args: &Json) -> String {
    match args {
        Json::String(text) => text.clone(),
        Json::Null => String::new(),
        other => other.to_string(),
    }
}
