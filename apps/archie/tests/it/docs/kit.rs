//! A small repository, and agents at work on it with a script.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archie_agent::ModelRegistry;
use archie_docs::scan::{Progress, ScanOptions, Scans};
use archie_docs::state::{
    AgentContext, AgentResult, AgentWorkflowConfig, AgentWorkflowState, AgentWorkflowStateUpdate,
};
use archie_docs::workflow::{self, BaseAgentWorkflow, RunnableConfig, execute};
use archie_docs::{DocsDeps, Prompts, writers};
use serde_json::{Value as Json, json};
use superstep::{InterruptId, Memory, Outcome, Runtime};
use superstep_llm::Script;

/// The files of the small repository.
pub(crate) const FILES: [(&str, &str); 7] = [
    (".gitignore", "target/\n"),
    (
        "Cargo.toml",
        "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nserde = \"1.0\"\n",
    ),
    ("README.md", "# Shop\n"),
    (
        "src/cart.rs",
        "pub struct Cart {\n    pub items: Vec<u32>,\n}\n\nimpl Cart {\n    pub fn add(&mut self, item: u32) {\n        self.items.push(item);\n    }\n}\n",
    ),
    (
        "src/main.rs",
        "mod cart;\nuse crate::cart::Cart;\n\nfn main() {\n    let mut cart = Cart { items: Vec::new() };\n    cart.add(1);\n}\n",
    ),
    ("tests/buy.rs", "#[test]\nfn buys() {}\n"),
    ("target/junk.rs", "fn junk() {}\n"),
];

/// Puts the small repository into a folder.
pub(crate) fn repository(folder: &Path) -> PathBuf {
    let repo = folder.join("repo");
    for (path, text) in FILES {
        let path = repo.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    repo
}

/// Scores whose average is this.
pub(crate) fn scores(overall: u32) -> Json {
    json!({ "completeness": overall, "clarity": overall, "depth": overall, "accuracy": overall })
}

pub(crate) fn questions(count: usize, round: usize) -> Json {
    let questions: Vec<String> = (1..=count)
        .map(|n| format!("Round {round}, question {n}?"))
        .collect();
    json!({ "questions": questions, "missing": [format!("gap {round}")] })
}

/// The replies of an agent whose text comes to these scores, with so many questions before each refinement.
pub(crate) fn replies(agent: &str, overall: &[u32], asked: &[usize]) -> Vec<Json> {
    let mut replies = vec![
        json!({ "at": format!("{agent}-InitialAnalysis"), "text": format!("The first text about `src/main.rs`. {NAMED}"), "usage": usage() }),
    ];
    for (at, score) in overall.iter().enumerate() {
        replies.push(json!({ "at": format!("{agent}-EvaluateClarity"), "json": scores(*score), "usage": usage() }));
        if let Some(count) = asked.get(at) {
            let round = at + 1;
            replies.push(json!({ "at": format!("{agent}-GenerateQuestions"), "json": questions(*count, round), "usage": usage() }));
            replies.push(json!({
                "at": format!("{agent}-Refinement-{round}"), "expect": format!("Round {round}, question 1?"),
                "text": format!("Text {round} about `Cart` in `src/cart.rs`. {NAMED}"), "usage": usage()
            }));
        }
    }
    replies
}

/// Names what the pages of all agents must name.
pub(crate) const NAMED: &str = "`Cart` is in `src/cart.rs` and has `add`, `src/main.rs` fills one, `tests` tries it, and `serde`, libc or a Voucher is there.";

fn usage() -> Json {
    json!({ "input_tokens": 100, "output_tokens": 20 })
}

/// One agent at work.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
    pub(crate) deps: Arc<DocsDeps>,
    pub(crate) script: Arc<Script>,
    pub(crate) runtime: Runtime,
}

impl Bench {
    pub(crate) fn new(replies: Vec<Json>) -> Self {
        Self::with_agents(replies, writers::all())
    }

