//! What spans and their fields are called: the names of OpenTelemetry's conventions for generative AI where there are such.

/// The names of spans.
pub mod spans {
    /// A run.
    pub const RUN: &str = "invoke_agent";
    /// A superstep.
    pub const SUPERSTEP: &str = "superstep";
    /// A node.
    pub const NODE: &str = "node";
    /// A call of a model.
    pub const MODEL: &str = "chat";
    /// A call of a tool.
    pub const TOOL: &str = "execute_tool";
    /// A person is asked.
    pub const WAIT: &str = "waits for a person";
}

/// The names of fields.
pub mod fields {
    /// Which operation: one of the names of [`super::spans`].
    pub const OPERATION: &str = "gen_ai.operation.name";
    /// Who provides the model.
    pub const PROVIDER: &str = "gen_ai.provider.name";
    /// The model that was asked.
    pub const REQUEST_MODEL: &str = "gen_ai.request.model";
    /// The model that answered.
    pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
    /// Tokens that it read.
    pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
    /// Tokens that it wrote.
    pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
    /// Why it stopped.
    pub const FINISH: &str = "gen_ai.response.finish_reasons";
    /// The thread.
    pub const CONVERSATION: &str = "gen_ai.conversation.id";
    /// The tool.
    pub const TOOL_NAME: &str = "gen_ai.tool.name";
    /// The call of the tool.
    pub const TOOL_CALL: &str = "gen_ai.tool.call.id";
    /// How often the tool may be called.
    pub const TOOL_CLASS: &str = "superstep.tool.class";
    /// What a call cost, in billionths of a dollar. Absent if nobody knows.
    pub const COST: &str = "superstep.cost_nano_dollars";
    /// The run.
    pub const RUN: &str = "superstep.run";
    /// The graph.
    pub const GRAPH: &str = "superstep.graph";
    /// The node.
    pub const NODE: &str = "superstep.node";
    /// The superstep.
    pub const STEP: &str = "superstep.step";
    /// The subgraph of a superstep, by the nodes that lead into it.
    pub const SUBGRAPH: &str = "superstep.subgraph";
    /// Which attempt.
    pub const ATTEMPT: &str = "superstep.attempt";
    /// Which entry of the log a run was forked from.
    pub const FORKED: &str = "superstep.forked_from";
    /// That a node's result came from the node cache.
    pub const CACHED: &str = "superstep.cached";
    /// How a run stopped.
    pub const OUTCOME: &str = "superstep.outcome";
    /// What Phoenix sorts spans by: `AGENT`, `CHAIN`, `LLM`, `TOOL`.
    pub const OPENINFERENCE_KIND: &str = "openinference.span.kind";
    /// What LangSmith sorts spans by: `chain`, `llm`, `tool`.
    pub const LANGSMITH_KIND: &str = "langsmith.span.kind";
    /// What Phoenix groups runs by.
    pub const SESSION: &str = "session.id";
    /// What LangSmith calls the session of a trace.
    pub const LANGSMITH_SESSION: &str = "langsmith.trace.session_id";
    /// What LangSmith groups the runs of a thread by.
    pub const LANGSMITH_THREAD: &str = "langsmith.metadata.thread_id";
}
