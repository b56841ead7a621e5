//! Model calls of an agent: fitted to the context, recorded, and counted.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use superstep::{NodeCx, NodeError};
use superstep_agent::{Asker, failure, within_recorded};
use superstep_llm::{Message, Model, Reply, Request, fit};

use super::super::deps::DocsDeps;
use super::super::state::{AgentWorkflowState, Call};

/// Answer of the model, and the calls that it took.
#[derive(Debug)]
pub(in super::super) struct Said<T> {
    pub(in super::super) value: T,
    /// Why the answer does not have the requested form. Absent if it has.
    pub(in super::super) degraded: Option<String>,
    pub(in super::super) calls: Vec<Call>,
    /// What was left out of the prompt to fit the model's context.
    pub(in super::super) warnings: Vec<String>,
}

/// One request to the model of an agent.
pub(in super::super) struct Ask<'a> {
    pub(in super::super) deps: &'a DocsDeps,
    pub(in super::super) model_name: &'a str,
    pub(in super::super) cx: &'a NodeCx,
    /// Name of the span, by which scripts and errors refer to the request.
    pub(in super::super) label: String,
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
        }
    }

    pub(in super::super) fn model(&self) -> Result<Arc<dyn Model>, NodeError> {
        self.deps
            .models
            .get(self.model_name)
            .map_err(NodeError::fatal)
    }

    /// Asks for free text. Returns `None` if a person chose to stop at a spending limit.
    pub(in super::super) async fn words(
        &self,
        messages: Vec<Message>,
    ) -> Result<Option<Said<String>>, NodeError> {
        let model = self.model()?;
        let (request, warnings) = self.request(&*model, messages, Length::Text).await?;
        let spending = self.deps.spending.as_ref();
        let ask = async |asker: &Asker<'_>| asker.ask(&*model, &request).await;
        let reply = within_recorded(spending, self.cx, ask).await?;
        Ok(reply.map(|reply| Said {
            value: reply.text().trim().to_owned(),
            degraded: None,
            calls: vec![self.call(&reply)],
            warnings,
        }))
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
            Self::Text => (32, 3_000),
            Self::Form => (32, 1_200),
        };
        let room = context_size.map_or(most, |size| u32::try_from(size / share).unwrap_or(most));
        room.clamp(256, most)
    }
}
