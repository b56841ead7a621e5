//! The open program: its store, its runtime and its agents.

use std::sync::Arc;

use anyhow::{Context, bail};
use archie_agent::clock::now;
use archie_agent::mcp::McpServers;
use archie_agent::{Agent, AgentDeps, AgentFactory, ModelProfiles, ModelRegistry, ThreadFolders};
use serde::Serialize;
use serde::de::DeserializeOwned;
use superstep::checkpoint::{Metadata, Page, Status, ThreadQuery, ThreadRow};
use superstep::store::{Namespace, PutItem, Store as Memory};
use superstep::{AnyThread, Checkpointer, Runtime, ThreadId};
use superstep_agent::Spending;
use superstep_encryption::Encryption;
use superstep_llm::{ModelName, NotAModel};
use superstep_server::FolderFiles;

use crate::cli::settings::{Engine, Settings};
use crate::model_offers::find_offers;
use crate::storage::Storage;
use crate::trace_export::TraceExport;
use crate::web::fetch_page;

/// Everything that a command needs.
pub struct App {
    /// Settings in effect; the shell's `model` command changes the model.
    pub settings: Settings,
    /// Runtime that drives threads, in this process or through an engine.
    pub runtime: Runtime,
    /// Agents in the order of their factories; names are unique.
    pub agents: Vec<Arc<Agent>>,
    /// Models opened so far, by name.
    pub models: Arc<ModelRegistry>,
    /// MCP servers that the person configured.
    pub mcp: Arc<McpServers>,
    /// Long-term store, shared by all threads.
    pub memory: Arc<dyn Memory>,
    /// Encryption of the store; `None` if it is not encrypted.
    pub encryption: Option<Encryption>,
    /// Where traces are exported to while runs go on.
    pub traces: TraceExport,
}

impl App {
    /// Opens the store and builds the agents. Fails if an engine is set and the store is a file, which workers could not share, and if
    /// the store is encrypted with another key than that of the settings.
    pub async fn open(settings: Settings, makers: &[AgentFactory]) -> anyhow::Result<Self> {
        let storage = Storage::open(&settings).await?;
        Self::of(settings, &storage, makers).await
    }

    /// Creates an app over the open database of these settings.
    pub(crate) async fn of(
        settings: Settings,
        storage: &Storage,
        makers: &[AgentFactory],
    ) -> anyhow::Result<Self> {
        let runtime = storage.runtime(&settings).await?;
        let app = Self::with_runtime(settings, runtime, storage.memory(), makers)?;
        Ok(Self {
            encryption: storage.encryption.clone(),
            ..app
        })
    }

    /// Creates an app over open stores. Ignores `settings.store`, `settings.engine` and `settings.encryption`.
    pub fn over(
        settings: Settings,
        store: impl Checkpointer + 'static,
        memory: Arc<dyn Memory>,
        makers: &[AgentFactory],
    ) -> anyhow::Result<Self> {
        Self::with_runtime(settings, Runtime::new(store), memory, makers)
    }

    fn with_runtime(
        settings: Settings,
        runtime: Runtime,
        memory: Arc<dyn Memory>,
        makers: &[AgentFactory],
    ) -> anyhow::Result<Self> {
        let file = settings.profiles_file();
        let profiles = ModelProfiles::read(&file).with_context(|| {
            let file = file.display();
            format!("cannot read {file}; delete it, and run `archie doctor` again")
        })?;
        let models = ModelRegistry::with_profiles(profiles)
            .with_openai_base_url(settings.openai_base_url.clone())
            .with_choices(settings.run_models());
        let models = Arc::new(models);
        let mcp = Arc::new(McpServers::new(settings.mcp.clone(), &settings.home));
        let deps = deps(&settings, &models, &mcp, &memory);
        let mut agents: Vec<Arc<Agent>> = Vec::new();
        for make in makers {
            let agent = make(&deps)?;
            let name = agent.name();
            if agents.iter().any(|other| other.name() == name) {
                bail!("two agents are called `{name}`; give one of them another name");
            }
            agent.register(&runtime);
            agents.push(agent);
        }
        Ok(Self {
            settings,
            runtime,
            agents,
            models,
            mcp,
            memory,
            encryption: None,
            traces: TraceExport::from_env(),
        })
    }

    /// Returns the dependencies that agents are built with.
    pub fn deps(&self) -> AgentDeps {
        deps(&self.settings, &self.models, &self.mcp, &self.memory)
    }

    /// Returns the agent with this name.
    pub fn agent(&self, name: &str) -> anyhow::Result<&Arc<Agent>> {
        let found = self.agents.iter().find(|agent| agent.name() == name);
        found.with_context(|| {
            let names: Vec<_> = self.agents.iter().map(|agent| agent.name()).collect();
            format!("there is no agent `{name}`; there are {}", names.join(", "))
        })
    }

    /// Returns the model for new threads. Commands call this before they create a thread, so that a wrong name or a missing key
    /// leaves no thread behind.
    pub async fn ready_model(&self) -> anyhow::Result<String> {
        let name = match self.settings.model() {
            Err(error) if error.is::<NotAModel>() => {
                let given = self.settings.model.as_deref().unwrap_or_default();
                return Err(self.similar_models(given).await.unwrap_or(error));
            }
            name => name?,
        };
        // On a cluster, the workers open the model, and they have the key.
        if self.settings.engine == Engine::Local {
            self.models.get(name)?;
        }
        Ok(name.to_owned())
    }

