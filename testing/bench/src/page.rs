//! `docs/benchmarks.md` and its plots, made from what the benches left in `results/` and nothing else, so that no figure on the page
//! was typed by anybody.

mod words;

use std::collections::BTreeMap;
use std::fs;

use anyhow::Context;
use serde_json::Value as Json;

use super::plot::{Bar, Group, Kind, Plot, number};
use harness::workspace::root;

pub(super) const RESULTS: &str = "results/bench.json";
pub(super) const RESULTS_OF_RESTATE: &str = "results/bench-restate.json";
pub(super) const RESULTS_OF_SERVER: &str = "results/bench-server.json";
pub(super) const RESULTS_OF_SCALE: &str = "results/bench-scale.json";
const PAGE: &str = "docs/benchmarks.md";
const PLOTS: &str = "docs/benchmarks";

/// Writes the page and its plots again.
pub(super) fn write() -> anyhow::Result<()> {
    for (path, text) in files()? {
        let path = root().join(path);
        fs::create_dir_all(path.parent().context("a file has a folder")?)?;
        fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    eprintln!("{PAGE} is written");
    Ok(())
}

/// All files, by their path from the root of the workspace.
fn files() -> anyhow::Result<BTreeMap<String, String>> {
    let text = fs::read_to_string(root().join(RESULTS)).with_context(|| {
        format!("{RESULTS} is written by `cargo xtask bench all --against peers`")
    })?;
    let mut results: Json = serde_json::from_str(&text)?;
    // Measured apart, for they take more than a database.
    for apart in [RESULTS_OF_RESTATE, RESULTS_OF_SERVER, RESULTS_OF_SCALE] {
        if let Ok(text) = fs::read_to_string(root().join(apart)) {
            add(&mut results, &serde_json::from_str(&text)?);
        }
    }
    Ok(made_of(&results))
}

/// The benches of a file that was measured apart, and the versions that only it has.
fn add(results: &mut Json, others: &Json) {
    if let Some(benches) = results["benches"].as_array_mut() {
        benches.extend(list(&others["benches"]).cloned());
    }
    if let Some(versions) = results["versions"].as_object_mut() {
        for (name, version) in fields(&others["versions"]) {
            versions.entry(name).or_insert_with(|| version.clone());
        }
    }
}

fn made_of(results: &Json) -> BTreeMap<String, String> {
    let mut files = BTreeMap::from([(PAGE.to_owned(), page(results))]);
    for bench in list(&results["benches"]) {
        if let Some(plot) = plot(bench) {
            files.insert(format!("{PLOTS}/{}.svg", text(&bench["bench"])), plot.svg());
        }
    }
    files
}

fn page(results: &Json) -> String {
    let mut page = words::OPENING.to_owned();
    if results["quick"] == true {
        page.push_str(words::QUICK);
    }
    page.push_str(&beside_peers(results));
    for bench in list(&results["benches"]) {
        page.push_str(&section(bench));
    }
    page.push_str(&missed_goals(results));
    page.push_str(&met_goals(results));
    page.push_str(words::METHOD);
    page.push_str(words::FAIRNESS);
    page.push_str(&machine(results));
    page.push_str(words::REPEAT);
    page
}

/// What the page opens with: figures of ours next to those of other runtimes.
fn beside_peers(results: &Json) -> String {
    let is_peer = |row: &&Json| {
        let against = text(&row["against"]);
        let mut sides = list(&results["benches"]).flat_map(|bench| list(&bench["measured"]));
        kind(against) == Kind::Peer && sides.any(|measured| measured["side"] == against)
    };
    let mut part = "\n## Results\n\n".to_owned();
    part.push_str("| work | figure | ours | against | theirs | ratio |\n");
    part.push_str("| --- | --- | ---: | --- | ---: | ---: |\n");
    for row in rows(results).filter(is_peer) {
        part.push_str(&format!("| {} |\n", cells(row).join(" | ")));
    }
    part.push_str(words::RESULTS);
    part
}

fn rows(results: &Json) -> impl Iterator<Item = &Json> {
    list(&results["benches"]).flat_map(|bench| list(&bench["rows"]))
}

/// The rows that have a goal.
fn judged(results: &Json) -> Vec<&Json> {
    rows(results).filter(|row| !row["goal"].is_null()).collect()
}

fn cells(row: &Json) -> [String; 6] {
    [
        text(&row["work"]).to_owned(),
        text(&row["unit"]).to_owned(),
        figure(&row["ours"]),
        text(&row["against"]).to_owned(),
        figure(&row["theirs"]),
        ratio(&row["ratio"]),
    ]
}

fn missed_goals(results: &Json) -> String {
    let judged = judged(results);
    let missed: Vec<&&Json> = judged.iter().filter(|row| row["met"] == false).collect();
    let mut part = format!(
        "\n## Missed goals\n\n{} of {} goals are missed.",
        missed.len(),
        judged.len()
    );
    part.push_str(if missed.is_empty() { "" } else { "\n" });
    for row in missed {
        part.push_str(&format!(
            "\n- {}: {} {}{}; goal: {}",
            text(&row["work"]),
            figure(&row["ours"]),
            text(&row["unit"]),
            beside(row),
            text(&row["goal"])
        ));
    }
    part.push('\n');
    part
}

fn met_goals(results: &Json) -> String {
    let mut part = "\n## Met goals\n\n".to_owned();
    part.push_str("| work | figure | ours | against | theirs | ratio | goal |\n");
    part.push_str("| --- | --- | ---: | --- | ---: | ---: | --- |\n");
    for row in judged(results) {
        if row["met"] == true {
            let goal = text(&row["goal"]);
            part.push_str(&format!("| {} | {goal} |\n", cells(row).join(" | ")));
        }
    }
    part
}

fn beside(row: &Json) -> String {
    match row["against"].as_str() {
        Some(against) => format!(
            ", {against} {}, ratio {}",
            figure(&row["theirs"]),
            ratio(&row["ratio"])
        ),
        None => String::new(),
    }
}

fn machine(results: &Json) -> String {
    let mut part = "\n## Machine and versions\n\n| | |\n| --- | --- |\n".to_owned();
    for (name, value) in fields(&results["machine"]).chain(fields(&results["versions"])) {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        part.push_str(&format!("| {name} | `{value}` |\n"));
    }
    let commit = results["commit"].as_str().unwrap_or("none");
    let dirty = if results["dirty"] == true {
        ", with changes"
    } else {
        ""
    };
    part.push_str(&format!(
        "| commit | `{}`{dirty} |\n",
        commit.get(..12).unwrap_or(commit)
    ));
    part
}

/// One bench: what it is, its plot, and a table for each contest.
fn section(bench: &Json) -> String {
    let name = text(&bench["bench"]);
    let (title, about) = words::about(name);
    let mut part = format!("\n## {title}\n\n{about}\n");
    if plot(bench).is_some() {
        part.push_str(&format!("\n![{title}](benchmarks/{name}.svg)\n"));
    }
    for contest in contests(bench) {
        part.push_str(&contest.table());
    }
    let alone = list(&bench["rows"]).filter(|row| is_own(row, bench));
    let alone: Vec<String> = alone.map(own_row).collect();
    if !alone.is_empty() {
        part.push_str("\nOurs alone:\n\n| work | figure | |\n| --- | ---: | --- |\n");
        part.push_str(&alone.concat());
    }
    part
}

/// Whether a row is about ours alone, such as late turns beside early ones: no side has that name.
fn is_own(row: &Json, bench: &Json) -> bool {
    !list(&bench["measured"]).any(|measured| measured["side"] == row["against"])
}

fn own_row(row: &Json) -> String {
    let beside = match row["against"].as_str() {
        Some(against) => format!("{against}: {}", figure(&row["theirs"])),
        None => String::new(),
    };
    format!(
        "| {} | {} {} | {beside} |\n",
        text(&row["work"]),
        figure(&row["ours"]),
        text(&row["unit"])
    )
}

/// The figures of one work over one store.
struct Contest<'a> {
    work: &'a str,
    store: &'a str,
    measured: Vec<&'a Json>,
}

