//! What the pages were made from: the checksums by which it is known whether they still describe the tree.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use archie_agent::user_folder::{FileName, UserFolder};
use serde::{Deserialize, Serialize};

use super::accuracy::Claim;
use super::scan::Tree;
use super::state::{AgentContext, AgentResult, AgentWorkflowConfig};
use super::workflow::BaseAgentWorkflow;

/// The name of its file, in the folder of the pages.
pub const FILE: &str = "manifest.json";

/// What the pages were made from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Manifest {
    /// The form of this file.
    pub version: u32,
    /// The project's name.
    pub project: String,
    /// Its files then.
    pub file_count: u64,
    /// Its folders then.
    pub directory_count: u64,
    /// Each agent's page, by the agent's name.
    pub agents: BTreeMap<String, PageRecord>,
    /// Entries that were left out when it was read, each with the reason.
    #[serde(skip)]
    pub ignored: Vec<String>,
}

/// A page, and what it was made from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PageRecord {
    /// The file, in the folder of the pages.
    pub page: String,
    /// Its checksum.
    pub page_hash: String,
    /// The checksum of model and settings.
    pub settings: String,
    /// The result; its page is in the file.
    pub result: AgentResult,
    /// How this agent fared, the newest last.
    pub history: Vec<PastRun>,
}

/// How an agent fared once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastRun {
    /// Which time it was, from 1.
    #[serde(default)]
    pub number: u64,
    /// With which model.
    pub model: String,
    /// To which score it came.
    pub score: u32,
    /// In how many iterations.
    pub iterations: u32,
}

/// Why a page is made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stale {
    /// It was never made.
    New,
    /// The facts that it states are others.
    Facts,
    /// A file that the model read has changed.
    Read(String),
    /// Something that it says is no longer so.
    Claim(String),
    /// The budget ended it.
    CutShort,
    /// Its file is gone.
    Gone,
    /// Somebody changed its file.
    Edited,
    /// It was made with another model or other settings.
    Settings,
    /// It was asked for.
    Forced,
}

impl std::fmt::Display for Stale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::New => f.write_str("not made yet"),
            Self::Facts => f.write_str("its facts have changed"),
            Self::Read(path) => write!(f, "{path} has changed"),
            Self::Claim(claim) => write!(f, "no longer so: {claim}"),
            Self::CutShort => f.write_str("the budget ended it"),
            Self::Gone => f.write_str("its page is gone"),
            Self::Edited => f.write_str("its page was edited"),
            Self::Settings => f.write_str("made with another model or other settings"),
            Self::Forced => f.write_str("asked for"),
        }
    }
}

impl Manifest {
    /// Reads it; an empty one if there is none. Whoever wrote the folder may have written it, so that an agent whose page is not
    /// the one that it would write itself is left out, as if it had never been made.
    pub fn read(folder: Option<&UserFolder>) -> anyhow::Result<Self> {
        let Some(folder) = folder else {
            return Ok(Self::default());
        };
        let path = folder.path().join(FILE);
        let bytes = folder.read_if_present(&FileName::new(FILE)?.into(), MANIFEST_BYTES_MAX)?;
        let Some(bytes) = bytes else {
            return Ok(Self::default());
        };
        let mut manifest: Self = serde_json::from_slice(&bytes).with_context(|| {
            format!(
                "{} is not a manifest of this program; delete it to start over",
                path.display()
            )
        })?;
        let mut ignored = Vec::new();
        manifest.agents.retain(|name, made| {
            let is_own = is_agent_name(name) && made.page == page_name(name);
            if !is_own {
                ignored.push(format!(
                    "`{}` in {} is ignored: its page is not `{}` but `{}`",
                    name.escape_debug(),
                    path.display(),
                    page_name(name).escape_debug(),
                    made.page.escape_debug()
                ));
            }
            is_own
        });
        manifest.ignored = ignored;
        Ok(manifest)
    }

