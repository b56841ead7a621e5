//! The result of an analysis, collected from the model.
//!
//! A model with room for it is asked for the whole result at once. From an answer that is cut off or damaged, the complete
//! claims are kept, and the missing sections are asked for one at a time. A model with a small context is asked for one section
//! at a time from the beginning. Every reply is recorded as a step before the next call, so a crash repeats at most one call,
//! and a section that cannot be had leaves the others alone.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use archie_agent::printable::counted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep::{NodeCx, NodeError};
use superstep_agent::{AgentEvent, Asker, within_recorded};
use superstep_llm::partial_json::{self, PartialItems};
use superstep_llm::structured::output_schema;
use superstep_llm::{Finish, Model, ModelError, OutputSchema, Reply};

use super::contradiction::{Answers, answers_in};
use super::evidence::{self, NoteLines};
use super::interview_end::is_closing;
use super::nodes::{AnalysisPrepareNode, call, stopped};
use super::request::{Ask, Briefing, SECTION_CLAIMS};
use super::result::{self, Conclusion};
use super::state::{
    AppState, AppStateUpdate, Finding, Gap, PromptType, Section, Source, Support, Turn,
};
use super::terms::beginning;
use super::tools::{with_memory, with_results};

/// What the model fills in.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Claims {
    #[schemars(length(max = 12))]
    assumptions: Vec<Claim>,
    #[schemars(length(max = 12))]
    components: Vec<Claim>,
    #[schemars(length(max = 12))]
    alternatives: Vec<Claim>,
    #[schemars(length(max = 12))]
    decisions: Vec<Claim>,
    #[schemars(length(max = 12))]
    open_questions: Vec<Claim>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct Claim {
    #[schemars(length(max = 400))]
    claim: String,
    #[schemars(length(max = 120))]
    #[serde(default)]
    file: String,
    #[serde(default)]
    line: u32,
    #[schemars(length(max = 200))]
    #[serde(default)]
    quote: String,
}

/// The sections collected so far.
#[derive(Debug, Default)]
struct Draft {
    sections: BTreeMap<Section, Vec<Finding>>,
    gaps: BTreeMap<Section, Gap>,
    replies: Vec<Reply>,
}

impl AnalysisPrepareNode {
    /// Returns the result. The model only supplies claims; the program decides the form and checks the citations.
    pub(super) async fn return_final_output(
        &self,
        state: &AppState,
        said: Turn,
        cx: &NodeCx,
    ) -> Result<AppStateUpdate, NodeError> {
        let (model, profile) = self.model(state, cx)?;
        let files = with_memory(&state.file_contents, state);
        let asked = (&*model, profile);
        let briefing = Briefing::new((state, &files), &self.prompts, &said, asked).await?;
        let mut draft = Draft::of(state);
        let is_whole = within_recorded(self.spending.as_ref(), cx, async |asker| {
            draft.collect(&briefing, &*model, asker, cx).await
        });
        let is_whole = is_whole.await?;
        let mut update = match is_whole {
            true => draft.concluded(state, said, model.name().to_string()),
            // What was paid for is kept for when the person raises the limit.
            false => stopped()
                .drafted(draft.sections.keys().copied().collect::<Vec<_>>())
                .gaps(draft.gaps.clone())
                .findings(draft.findings()),
        };
        for reply in &draft.replies {
            update = update.calls(call(PromptType::Final, reply));
        }
        Ok(update)
    }
}

impl Draft {
    /// Continues a result that the budget interrupted.
    fn of(state: &AppState) -> Self {
        let mut draft = Self::default();
        for section in &state.drafted {
            let ours = state.findings.iter();
            let ours = ours.filter(|finding| finding.section == *section).cloned();
            draft.sections.insert(*section, ours.collect());
            if let Some(gap) = state.gaps.get(section) {
                draft.gaps.insert(*section, gap.clone());
            }
        }
        draft
    }

