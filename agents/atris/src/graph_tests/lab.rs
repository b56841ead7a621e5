//! The agent with the APIs of the evaluation, all behind one address.

use std::sync::{Arc, Mutex};

use archie_agent::mcp::McpServers;
use archie_agent::{Agent, AgentDeps, ModelRegistry, state_of};
use serde_json::{Value as Json, json};
use superstep::run::OpenInterrupt;
use superstep::store::MemoryStore;
use superstep::{AnyThread, Memory, Outcome, Runtime};
use superstep_agent::Spending;
use superstep_agent::budget::{Limits, Meter};
use superstep_llm::{BoxFuture, Script};

use crate::catalogue_store::CatalogueStore;
use crate::connector::{Answer, Connector, Fault, SystemNames, Transport, VettedCall};
use crate::state::AtrisState;
use crate::{Extraction, Options, agent_with, evaluation, run_log};

const MODEL: &str = "script:test";

/// Answers every call with an empty list, and writes it down.
#[derive(Default)]
pub(super) struct Wire(Mutex<Vec<String>>);

impl Wire {
    /// Returns the method and the path of every call.
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(super) fn writes(&self) -> usize {
        let lines = self.lines();
        lines
            .iter()
            .filter(|line| !line.starts_with("GET "))
            .count()
    }
}

impl Transport for Wire {
    fn send(&self, vetted: VettedCall) -> BoxFuture<'_, Result<Answer, Fault>> {
        let query = vetted.url.query().map(|query| format!("?{query}"));
        let line = format!(
            "{} {}{}",
            vetted.call.method,
            vetted.url.path(),
            query.unwrap_or_default()
        );
        self.0.lock().unwrap().push(line);
        let answer = Answer {
            status: 200,
            body: b"[]".to_vec(),
            ..Answer::default()
        };
        Box::pin(async move { Ok(answer) })
    }
}

pub(super) struct Lab {
    pub(super) wire: Arc<Wire>,
    pub(super) script: Arc<Script>,
    agent: Arc<Agent>,
    runtime: Runtime,
}

impl Lab {
    pub(super) async fn new(extraction: Extraction, script: Script) -> Self {
        Self::with_calls_max(extraction, script, None).await
    }

    /// With a limit on the model calls of each run.
    pub(super) async fn with_calls_max(
        extraction: Extraction,
        script: Script,
        calls_max: Option<u64>,
    ) -> Self {
        let store = Arc::new(MemoryStore::default());
        let spending = calls_max
            .map(|calls| Spending::new(store.clone()).per_run(Limits::of(Meter::Calls, calls)));
        let script = Arc::new(script);
        let models = ModelRegistry::default();
        models.put(MODEL, script.clone());
        let deps = AgentDeps {
            data_folder: "unused".into(),
            prompts_folder: None,
            model: None,
            models: Arc::new(models),
            mcp: Arc::new(McpServers::new(Vec::new(), "unused".as_ref())),
            store,
            spending,
            thread_folders: None,
            web: None,
        };
        let store = CatalogueStore::new(deps.store.clone());
        for mut catalogue in evaluation::catalogues().unwrap() {
            // A number needs no resolver; the transport connects to nothing.
            catalogue.hosts = vec!["http://127.0.0.1:9".to_owned()];
            store.put(&catalogue).await.unwrap();
        }
        let wire = Arc::new(Wire::default());
        let options = Options {
            connector: Connector::over(Arc::new(SystemNames), wire.clone()),
            extraction,
            ..Options::default()
        };
        let agent = agent_with(&deps, &options).unwrap();
        let runtime = Runtime::new(Memory::default());
        agent.register(&runtime);
        Self {
            wire,
            script,
            agent,
            runtime,
        }
    }

    fn thread(&self, id: &str) -> Arc<dyn AnyThread> {
        self.agent
            .thread(&self.runtime, id, Default::default())
            .unwrap()
    }

    pub(super) async fn ask(&self, thread: &str, query: &str) -> Outcome {
        let input = json!({ "llm": MODEL, "query": query });
        let rest = self.thread(thread).start_or_recover(input).await.unwrap();
        rest.outcome
    }

    pub(super) async fn open(&self, thread: &str) -> Vec<OpenInterrupt> {
        self.thread(thread).interrupts().await.unwrap()
    }

    /// Returns the only open interrupt.
    pub(super) async fn question(&self, thread: &str) -> OpenInterrupt {
        let mut open = self.open(thread).await;
        assert_eq!(open.len(), 1, "one question at a time");
        open.remove(0)
    }

    pub(super) async fn reply(&self, thread: &str, answer: Json) -> Outcome {
        let id = self.question(thread).await.interrupt.id;
        let rest = self
            .thread(thread)
            .answer_as("ada", vec![(id, answer)])
            .await;
        rest.unwrap().unwrap().outcome
    }

    pub(super) async fn state(&self, thread: &str) -> AtrisState {
        state_of(&*self.thread(thread)).await.unwrap()
    }

    /// Returns the last thing that the agent said.
    pub(super) async fn answer(&self, thread: &str) -> String {
        let state = self.state(thread).await;
        state.message_history.last().unwrap().content.clone()
    }

    /// Returns what a node wrote last.
    pub(super) async fn wrote(&self, thread: &str, node: &str) -> Json {
        let written = run_log::last_run(&*self.thread(thread)).await.unwrap();
        let mut written = written.into_iter().rev();
        written.find(|written| written.node == node).unwrap().update
    }
}
