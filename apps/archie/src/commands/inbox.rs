//! Every open question of every agent, in one place.

use anyhow::{Context, bail};
use serde_json::{Value as Json, json};
use superstep::checkpoint::{AnswerBody, InterruptQuery, Page};
use superstep::run::OpenQuestion;

use super::threads::{short, time};
use crate::cli::args::InboxArgs;
use crate::exit::Exit;
use crate::home::Home;
use crate::questions::Asked;
use crate::say::Say;
use crate::talk::{read_answer, too_late};

pub(super) async fn run(args: &InboxArgs, home: &Home, say: &dyn Say) -> anyhow::Result<Exit> {
    let query = InterruptQuery {
        open_only: !args.all,
        page: Page {
            limit: args.limit,
            offset: 0,
        },
        ..InterruptQuery::default()
    };
    let questions = home.runtime.questions(&query).await?;
    if let Some(wanted) = &args.question {
        let given = (!args.answer.is_empty()).then(|| args.answer.join(" "));
        return answer(wanted, given.as_deref(), &questions, home, say).await;
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

async fn answer(
    wanted: &str,
    given: Option<&str>,
    questions: &[OpenQuestion],
    home: &Home,
    say: &dyn Say,
) -> anyhow::Result<Exit> {
    let by_number = wanted
        .parse::<usize>()
        .ok()
        .and_then(|number| questions.get(number.checked_sub(1)?));
    let by_id = || {
        questions
            .iter()
            .find(|question| question.question.id.to_string().starts_with(wanted))
    };
    let question = by_number.or_else(by_id);
    let question = question.with_context(|| {
        format!("there is no open question `{wanted}`; `archie inbox` lists them")
    })?;
    let text = match given {
        Some(text) => text.to_owned(),
        None => {
            say.line(&asked(question)?);
            say.ask("Your response: ")?
                .context("nothing was answered; the question stays open")?
        }
    };
    if text.trim().is_empty() {
        bail!("an empty answer was not taken; the question stays open");
    }
    let (thread, row) = home.find(&question.row.thread.to_string()).await?;
    let answer = read_answer(&**home.agent(&row.graph)?, question, &text)?;
    let waiting = say.waiting("going on");
    let by = home.settings.person.clone();
    let given = vec![(question.question.id, answer)];
    let rest = match thread.answer(by, given).await {
        Ok(rest) => rest,
        Err(error) => return Err(too_late(home, &*thread, question.question.id, error).await),
    };
    drop(waiting);
    let id = thread.id();
    let state = thread.state(None).await?;
    let values: Json = state.map_or(Ok(Json::Null), |state| state.values.decode())?;
    let shown = home.agent(&row.graph)?.manner().answered(&values);
    shown.iter().for_each(|line| say.line(line));
    say.line(&match rest.map(|rest| rest.outcome) {
        None => "answered; whoever runs the thread goes on with it".to_owned(),
        Some(superstep::Outcome::Finished) if !shown.is_empty() => {
            "answered, and the thread is finished".to_owned()
        }
        Some(superstep::Outcome::Finished) => {
            format!("answered, and the thread is finished; `archie resume {id}` writes its result")
        }
        Some(superstep::Outcome::Paused(_)) => "answered, and there is a new question".to_owned(),
        Some(other) => format!("answered; the run ended with {other:?}"),
    });
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
