//! The test suites of official LangGraph clients, run against our server.
//!
//! `serve` is a server with the graphs of a suite, ported ([`graphs`]); `python` installs the integration suite of the Python
//! SDK, runs it against such a server, and counts what passed; `javascript` does so with the suite of a checkout of langgraphjs.
//! `react` runs the suite of its React hooks, and `apps` drives the web apps for LangGraph's server, both in a browser.
//! `cargo xtask suites` starts this program. `differential` makes the same calls to our server as were made to LangGraph's, and
//! compares the answers. `compatibility` writes the page that lists what the server supports of each client. `protocols` runs the
//! official clients of MCP, A2A and AG-UI, `mcp-conformance` and `a2a-kit` the suites of the protocols themselves, `oidc` tokens of a
//! real OpenID provider, and `schemathesis` sends random requests from the OpenAPI documents.

mod a2a_kit;
mod apps_suite;
mod cluster;
mod compatibility;
mod differential;
mod expected;
mod graphs;
mod javascript_suite;
mod junit;
mod mcp_conformance;
mod namespace;
mod protocols_suite;
mod python_suite;
mod react_suite;
mod schemathesis;
mod serve;
mod server_process;
mod stored_log;
mod truncate;
mod web_app;

use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::prelude::*;
use tracing_subscriber::EnvFilter;

use a2a_kit::A2aKitArgs;
use apps_suite::{AppsArgs, BROWSER};
use differential::{DifferentialArgs, ReferenceSource};
use graphs::GraphSet;
use javascript_suite::{JavaScriptArgs, JavaScriptPart, JavaScriptTests};
use protocols_suite::ProtocolsArgs;
use python_suite::{NAMESPACE_COMMAND, PartArgs, PythonArgs};
use react_suite::ReactArgs;
use schemathesis::SchemathesisArgs;
use serve::ServeArgs;

const USAGE: &str = "\
Run the test suites of official LangGraph clients against our server.

usage: server-suites <command>

commands:
  serve --store STORE [--address ADDRESS] [--graphs python|javascript|react|lab|apps|conformance|simulator] [--auth FILE]
                                serve the graphs of a suite (default: python) on ADDRESS (default: 127.0.0.1:2024)
                                --auth    policy file: callers have to authenticate
  python [--only EXPR] [--store STORE] [--expect N] [--json]
                                run the integration suite of the Python SDK
                                --only    only tests that match an expression of pytest
                                --expect  how many tests must pass (default: all)
                                --json    print the results as JSON on the last line
  differential [--live | --record] [--only NAME] [--expect N] [--json]
                                compare our answers with those of LangGraph's server
                                --live    start that server, instead of reading its recorded answers
                                --record  start that server, and record its answers
                                --only    only scripts whose names contain NAME
                                --expect  how many comparisons must be equal (default: all)
  compatibility [--check]       write docs/compatibility.md from the table of client methods
                                --check  only compare the two
  javascript --checkout PATH [--only NAME] [--store STORE] [--expect N] [--json]
                                run the API suite of langgraphjs
                                --checkout  folder of a checkout of langgraphjs: no npm package has these tests
                                --only      only tests whose names match a regular expression
  javascript-auth --checkout PATH [--only NAME] [--store STORE] [--expect N] [--json]
                                run the suite of langgraphjs for authentication
  react --checkout PATH [--only NAME] [--browser FILE] [--store STORE] [--expect N] [--json]
                                run the browser suite of the React hooks of langgraphjs
                                --checkout  folder of a checkout of langgraphjs: no npm package has these tests
                                --only      only tests whose names match a regular expression
                                --browser   program of Chromium (default: /usr/bin/chromium)
  apps --checkout PATH [--only NAME] [--screenshots FOLDER] [--browser FILE] [--store STORE] [--expect N] [--json]
                                drive Agent Inbox, Agent Chat UI and Deep Agents UI in a browser, and RemoteGraph in Python
                                --checkout     folder with the checkouts: agent-inbox, agent-chat-ui, deep-agents-ui
                                --only         only an app, `remote-graph`, or drives whose names contain a text
                                --screenshots  where pictures of the pages go (default: none are taken)
                                --browser      program of Chromium (default: /usr/bin/chromium)
  protocols [--only NAME] [--store STORE] [--json]
                                run the official clients of MCP, A2A and AG-UI
                                --only  only tests whose names match a regular expression
  oidc [--only NAME] [--store STORE] [--json]
                                authenticate with tokens of a real OpenID provider
  mcp-conformance [--only NAME] [--store STORE] [--json]
                                run all scenarios of MCP's conformance suite, and compare with the table of those that pass
                                --only  only scenarios whose names contain NAME
  a2a-kit --checkout PATH [--only EXPR] [--store STORE] [--record] [--json]
                                run A2A's compatibility kit, and compare with the table of its tests that fail
                                --checkout  folder of a checkout of a2a-tck: no package has these tests
                                --only      only tests that match an expression of pytest
                                --record    print the table, with an empty reason for each new failure
  schemathesis [--reference] [--schemas] [--examples N] [--store STORE] [--record] [--json]
                                send random requests from our OpenAPI document; none may end with a status of 5xx
                                --reference  from the document of LangGraph's server
                                --schemas    answers must have the forms of the document, too, apart from known differences
                                --examples   random requests of each operation (default: 20)
                                --record     print the table of differences, with an empty reason for each new one
  help                          print this

