//! `archie test`: plays test cases again and compares where they end. A test case has the inputs and answers of a thread and the
//! replies of its models; `GET /superstep/threads/{thread_id}/case` returns it, and Studio saves it with the files of the thread.
//!
//! A case may come from someone else, so it sets only what callers of a server may set, and it is played in an empty home: without
//! keys, accounts, MCP servers, pages of the web and APIs. Models are never opened: the case has all their replies.

mod compare;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use archie_agent::printable::counted;
use archie_agent::style::Face;
use archie_agent::{Agent, AgentFactory, Exit, Terminal};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use superstep::checkpoint::format::Stop;
use superstep::checkpoint::{Answer, AnswerBody, Metadata};
use superstep::driver::ThreadRequest;
use superstep::graph::Definition;
use superstep::run::{OpenInterrupt, ThreadState};
use superstep::store::MemoryStore;
use superstep::{InterruptId, Memory, RunOptions, ThreadId, Value};
use superstep_llm::{BoxFuture, Model, ModelError, ModelName, ReplyStream, Request, Script};
use superstep_server::{CaseAct, CaseFile, CaseInterrupt, TestCase, ThreadFilePath, ThreadFiles};

use crate::agents::atris;
use crate::app::App;
use crate::cli::args::TestArgs;
use crate::cli::settings::{Settings, Store};
use crate::terminal::Console;
use compare::Comparison;

pub(super) fn run(
    args: &TestArgs,
    makers: &[AgentFactory],
    console: &Console,
) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut reports = Vec::new();
    for file in &args.files {
        let name = file.display().to_string();
        let case = read(file)?;
        let problems = match runtime.block_on(play(&case, makers)) {
            Ok(problems) => problems,
            Err(error) => vec![format!("{error:#}")],
        };
        reports.push(CaseReport {
            name,
            case,
            problems,
        });
    }
    let passed = reports.iter().all(|report| report.problems.is_empty());
    match args.json {
        true => {
            let cases: Vec<Json> = reports.iter().map(CaseReport::to_json).collect();
            console.json(&json!({ "passed": passed, "cases": cases }));
        }
        false => reports.iter().for_each(|report| report.print(console)),
    }
    Ok(match passed {
        true => Exit::Done,
        false => Exit::Failed,
    })
}

/// How a case went.
struct CaseReport {
    name: String,
    case: TestCase,
    /// Where it ended otherwise; empty if it did not.
    problems: Vec<String>,
}

impl CaseReport {
    fn to_json(&self) -> Json {
        json!({
            "file": self.name,
            "passed": self.problems.is_empty(),
            "problems": self.problems,
            "not_recovered": self.case.not_recovered,
        })
    }

    fn print(&self, console: &Console) {
        let calls = counted(self.case.script.replies.len(), "model call");
        let answers = self.case.acts.iter().map(|act| act.answers.len()).sum();
        let told = format!("{}  {calls}, {}", self.name, counted(answers, "answer"));
        if self.problems.is_empty() {
            console.line_of(&[(Face::Ok, "pass  "), (Face::Plain, &told)]);
            return;
        }
        console.line_of(&[(Face::Error, "FAIL  "), (Face::Plain, &told)]);
        for problem in &self.problems {
            console.line(&format!("  {problem}"));
        }
        for lost in &self.case.not_recovered {
            console.line(&format!("  note: {lost}"));
        }
    }
}

fn read(file: &Path) -> anyhow::Result<TestCase> {
    let shown = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("cannot read `{shown}`"))?;
    let case: TestCase =
        serde_json::from_str(&text).with_context(|| format!("`{shown}` is not a test case"))?;
    ensure!(
        case.format == TestCase::FORMAT,
        "`{shown}` has the format {}, and this version reads {}; make the test case again",
        case.format,
        TestCase::FORMAT
    );
    Ok(case)
}

