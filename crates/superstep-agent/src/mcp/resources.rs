//! Resources of a server: data that it offers by URI.

use rmcp::ServiceError;
use rmcp::model::{
    ClientRequest, ListResourcesRequest, ReadResourceRequest, ReadResourceRequestParams,
    ResourceContents, ServerResult,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use superstep_core::Label;
use superstep_core::label::Labeled;
use superstep_llm::{Block, Content, FileSource};

use super::connection::{Listing, send, within};
use super::{McpError, Server, check_size, failed, tool_name};
use crate::tool::{Tool, ToolError, ToolOutput, tool};

/// A resource that a server offers. The texts are the server's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ResourceInfo {
    /// URI to read it by.
    pub uri: String,
    /// Name.
    pub name: String,
    /// What it contains, if the server says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Media type, if the server says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

impl Server {
    /// Lists the resources of the server. Reconnects if the connection is closed. A server over HTTP that was restarted is
    /// noticed only by a request that fails, so repeat it once after [`McpError::Unreachable`].
    pub async fn resources(&self) -> Result<Vec<ResourceInfo>, McpError> {
        let listing = Listing {
            request: |page| {
                ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page))
            },
            read: |result| match result {
                ServerResult::ListResourcesResult(page) => Some((page.resources, page.next_cursor)),
                _ => None,
            },
        };
        let listed = self.connection.list(&listing).await?;
        let resources = listed.into_iter().map(|resource| ResourceInfo {
            uri: resource.uri,
            name: resource.name,
            description: resource.description,
            mime_type: resource.mime_type,
        });
        Ok(resources.collect())
    }

    /// Reads a resource. The content is labeled [untrusted](Label::UNTRUSTED).
    ///
    /// Fails with [`McpError::Refused`] if the server does not have it, and with [`McpError::AnswerTooLarge`] if it exceeds
    /// [`ServerLimits::answer_bytes_max`](super::ServerLimits::answer_bytes_max).
    pub async fn read_resource(&self, uri: &str) -> Result<Labeled<Content>, McpError> {
        let (name, limits) = (&self.connection.name, &self.connection.limits);
        let session = self.connection.session().await?;
        let request = ReadResourceRequest::new(ReadResourceRequestParams::new(uri));
        let read = async {
            let result = send(&session.client, ClientRequest::ReadResourceRequest(request)).await;
            match result.map_err(|error| failed(name, &error))? {
                ServerResult::ReadResourceResult(result) => Ok(result.contents),
                _ => Err(failed(name, &ServiceError::UnexpectedResponse)),
            }
        };
        let contents = within(name, limits, read).await?;
        check_size(name, limits, &contents)?;
        let blocks: Vec<_> = contents.into_iter().filter_map(block).collect();
        Ok(Labeled::new(Content::from(blocks), Label::UNTRUSTED))
    }

    /// Returns two tools of class [`Class::Read`](crate::Class::Read) with which a model lists and reads the resources:
    /// `server__list_resources` and `server__read_resource`. Their results are labeled untrusted.
    ///
    /// Their names and descriptions are ours. Do not add them if the server has tools of these names.
    pub fn resource_tools(&self) -> Vec<Tool> {
        let name = |tool: &str| tool_name(&self.connection.name, tool);
        let about = format!("the MCP server `{}`", self.connection.name);
        let server = self.clone();
        let list = tool(
            &name("list_resources"),
            &format!("Lists the resources of {about}: their URIs, names and descriptions."),
            move |_: NoArguments, cx| {
                let server = server.clone();
                async move {
                    server.reach().await?;
                    let listed = Box::pin(async { server.resources().await.map_err(tool_error) });
                    cx.within_timeout(listed).await
                }
            },
        );
        let server = self.clone();
        let read = tool(
            &name("read_resource"),
            &format!("Reads a resource of {about}."),
            move |resource: ResourceUri, cx| {
                let server = server.clone();
                async move {
                    server.reach().await?;
                    let read = Box::pin(async {
                        let content = server.read_resource(&resource.uri).await;
                        content.map_err(tool_error)
                    });
                    let content = cx.within_timeout(read).await?;
                    // The tool's own label replaces that of the content.
                    let (content, _) = content.parts();
                    Ok(ToolOutput::new(for_model(content.clone())))
                }
            },
        );
        [list, read]
            .map(|tool| tool.read().times_itself().gives(Label::UNTRUSTED))
            .into()
    }
}

impl Server {
    /// Starts or contacts the server again if the connection is closed: the timeout of a tool does not count this time.
    async fn reach(&self) -> Result<(), ToolError> {
        self.connection
            .session()
            .await
            .map(drop)
            .map_err(tool_error)
    }
}

/// A server that was not reached is asked again, as for any tool that only reads.
fn tool_error(error: McpError) -> ToolError {
    match error {
        McpError::Unreachable { .. } => ToolError::unknown(error),
        error => ToolError::failed(error),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct NoArguments {}

#[derive(Debug, Deserialize, JsonSchema)]
struct ResourceUri {
    /// URI of the resource, as listed.
    uri: String,
}

fn block(contents: ResourceContents) -> Option<Block> {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => Some(Block::Text { text }),
        ResourceContents::BlobResourceContents {
            mime_type, blob, ..
        } => Some(Block::File {
            mime_type: mime_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
            source: FileSource::Base64(blob),
        }),
        // Kinds of a later protocol.
        _ => None,
    }
}

/// Replaces files that models do not accept by a note.
fn for_model(content: Content) -> Content {
    let blocks = content.blocks.into_iter().map(|block| match block {
        Block::File { mime_type, .. } if !mime_type.starts_with("image/") => Block::Text {
            text: format!("(binary data of type {mime_type}, which is not shown)"),
        },
        other => other,
    });
    Content::from(blocks.collect::<Vec<_>>())
}