    pub(crate) fn with_agents(replies: Vec<Json>, agents: Vec<Arc<dyn BaseAgentWorkflow>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        repository(folder.path());
        let text =
            json!({ "replies": replies, "price": { "input": 1_000, "output": 2_000 } }).to_string();
        let script = Arc::new(Script::parse("test", &text).unwrap());
        let models = Arc::new(ModelRegistry::default());
        models.put(MODEL, script.clone());
        let deps = DocsDeps {
            models,
            scans: Arc::new(Scans::default()),
            agents,
            prompts: Prompts::default(),
            slots: Arc::default(),
            spending: None,
            model: None,
            thread_folders: None,
        };
        Self {
            folder,
            deps: Arc::new(deps),
            script,
            runtime: Runtime::new(Memory::default()),
        }
    }

    /// Replaces the script, for one that says more than its replies.
    pub(crate) fn script_is(&mut self, script: &Json) {
        self.script = Arc::new(Script::parse("test", &script.to_string()).unwrap());
        self.deps.models.put(MODEL, self.script.clone());
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    pub(crate) async fn context(&self) -> AgentContext {
        let root = self.repo().display().to_string();
        let options = ScanOptions::default();
        let progress = Arc::new(Progress::default());
        let tree = self
            .deps
            .scans
            .tree(&root, &options, &progress)
            .await
            .unwrap();
        AgentContext {
            project: tree.project.clone(),
            root,
            options,
            scan: tree.hash.clone(),
            files: tree.files.iter().map(|file| file.path.clone()).collect(),
            file_count: tree.files.len() as u64,
            directory_count: tree.directories.len() as u64,
            parallel: None,
        }
    }

    pub(crate) async fn execute(&self, agent: &str, config: AgentWorkflowConfig) -> AgentResult {
        let runnable = RunnableConfig {
            runtime: self.runtime.clone(),
            thread: "t".to_owned(),
            model_name: MODEL.to_owned(),
        };
        execute(agent, &self.deps, self.context().await, config, &runnable)
            .await
            .unwrap()
    }

    /// The state of the agent's thread.
    pub(crate) async fn state(&self) -> AgentWorkflowState {
        let graph = workflow::graph(&self.deps).unwrap();
        let thread = self.runtime.thread(&graph, "t").unwrap();
        thread
            .state()
            .await
            .unwrap()
            .unwrap()
            .values
            .decode()
            .unwrap()
    }

    /// Goes on until it asks a person; gives the question.
    pub(crate) async fn gate(&self, change: fn(&mut AgentWorkflowConfig)) -> (InterruptId, Json) {
        let mut config = AgentWorkflowConfig::default();
        change(&mut config);
        let input = AgentWorkflowStateUpdate::default()
            .agent("file-structure".to_owned())
            .model_name(MODEL.to_owned())
            .context(self.context().await)
            .config(config);
        let graph = workflow::graph(&self.deps).unwrap();
        let thread = self.runtime.thread(&graph, "t").unwrap();
        thread.start(input).await.unwrap();
        let open = thread.interrupts().await.unwrap();
        assert_eq!(open.len(), 1);
        assert_eq!(open[0].interrupt.kind, "gate");
        (
            open[0].interrupt.id,
            open[0].interrupt.request.decode().unwrap(),
        )
    }

    /// Answers, and goes on to the end.
    pub(crate) async fn answer(&self, question: InterruptId, answer: Json) -> AgentWorkflowState {
        let graph = workflow::graph(&self.deps).unwrap();
        let thread = self.runtime.thread(&graph, "t").unwrap();
        let done = thread.answer(question, answer).await.unwrap().unwrap();
        assert_eq!(done.outcome, Outcome::Finished);
        done.state
    }

    /// What the model was asked, by label.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.script
            .prompts()
            .into_iter()
            .map(|request| request.label)
            .collect()
    }
}

pub(crate) const MODEL: &str = "script:test";
