//! Turns the answer of a server into text for a person. The wording is the program's; only names and values come from the
//! server.

mod cut;
mod details;

use archie_agent::printable::one_line;
use serde_json::{Map, Value as Json, json};

use super::catalogue::{Api, Catalogue, Dialect};

/// An answer as text, and the things that it lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WordedAnswer {
    /// Text for a person. May have several lines.
    pub text: String,
    /// Short name of each listed thing, stable between answers.
    pub items: Vec<String>,
}

/// Returns the form of an answer that the state keeps: its list cut to `limit` items, its fields renamed as in the brief for a
/// known dialect, and the whole shortened to valid JSON of limited size.
pub(super) fn kept(catalogue: &Catalogue, body: &Json, limit: Option<u64>) -> Json {
    let mut body = body.clone();
    if let (Some(limit), Some(list)) = (limit, list_mut(&mut body)) {
        list.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    if catalogue.dialect == Dialect::Audius {
        match body.get_mut("data") {
            Some(Json::Array(items)) => {
                for (at, item) in items.iter_mut().enumerate() {
                    *item = track(item, at + 1).unwrap_or_else(|| item.take());
                }
            }
            Some(one) => *one = track(one, 1).unwrap_or_else(|| one.take()),
            None => {}
        }
    }
    cut::cut(body)
}

/// Renames the fields of an Audius track as in the brief. `None` if the value is not a track.
fn track(raw: &Json, rank: usize) -> Option<Json> {
    raw.get("title")?;
    let user = raw.get("user")?;
    let tags: Vec<&str> = match &raw["tags"] {
        Json::String(tags) => tags
            .split(',')
            .map(str::trim)
            .filter(|tag| !tag.is_empty())
            .collect(),
        _ => Vec::new(),
    };
    Some(json!({
        "type": "track",
        "id": raw["id"],
        "title": raw["title"],
        "playCount": raw["play_count"],
        "rank": rank,
        "user": { "name": user["name"], "handle": user["handle"], "id": user["id"] },
        "artwork": raw["artwork"],
        "description": raw["description"],
        "genre": raw["genre"],
        "mood": raw["mood"],
        "releaseDate": raw["release_date"],
        "remixOf": raw["remix_of"],
        "repostCount": raw["repost_count"],
        "favoriteCount": raw["favorite_count"],
        "commentCount": raw["comment_count"],
        "tags": tags,
        "duration": raw["duration"],
        "isDownloadable": raw["is_downloadable"],
        "permalink": permalink(&raw["permalink"]),
    }))
}

fn permalink(raw: &Json) -> Json {
    match raw.as_str() {
        Some(path) if path.starts_with('/') => json!(format!("https://audius.co{path}")),
        _ => raw.clone(),
    }
}

/// Describes an answer in words.
pub(super) fn worded(query_type: &str, api: &Api, kept: &Json) -> WordedAnswer {
    if let Some(list) = list(kept) {
        return listed(query_type, api, list);
    }
    let one = kept
        .get("data")
        .filter(|data| data.is_object())
        .unwrap_or(kept);
    match one {
        Json::Object(fields) if !fields.is_empty() => {
            let label = label(one);
            let mut lines = vec![format!("{}: {label}", shown(&api.tool_name))];
            let plain = fields
                .iter()
                .filter(|(_, value)| !value.is_object() && !value.is_array() && !value.is_null());
            lines.extend(
                plain
                    .take(FIELDS_MAX)
                    .map(|(name, value)| format!("  {}: {}", shown(name), scalar(value))),
            );
            WordedAnswer {
                text: lines.join("\n"),
                items: vec![identity(one)],
            }
        }
        Json::Object(_) | Json::Null => WordedAnswer {
            text: format!("{}: done.", shown(&api.tool_name)),
            items: Vec::new(),
        },
        other => WordedAnswer {
            text: format!("{}: {}", shown(&api.tool_name), scalar(other)),
            items: Vec::new(),
        },
    }
}

fn listed(query_type: &str, api: &Api, list: &[Json]) -> WordedAnswer {
    if list.is_empty() {
        return WordedAnswer {
            text: "Nothing was found.".to_owned(),
            items: Vec::new(),
        };
    }
    let count = list.len();
    let heading = match query_type {
        "trending_tracks" => format!("Here are the top {count} trending tracks:"),
        "underground_tracks" => format!("Here are the top {count} trending underground tracks:"),
        "trending_playlists" => format!("Here are the top {count} trending playlists:"),
        _ => format!("{} ({count}):", shown(&api.tool_name)),
    };
    let lines = list
        .iter()
        .enumerate()
        .map(|(at, item)| format!("{}. {}", at + 1, label(item)));
    let text = std::iter::once(heading)
        .chain(lines)
        .collect::<Vec<_>>()
        .join("\n");
    WordedAnswer {
        text,
        items: list.iter().map(identity).collect(),
    }
}

/// Answers a question about a number, for example `RAC has 4,321 followers.` `None` if the question names no count that
/// `detail` has.
pub(super) fn counted(query: &str, entity_name: &str, detail: &Json) -> Option<String> {
    let detail = detail.get("data").unwrap_or(detail);
    let words = super::stemming::tokens(query);
    let (what, _, value) = COUNTED.iter().find_map(|(word, fields)| {
        let field = fields.iter().find(|field| detail[**field].is_number())?;
        words
            .iter()
            .any(|said| said == word)
            .then(|| (*word, *field, &detail[*field]))
    })?;
    let name = ["name", "title"]
        .iter()
        .find_map(|field| detail[*field].as_str())
        .unwrap_or(entity_name);
    Some(format!("{} has {} {what}.", shown(name), number(value)))
}

/// Words that ask for a count, and the fields that hold it.
const COUNTED: [(&str, &[&str]); 9] = [
    ("followers", &["follower_count"]),
    ("tracks", &["track_count"]),
    ("songs", &["track_count"]),
    ("playlists", &["playlist_count"]),
    ("plays", &["play_count", "playCount"]),
    ("favorites", &["favorite_count", "favoriteCount"]),
    ("likes", &["favorite_count", "favoriteCount"]),
    ("reposts", &["repost_count", "repostCount"]),
    ("comments", &["comment_count", "commentCount"]),
];

/// Returns the list in an answer: the answer itself, the list under a usual name, or, in an object with few fields, its only
/// list of objects.
pub(super) fn list(body: &Json) -> Option<&[Json]> {
    if let Json::Array(items) = body {
        return Some(items);
    }
    let fields = body.as_object()?;
    let usual = LISTS
        .iter()
        .filter_map(|name| fields.get(*name)?.as_array())
        .next();
    let only = || {
        let mut lists = fields.values().filter_map(Json::as_array);
        let first = lists.next().filter(|_| fields.len() <= 6)?;
        (lists.next().is_none() && first.first().is_some_and(Json::is_object)).then_some(first)
    };
    usual.or_else(only).map(Vec::as_slice)
}

fn list_mut(body: &mut Json) -> Option<&mut Vec<Json>> {
    list(body)?;
    if body.is_array() {
        return body.as_array_mut();
    }
    let fields = body.as_object_mut()?;
    let usual = LISTS
        .iter()
        .find(|name| fields.get(**name).is_some_and(Json::is_array));
    match usual {
        Some(name) => fields.get_mut(*name)?.as_array_mut(),
        None => fields
            .values_mut()
            .find(|value| value.is_array())?
            .as_array_mut(),
    }
}

/// Describes one thing in a line.
fn label(item: &Json) -> String {
    let text = |name: &str| item[name].as_str().map(shown);
    let by = item["user"]["name"].as_str().map(shown);
    if let (Some(title), Some(by)) = (text("title").or_else(|| text("playlist_name")), &by) {
        let plays = ["playCount", "play_count", "total_play_count"]
            .iter()
            .find(|name| item[**name].is_number());
        let plays = plays
            .map(|name| format!(" ({} plays)", number(&item[*name])))
            .unwrap_or_default();
        return format!("\"{title}\" by {by}{plays}");
    }
    if let (Some(name), Some(handle)) = (text("name"), text("handle")) {
        let followers = item["follower_count"]
            .is_number()
            .then(|| format!(", {} followers", number(&item["follower_count"])));
        return format!("{name} (@{handle}{})", followers.unwrap_or_default());
    }
    let inner = ["item", "message"]
        .iter()
        .find(|name| item[**name].is_object());
    if let Some(inner) = inner {
        return label(&item[*inner]);
    }
    match item {
        Json::Object(fields) => {
            let name = NAMES.iter().find_map(|name| {
                fields
                    .get(*name)
                    .filter(|value| !value.is_object() && !value.is_array() && !value.is_null())
            });
            let id = fields
                .get("id")
                .filter(|id| !id.is_null() && Some(*id) != name);
            let named = match (name, id) {
                (Some(name), Some(id)) => format!("{} ({})", scalar(name), scalar(id)),
                (Some(only), None) | (None, Some(only)) => scalar(only),
                (None, None) => return first_fields(fields),
            };
            let is_bare = name.is_none_or(|name| Some(name) == fields.get("id"));
            match details::of(fields, is_bare) {
                details if details.is_empty() => named,
                details => format!("{named}, {}", details.join(", ")),
            }
        }
        other => scalar(other),
    }
}

fn first_fields(fields: &Map<String, Json>) -> String {
    let plain = fields
        .iter()
        .filter(|(_, value)| !value.is_object() && !value.is_array() && !value.is_null());
    let told: Vec<_> = plain
        .take(3)
        .map(|(name, value)| format!("{}: {}", shown(name), scalar(value)))
        .collect();
    match told.is_empty() {
        true => "(no plain fields)".to_owned(),
        false => told.join(", "),
    }
}

/// Returns a name that identifies a thing in later answers. Leaves out values that change, such as counts.
fn identity(item: &Json) -> String {
    let name = ["title", "playlist_name"]
        .iter()
        .chain(&NAMES)
        .find_map(|name| item[*name].as_str());
    let id = &item["id"];
    match (name, id.is_null()) {
        (Some(name), false) => format!("{} ({})", shown(name), scalar(id)),
        (Some(name), true) => shown(name),
        (None, false) => scalar(id),
        (None, true) => label(item),
    }
}

fn scalar(value: &Json) -> String {
    match value {
        Json::String(text) => shown(text),
        Json::Number(_) => value.to_string(),
        other => shown(&other.to_string()),
    }
}

/// Formats a number with thousands separators: `1234567` becomes `1,234,567`.
fn number(value: &Json) -> String {
    let text = value.to_string();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.as_str()),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return text;
    }
    let mut parted = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            parted.push(',');
        }
        parted.push(digit);
    }
    format!("{sign}{parted}")
}

