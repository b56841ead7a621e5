//! The program at work: its store, its runtime, its agents.

use std::sync::Arc;

use anyhow::{Context, bail};
use superstep::checkpoint::{Page, ThreadQuery, ThreadRow};
use superstep::{Checkpointer, Graph, Runtime};
use superstep_postgres::Postgres;
use superstep_sqlite::Sqlite;

use crate::agents::analyze::{self, state::AppState};
use crate::agents::{AnyAgent, AnyThread, Registered};
use crate::cli::settings::{Settings, Store};
use crate::models::Models;

/// Everything a command needs.
pub struct Home {
    /// What the program goes by.
    pub settings: Settings,
    /// What drives threads.
    pub runtime: Runtime,
    /// The agents, by name.
    pub agents: Vec<Arc<dyn AnyAgent>>,
    /// The graph of `analyze`, typed.
    pub analyze: Graph<AppState>,
    /// The models that are open.
    pub models: Arc<Models>,
}

impl Home {
    /// Opens the store and makes the agents.
    pub async fn open(settings: Settings) -> anyhow::Result<Self> {
        let runtime = match &settings.store {
            Store::Sqlite(path) => Runtime::new(open_sqlite(path)?),
            Store::Postgres(url) => {
                let store = Postgres::connect(url).await;
                Runtime::new(store.context("the store cannot be reached; is the server running?")?)
            }
        };
        Self::with_runtime(settings, runtime)
    }

    /// Over a store that is open already, whatever the settings say.
    pub fn over(settings: Settings, store: impl Checkpointer + 'static) -> anyhow::Result<Self> {
        Self::with_runtime(settings, Runtime::new(store))
    }

    fn with_runtime(settings: Settings, runtime: Runtime) -> anyhow::Result<Self> {
        let models = Arc::new(Models::default());
        let prompts = match &settings.prompts {
            Some(folder) => analyze::prompts::Prompts::with_folder(&folder.join(analyze::NAME))?,
            None => analyze::prompts::Prompts::default(),
        };
        let graph = analyze::graph(models.clone(), prompts)?;
        let about = "an analyst who interviews you over a folder of notes";
        let agents: Vec<Arc<dyn AnyAgent>> = vec![Arc::new(Registered::new(graph.clone(), about))];
        for agent in &agents {
            agent.register(&runtime);
        }
        Ok(Self {
            settings,
            runtime,
            agents,
            analyze: graph,
            models,
        })
    }

    /// The agent of this name.
    pub fn agent(&self, name: &str) -> anyhow::Result<&Arc<dyn AnyAgent>> {
        let found = self.agents.iter().find(|agent| agent.name() == name);
        found.with_context(|| {
            let names: Vec<_> = self.agents.iter().map(|agent| agent.name()).collect();
            format!("there is no agent `{name}`; there are {}", names.join(", "))
        })
    }

    /// The thread whose id begins so, and its row.
    pub async fn find(&self, prefix: &str) -> anyhow::Result<(Arc<dyn AnyThread>, ThreadRow)> {
        let found = self.rows_of(prefix).await?;
        let row = match found.as_slice() {
            [only] => only.clone(),
            [] => bail!("no thread begins with `{prefix}`; `archie threads` lists them"),
            several => {
                let ids: Vec<_> = several
                    .iter()
                    .take(5)
                    .map(|row| row.thread.to_string())
                    .collect();
                bail!(
                    "{} threads begin with `{prefix}`: {}; type more of it",
                    several.len(),
                    ids.join(", ")
                )
            }
        };
        let agent = self.agent(&row.graph)?;
        let thread = agent.thread(&self.runtime, &row.thread.to_string())?;
        Ok((thread, row))
    }

    async fn rows_of(&self, prefix: &str) -> anyhow::Result<Vec<ThreadRow>> {
        let exact = superstep::ThreadId::new(prefix).ok();
        let mut found = Vec::new();
        let mut offset = 0;
        loop {
            let query = ThreadQuery {
                page: Page {
                    limit: PAGE,
                    offset,
                },
                ..ThreadQuery::default()
            };
            let rows = self.runtime.threads(&query).await?;
            let count = rows.len();
            for row in rows {
                if Some(&row.thread) == exact.as_ref() {
                    return Ok(vec![row]);
                }
                if row.thread.to_string().starts_with(prefix) {
                    found.push(row);
                }
            }
            if count < PAGE as usize {
                return Ok(found);
            }
            offset += PAGE;
        }
    }

    /// What keeps the threads.
    pub fn store(&self) -> &Arc<dyn Checkpointer> {
        self.runtime.checkpointer()
    }
}

impl std::fmt::Debug for Home {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Home")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Only its owner may read what people told their agents.
fn open_sqlite(path: &std::path::Path) -> anyhow::Result<Sqlite> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        && !folder.exists()
    {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path);
    file.with_context(|| format!("{} cannot be opened", path.display()))?;
    Sqlite::open(path)
        .with_context(|| format!("the threads in {} cannot be opened", path.display()))
}

const PAGE: u32 = 1_000;
