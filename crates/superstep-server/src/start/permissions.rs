//! What a caller must be allowed to do for a run: its body decides, not its route.

use crate::caller::Caller;
use crate::error::ApiResult;
use crate::permission::Permission;
use crate::start::body::{CommandBody, MultitaskStrategy, RunBody};

/// Refuses a run for which its caller lacks a permission. Answers need `answer`; updates of the state, jumps to nodes and the undoing
/// of other runs need `edit`; all else needs `run`, cancellations included.
pub(super) fn check_permissions(caller: &Caller, body: &RunBody) -> ApiResult<()> {
    if body.is_cancellation {
        return caller.require(Permission::Run);
    }
    let command = body.command.as_ref();
    let answers = body.is_answer();
    let updates = command
        .is_some_and(|command| command.update.is_some() || CommandBody::targets(command).is_some());
    if answers {
        caller.require(Permission::Answer)?;
    }
    if updates || body.strategy() == MultitaskStrategy::Rollback {
        caller.require(Permission::Edit)?;
    }
    if !answers && !updates {
        caller.require(Permission::Run)?;
    }
    Ok(())
}

#[test]
fn each_kind_of_run_needs_its_own_permission() {
    use serde_json::json;

    use crate::permission::Permissions;

    let needed = |body: serde_json::Value| {
        let body: RunBody = serde_json::from_value(body).unwrap();
        let without = |permission: &Permission| {
            let all = Permission::ALL.into_iter();
            let permissions: Permissions = all.filter(|other| other != permission).collect();
            let caller = Caller {
                permissions,
                ..Caller::default()
            };
            check_permissions(&caller, &body).is_err()
        };
        let needed = Permission::ALL.into_iter().filter(without);
        needed.map(Permission::name).collect::<Vec<_>>()
    };
    assert_eq!(needed(json!({ "input": {} })), ["run"]);
    assert_eq!(needed(json!({})), ["run"]);
    assert_eq!(needed(json!({ "command": { "goto": [] } })), ["run"]);
    assert_eq!(
        needed(json!({ "input": {}, "command": { "resume": "yes" } })),
        ["answer"]
    );
    assert_eq!(
        needed(json!({ "command": { "resume": 1, "update": {} } })),
        ["answer", "edit"]
    );
    assert_eq!(needed(json!({ "command": { "update": {} } })), ["edit"]);
    assert_eq!(needed(json!({ "command": { "goto": "a" } })), ["edit"]);
    // What only the server says about a body is not read from a request.
    assert_eq!(
        needed(json!({ "command": { "goto": "a" }, "is_cancellation": true })),
        ["edit"]
    );
    assert_eq!(
        needed(json!({ "input": {}, "multitask_strategy": "rollback" })),
        ["run", "edit"]
    );
}
