//! JSON that is searched by its fields: each field is in clear because it was declared, or encrypted.
//!
//! Fields of metadata are encrypted one by one, under a hidden name, because a store merges metadata by the names of its fields. A
//! listed state and the value of an item are replaced as a whole, so they are encrypted as a whole, with the declared fields next to
//! it, in clear. What is encrypted is in an array, because no store indexes an array.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};
use superstep_core::Value;
use superstep_core::checkpoint::{Filter, Metadata};

use crate::cipher::{Place, from_text, to_text};
use crate::encryption::Reader;
use crate::error::EncryptionError;
use crate::keyring::TenantKeys;

/// Fields that stay in clear, so that they can be searched. Default: none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchableFields(Declared);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Declared {
    These(BTreeSet<String>),
    All,
}

impl Default for Declared {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

impl SearchableFields {
    /// Declares these top-level fields as searchable: of metadata, of listed states and of items.
    pub fn new<T: Into<String>>(fields: impl IntoIterator<Item = T>) -> Self {
        let fields = fields.into_iter().map(Into::into);
        Self(Declared::These(fields.collect()))
    }

    /// Leaves all metadata, listed states and items in clear. Bodies, answers and requests are still encrypted.
    pub fn all() -> Self {
        Self(Declared::All)
    }

    fn is_all(&self) -> bool {
        self.0 == Declared::All
    }

    /// Whether a field stays in clear.
    pub fn contains(&self, field: &str) -> bool {
        let is_declared = match &self.0 {
            Declared::These(fields) => fields.contains(field),
            Declared::All => true,
        };
        is_declared && !is_reserved(field)
    }

    /// Refuses a search by a field that does not stay in clear.
    pub(crate) fn check(&self, field: &str) -> Result<(), EncryptionError> {
        match self.contains(field) {
            true => Ok(()),
            false => Err(EncryptionError::NotSearchable {
                field: field.to_owned(),
            }),
        }
    }

    pub(crate) fn check_filters(&self, filters: &[Filter]) -> Result<(), EncryptionError> {
        let mut fields = filters.iter().map(|filter| &filter.field);
        fields.try_for_each(|field| self.check(field))
    }