/// Puts untrusted text on one printable line, cut after 200 characters.
pub fn shown(text: &str) -> String {
    let short: String = text.chars().take(LINE_CHARS).collect();
    let mut shown = one_line(&short);
    if short.len() < text.len() {
        shown.push('…');
    }
    shown
}

const NAMES: [&str; 17] = [
    "name",
    "full_name",
    "title",
    "display_name",
    "displayName",
    "login",
    "label",
    "summary",
    "subject",
    "handle",
    "username",
    "email",
    "message",
    "slug",
    "key",
    "description",
    "id",
];
const LISTS: [&str; 6] = ["data", "items", "results", "records", "values", "list"];
const FIELDS_MAX: usize = 12;
const LINE_CHARS: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_is_still_json_and_says_so() {
        let catalogue = super::super::catalogue_store::audius();
        let long: Vec<Json> = (0..5_000)
            .map(|n| json!({ "id": n, "text": "x".repeat(200) }))
            .collect();
        let kept = kept(&catalogue, &json!({ "rows": long }), None);
        assert_eq!(kept["truncated"], true);
        assert!(kept.to_string().len() < 2 * cut::BYTES_MAX);
        let mut deep = json!(1);
        for _ in 0..120 {
            deep = json!([deep]);
        }
        assert!(super::kept(&catalogue, &deep, None).to_string().len() < 200);
    }

    #[test]
    fn what_would_not_be_seen_is_shown() {
        assert_eq!(
            shown("a\u{202e}b\u{1b}[2J\nc\u{200b}"),
            "a\\u{202e}b\\u{1b}[2J\\nc\\u{200b}"
        );
    }

    #[test]
    fn numbers_are_parted() {
        let parted: Vec<_> = [0, 12, 123, 1_234, 1_234_567]
            .iter()
            .map(|n| number(&json!(n)))
            .collect();
        assert_eq!(parted, ["0", "12", "123", "1,234", "1,234,567"]);
    }
}
