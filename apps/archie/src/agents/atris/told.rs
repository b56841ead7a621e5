//! Which looks of a watch its person was told of.
//!
//! In the long-term store: a look that was made, and whose process died before it was told, is told by the next one.

use superstep::store::{Namespace, PutItem};

use super::now;
use super::watch::NAME;
use crate::agents::AnyThread;
use crate::home::Home;

/// Of one watch.
pub(super) struct Told<'a> {
    home: &'a Home,
    thread: String,
}

impl<'a> Told<'a> {
    pub(super) fn of(home: &'a Home, thread: &dyn AnyThread) -> Self {
        let thread = thread.id();
        Self { home, thread }
    }

    /// How many of its looks were told.
    pub(super) async fn looks(&self) -> anyhow::Result<usize> {
        let store = &self.home.memory;
        let item = store.get(&namespace()?, &self.thread, now()).await?;
        Ok(match item {
            Some(item) => serde_json::from_value(item.value)?,
            None => 0,
        })
    }

    /// So many are told now. Only afterwards: what is told twice is seen, what is told never is not.
    pub(super) async fn up_to(&self, looks: usize) -> anyhow::Result<()> {
        let put = PutItem {
            namespace: namespace()?,
            key: self.thread.clone(),
            value: serde_json::to_value(looks)?,
            ttl: None,
        };
        self.home.memory.put(&put, now()).await?;
        Ok(())
    }
}

fn namespace() -> anyhow::Result<Namespace> {
    Ok(Namespace::new([NAME, "told"])?)
}
