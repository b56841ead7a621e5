//! What a planner of `sheet` wants, in a model's words.

use archie_sheet::plan::{Plan, read};
use superstep_llm::{Answer, Message};

pub(super) fn run(bytes: &[u8]) {
    let Some(text) = super::text(bytes) else {
        return;
    };
    let message = Message::Assistant(Answer {
        content: text.into(),
        ..Answer::default()
    });
    let plan = read(&message, 3);
    assert_eq!(read(&message, 3), plan);
    plan.says();
    if let Plan::Act(calls) = &plan {
        assert!(!calls.is_empty(), "an action without a call");
        assert!(calls.iter().all(|call| !call.name.is_empty()));
    }
}
