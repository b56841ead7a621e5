//! What operators are given agrees with the programs: alert rules and the dashboard name metrics that are exported, each alert has
//! a page and a unit test, and manifests use options and probes that exist.
//!
//! `deploy/metrics.json` lists the metrics. Tests of the server and of the worker compare it with what they return.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value as Json;

use super::assert_tidy;
use harness::workspace::root;

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(path: &str) -> Json {
    serde_saphyr::from_str(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn list(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_array().into_iter().flatten()
}

fn metrics() -> BTreeSet<String> {
    let json: Json = serde_json::from_str(&read("deploy/metrics.json")).unwrap();
    let programs = json.as_object().unwrap().values();
    let names = programs.flat_map(|program| program.as_object().unwrap().keys());
    names.cloned().collect()
}

/// Names of metrics of ours in a text that are not exported.
fn unknown_metrics(text: &str, exported: &BTreeSet<String>) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let ours = words.filter(|word| word.starts_with("superstep_"));
    let unknown = ours.filter(|word| !exported.contains(*word));
    unknown.map(str::to_owned).collect()
}

#[test]
fn rules_dashboard_and_pages_name_metrics_that_are_exported() {
    let exported = metrics();
    assert!(exported.len() >= 20, "{exported:?}");
    let mut faults = Vec::new();
    for path in [
        "deploy/prometheus/alerts.yml",
        "deploy/prometheus/alerts.test.yml",
        "deploy/grafana/archie.json",
        "docs/operate-server.md",
        "docs/runbook/queue-slow.md",
        "docs/howto/debug-a-stuck-run.md",
    ] {
        let unknown = unknown_metrics(&read(path), &exported);
        faults.extend(unknown.iter().map(|name| format!("{path}: {name}")));
    }
    assert_tidy(&faults);
    let renamed = BTreeSet::from(["superstep_a".to_owned()]);
    assert_eq!(
        unknown_metrics("rate(superstep_b{x=\"1\"}) superstep_a", &renamed),
        ["superstep_b"]
    );
}

#[test]
fn the_dashboard_shows_every_metric() {
    let dashboard = read("deploy/grafana/archie.json");
    let json: Json = serde_json::from_str(&dashboard).unwrap();
    assert!(list(&json["panels"]).all(|panel| panel["targets"][0]["expr"].is_string()));
    let missing = metrics()
        .into_iter()
        .filter(|name| !dashboard.contains(name));
    assert_tidy(&missing.collect::<Vec<_>>());
}

/// What is wrong with the alerts: one without a page in the book, or without a test that it fires and one that it does not.
fn faults_of_alerts(
    rules: &Json,
    tests: &Json,
    summary: &str,
    page: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut faults = Vec::new();
    let checks: Vec<&Json> = list(&tests["tests"])
        .flat_map(|test| list(&test["alert_rule_test"]))
        .collect();
    for rule in list(&rules["groups"]).flat_map(|group| list(&group["rules"])) {
        let name = rule["alert"].as_str().unwrap_or_default();
        let path = rule["annotations"]["runbook"].as_str().unwrap_or_default();
        let title = format!("# {name}\n");
        if !page(path).is_some_and(|text| text.starts_with(&title)) {
            faults.push(format!("{name}: no page `{path}` with its name"));
        }
        let listed = path.strip_prefix("docs/").unwrap_or(path);
        if !summary.contains(&format!("({listed})")) {
            faults.push(format!("{name}: docs/SUMMARY.md does not list `{path}`"));
        }
        for (fires, what) in [(true, "fires"), (false, "does not fire")] {
            let is_shown = checks.iter().any(|check| {
                check["alertname"] == name && (list(&check["exp_alerts"]).count() > 0) == fires
            });
            if !is_shown {
                faults.push(format!("{name}: no unit test shows that it {what}"));
            }
        }
    }
    faults
}

#[test]
fn each_alert_has_a_page_and_unit_tests() {
    let rules = yaml("deploy/prometheus/alerts.yml");
    let tests = yaml("deploy/prometheus/alerts.test.yml");
    let summary = read("docs/SUMMARY.md");
    let page = |path: &str| fs::read_to_string(root().join(path)).ok();
    assert_tidy(&faults_of_alerts(&rules, &tests, &summary, page));
    assert!(faults_of_alerts(&rules, &Json::Null, "", |_| None).len() >= 4 * 10);
}

#[test]
fn each_page_of_the_runbook_is_that_of_an_alert() {
    let rules = read("deploy/prometheus/alerts.yml");
    let pages = fs::read_dir(root().join("docs/runbook")).unwrap();
    let names = pages.map(|page| page.unwrap().file_name().into_string().unwrap());
    let faults: Vec<_> = names
        .filter(|name| !rules.contains(&format!("docs/runbook/{name}")))
        .collect();
    assert_tidy(&faults);
}

/// The containers of the manifests below `deploy/kubernetes`.
fn containers() -> Vec<Json> {
    let paths = harness::workspace::files().unwrap();
    let manifests = paths
        .iter()
        .filter(|path| path.starts_with("deploy/kubernetes/") && path.ends_with(".yaml"));
    let documents = manifests.flat_map(|path| {
        let documents: Vec<Json> = serde_saphyr::from_multiple(&read(path))
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        documents
    });
    documents
        .flat_map(|document| {
            list(&document["spec"]["template"]["spec"]["containers"])
                .cloned()
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The help of a command, from the page that has all of them.
fn help_of<'a>(cli: &'a str, command: &str) -> &'a str {
    let start = cli.split(&format!("\n## archie {command}\n")).nth(1);
    start
        .unwrap_or_default()
        .split("\n## ")
        .next()
        .unwrap_or_default()
}

#[test]
fn manifests_use_options_probes_and_rights_as_they_are_meant() {
    let cli = read("docs/cli.md");
    let server = read("crates/superstep-server/src/routes/system.rs")
        + &read("crates/superstep-server/src/routes/ready.rs");
    let worker = read("crates/superstep-restate/src/operations.rs");
    let containers = containers();
    assert_eq!(containers.len(), 3);
    let mut faults = Vec::new();
    for container in &containers {
        let name = container["name"].as_str().unwrap_or_default();
        let command = container["args"][0].as_str().unwrap_or_default();
        let help = help_of(&cli, command);
        for arg in list(&container["args"]).skip(1).filter_map(Json::as_str) {
            let option = arg.split('=').next().unwrap_or_default();
            if !help.contains(&format!("{option} ")) && !help.contains(&format!("{option}\n")) {
                faults.push(format!("{name}: `archie {command}` has no `{option}`"));
            }
        }
        let routes = if command == "serve" { &server } else { &worker };
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            let path = container[probe]["httpGet"]["path"].as_str().unwrap_or("-");
            if !routes.contains(&format!("\"{path}\"")) {
                faults.push(format!("{name}: the {probe} asks `{path}`"));
            }
        }
        let rights = &container["securityContext"];
        let is_locked = rights["readOnlyRootFilesystem"] == true
            && rights["allowPrivilegeEscalation"] == false
            && rights["capabilities"]["drop"][0] == "ALL";
        if !is_locked {
            faults.push(format!("{name}: it has rights that it does not need"));
        }
    }
    assert_tidy(&faults);
}
