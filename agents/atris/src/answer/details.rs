//! The fields of a listed thing that matter besides its name: status, amount, date, and, if it has no name, what it belongs to.

use serde_json::{Map, Value as Json};

use super::{scalar, shown};
use crate::stemming::tokens;

/// Returns the fields as `name: value`, at most one of each kind. `is_bare` says that the thing has no name but its id.
pub(super) fn of(fields: &Map<String, Json>, is_bare: bool) -> Vec<String> {
    let mut found = Vec::new();
    if is_bare {
        let owners = fields.iter().filter(|(name, value)| {
            let words = tokens(name);
            words.len() > 1 && words.last().is_some_and(|last| last == "id") && is_plain(value)
        });
        found.extend(owners.take(OWNERS_MAX));
    }
    for kind in KINDS {
        let best = kind.iter().find_map(|word| {
            fields.iter().find(|(name, value)| {
                is_plain(value) && tokens(name).last().is_some_and(|last| last == word)
            })
        });
        found.extend(best);
    }
    found
        .into_iter()
        .map(|(name, value)| format!("{}: {}", shown(name), scalar(value)))
        .collect()
}

fn is_plain(value: &Json) -> bool {
    match value {
        Json::Null | Json::Object(_) | Json::Array(_) => false,
        Json::String(text) => !text.is_empty(),
        Json::Bool(_) | Json::Number(_) => true,
    }
}

/// Last words of the names of fields, by what they say. The first of a line that is there is shown.
const KINDS: [&[&str]; 3] = [
    &["status", "state"],
    &["amount", "total", "price", "balance"],
    &["date", "due", "day", "deadline"],
];
const OWNERS_MAX: usize = 2;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::answer::label;

    #[test]
    fn a_line_of_a_list_has_the_fields_that_matter() {
        let invoice = json!({ "id": 9001, "patientId": 5, "amount": 120.5, "status": "open", "dueDate": "2026-12-01", "lines": [] });
        assert_eq!(
            label(&invoice),
            "9001, patientId: 5, status: open, amount: 120.5, dueDate: 2026-12-01"
        );
        let pet = json!({ "id": 7, "name": "Rex", "status": "available", "ownerId": 3 });
        assert_eq!(label(&pet), "Rex (7), status: available");
        assert_eq!(label(&json!({ "id": 7, "name": "Rex" })), "Rex (7)");
    }
}
