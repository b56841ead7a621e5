//! The result as people read it. Its headings come from here, so that they are there whatever the model says.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::inputs::RESULT;
use super::prompts::QUERY;
use super::state::{AppState, Finding, Role, Section, Support};

/// The result as Markdown.
pub fn markdown(state: &AppState, findings: &[Finding], degraded: Option<&str>) -> String {
    let mut text = String::from("# Analysis\n\n");
    let first = state
        .analysis_history
        .iter()
        .find(|turn| turn.role == Role::User);
    if let Some(first) = first {
        let query = first.content.strip_prefix(QUERY).unwrap_or(&first.content);
        text.push_str(&format!("> {}\n\n", query.replace('\n', "\n> ")));
    }
    if let Some(why) = degraded {
        text.push_str(&format!(
            "**Degraded:** {why}. What follows was put together without the model.\n\n"
        ));
    }
    for section in Section::ALL {
        text.push_str(&format!("## {}\n\n", section.heading()));
        let ours: Vec<_> = findings
            .iter()
            .filter(|finding| finding.section == section)
            .collect();
        if ours.is_empty() {
            text.push_str("None.\n\n");
            continue;
        }
        for finding in ours {
            text.push_str(&format!("- {}{}\n", finding.claim, source_of(finding)));
        }
        text.push('\n');
    }
    text.push_str(&interview(state, degraded.is_some()));
    text.push_str(&inputs(state));
    text
}

fn source_of(finding: &Finding) -> String {
    let Some(source) = &finding.source else {
        return String::new();
    };
    let place = format!("`{}:{}`", source.file, source.line);
    match finding.support {
        Support::Quoted | Support::Moved => format!(" ({place}: \"{}\")", source.quote),
        Support::Unsupported => format!(
            " (**unsupported**: {place} does not say \"{}\")",
            source.quote
        ),
        Support::Said => String::new(),
    }
}

/// The whole interview where there is nothing better.
fn interview(state: &AppState, is_all: bool) -> String {
    if !is_all {
        return String::new();
    }
    let mut text = String::from("## Interview\n\n");
    for turn in &state.analysis_history {
        let who = match turn.role {
            Role::User => "You",
            Role::Agent => "Agent",
        };
        text.push_str(&format!("**{who}:** {}\n\n", turn.content));
    }
    text
}

fn inputs(state: &AppState) -> String {
    let mut text = String::from("## Inputs\n\n");
    if state.inputs.hashes.is_empty() {
        text.push_str("None.\n");
    }
    for (name, hash) in &state.inputs.hashes {
        text.push_str(&format!("- `{name}` {hash}\n"));
    }
    text
}

/// One change to the folder of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A file is moved, whole or not at all.
    Move {
        /// What.
        from: PathBuf,
        /// Where to.
        to: PathBuf,
    },
    /// A file is written. Who is killed meanwhile leaves a part of it.
    Write {
        /// Which.
        to: PathBuf,
        /// What is to be in it.
        text: String,
    },
}

impl Change {
    /// Makes it.
    pub fn make(&self) -> std::io::Result<()> {
        match self {
            Self::Move { from, to } => fs::rename(from, to),
            Self::Write { to, text } => fs::write(to, text),
        }
    }
}

/// What is to be done, in order, until a result is in its folder. Whoever is killed on the way begins anew, and comes to the
/// same. What was there before is kept under a number, and a result that is there already is left alone.
pub fn changes(output: &str, folder: &Path) -> std::io::Result<Vec<Change>> {
    let path = folder.join(RESULT);
    let mut changes = Vec::new();
    match fs::read_to_string(&path) {
        Ok(before) if before == output => return Ok(changes),
        Ok(_) => {
            let kept = (1..).map(|number: u64| folder.join(format!("analysis_result.{number}.md")));
            let kept = kept.into_iter().find(|kept| !kept.exists());
            changes.push(Change::Move {
                from: path.clone(),
                to: kept.unwrap_or_else(|| path.clone()),
            });
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // Under another name first: the result is there as a whole or not at all.
    let partial = folder.join(format!(".{RESULT}.partial"));
    changes.push(Change::Write {
        to: partial.clone(),
        text: output.to_owned(),
    });
    changes.push(Change::Move {
        from: partial,
        to: path,
    });
    Ok(changes)
}

/// Writes the result beside the inputs, by these [`changes`].
pub fn persist_final_output(output: &str, folder: &Path) -> anyhow::Result<PathBuf> {
    let path = folder.join(RESULT);
    let made =
        changes(output, folder).and_then(|changes| changes.iter().try_for_each(Change::make));
    made.with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a10_the_result_is_written_and_the_one_before_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = persist_final_output("one", folder.path()).unwrap();
        persist_final_output("one", folder.path()).unwrap();
        persist_final_output("two", folder.path()).unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "two");
        let kept = folder.path().join("analysis_result.1.md");
        assert_eq!(fs::read_to_string(kept).unwrap(), "one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
