//! Atris in this process, over a store in memory and servers on this machine.

use std::path::Path;
use std::sync::Arc;

use archie::agents::AGENTS;
use archie::app::App;
use archie_agent::state_of;
use archie_atris::Extraction;
use archie_atris::catalogue::Catalogue;
use archie_atris::catalogue_store::{CatalogueStore, audius};
use archie_atris::state::AtrisState;
use serde_json::Value as Json;
use superstep::AnyThread;
use superstep::checkpoint::format::Change;
use superstep::run::OpenInterrupt;
use superstep::store::MemoryStore;
use superstep::{Memory, Outcome, Seq};

use super::server::Server;
use crate::kit::settings;

pub(crate) const MODEL: &str = "script:test";

pub(crate) struct Lab {
    pub(crate) home: App,
    pub(crate) catalogue_store: CatalogueStore,
    pub(crate) llm: String,
    pub(crate) extraction: Extraction,
}

impl Lab {
    /// Audius behind these servers, and no model.
    pub(crate) async fn new(servers: &[&Server]) -> Self {
        let lab = Self::empty();
        let mut catalogue = audius();
        catalogue.hosts = servers.iter().map(|server| server.url()).collect();
        lab.catalogue_store.put(&catalogue).await.unwrap();
        lab
    }

    pub(crate) fn empty() -> Self {
        let memory = Arc::new(MemoryStore::default());
        let home = App::over(
            settings(Path::new("unused")),
            Memory::default(),
            memory.clone(),
            AGENTS,
        )
        .unwrap();
        Self {
            home,
            catalogue_store: CatalogueStore::new(memory),
            llm: "none".to_owned(),
            extraction: Extraction::default(),
        }
    }

    pub(crate) fn with_model(mut self, model: Arc<dyn superstep_llm::Model>) -> Self {
        self.home.models.put(MODEL, model);
        self.llm = MODEL.to_owned();
        self
    }

    /// Lets the model choose, whatever the rules say.
    pub(crate) fn with_model_first(mut self) -> Self {
        self.extraction = Extraction::Model;
        self
    }

    pub(crate) async fn put(&self, catalogue: &Catalogue) {
        self.catalogue_store.put(catalogue).await.unwrap();
    }

    pub(crate) fn thread(&self, id: &str) -> Arc<dyn AnyThread> {
        let agent = self.home.agent("atris").unwrap();
        agent
            .thread(&self.home.runtime, id, Default::default())
            .unwrap()
    }

    /// Asks on a thread, and says how the run came to rest.
    pub(crate) async fn ask(&self, thread: &str, query: &str) -> Outcome {
        let input = AtrisState::ask_with(&self.llm, query, self.extraction);
        let input = serde_json::to_value(input).unwrap();
        self.thread(thread)
            .start_or_recover(input)
            .await
            .unwrap()
            .outcome
    }

    pub(crate) async fn state(&self, thread: &str) -> AtrisState {
        state_of(&*self.thread(thread)).await.unwrap()
    }

    pub(crate) async fn values(&self, thread: &str) -> Json {
        let state = self.thread(thread).state(None).await.unwrap().unwrap();
        state.values.decode().unwrap()
    }

    /// The last thing it said.
    pub(crate) async fn answer(&self, thread: &str) -> String {
        self.state(thread)
            .await
            .message_history
            .last()
            .unwrap()
            .content
            .clone()
    }

    pub(crate) async fn question(&self, thread: &str) -> OpenInterrupt {
        let mut open = self.thread(thread).interrupts().await.unwrap();
        assert_eq!(open.len(), 1, "one question at a time");
        open.remove(0)
    }

    pub(crate) async fn reply(&self, thread: &str, answer: Json) -> Outcome {
        let open = self.question(thread).await;
        let rest = self
            .thread(thread)
            .answer_as("ada", vec![(open.interrupt.id, answer)])
            .await;
        rest.unwrap().unwrap().outcome
    }

    /// What each node wrote, in turn.
    pub(crate) async fn written(&self, thread: &str) -> Vec<(String, Json)> {
        let history = self.thread(thread).history(Seq(0), 1_000).await.unwrap();
        let changes = history.into_iter().flat_map(|past| past.entry.changes);
        let advanced = changes.filter_map(|change| match change {
            Change::FrameAdvanced(advanced) => Some(advanced),
            _ => None,
        });
        let writes = advanced.flat_map(|advanced| advanced.writes);
        writes
            .map(|write| (write.node.to_string(), write.updates[0].decode().unwrap()))
            .collect()
    }

    /// What one node wrote last.
    pub(crate) async fn wrote(&self, thread: &str, node: &str) -> Json {
        let written = self.written(thread).await;
        written
            .into_iter()
            .rev()
            .find(|(name, _)| name == node)
            .unwrap()
            .1
    }
}

/// The names of the fields of an object, in order.
pub(crate) fn fields(object: &Json) -> Vec<&str> {
    let mut names: Vec<_> = object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names
}
