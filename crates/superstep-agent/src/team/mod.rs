//! Several agents: handoffs within one conversation, and a supervisor with agents of its own.

mod handoff;
mod supervisor;
mod swarm;

pub use handoff::{active_agent, handed_over, handoff_tool};
pub use supervisor::{SUPERVISOR, Supervisor, SupervisorBuilder};
pub use swarm::{Swarm, SwarmBuilder};
