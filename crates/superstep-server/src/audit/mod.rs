//! The audit log: who changed what, who answered which question, and what tools did outside.
//!
//! Each tenant has a log of its own, in the registry. Each entry carries the hash of the one before it, so a change of the past can
//! be seen ([`AuditVerifier`]). Before a request takes effect its entry is stored, so there is no effect without one. Entries
//! contain neither secrets nor what people, models or tools said.

mod chain;
mod effects;
mod erasure;
mod prune;
mod recording;
mod routes;
mod verifier;
mod writer;

pub use chain::AuditKey;
pub use prune::{PrunedAudit, prune_audit_log};
pub use verifier::{AuditProblem, AuditVerifier, verify_audit_log};

pub(crate) use effects::EffectRecorder;
pub(crate) use erasure::ErasureLog;
pub(crate) use recording::{record_answers, record_command, record_request};
pub(crate) use routes::routes;
pub(crate) use writer::AuditLog;
