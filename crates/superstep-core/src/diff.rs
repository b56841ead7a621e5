//! Compares two states: which values differ, and where. Pure: reading the states is up to the caller.
//!
//! Objects are compared field by field. Lists of the same length are compared item by item, and lists whose items have ids, such as
//! messages, by these ids, so that an inserted message is one difference. Other lists of different lengths differ as a whole.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use crate::ids::FramePath;

/// A place where two values differ.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueChange {
    /// Where it is. An item that was compared by its id has its place in the second list, or in the first if only that has it.
    pub path: Vec<PathSegment>,
    /// Id of the innermost item around it that was compared by id.
    pub id: Option<String>,
    /// The first value; `None` if it is absent there.
    pub before: Option<Json>,
    /// The second value; `None` if it is absent there.
    pub after: Option<Json>,
}

/// One step on the way into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathSegment {
    /// Into a field of an object.
    Field(String),
    /// Into an item of a list.
    Index(usize),
}

impl ValueChange {
    /// Returns the path as a JSON Pointer (RFC 6901), such as `/messages/2/content`.
    pub fn pointer(&self) -> String {
        let mut pointer = String::new();
        for segment in &self.path {
            pointer.push('/');
            match segment {
                PathSegment::Field(name) => {
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                }
                PathSegment::Index(at) => pointer.push_str(&at.to_string()),
            }
        }
        pointer
    }
}

/// Returns every place where two values differ, in order. `None` is a value that is absent.
///
/// ```
/// use serde_json::json;
/// use superstep_core::diff::value_changes;
///
/// let one = json!({ "messages": [{ "id": "a", "text": "Hi" }], "topic": "tea" });
/// let other = json!({ "messages": [{ "id": "new" }, { "id": "a", "text": "Ho" }], "topic": "tea" });
/// let changes = value_changes(Some(&one), Some(&other));
/// let places: Vec<_> = changes.iter().map(|change| change.pointer()).collect();
/// assert_eq!(places, ["/messages/0", "/messages/1/text"]);
/// ```
pub fn value_changes(one: Option<&Json>, other: Option<&Json>) -> Vec<ValueChange> {
    let mut comparison = Comparison::default();
    comparison.compare(one, other);
    comparison.found
}

#[derive(Default)]
struct Comparison {
    path: Vec<PathSegment>,
    ids: Vec<String>,
    found: Vec<ValueChange>,
}

impl Comparison {
    fn compare(&mut self, one: Option<&Json>, other: Option<&Json>) {
        if one == other {
            return;
        }
        let is_shallow = self.path.len() < DEPTH_MAX;
        match (one, other) {
            (Some(Json::Object(one)), Some(Json::Object(other))) if is_shallow => {
                let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
                for name in names {
                    let field = PathSegment::Field(name.clone());
                    self.inside(field, one.get(name), other.get(name));
                }
            }
            (Some(Json::Array(one)), Some(Json::Array(other))) if is_shallow => {
                match (ids_of(one), ids_of(other)) {
                    (Some(before), Some(after)) if has_same_order(&before, &after) => {
                        self.by_id((one, &before), (other, &after));
                    }
                    _ if one.len() == other.len() => {
                        for (at, (one, other)) in one.iter().zip(other).enumerate() {
                            self.inside(PathSegment::Index(at), Some(one), Some(other));
                        }
                    }
                    _ => self.push(Some(one.clone().into()), Some(other.clone().into())),
                }
            }
            _ => self.push(one.cloned(), other.cloned()),
        }
    }

    fn by_id(&mut self, one: (&[Json], &[&str]), other: (&[Json], &[&str])) {
        let places: BTreeMap<&str, usize> = (0..).zip(one.1).map(|(at, id)| (*id, at)).collect();
        let left: BTreeSet<&str> = other.1.iter().copied().collect();
        for (at, id) in one.1.iter().enumerate() {
            if !left.contains(id) {
                self.item(at, id, one.0.get(at), None);
            }
        }
        for (at, id) in other.1.iter().enumerate() {
            let before = places.get(id).and_then(|place| one.0.get(*place));
            self.item(at, id, before, other.0.get(at));
        }
    }

    fn item(&mut self, at: usize, id: &str, one: Option<&Json>, other: Option<&Json>) {
        self.ids.push(id.to_owned());
        self.inside(PathSegment::Index(at), one, other);
        self.ids.pop();
    }

    fn inside(&mut self, segment: PathSegment, one: Option<&Json>, other: Option<&Json>) {
        self.path.push(segment);
        self.compare(one, other);
        self.path.pop();
    }

    fn push(&mut self, before: Option<Json>, after: Option<Json>) {
        self.found.push(ValueChange {
            path: self.path.clone(),
            id: self.ids.last().cloned(),
            before,
            after,
        });
    }
}

/// Returns the ids of a list's items; `None` unless every item has one of its own.
fn ids_of(items: &[Json]) -> Option<Vec<&str>> {
    let ids = items.iter().map(|item| item.get("id")?.as_str());
    let ids: Vec<&str> = ids.collect::<Option<_>>()?;
    let different: BTreeSet<&str> = ids.iter().copied().collect();
    (different.len() == ids.len()).then_some(ids)
}

/// Whether the ids that both lists have are in the same order. If they are not, a difference by id would hide that items moved.
fn has_same_order(one: &[&str], other: &[&str]) -> bool {
    let (left, right): (BTreeSet<_>, BTreeSet<_>) = (one.iter().collect(), other.iter().collect());
    let first = one.iter().filter(|id| right.contains(id));
    first.eq(other.iter().filter(|id| left.contains(id)))
}