    /// Asks the model until every section is there or known to be missing. Returns false if the person stopped at a limit.
    async fn collect(
        &mut self,
        briefing: &Briefing<'_>,
        model: &dyn Model,
        asker: &Asker<'_>,
        cx: &NodeCx,
    ) -> Result<bool, NodeError> {
        let schema = output_schema::<Claims>().map_err(|why| {
            let name = "Claims".to_owned();
            let why = why.to_string();
            superstep_agent::failure(ModelError::UnsupportedSchema { name, why })
        })?;
        let sources = briefing.source_names();
        let mut wrong = None;
        if self.sections.is_empty() && briefing.has_room_for_all() {
            let ask = Ask {
                text: briefing.turn_text(PromptType::Final),
                tokens_max: briefing.answer_tokens(),
                ..Ask::default()
            };
            let mut request = briefing.request(PromptType::Final, ask, cx)?;
            request.output = Some(schema.clone());
            let Some(reply) = asker.ask_quietly(model, &request).await? else {
                return Ok(false);
            };
            wrong = self.take(reply);
            if self.sections.len() < Section::ALL.len() {
                let kept = counted(self.sections.len(), "heading");
                let told = format!(
                    "the result was not complete; kept {kept}, asking for the others one by one"
                );
                cx.emit_live(AgentEvent::progress(told))?;
            }
        }
        for (at, section) in Section::ALL.into_iter().enumerate() {
            for attempt in 1..=TRIES {
                if self.sections.contains_key(&section) {
                    break;
                }
                let again = match attempt {
                    1 => String::new(),
                    _ => format!("; again, because {}", wrong.as_deref().unwrap_or_default()),
                };
                let heading = section.heading().to_lowercase();
                let told = format!(
                    "writing {heading} ({} of {}){again}",
                    at + 1,
                    Section::ALL.len()
                );
                cx.emit_live(AgentEvent::progress(told))?;
                let ask = Ask {
                    text: briefing.section_text(section, wrong.as_deref()),
                    tokens_max: briefing.section_tokens(),
                    ..Ask::default()
                };
                let mut request = briefing.request(PromptType::Final, ask, cx)?;
                request.output = Some(schema_of_section(&schema, section, &sources));
                request.temperature = Some(0.0);
                let Some(reply) = asker.ask_quietly(model, &request).await? else {
                    return Ok(false);
                };
                wrong = self.take(reply);
                if !self.sections.contains_key(&section) {
                    let none = format!("it has no list `{}`", section.field());
                    wrong.get_or_insert(none);
                }
            }
            let why = wrong.take().unwrap_or_default();
            if let Entry::Vacant(missing) = self.sections.entry(section) {
                missing.insert(Vec::new());
                self.gaps.insert(section, Gap::Missing { why });
            }
        }
        self.drop_example(&briefing.example());
        Ok(true)
    }

    /// Keeps the complete claims of a reply. Returns what is wrong with it if it has none of what is missing.
    fn take(&mut self, reply: Reply) -> Option<String> {
        let text = reply.text();
        let is_cut = reply.finish == Finish::Length;
        self.replies.push(reply);
        let Some(read) = partial_json::read(&text) else {
            return Some(match is_cut {
                true => "it was cut off before the first claim; write less".to_owned(),
                false => "it is not JSON".to_owned(),
            });
        };
        let mut wrong = None;
        for section in Section::ALL {
            if self.sections.contains_key(&section) {
                continue;
            }
            let field = section.field();
            let is_cut = read.cut_in.as_deref() == Some(field);
            let Some(PartialItems { mut items, unfit }) = read.items::<Claim>(field) else {
                continue;
            };
            if items.is_empty() && is_cut {
                wrong = Some(format!(
                    "`{field}` was cut off before the first claim was complete; write shorter claims"
                ));
                continue;
            }
            if items.is_empty() && unfit > 0 {
                wrong = Some(format!(
                    "the items of `{field}` are not objects with a `claim`"
                ));
                continue;
            }
            items.truncate(CLAIMS_MAX);
            if is_cut {
                self.gaps.insert(section, Gap::Cut);
            }
            self.sections.insert(section, findings_of(section, items));
        }
        wrong
    }

    /// Removes the example of the prompts from all sections but the first if a model repeats it in several: it is a line of the
    /// notes, and may well be a claim of one.
    fn drop_example(&mut self, example: &Json) {
        let is_example = |finding: &Finding| example["claim"] == finding.claim.as_str();
        let mut had = 0;
        for findings in self.sections.values_mut() {
            had += usize::from(findings.iter().any(is_example));
            if had > 1 {
                findings.retain(|finding| !is_example(finding));
            }
        }
    }

    fn findings(&self) -> Vec<Finding> {
        self.sections.values().flatten().cloned().collect()
    }

