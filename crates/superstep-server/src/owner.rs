//! Callers that reach only what they own.
//!
//! What such a caller creates has its name in `metadata.owner`. Everything else is, for it, not there: lists and counts leave it
//! out, and what names it is answered with 404.

use serde_json::{Map, Value as Json};
use superstep::ThreadId;
use superstep::checkpoint::{NewThread, ThreadRow};
use superstep::registry::{Assistant, CronRow, Delivery};

use crate::caller::Caller;
use crate::error::{ApiError, ApiResult};
use crate::permission::Permission;
use crate::{Shared, thread};

/// Field of the metadata that says whose something is.
pub(crate) const OWNER: &str = "owner";

impl Caller {
    /// Whether something with this owner is there for the caller.
    fn is_own(&self, owner: Option<&Json>) -> bool {
        match &self.owner {
            None => true,
            Some(own) => owner.and_then(Json::as_str) == Some(own),
        }
    }

    pub(crate) fn owns_thread(&self, row: &ThreadRow) -> bool {
        self.is_own(row.metadata.get(OWNER))
    }

    pub(crate) fn owns_cron(&self, row: &CronRow) -> bool {
        self.is_own(row.metadata.get(OWNER))
    }

    pub(crate) fn owns_assistant(&self, assistant: &Assistant) -> bool {
        self.is_own(assistant.metadata.get(OWNER))
    }

    /// Whether the run whose end is delivered was the caller's own. The run itself may have been deleted since.
    pub(crate) fn owns_delivery(&self, delivery: &Delivery) -> bool {
        if self.owner.is_none() {
            return true;
        }
        let body: Option<Json> = serde_json::from_str(&delivery.new.body).ok();
        self.is_own(body.as_ref().and_then(|body| body["metadata"].get(OWNER)))
    }

    /// Makes the caller the owner of what has this metadata, whatever the request says.
    pub(crate) fn mark_own(&self, metadata: &mut Map<String, Json>) {
        if let Some(owner) = &self.owner {
            metadata.insert(OWNER.to_owned(), owner.clone().into());
        }
    }

    /// Returns a condition on metadata that only what the caller may see meets.
    pub(crate) fn own_only(&self, wanted: Option<Map<String, Json>>) -> ApiResult<Option<Json>> {
        let mut wanted = wanted.unwrap_or_default();
        if self.owner.is_some() && wanted.get(OWNER).is_some_and(|o| !self.is_own(Some(o))) {
            return Err(ApiError::forbidden(
                "the caller can search for what it owns only",
            ));
        }
        self.mark_own(&mut wanted);
        Ok((!wanted.is_empty()).then_some(Json::Object(wanted)))
    }

    /// Refuses a caller that reaches only what is its own, for what is the whole tenant's.
    pub(crate) fn refuse_restricted(&self) -> ApiResult<()> {
        match self.owner {
            Some(_) => Err(ApiError::forbidden(
                "the caller can use what is its own only",
            )),
            None => Ok(()),
        }
    }

    /// Refuses a thread that belongs to someone else. One that does not exist is let through.
    pub(crate) async fn check_thread(&self, app: &Shared, id: &ThreadId) -> ApiResult<()> {
        if self.owner.is_none() {
            return Ok(());
        }
        match thread::find(app, id).await? {
            Some(row) if !self.owns_thread(&row) => Err(ApiError::no_thread(id)),
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses a thread that is not the caller's own, also if it does not exist.
    pub(crate) async fn require_own_thread(&self, app: &Shared, id: &ThreadId) -> ApiResult<()> {
        if self.owner.is_none() {
            return Ok(());
        }
        match thread::find(app, id).await? {
            Some(row) if self.owns_thread(&row) => Ok(()),
            Some(_) | None => Err(ApiError::no_thread(id)),
        }
    }

    /// Makes sure that a thread is the caller's own before a stream of it is opened, which may be before the thread exists: if it
    /// does not, it is created for the caller, or its stream would show what someone else does on it later.
    pub(crate) async fn claim_thread(&self, app: &Shared, id: &ThreadId) -> ApiResult<()> {
        let Some(owner) = &self.owner else {
            return Ok(());
        };
        if thread::find(app, id).await?.is_none() {
            if !self.permissions.contains(Permission::Run) {
                return Err(ApiError::no_thread(id));
            }
            let new = NewThread {
                graph: String::new(),
                metadata: [(OWNER.to_owned(), owner.clone().into())].into(),
                lifetime: app.retention.lifetime(id.tenant(), ""),
                at: app.runtime.now(),
            };
            app.runtime.checkpointer().create(id, &new).await?;
        }
        self.check_thread(app, id).await
    }

    /// Returns the first segment of the caller's namespaces in the long-term store; `None` if it reaches all. A segment has no `.`.
    pub(crate) fn own_segment(&self) -> Option<String> {
        let owner = self.owner.as_ref()?;
        Some(owner.replace('%', "%25").replace('.', "%2E"))
    }

    /// Refuses a namespace of the long-term store that is not the caller's own.
    pub(crate) fn check_namespace(&self, segments: &[String]) -> ApiResult<()> {
        match self.own_segment() {
            Some(own) if segments.first() != Some(&own) => Err(ApiError::forbidden(&format!(
                "the caller can use namespaces that begin with `{own}` only"
            ))),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns what a search of namespaces with this prefix may look at: what the caller owns, if it names no prefix.
    pub(crate) fn own_prefix(&self, prefix: Vec<String>) -> ApiResult<Vec<String>> {
        match self.own_segment() {
            Some(own) if prefix.is_empty() => Ok(vec![own]),
            _ => {
                self.check_namespace(&prefix)?;
                Ok(prefix)
            }
        }
    }
}

#[test]
fn an_owner_has_one_segment_that_no_other_owner_has() {
    let caller = |owner: &str| Caller {
        owner: Some(owner.to_owned()),
        ..Caller::default()
    };
    assert_eq!(caller("alice").own_segment().unwrap(), "alice");
    let mail = caller("a.b@example.com").own_segment().unwrap();
    assert_eq!(mail, "a%2Eb@example%2Ecom");
    assert_ne!(caller("a%2Eb@example%2Ecom").own_segment().unwrap(), mail);
    assert!(caller("alice").check_namespace(&["bob".into()]).is_err());
    assert!(caller("alice").check_namespace(&[]).is_err());
    assert_eq!(caller("alice").own_prefix(Vec::new()).unwrap(), ["alice"]);
    assert!(Caller::default().check_namespace(&[]).is_ok());
    let wanted = |owner: &str| {
        let fields = Map::from_iter([(OWNER.to_owned(), Json::from(owner))]);
        caller("alice").own_only(Some(fields))
    };
    assert!(wanted("bob").is_err());
    assert_eq!(wanted("alice"), caller("alice").own_only(None));
}
