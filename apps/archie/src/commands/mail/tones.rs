//! `archie mail tones`: writes a draft in several tones, from one checkpoint.
//!
//! Each tone is a fork of the thread at the interrupt that asks about the draft. A fork cannot send. The original thread sends
//! the text that the person picks, as an edit of its draft, and learns from it as from any other edit.

use anyhow::{Context, bail};
use archie_agent::{Exit, Terminal, UsageTotal, each_entry, state_of};
use archie_email_assistant::NAME;
use archie_email_assistant::email::thread_id;
use archie_email_assistant::state::{MailState, Redraft};
use archie_email_assistant::tools::{Reply, SEND_EMAIL};
use futures_util::future::try_join_all;
use serde_json::{Value as Json, json};
use superstep::AnyThread;
use superstep::checkpoint::Metadata;
use superstep::run::OpenInterrupt;
use superstep::{Outcome, Seq, ThreadId};
use superstep_agent::digest;

use super::TonesArgs;
use crate::app::App;
use crate::inbox::approval::exit_of_refusal;
use crate::inbox::display::display;
use crate::inbox::{self, Refusal};
use crate::session::Session;

/// Namespace of the digests of displayed wordings, by inbox item.
const SHOWN: [&str; 2] = [NAME, "tones_shown"];

/// A draft in one tone.
struct Draft {
    tone: String,
    /// Id of the fork that wrote it.
    thread: String,
    text: String,
    /// Usage of this command; zero if the fork already had a draft.
    spent: UsageTotal,
}

/// Runs `archie mail tones`: writes the draft in other tones, shows them, and sends the one that the person picks.
pub async fn handle_tones(
    args: &TonesArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    exit_of_refusal(tones(args, app, terminal).await)
}

async fn tones(args: &TonesArgs, app: &App, terminal: &dyn Terminal) -> anyhow::Result<Exit> {
    let (item, naming) = inbox::find(app, &args.item).await?;
    let question = &item.open;
    let now = proposed(question)
        .with_context(|| format!("`{}` does not ask about a draft of a mail", args.item))?;
    let (thread, row) = app.find(&question.row.thread.to_string()).await?;
    if args.pick.is_none() && !args.json {
        // Every wording goes to the recipients that the item names, so show the item in full.
        let session = Session {
            app,
            terminal,
            json: false,
        };
        display(&session, &**app.agent(&row.graph)?, &item.asked).await?;
    }
    let waiting = terminal.waiting("writing");
    let copies = args.tones.iter();
    let drafts = try_join_all(copies.map(|tone| drafted(app, &*thread, question, tone))).await?;
    drop(waiting);
    let spent = drafts.iter().map(|draft| &draft.spent);
    let spent = spent.fold(UsageTotal::default(), UsageTotal::plus);
    if spent.calls > 0 {
        terminal.aside(&format!("({})", spent.known()));
    }
    let wordings = digest("tones", &drafts_json(&now, &drafts));
    let shown_before: String = app.recall(SHOWN, &item.id()).await?;
    match args.json {
        true => terminal.json(&drafts_json(&now, &drafts)),
        false => show(&now, &drafts, terminal),
    }
    if args.pick.is_some() && shown_before != wordings {
        app.keep(SHOWN, &item.id(), &wordings).await?;
        return Err(Refusal::new(format!(
            "these wordings are new and were not displayed before; read them, and run the same command again, or `archie mail tones {}`",
            item.short_id
        ))
        .into());
    }
    if !args.json {
        app.keep(SHOWN, &item.id(), &wordings).await?;
    }
    let Some(text) = picked(args, &now, &drafts, terminal)? else {
        return Ok(Exit::Done);
    };
    let answer = match text == now {
        true => "accept".to_owned(),
        false => format!("edit {}", json!({ "response_text": text })),
    };
    let exit = inbox::answer(&item, &naming, &answer, app, terminal).await?;
    // The interrupt is answered, so the forks are no longer needed.
    for draft in &drafts {
        app.store().delete(&ThreadId::new(&draft.thread)?).await?;
    }
    Ok(exit)
}

/// Returns the text that an interrupt proposes to send; `None` if it is about something else.
fn proposed(question: &OpenInterrupt) -> Option<String> {
    let request: Json = question.interrupt.request.decode().ok()?;
    let call = request.get("action_request")?;
    let is_draft = call["action"] == SEND_EMAIL && question.interrupt.kind == "approval";
    let reply: Reply = serde_json::from_value(call["args"].clone()).ok()?;
    is_draft.then_some(reply.response_text)
}

