//! The questions that a thread asked and the answers that it got, for `history`, `show` and `diff`.

use archie_agent::InterruptRequest;
use serde_json::{Value as Json, json};
use superstep::checkpoint::{AnswerBody, InterruptQuery, Page};
use superstep::run::OpenInterrupt;
use superstep::{InterruptId, Seq, ThreadId};

use crate::app::App;

/// A question, with its answer if there is one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ThreadQuestion {
    pub(super) id: InterruptId,
    /// What was asked, in short. It may have several lines.
    pub(super) text: String,
    /// Entry with which it was asked.
    pub(super) asked: Seq,
    /// Entry with which its answer took effect.
    pub(super) closed: Option<Seq>,
    pub(super) answer: Option<GivenAnswer>,
}

/// An answer and who gave it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GivenAnswer {
    /// Name of the person; `someone` if they did not say.
    pub(super) by: String,
    /// The answer in words.
    pub(super) text: String,
}

impl ThreadQuestion {
    fn new(open: &OpenInterrupt) -> anyhow::Result<Self> {
        let asked = InterruptRequest::of(&open.interrupt)?;
        let answer = match &open.row.answer {
            None => None,
            Some(AnswerBody::Value(value)) => Some(GivenAnswer {
                by: match open.row.answered_by.as_str() {
                    "" => "someone".to_owned(),
                    by => by.to_owned(),
                },
                text: answer_text(&asked, &value.decode()?),
            }),
            Some(AnswerBody::Expired) => Some(GivenAnswer {
                by: "the deadline".to_owned(),
                text: "no answer in time".to_owned(),
            }),
        };
        Ok(Self {
            id: asked.id,
            text: asked.summary(),
            asked: open.row.seq,
            closed: open.row.closed,
            answer,
        })
    }

    /// Returns the question and its answer for a program.
    pub(super) fn json(&self) -> Json {
        json!({
            "id": self.id.to_string(),
            "question": self.text,
            "answer": self.answer.as_ref().map(|answer| &answer.text),
            "by": self.answer.as_ref().map(|answer| &answer.by),
        })
    }
}

/// Loads all questions of a thread, oldest first.
pub(super) async fn load(app: &App, thread: &ThreadId) -> anyhow::Result<Vec<ThreadQuestion>> {
    let mut found = Vec::new();
    let mut query = InterruptQuery {
        thread: Some(thread.clone()),
        page: Page {
            limit: PAGE,
            offset: 0,
        },
        ..InterruptQuery::default()
    };
    loop {
        let page = app.runtime.interrupts(&query).await?;
        let is_last = page.len() < PAGE as usize;
        for open in &page {
            found.push(ThreadQuestion::new(open)?);
        }
        if is_last {
            break;
        }
        query.page.offset += PAGE;
    }
    found.sort_by_key(|question| question.asked);
    Ok(found)
}

/// Returns an answer in words: `accept`, `response: shorter`, `edit of subject, text`, or the text that was typed.
fn answer_text(asked: &InterruptRequest, answer: &Json) -> String {
    let Some(kind) = answer["type"].as_str() else {
        return match answer {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        };
    };
    let edited = asked.edit_differences(answer);
    if kind == "edit" && !edited.is_empty() {
        let paths: Vec<_> = edited.iter().map(|found| found.path.as_str()).collect();
        return format!("edit of {}", paths.join(", "));
    }
    let rest = ["args", "by", "text", "result"].map(|name| &answer[name]);
    match rest.into_iter().find(|rest| !rest.is_null()) {
        Some(Json::String(text)) => format!("{kind}: {text}"),
        Some(other) => format!("{kind}: {other}"),
        None => kind.to_owned(),
    }
}

/// Number of questions loaded at a time.
const PAGE: u32 = 1_000;

#[test]
fn answers_are_words() {
    let asked = InterruptRequest {
        id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
        node: "n".to_owned(),
        kind: "approval".to_owned(),
        request: json!({ "action_request": { "action": "send", "args": { "text": "a", "to": "b" } } }),
        schema: None,
    };
    let edit =
        json!({ "type": "edit", "args": { "action": "send", "args": { "text": "c", "to": "b" } } });
    for (answer, said) in [
        (json!("DONE"), "DONE"),
        (json!({ "type": "accept", "args": null }), "accept"),
        (
            json!({ "type": "response", "args": "shorter" }),
            "response: shorter",
        ),
        (json!({ "type": "raise", "by": 7 }), "raise: 7"),
        (edit, "edit of text"),
        (json!(3), "3"),
    ] {
        assert_eq!(answer_text(&asked, &answer), said);
    }
}
