//! The manifest: what the pages were made from, with the checksums that show whether they still describe the tree.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use archie_agent::user_folder::{FileName, UserFolder};
use serde::{Deserialize, Serialize};

use super::accuracy::Claim;
use super::scan::Tree;
use super::source_map::SourceRecord;
use super::state::{AgentContext, AgentResult, AgentWorkflowConfig};
use super::workflow::BaseAgentWorkflow;

/// Name of the manifest file in the folder of the pages.
pub const FILE: &str = "manifest.json";

/// What the pages were made from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Manifest {
    /// Version of the file format. Written as 1.
    pub version: u32,
    /// Name of the project.
    pub project: String,
    /// Number of files at the time of the scan.
    pub file_count: u64,
    /// Number of folders at the time of the scan.
    pub directory_count: u64,
    /// The page of each agent, by the agent's name.
    pub agents: BTreeMap<String, PageRecord>,
    /// Entries that [`Manifest::read`] left out, each with the reason. Not stored.
    #[serde(skip)]
    pub ignored: Vec<String>,
}

/// One page, and what it was made from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PageRecord {
    /// Name of the page file in the folder of the pages.
    pub page: String,
    /// Checksum of the page file.
    pub page_hash: String,
    /// Checksum of the model's name and the configuration.
    pub settings: String,
    /// Result of the agent. Its Markdown is empty here; it is in the page file.
    pub result: AgentResult,
    /// Earlier runs of this agent, the newest last. At most 20.
    pub history: Vec<PastRun>,
}

/// Score of one earlier run of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastRun {
    /// Number of the run, from 1.
    #[serde(default)]
    pub number: u64,
    /// Name of the model.
    pub model: String,
    /// Highest overall score of the run, from 0 to 100.
    pub score: u32,
    /// Number of refinements.
    pub iterations: u32,
}

