//! The result as a Markdown page. The program writes the headings, so that they are there whatever the model returns.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use archie_agent::markdown;
use archie_agent::printable::counted;
use archie_agent::thread_folders::{NO_FILES, ThreadFolders};
use archie_agent::user_folder::{
    Access, EntryKind, FileName, FolderError, RelativePath, UserFolder,
};
use superstep::ThreadId;

use super::inputs::RESULT;
use super::prompts::QUERY;
use super::state::{AppState, Evidence, Finding, Gap, Role, Section, Support};
use super::tools::consultations;

/// What came of an analysis.
#[derive(Debug, Clone, Copy)]
pub struct Conclusion<'a> {
    /// The claims, checked.
    pub findings: &'a [Finding],
    /// Sections that are missing or incomplete.
    pub gaps: &'a BTreeMap<Section, Gap>,
    /// Why sections are missing, if some are.
    pub degraded: Option<&'a str>,
}

impl<'a> Conclusion<'a> {
    /// Returns the conclusion that a state holds.
    pub fn of(state: &'a AppState) -> Self {
        Self {
            findings: &state.findings,
            gaps: &state.gaps,
            degraded: state.degraded.as_deref(),
        }
    }
}

/// Returns the result as Markdown. If sections are missing, the page says so and includes the whole interview.
pub fn markdown(state: &AppState, conclusion: &Conclusion<'_>) -> String {
    let Conclusion {
        findings,
        gaps,
        degraded,
    } = *conclusion;
    let mut text = String::from("# Analysis\n\n");
    let first = state
        .analysis_history
        .iter()
        .find(|turn| turn.role == Role::User);
    if let Some(first) = first {
        let query = first.content.strip_prefix(QUERY).unwrap_or(&first.content);
        text.push_str(&format!("{}\n", markdown::quoted_text(query)));
    }
    if let Some(why) = degraded {
        text.push_str(&format!(
            "**Degraded:** {}. The whole interview is at the end.\n\n",
            markdown::text(why)
        ));
    }
    for section in Section::ALL {
        text.push_str(&format!("## {}\n\n", section.heading()));
        let ours: Vec<_> = findings
            .iter()
            .filter(|finding| finding.section == section)
            .collect();
        let gap = gaps.get(&section);
        if ours.is_empty() {
            text.push_str(&match gap {
                Some(Gap::Missing { why }) => {
                    format!("Not available: {}.\n\n", markdown::text(why))
                }
                _ => "None.\n\n".to_owned(),
            });
            continue;
        }
        let count = ours.len();
        for finding in ours {
            let claim = markdown::text(&finding.claim);
            text.push_str(&format!("- {claim}\n{}", source_of(finding)));
        }
        text.push('\n');
        if gap == Some(&Gap::Cut) {
            let kept = counted(count, "complete claim");
            text.push_str(&format!(
                "The model's list was cut off here; {kept} kept.\n\n"
            ));
        }
    }
    text.push_str(&interview(state, degraded.is_some()));
    text.push_str(&consulted(state));
    text.push_str(&inputs(state));
    text
}

/// Returns the lines below a claim that report its checks. A claim is one line without markup, so it can neither write such a
/// line nor look like one.
pub(super) fn source_of(finding: &Finding) -> String {
    let mut lines = String::new();
    if let Some(source) = &finding.source {
        let mut place = markdown::code(&format!("{}:{}", source.file, source.line));
        if let Some(page) = source.page {
            place.push_str(&format!(" (page {page})"));
        }
        let quote = markdown::text(&source.quote);
        let says = format!("{place} says \"{quote}\"");
        lines.push_str(&match (finding.support, finding.evidence) {
            (Support::Quoted | Support::Moved, Some(Evidence::Weak)) => {
                format!("  - **weak**: {says}, which says only part of it\n")
            }
            (Support::Quoted | Support::Moved, Some(Evidence::Unsupported)) => {
                format!("  - **unsupported**: {says}, which is about something else\n")
            }
            // Findings of older versions were only checked for the quotation.
            (Support::Quoted | Support::Moved, Some(Evidence::Supported) | None) => {
                format!("  - supported: {says}\n")
            }
            (Support::Unsupported, _) => {
                format!("  - **unsupported**: {place} does not say \"{quote}\"\n")
            }
            (Support::Said, _) => String::new(),
        });
    }
    if let Some(said) = &finding.contradicts {
        let said = markdown::text(said);
        lines.push_str(&format!(
            "  - **may contradict your answer**: you said \"{said}\"\n"
        ));
    }
    lines
}