/// In the order in which they were held.
fn contests(bench: &Json) -> Vec<Contest<'_>> {
    let mut contests: Vec<Contest<'_>> = Vec::new();
    for measured in list(&bench["measured"]) {
        let (work, store) = (text(&measured["work"]), text(&measured["store"]));
        match contests
            .iter_mut()
            .find(|one| (one.work, one.store) == (work, store))
        {
            Some(contest) => contest.measured.push(measured),
            None => contests.push(Contest {
                work,
                store,
                measured: vec![measured],
            }),
        }
    }
    contests
}

impl<'a> Contest<'a> {
    fn title(&self) -> String {
        let store = match self.store {
            "none" => "without a checkpointer",
            "sqlite" => "SQLite",
            "postgres" => "PostgreSQL",
            "restate" => "Restate and PostgreSQL",
            other => other,
        };
        format!("{}, {store}", self.work)
    }

    fn table(&self) -> String {
        let (figures, sides) = (self.names("figure"), self.names("side"));
        let mut table = format!("\n### {}\n\n| |", self.title());
        for figure in &figures {
            table.push_str(&format!(" {figure} | least to most |"));
        }
        table.push_str("\n| --- |");
        table.push_str(&" ---: | --- |".repeat(figures.len()));
        for side in sides {
            table.push_str(&format!("\n| {side} |"));
            for name in &figures {
                table.push_str(&self.cell(side, name));
            }
        }
        table.push('\n');
        table
    }