STORE is the path of a SQLite file, or postgres://…, or restate:postgres://… to run threads in the Restate of `cargo xtask services up`

exit status: 0 all is well, 1 something failed, 2 the command line is not valid";

fn main() -> ExitCode {
    let command = match parse(lexopt::Parser::from_env()) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A command line, as typed.
#[derive(Debug, PartialEq, Eq)]
enum Command {
    Help,
    Serve(ServeArgs),
    Python(PythonArgs),
    PythonInNamespace(PartArgs, PathBuf),
    Differential(DifferentialArgs),
    Compatibility { is_check: bool },
    JavaScript(JavaScriptArgs),
    JavaScriptInNamespace(JavaScriptPart, PathBuf),
    React(ReactArgs),
    Apps(AppsArgs),
    Protocols(ProtocolsArgs),
    Oidc(ProtocolsArgs),
    McpConformance(ProtocolsArgs),
    A2aKit(A2aKitArgs),
    Schemathesis(SchemathesisArgs),
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Help => {
            print_usage();
            Ok(())
        }
        Command::Serve(args) => {
            write_log();
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()?;
            runtime.block_on(serve::run(&args))
        }
        Command::Python(args) => python_suite::run(&args),
        Command::PythonInNamespace(args, socket) => python_suite::run_in_namespace(&args, socket),
        Command::Differential(args) => differential::run(&args),
        Command::Compatibility { is_check } => compatibility::run(is_check),
        Command::JavaScript(args) => javascript_suite::run(&args),
        Command::JavaScriptInNamespace(args, socket) => {
            javascript_suite::run_in_namespace(&args, socket)
        }
        Command::React(args) => react_suite::run(&args),
        Command::Apps(args) => apps_suite::run(&args),
        Command::Protocols(args) => protocols_suite::run(&args),
        Command::Oidc(args) => protocols_suite::run_oidc(&args),
        Command::McpConformance(args) => mcp_conformance::run(&args),
        Command::A2aKit(args) => a2a_kit::run(&args),
        Command::Schemathesis(args) => schemathesis::run(&args),
    }
}

/// Writes warnings to stderr, or what `RUST_LOG` says.
fn write_log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
}

#[expect(clippy::print_stdout, reason = "help that was asked for is data")]
fn print_usage() {
    println!("{USAGE}");
}

fn parse(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let command = match parser.next()? {
        None => return Err("a command is needed".into()),
        Some(Long("help") | Short('h')) => return Ok(Command::Help),
        Some(Value(name)) => name.string()?,
        Some(other) => return Err(other.unexpected()),
    };
    match command.as_str() {
        "help" => Ok(Command::Help),
        "serve" => parse_serve(parser),
        "python" => parse_python(parser),
        NAMESPACE_COMMAND => parse_namespace(parser),
        "differential" => parse_differential(parser),
        "compatibility" => parse_compatibility(parser),
        "javascript" => parse_javascript(parser, JavaScriptTests::Api),
        "javascript-auth" => parse_javascript(parser, JavaScriptTests::Auth),
        javascript_suite::NAMESPACE_COMMAND => parse_javascript_namespace(parser),
        "react" => Ok(ReactArgs::parse(parser)?.map_or(Command::Help, Command::React)),
        "apps" => parse_apps(parser),
        "protocols" => Ok(ProtocolsArgs::parse(parser)?.map_or(Command::Help, Command::Protocols)),
        "oidc" => Ok(ProtocolsArgs::parse(parser)?.map_or(Command::Help, Command::Oidc)),
        "mcp-conformance" => {
            let args = ProtocolsArgs::parse(parser)?;
            Ok(args.map_or(Command::Help, Command::McpConformance))
        }
        "a2a-kit" => Ok(A2aKitArgs::parse(parser)?.map_or(Command::Help, Command::A2aKit)),
        "schemathesis" => {
            let args = SchemathesisArgs::parse(parser)?;
            Ok(args.map_or(Command::Help, Command::Schemathesis))
        }
        unknown => Err(format!("there is no command `{unknown}`").into()),
    }
}