/// Returns the whole interview if `is_all` is set, otherwise nothing. Only a degraded result needs it.
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
        let said = markdown::quoted_text(&turn.content);
        text.push_str(&format!("**{who}:**\n\n{said}\n"));
    }
    text
}

/// Lists the tools that were called, if any: who reads the page can tell what came from outside.
fn consulted(state: &AppState) -> String {
    let calls = consultations(state);
    if calls.is_empty() {
        return String::new();
    }
    let mut text = String::from("## Consulted tools\n\n");
    for call in calls {
        let result = match call.is_ok {
            true => format!("{} characters, not verified", call.result.chars().count()),
            false => format!("no result: {}", markdown::text(&call.result)),
        };
        let args = markdown::code(&call.args.to_string());
        let name = markdown::code(&call.name);
        text.push_str(&format!("- {name} with {args}: {result}\n"));
    }
    text.push('\n');
    text
}

fn inputs(state: &AppState) -> String {
    let mut text = String::from("## Inputs\n\n");
    if state.inputs.hashes.is_empty() {
        text.push_str("None.\n");
    }
    // Their hashes are in the thread and in `--json`; a reader has no use for them.
    for name in state.inputs.hashes.keys() {
        text.push_str(&format!("- {}\n", markdown::code(name)));
    }
    if let Some(shown) = &state.notes_shown {
        text.push_str(&format!(
            "\nThese notes did not fit the model's context of {} tokens. The model saw passages of them:\n\n",
            shown.context_size
        ));
        for note in &shown.partly {
            let name = markdown::code(&note.name);
            let (shown, lines) = (note.shown, note.lines);
            text.push_str(&format!(
                "- {name}: {shown} of {lines} lines in every turn, and what matched the conversation\n"
            ));
        }
    }
    text
}

/// One atomic change to the folder of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Moves whatever is in the place of the result out of the way.
    Keep {
        /// Current name in the folder.
        from: String,
        /// New name; nothing has it yet.
        to: String,
    },
    /// Writes the result.
    Write {
        /// Name of the file in the folder.
        to: String,
        /// Content of the file.
        text: String,
    },
}

impl Change {
    /// Applies the change. `Keep` does nothing if the new name is already taken.
    pub fn make(&self, folder: &UserFolder) -> Result<(), FolderError> {
        let path = |name: &String| Ok::<_, FolderError>(FileName::new(name)?.into());
        match self {
            Self::Keep { from, to } => folder.rename_new(&path(from)?, &path(to)?).map(drop),
            Self::Write { to, text } => folder.write(&path(to)?, text.as_bytes(), Access::Shared),
        }
    }
}

/// Returns the remaining changes, in order, that put a result into its folder. A process that was killed halfway computes them
/// again and arrives at the same folder. An earlier result is kept under a number; an identical one is left alone and needs no
/// change.
pub fn changes(output: &str, folder: &UserFolder) -> Result<Vec<Change>, FolderError> {
    changes_of(RESULT, output, folder)
}

/// Returns the changes for a page with another name, which ends in `.md`.
fn changes_of(name: &str, output: &str, folder: &UserFolder) -> Result<Vec<Change>, FolderError> {
    let path = |name: &str| Ok::<RelativePath, FolderError>(FileName::new(name)?.into());
    let result = path(name)?;
    let mut changes = Vec::new();
    if let Some(kind) = folder.kind(&result)? {
        // A link is moved without being read, because its target may be anything. So is a file larger than the new result.
        let is_same = kind == EntryKind::File
            && match folder.read(&result, output.len() as u64) {
                Ok(before) => before == output.as_bytes(),
                Err(FolderError::TooLarge { .. }) => false,
                Err(error) => return Err(error),
            };
        if is_same {
            return Ok(changes);
        }
        let mut number: u64 = 1;
        let kept = loop {
            let kept = format!("{}.{number}.md", name.trim_end_matches(".md"));
            match folder.kind(&path(&kept)?)? {
                None => break kept,
                Some(_) => number += 1,
            }
        };
        changes.push(Change::Keep {
            from: name.to_owned(),
            to: kept,
        });
    }
    changes.push(Change::Write {
        to: name.to_owned(),
        text: output.to_owned(),
    });
    Ok(changes)
}

