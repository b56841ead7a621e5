//! What the checks found, as JSON under `results/`: for each step its last result, with the commit and the seed of that run.
//!
//! A run replaces the results of the steps that it ran and leaves the others as they are, so a record may be of several commits.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value as Json, json};

use crate::steps::{Profile, STEPS};
use crate::verify::Ended;
use harness::workspace::root;

/// One run of the checks.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) profile: Profile,
    /// None outside a repository.
    pub(crate) commit: Option<String>,
    /// Whether files differed from the commit.
    pub(crate) dirty: bool,
    pub(crate) seed: u64,
    pub(crate) steps: Vec<StepResult>,
}

/// One step of it.
#[derive(Debug)]
pub(crate) struct StepResult {
    pub(crate) name: &'static str,
    pub(crate) took: Duration,
    pub(crate) ended: Ended,
}

impl Results {
    /// Puts the steps of this run into `results/verify-<profile>.json`. The repository keeps the history.
    pub(crate) fn write(&self) -> anyhow::Result<()> {
        let name = format!("verify-{}.json", self.profile.as_str());
        let path = root().join("results").join(name);
        let text = serde_json::to_string_pretty(&self.merged_with(&read(&path)?))?;
        std::fs::write(&path, text + "\n")
            .with_context(|| format!("{} cannot be written", path.display()))
    }

    /// The record with the results of this run. A step that is not in the table any more is left out: nobody could repeat it.
    fn merged_with(&self, recorded: &Json) -> Json {
        let named = |step: Json| (step["name"].as_str().unwrap_or_default().to_owned(), step);
        let mut steps: BTreeMap<String, Json> = steps_of(recorded).into_iter().map(named).collect();
        steps.extend(self.steps.iter().map(|step| named(self.recorded(step))));
        let in_order = STEPS.iter().filter_map(|step| steps.remove(step.name));
        json!({ "profile": self.profile.as_str(), "steps": in_order.collect::<Vec<_>>() })
    }

    fn recorded(&self, step: &StepResult) -> Json {
        let mut json = step.to_json();
        json["commit"] = json!(self.commit);
        json["dirty"] = json!(self.dirty);
        json["seed"] = json!(self.seed);
        json
    }
}

/// Returns the steps of a record, each with its commit, its seed and whether files differed from the commit. Old records have
/// these once, for all steps.
pub(crate) fn steps_of(record: &Json) -> Vec<Json> {
    let steps = record["steps"].as_array().cloned().unwrap_or_default();
    let complete = |mut step: Json| {
        for name in ["commit", "dirty", "seed"] {
            if step.get(name).is_none() {
                step[name] = record[name].clone();
            }
        }
        step
    };
    steps.into_iter().map(complete).collect()
}

/// The record in this file; null if there is none yet.
fn read(path: &Path) -> anyhow::Result<Json> {
    match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text)
            .with_context(|| format!("{} is not JSON; restore it from git", path.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Json::Null),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

impl StepResult {
    pub(crate) fn in_words(&self) -> String {
        match &self.ended {
            Ended::Passed { .. } => "passed".to_owned(),
            Ended::Skipped { why } => format!("SKIPPED, {why}"),
            Ended::Failed { why, .. } => format!("FAILED, {why}"),
        }
    }

    fn to_json(&self) -> Json {
        let (status, why, report) = match &self.ended {
            Ended::Passed { report } => ("passed", None, report.as_ref()),
            Ended::Skipped { why } => ("skipped", Some(why), None),
            Ended::Failed { why, report } => ("failed", Some(why), report.as_ref()),
        };
        json!({ "name": self.name, "seconds": self.took.as_secs_f64(), "status": status, "why": why, "report": report })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of the long profile, of one commit and with the seed 9.
    fn run_of(commit: &str, steps: &[(&'static str, Ended)]) -> Results {
        let result = |(name, ended): &(&'static str, Ended)| StepResult {
            name,
            took: Duration::from_millis(1500),
            ended: ended.clone(),
        };
        Results {
            profile: Profile::Long,
            commit: Some(commit.to_owned()),
            dirty: false,
            seed: 9,
            steps: steps.iter().map(result).collect(),
        }
    }

    fn passed() -> Ended {
        Ended::Passed { report: None }
    }

    #[test]
    fn each_step_is_recorded_with_its_commit_its_seed_and_what_it_reported() {
        let report = Some(json!({ "violations": 0 }));
        let run = run_of("abc", &[("crash sim", Ended::Passed { report })]);
        let step = json!({
            "name": "crash sim", "commit": "abc", "dirty": false, "seed": 9,
            "seconds": 1.5, "status": "passed", "why": null, "report": { "violations": 0 },
        });
        assert_eq!(
            run.merged_with(&Json::Null),
            json!({ "profile": "long", "steps": [step] })
        );
    }

    #[test]
    fn a_run_of_some_steps_replaces_them_and_keeps_the_others_with_their_commits() {
        let first = run_of("a", &[("format", passed()), ("wasm", passed())]);
        let why = "no toolchain".to_owned();
        let mut second = run_of("b", &[("deny", passed()), ("wasm", Ended::Skipped { why })]);
        second.dirty = true;
        let merged = second.merged_with(&first.merged_with(&Json::Null));
        let rows = steps_of(&merged);
        let told = rows
            .iter()
            .map(|row| ["name", "commit", "dirty", "status"].map(|name| row[name].to_string()));
        // In the order of the table, whatever the order in which they were recorded.
        assert_eq!(
            told.map(|row| row.join(" ")).collect::<Vec<_>>(),
            [
                r#""format" "a" false "passed""#,
                r#""wasm" "b" true "skipped""#,
                r#""deny" "b" true "passed""#,
            ]
        );
    }

    #[test]
    fn steps_of_an_old_record_keep_the_commit_and_the_seed_that_it_has_for_all() {
        let old = json!({
            "profile": "long", "commit": "old", "dirty": false, "seed": 7,
            "steps": [{ "name": "wasm", "status": "passed" }, { "name": "deny", "status": "failed" }],
        });
        let merged = run_of("new", &[("deny", passed())]).merged_with(&old);
        assert_eq!(merged.get("commit"), None);
        let rows = steps_of(&merged);
        assert_eq!(rows[0]["commit"], "old");
        assert_eq!(rows[0]["seed"], 7);
        assert_eq!(rows[1]["commit"], "new");
        assert_eq!(rows[1]["seed"], 9);
    }

    #[test]
    fn a_step_that_is_no_longer_in_the_table_leaves_the_record() {
        let old =
            json!({ "commit": "old", "steps": [{ "name": "astrology" }, { "name": "wasm" }] });
        let rows = steps_of(&run_of("new", &[]).merged_with(&old));
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0]["name"], "wasm");
    }
}
