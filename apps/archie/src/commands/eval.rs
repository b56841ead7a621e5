//! `archie eval`: scores an agent, with the model that is set, on the cases that come with it.

mod share;

use std::sync::Arc;
use std::time::Instant;

use archie_agent::{AgentDeps, Exit, Terminal, Waiting};
use serde_json::{Value as Json, json};
use superstep::store::MemoryStore;

use crate::app::App;
use crate::cli::args::{EvalAgent, EvalArgs};
use share::Share;

/// Scores of one agent.
#[derive(Debug)]
struct Report {
    agent: &'static str,
    /// Name of the model, or `none`.
    model: String,
    measures: Vec<(&'static str, Share)>,
    /// Things that must not happen at all.
    forbidden: (&'static str, usize),
    wrong: Vec<String>,
    seconds: u64,
}

impl Report {
    fn json(&self) -> Json {
        let measures = self.measures.iter().map(|(name, share)| {
            let (low, high) = share.interval();
            json!({ "name": name, "right": share.right, "of": share.of, "share": share.value(), "low": low, "high": high })
        });
        let (forbidden, count) = self.forbidden;
        json!({
            "agent": self.agent,
            "model": self.model,
            "measures": measures.collect::<Vec<_>>(),
            "forbidden": { "name": forbidden, "count": count },
            "wrong": self.wrong,
            "seconds": self.seconds,
        })
    }

    fn tell(&self, terminal: &dyn Terminal) {
        terminal.line(&format!(
            "{}, model {}, {} s",
            self.agent, self.model, self.seconds
        ));
        for (name, share) in &self.measures {
            terminal.line(&format!("  {name:<24} {share}"));
        }
        let (forbidden, count) = self.forbidden;
        terminal.line(&format!("  {forbidden:<24} {count}"));
        for wrong in &self.wrong {
            terminal.line(&format!("  wrong: {wrong}"));
        }
    }
}

pub(super) async fn run(
    args: &EvalArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    // Nothing that the person's agents have stored or learned takes part.
    let deps = AgentDeps {
        store: Arc::new(MemoryStore::default()),
        ..app.deps()
    };
    let begun = Instant::now();
    let mut progress = Progress::new(terminal);
    let mut report = match args.agent {
        EvalAgent::Atris => atris(args, &deps, &mut progress).await?,
        EvalAgent::Mail => mail(args, app, &deps, &mut progress).await?,
    };
    drop(progress);
    report.seconds = begun.elapsed().as_secs();
    match args.json {
        true => terminal.json(&report.json()),
        false => report.tell(terminal),
    }
    Ok(match report.forbidden.1 {
        0 => Exit::Done,
        _ => Exit::Failed,
    })
}

async fn atris(
    args: &EvalArgs,
    deps: &AgentDeps,
    progress: &mut Progress<'_>,
) -> anyhow::Result<Report> {
    use archie_atris::evaluation::{Half, evaluate, questions};
    let model = deps.model.clone();
    let llm = model.as_deref().unwrap_or(archie_atris::NO_MODEL);
    let questions = sample(questions()?, args.cases);
    let of = questions.len();
    let told = |done| progress.set(done, of);
    let options = archie_atris::Options::default();
    let scored = evaluate(deps, llm, &options, questions, told).await?;
    let right = |half| {
        let (right, of) = scored.score(half);
        Share { right, of }
    };
    let calls = scored.results.iter().filter(|result| result.right_call);
    let calls = Share {
        right: calls.count(),
        of: scored.results.len(),
    };
    let wrong = scored.results.iter().filter(|result| !result.right);
    Ok(Report {
        agent: "atris",
        model: model.unwrap_or_else(|| "none".to_owned()),
        measures: vec![
            ("right", right(None)),
            ("right, tuned half", right(Some(Half::Tuned))),
            ("right, held-out half", right(Some(Half::HeldOut))),
            ("right call", calls),
        ],
        forbidden: ("writes without approval", scored.writes_without_approval),
        wrong: wrong
            .map(|result| {
                format!(
                    "@{} {}: {} instead of {}",
                    result.api, result.question, result.became, result.expected
                )
            })
            .collect(),
        seconds: 0,
    })
}

async fn mail(
    args: &EvalArgs,
    app: &App,
    deps: &AgentDeps,
    progress: &mut Progress<'_>,
) -> anyhow::Result<Report> {
    use archie_email_assistant::evaluation::{HUNDRED, LabeledMail, evaluate};
    let name = app.settings.model()?;
    let model = app.models.get(name)?;
    let mails = sample(LabeledMail::set(HUNDRED)?, args.cases);
    let of = mails.len();
    let told = |done| progress.set(done, of);
    let scored = evaluate(&mails, ACCOUNT, deps, model.as_ref(), told).await?;
    let right = |is_counted: &dyn Fn(&LabeledMail) -> bool| {
        let counted = mails.iter().zip(&scored.mails);
        let counted: Vec<_> = counted.filter(|(mail, _)| is_counted(mail)).collect();
        Share {
            right: counted.iter().filter(|(_, mail)| mail.is_right()).count(),
            of: counted.len(),
        }
    };
    let by_rule = Share {
        right: scored.by_rule(),
        of,
    };
    Ok(Report {
        agent: "mail",
        model: name.to_owned(),
        measures: vec![
            ("right", right(&|_| true)),
            ("right, English", right(&|mail| mail.language == "en")),
            ("right, German", right(&|mail| mail.language == "de")),
            ("right, French", right(&|mail| mail.language == "fr")),
            ("decided by rules alone", by_rule),
        ],
        forbidden: ("replies to fraud", scored.unsafe_replies()),
        wrong: scored
            .wrong()
            .map(|mail| {
                format!(
                    "{} ({}): {:?} instead of {:?}: {}",
                    mail.id, mail.kind, mail.chosen, mail.label, mail.reasoning
                )
            })
            .collect(),
        seconds: 0,
    })
}

/// Takes this many cases from all over a set; all of them without a number.
fn sample<T>(cases: Vec<T>, count: Option<usize>) -> Vec<T> {
    let Some(count) = count else { return cases };
    let all = cases.len();
    let is_taken = |at: usize| at * count / all != (at + 1) * count / all;
    let numbered = cases.into_iter().enumerate();
    numbered
        .filter(|(at, _)| count >= all || is_taken(*at))
        .map(|(_, case)| case)
        .collect()
}

/// How far an evaluation is.
struct Progress<'a> {
    terminal: &'a dyn Terminal,
    waiting: Waiting,
    told: Instant,
}

impl<'a> Progress<'a> {
    fn new(terminal: &'a dyn Terminal) -> Self {
        Self {
            terminal,
            waiting: terminal.waiting("evaluating"),
            told: Instant::now(),
        }
    }

    fn set(&mut self, done: usize, of: usize) {
        let text = format!("evaluating: {done} of {of} cases");
        self.waiting.set_text(&text);
        if !self.terminal.is_watched() && self.told.elapsed().as_secs() >= 30 {
            self.terminal.aside(&text);
            self.told = Instant::now();
        }
    }
}

/// The account that the mails of the set were sent to.
const ACCOUNT: &str = "ada@parcelo.example";

#[test]
fn a_sample_comes_from_all_over_the_set() {
    let taken = |count| sample((0..10).collect(), count);
    assert_eq!(taken(Some(2)), [4, 9]);
    assert_eq!(taken(Some(99)).len(), 10);
    assert_eq!(taken(None).len(), 10);
    for count in 0..=10 {
        assert_eq!(taken(Some(count)).len(), count);
    }
}