/// Why a page is made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stale {
    /// The manifest has no page of this agent.
    New,
    /// The prompts or the facts have changed.
    Facts,
    /// A file that was shown to the model has changed. Holds its path.
    Read(String),
    /// The tree no longer supports a claim of the page. Holds the claim.
    Claim(String),
    /// The last run stopped at its spending limit.
    CutShort,
    /// The page file is missing or not readable as text.
    Gone,
    /// The page file was edited after it was written.
    Edited,
    /// The page was made with another model or configuration.
    Settings,
    /// The caller asked for every page.
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
    /// Reads the manifest. Returns an empty one if the folder or the file does not exist.
    ///
    /// The file may come from an untrusted repository. An entry whose page is not the file that its agent would write is left
    /// out, as if that agent had never run, and reported in [`ignored`](Self::ignored).
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

    /// Returns why the page of an agent no longer describes the tree, or `None` if it still does.
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
        if let Some(record) = &metadata.sources
            && let Some(changed) = changed_source(record, agent, tree)
        {
            return Some(changed);
        }
        match folder.and_then(|folder| page(folder, agent.get_agent_name())) {
            None => Some(Stale::Gone),
            Some(page) if hash(page.as_bytes()) != made.page_hash => Some(Stale::Edited),
            Some(_) => None,
        }
    }

    /// Returns how much of the source the model of an agent's page read at most, in bytes.
    pub(super) fn source_bytes(&self, agent: &str) -> Option<u64> {
        let made = self.agents.get(agent)?;
        Some(made.result.metadata.sources.as_ref()?.bytes)
    }

    /// Returns whether a page exists and was made with another model or configuration.
    pub fn has_other_settings(&self, agent: &str, settings: &str) -> bool {
        self.agents
            .get(agent)
            .is_some_and(|made| made.settings != settings)
    }

    /// Returns the threshold learned from earlier runs of this agent with this model: their median score, kept within 20 points
    /// below and 15 points above the configured threshold `set`. `None` if there are fewer than three such runs.
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

    /// Returns the number of the agent's last recorded run, or 0 if it has none. Runs without a score are not recorded.
    pub fn times(&self, agent: &str) -> u64 {
        let last = self.agents.get(agent).and_then(|made| made.history.last());
        last.map_or(0, |fared| fared.number.min(TIMES_MAX))
    }

    /// Records a new page of an agent whose last recorded run was number `times`. Idempotent: recording the same run twice has
    /// no further effect.
    pub fn note(&mut self, result: &AgentResult, page: NewPage<'_>, times: u64) {
        let made = self.agents.entry(result.agent_name.clone()).or_default();
        page.name.clone_into(&mut made.page);
        made.page_hash = hash(page.text.as_bytes());
        made.settings = page.settings;
        made.result = AgentResult {
            markdown: String::new(),
            versions: Vec::new(),
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

/// Compares what the model read of the source with what it would read now. Returns what has changed first.
fn changed_source(
    record: &SourceRecord,
    agent: &dyn BaseAgentWorkflow,
    tree: &Tree,
) -> Option<Stale> {
    let now = source_record(agent, tree, record.bytes);
    let is_same = |path: &&String| record.files.get(*path) == now.files.get(*path);
    let paths: BTreeSet<&String> = record.files.keys().chain(now.files.keys()).collect();
    let changed = paths.into_iter().find(|path| !is_same(path))?;
    Some(match tree.file(changed) {
        Some(_) => Stale::Read(changed.clone()),
        // A file that is gone, or the list of packages.
        None => Stale::Facts,
    })
}

/// Returns what a model reads of the source within so many bytes.
pub(super) fn source_record(
    agent: &dyn BaseAgentWorkflow,
    tree: &Tree,
    bytes: u64,
) -> SourceRecord {
    // The number may come from an untrusted manifest.
    let bytes = usize::try_from(bytes.min(SOURCE_BYTES_MAX)).unwrap_or(0);
    let map = tree.source_map();
    map.text(tree, agent.source_focus(), bytes).record
}

/// Returns the name of an agent's page file.
pub fn page_name(agent: &str) -> String {
    format!("{agent}.md")
}

/// Reads the page of an agent from its folder. `None` if there is no such file, or it is too large or not text.
pub(super) fn page(folder: &UserFolder, agent: &str) -> Option<String> {
    let name = FileName::new(page_name(agent)).ok()?;
    let bytes = folder.read(&name.into(), PAGE_BYTES_MAX).ok()?;
    String::from_utf8(bytes).ok()
}

/// Returns whether `name` can be the name of an agent: a plain word that is safe in commands and file names.
fn is_agent_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= 64 && name.chars().all(is_part)
}

/// A new page, to be recorded in the manifest.
#[derive(Debug)]
pub struct NewPage<'a> {
    /// Name of the page file in the folder of the pages.
    pub name: &'a str,
    /// Content of the page file.
    pub text: &'a str,
    /// Checksum of the model's name and the configuration.
    pub settings: String,
    /// Name of the model.
    pub model: &'a str,
}

/// Returns the checksum of everything that an agent starts with: its prompts and the measured facts.
pub fn inputs(agent: &dyn BaseAgentWorkflow, context: &AgentContext, tree: &Tree) -> String {
    let facts = agent.parse_analysis("", tree);
    let parts = [
        agent.build_system_prompt(context),
        agent.build_human_prompt(context, tree),
        agent.format_markdown(&facts),
    ];
    hash(parts.join("\0").as_bytes())
}

/// Returns the checksum of the model's name and the configuration.
pub fn settings(config: &AgentWorkflowConfig, model: &str) -> String {
    let config = serde_json::to_string(config).unwrap_or_default();
    hash(format!("{model}\0{config}").as_bytes())
}

/// Returns a checksum (XXH3, 128 bits, as hexadecimal) that detects changes. It is not cryptographic: a forger can produce
/// collisions.
pub fn hash(bytes: &[u8]) -> String {
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes))
}

/// Maximum length of the source that a model reads, in bytes.
const SOURCE_BYTES_MAX: u64 = 4 << 20;

/// Maximum size of a manifest in bytes.
const MANIFEST_BYTES_MAX: u64 = 16 << 20;

/// Maximum size of a page in bytes.
const PAGE_BYTES_MAX: u64 = 8 << 20;

/// Number of runs after which the learned threshold applies.
const LEARNED_FROM: usize = 3;
const LEARNED_DOWN: u32 = 20;
const LEARNED_UP: u32 = 15;
const HISTORY_MAX: u64 = 20;
/// Upper limit of a run number. The manifest may come from an untrusted repository, and the next number must not overflow.
const TIMES_MAX: u64 = 1 << 32;