/// The fields of a thread's state at one point in time, those of open subgraphs included.
#[derive(Debug, Clone, Default)]
pub struct StateFields {
    root: Map<String, Json>,
    /// By the names of the nodes on the path. A node that was sent to several times has several invocations.
    subgraphs: BTreeMap<String, Vec<Invocation>>,
}

/// State of one invocation of a subgraph.
#[derive(Debug, Clone)]
struct Invocation {
    tasks: String,
    fields: Map<String, Json>,
}

impl StateFields {
    /// Creates the state of a thread that is in no subgraph.
    pub fn new(root: Map<String, Json>) -> Self {
        Self {
            root,
            subgraphs: BTreeMap::new(),
        }
    }

    /// Adds the state of an open subgraph.
    #[must_use]
    pub fn with_subgraph(mut self, frame: &FramePath, fields: Map<String, Json>) -> Self {
        let levels = frame.segments().iter();
        let nodes: Vec<&str> = levels.clone().map(|level| level.node.as_str()).collect();
        let tasks = levels.map(|level| format!("{:?}", level.task)).collect();
        let of_node = self.subgraphs.entry(nodes.join("/")).or_default();
        of_node.push(Invocation { tasks, fields });
        self
    }
}

/// A graph whose states are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedGraph {
    /// Empty for the root graph; otherwise the nodes on the path of a subgraph, as `outer/inner`, with a number such as `#2` if it
    /// has several invocations.
    pub subgraph: String,
    /// The first state; `None` if it is not inside of this subgraph.
    pub one: Option<Map<String, Json>>,
    /// The second state; `None` if it is not inside of this subgraph.
    pub other: Option<Map<String, Json>>,
}

/// Pairs the graphs of two states, the root graph first. Invocations of the same node are the same if their tasks are, as in two
/// entries of a thread or in its copy; others are paired in order.
pub fn compared_graphs(one: StateFields, other: StateFields) -> Vec<ComparedGraph> {
    let mut pairs = vec![ComparedGraph {
        subgraph: String::new(),
        one: Some(one.root),
        other: Some(other.root),
    }];
    let (mut one, mut other) = (one.subgraphs, other.subgraphs);
    let nodes: BTreeSet<String> = one.keys().chain(other.keys()).cloned().collect();
    for node in nodes {
        let first = one.remove(&node).unwrap_or_default();
        let second = other.remove(&node).unwrap_or_default();
        pair_invocations(&node, first, second, &mut pairs);
    }
    pairs
}

fn pair_invocations(
    node: &str,
    first: Vec<Invocation>,
    mut second: Vec<Invocation>,
    pairs: &mut Vec<ComparedGraph>,
) {
    let several = first.len().max(second.len()) > 1;
    let known: Vec<String> = first.iter().map(|of| of.tasks.clone()).collect();
    let mut number = 0;
    let mut name = || {
        number += 1;
        match several {
            true => format!("{node}#{number}"),
            false => node.to_owned(),
        }
    };
    for Invocation { tasks, fields } in first {
        let same = second.iter().position(|of| of.tasks == tasks);
        let free = || second.iter().position(|of| !known.contains(&of.tasks));
        let pair = same.or_else(free).map(|at| second.remove(at).fields);
        pairs.push(ComparedGraph {
            subgraph: name(),
            one: Some(fields),
            other: pair,
        });
    }
    pairs.extend(second.into_iter().map(|only| ComparedGraph {
        subgraph: name(),
        one: None,
        other: Some(only.fields),
    }));
}

/// Below this depth, values differ as a whole.
const DEPTH_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pointers(one: &Json, other: &Json) -> Vec<String> {
        let changes = value_changes(Some(one), Some(other));
        changes.iter().map(ValueChange::pointer).collect()
    }

    #[test]
    fn a_pointer_escapes_what_names_may_hold() {
        let (one, other) = (json!({ "a/b": { "~": 1 } }), json!({ "a/b": { "~": 2 } }));
        assert_eq!(pointers(&one, &other), ["/a~1b/~0"]);
        assert_eq!(pointers(&one, &one), [""; 0]);
        assert_eq!(pointers(&json!(1), &json!(2)), [""]);
    }

    #[test]
    fn items_with_ids_are_compared_by_them() {
        let one = json!([{ "id": "a", "n": 1 }, { "id": "b" }, { "id": "c" }]);
        let other = json!([{ "id": "a", "n": 2 }, { "id": "c" }, { "id": "d" }]);
        let changes = value_changes(Some(&one), Some(&other));
        let shown: Vec<_> = changes
            .iter()
            .map(|change| (change.pointer(), change.id.as_deref().unwrap()))
            .collect();
        assert_eq!(
            shown,
            [
                ("/1".to_owned(), "b"),
                ("/0/n".to_owned(), "a"),
                ("/2".to_owned(), "d")
            ]
        );
        assert_eq!(
            (&changes[0].after, &changes[2].before),
            (&None, &None),
            "absent, not null"
        );
        // Items that moved, and ids that are not unique: by place.
        let moved = json!([{ "id": "b" }, { "id": "a", "n": 1 }, { "id": "c" }]);
        assert_eq!(pointers(&one, &moved), ["/0/id", "/0/n", "/1/id", "/1/n"]);
        let twice = json!([{ "id": "a" }, { "id": "a" }]);
        assert_eq!(pointers(&one, &twice), [""]);
    }

    #[test]
    fn a_list_without_ids_differs_as_a_whole_if_its_length_does() {
        assert_eq!(pointers(&json!([1, 2]), &json!([1, 3])), ["/1"]);
        assert_eq!(pointers(&json!([1, 2]), &json!([1])), [""]);
    }
}
