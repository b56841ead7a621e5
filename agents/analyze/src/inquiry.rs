//! Commands beside the interview: `ask` answers one question about notes, and `build-context` writes down what a newcomer must
//! know about them. Both are graphs of one step, so a crash repeats at most one call, and both can use a memory file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use archie_agent::printable::{counted, summary_line};
use archie_agent::prompts::{PromptFiles, filled};
use archie_agent::{Agent, AgentDeps, AgentUi, Exit, ModelRegistry, Output, markdown, state_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep::checkpoint::BoxFuture;
use superstep::{AnyThread, END, Graph, Node, NodeCx, NodeError, START, State, View};
use superstep_agent::{AgentEvent, Asker, Spending, failure, within_recorded};
use superstep_llm::structured::output_schema;
use superstep_llm::{Message, Model, ModelError, Reply, Request, fit, partial_json};

use super::evidence::check_finding;
use super::final_output::{CLAIMS_MAX, Claim, findings_of};
use super::memory::{Entity, Memory, Relationship};
use super::nodes::call;
use super::passages::NotesView;
use super::request::notice;
use super::result::{persist_page, source_of};
use super::state::{Call, Finding, Inputs, PromptType, Section};
use super::tools::MEMORY_NOTE;
use super::ui::spent;

/// Name of the graph and of the agent.
pub const NAME: &str = "inquiry";
/// Node from which an inquiry starts, and starts again after the person raised a limit.
pub const INQUIRE: &str = "INQUIRE";
/// Node that answers a question.
pub const ASK: &str = "ASK";
/// Node that collects what a newcomer must know.
pub const BUILD_CONTEXT: &str = "BUILD_CONTEXT";

/// State of an inquiry.
#[derive(Clone, Debug, Default, PartialEq, State)]
#[state(rename_all = "camelCase")]
pub struct InquiryState {
    /// The question of `ask`; empty for `build-context`.
    pub question: String,
    /// Name of the context of `build-context`; empty for `ask`.
    pub context_name: String,
    /// Content of each note, by its path in the folder.
    pub file_contents: BTreeMap<String, String>,
    /// Source of the notes.
    pub inputs: Inputs,
    /// Name of the model.
    pub model_name: String,
    /// Path of the memory file; empty if there is none.
    pub memory_file: String,
    /// What the memory file held at the start.
    pub memory: Memory,
    /// The answer as Markdown, or the page of the context.
    pub answer: String,
    /// What `build-context` learned for the memory file.
    pub learned: Memory,
    /// Usage of every model call, oldest first.
    #[state(append)]
    pub calls: Vec<Call>,
    /// Why it stopped early, if it did: `budget`.
    pub stopped: Option<String>,
}

/// Builds the agent, with its graph and its user interface.
pub fn agent(deps: &AgentDeps) -> anyhow::Result<Arc<Agent>> {
    let description = "answers a question about notes, or writes their context";
    Ok(Arc::new(Agent::new(graph(deps)?, description, InquiryUi)))
}

/// Builds the graph. Fails if a prompt file of the person cannot be read.
pub fn graph(deps: &AgentDeps) -> anyhow::Result<Graph<InquiryState>> {
    let inquirer = Inquirer {
        models: deps.models.clone(),
        prompts: InquiryPrompts::of(NAME, deps)?,
        spending: deps.spending.clone(),
    };
    let graph = Graph::builder(NAME)
        .context_schema(deps.models.context_schema())
        .node(INQUIRE, InquireNode)
        .node(ASK, AskNode(inquirer.clone()))
        .node(BUILD_CONTEXT, BuildContextNode(inquirer))
        .edge(START, INQUIRE)
        .route(
            INQUIRE,
            &[ASK, BUILD_CONTEXT, END],
            |state: &InquiryState| match (state.question.is_empty(), state.context_name.is_empty())
            {
                (false, _) => ASK,
                (true, false) => BUILD_CONTEXT,
                (true, true) => END,
            },
        )
        .edge(ASK, END)
        .edge(BUILD_CONTEXT, END)
        .build()?;
    Ok(graph)
}

/// Prompt texts with their `{{placeholders}}`.
#[derive(Debug, Clone)]
struct InquiryPrompts {
    system: String,
    context: String,
    entities: String,
}

impl Default for InquiryPrompts {
    fn default() -> Self {
        Self {
            system: include_str!("prompts/inquiry/system.md").to_owned(),
            context: include_str!("prompts/inquiry/context.md").to_owned(),
            entities: include_str!("prompts/inquiry/entities.md").to_owned(),
        }
    }
}

impl PromptFiles for InquiryPrompts {
    fn files(&mut self) -> Vec<(&'static str, &mut String)> {
        vec![
            ("system.md", &mut self.system),
            ("context.md", &mut self.context),
            ("entities.md", &mut self.entities),
        ]
    }
}

#[derive(Clone)]
struct Inquirer {
    models: Arc<ModelRegistry>,
    prompts: InquiryPrompts,
    spending: Option<Spending>,
}

struct InquireNode;

struct AskNode(Inquirer);

struct BuildContextNode(Inquirer);

/// Facts as the model fills them in.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Facts {
    #[schemars(length(max = 12))]
    facts: Vec<Claim>,
}