/// Plays a case. Returns where it ended otherwise.
async fn play(case: &TestCase, makers: &[AgentFactory]) -> anyhow::Result<Vec<String>> {
    let home = tempfile::tempdir()?;
    let app = App::over(
        settings(home.path(), case)?,
        Memory::default(),
        Arc::new(MemoryStore::default()),
        makers,
    )?;
    let script = serde_json::to_string(&case.script)?;
    let script = Arc::new(Script::parse("case", &script)?);
    for name in names(case) {
        let model = PlayedModel {
            name: name.parse()?,
            script: script.clone(),
        };
        app.models.put(&name, Arc::new(model));
    }
    let agent = offline(&app, &case.graph_id)?;
    let player = Player {
        thread: ThreadId::new(&case.thread_id)?,
        app: &app,
        agent: &agent,
        case,
    };
    let played = tokio::time::timeout(TIME_MAX, player.play()).await;
    let mut problems = played.context("the case did not end within five minutes")??;
    if let Err(unused) = script.finish() {
        problems.push(unused.to_string());
    }
    Ok(problems)
}

fn settings(home: &Path, case: &TestCase) -> anyhow::Result<Settings> {
    let mut names = names(case);
    let model = (!names.is_empty()).then(|| names.remove(0));
    Ok(Settings {
        model,
        models: names,
        store: Store::Sqlite(home.join("threads.db")),
        home: home.to_owned(),
        files: home.join("files"),
        file: home.join("settings.json"),
        ..Settings::from_text("{}")?
    })
}

/// Returns the names of models that the agents may ask for. All of them are played, so none is opened.
fn names(case: &TestCase) -> Vec<String> {
    let contexts = case.acts.iter().filter_map(|act| act.context.as_ref());
    let chosen = contexts.filter_map(|context| context["model"].as_str());
    let mut names = case.models.clone();
    for name in chosen {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Returns the agent that runs a graph, without a way to the network.
fn offline(app: &App, graph: &str) -> anyhow::Result<Arc<Agent>> {
    let options = atris::Options {
        offline: true,
        ..atris::Options::default()
    };
    let agent = match graph {
        atris::NAME => atris::agent_with(&app.deps(), &options)?,
        atris::watch::NAME => atris::watch::agent_with(&app.deps(), &options)?,
        name => app.agent(name)?.clone(),
    };
    agent.register(&app.runtime);
    Ok(agent)
}

/// Plays a case on a thread with the id of the original.
struct Player<'a> {
    app: &'a App,
    agent: &'a Agent,
    thread: ThreadId,
    case: &'a TestCase,
}

impl Player<'_> {
    async fn play(&self) -> anyhow::Result<Vec<String>> {
        let case = self.case;
        ensure!(!case.acts.is_empty(), "the case has no input");
        self.store_files(&case.files).await?;
        let mut comparison = Comparison::default();
        for (at, act) in case.acts.iter().enumerate() {
            let request = match &act.input {
                Some(input) => self.start(input, act)?,
                None => {
                    let open = self.open(&format!("/acts/{at}")).await?;
                    comparison.compare(
                        &format!("/acts/{at}/asked"),
                        &asked(&act.asked),
                        &of(&open),
                    );
                    if !comparison.differences.is_empty() {
                        return Ok(comparison.differences);
                    }
                    self.answer(act, &open)?
                }
            };
            let options = RunOptions::default();
            let driver = self.app.runtime.driver();
            let graph = self.agent.definition();
            driver
                .execute(&self.thread, graph, request, &options)
                .await?;
        }
        let open = self.open("/expected").await?;
        let values: Json = self.state().await?.values.decode()?;
        comparison.compare("/asked", &asked(&case.expected.asked), &of(&open));
        comparison.compare("", &case.expected.values, &values);
        Ok(comparison.differences)
    }

    async fn store_files(&self, files: &[CaseFile]) -> anyhow::Result<()> {
        let folder = self.app.files();
        for file in files {
            let path = ThreadFilePath::parse(&file.path)?;
            let bytes = STANDARD.decode(&file.base64);
            let bytes = bytes.with_context(|| format!("the file `{}` is not base64", file.path))?;
            folder.write(&self.thread, &path, bytes.into()).await?;
        }
        Ok(())
    }

    fn start(&self, input: &Json, act: &CaseAct) -> anyhow::Result<ThreadRequest> {
        check_input(self.agent.definition(), input)?;
        let context = act.context.as_ref().map(Value::plain).transpose()?;
        Ok(ThreadRequest::Start {
            input: Value::plain(input)?,
            context,
            metadata: None,
        })
    }

    fn answer(&self, act: &CaseAct, open: &[OpenInterrupt]) -> anyhow::Result<ThreadRequest> {
        if let Some(write) = &act.write {
            check_input(self.agent.definition(), write)?;
        }
        let answers = act.answers.iter().map(|answer| {
            let to = open.get(answer.to);
            let to = to.with_context(|| format!("there is no interrupt {}", answer.to))?;
            Ok(Answer {
                interrupt: to.interrupt.id,
                body: AnswerBody::Value(Value::plain(&answer.value)?),
                by: "test".to_owned(),
                at: archie_agent::clock::now(),
            })
        });
        Ok(ThreadRequest::ResumeWith {
            answers: answers.collect::<anyhow::Result<_>>()?,
            write: act.write.as_ref().map(Value::plain).transpose()?,
            context: None,
        })
    }

    async fn state(&self) -> anyhow::Result<ThreadState> {
        let graph = self.agent.definition();
        let state = self.app.runtime.state_of(graph, &self.thread, None).await?;
        state.context("the thread has no state")
    }

    /// Returns the interrupts that wait for an answer, in the order of their tasks. Fails if the run has failed.
    async fn open(&self, place: &str) -> anyhow::Result<Vec<OpenInterrupt>> {
        let asked: Vec<InterruptId> = match self.state().await?.stop {
            Some(Stop::Paused { asked }) => asked,
            Some(Stop::Failed(failures)) => {
                let told = failures.iter().map(|failure| {
                    let (node, why) = (&failure.node, &failure.message);
                    format!("`{node}` failed: {why}")
                });
                bail!("{place}: {}", told.collect::<Vec<_>>().join("; "));
            }
            _ => Vec::new(),
        };
        let (id, metadata) = (self.thread.to_string(), Metadata::new());
        let thread = self.agent.thread(&self.app.runtime, &id, metadata)?;
        let mut open = thread.interrupts().await?;
        let place_of = |open: &OpenInterrupt| asked.iter().position(|id| *id == open.interrupt.id);
        open.sort_by_key(place_of);
        Ok(open)
    }
}

