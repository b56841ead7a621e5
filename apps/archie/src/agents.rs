//! The agents that come with the program. Each is a crate of its own under `agents/`; their command lines are in
//! [`commands`](crate::commands).

use archie_agent::AgentFactory;

pub use archie_analyze as analyze;
pub use archie_atris as atris;
pub use archie_docs as docs;
pub use archie_email_assistant as email_assistant;
pub use archie_sheet as sheet;

/// The agents that come with the program.
pub const AGENTS: &[AgentFactory] = &[
    analyze::agent,
    sheet::agent,
    docs::agent,
    atris::agent,
    atris::watch::agent,
    email_assistant::agent,
];