/// Returns the draft in a tone. The fork's id is made of the interrupt and the tone, so that a repeated command pays nothing.
async fn drafted(
    app: &App,
    thread: &dyn AnyThread,
    question: &OpenInterrupt,
    tone: &str,
) -> anyhow::Result<Draft> {
    let id = thread_id("", &format!("{}:{tone}", question.interrupt.id), 0);
    let copy = app
        .agent(NAME)?
        .thread(&app.runtime, &id, Metadata::new())?;
    let its_own = ThreadId::new(&id)?;
    let is_there = app.store().glance(&its_own, None).await?.is_some();
    // A fork whose creator died before setting its tone is a plain copy: it could ask and send.
    if is_there && state_of::<MailState>(&*copy).await?.redraft.is_none() {
        app.store().delete(&its_own).await?;
    }
    if app.store().glance(&its_own, None).await?.is_none() {
        let wanted = json!({ "redraft": Redraft::RequestedCall(tone.to_owned()) });
        thread.copy_to(&id, None, Some(wanted)).await?;
    }
    let mut spent = UsageTotal::default();
    if last_draft(&*copy).await?.is_none() {
        let before = copy.state(None).await?.map_or(Seq(0), |state| state.seq);
        let rest = copy.recover_or_resume().await?;
        each_entry(&*copy, before, |past| {
            spent.add_entry(past);
            Ok(())
        })
        .await?;
        match rest.outcome {
            Outcome::Finished => {}
            Outcome::Paused(_) => {
                bail!("`{tone}` is over the budget; `archie inbox` has the question")
            }
            other => bail!("`{tone}` was not written ({other:?}); the same command tries again"),
        }
    }
    let Some(text) = last_draft(&*copy).await? else {
        app.store().delete(&its_own).await?;
        bail!("the model wrote no draft that is {tone}; the same command asks it again");
    };
    Ok(Draft {
        tone: tone.to_owned(),
        thread: id,
        text,
        spent,
    })
}

/// Returns the draft that a fork wrote after it received its tone; `None` before.
async fn last_draft(copy: &dyn AnyThread) -> anyhow::Result<Option<String>> {
    let state: MailState = state_of(copy).await?;
    if state.redraft != Some(Redraft::Told) {
        return Ok(None);
    }
    let last = state.messages.last();
    let mut calls = last.into_iter().flat_map(|last| last.message.tool_calls());
    let reply = calls
        .find(|call| call.name == SEND_EMAIL)
        .map(|call| serde_json::from_value::<Reply>(call.args.clone()))
        .transpose()?;
    let text = reply.map(|reply| reply.response_text);
    Ok(text.filter(|text| !text.trim().is_empty()))
}

fn show(now: &str, drafts: &[Draft], terminal: &dyn Terminal) {
    let all = std::iter::once(("as it is", now))
        .chain(drafts.iter().map(|draft| (&*draft.tone, &*draft.text)));
    for (number, (tone, text)) in all.enumerate() {
        terminal.line(&format!("{number}  {tone}"));
        text.lines()
            .for_each(|line| terminal.line(format!("   {line}").trim_end()));
    }
}

fn drafts_json(now: &str, drafts: &[Draft]) -> Json {
    let drafts: Vec<_> = drafts
        .iter()
        .map(|draft| json!({ "tone": draft.tone, "thread": draft.thread, "response_text": draft.text }))
        .collect();
    json!({ "response_text": now, "tones": drafts })
}

/// Returns the text to send; `None` if the person picked none.
fn picked(
    args: &TonesArgs,
    now: &str,
    drafts: &[Draft],
    terminal: &dyn Terminal,
) -> anyhow::Result<Option<String>> {
    let said = match (&args.pick, args.json) {
        (Some(pick), _) => pick.clone(),
        (None, true) => return Ok(None),
        (None, false) => {
            let last = drafts.len();
            let ask = format!("Send which one, 0 to {last}? Enter sends none: ");
            terminal.ask(&ask)?.unwrap_or_default()
        }
    };
    let said = said.trim();
    if said.is_empty() {
        terminal.aside("the question stays open; the drafts are kept");
        return Ok(None);
    }
    if let Some(draft) = drafts.iter().find(|draft| draft.tone == said) {
        return Ok(Some(draft.text.clone()));
    }
    match said.parse::<usize>() {
        Ok(0) => Ok(Some(now.to_owned())),
        Ok(number) if number <= drafts.len() => Ok(Some(drafts[number - 1].text.clone())),
        _ => bail!("there is no draft `{said}`; the question stays open"),
    }
}