fn parse_serve(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut store, mut address) = (None, "127.0.0.1:2024".to_owned());
    let mut graphs = GraphSet::default();
    let mut policy: Option<PathBuf> = None;
    while let Some(arg) = parser.next()? {
        match arg {
            Long("auth") => policy = Some(parser.value()?.into()),
            Long("store") => store = Some(parser.value()?.string()?),
            Long("address") => address = parser.value()?.string()?,
            Long("graphs") => graphs = parser.value()?.parse_with(GraphSet::parse)?,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    let store = store.ok_or("`serve` needs `--store`")?;
    Ok(Command::Serve(ServeArgs {
        address,
        store,
        graphs,
        policy,
    }))
}

fn parse_python(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut args = PythonArgs::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("only") => args.only = Some(parser.value()?.string()?),
            Long("store") => args.store = Some(parser.value()?.string()?),
            Long("expect") => args.expect = Some(parser.value()?.parse()?),
            Long("json") => args.json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Python(args))
}

fn parse_namespace(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut only = None;
    let (mut folder, mut socket): (Option<PathBuf>, Option<PathBuf>) = (None, None);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("only") => only = Some(parser.value()?.string()?),
            Long("folder") => folder = Some(parser.value()?.into()),
            Long("socket") => socket = Some(parser.value()?.into()),
            other => return Err(other.unexpected()),
        }
    }
    let needed = "this command is for `python`, which passes `--folder` and `--socket`";
    let args = PartArgs {
        only,
        store: String::new(),
        folder: folder.ok_or(needed)?,
    };
    Ok(Command::PythonInNamespace(args, socket.ok_or(needed)?))
}

fn parse_differential(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut args = DifferentialArgs::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("live") => args.reference = ReferenceSource::Live,
            Long("record") => args.reference = ReferenceSource::Record,
            Long("only") => args.only = Some(parser.value()?.string()?),
            Long("expect") => args.expect = Some(parser.value()?.parse()?),
            Long("json") => args.json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Differential(args))
}