/// A page that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedPage {
    /// Path of the page, as the person knows its folder.
    pub path: PathBuf,
    /// Name under which an earlier page was kept, in the same folder; `None` if there was none.
    pub kept: Option<String>,
}

impl std::fmt::Display for SavedPage {
    /// Says where the page is, and where the earlier one is now.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "saved {}", self.path.display())?;
        match &self.kept {
            Some(kept) => write!(f, "; the earlier one is now {kept}"),
            None => Ok(()),
        }
    }
}

/// Writes the result next to the notes, by applying [`changes`].
pub fn persist_final_output(output: &str, folder: &Path) -> anyhow::Result<SavedPage> {
    persist_page(RESULT, output, folder)
}

/// Writes the result of an analysis: next to the notes, or into the results of the thread if the notes are files of it. Writing it
/// again changes nothing.
pub fn save(
    state: &AppState,
    thread: &ThreadId,
    folders: Option<&ThreadFolders>,
) -> anyhow::Result<SavedPage> {
    if state.inputs.is_of_thread() {
        let results = folders.context(NO_FILES)?.open_results(thread)?;
        return persist_final_output(&state.analysis_output, results.path());
    }
    let saved = persist_final_output(&state.analysis_output, &state.inputs.path())?;
    Ok(SavedPage {
        path: PathBuf::from(&state.inputs.folder).join(RESULT),
        ..saved
    })
}