    /// Returns the update with the finished result.
    fn concluded(&self, state: &AppState, said: Turn, model: String) -> AppStateUpdate {
        let mut findings = self.findings();
        let sources = with_results(&state.file_contents, state);
        let answers = Answers::of(&state.analysis_history);
        let own: Vec<&str> = answers_in(&state.analysis_history).collect();
        let lines = NoteLines::of(&sources);
        for finding in &mut findings {
            evidence::check_finding(finding, &sources);
            // A line can say a fact. It cannot say what to decide, or what is not known.
            if !matches!(finding.section, Section::Decisions | Section::Questions) {
                evidence::cite(finding, &lines, &own);
            }
            if finding.section == Section::Decisions {
                finding.contradicts = answers.contradicted_by(&finding.claim);
            }
        }
        let is_missing = |gap: &&Gap| matches!(gap, Gap::Missing { .. });
        let missing: Vec<_> = Section::ALL
            .into_iter()
            .filter(|section| self.gaps.get(section).as_ref().is_some_and(is_missing))
            .map(Section::heading)
            .collect();
        let degraded = (!missing.is_empty())
            .then(|| format!("`{model}` gave no usable answer for {}", missing.join(", ")));
        let output = result::markdown(
            state,
            &Conclusion {
                findings: &findings,
                gaps: &self.gaps,
                degraded: degraded.as_deref(),
            },
        );
        AppStateUpdate::default()
            .analysis_history(said)
            .analysis_output(output)
            .findings(findings)
            .gaps(self.gaps.clone())
            .drafted(Vec::new())
            .degraded(degraded)
    }
}

/// Returns the claims of a section, without empty ones, repeated ones and parroted approvals.
pub(super) fn findings_of(section: Section, items: Vec<Claim>) -> Vec<Finding> {
    let mut known = BTreeSet::new();
    let findings = items.into_iter().map(|claim| claim.into_finding(section));
    findings
        .filter(|finding| !finding.claim.is_empty() && !is_closing(&finding.claim))
        .filter(|finding| known.insert(finding.claim.to_lowercase()))
        .collect()
}

/// Returns the part of the schema for one section, with fewer and shorter claims. The list keeps its name, so a recorded reply
/// is never taken for another section.
fn schema_of_section(all: &OutputSchema, section: Section, sources: &[String]) -> OutputSchema {
    let field = section.field();
    let mut list = all.schema["properties"][field].clone();
    list["maxItems"] = json!(SECTION_CLAIMS);
    for (name, length) in [("claim", 240), ("file", 80), ("quote", 120)] {
        list["items"]["properties"][name]["maxLength"] = json!(length);
    }
    // A small model invents names of files unless it can only choose one.
    let sources = sources.iter().map(String::as_str);
    let names: Vec<&str> = std::iter::once("").chain(sources).collect();
    if names.len() <= NAMES_MAX {
        list["items"]["properties"]["file"] = json!({ "type": "string", "enum": names });
    }
    OutputSchema {
        name: format!("{}_{field}", all.name),
        schema: json!({
            "type": "object",
            "properties": { field: list },
            "required": [field],
            "additionalProperties": false,
        }),
    }
}

impl Claim {
    fn into_finding(self, section: Section) -> Finding {
        let has_source = !self.file.trim().is_empty();
        Finding {
            source: has_source.then(|| Source {
                file: beginning(self.file.trim(), CLAIM_CHARS_MAX).to_owned(),
                line: self.line,
                page: None,
                quote: beginning(self.quote.trim(), CLAIM_CHARS_MAX).to_owned(),
            }),
            support: Support::Said,
            ..Finding::said(section, beginning(self.claim.trim(), CLAIM_CHARS_MAX))
        }
    }
}

/// Maximum number of names that a schema lists.
const NAMES_MAX: usize = 40;
/// How often the model is asked for a section.
const TRIES: usize = 2;
/// Maximum number of claims of a section that are kept; a server may ignore the schema.
pub(super) const CLAIMS_MAX: usize = 100;
/// Maximum length of a claim and of its quotation, in characters, for the same reason.
const CLAIM_CHARS_MAX: usize = 2_000;

#[cfg(test)]
mod tests {
    use superstep_llm::{ModelName, Provider};

    use super::*;