impl Inquirer {
    fn model(&self, state: &InquiryState, cx: &NodeCx) -> Result<Arc<dyn Model>, NodeError> {
        self.models.get_in_run(&state.model_name, cx)
    }

    /// Returns a request with the notes, the memory and a question, cut to fit the model.
    async fn request(
        &self,
        state: &InquiryState,
        (label, text): (&str, String),
        model: &dyn Model,
        cx: &NodeCx,
    ) -> Result<Request, NodeError> {
        let context_size = model.context_size().await.map_err(failure)?;
        let files = sources(state);
        let topic = format!("{} {}", state.question, state.context_name);
        let notes = NotesView::new(&files, &topic, context_size);
        if let Some(shown) = &notes.shown {
            cx.emit_live(AgentEvent::progress(notice(shown)))?;
        }
        let shown = match notes.text.is_empty() {
            true => "(There are no notes.)\n",
            false => &notes.text,
        };
        let system = filled(&self.prompts.system, &[("files", shown)]);
        let mut request = Request::new(label, vec![Message::system(system), Message::user(text)]);
        request.tokens_max = Some(match context_size {
            Some(size) => u32::try_from(size / 4)
                .unwrap_or(u32::MAX)
                .clamp(384, 2_048),
            None => 2_048,
        });
        if let Some(size) = context_size {
            fit::fit(&mut request, size);
        }
        Ok(request)
    }

