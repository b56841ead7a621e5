//! Which events a client of the thread protocol gets.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::feed::{FeedId, Namespace, split_segment};

/// What a client subscribes to.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct FilterBody {
    channels: Vec<String>,
    /// Graphs whose events are wanted; empty or absent for all.
    namespaces: Option<Vec<Vec<String>>>,
    /// How many levels below those graphs are wanted; absent for all.
    depth: Option<usize>,
    /// Number of the last event that the client has seen.
    since: Option<u64>,
}

/// Decides which events a client gets.
#[derive(Debug, Clone)]
pub(super) struct EventFilter {
    channels: BTreeSet<String>,
    namespaces: Vec<Vec<String>>,
    depth: Option<usize>,
}

/// All channels, apart from those of named custom events.
const CHANNELS: [&str; 9] = [
    "values",
    "updates",
    "messages",
    "tools",
    "lifecycle",
    "input",
    "checkpoints",
    "tasks",
    "custom",
];

/// Highest number of channels, and of namespaces, of one subscription: every event is compared with each.
const NAMES_MAX: usize = 1_000;

impl FilterBody {
    /// Returns the filter, and the event after which it starts; or what is wrong.
    pub(super) fn read(self) -> Result<(EventFilter, Option<FeedId>), String> {
        if self.channels.is_empty() {
            return Err("a subscription needs a non-empty list of `channels`".to_owned());
        }
        let namespaces = self.namespaces.unwrap_or_default();
        if self.channels.len() > NAMES_MAX || namespaces.len() > NAMES_MAX {
            return Err(format!(
                "a subscription has at most {NAMES_MAX} `channels` and {NAMES_MAX} `namespaces`"
            ));
        }
        let is_known = |channel: &String| {
            let named = channel.strip_prefix("custom:");
            CHANNELS.contains(&channel.as_str()) || named.is_some_and(|name| !name.is_empty())
        };
        if let Some(unknown) = self.channels.iter().find(|channel| !is_known(channel)) {
            return Err(format!(
                "unknown channel `{}`; known are {} and custom:<name>",
                superstep::__private::shorten(unknown),
                CHANNELS.join(", ")
            ));
        }
        let filter = EventFilter {
            channels: self.channels.into_iter().collect(),
            namespaces,
            depth: self.depth,
        };
        Ok((filter, self.since.map(FeedId::from_number)))
    }
}

impl EventFilter {
    /// Whether a client with this filter gets an event of this channel and graph.
    pub(super) fn lets_through(&self, channel: &str, namespace: &Namespace) -> bool {
        self.has_channel(channel) && self.has_namespace(namespace.segments())
    }

    /// Whether the client only watches how runs go, and gets nothing of their content.
    pub(super) fn is_watcher(&self) -> bool {
        let mut channels = self.channels.iter();
        channels.all(|channel| matches!(channel.as_str(), "lifecycle" | "input"))
    }

    fn has_channel(&self, channel: &str) -> bool {
        self.channels.contains(channel)
            || (channel.starts_with("custom:") && self.channels.contains("custom"))
    }

    fn has_namespace(&self, segments: &[String]) -> bool {
        let is_wanted = |prefix: &Vec<String>| {
            is_prefix(prefix, segments)
                && self
                    .depth
                    .is_none_or(|depth| segments.len() - prefix.len() <= depth)
        };
        self.namespaces.is_empty() || self.namespaces.iter().any(is_wanted)
    }
}

/// Whether a path of graphs begins with another. A segment of the other without a task stands for every task of its node.
fn is_prefix(prefix: &[String], segments: &[String]) -> bool {
    let is_same = |(wanted, found): (&String, &String)| {
        wanted == found || (!wanted.contains(':') && split_segment(found).0 == wanted)
    };
    prefix.len() <= segments.len() && prefix.iter().zip(segments).all(is_same)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filter(body: serde_json::Value) -> EventFilter {
        let body: FilterBody = serde_json::from_value(body).unwrap();
        body.read().unwrap().0
    }

    fn segments(path: &str) -> Vec<String> {
        path.split('|')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn a_prefix_without_a_task_stands_for_all_tasks() {
        let any = filter(json!({ "channels": ["values"], "namespaces": [["tools"]] }));
        assert!(any.has_namespace(&segments("tools:1")));
        assert!(any.has_namespace(&segments("tools:1|inner:2")));
        assert!(!any.has_namespace(&segments("")));
        assert!(!any.has_namespace(&segments("other:1")));
        let one = filter(json!({ "channels": ["values"], "namespaces": [["tools:1"]] }));
        assert!(one.has_namespace(&segments("tools:1")));
        assert!(!one.has_namespace(&segments("tools:2")));
    }

    #[test]
    fn depth_counts_the_levels_below_the_prefix() {
        let root = filter(json!({ "channels": ["tools"], "namespaces": [[]], "depth": 0 }));
        assert!(root.has_namespace(&segments("")));
        assert!(!root.has_namespace(&segments("a:1")));
        let one = filter(json!({ "channels": ["tools"], "namespaces": [[]], "depth": 1 }));
        assert!(one.has_namespace(&segments("a:1")));
        assert!(!one.has_namespace(&segments("a:1|b:2")));
    }

    #[test]
    fn named_custom_channels_are_part_of_the_general_one() {
        let all = filter(json!({ "channels": ["custom"] }));
        assert!(all.has_channel("custom:progress"));
        let named = filter(json!({ "channels": ["custom:progress", "lifecycle"] }));
        assert!(named.has_channel("custom:progress"));
        assert!(!named.has_channel("custom"));
        assert!(!named.is_watcher());
        assert!(filter(json!({ "channels": ["input", "lifecycle"] })).is_watcher());
    }

    #[test]
    fn what_cannot_be_subscribed_to_is_refused() {
        for body in [
            json!({}),
            json!({ "channels": ["valuez"] }),
            json!({ "channels": ["custom:"] }),
        ] {
            let body: FilterBody = serde_json::from_value(body).unwrap();
            assert!(body.read().is_err());
        }
    }
}
