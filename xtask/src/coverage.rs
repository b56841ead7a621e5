//! `cargo xtask coverage`: `docs/coverage.md`, written from `docs/coverage.toml`.
//!
//! The data names a test for everything that is covered. [`faults`] finds rows that promise something without one, or with one
//! that does not exist; a tidy rule runs it, and compares the page with the data.

use std::fs;

use anyhow::{Context, bail};
use toml::{Table, Value};

use harness::workspace::root;

/// The data, from the root of the workspace.
pub(crate) const DATA: &str = "docs/coverage.toml";
/// The page, from the root of the workspace.
pub(crate) const PAGE: &str = "docs/coverage.md";

/// The verdicts that a row may have.
const VERDICTS: &[&str] = &["yes", "different", "later", "no"];

/// How many lines before a test its attribute may be.
const ATTRIBUTES_MAX: usize = 12;

/// The areas that a later row may belong to.
const AREAS: &[&str] = &["server", "Studio", "terminal", "company"];

/// A part of the page, with a heading.
#[derive(Debug)]
pub(crate) struct Section {
    title: String,
    groups: Vec<Group>,
}

/// A table of the page.
#[derive(Debug)]
struct Group {
    title: String,
    rows: Vec<Row>,
}

/// A line of a table.
#[derive(Debug)]
struct Row {
    feature: String,
    verdict: String,
    area: String,
    remark: String,
    /// Each as `path/from/the/root.rs::name`, or as `path.test.ts::title`.
    tests: Vec<String>,
}

/// Writes the page, or only checks that it is what the data gives.
pub(crate) fn run(check: bool) -> anyhow::Result<()> {
    let sections = read()?;
    let faults = faults(&sections, |path| fs::read_to_string(root().join(path)).ok());
    if !faults.is_empty() {
        bail!("{DATA} has faults:\n  {}", faults.join("\n  "));
    }
    let (path, text) = (root().join(PAGE), page(&sections));
    if !check {
        fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        eprintln!("{PAGE} is written");
    } else if fs::read_to_string(&path).unwrap_or_default() != text {
        bail!("{PAGE} is not what {DATA} gives; run `cargo xtask coverage`");
    }
    Ok(())
}

/// Reads the data of the repository.
pub(crate) fn read() -> anyhow::Result<Vec<Section>> {
    let text =
        fs::read_to_string(root().join(DATA)).with_context(|| format!("{DATA} cannot be read"))?;
    parse(&text).with_context(|| format!("{DATA} is not a table of sections"))
}

pub(crate) fn parse(text: &str) -> anyhow::Result<Vec<Section>> {
    let data: Table = toml::from_str(text)?;
    let sections = tables(&data, "section")?.into_iter();
    sections.map(parse_section).collect()
}

fn parse_section(section: &Table) -> anyhow::Result<Section> {
    let groups = tables(section, "group")?.into_iter();
    Ok(Section {
        title: required(section, "title")?,
        groups: groups.map(parse_group).collect::<anyhow::Result<_>>()?,
    })
}

fn parse_group(group: &Table) -> anyhow::Result<Group> {
    let rows = tables(group, "row")?.into_iter();
    Ok(Group {
        title: required(group, "title")?,
        rows: rows.map(parse_row).collect::<anyhow::Result<_>>()?,
    })
}

fn parse_row(row: &Table) -> anyhow::Result<Row> {
    let known = ["feature", "verdict", "area", "remark", "tests"];
    if let Some(unknown) = row.keys().find(|key| !known.contains(&key.as_str())) {
        bail!("a row has `{unknown}`; rows have {}", known.join(", "));
    }
    let tests: &[Value] = match row.get("tests") {
        None => &[],
        Some(tests) => tests
            .as_array()
            .context("`tests` is not a list")?
            .as_slice(),
    };
    Ok(Row {
        feature: required(row, "feature")?,
        verdict: required(row, "verdict")?,
        area: optional(row, "area")?,
        remark: optional(row, "remark")?,
        tests: tests.iter().map(text_of).collect::<anyhow::Result<_>>()?,
    })
}

fn tables<'a>(table: &'a Table, key: &str) -> anyhow::Result<Vec<&'a Table>> {
    let list = table.get(key).and_then(Value::as_array);
    let list = list.with_context(|| format!("`{key}` is missing, or not a list"))?;
    let tables = list.iter().map(Value::as_table);
    let tables: Option<Vec<&Table>> = tables.collect();
    tables.with_context(|| format!("`{key}` is not a list of tables"))
}

fn required(table: &Table, key: &str) -> anyhow::Result<String> {
    match optional(table, key)? {
        text if text.is_empty() => bail!("`{key}` is missing"),
        text => Ok(text),
    }
}

fn optional(table: &Table, key: &str) -> anyhow::Result<String> {
    match table.get(key) {
        None => Ok(String::new()),
        Some(value) => text_of(value).with_context(|| format!("`{key}` is wrong")),
    }
}

