//! `schemathesis`: random requests from an OpenAPI document, our own or that of LangGraph's server, none of which may make our server
//! fail.
//!
//! [Schemathesis](https://schemathesis.readthedocs.io) makes the requests. With the reference's document it sends what clients of
//! that server may send, and `--schemas` compares our answers with the forms that the document promises. Tables have the places where
//! they differ, with the reasons.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use harness::folder::replace_folder;
use harness::workspace::{cache, in_words, output_of};
use lexopt::prelude::*;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use services::make_python;

use crate::expected::{ExpectedResults, TestResults};
use crate::graphs::GraphSet;
use crate::server_process::TestServer;

/// Where our answers differ from our document, and why.
pub(crate) const OUR_TABLE: &str = "schemathesis/ours.json";
/// Where our answers differ from the document of LangGraph's server, and why.
pub(crate) const REFERENCE_TABLE: &str = "schemathesis/reference.json";

/// What was typed after `schemathesis`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SchemathesisArgs {
    /// Whether the requests follow the document of LangGraph's server instead of ours.
    pub(crate) is_reference: bool,
    /// Whether answers must have the forms of the document, too.
    pub(crate) compares_schemas: bool,
    /// How many random requests of each operation are sent.
    pub(crate) examples: u32,
    /// Where the server stores its data. Default: a SQLite file that is deleted afterwards.
    pub(crate) store: Option<String>,
    /// Whether the table of differences is printed, instead of compared.
    pub(crate) is_record: bool,
    pub(crate) json: bool,
}

impl SchemathesisArgs {
    /// Reads what was typed after `schemathesis`; `None` if that asks for help.
    pub(crate) fn parse(mut parser: lexopt::Parser) -> Result<Option<Self>, lexopt::Error> {
        let mut args = Self {
            is_reference: false,
            compares_schemas: false,
            examples: EXAMPLES,
            store: None,
            is_record: false,
            json: false,
        };
        while let Some(arg) = parser.next()? {
            match arg {
                Long("reference") => args.is_reference = true,
                Long("schemas") => args.compares_schemas = true,
                Long("examples") => args.examples = parser.value()?.parse()?,
                Long("store") => args.store = Some(parser.value()?.string()?),
                Long("record") => args.is_record = true,
                Long("json") => args.json = true,
                Long("help") | Short('h') => return Ok(None),
                other => return Err(other.unexpected()),
            }
        }
        if args.is_record && !args.compares_schemas {
            return Err("`--record` needs `--schemas`".into());
        }
        Ok(Some(args))
    }

    /// Returns the differences that are known: a status of 5xx never is.
    fn known(&self) -> anyhow::Result<ExpectedResults> {
        match (self.compares_schemas, self.is_reference) {
            (false, _) => Ok(ExpectedResults::default()),
            (true, false) => ExpectedResults::read(OUR_TABLE),
            (true, true) => ExpectedResults::read(REFERENCE_TABLE),
        }
    }
}

/// Sends the requests. Fails if one of them made the server fail, or if an answer differs from its form where none is known to.
pub(crate) fn run(args: &SchemathesisArgs) -> anyhow::Result<()> {
    let installed = install()?;
    let folder = tempfile::tempdir()?;
    let server = TestServer {
        folder: folder.path(),
        store: args.store.as_deref(),
        graphs: GraphSet::Lab,
        policy: None,
    };
    let known = args.known()?;
    let found = server.run(|address| send(args, &installed, address, folder.path()))?;
    match args.is_record {
        true => known.print_recorded(&found.failures),
        false => report(args, &known, &found),
    }
}

/// What was found.
struct Found {
    /// How many requests were sent.
    requests: u64,
    /// The failures, each with the value `false`.
    failures: TestResults,
}

fn send(
    args: &SchemathesisArgs,
    installed: &Path,
    address: &str,
    folder: &Path,
) -> anyhow::Result<Found> {
    let ours = format!("http://{address}/openapi.json");
    let document = match args.is_reference {
        true => reference_document(installed)?.display().to_string(),
        false => ours,
    };
    let checks = match args.compares_schemas {
        true => "not_a_server_error,response_schema_conformance",
        false => "not_a_server_error",
    };
    let (summary, failures) = (folder.join("summary.json"), folder.join("failures.json"));
    let mut tool = Command::new(installed.join("venv/bin/st"));
    tool.current_dir(folder)
        .args(["run", &document, "--url", &format!("http://{address}")])
        .args(["--checks", checks, "--phases", "examples,coverage,fuzzing"])
        .args(["--max-examples", &args.examples.to_string()])
        .args(["--seed", "1", "--generation-database", "none", "--no-color"])
        .args(["--request-timeout", REQUEST_SECONDS])
        // A stream that is open is not a failure: it ends when its client leaves.
        .args(["--exclude-path-regex", STREAMS])
        .args(["--report", "json", "--report-json-path"])
        .arg(&summary)
        // The file that the tool calls a baseline: what fails, and in which part of a schema.
        .args(["--baseline-update", "--baseline"])
        .arg(&failures)
        .env("NO_PROXY", "127.0.0.1,localhost")
        // Standard output is for results.
        .stdout(io::stderr());
    let status = tool.status();
    let status = status.with_context(|| format!("cannot start `{}`", in_words(&tool)))?;
    let summary = fs::read_to_string(&summary);
    let summary = summary.with_context(|| format!("`{}` failed ({status})", in_words(&tool)))?;
    let summary: Summary = serde_json::from_str(&summary)?;
    ensure!(summary.complete, "the tool did not send all requests");
    ensure!(
        summary.errors.is_empty(),
        "requests failed: {}",
        json!(summary.errors)
    );
    Ok(Found {
        requests: summary.test_cases.generated,
        failures: match failures.is_file() {
            true => read_failures(&fs::read_to_string(failures)?)?,
            false => TestResults::new(),
        },
    })
}

