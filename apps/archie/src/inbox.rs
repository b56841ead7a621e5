//! Open questions of every agent: found, and answered.

use anyhow::bail;
use serde_json::Value as Json;
use superstep::Outcome;
use superstep::checkpoint::{InterruptQuery, Page};
use superstep::run::OpenQuestion;

use crate::exit::Exit;
use crate::home::Home;
use crate::say::Say;
use crate::talk::{read_answer, too_late};

/// How many are looked through unless somebody says otherwise.
pub const LIMIT: u32 = 1000;

/// Questions of every agent, in the order of the numbers by which people name them.
pub async fn questions(
    home: &Home,
    open_only: bool,
    limit: u32,
) -> anyhow::Result<Vec<OpenQuestion>> {
    let query = InterruptQuery {
        open_only,
        page: Page { limit, offset: 0 },
        ..InterruptQuery::default()
    };
    Ok(home.runtime.questions(&query).await?)
}

/// The question of this number, id or thread. The beginning of an id is enough.
pub fn find<'a>(questions: &'a [OpenQuestion], wanted: &str) -> anyhow::Result<&'a OpenQuestion> {
    let number = wanted.parse::<usize>().ok();
    let by_number = number.and_then(|number| questions.get(number.checked_sub(1)?));
    if let Some(question) = by_number {
        return Ok(question);
    }
    let begins = |question: &&OpenQuestion| {
        let ids = [
            question.question.id.to_string(),
            question.row.thread.to_string(),
        ];
        ids.iter().any(|id| id.starts_with(wanted))
    };
    let mut found = questions.iter().filter(begins);
    match (found.next(), found.next()) {
        (Some(question), None) => Ok(question),
        (Some(_), Some(_)) => {
            bail!("`{wanted}` has several open questions; name one by its number in `archie inbox`")
        }
        (None, _) => bail!("there is no open question `{wanted}`; `archie inbox` lists them"),
    }
}

/// Answers a question as its agent reads the words, goes on with the thread, and says what came of it.
pub async fn answer(
    question: &OpenQuestion,
    words: &str,
    home: &Home,
    say: &dyn Say,
) -> anyhow::Result<Exit> {
    if words.trim().is_empty() {
        bail!("an empty answer was not taken; the question stays open");
    }
    let (thread, row) = home.find(&question.row.thread.to_string()).await?;
    let answer = read_answer(&**home.agent(&row.graph)?, question, words)?;
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
        Some(Outcome::Finished) if !shown.is_empty() => {
            "answered, and the thread is finished".to_owned()
        }
        Some(Outcome::Finished) => {
            format!("answered, and the thread is finished; `archie resume {id}` writes its result")
        }
        Some(Outcome::Paused(_)) => "answered, and there is a new question".to_owned(),
        Some(other) => format!("answered; the run ended with {other:?}"),
    });
    Ok(Exit::Done)
}
