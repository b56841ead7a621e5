//! The Rust code of the book's pages, compiled and run as doctests.
//!
//! A page with Rust code is listed in [`PAGES`]; `tests/pages.rs` finds one that is not, and every block that nothing checks. Pages
//! that need other crates, such as `docs/server.md`, are doctests of those.
//!
//! No page is changed to fit it: what a reader copies is what is compiled. Programs that pages show as a whole and start are in
//! `src/bin`, and `tests/book.rs` runs their commands. Other commands are run by the tests of `archie` and of the other examples.

macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!(concat!("../../../docs/", $path))]
            struct $name;
        )*

        /// The pages, below `docs/`.
        pub const PAGES: &[&str] = &[$($path),*];
    };
}

pages! {
    StartFirstAgent: "start/first-agent.md",
    StartFirstGraph: "start/first-graph.md",
    ConceptsBudgets: "concepts/budgets.md",
    ConceptsDurability: "concepts/durability.md",
    ConceptsEffectsAndToolClasses: "concepts/effects-and-tool-classes.md",
    ConceptsGraphsAndSupersteps: "concepts/graphs-and-supersteps.md",
    ConceptsInterruptsAndApprovals: "concepts/interrupts-and-approvals.md",
    ConceptsLabelsAndPolicies: "concepts/labels-and-policies.md",
    ConceptsMemory: "concepts/memory.md",
    ConceptsStateAndChannels: "concepts/state-and-channels.md",
    ConceptsStreaming: "concepts/streaming.md",
    ConceptsTimeTravel: "concepts/time-travel.md",
    HowtoAddATool: "howto/add-a-tool.md",
    HowtoApproveWithAgentInbox: "howto/approve-with-agent-inbox.md",
    HowtoAskWithADeadline: "howto/ask-with-a-deadline.md",
    HowtoCacheANode: "howto/cache-a-node.md",
    HowtoCancelARun: "howto/cancel-a-run.md",
    HowtoCapCost: "howto/cap-cost.md",
    HowtoChangeStateByHand: "howto/change-state-by-hand.md",
    HowtoCheckAnswers: "howto/check-answers.md",
    HowtoDrawAGraph: "howto/draw-a-graph.md",
    HowtoEraseATenant: "howto/erase-a-tenant.md",
    HowtoFanOutAndJoin: "howto/fan-out-and-join.md",
    HowtoGetStructuredOutput: "howto/get-structured-output.md",
    HowtoHandOffBetweenAgents: "howto/hand-off-between-agents.md",
    HowtoKeepPrivateDataInside: "howto/keep-private-data-inside.md",
    HowtoLimitSteps: "howto/limit-steps.md",
    HowtoListThreads: "howto/list-threads.md",
    HowtoMakeAnEffectOnce: "howto/make-an-effect-once.md",
    HowtoMigrateState: "howto/migrate-state.md",
    HowtoMoveThreads: "howto/move-threads.md",
    HowtoRecordAModel: "howto/record-a-model.md",
    HowtoRememberAcrossThreads: "howto/remember-across-threads.md",
    HowtoResumeAfterACrash: "howto/resume-after-a-crash.md",
    HowtoRetryAndTimeOut: "howto/retry-and-time-out.md",
    HowtoRunALocalModel: "howto/run-a-local-model.md",
    HowtoShardByTenant: "howto/shard-by-tenant.md",
    HowtoStartOnce: "howto/start-once.md",
    HowtoTestAnAgent: "howto/test-an-agent.md",
    HowtoTestWithKillPoints: "howto/test-with-kill-points.md",
    HowtoTrimAConversation: "howto/trim-a-conversation.md",
    HowtoUseASubgraph: "howto/use-a-subgraph.md",
    InsideWriteACheckpointer: "inside/write-a-checkpointer.md",
    InsideWriteADriver: "inside/write-a-driver.md",
}
