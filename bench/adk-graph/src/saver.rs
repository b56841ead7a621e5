//! The checkpointer of a round, over a file of its own that goes with it.

use std::path::PathBuf;
use std::sync::Arc;

use adk_graph::prelude::{Checkpointer, CompiledGraph, SqliteCheckpointer};
use bench_rounds::Failure;

pub struct Saver {
    checkpointer: Option<Arc<dyn Checkpointer>>,
    path: PathBuf,
}

impl Saver {
    pub async fn open(store: &str) -> Result<Self, Failure> {
        let folder = PathBuf::from(std::env::var("BENCH_FOLDER")?);
        let path = folder.join(format!("adk-{}.db", uuid::Uuid::new_v4()));
        let checkpointer: Option<Arc<dyn Checkpointer>> = match store {
            "sqlite" => {
                let url = format!("sqlite://{}?mode=rwc", path.display());
                Some(Arc::new(SqliteCheckpointer::new(&url).await?))
            }
            _ => None,
        };
        Ok(Self { checkpointer, path })
    }

    pub fn keep(&self, graph: CompiledGraph) -> CompiledGraph {
        let graph = match &self.checkpointer {
            Some(checkpointer) => graph.with_checkpointer_arc(checkpointer.clone()),
            None => graph,
        };
        graph.with_recursion_limit(5_000)
    }

    /// What the file has on disk, with its log.
    pub fn bytes(&self) -> Result<u64, Failure> {
        let file = std::fs::metadata(&self.path)?.len();
        let log = std::fs::metadata(self.beside("-wal")).map_or(0, |log| log.len());
        Ok(file + log)
    }

    fn beside(&self, ending: &str) -> String {
        format!("{}{ending}", self.path.display())
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        for ending in ["", "-wal", "-shm", "-journal"] {
            // What is not there need not go.
            let _ = std::fs::remove_file(self.beside(ending));
        }
    }
}
