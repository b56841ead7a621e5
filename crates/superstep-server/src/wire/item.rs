//! Items of the long-term store.

use serde_json::{Value as Json, json};
use superstep::store::Item;

use crate::wire::time;

/// Returns an item as clients read it.
pub(crate) fn item(item: &Item) -> Json {
    json!({
        "namespace": item.namespace.segments(),
        "key": item.key,
        "value": item.value,
        "created_at": time(item.created),
        "updated_at": time(item.updated),
    })
}
