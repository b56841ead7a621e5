//! Built-in agents. Each is a crate under `agents/`; their command lines are in [`commands`](crate::commands).

use archie_agent::AgentFactory;

pub use archie_analyze as analyze;
pub use archie_atris as atris;
pub use archie_docs as docs;
pub use archie_email_assistant as email_assistant;
pub use archie_sheet as sheet;

/// Factories of the built-in agents.
pub const AGENTS: &[AgentFactory] = &[
    analyze::agent,
    analyze::inquiry::agent,
    sheet::agent,
    docs::agent,
    atris::agent,
    atris::watch::agent,
    email_assistant::agent,
];