    /// Refuses a search for JSON with a field that does not stay in clear.
    pub(crate) fn check_part(&self, part: Option<&Json>) -> Result<(), EncryptionError> {
        let fields = part.and_then(Json::as_object);
        let mut names = fields.into_iter().flat_map(Map::keys);
        names.try_for_each(|field| self.check(field))
    }
}

/// Begins the name of every field that holds something encrypted, and the text of an encrypted name.
pub(crate) const MARK: &str = "superstep-encrypted:";

fn is_reserved(field: &str) -> bool {
    field.starts_with(MARK)
}

/// Encrypts the fields of metadata that are not searchable.
pub(crate) fn hide_metadata(
    keys: &TenantKeys,
    searchable: &SearchableFields,
    place: &Place,
    metadata: &Metadata,
) -> Metadata {
    let hide = |(name, value): (&String, &Json)| {
        if searchable.contains(name) {
            return (name.clone(), value.clone());
        }
        let hidden = format!("{MARK}{}", keys.hide_name(name));
        let plain = canonical(&Json::Array(vec![name.clone().into(), value.clone()]));
        let encrypted = keys.current().encrypt(&field_place(place, &hidden), &plain);
        (hidden, Json::Array(vec![to_text(&encrypted).into()]))
    };
    metadata.iter().map(hide).collect()
}

/// Returns metadata as it was before [`hide_metadata`].
pub(crate) fn show_metadata(
    reader: &Reader<'_>,
    place: &Place,
    metadata: &Metadata,
    what: &str,
) -> Result<Metadata, EncryptionError> {
    let show = |(name, value): (&String, &Json)| {
        let what = || format!("field `{name}` of the metadata of {what}");
        if !is_reserved(name) {
            if !reader.searchable.contains(name) {
                reader.check_plain(what)?;
            }
            return Ok((name.clone(), value.clone()));
        }
        let refused = || EncryptionError::Refused { what: what() };
        let encrypted = encrypted_in(value).ok_or_else(refused)?;
        let plain = reader.decrypt(&field_place(place, name), &encrypted, what)?;
        serde_json::from_slice::<(String, Json)>(&plain).map_err(|_| refused())
    };
    let mut shown = Metadata::new();
    for field in metadata {
        let (name, value) = show(field)?;
        // A field may be there in both forms, after its declaration has changed. The later write followed the declaration.
        let is_latest = is_reserved(field.0) != reader.searchable.contains(&name);
        if is_latest || !shown.contains_key(&name) {
            shown.insert(name, value);
        }
    }
    Ok(shown)
}

fn field_place(place: &Place, hidden: &str) -> Place {
    place.clone().text("field").text(hidden)
}

/// Encrypts a JSON object that is searched by its fields, such as metadata that is JSON.
pub(crate) fn hide_object(
    keys: &TenantKeys,
    searchable: &SearchableFields,
    place: &Place,
    object: &Json,
) -> Json {
    match object {
        Json::Object(fields) => {
            let fields = fields.clone().into_iter().collect();
            let hidden = hide_metadata(keys, searchable, place, &fields);
            Json::Object(hidden.into_iter().collect())
        }
        other => hide_whole(keys, place, other),
    }
}

/// Returns a JSON object as it was before [`hide_object`].
pub(crate) fn show_object(
    reader: &Reader<'_>,
    place: &Place,
    object: &Json,
    what: &str,
) -> Result<Json, EncryptionError> {
    match object {
        Json::Object(fields) if !fields.contains_key(MARK) => {
            let fields = fields.clone().into_iter().collect();
            let shown = show_metadata(reader, place, &fields, what)?;
            Ok(Json::Object(shown.into_iter().collect()))
        }
        other => show_whole(reader, place, other, what),
    }
}

/// Encrypts a JSON value as a whole. Its searchable fields stay next to it.
pub(crate) fn hide_json(
    keys: &TenantKeys,
    searchable: &SearchableFields,
    place: &Place,
    json: &Json,
) -> Json {
    if stays_plain(searchable, json) {
        return json.clone();
    }
    hide_bytes(keys, searchable, place, json, &canonical(json))
}

/// Returns a JSON value as it was before [`hide_json`].
pub(crate) fn show_json(
    reader: &Reader<'_>,
    searchable: &SearchableFields,
    place: &Place,
    json: &Json,
    what: &str,
) -> Result<Json, EncryptionError> {
    let what = || what.to_owned();
    let Some(plain) = show_bytes(reader, searchable, place, json, what)? else {
        return Ok(json.clone());
    };
    let refused = |_| EncryptionError::Refused { what: what() };
    serde_json::from_slice(&plain).map_err(refused)
}

/// Encrypts a JSON value of which nothing is searched. `null` stays what it is.
pub(crate) fn hide_whole(keys: &TenantKeys, place: &Place, json: &Json) -> Json {
    match json {
        Json::Null => Json::Null,
        json => hide_json(keys, &SearchableFields::default(), place, json),
    }
}

/// Returns a JSON value as it was before [`hide_whole`].
pub(crate) fn show_whole(
    reader: &Reader<'_>,
    place: &Place,
    json: &Json,
    what: &str,
) -> Result<Json, EncryptionError> {
    match json {
        Json::Null => Ok(Json::Null),
        json => show_json(reader, &SearchableFields::default(), place, json, what),
    }
}

/// Encrypts a listed state.
pub(crate) fn hide_values(
    keys: &TenantKeys,
    searchable: &SearchableFields,
    place: &Place,
    values: &Value,
) -> Value {
    let json = values.decode::<Json>().unwrap_or_default();
    if stays_plain(searchable, &json) {
        return values.clone();
    }
    let hidden = hide_bytes(keys, searchable, place, &json, values.as_bytes());
    Value::from_json_bytes(hidden.to_string().as_bytes())
}

/// Returns a listed state as it was before [`hide_values`], byte for byte.
pub(crate) fn show_values(
    reader: &Reader<'_>,
    place: &Place,
    values: &Value,
    what: impl Fn() -> String,
) -> Result<Value, EncryptionError> {
    let json = values.decode::<Json>().unwrap_or_default();
    let shown = show_bytes(reader, reader.searchable, place, &json, what)?;
    Ok(shown.map_or_else(|| values.clone(), Value::from_bytes))
}

/// Whether nothing of the value is encrypted.
fn stays_plain(searchable: &SearchableFields, json: &Json) -> bool {
    let has_reserved = |fields: &Map<String, Json>| fields.keys().any(|name| is_reserved(name));
    searchable.is_all() && !json.as_object().is_some_and(has_reserved)
}

fn hide_bytes(
    keys: &TenantKeys,
    searchable: &SearchableFields,
    place: &Place,
    json: &Json,
    bytes: &[u8],
) -> Json {
    let fields = json.as_object().into_iter().flatten();
    let clear = fields.filter(|(name, _)| searchable.contains(name));
    let mut hidden: Map<String, Json> = clear
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let encrypted = keys.current().encrypt(place, bytes);
    hidden.insert(
        MARK.to_owned(),
        Json::Array(vec![to_text(&encrypted).into()]),
    );
    Json::Object(hidden)
}

/// Returns the bytes that [`hide_bytes`] encrypted; `None` if the value is accepted as it is.
fn show_bytes(
    reader: &Reader<'_>,
    searchable: &SearchableFields,
    place: &Place,
    json: &Json,
    what: impl Fn() -> String,
) -> Result<Option<Vec<u8>>, EncryptionError> {
    let Some(held) = json.get(MARK) else {
        if !stays_plain(searchable, json) {
            reader.check_plain(what)?;
        }
        return Ok(None);
    };
    let refused = || EncryptionError::Refused { what: what() };
    let encrypted = encrypted_in(held).ok_or_else(refused)?;
    reader.decrypt(place, &encrypted, &what).map(Some)
}

/// Returns what is encrypted in a field.
fn encrypted_in(value: &Json) -> Option<Vec<u8>> {
    match value.as_array()?.as_slice() {
        [Json::String(text)] => from_text(text),
        _ => None,
    }
}

/// Returns JSON as bytes that are the same for equal values: any crate of a program can enable the feature of `serde_json` that keeps
/// fields in the order in which they were written.
pub(crate) fn canonical(json: &Json) -> Vec<u8> {
    let mut json = json.clone();
    json.sort_all_objects();
    serde_json::to_vec(&json).expect("JSON always encodes")
}

/// Encrypts a short text, such as a name.
pub(crate) fn hide_text(keys: &TenantKeys, place: &Place, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let encrypted = keys.current().encrypt(place, text.as_bytes());
    format!("{MARK}{}", to_text(&encrypted))
}

/// Returns a text as it was before [`hide_text`].
pub(crate) fn show_text(
    reader: &Reader<'_>,
    place: &Place,
    text: &str,
    what: impl Fn() -> String,
) -> Result<String, EncryptionError> {
    if text.is_empty() {
        return Ok(String::new());
    }
    let Some(encrypted) = text.strip_prefix(MARK) else {
        reader.check_plain(what)?;
        return Ok(text.to_owned());
    };
    let refused = || EncryptionError::Refused { what: what() };
    let encrypted = from_text(encrypted).ok_or_else(refused)?;
    let plain = reader.decrypt(place, &encrypted, &what)?;
    String::from_utf8(plain).map_err(|_| refused())
}
