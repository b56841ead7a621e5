//! What the store holds of a thread, and whether its history is one chain that leads there.

use serde_json::{Value as Json, json};
use superstep::checkpoint::format::{Entry, EntryKind};
use superstep::checkpoint::{AnswerBody, History, InterruptQuery, Page, StoredBody};
use superstep::{Graph, Runtime, Seq, State, ThreadId, run};

use crate::AnyError;

/// As JSON: how many entries there are, the state, the answers with what became of them, and the first fault.
pub(crate) async fn inspect<S: State>(
    runtime: &Runtime,
    graph: &Graph<S>,
    thread: &str,
) -> Result<Json, AnyError> {
    let look = Look {
        runtime,
        graph,
        thread: thread.parse()?,
    };
    let stored = runtime
        .checkpointer()
        .entries(&look.thread, Seq(0), u32::MAX)
        .await?;
    let state = look.state().await;
    let fault = look.fault(&stored, &state).await.err();
    Ok(json!({
        "entries": stored.len(),
        "fault": fault.map(|error| error.to_string()),
        "state": state.unwrap_or_default(),
        "answers": look.answers(&stored).await?,
    }))
}

struct Look<'a, S: State> {
    runtime: &'a Runtime,
    graph: &'a Graph<S>,
    thread: ThreadId,
}

impl<S: State> Look<'_, S> {
    async fn state(&self) -> Result<Json, AnyError> {
        let loaded = self.runtime.checkpointer().load(&self.thread).await?;
        self.read(&loaded.unwrap_or_default().history)
    }

    fn read(&self, history: &History) -> Result<Json, AnyError> {
        let state = run::read_state(self.graph.definition(), &self.thread, history)?;
        Ok(match state {
            Some(state) => state.values.decode()?,
            None => Json::Null,
        })
    }

    /// Every entry follows the one before, and applied one after the other they give the state.
    async fn fault(
        &self,
        stored: &[StoredBody],
        state: &Result<Json, AnyError>,
    ) -> Result<(), AnyError> {
        let state = state.as_ref().map_err(ToString::to_string)?;
        let mut forked_at = Seq(0);
        for (before, body) in (0..).zip(stored) {
            let entry = Entry::read(body, &self.thread)?;
            if entry.kind == EntryKind::Fork {
                forked_at = body.seq;
            } else if entry.parent != Seq(before) {
                return Err(format!("entry {} does not follow the one before", body.seq).into());
            }
            if body.seq != Seq(before + 1) {
                return Err(format!("entry {} comes after entry {before}", body.seq).into());
            }
        }
        let replayed = self.replay(stored, forked_at).await?;
        if replayed != *state {
            return Err(format!("replayed, the history leads to {replayed}").into());
        }
        Ok(())
    }

    /// From the first entry on, without the snapshots that a load begins with. A fork stands on its own snapshot.
    async fn replay(&self, stored: &[StoredBody], forked_at: Seq) -> Result<Json, AnyError> {
        let mut history = History::default();
        if forked_at > Seq(0) {
            let checkpointer = self.runtime.checkpointer();
            history = checkpointer.load_at(&self.thread, forked_at).await?;
        }
        let rest = stored.iter().filter(|body| body.seq > forked_at);
        history.entries.extend(rest.cloned());
        self.read(&history)
    }

    /// Every answer that was stored, with the kind of entry that closed its question.
    async fn answers(&self, stored: &[StoredBody]) -> Result<Vec<Json>, AnyError> {
        let query = InterruptQuery {
            tenant: self.thread.tenant().to_owned(),
            thread: Some(self.thread.clone()),
            page: Page {
                limit: 1_000_000,
                offset: 0,
            },
            ..InterruptQuery::default()
        };
        let mut answers = Vec::new();
        for row in self.runtime.checkpointer().interrupts(&query).await? {
            let Some(AnswerBody::Value(value)) = row.answer else {
                continue;
            };
            let closed = stored.iter().find(|body| Some(body.seq) == row.closed);
            let closed = closed.and_then(|body| Entry::read(body, &self.thread).ok());
            answers.push(json!({
                "value": value.decode::<Json>()?,
                "closed_by": closed.map(|entry| format!("{:?}", entry.kind)),
            }));
        }
        Ok(answers)
    }
}
