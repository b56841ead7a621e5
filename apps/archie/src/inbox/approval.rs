//! Which answers need that the item was displayed: what is approved is what was shown.
//!
//! An answer that lets something happen is taken if this person was shown the whole item and it is still the same, or if it names
//! the item exactly: by its whole id, or with its digest. What was displayed is kept in the long-term store, so that an item can
//! be read in one process and answered in another.

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
    /// By the beginning of its id, or by its thread.
    ShortId,
    /// By its whole id.
    FullId,
    /// With this digest of what they agree to.
    Digest(String),
}

/// A command that was not carried out as it was typed. It says what to type instead.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(String);

impl Refusal {
    pub(crate) fn new(why: String) -> Self {
        Self(why)
    }
}

/// Prints a refusal and returns the exit code for it; every other error is passed on.
pub fn exit_of_refusal(done: anyhow::Result<Exit>) -> anyhow::Result<Exit> {
    match done {
        Err(error) if error.is::<Refusal>() => {
            crate::complain(&error);
            Ok(Exit::Refused)
        }
        done => done,
    }
}

/// What a person was shown of an item.
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
    // A name may be of any length, and a key may not.
    let person = digest("person", &json!(app.settings.person));
    format!("{}:{}", asked.id, &person[..PERSON_CHARS])
}

/// Refuses an answer that lets something happen, unless the item was displayed in full or is named exactly. At a terminal the
/// item is displayed now, and the person is asked.
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

/// Returns as much of a digest as people read.
pub fn short_digest(digest: &str) -> &str {
    digest.get(..SHORT_DIGEST_CHARS).unwrap_or(digest)
}

/// Where display records are kept.
const DISPLAYED: [&str; 2] = ["inbox", "displayed"];
/// How long: 30 days. After that the item has to be displayed again.
const REMEMBERED_MS: u64 = 30 * 86_400_000;
const SHORT_DIGEST_CHARS: usize = 16;
const PERSON_CHARS: usize = 32;
