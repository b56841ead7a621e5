//! What spans and their fields are called. Names that other tools expect, such as those of OpenTelemetry, are given by
//! code that shows or exports a trace.

/// The names of spans.
pub mod spans {
    /// A superstep.
    pub const SUPERSTEP: &str = "superstep";
    /// A node.
    pub const NODE: &str = "node";
    /// A person is asked.
    pub const WAIT: &str = "waits for a person";
}

/// The names of fields.
pub mod fields {
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
}