    /// Asks for a JSON object until `read` accepts it, twice at most. Returns `None` if the person stopped at a limit.
    async fn fill<T>(
        &self,
        mut request: Request,
        (model, asker): (&dyn Model, &Asker<'_>),
        replies: &mut Vec<Reply>,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<Option<T>>, NodeError> {
        for attempt in 1..=2 {
            let Some(reply) = asker.ask_quietly(model, &request).await? else {
                return Ok(None);
            };
            let value = read(&reply.text());
            replies.push(reply);
            if value.is_some() {
                return Ok(Some(value));
            }
            if let Some(last) = request.messages.pop().filter(|_| attempt == 1) {
                let again = "Your last answer could not be used: it is not the JSON object that was asked for. Answer again with only that object.";
                request
                    .messages
                    .push(Message::user(format!("{}\n\n{again}", last.text())));
            }
        }
        Ok(Some(None))
    }
}

/// Returns the notes, and the memory as a note of its own.
fn sources(state: &InquiryState) -> BTreeMap<String, String> {
    let mut files = state.file_contents.clone();
    let memory = state.memory.as_note();
    if !memory.is_empty() {
        files.insert(MEMORY_NOTE.to_owned(), memory);
    }
    files
}

impl Node<InquiryState> for InquireNode {
    async fn run(
        &self,
        _state: View<InquiryState>,
        _cx: NodeCx,
    ) -> Result<superstep::Command<InquiryState>, NodeError> {
        Ok(InquiryStateUpdate::default().into())
    }
}

impl Node<InquiryState> for AskNode {
    async fn run(
        &self,
        state: View<InquiryState>,
        cx: NodeCx,
    ) -> Result<superstep::Command<InquiryState>, NodeError> {
        let model = self.0.model(&state, &cx)?;
        let text = (ASK_LABEL, state.question.clone());
        let request = self.0.request(&state, text, &*model, &cx).await?;
        let reply = within_recorded(self.0.spending.as_ref(), &cx, async |asker| {
            asker.ask(&*model, &request).await
        });
        let Some(reply) = reply.await? else {
            return Ok(stopped().into());
        };
        let answer = match reply.text().trim() {
            "" => "The model gave no answer.".to_owned(),
            text => text.to_owned(),
        };
        Ok(InquiryStateUpdate::default()
            .answer(answer)
            .calls(call(PromptType::Initial, &reply))
            .into())
    }
}

impl Node<InquiryState> for BuildContextNode {
    async fn run(
        &self,
        state: View<InquiryState>,
        cx: NodeCx,
    ) -> Result<superstep::Command<InquiryState>, NodeError> {
        let inquirer = &self.0;
        let model = inquirer.model(&state, &cx)?;
        let name = state.context_name.as_str();
        let prompt = filled(&inquirer.prompts.context, &[("name", name)]);
        let mut facts = inquirer
            .request(&state, (CONTEXT_LABEL, prompt), &*model, &cx)
            .await?;
        facts.output = Some(output_schema::<Facts>().map_err(unsupported)?);
        let prompt = inquirer.prompts.entities.clone();
        let mut entities = inquirer
            .request(&state, (ENTITIES_LABEL, prompt), &*model, &cx)
            .await?;
        entities.output = Some(output_schema::<Memory>().map_err(unsupported)?);
        let mut replies = Vec::new();
        let filled = within_recorded(inquirer.spending.as_ref(), &cx, async |asker| {
            let with = (&*model, asker);
            let facts = inquirer.fill(facts, with, &mut replies, facts_of).await?;
            let Some(facts) = facts else { return Ok(None) };
            let learned = inquirer
                .fill(entities, with, &mut replies, memory_of)
                .await?;
            Ok(learned.map(|learned| (facts, learned)))
        });
        let filled = filled.await?;
        let mut update = match filled {
            None => stopped(),
            Some((facts, learned)) => {
                let page = page(&state, facts, learned.as_ref());
                InquiryStateUpdate::default()
                    .answer(page)
                    .learned(learned.unwrap_or_default())
            }
        };
        for reply in &replies {
            update = update.calls(call(PromptType::Final, reply));
        }
        Ok(update.into())
    }
}

fn unsupported(why: superstep_llm::structured::NotFlat) -> NodeError {
    let (name, why) = (why.form.clone(), why.to_string());
    failure(ModelError::UnsupportedSchema { name, why })
}

fn stopped() -> InquiryStateUpdate {
    InquiryStateUpdate::default().stopped(Some("budget".to_owned()))
}

/// Reads the complete facts of an answer, also of one that is cut off.
fn facts_of(text: &str) -> Option<Vec<Finding>> {
    let mut items = partial_json::read(text)?.items::<Claim>("facts")?.items;
    items.truncate(CLAIMS_MAX);
    let findings = findings_of(Section::Components, items);
    (!findings.is_empty()).then_some(findings)
}

/// Reads the complete entities and relationships of an answer, without relationships to unknown entities.
fn memory_of(text: &str) -> Option<Memory> {
    let read = partial_json::read(text)?;
    let entities = read.items::<Entity>("entities")?.items;
    let relationships = read.items::<Relationship>("relationships");
    let mut answer = Memory {
        entities,
        relationships: relationships.map_or(Vec::new(), |items| items.items),
    };
    answer.cut();
    let mut memory = Memory::default();
    memory.merge(answer);
    (!memory.entities.is_empty()).then_some(memory)
}

/// Returns the page of a context. The program writes the headings and checks the quotations.
fn page(state: &InquiryState, facts: Option<Vec<Finding>>, learned: Option<&Memory>) -> String {
    let mut text = format!(
        "# Context: {}\n\n## Facts\n\n",
        markdown::text(&state.context_name)
    );
    let sources = sources(state);
    match facts {
        None => text.push_str("Not available: the model gave no facts in the required form.\n"),
        Some(facts) => {
            for mut fact in facts {
                check_finding(&mut fact, &sources);
                text.push_str(&format!(
                    "- {}\n{}",
                    markdown::text(&fact.claim),
                    source_of(&fact)
                ));
            }
        }
    }
    text.push_str("\n## Entities\n\n");
    let learned = learned.filter(|memory| !memory.entities.is_empty());
    match learned {
        None => text.push_str("Not available: the model named none in the required form.\n"),
        Some(memory) => {
            for entity in &memory.entities {
                let name = markdown::text(&entity.name);
                let kind = markdown::text(&entity.kind);
                let description = markdown::text(&entity.description);
                text.push_str(&format!("- **{name}** ({kind}): {description}\n"));
            }
            for relationship in &memory.relationships {
                let line = format!(
                    "{} {} {}",
                    relationship.from, relationship.kind, relationship.to
                );
                text.push_str(&format!("- {}\n", markdown::text(&line)));
            }
        }
    }
    text.push_str("\n## Inputs\n\n");
    for name in state.inputs.hashes.keys() {
        text.push_str(&format!("- {}\n", markdown::code(name)));
    }
    text
}

/// Returns the file name of a context. Fails if the name has anything but letters, digits, `-` and `_`.
pub fn context_file(name: &str) -> anyhow::Result<String> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_".contains(c);
    anyhow::ensure!(
        !name.is_empty() && name.len() <= 80 && name.chars().all(is_plain),
        "`{name}` is not a name for a context: use up to 80 letters, digits, - and _"
    );
    Ok(format!("{name}_context.md"))
}

/// Prints an answer, or writes a context and the memory file.
#[derive(Debug)]
struct InquiryUi;

impl AgentUi for InquiryUi {
    fn speaker(&self) -> &'static str {
        ""
    }

