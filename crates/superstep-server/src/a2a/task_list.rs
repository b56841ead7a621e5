//! Lists of tasks.

use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::Page;
use superstep::registry::RunQuery;
use superstep::{ThreadId, Timestamp};

use crate::a2a::dialect::TaskState;
use crate::a2a::history_length;
use crate::a2a::task::{AgentTasks, KIND};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::follow::thread_named;
use crate::json_rpc::RpcError;
use crate::wire;

impl AgentTasks {
    /// Lists the tasks that were sent to this assistant over the protocol, newest first.
    pub(super) async fn list(&self, params: &Json) -> Result<Json, RpcError> {
        let wanted = TaskList::read(params, &self.caller)?;
        let assistant = wire::uuid(self.assistant.id.to_bytes());
        let metadata = Map::from_iter([
            (KIND.to_owned(), "task".into()),
            ("assistant_id".to_owned(), assistant.into()),
        ]);
        let query = RunQuery {
            tenant: self.caller.tenant.clone(),
            thread: wanted.thread,
            metadata: self.caller.own_only(Some(metadata))?,
            page: Page {
                // One more, to see whether there is another page.
                limit: wanted.size + 1,
                offset: wanted.offset,
            },
            ..RunQuery::default()
        };
        let rows = self.app.registry().runs(&query).await;
        let mut rows = rows.map_err(ApiError::from)?;
        let found = rows.len();
        let size = wanted.size as usize;
        rows.truncate(size);
        let mut tasks = Vec::with_capacity(rows.len());
        for row in rows {
            let task = self.task_of(row).await?;
            let mut shown = self.show(&task, wanted.history).await?;
            let state = wanted.state.map(|state| self.dialect.state(state));
            if state.is_some_and(|state| shown["status"]["state"] != state) {
                continue;
            }
            let changed = shown["status"]["timestamp"]
                .as_str()
                .and_then(wire::read_time);
            if wanted
                .changed_after
                .is_some_and(|after| changed.is_some_and(|at| at < after))
            {
                continue;
            }
            if let Some(fields) = shown.as_object_mut().filter(|_| !wanted.with_artifacts) {
                fields.remove("artifacts");
            }
            tasks.push(shown);
        }
        let next = match found > size {
            true => wanted.offset.saturating_add(wanted.size).to_string(),
            false => String::new(),
        };
        Ok(json!({
            "pageSize": tasks.len(),
            "tasks": tasks,
            "nextPageToken": next,
            // As far as it is known: runs are not counted.
            "totalSize": wanted.offset as usize + found,
        }))
    }
}

/// Which tasks a client lists.
struct TaskList {
    thread: Option<ThreadId>,
    state: Option<TaskState>,
    /// Only tasks whose status changed at this time or later.
    changed_after: Option<Timestamp>,
    size: u32,
    offset: u32,
    history: Option<usize>,
    with_artifacts: bool,
}

impl TaskList {
    fn read(params: &Json, caller: &Caller) -> Result<Self, RpcError> {
        let text = |name: &str| {
            let found = params.get(name).and_then(Json::as_str);
            found.filter(|text| !text.is_empty())
        };
        let thread = text("contextId").map(|name| thread_named(caller, name));
        let state = match text("status") {
            None | Some("TASK_STATE_UNSPECIFIED") => None,
            Some(name) => Some(TaskState::from_name(name).ok_or_else(|| {
                RpcError::invalid_params("`status` is not a state of tasks of this server")
            })?),
        };
        // The name of 1.0, and that of a draft.
        let after = text("statusTimestampAfter").or_else(|| text("lastUpdatedAfter"));
        let changed_after = after.map(|after| {
            let refused = || {
                RpcError::invalid_params(
                    "`statusTimestampAfter` is not a time, such as 2026-10-27T10:00:00Z",
                )
            };
            wire::read_time(after).ok_or_else(refused)
        });
        let size = match params.get("pageSize") {
            None | Some(Json::Null) => PAGE,
            Some(size) => {
                let size = size.as_u64().filter(|size| (1..=PAGE_MAX).contains(size));
                let size = size.and_then(|size| u32::try_from(size).ok());
                size.ok_or_else(|| {
                    RpcError::invalid_params(format!("`pageSize` must be from 1 to {PAGE_MAX}"))
                })?
            }
        };
        let offset = text("pageToken").map(str::parse::<u32>).transpose();
        let offset = offset
            .map_err(|_| RpcError::invalid_params("`pageToken` is not a token of this list"))?;
        Ok(Self {
            thread: thread.transpose()?,
            state,
            changed_after: changed_after.transpose()?,
            size,
            offset: offset.unwrap_or(0),
            history: history_length(params)?,
            with_artifacts: params["includeArtifacts"] == true,
        })
    }
}

/// Number of tasks in a page by default, and at most.
const PAGE: u32 = 50;
const PAGE_MAX: u64 = 100;
