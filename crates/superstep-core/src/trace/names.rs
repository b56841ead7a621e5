//! Names of spans and their fields. Code that shows or exports a trace maps them to the names that other tools expect, such as
//! those of OpenTelemetry.

/// Names of the engine's own spans.
pub mod spans {
    /// Name of a superstep's span.
    pub const SUPERSTEP: &str = "superstep";
    /// Name of a node's live span.
    pub const NODE: &str = "node";
    /// Name of the span of a wait for a person.
    pub const WAIT: &str = "waits for a person";
}

/// Names of the fields that the engine sets on spans.
pub mod fields {
    /// Id of the run.
    pub const RUN: &str = "superstep.run";
    /// Name of the graph.
    pub const GRAPH: &str = "superstep.graph";
    /// Name of the node.
    pub const NODE: &str = "superstep.node";
    /// Number of the superstep within its graph.
    pub const STEP: &str = "superstep.step";
    /// The subgraph of a superstep, as the nodes that lead into it.
    pub const SUBGRAPH: &str = "superstep.subgraph";
    /// Number of the attempt.
    pub const ATTEMPT: &str = "superstep.attempt";
    /// Entry of the log that a run was forked from.
    pub const FORKED: &str = "superstep.forked_from";
    /// Span of the caller that a run is in, as in the header `traceparent`.
    pub const CALLER: &str = "superstep.caller";
    /// Whether a node's result came from the node cache.
    pub const CACHED: &str = "superstep.cached";
    /// How a run stopped.
    pub const OUTCOME: &str = "superstep.outcome";
}