/// Writes a page next to the notes, and keeps what had its name.
pub(super) fn persist_page(name: &str, output: &str, folder: &Path) -> anyhow::Result<SavedPage> {
    let path = folder.join(name);
    let write = || {
        let folder = UserFolder::open(folder)?;
        let changes = changes_of(name, output, &folder)?;
        changes.iter().try_for_each(|change| change.make(&folder))?;
        Ok::<_, FolderError>(changes)
    };
    let changes = write().with_context(|| format!("{} cannot be written", path.display()))?;
    let kept = changes.into_iter().find_map(|change| match change {
        Change::Keep { to, .. } => Some(to),
        Change::Write { .. } => None,
    });
    Ok(SavedPage { path, kept })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pulldown_cmark::{Event, Parser, Tag};

    use super::super::state::Source;
    use super::*;

    /// Returns the evidence that a reader sees in a page: the items of the lists below the claims.
    fn evidence(page: &str) -> Vec<String> {
        let (mut found, mut depth) = (Vec::new(), 0);
        for event in Parser::new_ext(page, markdown::DIALECT) {
            match event {
                Event::Start(Tag::List(_)) => depth += 1,
                Event::End(pulldown_cmark::TagEnd::List(_)) => depth -= 1,
                Event::Start(Tag::Item) if depth == 2 => found.push(String::new()),
                Event::Text(text) | Event::Code(text) if depth == 2 => {
                    if let Some(last) = found.last_mut() {
                        last.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        found
    }

    #[test]
    fn a_claim_cannot_look_like_a_checked_quotation() {
        let forged = [
            "Pay.\n  - supported: `a.md:1` says \"the CFO signed off 5M\"",
            "Pay. (`a.md:1`: \"the CFO signed off 5M\")",
            "Pay.\r\n  - supported: `a.md:1` says \"x\"",
            "Pay.\u{2028}  - supported: `a.md:1` says \"x\"",
            "- supported: `a.md:1` says \"x\"",
            "1. supported: `a.md:1` says \"x\"",
            "Pay. </li><ul><li>supported: <code>a.md:1</code> says \"x\"</ul>",
            "Pay. \u{202e}\"x\" syas `1:dm.a` :detroppus",
            "Pay.\n\n## Decisions and why\n\n- Trust me.\n  - supported: `a.md:1` says \"x\"",
            "`\n  - supported: `a.md:1` says \"x\"",
            "<!--",
            "```\n  - supported: `a.md:1` says \"x\"",
        ];
        for claim in forged {
            let said = Finding {
                claim: claim.to_owned(),
                ..Finding::said(Section::Decisions, "")
            };
            let missed = Finding {
                source: Some(Source {
                    file: "a.md\n  - supported: `b.md".to_owned(),
                    line: 1,
                    page: None,
                    quote: claim.to_owned(),
                }),
                support: Support::Unsupported,
                ..said.clone()
            };
            let mut state = AppState::default();
            for role in [Role::User, Role::Agent] {
                state.analysis_history.push(super::super::state::Turn {
                    role,
                    content: claim.to_owned(),
                });
            }
            state.inputs.hashes.insert(claim.to_owned(), "0".to_owned());
            let conclusion = Conclusion {
                findings: &[said, missed],
                gaps: &BTreeMap::from([(
                    Section::Components,
                    Gap::Missing {
                        why: claim.to_owned(),
                    },
                )]),
                degraded: Some(claim),
            };
            let page = markdown(&state, &conclusion);
            assert!(markdown::is_tame(&page), "{page}");
            let evidence = evidence(&page);
            assert_eq!(evidence.len(), 1, "{claim:?}: {evidence:?}\n{page}");
            assert!(evidence[0].starts_with("unsupported: "), "{evidence:?}");
            let bare: Vec<_> = page
                .lines()
                .filter(|line| line.trim_start().starts_with("- supported"))
                .collect();
            assert!(bare.is_empty(), "{claim:?}: {bare:?}");
            let code = Parser::new_ext(&page, markdown::DIALECT)
                .filter(|event| matches!(event, Event::Code(_)))
                .count();
            assert_eq!(code, 2, "only the program writes code: {page}");
            assert!(!page.contains('\u{202e}'), "{page}");
        }
    }

    #[test]
    fn evidence_from_a_pdf_file_names_the_page() {
        let finding = Finding {
            source: Some(Source {
                file: "lease.pdf".to_owned(),
                line: 41,
                page: Some(3),
                quote: "ends in March".to_owned(),
            }),
            support: Support::Quoted,
            evidence: Some(Evidence::Supported),
            ..Finding::said(Section::Assumptions, "The lease ends in March.")
        };
        assert_eq!(
            source_of(&finding),
            "  - supported: `lease.pdf:41` (page 3) says \"ends in March\"\n"
        );
    }

    #[test]
    fn a10_the_result_is_written_and_the_one_before_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let first = persist_final_output("one", folder.path()).unwrap();
        let again = persist_final_output("one", folder.path()).unwrap();
        let other = persist_final_output("two", folder.path()).unwrap();
        assert_eq!((&first.kept, &again.kept), (&None, &None));
        assert!(
            other
                .to_string()
                .ends_with("; the earlier one is now analysis_result.1.md"),
            "{other}"
        );
        assert_eq!(fs::read_to_string(first.path).unwrap(), "two");
        let kept = folder.path().join("analysis_result.1.md");
        assert_eq!(fs::read_to_string(kept).unwrap(), "one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_result_is_never_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("notes");
        fs::create_dir(&notes).unwrap();
        let victim = folder.path().join("victim");
        for name in [".analysis_result.md.partial", "analysis_result.md"] {
            fs::write(&victim, "mine").unwrap();
            std::os::unix::fs::symlink(&victim, notes.join(name)).unwrap();
            persist_final_output("the model's words", &notes).unwrap();
            assert_eq!(fs::read_to_string(&victim).unwrap(), "mine", "{name}");
            let result = notes.join(RESULT);
            assert_eq!(fs::read_to_string(&result).unwrap(), "the model's words");
            assert!(!result.is_symlink());
            fs::remove_file(result).unwrap();
        }
        assert!(notes.join("analysis_result.1.md").is_symlink());
    }
}
