//! The graphs of the suites, ported: what a client sees of them is what it sees of the originals.
//!
//! The suites use the same names for different graphs, so a server has one set of them at a time.

mod apps;
mod chat;
mod conformance;
mod javascript;
mod lab;
mod python;
mod react;
mod settings;
mod simulator;

use std::sync::Arc;

use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::registry::AssistantChange;

/// The graphs that one suite needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum GraphSet {
    /// Those of the integration suite of the Python SDK.
    #[default]
    Python,
    /// Those of `libs/langgraph-api/tests` in langgraphjs.
    JavaScript,
    /// Those of `libs/sdk-react/src/tests` in langgraphjs.
    React,
    /// The small graphs that were compared with the reference.
    Lab,
    /// Those that the web apps are driven with, and those of the lab.
    Apps,
    /// What the conformance suites of MCP and A2A call.
    Conformance,
    /// Random programs of the simulator, named `sim-` and their seed.
    Simulator,
}

impl GraphSet {
    /// Returns the set of this name.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        match name {
            "python" => Ok(Self::Python),
            "javascript" => Ok(Self::JavaScript),
            "react" => Ok(Self::React),
            "lab" => Ok(Self::Lab),
            "apps" => Ok(Self::Apps),
            "conformance" => Ok(Self::Conformance),
            "simulator" => Ok(Self::Simulator),
            unknown => Err(format!(
                "use python, javascript, react, lab, apps, conformance or simulator, not `{unknown}`"
            )),
        }
    }

    /// Returns the name of the set.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::React => "react",
            Self::Lab => "lab",
            Self::Apps => "apps",
            Self::Conformance => "conformance",
            Self::Simulator => "simulator",
        }
    }

    /// Builds the graphs. The name of a graph is the id by which clients ask for it.
    pub(crate) fn build(self) -> Result<Vec<Arc<Definition>>, BuildError> {
        match self {
            Self::Python => python::graphs(),
            Self::JavaScript => javascript::graphs(),
            Self::React => react::graphs(),
            Self::Lab => lab::graphs(),
            Self::Apps => Ok([lab::graphs()?, apps::graphs()?].concat()),
            Self::Conformance => conformance::graphs(),
            Self::Simulator => simulator::graphs(),
        }
    }

    /// Returns what the default assistants of graphs have besides the defaults of the server, by the name of the graph.
    pub(crate) fn assistant_settings(self) -> Vec<(&'static str, AssistantChange)> {
        match self {
            Self::JavaScript => javascript::assistant_settings(),
            Self::Python
            | Self::React
            | Self::Lab
            | Self::Apps
            | Self::Conformance
            | Self::Simulator => Vec::new(),
        }
    }
}

#[test]
fn every_graph_builds_under_the_name_that_clients_use() {
    let names = |set: GraphSet| {
        let graphs = set.build().unwrap();
        let mut names: Vec<_> = graphs.iter().map(|graph| graph.name().to_owned()).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(
        names(GraphSet::Python),
        ["agent", "deep_agent", "factory_agent", "tools_agent"]
    );
    assert_eq!(
        names(GraphSet::JavaScript),
        [
            "agent",
            "agent_simple",
            "delay",
            "dynamic",
            "error",
            "nested",
            "plain_zod_graph",
            "simple_runtime",
            "state_schema_graph",
            "weather",
            "zod_registry_graph"
        ]
    );
    assert_eq!(
        names(GraphSet::React),
        [
            "create_agent",
            "custom_channel_graph",
            "deep_agent",
            "deep_agent_interrupt",
            "embedded_subgraph_graph",
            "error_graph",
            "headless_tool_graph",
            "interrupt_card_graph",
            "interrupt_graph",
            "interrupt_once_graph",
            "multi_interrupt_graph",
            "nested_interrupt_graph",
            "parallel_fanout",
            "parallel_subgraph",
            "remove_message_graph",
            "slow_graph",
            "stateful_values_graph",
            "stategraph_text",
            "subgraph_graph"
        ]
    );
    assert_eq!(
        names(GraphSet::Lab),
        [
            "agent", "both", "chain", "delay", "fan", "hitl", "inbox", "nested"
        ]
    );
    assert_eq!(
        names(GraphSet::Apps),
        [
            "agent",
            "both",
            "chain",
            "delay",
            "fan",
            "hitl",
            "inbox",
            "nested",
            "nested_refunds",
            "refunds",
            "slow_chat",
            "two_nodes"
        ]
    );
    assert_eq!(
        names(GraphSet::Conformance),
        [
            "a2a_agent",
            "test_elicitation",
            "test_elicitation_sep1034_defaults",
            "test_elicitation_sep1330_enums",
            "test_error_handling",
            "test_simple_text",
            "test_tool_with_progress"
        ]
    );
    assert_eq!(names(GraphSet::Simulator).len(), 200);
}

#[test]
fn sets_are_found_by_name() {
    for set in [
        GraphSet::Python,
        GraphSet::JavaScript,
        GraphSet::React,
        GraphSet::Lab,
        GraphSet::Apps,
        GraphSet::Conformance,
        GraphSet::Simulator,
    ] {
        assert_eq!(GraphSet::parse(set.as_str()), Ok(set));
    }
    assert!(GraphSet::parse("cobol").is_err());
}