    fn is_finished(&self, state: &Json) -> bool {
        state["answer"] != json!("")
    }

    fn reopen(&self, state: &Json) -> Option<(&'static str, Json)> {
        let is_stopped = !state["stopped"].is_null();
        is_stopped.then(|| (INQUIRE, json!({ "stopped": null })))
    }

    fn with_model(&self, _state: &Json, model: &str) -> Option<Json> {
        Some(json!({ "modelName": model }))
    }

    fn describe_input(&self, input: &Json) -> Option<String> {
        let text = |name: &str| input[name].as_str().filter(|text| !text.is_empty());
        match (text("question"), text("contextName")) {
            (Some(question), _) => Some(format!("the question “{question}”")),
            (None, Some(name)) => Some(format!("the name of a context, “{name}”")),
            (None, None) => None,
        }
    }

    fn describe_step(&self, node: &str, update: &Json) -> Option<String> {
        let is_stopped = !update["stopped"].is_null();
        Some(match node {
            ASK | BUILD_CONTEXT if is_stopped => "stopped at the budget".to_owned(),
            INQUIRE => String::new(),
            ASK => "wrote the answer".to_owned(),
            BUILD_CONTEXT => "wrote the context".to_owned(),
            _ => return None,
        })
    }

    fn finish<'a>(
        &'a self,
        output: &'a Output<'a>,
        thread: &'a dyn AnyThread,
    ) -> BoxFuture<'a, anyhow::Result<Exit>> {
        Box::pin(finish(thread, output))
    }
}

async fn finish(thread: &dyn AnyThread, output: &Output<'_>) -> anyhow::Result<Exit> {
    let state: InquiryState = state_of(thread).await?;
    let id = thread.id();
    if state.stopped.is_some() {
        output.tell(&format!(
            "stopped at the budget; everything is kept, `archie resume {id}` asks again"
        ));
        return Ok(Exit::Budget);
    }
    let mut saved = Json::Null;
    if !state.context_name.is_empty() {
        let file = context_file(&state.context_name)?;
        let page = persist_page(&file, &state.answer, &state.inputs.path())?;
        let shown = Path::new(&state.inputs.folder).join(&file);
        saved = json!(shown.display().to_string());
        if let Some(kept) = page.kept {
            output.tell(&format!("the earlier {file} is now {kept}"));
        }
        remember(&state, output)?;
    }
    // Tokens may be lost on their way: only an answer that arrived whole is not printed again.
    let is_shown = !output.json && output.streamed.trim() == state.answer.trim();
    match (output.json, &saved) {
        (true, _) => output.terminal.json(&json!({
            "thread": id.to_string(), "answer": state.answer, "saved": saved, "learned": state.learned, "calls": state.calls,
        })),
        (false, Json::String(path)) => output.terminal.line(&format!("saved {path}")),
        (false, _) if is_shown => {}
        (false, _) => output.terminal.markdown(&state.answer),
    }
    // The usage of a call stands below its streamed answer.
    if !is_shown {
        output.terminal.aside(&spent(&state.calls).to_string());
    }
    Ok(Exit::Done)
}

/// Merges what was learned into the memory file, if there is one. Reads it again, because somebody may have changed it.
fn remember(state: &InquiryState, output: &Output<'_>) -> anyhow::Result<()> {
    if state.memory_file.is_empty() {
        return Ok(());
    }
    let path = Path::new(&state.memory_file);
    let mut memory = Memory::read(path)?;
    let merged = memory.merge(state.learned.clone());
    memory.write(path)?;
    let file = summary_line(&state.memory_file, 200);
    let added = counted(merged.added, "new item");
    output.tell(&format!("remembered {added} in {file}"));
    Ok(())
}

const ASK_LABEL: &str = "ask";
const CONTEXT_LABEL: &str = "context";
const ENTITIES_LABEL: &str = "entities";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_answer_gives_its_complete_facts_and_entities() {
        let facts = facts_of(r#"{"facts": [{"claim": "One machine."}, {"claim": "Te"#).unwrap();
        assert_eq!(facts.len(), 1);
        assert_eq!(facts_of("nothing"), None);
        let cut = r#"{"entities": [{"name": "a"}, {"name": "b"}], "relationships": [{"from": "a", "to": "b", "type": "uses"}, {"from": "a", "to": "zebra", "type": "eats"}, {"fr"#;
        let memory = memory_of(cut).unwrap();
        assert_eq!((memory.entities.len(), memory.relationships.len()), (2, 1));
    }

    #[test]
    fn the_name_of_a_context_is_a_plain_word() {
        assert_eq!(context_file("orders-2").unwrap(), "orders-2_context.md");
        for wrong in ["", "../x", "a/b", "a b", "a.b"] {
            assert!(context_file(wrong).is_err(), "{wrong}");
        }
    }
}
