//! Whether two clients saw the same stream, as far as the server promises it.

use serde_json::Value as Json;

use crate::process::server::sse::StreamedEvent;

/// Returns the first event in which two streams differ.
pub(super) fn difference(
    pieced: &[StreamedEvent],
    whole: &[StreamedEvent],
    is_killed: bool,
) -> Option<String> {
    let comparable = |events: &[StreamedEvent]| -> Vec<StreamedEvent> {
        let events = events.iter().filter(|event| event.name != "metadata");
        let events = events.filter(|event| !is_killed || is_of_log(event));
        events.map(without_attempt).collect()
    };
    let (pieced, whole) = (comparable(pieced), comparable(whole));
    let at = (0..pieced.len().max(whole.len())).find(|at| pieced.get(*at) != whole.get(*at))?;
    let shown = |event: Option<&StreamedEvent>| match event {
        Some(event) => {
            let data = event.data.to_string();
            format!("{} {} {data:.200}", event.id, event.name)
        }
        None => "nothing".to_owned(),
    };
    Some(format!(
        "event {at} is `{}`, and `{}` for a client that was not cut off",
        shown(pieced.get(at)),
        shown(whole.get(at))
    ))
}

/// Leaves out how often the run was taken, which rises when a server dies.
fn without_attempt(event: &StreamedEvent) -> StreamedEvent {
    let mut event = event.clone();
    for metadata in ["/metadata", "/payload/metadata"] {
        let found = event.data.pointer_mut(metadata);
        if let Some(fields) = found.and_then(Json::as_object_mut) {
            fields.remove("run_attempt");
        }
    }
    event
}

/// Whether an event comes from the log, so that it is the same whenever it is streamed.
fn is_of_log(event: &StreamedEvent) -> bool {
    let name = event.name.split('|').next().unwrap_or_default();
    let place = match event.id.split_once('-') {
        Some((_, place)) => place.parse().ok(),
        None => event.id.parse().ok().map(|id: u64| id % PLACES),
    };
    LOGGED.contains(&name) && place.is_some_and(|place: u64| place < LIVE)
}

/// Names of events that are made from the log alone.
const LOGGED: [&str; 7] = [
    "values",
    "updates",
    "tasks",
    "checkpoints",
    "lifecycle",
    "input.requested",
    "state_update",
];
/// The first place of what nodes show live, and the number of places of an entry in the numbers of the thread protocol.
const LIVE: u64 = 1_000_000;
const PLACES: u64 = 1 << 22;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(id: &str, name: &str) -> StreamedEvent {
        StreamedEvent {
            name: name.to_owned(),
            data: json!({ "from": id }),
            id: id.to_owned(),
        }
    }

    #[test]
    fn a_missing_a_repeated_and_a_changed_event_are_differences() {
        let whole = [
            event("0-0", "metadata"),
            event("1-1", "values"),
            event("1-1000000", "messages"),
            event("2-0", "updates"),
        ];
        // Every connection begins with metadata.
        let resumed = [&whole[..2], &[event("1-1", "metadata")][..], &whole[2..]].concat();
        assert_eq!(difference(&resumed, &whole, false), None);
        assert!(difference(&whole[..3], &whole, false).is_some());
        let repeated = [&whole[..2], &whole[1..]].concat();
        assert!(difference(&repeated, &whole, false).is_some());
        let mut changed = whole.to_vec();
        changed[3].id = "2-1".to_owned();
        assert!(difference(&changed, &whole, false).is_some());
    }

    #[test]
    fn after_a_kill_only_events_of_the_log_must_be_the_same() {
        let whole = [event("1-1", "values"), event("2-64", "updates")];
        let with_tokens = [
            event("1-1", "values"),
            event("1-1000000", "messages"),
            event("1-1000001", "custom"),
            event("2-33", "messages"),
            event("2-64", "updates"),
        ];
        assert_eq!(difference(&with_tokens, &whole, true), None);
        assert!(difference(&with_tokens, &whole, false).is_some());
        assert!(difference(&with_tokens[1..], &whole, true).is_some());
        let number = (3 * PLACES + 7).to_string();
        assert!(is_of_log(&event(&number, "lifecycle")));
        let live = (3 * PLACES + LIVE).to_string();
        assert!(!is_of_log(&event(&live, "values")));
    }
}
