//! Traces of agents in a real Phoenix, as a person would send them. What needs it belongs to the long profile.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use superstep_conformance::services;

use crate::docs::two_agents;
use crate::kit::Workdir;
use crate::sheet::killed_in_a_plan;

#[test]
fn phoenix_shows_a_trace_of_docs_with_the_names_of_the_brief() {
    let Some(phoenix) = phoenix() else { return };
    let (workdir, docs) = two_agents();
    assert_eq!(workdir.run(&docs, "").code(), Some(0));
    let shown = sent(&workdir, &phoenix);

    let agents = [
        "DocumentationGeneration-Complete",
        "ExecuteAgents",
        "Agent-file-structure",
    ];
    assert!(shown.contains(&path(&agents[..1], "ScanProjectStructure")));
    assert!(shown.contains(&path(&agents[..1], "CreateExecutionContext")));
    assert!(shown.contains(&path(&agents[..1], "AggregateResults")));
    assert!(shown.contains(&path(&agents[..2], "Agent-dependency-analyzer")));
    for part in [
        "InitialAnalysis",
        "EvaluateClarity",
        "GenerateQuestions",
        "Refinement-1",
        "Refinement-2",
        "Finalize",
    ] {
        let wanted = path(&agents, &format!("file-structure-{part}"));
        assert!(shown.contains(&wanted), "{wanted} is not in {shown:#?}");
    }
}

#[test]
fn phoenix_shows_a_run_of_sheet_that_was_killed_as_one_trace() {
    let Some(phoenix) = phoenix() else { return };
    let (workdir, sheet) = killed_in_a_plan();
    assert_eq!(workdir.run(&sheet, "").code(), None, "it is killed");
    let ran = workdir.run(&["resume", &workdir.thread()], "y\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let shown = sent(&workdir, &phoenix);

    for wanted in [
        path(&["sheet", "planner_node"], "chat script.json"),
        path(&["sheet", "informer_node"], "execute_tool SheetSelector"),
        path(&["sheet", "tool_node"], "execute_tool PythonInterpreter"),
        path(&["sheet"], "change_set_node"),
        path(&["sheet"], "waits for a person"),
    ] {
        assert!(shown.contains(&wanted), "{wanted} is not in {shown:#?}");
    }
}

#[test]
fn a_backend_that_is_not_there_is_told_with_what_to_do() {
    let (workdir, docs) = two_agents();
    assert_eq!(workdir.run(&docs, "").code(), Some(0));
    let nobody = "http://127.0.0.1:9";
    let ran = workdir.run(&["trace", &workdir.thread(), "--otlp", nobody], "");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    let told = ran.err();
    assert!(
        told.contains("not sent to `http://127.0.0.1:9/v1/traces`")
            && told.contains("is the backend there"),
        "{told}"
    );
    let ran = workdir.run(&["trace", &workdir.thread(), "--otlp", "phoenix"], "");
    assert!(
        ran.err().contains("such as http://127.0.0.1:6006"),
        "{ran:?}"
    );
}

fn phoenix() -> Option<String> {
    std::env::var_os("SUPERSTEP_LONG")?;
    Some(services::url("phoenix"))
}

/// Sends the trace, holds what Phoenix shows against what `archie trace` does, and gives the paths of all spans.
fn sent(workdir: &Workdir, phoenix: &str) -> Vec<String> {
    let project = format!("archie-{}", workdir.thread());
    let trace = ["trace", &workdir.thread(), "--json"];
    let told = workdir.json(&[&trace[..], &["--otlp", phoenix, "--project", &project]].concat());
    let spans = spans_of(phoenix, &project, told["spans"].as_u64().unwrap() as usize);
    let mut shown: Vec<String> = spans
        .iter()
        .map(|span| names_down_to(span, &spans))
        .collect();
    let mut here = Vec::new();
    for run in workdir.json(&trace)["runs"].as_array().unwrap() {
        gather(run, &[], &mut here);
    }
    shown.sort();
    here.sort();
    assert_eq!(shown, here);
    let ids: Vec<_> = spans
        .iter()
        .map(|span| &span["context"]["trace_id"])
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "one run is one trace");
    shown
}

/// Spans are shown a while after they were taken.
fn spans_of(phoenix: &str, project: &str, count: usize) -> Vec<Json> {
    let url = format!("{phoenix}/v1/projects/{project}/spans?limit=1000");
    let tokio = tokio::runtime::Runtime::new().unwrap();
    let asked = Instant::now();
    loop {
        let told: Json = tokio.block_on(async {
            match reqwest::get(&url).await.unwrap().error_for_status() {
                Ok(told) => told.json().await.unwrap(),
                Err(_) => Json::Null,
            }
        });
        let spans = told["data"].as_array().cloned().unwrap_or_default();
        if spans.len() >= count {
            return spans;
        }
        assert!(asked.elapsed() < Duration::from_secs(60), "{spans:#?}");
        sleep(Duration::from_millis(200));
    }
}

fn names_down_to(span: &Json, spans: &[Json]) -> String {
    let mut names = vec![span["name"].as_str().unwrap()];
    let mut inner = span;
    while let Some(around) = spans
        .iter()
        .find(|around| around["context"]["span_id"] == inner["parent_id"])
    {
        names.push(around["name"].as_str().unwrap());
        inner = around;
    }
    names.reverse();
    joined(&names)
}

fn gather<'a>(span: &'a Json, around: &[&'a str], paths: &mut Vec<String>) {
    let names = [around, &[span["name"].as_str().unwrap()]].concat();
    paths.push(joined(&names));
    for inner in span["inner"].as_array().into_iter().flatten() {
        gather(inner, &names, paths);
    }
}

fn path(around: &[&str], name: &str) -> String {
    joined(&[around, &[name]].concat())
}

/// Without the supersteps, which nobody names.
fn joined(names: &[&str]) -> String {
    let named = names.iter().filter(|name| !name.starts_with("superstep "));
    named.copied().collect::<Vec<_>>().join(" / ")
}
