//! Faults that are not faults of the world but of an implementation: each must be caught by its check.
//!
//! They are switched at run time, so that one build can be sound and broken in every way. Most live in what surrounds the
//! machine (the store, the node host, the driver); those of the segment rules live in core, behind its feature `mutants`.

use super::check::Check;

/// One way to be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// The store applies a commit whose epoch and sequence are stale.
    FenceSkipped,
    /// The store compares first and writes later, not in one statement.
    CheckThenWrite,
    /// The store acknowledges a commit before it has written it, and loses it in a crash.
    AckBeforeWrite,
    /// The store acknowledges a record and does not keep it.
    RecordLost,
    /// The store lets the last writer of a record win.
    RecordReplaced,
    /// The store takes a second answer to a question.
    AnswerAppliedTwice,
    /// The store refuses an answer that is given again although it was stored.
    AnswerNotIdempotent,
    /// The store acknowledges an answer and does not keep it.
    AnswerLost,
    /// The store forgets answers when a thread is loaded.
    QuestionAskedAgain,
    /// The store does not keep the questions of a pause.
    QuestionDropped,
    /// The driver hands results to the tasks of a fan-out in the order in which they arrive.
    ArrivalOrder,
    /// The door stores records under keys that nobody finds again.
    KeyRandomised,
    /// The store forgets the results of finished siblings when a thread is loaded.
    SiblingResultDropped,
    /// The store forgets failed attempts when a thread is loaded.
    RetryCountForgotten,
    /// The store leaves out the newest entry when a thread is loaded.
    DeltaSkipped,
    /// The store gives the newest entry twice when a thread is loaded.
    DeltaTwice,
    /// The store gives an older snapshot with the entries after the newest.
    StaleSnapshot,
    /// The store refuses a commit that is tried again although it was applied.
    CommitNotIdempotent,
    /// The store pauses a thread although there are answers that its owner has not seen.
    UnseenAnswersOverlooked,
    /// The store orders the event log by the clock.
    EventOrderByClock,
    /// The store rewrites an old entry.
    HistoryRewritten,
    /// The store does not tell a new owner what the old one recorded until the very claim.
    ClaimRecordsWithheld,
    /// The store does not tell the process that runs a task what it recorded before.
    GlanceWithheld,
    /// The store does not tell the process that runs a task that it has ended.
    EndOverlooked,
    /// The store acknowledges how a task ended and does not keep it.
    ReceiptLost,
    /// The store takes records of a former owner.
    RecordUnfenced,
    /// A retry of an order gives it another id.
    RunForgotten,
    /// A process that resumes a run does not know that it was suspended.
    PutDownForgotten,
    /// The segment applies the end of a task although others are dispatched and it is about to suspend.
    EndToldAtOnce,
    /// The segment executes a task itself that it dispatches.
    DispatchedTwice,
    /// The segment suspends while a record of it is not durable.
    SuspendedBeforeRecorded,
    /// The segment ignores its limits.
    LimitIgnored,
    /// A resume token of an older epoch is accepted, as if nobody had resumed the run since.
    StaleTokenAccepted,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Mutant; 33] = [
        Mutant::FenceSkipped,
        Mutant::CheckThenWrite,
        Mutant::AckBeforeWrite,
        Mutant::RecordLost,
        Mutant::RecordReplaced,
        Mutant::AnswerAppliedTwice,
        Mutant::AnswerNotIdempotent,
        Mutant::AnswerLost,
        Mutant::QuestionAskedAgain,
        Mutant::QuestionDropped,
        Mutant::ArrivalOrder,
        Mutant::KeyRandomised,
        Mutant::SiblingResultDropped,
        Mutant::RetryCountForgotten,
        Mutant::DeltaSkipped,
        Mutant::DeltaTwice,
        Mutant::StaleSnapshot,
        Mutant::CommitNotIdempotent,
        Mutant::UnseenAnswersOverlooked,
        Mutant::EventOrderByClock,
        Mutant::HistoryRewritten,
        Mutant::ClaimRecordsWithheld,
        Mutant::GlanceWithheld,
        Mutant::EndOverlooked,
        Mutant::ReceiptLost,
        Mutant::RecordUnfenced,
        Mutant::RunForgotten,
        Mutant::PutDownForgotten,
        Mutant::EndToldAtOnce,
        Mutant::DispatchedTwice,
        Mutant::SuspendedBeforeRecorded,
        Mutant::LimitIgnored,
        Mutant::StaleTokenAccepted,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Mutant::FenceSkipped => "fence-skipped",
            Mutant::CheckThenWrite => "check-then-write",
            Mutant::AckBeforeWrite => "ack-before-write",
            Mutant::RecordLost => "record-lost",
            Mutant::RecordReplaced => "record-replaced",
            Mutant::AnswerAppliedTwice => "answer-applied-twice",
            Mutant::AnswerNotIdempotent => "answer-not-idempotent",
            Mutant::AnswerLost => "answer-lost",
            Mutant::QuestionAskedAgain => "question-asked-again",
            Mutant::QuestionDropped => "question-dropped",
            Mutant::ArrivalOrder => "arrival-order",
            Mutant::KeyRandomised => "key-randomised",
            Mutant::SiblingResultDropped => "sibling-result-dropped",
            Mutant::RetryCountForgotten => "retry-count-forgotten",
            Mutant::DeltaSkipped => "delta-skipped",
            Mutant::DeltaTwice => "delta-twice",
            Mutant::StaleSnapshot => "stale-snapshot",
            Mutant::CommitNotIdempotent => "commit-not-idempotent",
            Mutant::UnseenAnswersOverlooked => "unseen-answers-overlooked",
            Mutant::EventOrderByClock => "event-order-by-clock",
            Mutant::HistoryRewritten => "history-rewritten",
            Mutant::ClaimRecordsWithheld => "claim-records-withheld",
            Mutant::GlanceWithheld => "glance-withheld",
            Mutant::EndOverlooked => "end-overlooked",
            Mutant::ReceiptLost => "receipt-lost",
            Mutant::RecordUnfenced => "record-unfenced",
            Mutant::RunForgotten => "run-forgotten",
            Mutant::PutDownForgotten => "put-down-forgotten",
            Mutant::EndToldAtOnce => "end-told-at-once",
            Mutant::DispatchedTwice => "dispatched-twice",
            Mutant::SuspendedBeforeRecorded => "suspended-before-recorded",
            Mutant::LimitIgnored => "limit-ignored",
            Mutant::StaleTokenAccepted => "stale-token-accepted",
        }
    }

    /// The mutant of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mutant| mutant.name() == name)
    }

    /// The check that must catch it.
    pub fn caught_by(self) -> Check {
        match self {
            Mutant::FenceSkipped | Mutant::CheckThenWrite | Mutant::RecordUnfenced => Check::Fence,
            Mutant::AckBeforeWrite => Check::TaskOnce,
            Mutant::EndToldAtOnce => Check::Live,
            Mutant::RecordLost
            | Mutant::KeyRandomised
            | Mutant::ClaimRecordsWithheld
            | Mutant::GlanceWithheld => Check::EffectOnce,
            Mutant::RecordReplaced => Check::FirstWrite,
            Mutant::AnswerAppliedTwice
            | Mutant::AnswerNotIdempotent
            | Mutant::AnswerLost
            | Mutant::QuestionAskedAgain
            | Mutant::QuestionDropped
            | Mutant::UnseenAnswersOverlooked => Check::AnswerOnce,
            Mutant::ArrivalOrder | Mutant::DeltaTwice => Check::Calm,
            Mutant::SiblingResultDropped | Mutant::EndOverlooked | Mutant::ReceiptLost => {
                Check::SiblingsKept
            }
            Mutant::RunForgotten => Check::OrderOnce,
            Mutant::PutDownForgotten | Mutant::StaleTokenAccepted => Check::Recoveries,
            Mutant::DispatchedTwice | Mutant::SuspendedBeforeRecorded | Mutant::LimitIgnored => {
                Check::Segments
            }
            Mutant::RetryCountForgotten => Check::Attempts,
            Mutant::DeltaSkipped => Check::TaskOnce,
            Mutant::StaleSnapshot => Check::Replay,
            Mutant::CommitNotIdempotent => Check::CommitOnce,
            Mutant::EventOrderByClock => Check::Replay,
            Mutant::HistoryRewritten => Check::AppendOnly,
        }
    }
}
