//! A mailbox whose every act may be the last of its process.

use std::sync::{Arc, Weak};

use archie::app::App;
use archie_email_assistant::calendar::{Calendar, Event, NotMade};
use archie_email_assistant::email::Email;
use archie_email_assistant::mailbox::{MailQuery, Mailbox, NotSent, Outgoing, Sent, SentStatus};
use serde_json::Value as Json;
use superstep::checkpoint::BoxFuture;
use superstep_conformance::mortal::{Fate, Mortal};

use super::kit::{MODEL, World};
use crate::deaths;

/// A mailbox with two points around everything that changes something.
struct Deadly {
    mailbox: Arc<dyn Mailbox>,
    /// The mailbox outlives its process.
    fate: Weak<Fate>,
}

impl Deadly {
    async fn around<T>(&self, act: impl Future<Output = T>) -> T {
        self.point().await;
        let done = act.await;
        self.point().await;
        done
    }

    async fn point(&self) {
        match self.fate.upgrade() {
            Some(fate) => fate.point().await,
            None => std::future::pending().await,
        }
    }
}

impl Calendar for Deadly {
    fn on<'a>(&'a self, days: &'a [String]) -> BoxFuture<'a, anyhow::Result<Vec<Event>>> {
        self.mailbox.calendar().on(days)
    }

    fn create<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Result<(), NotMade>> {
        Box::pin(self.around(self.mailbox.calendar().create(event)))
    }

    fn find<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, anyhow::Result<bool>> {
        self.mailbox.calendar().find(event)
    }
}

impl Mailbox for Deadly {
    fn account(&self) -> &str {
        self.mailbox.account()
    }

    fn list<'a>(&'a self, which: &'a MailQuery) -> BoxFuture<'a, anyhow::Result<Vec<Email>>> {
        self.mailbox.list(which)
    }

    fn answered<'a>(
        &'a self,
        mails: &'a [Email],
    ) -> BoxFuture<'a, anyhow::Result<std::collections::BTreeSet<String>>> {
        self.mailbox.answered(mails)
    }

    fn raw<'a>(&'a self, id: &'a str) -> BoxFuture<'a, anyhow::Result<Vec<u8>>> {
        self.mailbox.raw(id)
    }

    fn mark_as_read<'a>(&'a self, id: &'a str) -> BoxFuture<'a, anyhow::Result<()>> {
        Box::pin(self.around(self.mailbox.mark_as_read(id)))
    }

    fn prepare<'a>(&'a self, mail: &'a Outgoing) -> BoxFuture<'a, anyhow::Result<Option<String>>> {
        Box::pin(self.around(self.mailbox.prepare(mail)))
    }

    fn send<'a>(
        &'a self,
        mail: &'a Outgoing,
        prepared: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Sent, NotSent>> {
        Box::pin(self.around(self.mailbox.send(mail, prepared)))
    }

    fn look<'a>(
        &'a self,
        mail: &'a Outgoing,
        prepared: Option<&'a str>,
    ) -> BoxFuture<'a, anyhow::Result<SentStatus>> {
        Box::pin(self.around(self.mailbox.look(mail, prepared)))
    }

    fn calendar(&self) -> &dyn Calendar {
        self
    }
}

/// A process over this mailbox, which dies when its fate says so.
pub(crate) fn home(
    world: &World,
    mailbox: Arc<dyn Mailbox>,
    fate: &Arc<Fate>,
    replies: &Json,
) -> App {
    let mailbox = Deadly {
        mailbox,
        fate: Arc::downgrade(fate),
    };
    let home = world.home_over(Arc::new(mailbox), |sqlite| {
        Mortal::new(Arc::new(sqlite), fate.clone())
    });
    let model = deaths::model(world.folder.path(), fate, replies);
    home.models.put(MODEL, model);
    home
}
