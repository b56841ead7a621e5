//! The nodes around the agents: the scan, the tasks, and the totals.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use superstep::trace::SpanNames;
use superstep::{Command, Node, NodeCx, NodeError, View};
use superstep_agent::AgentEvent;
use superstep_llm::Usage;

use super::deps::{DocsDeps, fatal};
use super::manifest;
use super::scan::{Progress, Tree};
use super::state::{
    AgentContext, AgentResult, AgentTask, DocsState, DocsStateUpdate, Report, ScanSummary,
};

/// Scans the project folder and shows progress.
pub(super) struct ScanProjectStructure {
    pub(super) deps: Arc<DocsDeps>,
}

/// Creates one task for each requested agent.
pub(super) struct CreateExecutionContext {
    pub(super) deps: Arc<DocsDeps>,
}

/// Sums up the results of the agents.
pub(super) struct AggregateResults {
    pub(super) deps: Arc<DocsDeps>,
}

impl Node<DocsState> for ScanProjectStructure {
    async fn run(
        &self,
        state: View<DocsState>,
        cx: NodeCx,
    ) -> Result<Command<DocsState>, NodeError> {
        cx.emit(SpanNames {
            node_span: None,
            graph_span: Some("DocumentationGeneration-Complete".to_owned()),
        })?;
        let progress = Arc::new(Progress::default());
        let root = self.deps.root(cx.thread(), &state.root).map_err(fatal)?;
        let mut scanned = std::pin::pin!(self.deps.scans.tree(&root, &state.options, &progress));
        let tree = loop {
            tokio::select! {
                tree = &mut scanned => break tree.map_err(NodeError::fatal)?,
                () = tokio::time::sleep(SHOWN_EVERY) => {
                    let files = progress.files.load(Ordering::Relaxed);
                    cx.emit_live(AgentEvent::progress(format!("{files} files scanned")))?;
                }
            }
        };
        Ok(DocsStateUpdate::default().scan(summary(&tree)).into())
    }
}

/// Returns the part of a scan that is stored in the state.
pub(super) fn summary(tree: &Tree) -> ScanSummary {
    let languages = tree.languages().into_iter();
    ScanSummary {
        project: tree.project.clone(),
        file_count: tree.files.len() as u64,
        directory_count: tree.directories.len() as u64,
        languages: languages
            .map(|(language, files)| (language.word().to_owned(), files))
            .collect(),
        hash: tree.hash.clone(),
        unread: tree.unread.clone(),
    }
}

/// Returns the part of a scan that is sent to each agent.
pub(super) fn context(
    root: &str,
    state_options: &super::scan::ScanOptions,
    tree: &Tree,
) -> AgentContext {
    AgentContext {
        project: tree.project.clone(),
        root: root.to_owned(),
        options: state_options.clone(),
        scan: tree.hash.clone(),
        files: tree
            .files
            .iter()
            .take(FILES_MAX)
            .map(|file| file.path.clone())
            .collect(),
        file_count: tree.files.len() as u64,
        directory_count: tree.directories.len() as u64,
        parallel: None,
    }
}

impl Node<DocsState> for CreateExecutionContext {
    async fn run(
        &self,
        state: View<DocsState>,
        cx: NodeCx,
    ) -> Result<Command<DocsState>, NodeError> {
        let progress = Arc::new(Progress::default());
        let root = self.deps.root(cx.thread(), &state.root).map_err(fatal)?;
        let tree = self.deps.scans.tree(&root, &state.options, &progress).await;
        let tree = tree.map_err(NodeError::fatal)?;
        let mut context = context(&state.root, &state.options, &tree);
        // Keeps the checksum of the first scan: if the tree has changed since, the results say so.
        context.scan.clone_from(&state.scan.hash);
        context.parallel = state.parallel;
        let mut tasks = Vec::new();
        for agent in &state.wanted {
            let inputs = manifest::inputs(&*self.deps.agent_of(agent)?, &context, &tree);
            let mut config = state.config.clone();
            if let Some(threshold) = state.thresholds.get(agent) {
                config.clarity_threshold = *threshold;
            }
            tasks.push(AgentTask {
                agent: agent.clone(),
                model_name: state.model_name.clone(),
                context: context.clone(),
                inputs,
                config,
                shared: None,
            });
        }
        Ok(DocsStateUpdate::default().tasks(tasks).into())
    }
}

impl Node<DocsState> for AggregateResults {
    async fn run(
        &self,
        state: View<DocsState>,
        _cx: NodeCx,
    ) -> Result<Command<DocsState>, NodeError> {
        for result in &state.results {
            self.deps.agent_of(&result.agent_name)?;
        }
        let mut usage = Usage::default();
        let mut calls = 0;
        for result in &state.results {
            usage += result.metadata.usage;
            calls += result.metadata.calls;
        }
        let report = Report {
            agents: u32::try_from(state.results.len()).unwrap_or(u32::MAX),
            calls,
            usage,
            lines: state.results.iter().map(line).collect(),
        };
        Ok(DocsStateUpdate::default().report(Some(report)).into())
    }
}

/// Formats a result in one line, for example `file-structure  62 → Q4 → 74 → Q3 → 85 ✓ 2 iterations`.
pub(super) fn line(result: &AgentResult) -> String {
    let metadata = &result.metadata;
    let mut trend = String::new();
    for (at, score) in metadata.scores.iter().enumerate() {
        if at > 0 {
            let note = metadata.refinement_notes.get(at - 1);
            let count = note
                .and_then(|note| note.split("Addressed ").nth(1))
                .and_then(|rest| rest.split(' ').next());
            trend.push_str(&format!(" → Q{} → ", count.unwrap_or("0")));
        }
        trend.push_str(&score.to_string());
    }
    if trend.is_empty() {
        trend.push_str("unscored");
    }
    let mark = match metadata.stopped.as_str() {
        "enough" => "✓".to_owned(),
        other => format!("({other})"),
    };
    let iterations = match metadata.iterations {
        1 => "1 iteration".to_owned(),
        count => format!("{count} iterations"),
    };
    format!("{}  {trend} {mark} {iterations}", result.agent_name)
}

const SHOWN_EVERY: Duration = Duration::from_millis(200);

/// Maximum number of paths in a prompt.
const FILES_MAX: usize = 1_000;
