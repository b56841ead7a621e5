//! Sessions, which the server does not store, and the calls of this process that clients can still speak to.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::Value as Json;
use superstep::__private::lock;
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

use crate::caller::Caller;
use crate::json_rpc::RpcId;

/// A client's session. Its id is unique and says what the client declared, so that the server stores nothing for it. It grants
/// nothing: every request is checked for who sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct McpSession {
    id: String,
    /// Whether the client can show forms to its user.
    elicits: bool,
}

/// End of the id of a session whose client can show forms.
const ELICITS: &str = "-elicitation";

impl McpSession {
    /// Creates a session for a client with these capabilities.
    pub(super) fn of(capabilities: &Json) -> Self {
        let elicitation = capabilities.get("elicitation").and_then(Json::as_object);
        // A client that names no mode shows forms; others may only open pages.
        let elicits =
            elicitation.is_some_and(|modes| modes.is_empty() || modes.contains_key("form"));
        let suffix = if elicits { ELICITS } else { "" };
        Self {
            id: format!("{}{suffix}", Uuid::now_v7()),
            elicits,
        }
    }

    /// Reads the id of a session; `None` if the server has never made it.
    pub(super) fn parse(id: &str) -> Option<Self> {
        let (name, elicits) = match id.strip_suffix(ELICITS) {
            Some(name) => (name, true),
            None => (id, false),
        };
        let is_id = name.len() == 36 && Uuid::parse_str(name).is_ok();
        is_id.then(|| Self {
            id: id.to_owned(),
            elicits,
        })
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn elicits(&self) -> bool {
        self.elicits
    }
}

/// The calls that this process runs, and what they ask their clients.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls {
    calls: Mutex<BTreeMap<CallKey, watch::Sender<bool>>>,
    elicitations: Mutex<BTreeMap<String, OpenElicitation>>,
}

/// Whose call it is: tenant, caller, session, and the id of the request.
type CallKey = (String, String, String, String);

fn key(caller: &Caller, session: &McpSession, id: &RpcId) -> CallKey {
    (
        caller.tenant.clone(),
        caller.principal.clone(),
        session.id.clone(),
        id.to_text(),
    )
}

#[derive(Debug)]
struct OpenElicitation {
    tenant: String,
    principal: String,
    session: String,
    reply: oneshot::Sender<(Caller, ElicitationReply)>,
}

/// What a client replies to a request for input.
#[derive(Debug)]
pub(super) enum ElicitationReply {
    /// The result, as the client sent it.
    Result(Json),
    /// The client could not ask its user.
    Failed,
}

impl OpenCalls {
    /// Notes that a call runs. Returns what becomes true when the client cancels it; the entry is removed with [`CallEntry`].
    pub(super) fn begin(
        &self,
        caller: &Caller,
        session: &McpSession,
        id: &RpcId,
    ) -> (CallEntry, watch::Receiver<bool>) {
        let (sender, receiver) = watch::channel(false);
        let key = key(caller, session, id);
        // A client that uses an id twice can cancel its newest call only.
        lock(&self.calls).insert(key.clone(), sender);
        (CallEntry { key }, receiver)
    }

    pub(super) fn end(&self, entry: &CallEntry, receiver: &watch::Receiver<bool>) {
        let mut calls = lock(&self.calls);
        let is_own = |sender: &watch::Sender<bool>| receiver.same_channel(&sender.subscribe());
        if calls.get(&entry.key).is_some_and(is_own) {
            calls.remove(&entry.key);
        }
    }

    /// Cancels a call of the same client. A call that is not known has ended, or runs elsewhere.
    pub(super) fn cancel(&self, caller: &Caller, session: &McpSession, id: &RpcId) {
        if let Some(call) = lock(&self.calls).get(&key(caller, session, id)) {
            call.send_replace(true);
        }
    }

    /// Opens a request for input. Returns its id, and what the client replies.
    pub(super) fn ask(
        &self,
        caller: &Caller,
        session: &McpSession,
    ) -> (String, oneshot::Receiver<(Caller, ElicitationReply)>) {
        let (reply, replied) = oneshot::channel();
        let id = Uuid::now_v7().to_string();
        let open = OpenElicitation {
            tenant: caller.tenant.clone(),
            principal: caller.principal.clone(),
            session: session.id.clone(),
            reply,
        };
        lock(&self.elicitations).insert(id.clone(), open);
        (id, replied)
    }

    /// Closes a request for input that has no reply.
    pub(super) fn withdraw(&self, id: &str) {
        lock(&self.elicitations).remove(id);
    }

    /// Takes the reply to a request for input. Returns whether one of this client waits for it.
    pub(super) fn answer(
        &self,
        id: &str,
        caller: &Caller,
        session: &McpSession,
        reply: ElicitationReply,
    ) -> bool {
        let mut elicitations = lock(&self.elicitations);
        let is_own = |open: &OpenElicitation| {
            open.tenant == caller.tenant
                && open.principal == caller.principal
                && open.session == session.id
        };
        if !elicitations.get(id).is_some_and(is_own) {
            return false;
        }
        let open = elicitations.remove(id);
        drop(elicitations);
        open.is_some_and(|open| open.reply.send((caller.clone(), reply)).is_ok())
    }
}

/// A call that can be cancelled.
#[derive(Debug)]
pub(super) struct CallEntry {
    key: CallKey,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_session_says_what_its_client_declared() {
        for (capabilities, elicits) in [
            (json!({}), false),
            (json!({ "elicitation": {} }), true),
            (json!({ "elicitation": { "form": {} } }), true),
            (json!({ "elicitation": { "url": {} } }), false),
            (json!({ "elicitation": null }), false),
            (Json::Null, false),
        ] {
            let session = McpSession::of(&capabilities);
            assert_eq!(session.elicits(), elicits, "{capabilities}");
            assert_eq!(McpSession::parse(session.id()), Some(session));
        }
        for id in [
            "",
            "-elicitation",
            "1234",
            "0190a6b2-0000-7000-8000-00000000000a-x",
        ] {
            assert_eq!(McpSession::parse(id), None, "{id}");
        }
    }

    #[test]
    fn only_the_client_that_was_asked_can_answer() {
        let calls = OpenCalls::default();
        let (caller, session) = (Caller::default(), McpSession::of(&json!({})));
        let (id, mut replied) = calls.ask(&caller, &session);
        let other = Caller {
            tenant: "other".to_owned(),
            ..Caller::default()
        };
        let named = Caller {
            principal: "eve".to_owned(),
            ..Caller::default()
        };
        let reply = || ElicitationReply::Failed;
        assert!(!calls.answer(&id, &other, &session, reply()));
        assert!(!calls.answer(&id, &named, &session, reply()));
        assert!(!calls.answer(&id, &caller, &McpSession::of(&json!({})), reply()));
        assert!(replied.try_recv().is_err());
        assert!(calls.answer(&id, &caller, &session, reply()));
        assert!(!calls.answer(&id, &caller, &session, reply()), "once");
        assert!(replied.try_recv().is_ok());
    }
}
