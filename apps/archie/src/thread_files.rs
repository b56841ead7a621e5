//! Files of threads as `archie serve` stores them, together with what agents store next to a thread's log, such as workbooks.

use std::path::PathBuf;
use std::sync::Arc;

use archie_agent::Agent;
use bytes::Bytes;
use superstep::ThreadId;
use superstep::checkpoint::BoxFuture;
use superstep_server::{
    FolderFiles, ThreadFile, ThreadFilePath, ThreadFileResult, ThreadFiles, delete_folder,
};

use crate::app::App;
use crate::commands::files;

/// Files in a folder. What agents store for a thread is copied and deleted with them, and cannot be reached by callers.
#[derive(Debug)]
pub(crate) struct AgentFiles {
    files: FolderFiles,
    agents: Vec<Arc<Agent>>,
}

impl AgentFiles {
    /// Returns the files of an app's threads.
    pub(crate) fn of(app: &App) -> Self {
        Self {
            files: app.files(),
            agents: app.agents.clone(),
        }
    }

    /// Returns the folders that agents have for a thread, with the same folders of another thread.
    fn own_folders(&self, thread: &ThreadId, other: &ThreadId) -> Vec<(PathBuf, PathBuf)> {
        let agents = self.agents.iter().map(|agent| agent.ui());
        agents
            .filter_map(|ui| Some((ui.files(thread)?, ui.files(other)?)))
            .collect()
    }
}

impl ThreadFiles for AgentFiles {
    fn write<'a>(
        &'a self,
        thread: &'a ThreadId,
        path: &'a ThreadFilePath,
        bytes: Bytes,
    ) -> BoxFuture<'a, ThreadFileResult<ThreadFile>> {
        self.files.write(thread, path, bytes)
    }

    fn read<'a>(
        &'a self,
        thread: &'a ThreadId,
        path: &'a ThreadFilePath,
    ) -> BoxFuture<'a, ThreadFileResult<Option<Bytes>>> {
        self.files.read(thread, path)
    }

    fn list<'a>(
        &'a self,
        thread: &'a ThreadId,
    ) -> BoxFuture<'a, ThreadFileResult<Vec<ThreadFile>>> {
        self.files.list(thread)
    }

    fn delete<'a>(
        &'a self,
        thread: &'a ThreadId,
        path: &'a ThreadFilePath,
    ) -> BoxFuture<'a, ThreadFileResult<bool>> {
        self.files.delete(thread, path)
    }

    fn delete_all<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, ThreadFileResult<()>> {
        Box::pin(async move {
            self.files.delete_all(thread).await?;
            let own = self.own_folders(thread, thread);
            blocking(move || own.iter().try_for_each(|(folder, _)| files::remove(folder))).await
        })
    }

    fn delete_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, ThreadFileResult<u64>> {
        Box::pin(async move {
            // Any other text could lead out of the folders, and no thread has it for a tenant.
            if ThreadId::of_tenant(tenant, "any").is_err() {
                return Ok(0);
            }
            let deleted = self.files.delete_tenant(tenant).await?;
            let agents = self.agents.iter().map(|agent| agent.ui());
            let own: Vec<_> = agents.filter_map(|ui| ui.tenant_files(tenant)).collect();
            let delete = move || {
                own.iter()
                    .map(|folder| delete_folder(folder))
                    .sum::<std::io::Result<u64>>()
            };
            let of_agents = tokio::task::spawn_blocking(delete)
                .await
                .map_err(std::io::Error::other)?;
            Ok(deleted + of_agents?)
        })
    }

    fn copy_all<'a>(
        &'a self,
        from: &'a ThreadId,
        to: &'a ThreadId,
    ) -> BoxFuture<'a, ThreadFileResult<()>> {
        Box::pin(async move {
            self.files.copy_all(from, to).await?;
            let own = self.own_folders(from, to);
            blocking(move || own.iter().try_for_each(|(from, to)| files::copy(from, to))).await
        })
    }
}

/// Runs work on files where it may block.
async fn blocking(
    work: impl FnOnce() -> anyhow::Result<()> + Send + 'static,
) -> ThreadFileResult<()> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(std::io::Error::other)?;
    Ok(done.map_err(std::io::Error::other)?)
}
