//! The people who are asked: they answer late, in part, twice, and against each other.

use superstep_core::checkpoint::format::{Body, InterruptRecord};
use superstep_core::checkpoint::{Answer, AnswerBody};
use superstep_core::error::CheckpointError;
use superstep_core::{InterruptId, Value};

use super::check::Check;
use super::entropy::hash;
use super::lab::Inner;

/// A question that nobody has answered.
struct Open {
    id: InterruptId,
    asked: String,
}

/// How many questions wait for an answer.
pub(super) fn open_count(lab: &Inner) -> usize {
    open(lab).len()
}

fn open(lab: &Inner) -> Vec<Open> {
    let rows = lab.kept.questions(&lab.thread);
    rows.iter()
        .filter(|row| row.is_open())
        .filter_map(|row| {
            let question = InterruptRecord::unseal(&row.body, &row.thread, row.seq).ok()?;
            let asked: String = question.request.decode().ok()?;
            Some(Open { id: row.id, asked })
        })
        .collect()
}

/// People answer: all questions when it is calm, else some of them, some more than once.
pub(super) fn answer_some(lab: &mut Inner) {
    let questions = open(lab);
    if questions.is_empty() {
        return;
    }
    if lab.calm {
        for question in &questions {
            let right = lab
                .winners
                .get(&question.asked)
                .copied()
                .unwrap_or_else(|| (hash(question.asked.as_bytes()) % 1000) as i64);
            answer(lab, question, right);
        }
        return;
    }
    if lab.entropy.chance(200) {
        return answer_together(lab, &questions);
    }
    let count = lab.entropy.within(1, questions.len());
    let first = lab.entropy.below(questions.len());
    for n in 0..count {
        race(lab, &questions[(first + n) % questions.len()]);
    }
}

/// Somebody answers while the thread is running.
pub(super) fn answer_one(lab: &mut Inner) {
    let questions = open(lab);
    if questions.is_empty() {
        return;
    }
    let at = lab.entropy.below(questions.len());
    lab.counts.early_answers += 1;
    race(lab, &questions[at]);
}

/// One question, and sometimes several answers that contradict each other.
fn race(lab: &mut Inner, question: &Open) {
    let racers = if lab.entropy.chance(lab.weather.race) {
        lab.counts.races += 1;
        lab.entropy.within(2, 4)
    } else {
        1
    };
    let first = lab.entropy.below(1000) as i64;
    for n in 0..racers as i64 {
        answer(lab, question, first + n * 1000);
    }
}

/// All questions in one call: all answers are taken, or none.
fn answer_together(lab: &mut Inner, questions: &[Open]) {
    let value = lab.entropy.below(1000) as i64;
    give(lab, questions, value);
}

fn answer(lab: &mut Inner, question: &Open, value: i64) {
    give(lab, std::slice::from_ref(question), value);
}

/// One call, made again until somebody says what became of it.
fn give(lab: &mut Inner, questions: &[Open], value: i64) {
    let answers: Vec<Answer> = questions
        .iter()
        .map(|question| made(lab, question, value))
        .collect();
    let mut is_stored = false;
    loop {
        let (reply, counts) = lab.answer(&answers);
        if counts && !is_stored {
            is_stored = true;
            for question in questions {
                win(lab, question, value);
            }
        }
        match reply {
            Err(error) if error.is_transient() => {}
            Err(CheckpointError::NotOpen { .. }) if is_stored => {
                let what = format!("`{}` is answered, and that was refused", questions[0].asked);
                return lab.fail(Check::AnswerOnce, what);
            }
            Ok(()) | Err(CheckpointError::NotOpen { .. }) => return,
            Err(error) => return lab.fail(Check::Unexpected, error.to_string()),
        }
    }
}

fn made(lab: &Inner, question: &Open, value: i64) -> Answer {
    Answer {
        interrupt: question.id,
        body: AnswerBody::Value(Value::from_json_bytes(value.to_string().as_bytes())),
        by: "somebody".to_owned(),
        at: lab.now,
    }
}

fn win(lab: &mut Inner, question: &Open, value: i64) {
    lab.counts.answers += 1;
    lab.counts.checks += 1;
    let wins = lab.won.entry(question.id).or_default();
    *wins += 1;
    if *wins > 1 {
        let what = format!("`{}` was answered {wins} times", question.asked);
        return lab.fail(Check::AnswerOnce, what);
    }
    lab.winners.insert(question.asked.clone(), value);
}
