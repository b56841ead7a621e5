//! The node that ends an analysis for a caller of a server: it writes the results into the files of the thread.

use archie_agent::ThreadFolders;
use superstep::{Command, Node, NodeCx, NodeError, View};

use super::super::output;
use super::super::snapshots::SnapshotStore;
use super::super::state::{GraphState, GraphStateUpdate};

/// Writes the results. After a crash it writes the same files again.
pub(in super::super) struct SaveResultsNode {
    pub(in super::super) folders: Option<ThreadFolders>,
    pub(in super::super) snapshots: SnapshotStore,
}

impl Node<GraphState> for SaveResultsNode {
    async fn run(
        &self,
        state: View<GraphState>,
        cx: NodeCx,
    ) -> Result<Command<GraphState>, NodeError> {
        let saved = output::save(&self.snapshots, self.folders.as_ref(), cx.thread(), &state);
        saved.map_err(|error| NodeError::fatal(error.to_string()))?;
        Ok(GraphStateUpdate::default().into())
    }
}
