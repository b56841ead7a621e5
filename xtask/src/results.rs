//! What a run of the checks found, as JSON under `results/`: which commit, which seed, each step.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value as Json, json};

use crate::steps::Profile;
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
    /// Writes `results/verify-<profile>.json`, in place of the one before: the repository keeps the history.
    pub(crate) fn write(&self) -> anyhow::Result<PathBuf> {
        let folder = root().join("results");
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        let path = folder.join(format!("verify-{}.json", self.profile.as_str()));
        let text = serde_json::to_string_pretty(&self.to_json())?;
        std::fs::write(&path, text + "\n")
            .with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(path)
    }

    fn to_json(&self) -> Json {
        json!({
            "profile": self.profile.as_str(),
            "commit": self.commit,
            "dirty": self.dirty,
            "seed": self.seed,
            "steps": self.steps.iter().map(StepResult::to_json).collect::<Vec<_>>(),
        })
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

    #[test]
    fn results_name_commit_seed_and_what_a_step_reported() {
        let report = Some(json!({ "violations": 0 }));
        let step = StepResult {
            name: "crash",
            took: Duration::from_millis(1500),
            ended: Ended::Passed { report },
        };
        let results = Results {
            profile: Profile::Long,
            commit: Some("abc".to_owned()),
            dirty: false,
            seed: 9,
            steps: vec![step],
        };
        assert_eq!(
            results.to_json(),
            json!({
                "profile": "long", "commit": "abc", "dirty": false, "seed": 9,
                "steps": [{ "name": "crash", "seconds": 1.5, "status": "passed", "why": null, "report": { "violations": 0 } }],
            })
        );
    }
}
