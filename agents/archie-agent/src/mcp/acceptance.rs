//! Which list of tools a person accepted of which server, in a private file of the host's data folder.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep_agent::{Tool, digest};

use crate::private_file;

/// A list of tools that a person accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acceptance {
    /// Digest of the list, as [`Server::digest`](superstep_agent::mcp::Server::digest) returns it.
    pub digest: String,
    /// Digest of how the server was reached.
    pub target: String,
    /// Digest of each tool, by its name: to say what changed.
    pub tools: BTreeMap<String, String>,
    /// Who accepted it.
    pub by: String,
}

/// How the tools of a server differ from the accepted ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ToolChanges {
    /// Names of tools that were not there.
    pub added: Vec<String>,
    /// Names of tools whose description or arguments differ.
    pub changed: Vec<String>,
    /// Names of tools that are gone.
    pub removed: Vec<String>,
}

impl Acceptance {
    /// Returns how these tools differ from the accepted ones.
    pub fn changes(&self, tools: &[Tool]) -> ToolChanges {
        let now = digests(tools);
        let mut changes = ToolChanges::default();
        for (name, digest) in &now {
            match self.tools.get(name) {
                None => changes.added.push(name.clone()),
                Some(before) if before != digest => changes.changed.push(name.clone()),
                Some(_) => {}
            }
        }
        let is_gone = |name: &&String| !now.contains_key(*name);
        changes.removed = self.tools.keys().filter(is_gone).cloned().collect();
        changes
    }
}

/// Returns the digest of each tool, by its name.
pub(super) fn digests(tools: &[Tool]) -> BTreeMap<String, String> {
    let digest_of = |tool: &Tool| {
        let spec = tool.spec();
        digest(
            "archie.mcp.tool.v1",
            &json!([spec.description, spec.schema]),
        )
    };
    tools
        .iter()
        .map(|tool| (tool.name().to_owned(), digest_of(tool)))
        .collect()
}

/// The file of acceptances, by the names of the servers.
#[derive(Debug)]
pub(super) struct AcceptanceFile(PathBuf);

impl AcceptanceFile {
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self(folder.join("mcp-accepted.json"))
    }

    pub(super) fn read(&self) -> anyhow::Result<BTreeMap<String, Acceptance>> {
        let path = self.0.display();
        match private_file::read(&self.0) {
            Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| {
                format!("`{path}` is not valid; delete it, and accept the MCP servers again")
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error).with_context(|| format!("`{path}` cannot be read")),
        }
    }

    pub(super) fn write(&self, all: &BTreeMap<String, Acceptance>) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(all)?;
        private_file::write(&self.0, format!("{text}\n").as_bytes())
            .with_context(|| format!("`{}` cannot be written", self.0.display()))
    }
}