fn text_of(value: &Value) -> anyhow::Result<String> {
    let text = value.as_str().context("a value is not text")?;
    Ok(text.to_owned())
}

/// What is wrong with the data. `source` returns the text of a file by its path from the root.
pub(crate) fn faults(sections: &[Section], source: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let rows = sections.iter().flat_map(|section| &section.groups);
    let rows = rows.flat_map(|group| group.rows.iter().map(move |row| (group, row)));
    let mut faults = Vec::new();
    for (group, row) in rows {
        let of_tests = row
            .tests
            .iter()
            .filter_map(|test| fault_of_test(test, &source));
        for fault in fault_of_row(row).into_iter().chain(of_tests) {
            faults.push(format!("{}: {}: {fault}", group.title, row.feature));
        }
    }
    faults
}

fn fault_of_row(row: &Row) -> Option<String> {
    let (verdict, area) = (row.verdict.as_str(), row.area.as_str());
    let (has_tests, has_remark) = (!row.tests.is_empty(), !row.remark.is_empty());
    match verdict {
        _ if !VERDICTS.contains(&verdict) => Some(format!(
            "there is no verdict `{verdict}`; there are {}",
            VERDICTS.join(", ")
        )),
        _ if row.feature.contains('|') || row.remark.contains('|') => {
            Some("a bar ends the cell of a table".to_owned())
        }
        "later" if !AREAS.contains(&area) => Some(format!(
            "`area` of a later row is one of {}, not `{area}`",
            AREAS.join(", ")
        )),
        "yes" | "different" if !has_tests => Some("no test shows it".to_owned()),
        "different" | "no" if !has_remark => Some("`remark` does not say why".to_owned()),
        _ => None,
    }
}

pub(crate) fn fault_of_test(test: &str, source: impl Fn(&str) -> Option<String>) -> Option<String> {
    let Some((path, name)) = test.split_once("::") else {
        return Some(format!("`{test}` is not `path.rs::name`"));
    };
    match source(path) {
        None => Some(format!("`{path}` is not there")),
        Some(text) if path.ends_with(".ts") && has_typescript_test(&text, name) => None,
        Some(text) if path.ends_with(".rs") && has_test(&text, name) => None,
        Some(_) => Some(format!("`{path}` has no test `{name}`")),
    }
}

/// Whether a source has a function of this name below an attribute that makes it a test.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().collect();
    let call = format!("fn {name}(");
    let at = lines.iter().position(|line| line.contains(&call));
    at.is_some_and(|at| {
        let before = lines[..at].iter().rev().take(ATTRIBUTES_MAX);
        let mut attributes =
            before.take_while(|line| !line.trim().is_empty() && !line.starts_with('}'));
        attributes.any(|line| {
            let line = line.trim();
            line.starts_with("#[test") || line.starts_with("#[tokio::test")
        })
    })
}

/// Whether a source calls `test` or `it` with this title. The title is the first argument, or on the line below `it.each(…)(`.
fn has_typescript_test(source: &str, title: &str) -> bool {
    let title = format!("\"{title}\",");
    let mut before = "";
    source.lines().map(str::trim).any(|line| {
        let call = if line.starts_with(&title) {
            before
        } else {
            line
        };
        before = line;
        let is_call = ["test(", "test.each(", "it(", "it.each("]
            .iter()
            .any(|start| call.starts_with(start));
        is_call && line.contains(&title)
    })
}

/// The text of the page.
pub(crate) fn page(sections: &[Section]) -> String {
    let mut text = INTRODUCTION.to_owned();
    for section in sections {
        text.push_str(&format!("\n## {}\n", section.title));
        for group in &section.groups {
            text.push_str(&format!(
                "\n### {}\n\n| feature | covered | shown by |\n| --- | --- | --- |\n",
                group.title
            ));
            text.extend(group.rows.iter().map(line));
        }
    }
    text
}

fn line(row: &Row) -> String {
    let covered = match (row.verdict.as_str(), row.remark.as_str()) {
        ("later", _) => format!("later: {}", row.area),
        (verdict, "") => verdict.to_owned(),
        (verdict, remark) => format!("{verdict}: {remark}"),
    };
    let tests: Vec<String> = row.tests.iter().map(|test| link(test)).collect();
    format!("| {} | {covered} | {} |\n", row.feature, tests.join(", "))
}

/// The name of a test, as a link to its file.
fn link(test: &str) -> String {
    let (path, name) = test.split_once("::").unwrap_or((test, test));
    format!("[`{name}`](../{path})")
}

const INTRODUCTION: &str = "\
# Coverage

This page compares Superstep with the features of LangGraph, and the agents of Archie with their specifications. *Different* means
that we do it another way on purpose, and *later* names the part of the project that it belongs to. Each row that is covered links
to the tests that show it.

<!-- `cargo xtask coverage` writes this page from coverage.toml. -->
";
