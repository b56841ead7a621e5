//! Model calls of an agent: fitted to the context, recorded, and counted.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use superstep::{NodeCx, NodeError};
use superstep_agent::{Asker, failure, within_recorded};
use superstep_llm::{Message, Model, Reply, Request, ToolChoice, fit};

use super::super::completeness::{self, continued, is_cut_off};
use super::super::deps::DocsDeps;
use super::super::scan::Tree;
use super::super::source_map::SourceText;
use super::super::state::{AgentWorkflowConfig, AgentWorkflowState, Call};
use super::BaseAgentWorkflow;

/// Answer of the model, and the calls that it took.
#[derive(Debug)]
pub(in super::super) struct Said<T> {
    pub(in super::super) value: T,
    /// Why the answer does not have the requested form. Absent if it has.
    pub(in super::super) degraded: Option<String>,
    pub(in super::super) calls: Vec<Call>,
    /// What was left out of the prompt to fit the model's context.
    pub(in super::super) warnings: Vec<String>,
    /// Whether the text was cut off, and stayed so after one request to complete it.
    pub(in super::super) is_cut_off: bool,
}

/// One request to the model of an agent.
pub(in super::super) struct Ask<'a> {
    pub(in super::super) deps: &'a DocsDeps,
    pub(in super::super) model_name: &'a str,
    pub(in super::super) cx: &'a NodeCx,
    /// Name of the span, by which scripts and errors refer to the request.
    pub(in super::super) label: String,
    /// Maximum number of model calls at a time.
    pub(in super::super) parallel: Option<u32>,
}

impl<'a> Ask<'a> {
    /// Creates a request of the node whose span is named `span`.
    pub(super) fn of(
        deps: &'a DocsDeps,
        state: &'a AgentWorkflowState,
        span: &str,
        cx: &'a NodeCx,
    ) -> Self {
        Self {
            deps,
            model_name: &state.model_name,
            cx,
            label: format!("{}-{span}", state.agent),
            parallel: state.context.parallel,
        }
    }

    /// Returns the model, whose calls wait for a free slot.
    pub(in super::super) fn model(&self) -> Result<Arc<dyn Model>, NodeError> {
        let model = self.deps.models.get_in_run(self.model_name, self.cx)?;
        Ok(self.deps.slots.limited(model, self.parallel))
    }

    /// Returns the source that the model reads with these messages: as much as its context has room for, and at most
    /// `bytes_max`.
    pub(super) async fn sources(
        &self,
        tree: &Tree,
        agent: &dyn BaseAgentWorkflow,
        config: &AgentWorkflowConfig,
        messages: &[Message],
        bytes_max: Option<u64>,
    ) -> Result<SourceText, NodeError> {
        let model = self.model()?;
        let size = model.context_size().await.map_err(failure)?;
        let mut tokens = match (config.source_tokens, size) {
            (Some(tokens), _) => u64::from(tokens),
            (None, Some(size)) => (size / SOURCE_SHARE).clamp(SOURCE_TOKENS_MIN, SOURCE_TOKENS_MAX),
            (None, None) => SOURCE_TOKENS_UNKNOWN,
        };
        if let Some(size) = size {
            let empty = Request::default().tokens_max(Length::Text.tokens(Some(size)));
            let used: u64 = messages.iter().map(fit::tokens_of).sum();
            let room = fit::room(&empty, size).saturating_sub(used + FRAME_TOKENS);
            tokens = tokens.min(room);
        }
        let bytes = (tokens * TOKEN_BYTES).min(bytes_max.unwrap_or(u64::MAX));
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(tree.source_map().text(tree, agent.source_focus(), bytes))
    }

