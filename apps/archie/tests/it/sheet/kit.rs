//! Workbooks, a sandbox that is no process, and threads of `sheet` for tests.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use archie_agent::mcp::McpServers;
use archie_agent::{AgentDeps, ModelRegistry, state_of};
use archie_sheet::book::patch::{NewCell, SheetEdits, patch};
use archie_sheet::book::{Content, Place, read};
use archie_sheet::sandbox::{End, Job, Kind, Limits, Outcome, Sandbox, SandboxError};
use archie_sheet::service::{self, AnalysisRequest, OpenedWorkbook};
use archie_sheet::snapshots::SnapshotStore;
use archie_sheet::state::{Actions, GraphState, InformerSpec};
use archie_sheet::tools::{Sandboxes, ToolDeps};
use serde_json::{Value as Json, json};
use superstep::checkpoint::BoxFuture;
use superstep::checkpoint::Memory;
use superstep::{Graph, RunResult, Runtime, Thread, ThreadId};
use superstep_conformance::mortal::Fate;
use superstep_conformance::services;
use superstep_llm::Script;

use crate::kit::settings;

/// A Python with pandas, from `cargo xtask services up`.
pub(crate) fn python() -> PathBuf {
    PathBuf::from(services::program("sandbox"))
}

/// A cell's content, from text: a number, or a word.
pub(crate) fn content(text: &str) -> Content {
    match text.parse() {
        Ok(number) => Content::Number(number),
        Err(_) => Content::Text(text.to_owned()),
    }
}

pub(crate) fn place(text: &str) -> Place {
    Place::parse(text).unwrap()
}

/// A workbook of these sheets and rows.
pub(crate) fn workbook(sheets: &[(&str, &[&[&str]])]) -> Vec<u8> {
    let edits: Vec<SheetEdits> = sheets
        .iter()
        .map(|(name, rows)| {
            let mut cells = BTreeMap::new();
            for (row, texts) in rows.iter().enumerate() {
                for (column, text) in texts
                    .iter()
                    .enumerate()
                    .filter(|(_, text)| !text.is_empty())
                {
                    let place = Place {
                        row: row as u32 + 1,
                        column: column as u32 + 1,
                    };
                    cells.insert(
                        place,
                        NewCell {
                            content: Some(content(text)),
                            ..NewCell::default()
                        },
                    );
                }
            }
            SheetEdits {
                name: (*name).to_owned(),
                is_new: true,
                cells,
                ..SheetEdits::default()
            }
        })
        .collect();
    patch(&package(&empty_parts()), &edits).unwrap()
}

/// A package of these parts.
pub(crate) fn package(parts: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in parts {
        out.start_file(name.as_str(), zip::write::SimpleFileOptions::default())
            .unwrap();
        out.write_all(bytes).unwrap();
    }
    out.finish().unwrap().into_inner()
}