    /// Keeps only the pages of these agents.
    pub fn retain<'a>(&mut self, known: impl Iterator<Item = &'a str>) {
        let known: BTreeSet<&str> = known.collect();
        self.agents.retain(|name, _| known.contains(&**name));
    }

    /// Why the page of an agent does not describe the tree any more; none if it does.
    pub fn stale(
        &self,
        agent: &dyn BaseAgentWorkflow,
        context: &AgentContext,
        tree: &Tree,
        folder: Option<&UserFolder>,
    ) -> Option<Stale> {
        let Some(made) = self.agents.get(agent.get_agent_name()) else {
            return Some(Stale::New);
        };
        let metadata = &made.result.metadata;
        if metadata.is_cut_short() {
            return Some(Stale::CutShort);
        }
        if metadata.inputs != inputs(agent, context, tree) {
            return Some(Stale::Facts);
        }
        for read in &metadata.reads {
            let now = tree.file(&read.path).map(|file| file.hash_text());
            if now.as_ref() != Some(&read.hash) {
                return Some(Stale::Read(read.path.clone()));
            }
        }
        let broken = metadata
            .claims
            .iter()
            .find(|claim| Claim::parse(claim).is_none_or(|claim| !claim.holds(tree)));
        if let Some(claim) = broken {
            return Some(Stale::Claim(claim.clone()));
        }
        match folder.and_then(|folder| page(folder, agent.get_agent_name())) {
            None => Some(Stale::Gone),
            Some(page) if hash(page.as_bytes()) != made.page_hash => Some(Stale::Edited),
            Some(_) => None,
        }
    }

    /// Whether a page was made with another model or other settings.
    pub fn has_other_settings(&self, agent: &str, settings: &str) -> bool {
        self.agents
            .get(agent)
            .is_some_and(|made| made.settings != settings)
    }

    /// The threshold that this agent's past with this model teaches: what it usually comes to, if it has tried often enough.
    /// Never far from what was set.
    pub fn learned(&self, agent: &str, model: &str, set: u32) -> Option<u32> {
        let history = &self.agents.get(agent)?.history;
        let mut scores: Vec<u32> = history
            .iter()
            .filter(|fared| fared.model == model)
            .map(|fared| fared.score)
            .collect();
        if scores.len() < LEARNED_FROM {
            return None;
        }
        scores.sort_unstable();
        let usual = scores[scores.len() / 2];
        Some(usual.clamp(
            set.saturating_sub(LEARNED_DOWN),
            (set + LEARNED_UP).min(100),
        ))
    }

    /// How often an agent has been at it.
    pub fn times(&self, agent: &str) -> u64 {
        let last = self.agents.get(agent).and_then(|made| made.history.last());
        last.map_or(0, |fared| fared.number.min(TIMES_MAX))
    }

    /// Notes a new page, made after the agent had been at it so many times: noted twice, it is the same.
    pub fn note(&mut self, result: &AgentResult, page: NewPage<'_>, times: u64) {
        let made = self.agents.entry(result.agent_name.clone()).or_default();
        page.name.clone_into(&mut made.page);
        made.page_hash = hash(page.text.as_bytes());
        made.settings = page.settings;
        made.result = AgentResult {
            markdown: String::new(),
            ..result.clone()
        };
        made.history.retain(|fared| fared.number <= times);
        if let Some(score) = result.metadata.scores.iter().max() {
            made.history.push(PastRun {
                number: times + 1,
                model: page.model.to_owned(),
                score: *score,
                iterations: result.metadata.iterations,
            });
        }
        let first = (times + 1).saturating_sub(HISTORY_MAX);
        made.history.retain(|fared| fared.number > first);
    }
}

/// The file of an agent's page.
pub fn page_name(agent: &str) -> String {
    format!("{agent}.md")
}

/// The page of an agent as it is in its folder; none if it is not there, or is not a file with text.
pub(super) fn page(folder: &UserFolder, agent: &str) -> Option<String> {
    let name = FileName::new(page_name(agent)).ok()?;
    let bytes = folder.read(&name.into(), PAGE_BYTES_MAX).ok()?;
    String::from_utf8(bytes).ok()
}

/// Whether an agent can be called so: a plain word, as it stands in commands and file names.
fn is_agent_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= 64 && name.chars().all(is_part)
}

/// A page that was made.
#[derive(Debug)]
pub struct NewPage<'a> {
    /// Its file, in the folder of the pages.
    pub name: &'a str,
    /// What is in it.
    pub text: &'a str,
    /// The checksum of model and settings.
    pub settings: String,
    /// The model.
    pub model: &'a str,
}

/// The checksum of all that an agent begins with: prompts and facts.
pub fn inputs(agent: &dyn BaseAgentWorkflow, context: &AgentContext, tree: &Tree) -> String {
    let facts = agent.parse_analysis("", tree);
    let parts = [
        agent.build_system_prompt(context),
        agent.build_human_prompt(context, tree),
        agent.format_markdown(&facts),
    ];
    hash(parts.join("\0").as_bytes())
}

/// The checksum of model and settings.
pub fn settings(config: &AgentWorkflowConfig, model: &str) -> String {
    let config = serde_json::to_string(config).unwrap_or_default();
    hash(format!("{model}\0{config}").as_bytes())
}

/// A checksum that tells whether something has changed. Not against somebody who wants it to look the same.
pub fn hash(bytes: &[u8]) -> String {
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes))
}

/// How large a manifest may be.
const MANIFEST_BYTES_MAX: u64 = 16 << 20;

/// How large a page may be.
const PAGE_BYTES_MAX: u64 = 8 << 20;

/// How often an agent must have tried before its past counts.
const LEARNED_FROM: usize = 3;
const LEARNED_DOWN: u32 = 20;
const LEARNED_UP: u32 = 15;
const HISTORY_MAX: u64 = 20;
/// The file comes with the repository, and the next number must exist.
const TIMES_MAX: u64 = 1 << 32;
