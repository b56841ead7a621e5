//! The body of a request that creates or changes a cron.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value as Json};
use superstep::Timestamp;

use crate::error::{ApiError, ApiResult};
use crate::wire::{self, ON_RUN_COMPLETED};

/// What a request says about a cron; `None` for what it does not name.
#[derive(Debug, Default)]
pub(crate) struct CronBody {
    /// Id of the assistant, or the name of its graph.
    pub(super) assistant: String,
    pub(super) schedule: Option<String>,
    pub(super) zone: Option<String>,
    /// `Some(None)` removes the end.
    pub(super) end: Option<Option<Timestamp>>,
    pub(super) is_enabled: Option<bool>,
    pub(super) metadata: Option<Map<String, Json>>,
    /// What the runs are made from, as the caller sent it.
    pub(super) arguments: Map<String, Json>,
}

/// The fields that are not arguments of runs.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CronFields {
    assistant_id: String,
    schedule: Option<String>,
    timezone: Option<String>,
    enabled: Option<bool>,
    metadata: Option<Map<String, Json>>,
    /// `Some(None)` for `null`.
    #[serde(deserialize_with = "present")]
    end_time: Option<Option<String>>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl CronBody {
    /// Reads a body. Fields that the server does not know are tolerated; those that would make another run than the caller wants
    /// are not.
    pub(crate) fn read(mut fields: Map<String, Json>) -> ApiResult<Self> {
        let is_set = |name: &&&str| fields.get(**name).is_some_and(|value| !value.is_null());
        if let Some(name) = REFUSED.iter().find(is_set) {
            return Err(ApiError::invalid(format!(
                "A cron cannot have `{name}`: its runs start with an `input`, or resume their thread without one"
            )));
        }
        let mut arguments = Map::new();
        for name in ARGUMENTS {
            if let Some(value) = fields.remove(*name).filter(|value| !value.is_null()) {
                arguments.insert((*name).to_owned(), value);
            }
        }
        let read: CronFields = serde_json::from_value(Json::Object(fields)).map_err(|error| {
            ApiError::invalid(format!("The request body is not valid: {error}"))
        })?;
        let end = match read.end_time {
            Some(Some(text)) => Some(Some(read_end(&text)?)),
            Some(None) => Some(None),
            None => None,
        };
        Ok(Self {
            assistant: read.assistant_id,
            schedule: read.schedule,
            zone: read.timezone,
            end,
            is_enabled: read.enabled,
            metadata: read.metadata,
            arguments,
        })
    }

    /// Whether a change with this body would change nothing.
    pub(super) fn is_empty(&self) -> bool {
        !self.changes_times() && self.metadata.is_none() && self.arguments.is_empty()
    }

    /// Whether a change with this body changes when the cron is due.
    pub(super) fn changes_times(&self) -> bool {
        self.schedule.is_some()
            || self.zone.is_some()
            || self.end.is_some()
            || self.is_enabled.is_some()
    }
}

fn read_end(text: &str) -> ApiResult<Timestamp> {
    wire::read_time(text).ok_or_else(|| {
        ApiError::invalid(format!(
            "`end_time` is `{}`, which is not a time in ISO-8601, such as `2030-01-31T12:00:00Z`",
            text.chars().take(64).collect::<String>()
        ))
    })
}

/// What the runs of a cron are made from.
const ARGUMENTS: &[&str] = &[
    "input",
    "config",
    "context",
    "interrupt_before",
    "interrupt_after",
    "multitask_strategy",
    "stream_mode",
    "stream_subgraphs",
    "stream_resumable",
    "durability",
    "checkpoint_during",
    "webhook",
    ON_RUN_COMPLETED,
];

/// What the body of a run may have and that of a cron may not.
const REFUSED: &[&str] = &["command", "checkpoint", "checkpoint_id", "after_seconds"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: Json) -> ApiResult<CronBody> {
        let Json::Object(fields) = body else {
            panic!("{body} is not an object");
        };
        CronBody::read(fields)
    }

    #[test]
    fn an_end_that_is_null_is_not_an_end_that_is_missing() {
        assert_eq!(read(json!({ "enabled": true })).unwrap().end, None);
        let removed = read(json!({ "end_time": null })).unwrap();
        assert_eq!(removed.end, Some(None));
        assert!(removed.changes_times() && !removed.is_empty());
        let set = read(json!({ "end_time": "1970-01-01T00:00:01" })).unwrap();
        assert_eq!(set.end, Some(Some(Timestamp(1_000))));
        let refused = read(json!({ "end_time": "soon" })).unwrap_err();
        assert!(refused.detail.contains("`soon`"), "{}", refused.detail);
    }

    #[test]
    fn what_would_make_another_run_is_refused_and_the_rest_is_tolerated() {
        let body = json!({ "input": {}, "webhook": null, "command": null, "unknown": 1 });
        let read_body = read(body).unwrap();
        let names: Vec<&String> = read_body.arguments.keys().collect();
        assert_eq!(names, ["input"]);
        assert!(read(json!({ "unknown": 1 })).unwrap().is_empty());
        for name in REFUSED {
            let refused = read(json!({ *name: {} })).unwrap_err();
            assert!(refused.detail.contains(*name), "{}", refused.detail);
        }
    }
}
