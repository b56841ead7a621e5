//! Scores the triage of `mail`.

use archie_agent::AgentDeps;
use archie_email_assistant::evaluation::{
    HUNDRED, LabeledMail, PHISHING, evaluate, evaluate_plain,
};

use super::progress::Progress;
use super::report::Scores;
use super::sample;
use super::share::Share;
use crate::app::App;
use crate::cli::args::EvalArgs;

pub(super) async fn evaluate_mail(
    args: &EvalArgs,
    app: &App,
    deps: &AgentDeps,
    progress: &mut Progress<'_>,
) -> anyhow::Result<Scores> {
    let model = app.models.get(app.settings.model()?)?;
    let mails = sample(LabeledMail::set(HUNDRED)?, args.cases);
    let of = mails.len();
    let on_done = |done| progress.set(done, of);
    let scored = match args.plain {
        true => evaluate_plain(&mails, ACCOUNT, model.as_ref(), on_done).await?,
        false => evaluate(&mails, ACCOUNT, deps, model.as_ref(), on_done).await?,
    };
    let right = |is_counted: &dyn Fn(&LabeledMail) -> bool| {
        let counted = mails.iter().zip(&scored.mails);
        let counted: Vec<_> = counted.filter(|(mail, _)| is_counted(mail)).collect();
        Share {
            right: counted.iter().filter(|(_, mail)| mail.is_right()).count(),
            of: counted.len(),
        }
    };
    let last = match args.plain {
        // A plain prompt cannot send a reply, so answering fraud is a mistake and not a danger.
        true => {
            let fraud = mails.iter().filter(|mail| mail.kind == PHISHING).count();
            let right = fraud - scored.unsafe_replies();
            ("fraud not answered", Share { right, of: fraud })
        }
        false => {
            let right = scored.by_rule();
            ("decided by rules alone", Share { right, of })
        }
    };
    Ok(Scores {
        measures: vec![
            ("right", right(&|_| true)),
            ("right, English", right(&|mail| mail.language == "en")),
            ("right, German", right(&|mail| mail.language == "de")),
            ("right, French", right(&|mail| mail.language == "fr")),
            last,
        ],
        forbidden: (!args.plain).then(|| ("replies to fraud", scored.unsafe_replies())),
        wrong: scored
            .wrong()
            .map(|mail| {
                let chosen = mail.chosen.map_or("nothing", |chosen| chosen.word());
                format!(
                    "{} ({}): {chosen} instead of {}: {}",
                    mail.id,
                    mail.kind,
                    mail.label.word(),
                    mail.reasoning
                )
            })
            .collect(),
    })
}

/// The account that the mails of the set were sent to.
const ACCOUNT: &str = "ada@parcelo.example";