    fn reply(text: &str, finish: Finish) -> Reply {
        Reply {
            answer: superstep_llm::Answer {
                content: text.to_owned().into(),
                ..Default::default()
            },
            usage: None,
            finish,
            model: ModelName::new(Provider::Script, "test"),
            cost: superstep_llm::Cost::Unknown,
        }
    }

    #[test]
    fn the_schema_of_a_section_is_small_closed_and_flat() {
        let all = output_schema::<Claims>().unwrap();
        let one = schema_of_section(&all, Section::Decisions, &["a.md".to_owned()]).schema;
        let list = &one["properties"]["decisions"];
        assert_eq!(list["maxItems"], 6, "{one}");
        assert_eq!(list["items"]["properties"]["claim"]["maxLength"], 240);
        assert_eq!(
            list["items"]["properties"]["file"]["enum"],
            json!(["", "a.md"])
        );
        assert_eq!(list["items"]["additionalProperties"], false);
        assert_eq!(one["required"], json!(["decisions"]));
        assert_eq!(one["properties"].as_object().unwrap().len(), 1);
        assert_eq!(all.schema["properties"]["decisions"]["maxItems"], 12);
    }

    #[test]
    fn a_cut_answer_keeps_its_complete_claims_and_their_sections() {
        let mut draft = Draft::default();
        let cut = r#"{"alternatives": [], "assumptions": [{"claim": "Load stays."}], "components": [{"claim": "A queue."}, {"cla"#;
        assert_eq!(draft.take(reply(cut, Finish::Length)), None);
        let had: Vec<_> = draft.sections.keys().copied().collect();
        assert_eq!(
            had,
            [
                Section::Assumptions,
                Section::Components,
                Section::Alternatives
            ]
        );
        assert_eq!(
            draft.gaps,
            BTreeMap::from([(Section::Components, Gap::Cut)])
        );
        let claims: Vec<_> = draft
            .findings()
            .into_iter()
            .map(|found| found.claim)
            .collect();
        assert_eq!(claims, ["Load stays.", "A queue."]);
    }

    #[test]
    fn an_example_that_a_model_repeats_everywhere_stays_once() {
        let mut draft = Draft::default();
        let all = r#"{"assumptions": [{"claim": "Rent is 5."}], "components": [{"claim": "Rent is 5."}, {"claim": "A shop."}]}"#;
        draft.take(reply(all, Finish::Stop));
        draft.drop_example(&json!({ "claim": "Rent is 5." }));
        let claims = draft.findings().into_iter().map(|found| found.claim);
        assert_eq!(claims.collect::<Vec<_>>(), ["Rent is 5.", "A shop."]);
    }

    #[test]
    fn a_long_claim_and_its_quotation_are_cut() {
        let claim = Claim {
            claim: "a, ".repeat(1 << 20),
            file: "a.md".to_owned(),
            line: 1,
            quote: "ä".repeat(3_000),
        };
        let finding = claim.into_finding(Section::Decisions);
        assert!(finding.claim.chars().count() <= CLAIM_CHARS_MAX);
        let quote = finding.source.unwrap().quote;
        assert_eq!(quote.chars().count(), CLAIM_CHARS_MAX);
    }

    #[test]
    fn an_unusable_answer_says_what_is_wrong() {
        for (text, finish, wrong) in [
            ("Solution APPROVED.", Finish::Stop, "it is not JSON"),
            (
                "Well, let me think",
                Finish::Length,
                "cut off before the first claim",
            ),
            (
                r#"{"decisions": [{"claim": "Use"#,
                Finish::Length,
                "write shorter claims",
            ),
            (
                r#"{"decisions": ["Use a queue."]}"#,
                Finish::Stop,
                "objects with a `claim`",
            ),
        ] {
            let mut draft = Draft::default();
            let said = draft.take(reply(text, finish)).unwrap();
            assert!(said.contains(wrong), "{said}");
            assert!(draft.sections.is_empty(), "{text}");
        }
    }

    #[test]
    fn parroted_approvals_and_repeated_claims_are_no_claims() {
        let mut draft = Draft::default();
        let text = r#"{"decisions": [{"claim": "Solution APPROVED."}, {"claim": "One queue."}, {"claim": "one queue."}, {"claim": " "}]}"#;
        draft.take(reply(text, Finish::Stop));
        assert_eq!(
            draft.findings(),
            [Finding::said(Section::Decisions, "One queue.")]
        );
    }
}
