//! `schemathesis`: random requests from an OpenAPI document, our own or that of LangGraph's server, none of which may make our server
//! fail.
//!
//! [Schemathesis](https://schemathesis.readthedocs.io) makes the requests. With the reference's document it sends what clients of
//! that server may send, and `--schemas` compares our answers with the forms that the document promises.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use free_ports::free_port;
use harness::folder::replace_folder;
use harness::workspace::{cache, in_words, output_of};
use lexopt::prelude::*;
use services::make_python;

use crate::graphs::GraphSet;
use crate::server_process::ServerProcess;

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
}

impl SchemathesisArgs {
    /// Reads what was typed after `schemathesis`; `None` if that asks for help.
    pub(crate) fn parse(mut parser: lexopt::Parser) -> Result<Option<Self>, lexopt::Error> {
        let mut args = Self {
            is_reference: false,
            compares_schemas: false,
            examples: EXAMPLES,
            store: None,
        };
        while let Some(arg) = parser.next()? {
            match arg {
                Long("reference") => args.is_reference = true,
                Long("schemas") => args.compares_schemas = true,
                Long("examples") => args.examples = parser.value()?.parse()?,
                Long("store") => args.store = Some(parser.value()?.string()?),
                Long("help") | Short('h') => return Ok(None),
                other => return Err(other.unexpected()),
            }
        }
        Ok(Some(args))
    }
}

/// Sends the requests, and fails if one of them made the server fail.
pub(crate) fn run(args: &SchemathesisArgs) -> anyhow::Result<()> {
    let installed = install()?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("suite.db").display().to_string();
    let store = args.store.clone().unwrap_or(file);
    let address = format!("127.0.0.1:{}", free_port());
    let log = folder.path().join("server.log");
    let server = ServerProcess::start(&address, &store, GraphSet::Lab, &log)?;
    let sent = send(args, &installed, &address, folder.path());
    let stopped = server.stop();
    let reported = || fs::read_to_string(&log).unwrap_or_default();
    sent.with_context(reported)?;
    stopped.with_context(reported)
}

fn send(
    args: &SchemathesisArgs,
    installed: &Path,
    address: &str,
    folder: &Path,
) -> anyhow::Result<()> {
    let ours = format!("http://{address}/openapi.json");
    let document = match args.is_reference {
        true => reference_document(installed)?.display().to_string(),
        false => ours,
    };
    let checks = match args.compares_schemas {
        true => "not_a_server_error,response_schema_conformance",
        false => "not_a_server_error",
    };
    let mut tool = Command::new(installed.join("venv/bin/st"));
    tool.current_dir(folder)
        .args(["run", &document, "--url", &format!("http://{address}")])
        .args(["--checks", checks, "--phases", "examples,coverage,fuzzing"])
        .args(["--max-examples", &args.examples.to_string()])
        .args(["--seed", "1", "--generation-database", "none", "--no-color"])
        .args(["--request-timeout", REQUEST_SECONDS])
        // A stream that is open is not a failure: it ends when its client leaves.
        .args(["--exclude-path-regex", STREAMS])
        .env("NO_PROXY", "127.0.0.1,localhost")
        // Standard output is for results.
        .stdout(io::stderr());
    let status = tool.status();
    let status = status.with_context(|| format!("cannot start `{}`", in_words(&tool)))?;
    match status.success() {
        true => Ok(()),
        false => bail!("`{}` failed ({status})", in_words(&tool)),
    }
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