/// A workbook without sheets, which is none yet.
pub(crate) fn empty_parts() -> Vec<(String, Vec<u8>)> {
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let packages = "http://schemas.openxmlformats.org/package/2006";
    let types = "application/vnd.openxmlformats-officedocument.spreadsheetml";
    let styles = format!(
        r#"<styleSheet xmlns="{main}"><fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts><fills count="1"><fill><patternFill patternType="none"/></fill></fills><borders count="1"><border/></borders><cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs><cellXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/></cellXfs></styleSheet>"#
    );
    [
        ("[Content_Types].xml", format!(r#"<Types xmlns="{packages}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="{types}.sheet.main+xml"/><Override PartName="/xl/styles.xml" ContentType="{types}.styles+xml"/></Types>"#)),
        ("_rels/.rels", format!(r#"<Relationships xmlns="{packages}/relationships"><Relationship Id="rId1" Type="{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>"#)),
        ("xl/workbook.xml", format!(r#"<workbook xmlns="{main}"><sheets></sheets></workbook>"#)),
        ("xl/_rels/workbook.xml.rels", format!(r#"<Relationships xmlns="{packages}/relationships"><Relationship Id="rId1" Type="{relations}/styles" Target="styles.xml"/></Relationships>"#)),
        ("xl/styles.xml", styles),
    ]
    .map(|(name, text)| (name.to_owned(), text.into_bytes()))
    .into()
}

/// What runs in the place of Python: lines such as `set Counts!A1 Product`, `print words`, `fail KeyError: 'product'`.
#[derive(Debug)]
pub(crate) struct Fake {
    fate: Arc<Fate>,
    /// Every code that was run, in order; outlives the process.
    pub(crate) ran: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    pub(crate) fn new(fate: &Arc<Fate>, ran: &Arc<Mutex<Vec<String>>>) -> Self {
        Self {
            fate: fate.clone(),
            ran: ran.clone(),
        }
    }
}

impl Sandbox for Fake {
    fn kind(&self) -> Kind {
        Kind::Bubblewrap
    }

    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Outcome, SandboxError>> {
        Box::pin(async move {
            self.fate.point().await;
            let code = fs::read_to_string(job.given.join("step.py"))?;
            self.ran.lock().unwrap().push(code.clone());
            interpret(job, &code);
            self.fate.point().await;
            Ok(Outcome {
                end: End::Exited(0),
                said: String::new(),
                took: Duration::ZERO,
            })
        })
    }
}

fn interpret(job: &Job, code: &str) {
    let current = fs::read(job.given.join("current.xlsx")).unwrap();
    let book = read(&current).unwrap();
    let mut edits: BTreeMap<String, SheetEdits> = BTreeMap::new();
    let mut result = json!({ "ok": true, "error": "", "saved": true, "out": "", "lines": [] });
    for (number, line) in code.lines().enumerate() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "set" | "empty" => {
                let (cell, text) = rest.split_once(' ').unwrap_or((rest, ""));
                let content = (word == "set").then(|| content(text));
                let (sheet, at) = cell.split_once('!').unwrap();
                let edit = edits.entry(sheet.to_owned()).or_insert_with(|| SheetEdits {
                    name: sheet.to_owned(),
                    is_new: book.sheet(sheet).is_none(),
                    ..SheetEdits::default()
                });
                edit.cells.insert(
                    place(at),
                    NewCell {
                        content,
                        ..NewCell::default()
                    },
                );
                let at = place(at);
                result["lines"].as_array_mut().unwrap().push(json!([
                    sheet,
                    at.row,
                    at.column,
                    number + 1
                ]));
            }
            "print" => result["out"] = json!(format!("{rest}\n")),
            "fail" => {
                result["ok"] = json!(false);
                result["saved"] = json!(false);
                result["error"] = json!(rest);
            }
            _ => {}
        }
    }
    let edits: Vec<SheetEdits> = edits.into_values().collect();
    fs::write(
        job.writable.join("workbook.xlsx"),
        patch(&current, &edits).unwrap(),
    )
    .unwrap();
    fs::write(job.writable.join("result.json"), result.to_string()).unwrap();
}

/// One analysis in memory, over the fake.
pub(crate) struct Play {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) runtime: Runtime,
    pub(crate) graph: Graph<GraphState>,
    pub(crate) snapshots: SnapshotStore,
    pub(crate) script: Arc<Script>,
    pub(crate) ran: Arc<Mutex<Vec<String>>>,
}

/// What agents are made with, without a home.
pub(crate) fn deps(folder: &std::path::Path, models: Arc<ModelRegistry>) -> AgentDeps {
    let store = Arc::new(superstep::store::MemoryStore::default());
    AgentDeps {
        data_folder: settings(folder).home,
        prompts_folder: None,
        model: None,
        models,
        mcp: Arc::new(McpServers::new(Vec::new(), folder)),
        store,
        spending: None,
        thread_folders: None,
        web: None,
    }
}

pub(crate) const MODEL: &str = "script:test";

/// Four products, one of them twice.
pub(crate) fn sales() -> Vec<u8> {
    workbook(&[(
        "Sales",
        &[
            &["Product", "Amount"],
            &["Tea", "3"],
            &["Coffee", "5"],
            &["Tea", "2"],
            &["Milk", "1"],
            &["Water", "9"],
        ],
    )])
}

impl Play {
    /// With a model that says these.
    pub(crate) fn with(replies: Json) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ran = Arc::default();
        let models = Arc::new(ModelRegistry::default());
        let script =
            Arc::new(Script::parse("test", &json!({ "replies": replies }).to_string()).unwrap());
        models.put(MODEL, script.clone());
        let snapshots = SnapshotStore::under(folder.path());
        let sandboxes = Arc::new(Sandboxes::only(Arc::new(Fake::new(&Fate::never(), &ran))));
        let bench = ToolDeps {
            sandboxes,
            snapshots: snapshots.clone(),
        };
        let graph = archie_sheet::graph_with(&deps(folder.path(), models), bench).unwrap();
        let runtime = Runtime::new(Memory::default());
        runtime.register(&graph);
        Self {
            folder,
            runtime,
            graph,
            snapshots,
            script,
            ran,
        }
    }

    pub(crate) fn thread(&self) -> Thread<GraphState> {
        self.runtime.thread(&self.graph, "t1").unwrap()
    }

    pub(crate) fn open(&self, bytes: &[u8]) -> OpenedWorkbook {
        let path = self.folder.path().join("sales.xlsx");
        fs::write(&path, bytes).unwrap();
        service::open(&path, &self.snapshots, &ThreadId::new("t1").unwrap()).unwrap()
    }

    /// Runs the analysis until it asks or ends.
    pub(crate) async fn run(&self, order: &AnalysisRequest) -> RunResult<GraphState> {
        self.run_on(order, &sales()).await
    }

    /// Runs the analysis of this workbook until it asks or ends.
    pub(crate) async fn run_on(
        &self,
        order: &AnalysisRequest,
        bytes: &[u8],
    ) -> RunResult<GraphState> {
        let opened = self.open(bytes);
        let thread = self.thread();
        let ran = service::run_analysis(&thread, order, &opened)
            .await
            .unwrap();
        RunResult {
            state: state_of(&thread).await.unwrap(),
            outcome: ran.outcome,
            run: ran.run,
            seq: ran.seq,
        }
    }
}

pub(crate) fn order() -> AnalysisRequest {
    AnalysisRequest {
        instruction: "Count each Product in a new sheet".to_owned(),
        context: String::new(),
        output_dir: "out".to_owned(),
        model: MODEL.to_owned(),
        actions: Actions::Calls,
        informer: None,
        max_steps: 10,
        sandbox: Kind::Bubblewrap,
        limits: Limits::default(),
        recipe: None,
    }
}

/// A question, which is answered without a change.
pub(crate) fn question() -> AnalysisRequest {
    AnalysisRequest {
        instruction: "Count each Product".to_owned(),
        ..order()
    }
}

pub(crate) fn with_informer(order: AnalysisRequest) -> AnalysisRequest {
    let informer = InformerSpec {
        model: MODEL.to_owned(),
        ..InformerSpec::default()
    };
    AnalysisRequest {
        informer: Some(informer),
        ..order
    }
}

/// A reply that calls a tool.
pub(crate) fn calls(tool: &str, args: Json) -> Json {
    json!({ "at": "planner_node", "tool_calls": [{ "name": tool, "args": args }] })
}

/// A reply that runs code.
pub(crate) fn code(code: &str) -> Json {
    calls("PythonInterpreter", json!({ "code": code }))
}

pub(crate) fn says(text: &str) -> Json {
    json!({ "at": "planner_node", "text": text })
}

/// What counting products writes.
pub(crate) const COUNT: &str = "set Counts!A1 Product\nset Counts!B1 Count\nset Counts!A2 Coffee\nset Counts!B2 1\nset Counts!A3 Milk\nset Counts!B3 1\nset Counts!A4 Tea\nset Counts!B4 2\nset Counts!A5 Water\nset Counts!B5 1";