/// Refuses what callers of a server cannot write: a case could name a folder, a mailbox or a sandbox of this machine.
fn check_input(graph: &Definition, input: &Json) -> anyhow::Result<()> {
    let fields = input.as_object().context("the input is not an object")?;
    for name in fields.keys() {
        // A name that begins with `=` replaces the whole channel.
        let channel = name.strip_prefix('=').unwrap_or(name);
        ensure!(
            graph.inputs().contains(channel),
            "callers cannot write `{channel}` of `{}`; a test case is made of a thread that a caller of a server started",
            graph.name()
        );
    }
    Ok(())
}

fn asked(interrupts: &[CaseInterrupt]) -> Json {
    let shown = interrupts
        .iter()
        .map(|asked| shown(&asked.node, &asked.kind, asked.request.clone()));
    shown.collect()
}

fn of(open: &[OpenInterrupt]) -> Json {
    let shown = open.iter().map(|open| {
        let record = &open.interrupt;
        let request = record.request.decode().unwrap_or(Json::Null);
        shown(record.node.as_str(), &record.kind, request)
    });
    shown.collect()
}

/// Returns what is compared of an interrupt: all but the digest, which covers ids of the run.
fn shown(node: &str, kind: &str, mut request: Json) -> Json {
    if let Some(fields) = request.as_object_mut() {
        fields.remove("digest");
    }
    json!({ "node": node, "kind": kind, "request": request })
}

/// A model of the case: all of them take their replies from one script.
#[derive(Debug)]
struct PlayedModel {
    name: ModelName,
    script: Arc<Script>,
}

impl Model for PlayedModel {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        self.script.stream(request)
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        self.script.context_size()
    }
}

const TIME_MAX: Duration = Duration::from_secs(300);