    /// Asks for free text. Returns `None` if a person chose to stop at a spending limit.
    pub(in super::super) async fn words(
        &self,
        messages: Vec<Message>,
    ) -> Result<Option<Said<String>>, NodeError> {
        let model = self.model()?;
        let (request, warnings) = self.request(&*model, messages, Length::Text).await?;
        let spending = self.deps.spending.as_ref();
        let ask = async |asker: &Asker<'_>| {
            let Some(reply) = asker.ask(&*model, &request).await? else {
                return Ok(None);
            };
            let calls = vec![self.call(&reply)];
            let said = self
                .completed(asker, &*model, request, reply, calls)
                .await?;
            Ok(Some(Said { warnings, ..said }))
        };
        within_recorded(spending, self.cx, ask).await
    }

    /// Returns the text of a reply. If it is cut off, asks once for the rest.
    pub(in super::super) async fn completed(
        &self,
        asker: &Asker<'_>,
        model: &dyn Model,
        mut request: Request,
        reply: Reply,
        mut calls: Vec<Call>,
    ) -> Result<Said<String>, NodeError> {
        let mut text = reply.text().trim().to_owned();
        let mut is_cut_off = is_cut_off(&text, &reply.finish);
        if is_cut_off && !text.is_empty() {
            request.messages.push(Message::assistant(text.clone()));
            request.messages.push(Message::user(CONTINUE));
            request.tools = Vec::new();
            request.tool_choice = ToolChoice::Auto;
            if let Some(size) = model.context_size().await.map_err(failure)? {
                fit::fit(&mut request, size);
            }
            // A person who stops at a spending limit keeps the text as it is.
            if let Some(rest) = asker.ask(model, &request).await? {
                calls.push(self.call(&rest));
                text = continued(&text, &rest.text());
                is_cut_off = completeness::is_cut_off(&text, &rest.finish);
            }
        }
        Ok(Said {
            value: text.trim().to_owned(),
            degraded: None,
            calls,
            warnings: Vec::new(),
            is_cut_off,
        })
    }

    /// Asks for an answer in the form of `T`, with one repair; `otherwise` is the value if that fails too. Returns `None` if a
    /// person chose to stop at a spending limit.
    pub(in super::super) async fn form<T: JsonSchema + DeserializeOwned>(
        &self,
        messages: Vec<Message>,
        otherwise: impl FnOnce() -> T,
    ) -> Result<Option<Said<T>>, NodeError> {
        let model = self.model()?;
        let (request, warnings) = self.request(&*model, messages, Length::Form).await?;
        let spending = self.deps.spending.as_ref();
        let ask = async |asker: &Asker<'_>| asker.ask_for(&*model, request, otherwise).await;
        let answer = within_recorded(spending, self.cx, ask).await?;
        Ok(answer.map(|answer| Said {
            calls: answer
                .replies
                .iter()
                .map(|reply| self.call(reply))
                .collect(),
            value: answer.value,
            degraded: answer.degraded,
            warnings,
            is_cut_off: false,
        }))
    }

    pub(in super::super) async fn request(
        &self,
        model: &dyn Model,
        messages: Vec<Message>,
        length: Length,
    ) -> Result<(Request, Vec<String>), NodeError> {
        let size = model.context_size().await.map_err(failure)?;
        let mut request = Request::new(&self.label, messages).tokens_max(length.tokens(size));
        let mut warnings = Vec::new();
        if let Some(size) = size {
            let cut: usize = fit::fit(&mut request, size)
                .iter()
                .map(|cut| match cut {
                    fit::Cut::Dropped { bytes, .. } => *bytes,
                    fit::Cut::Shortened { from, to, .. } => from - to,
                })
                .sum();
            if cut > 0 {
                warnings.push(format!(
                    "{}: {cut} bytes were left out to fit the model's {size} tokens",
                    self.label
                ));
            }
        }
        Ok((request, warnings))
    }

    pub(in super::super) fn call(&self, reply: &Reply) -> Call {
        Call {
            at: self.label.clone(),
            model: reply.model.to_string(),
            usage: reply.usage,
            cost: reply.cost,
        }
    }
}

/// Kind of answer, which limits its length.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum Length {
    Text,
    Form,
}

impl Length {
    /// Returns the limit in tokens. It is lower for a small context, because small models tend to generate until they are cut
    /// off.
    fn tokens(self, context_size: Option<u64>) -> u32 {
        let (share, most) = match self {
            Self::Text => (16, 3_000),
            Self::Form => (32, 1_200),
        };
        let room = context_size.map_or(most, |size| u32::try_from(size / share).unwrap_or(most));
        room.clamp(256, most)
    }
}

/// Asks for the rest of a text that was cut off.
const CONTINUE: &str = "Your text was cut off. Continue exactly where it stopped, without repeating anything, and bring it to an end \
    in a few sentences.";

/// Share of the model's context that the source may take: one part in so many.
const SOURCE_SHARE: u64 = 8;
const SOURCE_TOKENS_MIN: u64 = 1_000;
const SOURCE_TOKENS_MAX: u64 = 24_000;

/// Tokens of source for a model whose context is not known. Small enough for the usual settings of local servers.
pub(in super::super) const SOURCE_TOKENS_UNKNOWN: u64 = 6_000;

/// Bytes in a token, as [`fit`] estimates it.
pub(in super::super) const TOKEN_BYTES: u64 = 3;

/// Tokens of the words around the source.
const FRAME_TOKENS: u64 = 300;
