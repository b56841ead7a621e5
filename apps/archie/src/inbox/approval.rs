//! Decides which answers require that the item was displayed: a person approves exactly what they were shown.
//!
//! An answer that permits an effect is accepted if this person was shown the whole item and it has not changed, or if the
//! answer names the item exactly, by its full id or with its digest. Display records are in the long-term store, so that a
//! person can read an item in one process and answer it in another.

use archie_agent::clock::now;
use archie_agent::{Agent, Exit, InterruptRequest};
use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::store::{Namespace, PutItem, Ttl};
use superstep_agent::digest;

use super::{InboxItem, display};
use crate::app::App;
use crate::session::Session;

/// How a person named an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Naming {
    /// By a prefix of its id, or by its thread.
    ShortId,
    /// By its full id.
    FullId,
    /// With this digest of what they approve, or a prefix of it.
    Digest(String),
}

/// A command that was refused as typed. The message says what to type instead.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(String);

impl Refusal {
    pub(crate) fn new(why: String) -> Self {
        Self(why)
    }
}

/// Prints a refusal and returns its exit code; passes on any other error.
pub fn exit_of_refusal(done: anyhow::Result<Exit>) -> anyhow::Result<Exit> {
    match done {
        Err(error) if error.is::<Refusal>() => {
            crate::complain(&error);
            Ok(Exit::Refused)
        }
        done => done,
    }
}

/// Digest of the item as a person was shown it; empty if they were not.
#[derive(Debug, Default, Serialize, Deserialize)]
struct DisplayRecord {
    digest: String,
}

/// Records that the person of this process was shown a whole item.
pub async fn record_display(app: &App, asked: &InterruptRequest) -> anyhow::Result<()> {
    let put = PutItem {
        namespace: Namespace::new(DISPLAYED)?,
        key: key(app, asked),
        value: serde_json::to_value(DisplayRecord {
            digest: asked.digest(),
        })?,
        ttl: Some(Ttl {
            ms: REMEMBERED_MS,
            refresh_on_read: false,
        }),
    };
    app.memory.put(&put, now()).await?;
    Ok(())
}

fn key(app: &App, asked: &InterruptRequest) -> String {
    // A person's name may have any length, a key may not.
    let person = digest("person", &json!(app.settings.person));
    format!("{}:{}", asked.id, &person[..PERSON_CHARS])
}

/// Refuses an answer that permits an effect, unless the item was displayed in full or is named exactly. At a terminal, displays
/// the item now and asks the person to confirm.
pub async fn require(
    session: &Session<'_>,
    agent: &Agent,
    item: &InboxItem,
    naming: &Naming,
) -> anyhow::Result<()> {
    let (id, asked) = (&item.short_id, &item.asked);
    if !asked.is_consistent() {
        return Err(Refusal::new(format!(
            "`{id}` shows another call than the one its digest is of; answer it with `ignore`"
        ))
        .into());
    }
    let whole = asked.digest();
    if let Naming::Digest(given) = naming {
        return match is_digest_of(given, asked, &whole) {
            true => Ok(()),
            false => Err(Refusal::new(format!(
                "`{id}` does not have the digest `{given}`; `archie inbox {id}` shows what it asks now"
            ))
            .into()),
        };
    }
    let record: DisplayRecord = session
        .app
        .recall(DISPLAYED, &key(session.app, asked))
        .await?;
    if record.digest == whole {
        return Ok(());
    }
    if !record.digest.is_empty() {
        return Err(Refusal::new(format!(
            "`{id}` changed since it was displayed to you; `archie inbox {id}` shows what it asks now"
        ))
        .into());
    }
    if *naming == Naming::FullId {
        return Ok(());
    }
    if session.terminal.page_size().is_none() {
        return Err(unseen(item, &whole).into());
    }
    if !display::display(session, agent, asked).await? {
        return Err(unseen(item, &whole).into());
    }
    let sure = session.terminal.ask("Is that what you agree to? [y/N] ")?;
    match sure.is_some_and(|sure| matches!(sure.trim(), "y" | "yes")) {
        true => Ok(()),
        false => Err(Refusal::new(format!("`{id}` was not answered; it stays open")).into()),
    }
}

fn is_digest_of(given: &str, asked: &InterruptRequest, whole: &str) -> bool {
    let given = given.to_ascii_lowercase();
    let of_call = asked.call_digest().unwrap_or_default();
    given.len() >= SHORT_DIGEST_CHARS && (whole.starts_with(&given) || of_call.starts_with(&given))
}

fn unseen(item: &InboxItem, digest: &str) -> Refusal {
    let (short, id) = (&item.short_id, item.id());
    Refusal::new(format!(
        "`{short}` was not displayed to you in full, and this answer lets something happen.\n\
         Read it with `archie inbox {short}` and answer again, or name it exactly:\n  \
         archie inbox {id} …\n  archie inbox {short} … --digest {digest}"
    ))
}

/// Returns the prefix of a digest that is shown to people.
pub fn short_digest(digest: &str) -> &str {
    digest.get(..SHORT_DIGEST_CHARS).unwrap_or(digest)
}

/// Namespace of the display records in the long-term store.
const DISPLAYED: [&str; 2] = ["inbox", "displayed"];
/// How long a display record is kept: 30 days. After that the item must be displayed again.
const REMEMBERED_MS: u64 = 30 * 86_400_000;
const SHORT_DIGEST_CHARS: usize = 16;
const PERSON_CHARS: usize = 32;
