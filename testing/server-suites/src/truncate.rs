//! `POST /internal/truncate`, which the JavaScript suites call between tests: deletes what the flags of its body name.
//!
//! Only this program has the route. It lists and deletes through the public interfaces, one row after the other.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Json, State};
use axum::http::StatusCode;
use axum::routing::post;
use serde::Deserialize;
use serde_json::{Value, json};
use superstep::Runtime;
use superstep::checkpoint::{Page, ThreadQuery};
use superstep::registry::{AssistantQuery, CancelledRun, Registry, RunQuery};
use superstep::store::{Search, Store};

/// What the route deletes from.
#[derive(Clone)]
pub(crate) struct ClearedStores {
    pub(crate) runtime: Runtime,
    pub(crate) registry: Arc<dyn Registry>,
    pub(crate) long_term: Arc<dyn Store>,
}

/// What a caller wants to be deleted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TruncateFlags {
    runs: bool,
    threads: bool,
    assistants: bool,
    store: bool,
    /// Checkpoints without their threads. A thread here is its checkpoints, so this does what `threads` does.
    #[serde(alias = "checkpointer")]
    checkpoint: bool,
}

pub(crate) fn routes(stores: ClearedStores) -> Router {
    Router::new()
        .route("/internal/truncate", post(truncate))
        .with_state(stores)
}

async fn truncate(
    State(stores): State<ClearedStores>,
    Json(flags): Json<TruncateFlags>,
) -> Result<Json<Value>, (StatusCode, String)> {
    match stores.clear(&flags).await {
        Ok(()) => Ok(Json(json!({ "ok": true }))),
        Err(error) => Err((StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}"))),
    }
}

impl ClearedStores {
    async fn clear(&self, flags: &TruncateFlags) -> anyhow::Result<()> {
        let has_threads = flags.threads || flags.checkpoint;
        // The runs of a thread would create it again.
        if flags.runs || has_threads {
            self.delete_runs().await?;
        }
        if has_threads {
            self.delete_threads().await?;
        }
        if flags.assistants {
            self.delete_assistants().await?;
        }
        if flags.store {
            self.delete_items().await?;
        }
        Ok(())
    }

    async fn delete_runs(&self) -> anyhow::Result<()> {
        let runs = all(|page| async move {
            let query = RunQuery {
                page,
                ..RunQuery::default()
            };
            anyhow::Ok(self.registry.runs(&query).await?)
        });
        for run in runs.await? {
            let (tenant, now) = (run.thread.tenant(), self.runtime.now());
            let found = self.registry.cancel_run(tenant, run.id, now).await?;
            if found == CancelledRun::Running {
                self.runtime.cancel(&run.thread).await?;
            }
            self.registry.delete_run(tenant, run.id).await?;
        }
        Ok(())
    }

    async fn delete_threads(&self) -> anyhow::Result<()> {
        let threads = all(|page| async move {
            let query = ThreadQuery {
                page,
                ..ThreadQuery::default()
            };
            anyhow::Ok(self.runtime.threads(&query).await?)
        });
        for row in threads.await? {
            self.runtime.checkpointer().delete(&row.thread).await?;
        }
        Ok(())
    }

    /// Those of the server stay.
    async fn delete_assistants(&self) -> anyhow::Result<()> {
        let assistants = all(|page| async move {
            let query = AssistantQuery {
                page,
                ..AssistantQuery::default()
            };
            anyhow::Ok(self.registry.assistants(&query).await?)
        });
        for assistant in assistants.await? {
            if assistant.metadata["created_by"] != "system" {
                let (tenant, id) = (&assistant.tenant, assistant.id);
                self.registry.delete_assistant(tenant, id).await?;
            }
        }
        Ok(())
    }

    async fn delete_items(&self) -> anyhow::Result<()> {
        let items = all(|page| async move {
            let search = Search {
                page,
                ..Search::default()
            };
            let now = self.runtime.now();
            anyhow::Ok(self.long_term.search(&search, now).await?)
        });
        for item in items.await? {
            self.long_term.delete(&item.namespace, &item.key).await?;
        }
        Ok(())
    }
}

/// Returns all rows of a list, page after page.
async fn all<T, F>(list: impl Fn(Page) -> F) -> anyhow::Result<Vec<T>>
where
    F: Future<Output = anyhow::Result<Vec<T>>>,
{
    const ROWS: u32 = 100;
    let mut rows = Vec::new();
    loop {
        let offset = u32::try_from(rows.len())?;
        let page = Page {
            limit: ROWS,
            offset,
        };
        let found = list(page).await?;
        let is_last = found.len() < ROWS as usize;
        rows.extend(found);
        if is_last {
            return Ok(rows);
        }
    }
}

#[test]
fn the_flags_of_the_suites_are_read() {
    let flags = |json: Value| serde_json::from_value::<TruncateFlags>(json).unwrap();
    let all = flags(json!({
        "runs": true, "threads": true, "assistants": true, "store": true, "checkpoint": true
    }));
    assert!(all.runs && all.threads && all.assistants && all.store && all.checkpoint);
    let some = flags(json!({ "checkpointer": true }));
    assert!(some.checkpoint && !some.runs && !some.threads && !some.assistants && !some.store);
}