    fn cell(&self, side: &str, name: &str) -> String {
        match self.find(side, name) {
            None => " | |".to_owned(),
            Some(found) if found["rounds"] == 1 => {
                format!(" {} | one round |", figure(&found["median"]))
            }
            Some(found) => format!(
                " {} | {} to {} |",
                figure(&found["median"]),
                figure(&found["min"]),
                figure(&found["max"])
            ),
        }
    }

    fn find(&self, side: &str, figure: &str) -> Option<&'a Json> {
        let is = |found: &&&Json| found["side"] == side && found["figure"] == figure;
        self.measured.iter().find(is).copied()
    }

    /// The different names of that kind, in their order.
    fn names(&self, kind: &str) -> Vec<&'a str> {
        let mut names = Vec::new();
        for measured in &self.measured {
            let name = text(&measured[kind]);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Bars of the first figure.
    fn group(&self) -> Option<Group> {
        let name = *self.names("figure").first()?;
        let better = if name.ends_with("/s") {
            "longer"
        } else {
            "shorter"
        };
        let bar = |side: &'a str| {
            Some(Bar {
                label: side.to_owned(),
                kind: kind(side),
                value: self.find(side, name)?["median"].as_f64()?,
            })
        };
        Some(Group {
            title: format!("{}: {name} ({better} is better, logarithmic)", self.title()),
            bars: self.names("side").into_iter().filter_map(bar).collect(),
        })
    }
}

fn kind(side: &str) -> Kind {
    match side {
        side if side == "Superstep" || side.ends_with(" threads") => Kind::Ours,
        side if side.starts_with("floor") || side.starts_with("bare") => Kind::Floor,
        _ => Kind::Peer,
    }
}

fn plot(bench: &Json) -> Option<Plot> {
    let groups: Vec<Group> = contests(bench).iter().filter_map(Contest::group).collect();
    (!groups.is_empty()).then_some(Plot { groups })
}

/// A ratio far below one is easier to read as a part.
fn ratio(json: &Json) -> String {
    match json.as_f64() {
        None => String::new(),
        Some(ratio) if ratio > 0.0 && ratio < 0.3 => format!("1/{}", number(1.0 / ratio)),
        Some(ratio) if ratio < 10.0 => format!("{ratio:.2}"),
        Some(ratio) => number(ratio),
    }
}

fn figure(json: &Json) -> String {
    json.as_f64().map_or(String::new(), number)
}

fn list(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_array().into_iter().flatten()
}

/// By name: whether `serde_json` keeps the order in which fields came depends on what else is built with it.
fn fields(json: &Json) -> impl Iterator<Item = (&String, &Json)> {
    let fields: BTreeMap<_, _> = json.as_object().into_iter().flatten().collect();
    fields.into_iter()
}

fn text(json: &Json) -> &str {
    json.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
