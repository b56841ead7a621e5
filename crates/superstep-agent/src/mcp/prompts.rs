//! Prompts of a server: messages that it offers for a conversation.

use std::collections::BTreeMap;

use rmcp::ServiceError;
use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, ListPromptsRequest, PromptMessage,
    Role, ServerResult,
};
use serde::Serialize;
use serde_json::Value as Json;
use superstep_core::Label;
use superstep_llm::{Answer, Content, Message};

use super::connection::{Listing, send, within};
use super::{McpError, Server, answer, check_size, failed};
use crate::chat::ChatMessage;

/// A prompt that a server offers. The texts are the server's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PromptInfo {
    /// Name to get it by.
    pub name: String,
    /// What it is for, if the server says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Arguments that it takes.
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// Name.
    pub name: String,
    /// What it means, if the server says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the prompt needs it.
    pub is_required: bool,
}

impl Server {
    /// Lists the prompts of the server. Reconnects as [`Server::resources`] does.
    pub async fn prompts(&self) -> Result<Vec<PromptInfo>, McpError> {
        let listing = Listing {
            request: |page| ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(page)),
            read: |result| match result {
                ServerResult::ListPromptsResult(page) => Some((page.prompts, page.next_cursor)),
                _ => None,
            },
        };
        let listed = self.connection.list(&listing).await?;
        let prompts = listed.into_iter().map(|prompt| PromptInfo {
            name: prompt.name,
            description: prompt.description,
            arguments: prompt
                .arguments
                .into_iter()
                .flatten()
                .map(argument)
                .collect(),
        });
        Ok(prompts.collect())
    }

    /// Returns the messages of a prompt with these arguments, labeled [untrusted](Label::UNTRUSTED): the server wrote them,
    /// also those that it puts into a person's or the model's mouth.
    pub async fn prompt<'a>(
        &self,
        prompt: &str,
        args: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Vec<ChatMessage>, McpError> {
        let args: BTreeMap<_, _> = args.into_iter().collect();
        let args = args.into_iter();
        let args = args.map(|(name, value)| (name.to_owned(), Json::from(value)));
        let params = GetPromptRequestParams::new(prompt).with_arguments(args.collect());
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
        let (name, limits) = (&self.connection.name, &self.connection.limits);
        let session = self.connection.session().await?;
        let read = async {
            let result = send(&session.client, request).await;
            match result.map_err(|error| failed(name, &error))? {
                ServerResult::GetPromptResult(result) => Ok(result.messages),
                _ => Err(failed(name, &ServiceError::UnexpectedResponse)),
            }
        };
        let messages = within(name, limits, read).await?;
        check_size(name, limits, &messages)?;
        Ok(messages.iter().map(message).collect())
    }
}

fn argument(argument: rmcp::model::PromptArgument) -> PromptArgument {
    PromptArgument {
        name: argument.name,
        description: argument.description,
        is_required: argument.required.unwrap_or(false),
    }
}

fn message(message: &PromptMessage) -> ChatMessage {
    let content = Content::from(vec![answer::block(&message.content)]);
    let message = match message.role {
        Role::Assistant => Message::Assistant(Answer {
            content,
            ..Answer::default()
        }),
        Role::User => Message::User { content },
    };
    ChatMessage::new(message, Label::UNTRUSTED)
}
