//! What agents show live: messages while models write them, and tool calls.

use std::sync::Arc;

use superstep::TaskId;

use crate::feed::agent_payload::{AgentPayload, progress_line, usage};
use crate::feed::event::{BlockKind, FeedBody, Namespace, TaskOrigin, ToolChange, ToolPart};
use crate::feed::log_converter::live_order::LiveOrder;
use crate::feed::log_converter::{EVENT_BYTES, LogConverter};
use crate::feed::message_parts::MessagePiece;

impl LogConverter {
    pub(super) fn agent_event(
        &mut self,
        task: TaskId,
        namespace: &Namespace,
        origin: &Arc<TaskOrigin>,
        event: AgentPayload,
    ) {
        match event {
            AgentPayload::Token { message, text } => {
                let kind = BlockKind::Text;
                self.message_piece(
                    task,
                    namespace,
                    origin,
                    MessagePiece::new(&message, kind, text),
                );
            }
            AgentPayload::Reasoning { message, text } => {
                let kind = BlockKind::Reasoning;
                self.message_piece(
                    task,
                    namespace,
                    origin,
                    MessagePiece::new(&message, kind, text),
                );
            }
            AgentPayload::ToolCallDelta {
                message,
                index,
                id,
                name,
                args,
            } => {
                let kind = BlockKind::ToolCall { index, id, name };
                self.message_piece(
                    task,
                    namespace,
                    origin,
                    MessagePiece::new(&message, kind, args),
                );
            }
            AgentPayload::ToolCall {
                message,
                id,
                name,
                args,
            } => {
                // Emitted for every call, also after the deltas of its arguments.
                if let Some(message) = self.messages.without_call(task, message.as_deref(), &id) {
                    let index = self.messages.calls_of(&message);
                    let kind = BlockKind::ToolCall { index, id, name };
                    let piece = MessagePiece::new(&message, kind, args.to_string());
                    self.message_piece(task, namespace, origin, piece);
                }
            }
            AgentPayload::ModelEnded {
                message,
                input_tokens,
                output_tokens,
            } => {
                if !self.shown_messages.contains(&message) {
                    self.unstreamed_messages.insert(message.clone());
                }
                let parts = self
                    .messages
                    .end(&message, usage(input_tokens, output_tokens));
                self.push_parts(parts);
            }
            AgentPayload::Again {} => self.void_messages(task),
            AgentPayload::ModelProgress {} => {}
            AgentPayload::ToolStarted { id, name, input } => {
                self.tool(namespace, origin, id, name, ToolChange::Started { input });
            }
            AgentPayload::ToolProgress {
                id,
                name,
                progress,
                total,
                message,
            } => {
                let text = progress_line(progress, total, message);
                self.tool(namespace, origin, id, name, ToolChange::Progress { text });
            }
            AgentPayload::ToolEnded {
                id,
                name,
                status,
                output,
            } => {
                let is_error = status == "error";
                let change = ToolChange::Ended { is_error, output };
                self.tool(namespace, origin, id, name, change);
            }
        }
    }

    fn message_piece(
        &mut self,
        task: TaskId,
        namespace: &Namespace,
        origin: &Arc<TaskOrigin>,
        piece: MessagePiece<'_>,
    ) {
        let order = self.live_order.get(&task);
        if !order.is_some_and(LiveOrder::has_gap) {
            self.shown_messages.insert(piece.message.to_owned());
        }
        let parts = self.messages.add(task, namespace, origin, piece);
        self.push_parts(parts);
    }

    /// Ends the messages that a task was writing and writes again.
    pub(super) fn void_messages(&mut self, task: TaskId) {
        let parts = self.messages.end_task(task, true);
        for (_, part) in &parts {
            self.shown_messages.remove(&*part.message);
        }
        self.push_parts(parts);
    }

    fn tool(
        &mut self,
        namespace: &Namespace,
        origin: &Arc<TaskOrigin>,
        call: String,
        name: String,
        change: ToolChange,
    ) {
        let bytes = match &change {
            ToolChange::Ended { output, .. } => output.len(),
            ToolChange::Started { .. } | ToolChange::Progress { .. } => EVENT_BYTES,
        };
        let part = ToolPart {
            origin: origin.clone(),
            call,
            name,
            change,
        };
        self.push(namespace, bytes, FeedBody::Tool(part));
    }
}