/// Reads the failures, each named by its operation and what failed.
fn read_failures(file: &str) -> anyhow::Result<TestResults> {
    let file: FailureFile = serde_json::from_str(file)?;
    let named = file.entries.into_iter().map(|entry| {
        let FailureEntry {
            operation,
            check,
            signature,
        } = entry;
        let name = match check.as_str() {
            "response_schema_conformance" => format!("{operation}: {signature}"),
            other => format!("{operation}: {other} {signature}"),
        };
        (name, false)
    });
    Ok(named.collect())
}

/// The summary that the tool writes, as far as it is needed.
#[derive(Debug, Deserialize)]
struct Summary {
    /// Whether it was not stopped.
    complete: bool,
    /// Requests without an answer.
    errors: Vec<Json>,
    test_cases: RequestCount,
}

#[derive(Debug, Deserialize)]
struct RequestCount {
    generated: u64,
}

/// The failures that the tool writes.
#[derive(Debug, Deserialize)]
struct FailureFile {
    entries: Vec<FailureEntry>,
}

#[derive(Debug, Deserialize)]
struct FailureEntry {
    operation: String,
    check: String,
    /// Which part of the schema the answer does not fit.
    signature: String,
}

#[expect(clippy::print_stdout, reason = "the results are data")]
fn report(args: &SchemathesisArgs, known: &ExpectedResults, found: &Found) -> anyhow::Result<()> {
    let unexpected = known.unexpected(&found.failures);
    let absent = known.absent(&found.failures);
    for difference in &unexpected {
        eprintln!("unexpected: {difference}");
    }
    // Not an error: whether random requests find a difference depends on what they left behind.
    for difference in &absent {
        eprintln!("not found: {difference}");
    }
    let (requests, differences) = (found.requests, found.failures.len());
    eprintln!("schemathesis: {requests} requests, {differences} differences from the document");
    if args.json {
        let document = match args.is_reference {
            true => "reference",
            false => "ours",
        };
        let report = json!({
            "suite": "schemathesis",
            "document": document,
            "requests": requests,
            "differences": differences,
            "unexpected": unexpected,
            "not_found": absent,
        });
        println!("{report}");
    }
    ensure!(requests > 0, "no request was sent");
    ensure!(
        unexpected.is_empty(),
        "{} failures are unexpected",
        unexpected.len()
    );
    Ok(())
}

/// Returns the document that is in the package of LangGraph's server.
fn reference_document(installed: &Path) -> anyhow::Result<PathBuf> {
    let mut python = Command::new(installed.join("venv/bin/python"));
    python.args(["-c", FIND_DOCUMENT]);
    let found = PathBuf::from(output_of(&mut python)?.trim());
    ensure!(found.is_file(), "{REFERENCE} has no OpenAPI document");
    Ok(found)
}

/// Installs what is missing. Waits for another process that does the same.
fn install() -> anyhow::Result<PathBuf> {
    let suites = cache()?.join("server-suites");
    fs::create_dir_all(&suites).with_context(|| format!("cannot create `{}`", suites.display()))?;
    let lock = File::create(suites.join("lock"))?;
    lock.lock()?;
    let folder = suites.join("schemathesis");
    let wanted = [TOOL, REFERENCE].join("\n");
    let installed = fs::read_to_string(folder.join(INSTALLED));
    if installed.is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    eprintln!("server-suites: installing {TOOL} and {REFERENCE} with pip (about 30 s)");
    replace_folder(&folder, |unfinished| {
        let python = make_python("server-suites", "python3", &unfinished.join("venv"))?;
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "--disable-pip-version-check", "-q", "install"]);
        // Of the other package only the document is needed, and none of what it runs with.
        let mut document = Command::new(pip.get_program());
        document.args(pip.get_args()).args(["--no-deps", REFERENCE]);
        let unreachable = "pip has to reach a registry of Python packages";
        output_of(pip.arg(TOOL)).context(unreachable)?;
        output_of(&mut document).context(unreachable)?;
        fs::write(unfinished.join(INSTALLED), &wanted)?;
        Ok(())
    })?;
    Ok(folder)
}

const TOOL: &str = "schemathesis==4.32.5";
const REFERENCE: &str = "langgraph-api==0.16.7";
/// Lists what was installed; written last.
const INSTALLED: &str = "installed";

/// Prints where the document is: next to the package, without importing it.
const FIND_DOCUMENT: &str = "\
import importlib.metadata as metadata
files = metadata.files('langgraph-api')
print(next(str(file.locate()) for file in files if file.name == 'openapi.json'))";

/// Paths whose answers go on until their client leaves.
const STREAMS: &str = "^/threads/[^/]+/stream(/events)?$";
const EXAMPLES: u32 = 20;
const REQUEST_SECONDS: &str = "20";

#[test]
fn failures_are_named_by_their_operation_and_place() {
    let file = r#"{ "format_version": 1, "entries": [
        { "id": "a", "operation": "GET /info", "check": "response_schema_conformance", "signature": "required" },
        { "id": "b", "operation": "POST /runs", "check": "not_a_server_error", "signature": "500" }
    ] }"#;
    let names: Vec<String> = read_failures(file).unwrap().into_keys().collect();
    assert_eq!(
        names,
        ["GET /info: required", "POST /runs: not_a_server_error 500"]
    );
}