    /// Returns an error that suggests models of local servers for a name without a provider, if they have the name.
    async fn similar_models(&self, given: &str) -> Option<anyhow::Error> {
        let offers = find_offers(self.settings.openai_base_url.as_deref()).await;
        let offers = offers.iter().map(|offer| &offer.name);
        // Ollama's names end with a tag.
        let is_similar = |name: &&ModelName| {
            let rest = name.name().strip_prefix(given);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        let similar: Vec<_> = offers
            .filter(is_similar)
            .map(|name| format!("`{name}`"))
            .collect();
        (!similar.is_empty()).then(|| {
            anyhow::anyhow!(
                "`{given}` is not a model; did you mean {}?",
                similar.join(" or ")
            )
        })
    }

    /// Returns the only thread whose id starts with `prefix`, and its row.
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
        Ok((self.thread_of(&row)?, row))
    }

    /// Returns the thread of a row.
    pub fn thread_of(&self, row: &ThreadRow) -> anyhow::Result<Arc<dyn AnyThread>> {
        let agent = self.agent(&row.graph)?;
        self.thread(agent, &row.thread.to_string(), Metadata::new())
    }

    /// Returns a handle to a thread of an agent, new or not, whose trace is exported from now on.
    pub fn thread(
        &self,
        agent: &Agent,
        id: &str,
        known: Metadata,
    ) -> anyhow::Result<Arc<dyn AnyThread>> {
        let thread = agent.thread(&self.runtime, id, known)?;
        self.traces.add(&thread);
        Ok(thread)
    }

    /// Returns whether a thread is idle (its last run finished) or does not exist.
    pub async fn is_idle(&self, id: &ThreadId) -> anyhow::Result<bool> {
        let glance = self.store().glance(id, None).await?;
        Ok(glance.is_none_or(|glance| glance.status == Status::Idle))
    }

    /// Returns up to `limit` threads that match, newest first, with as many queries as the store's page size requires.
    pub async fn rows(&self, mut query: ThreadQuery, limit: u32) -> anyhow::Result<Vec<ThreadRow>> {
        let mut found = Vec::new();
        while let left @ 1.. = limit.saturating_sub(query.page.offset) {
            query.page.limit = left.min(PAGE);
            let rows = self.runtime.threads(&query).await?;
            let is_last = rows.len() < query.page.limit as usize;
            found.extend(rows);
            if is_last {
                break;
            }
            query.page.offset += query.page.limit;
        }
        Ok(found)
    }

    /// Calls `look` with every thread, newest first, until it breaks. Reads the threads page by page.
    pub async fn each_row(
        &self,
        mut look: impl FnMut(ThreadRow) -> std::ops::ControlFlow<()>,
    ) -> anyhow::Result<()> {
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
            let is_last = rows.len() < PAGE as usize;
            for row in rows {
                if look(row).is_break() {
                    return Ok(());
                }
            }
            if is_last {
                return Ok(());
            }
            offset += PAGE;
        }
    }

    async fn rows_of(&self, prefix: &str) -> anyhow::Result<Vec<ThreadRow>> {
        let exact = superstep::ThreadId::new(prefix).ok();
        let mut found = Vec::new();
        self.each_row(|row| {
            if Some(&row.thread) == exact.as_ref() {
                found = vec![row];
                return std::ops::ControlFlow::Break(());
            }
            if row.thread.to_string().starts_with(prefix) {
                found.push(row);
            }
            std::ops::ControlFlow::Continue(())
        })
        .await?;
        Ok(found)
    }

    /// Returns the value under a key of the long-term store, or the default if there is none.
    pub async fn recall<T: DeserializeOwned + Default>(
        &self,
        namespace: [&str; 2],
        key: &str,
    ) -> anyhow::Result<T> {
        let namespace = Namespace::new(namespace)?;
        let item = self.memory.get(&namespace, key, now()).await?;
        Ok(match item {
            Some(item) => serde_json::from_value(item.value)?,
            None => T::default(),
        })
    }

    /// Stores a value under a key of the long-term store, replacing an earlier one. It does not expire.
    pub async fn keep(
        &self,
        namespace: [&str; 2],
        key: &str,
        value: &impl Serialize,
    ) -> anyhow::Result<()> {
        let put = PutItem {
            namespace: Namespace::new(namespace)?,
            key: key.to_owned(),
            value: serde_json::to_value(value)?,
            ttl: None,
        };
        self.memory.put(&put, now()).await?;
        Ok(())
    }

    /// Returns the files that callers of a server upload, and that agents leave for them.
    pub fn files(&self) -> FolderFiles {
        FolderFiles::new(&self.settings.files)
    }

    /// Returns the checkpointer that stores the threads.
    pub fn store(&self) -> &Arc<dyn Checkpointer> {
        self.runtime.checkpointer()
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

fn deps(
    settings: &Settings,
    models: &Arc<ModelRegistry>,
    mcp: &Arc<McpServers>,
    memory: &Arc<dyn Memory>,
) -> AgentDeps {
    let limits = settings.budget.as_ref();
    AgentDeps {
        data_folder: settings.home.clone(),
        prompts_folder: settings.prompts.clone(),
        model: settings.model.clone(),
        models: models.clone(),
        mcp: mcp.clone(),
        store: memory.clone(),
        spending: limits.map(|limits| Spending::new(memory.clone()).per_thread(limits.clone())),
        thread_folders: Some(thread_folders(settings)),
        web: settings.web.as_ref().map(fetch_page),
    }
}

/// Returns where the files of threads are, as the server stores them.
fn thread_folders(settings: &Settings) -> ThreadFolders {
    let files = FolderFiles::new(&settings.files);
    ThreadFolders::new(move |thread| files.folder_of(thread))
}

const PAGE: u32 = 1_000;
