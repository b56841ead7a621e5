//! Every open question of every agent, in one place.

use anyhow::Context;
use serde_json::{Value as Json, json};
use superstep::checkpoint::AnswerBody;
use superstep::run::OpenQuestion;

use super::threads::{short, time};
use crate::cli::args::InboxArgs;
use crate::exit::Exit;
use crate::home::Home;
use crate::inbox;
use crate::questions::Asked;
use crate::say::Say;

pub(super) async fn run(args: &InboxArgs, home: &Home, say: &dyn Say) -> anyhow::Result<Exit> {
    let questions = inbox::questions(home, !args.all, args.limit).await?;
    if let Some(wanted) = &args.question {
        let question = inbox::find(&questions, wanted)?;
        let words = match args.answer.is_empty() {
            false => args.answer.join(" "),
            true => {
                say.line(&asked(question)?);
                say.ask("Your response: ")?
                    .context("nothing was answered; the question stays open")?
            }
        };
        return inbox::answer(question, &words, home, say).await;
    }
    if args.json {
        let shown = questions
            .iter()
            .map(question_json)
            .collect::<anyhow::Result<Vec<_>>>()?;
        say.json(&Json::Array(shown));
        return Ok(Exit::Done);
    }
    if questions.is_empty() {
        say.line("nobody waits for you");
    }
    for (number, question) in questions.iter().enumerate() {
        say.line(&format!(
            "{:>3}  {}  {}  {}",
            number + 1,
            question.row.thread,
            time(question.row.asked_at),
            asked(question)?
        ));
        if let Some(answer) = &question.row.answer {
            let by = match question.row.answered_by.as_str() {
                "" => "somebody",
                by => by,
            };
            let at = question.row.answered_at.map(time).unwrap_or_default();
            say.line(&format!("     {by} answered {at}: {}", said(answer)?));
        }
    }
    if !args.all && !questions.is_empty() {
        say.line("answer with `archie inbox NUMBER \"…\"`, or go on with `archie resume THREAD`");
    }
    Ok(Exit::Done)
}

fn asked(question: &OpenQuestion) -> anyhow::Result<String> {
    Ok(short(&json!(Asked::of(&question.question)?.words())))
}

fn said(answer: &AnswerBody) -> anyhow::Result<String> {
    Ok(match answer {
        AnswerBody::Value(value) => short(&value.decode::<Json>()?),
        AnswerBody::Expired => "(nothing, in time)".to_owned(),
    })
}

fn question_json(question: &OpenQuestion) -> anyhow::Result<Json> {
    let answer = match &question.row.answer {
        Some(AnswerBody::Value(value)) => value.decode::<Json>()?,
        Some(AnswerBody::Expired) => json!("expired"),
        None => Json::Null,
    };
    Ok(json!({
        "id": question.question.id.to_string(),
        "thread": question.row.thread.to_string(),
        "node": question.question.node.to_string(),
        "kind": question.question.kind,
        "request": question.question.request.decode::<Json>()?,
        "askedAt": question.row.asked_at.0,
        "deadline": question.question.deadline.map(|deadline| deadline.0),
        "answer": answer,
        "answeredBy": question.row.answered_by,
        "answeredAt": question.row.answered_at.map(|at| at.0),
    }))
}
