//! `archie trace`: prints a thread's trace as a tree, or exports it over OTLP.

use anyhow::{Context, anyhow};
use archie_agent::{Exit, Terminal, json_of};
use serde_json::json;
use superstep_agent::otlp::Otlp;
use superstep_agent::trace::AgentTrace;

use crate::app::App;
use crate::cli::args::TraceArgs;

pub(super) async fn trace(
    args: &TraceArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let (thread, row) = app.find(&args.thread.thread).await?;
    let trace = AgentTrace::from(thread.trace().await?);
    let Some(url) = &args.otlp else {
        match args.thread.json {
            true => terminal.json(&json_of(&trace)),
            false => terminal.line(trace.to_string().trim_end()),
        }
        return Ok(Exit::Done);
    };
    let url = address(url)?;
    let backend = Otlp::to(&url).service("archie").project(&args.project);
    let spans = backend.build()?.send(trace.as_trace()).await.map_err(|error| {
        anyhow!("{error}; is the backend there, and does it take OTLP over HTTP? Its key goes into OTEL_EXPORTER_OTLP_HEADERS")
    })?;
    match args.thread.json {
        true => terminal.json(&json!({
            "thread": row.thread, "spans": spans, "to": url, "project": args.project
        })),
        false => terminal.line(&format!(
            "{}: {spans} spans are at {url}, project {}; spans that are still open are sent when they end",
            row.thread, args.project
        )),
    }
    Ok(Exit::Done)
}

/// Adds the default path of OTLP for traces if the URL has no path.
fn address(url: &str) -> anyhow::Result<String> {
    let mut url: reqwest::Url = url
        .parse()
        .with_context(|| format!("--otlp wants an address such as {EXAMPLE}, not `{url}`"))?;
    if url.path() == "/" {
        url.set_path("/v1/traces");
    }
    Ok(url.into())
}

const EXAMPLE: &str = "http://127.0.0.1:6006";

#[test]
fn an_address_without_a_path_gets_that_of_traces() {
    assert_eq!(address(EXAMPLE).unwrap(), "http://127.0.0.1:6006/v1/traces");
    let own = "https://api.smith.langchain.com/otel/v1/traces";
    assert_eq!(address(own).unwrap(), own);
    assert!(address("phoenix").is_err());
}
