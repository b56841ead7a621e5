//! Paths into a JSON value, such as `values.messages[-1].content`.

use serde_json::Value as Json;

/// Returns the value at a path; `null` if there is none. A negative index counts from the end.
pub(crate) fn extract(value: &Json, path: &str) -> Json {
    let mut found = value;
    for part in path.split('.') {
        let (name, indexes) = match part.split_once('[') {
            Some((name, rest)) => (name, Some(rest)),
            None => (part, None),
        };
        if !name.is_empty() {
            match found.get(name) {
                Some(field) => found = field,
                None => return Json::Null,
            }
        }
        for index in indexes.into_iter().flat_map(|rest| rest.split('[')) {
            match item(found, index) {
                Some(item) => found = item,
                None => return Json::Null,
            }
        }
    }
    found.clone()
}

fn item<'a>(list: &'a Json, index: &str) -> Option<&'a Json> {
    let list = list.as_array()?;
    let index: i64 = index.strip_suffix(']')?.parse().ok()?;
    let place = match index < 0 {
        true => list
            .len()
            .checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?,
        false => usize::try_from(index).ok()?,
    };
    list.get(place)
}

#[test]
fn paths_lead_into_lists_from_both_ends() {
    let value =
        serde_json::json!({ "values": { "messages": [{ "content": "a" }, { "content": "b" }] } });
    assert_eq!(extract(&value, "values.messages[-1].content"), "b");
    assert_eq!(extract(&value, "values.messages[0].content"), "a");
    for nowhere in [
        "values.messages[2]",
        "values.messages[-3]",
        "values.messages[x]",
        "other",
    ] {
        assert_eq!(extract(&value, nowhere), Json::Null, "{nowhere}");
    }
}