fn parse_compatibility(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut is_check = false;
    while let Some(arg) = parser.next()? {
        match arg {
            Long("check") => is_check = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Compatibility { is_check })
}

fn parse_javascript(
    mut parser: lexopt::Parser,
    tests: JavaScriptTests,
) -> Result<Command, lexopt::Error> {
    let mut checkout: Option<PathBuf> = None;
    let (mut only, mut store, mut expect, mut json) = (None, None, None, false);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("checkout") => checkout = Some(parser.value()?.into()),
            Long("only") => only = Some(parser.value()?.string()?),
            Long("store") => store = Some(parser.value()?.string()?),
            Long("expect") => expect = Some(parser.value()?.parse()?),
            Long("json") => json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    let checkout = checkout.ok_or("this suite needs `--checkout`, a checkout of langgraphjs")?;
    Ok(Command::JavaScript(JavaScriptArgs {
        tests,
        checkout,
        only,
        store,
        expect,
        json,
    }))
}

fn parse_javascript_namespace(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut tests = JavaScriptTests::default();
    let mut only = None;
    let (mut suite, mut folder): (Option<PathBuf>, Option<PathBuf>) = (None, None);
    let mut socket: Option<PathBuf> = None;
    while let Some(arg) = parser.next()? {
        match arg {
            Long("only") => only = Some(parser.value()?.string()?),
            Long("tests") => {
                tests = match parser.value()?.string()?.as_str() {
                    "javascript-auth" => JavaScriptTests::Auth,
                    _ => JavaScriptTests::Api,
                };
            }
            Long("suite") => suite = Some(parser.value()?.into()),
            Long("folder") => folder = Some(parser.value()?.into()),
            Long("socket") => socket = Some(parser.value()?.into()),
            other => return Err(other.unexpected()),
        }
    }
    let needed =
        "this command is for `javascript`, which passes `--suite`, `--folder` and `--socket`";
    let part = JavaScriptPart {
        tests,
        only,
        store: String::new(),
        suite: suite.ok_or(needed)?,
        folder: folder.ok_or(needed)?,
    };
    Ok(Command::JavaScriptInNamespace(part, socket.ok_or(needed)?))
}

fn parse_apps(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut checkout, mut screenshots): (Option<PathBuf>, Option<PathBuf>) = (None, None);
    let mut browser = PathBuf::from(BROWSER);
    let (mut only, mut store, mut expect, mut json) = (None, None, None, false);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("checkout") => checkout = Some(parser.value()?.into()),
            Long("only") => only = Some(parser.value()?.string()?),
            Long("screenshots") => screenshots = Some(parser.value()?.into()),
            Long("browser") => browser = parser.value()?.into(),
            Long("store") => store = Some(parser.value()?.string()?),
            Long("expect") => expect = Some(parser.value()?.parse()?),
            Long("json") => json = true,
            Long("help") | Short('h') => return Ok(Command::Help),
            other => return Err(other.unexpected()),
        }
    }
    let checkout =
        checkout.ok_or("`apps` needs `--checkout`, a folder with checkouts of the apps")?;
    Ok(Command::Apps(AppsArgs {
        checkout,
        only,
        screenshots,
        browser,
        store,
        expect,
        json,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Command, String> {
        parse(lexopt::Parser::from_args(line.split_whitespace())).map_err(|error| error.to_string())
    }

    #[test]
    fn commands_are_understood() {
        assert_eq!(
            parse_line("serve --store a.db --graphs lab"),
            Ok(Command::Serve(ServeArgs {
                address: "127.0.0.1:2024".to_owned(),
                store: "a.db".to_owned(),
                graphs: GraphSet::Lab,
                policy: None,
            }))
        );
        assert_eq!(
            parse_line("python --only cancel --expect 53 --json"),
            Ok(Command::Python(PythonArgs {
                only: Some("cancel".to_owned()),
                store: None,
                expect: Some(53),
                json: true,
            }))
        );
        assert_eq!(parse_line("python --help"), Ok(Command::Help));
        assert_eq!(
            parse_line("differential --live --only fan --expect 18"),
            Ok(Command::Differential(DifferentialArgs {
                only: Some("fan".to_owned()),
                expect: Some(18),
                json: false,
                reference: ReferenceSource::Live,
            }))
        );
        assert_eq!(
            parse_line("schemathesis --reference --examples 50 --json"),
            Ok(Command::Schemathesis(SchemathesisArgs {
                is_reference: true,
                compares_schemas: false,
                examples: 50,
                store: None,
                is_record: false,
                json: true,
            }))
        );
        assert_eq!(
            parse_line("oidc --json"),
            Ok(Command::Oidc(ProtocolsArgs {
                only: None,
                store: None,
                json: true,
            }))
        );
        assert_eq!(
            parse_line("mcp-conformance --only tools"),
            Ok(Command::McpConformance(ProtocolsArgs {
                only: Some("tools".to_owned()),
                store: None,
                json: false,
            }))
        );
        assert_eq!(
            parse_line("a2a-kit --checkout /tmp/kit --record"),
            Ok(Command::A2aKit(A2aKitArgs {
                checkout: PathBuf::from("/tmp/kit"),
                only: None,
                store: None,
                is_record: true,
                json: false,
            }))
        );
        assert_eq!(
            parse_line("compatibility --check"),
            Ok(Command::Compatibility { is_check: true })
        );
        assert_eq!(
            parse_line("javascript --checkout /tmp/js --only stream --expect 40"),
            Ok(Command::JavaScript(JavaScriptArgs {
                tests: JavaScriptTests::Api,
                checkout: PathBuf::from("/tmp/js"),
                only: Some("stream".to_owned()),
                store: None,
                expect: Some(40),
                json: false,
            }))
        );
        assert_eq!(
            parse_line("react --checkout /tmp/js --only queue --json"),
            Ok(Command::React(ReactArgs {
                checkout: PathBuf::from("/tmp/js"),
                only: Some("queue".to_owned()),
                browser: PathBuf::from(BROWSER),
                store: None,
                expect: None,
                json: true,
            }))
        );
        assert_eq!(
            parse_line("apps --checkout /tmp/apps --only agent-inbox --screenshots shots"),
            Ok(Command::Apps(AppsArgs {
                checkout: PathBuf::from("/tmp/apps"),
                only: Some("agent-inbox".to_owned()),
                screenshots: Some(PathBuf::from("shots")),
                browser: PathBuf::from(BROWSER),
                store: None,
                expect: None,
                json: false,
            }))
        );
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for line in [
            "",
            "serve",
            "serve --store a.db --graphs cobol",
            "python --expect many",
            "python-in-namespace --folder a",
            "python-in-namespace --store a.db",
            "differential --store a.db",
            "compatibility --store a.db",
            "javascript --expect 40",
            "javascript-in-namespace --socket a --folder b",
            "react --json",
            "schemathesis --examples many",
            "schemathesis --record",
            "a2a-kit --record",
            "oidc --checkout a",
            "apps --json",
            "ruby",
        ] {
            assert!(parse_line(line).is_err(), "{line:?} was taken");
        }
    }
}
