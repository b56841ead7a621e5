//! The arguments of a call as a text that a person edits: one field per line, a long text as an indented block.
//!
//! ```text
//! subject: Lunch on Friday
//! seats: 4
//! to:
//!   - ada@example.com
//!   - bob@example.com
//! text: |
//!   Hello,
//!
//!   see you there.
//! ```
//!
//! [`parse`] reads the text back and keeps the type of every field: a number stays a number, a list stays a list. A value that
//! this form cannot show without loss, such as a text with hidden characters, is a JSON string in quotes.
//!
//! Arguments that the call lacks and may have are commented lines at the end. A person adds one by removing the `# ` before its
//! name.

use serde_json::{Map, Value as Json, json};

use crate::printable::{json_text, one_line, printable, summary_line};
use crate::value_diff::{Difference, differences};

/// Why an edited form was not accepted. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// A line is neither a field nor part of one.
    #[error(
        "line {line}: `{text}` is not `name: value`; write `name: |` before a text of several lines"
    )]
    NotAField {
        /// Number of the line.
        line: usize,
        /// The line.
        text: String,
    },
    /// The call has no such argument.
    #[error("line {line}: the call has no field `{name}`; it has {known}")]
    UnknownField {
        /// Number of the line.
        line: usize,
        /// Name that was typed.
        name: String,
        /// Names of the fields that exist.
        known: String,
    },
    /// A field is in the form twice.
    #[error("line {line}: `{name}` is in the form twice; indent the lines of a text by two spaces")]
    RepeatedField {
        /// Number of the line.
        line: usize,
        /// Name of the field.
        name: String,
    },
    /// A field was removed.
    #[error("`{name}` is missing; to empty a field, write `{name}:` and nothing after it")]
    MissingField {
        /// Name of the field.
        name: String,
    },
    /// A value has another type than before.
    #[error("line {line}: `{name}` must be {wanted}")]
    WrongType {
        /// Number of the line.
        line: usize,
        /// Name of the field.
        name: String,
        /// Type that the field has.
        wanted: &'static str,
    },
}

/// Returns the fields as text, in their order.
pub fn render(fields: &Map<String, Json>) -> String {
    let mut form = String::new();
    for (name, value) in fields {
        form.push_str(&shown_name(name));
        form.push(':');
        form.push_str(&shown_value(value));
    }
    form
}

/// Returns the fields as text for a person who sees it in an editor: after notes, and with a commented line for each argument
/// that can be added. `optional` holds the JSON Schemas of these, by name.
pub fn render_with_notes(fields: &Map<String, Json>, optional: &Map<String, Json>) -> String {
    let offers: String = offer_lines(optional)
        .into_iter()
        .map(|line| format!("{line}\n"))
        .collect();
    let gap = if offers.is_empty() { "" } else { "\n" };
    format!("{NOTES}\n{}{gap}{offers}", render(fields))
}

/// Reads an edited form back. `before` holds the fields that the form was made from, which decide the types; `optional` the JSON
/// Schemas of the arguments that can be added, by name.
///
/// Lines before the first field that start with `#` are notes. Inside a text, a line that is not indented counts as part of
/// the text, unless it starts with the name of a field or is a commented line of the form.
pub fn parse(
    form: &str,
    before: &Map<String, Json>,
    optional: &Map<String, Json>,
) -> Result<Map<String, Json>, FormError> {
    let examples = optional
        .iter()
        .map(|(name, schema)| (name.clone(), example(schema)));
    let examples: Map<_, _> = examples.collect();
    let shape = FormShape {
        before,
        examples: &examples,
        offers: offer_lines(optional),
    };
    let mut lines = FormLines::new(form);
    let mut found = Map::new();
    while let Some((line, text)) = lines.next() {
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        let field = split_name(text).or_else(|| {
            // A person who adds an argument may have removed only the `#`.
            split_name(text.trim_start()).filter(|(name, _)| examples.contains_key(name))
        });
        let Some((name, typed)) = field else {
            let text = one_line(text.trim());
            return Err(FormError::NotAField { line, text });
        };
        let Some(old) = shape.field(&name) else {
            let names = before.keys().chain(optional.keys());
            let known: Vec<_> = names.map(|name| shown_name(name)).collect();
            return Err(FormError::UnknownField {
                line,
                name: one_line(&name),
                known: known.join(", "),
            });
        };
        if found.contains_key(&name) {
            let name = one_line(&name);
            return Err(FormError::RepeatedField { line, name });
        }
        let value = read_value(typed.trim(), old, &shape, &mut lines);
        let value = value.map_err(|wanted| FormError::WrongType {
            line,
            name: one_line(&name),
            wanted,
        })?;
        found.insert(name, value);
    }
    // In the order of the call, however the person moved the lines.
    let mut ordered = Map::new();
    for name in before.keys() {
        let value = found.remove(name).ok_or_else(|| FormError::MissingField {
            name: shown_name(name),
        })?;
        ordered.insert(name.clone(), value);
    }
    for name in optional.keys() {
        if let Some(value) = found.remove(name) {
            ordered.insert(name.clone(), value);
        }
    }
    Ok(ordered)
}

/// Returns where two sets of fields differ, with the lines to show for each place.
pub fn changes(before: &Map<String, Json>, after: &Map<String, Json>) -> Vec<Difference> {
    let added = after.keys().filter(|name| !before.contains_key(*name));
    let names = before.keys().chain(added);
    let found = names.filter(|name| before.get(*name) != after.get(*name));
    let found = found.flat_map(|name| {
        differences(&shown_name(name), before.get(name), after.get(name)).into_iter()
    });
    found.collect()
}

/// Returns an empty value of the type that a JSON Schema asks for, which decides how a typed value is read. `null` stands for any
/// type.
pub fn example(schema: &Json) -> Json {
    match type_of(schema) {
        Some("string") => json!(""),
        Some("number" | "integer") => json!(0),
        Some("boolean") => json!(false),
        Some("object") => json!({}),
        Some("array") => match type_of(&schema["items"]) {
            Some("string") => json!([]),
            // Its items are JSON.
            _ => json!([null]),
        },
        _ => Json::Null,
    }
}

/// Returns the type of a schema, without `null` as the other one. `None` if it allows several.
fn type_of(schema: &Json) -> Option<&str> {
    if let Some(variants) = schema["anyOf"].as_array() {
        let types = variants.iter().map(|variant| variant["type"].as_str());
        let types: Option<Vec<_>> = types.collect();
        return only_type(types?.into_iter());
    }
    match &schema["type"] {
        Json::String(kind) => Some(kind.as_str()),
        Json::Array(kinds) => only_type(kinds.iter().filter_map(Json::as_str)),
        _ => None,
    }
}

fn only_type<'s>(types: impl Iterator<Item = &'s str>) -> Option<&'s str> {
    let mut types = types.filter(|kind| *kind != "null");
    let first = types.next()?;
    types.next().is_none().then_some(first)
}

/// Returns the commented lines for arguments that can be added: what each is, and its name.
fn offer_lines(optional: &Map<String, Json>) -> Vec<String> {
    let mut lines = Vec::new();
    if !optional.is_empty() {
        lines.push(OFFERS.to_owned());
    }
    for (name, schema) in optional {
        lines.push(format!("#     {}", offer_text(schema)));
        lines.push(format!("# {}:", shown_name(name)));
    }
    lines
}

/// Returns what an argument is, in one line: its type or its values, and the tool's text about it.
fn offer_text(schema: &Json) -> String {
    let kind = match (schema["enum"].as_array(), type_of(schema)) {
        (Some(values), _) => {
            let values = values.iter().map(|value| match value {
                Json::String(text) => text.clone(),
                other => other.to_string(),
            });
            format!("one of {}", values.collect::<Vec<_>>().join(", "))
        }
        (None, Some("string")) => "a text".to_owned(),
        (None, Some("number" | "integer")) => "a number".to_owned(),
        (None, Some("boolean")) => "`true` or `false`".to_owned(),
        (None, Some("array")) => "a list".to_owned(),
        (None, Some("object")) => "a JSON object".to_owned(),
        (None, _) => "a value".to_owned(),
    };
    let text = match schema["description"].as_str() {
        Some(text) if !text.trim().is_empty() => format!("{kind}: {}", text.trim()),
        _ => kind,
    };
    one_line(&summary_line(&text, OFFER_CHARS))
}

/// Returns a name as it is, or in quotes if it could be taken for something else.
fn shown_name(name: &str) -> String {
    let begins = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_plain = name.starts_with(begins)
        && name
            .chars()
            .all(|c| begins(c) || matches!(c, '-' | '.' | '$'));
    match is_plain {
        true => name.to_owned(),
        false => json_text(&json!(name)),
    }
}

/// Returns what follows the colon after a field's name, with the line break.
fn shown_value(value: &Json) -> String {
    match value {
        Json::String(text) if text.is_empty() => "\n".to_owned(),
        Json::String(text) if is_block(text) => {
            let lines = text.trim_end_matches('\n').split('\n');
            let lines = lines.map(|line| match line {
                "" => "\n".to_owned(),
                line => format!("{INDENT}{line}\n"),
            });
            format!(" {BLOCK}\n{}", lines.collect::<String>())
        }
        Json::String(text) => format!(" {}\n", shown_text(text)),
        Json::Array(items) if !items.is_empty() => {
            let is_plain = are_texts(items);
            let items = items.iter().map(|item| match item {
                Json::String(text) if is_plain => format!("{INDENT}- {}\n", shown_text(text)),
                other => format!("{INDENT}- {}\n", json_text(other)),
            });
            format!("\n{}", items.collect::<String>())
        }
        other => format!(" {}\n", json_text(other)),
    }
}

/// Returns whether a text is shown as a block: long or of several lines, and nothing in it would be lost.
fn is_block(text: &str) -> bool {
    let body = text.trim_end_matches('\n');
    let is_long = body.contains('\n') || body.chars().count() > LONG_CHARS;
    // The parser drops empty lines at the end of a block.
    let is_kept = !body.is_empty() && !body.ends_with(char::is_whitespace);
    is_long && is_kept && printable(text) == text
}

/// Returns a text for one line: as it is, or as a JSON string if it could be taken for something else.
fn shown_text(text: &str) -> String {
    let is_plain = !text.is_empty()
        && text.trim() == text
        && one_line(text) == text
        && !text.starts_with('"')
        && text != BLOCK;
    match is_plain {
        true => text.to_owned(),
        false => json_text(&json!(text)),
    }
}

fn are_texts(items: &[Json]) -> bool {
    items.iter().all(Json::is_string)
}

/// What may be in a form.
struct FormShape<'f> {
    /// Fields that the form was made from.
    before: &'f Map<String, Json>,
    /// Examples of the arguments that can be added.
    examples: &'f Map<String, Json>,
    /// Commented lines about the arguments that can be added.
    offers: Vec<String>,
}

impl FormShape<'_> {
    /// Returns a value of the type that the field with this name has.
    fn field(&self, name: &str) -> Option<&Json> {
        self.before.get(name).or_else(|| self.examples.get(name))
    }

    /// Returns whether a line is not part of the text before it.
    fn ends_text(&self, line: &str) -> bool {
        let is_field =
            |line: &str| split_name(line).is_some_and(|(name, _)| self.field(&name).is_some());
        is_field(line) || self.offers.iter().any(|offer| offer == line.trim_end())
    }
}

/// Lines of a form with their numbers.
struct FormLines<'f> {
    lines: Vec<&'f str>,
    at: usize,
}

impl<'f> FormLines<'f> {
    fn new(form: &'f str) -> Self {
        let lines = form.lines().collect();
        Self { lines, at: 0 }
    }

    fn peek(&self) -> Option<&'f str> {
        self.lines.get(self.at).copied()
    }

    fn next(&mut self) -> Option<(usize, &'f str)> {
        let line = self.peek()?;
        self.at += 1;
        Some((self.at, line))
    }
}

/// Splits `name: value`. `None` if the line is not a field.
fn split_name(line: &str) -> Option<(String, &str)> {
    if line.starts_with('"') {
        let mut quoted = serde_json::Deserializer::from_str(line).into_iter::<String>();
        let name = quoted.next()?.ok()?;
        let rest = line[quoted.byte_offset()..].trim_start();
        return Some((name, rest.strip_prefix(':')?));
    }
    let (name, rest) = line.split_once(':')?;
    let is_name = !name.is_empty() && !name.starts_with(char::is_whitespace);
    is_name.then(|| (name.trim_end().to_owned(), rest))
}

/// Reads the value of a field, which may go on over the next lines. The error names the type that the field must have.
fn read_value(
    typed: &str,
    old: &Json,
    shape: &FormShape<'_>,
    lines: &mut FormLines<'_>,
) -> Result<Json, &'static str> {
    if !typed.is_empty() && typed == json_text(old) && !old.is_string() {
        // Also keeps a number whose text reads back as another one.
        return Ok(old.clone());
    }
    let json = || serde_json::from_str::<Json>(typed).ok();
    match old {
        Json::String(old) if typed == BLOCK => {
            let end = &old[old.trim_end_matches('\n').len()..];
            Ok(json!(read_block(shape, lines) + end))
        }
        Json::String(_) => Ok(json!(read_text(typed))),
        Json::Array(old) => read_list(typed, old, lines),
        Json::Number(_) => json().filter(Json::is_number).ok_or("a number"),
        Json::Bool(_) => json().filter(Json::is_boolean).ok_or("`true` or `false`"),
        Json::Object(_) => json().filter(Json::is_object).ok_or("a JSON object"),
        Json::Null if typed.is_empty() => Ok(Json::Null),
        Json::Null => Ok(json().unwrap_or_else(|| json!(typed))),
    }
}

/// Reads the lines of a text until a line starts with the name of a field.
fn read_block(shape: &FormShape<'_>, lines: &mut FormLines<'_>) -> String {
    let mut block = Vec::new();
    while let Some(line) = lines.peek() {
        if shape.ends_text(line) {
            break;
        }
        lines.next();
        block.push(line.strip_prefix(INDENT).unwrap_or(line));
    }
    while block.last().is_some_and(|line| line.trim().is_empty()) {
        block.pop();
    }
    block.join("\n")
}

fn read_text(typed: &str) -> String {
    let quoted = typed.starts_with('"').then(|| serde_json::from_str(typed));
    match quoted {
        Some(Ok(text)) => text,
        // A text that only begins with a quotation.
        _ => typed.to_owned(),
    }
}

/// Reads a list: one item per line below the name, a JSON array after the name, or a single item after the name.
fn read_list(typed: &str, old: &[Json], lines: &mut FormLines<'_>) -> Result<Json, &'static str> {
    if let Ok(items @ Json::Array(_)) = serde_json::from_str(typed) {
        return Ok(items);
    }
    let mut items = Vec::new();
    if !typed.is_empty() {
        items.push(read_item(typed, old)?);
    }
    while let Some(line) = lines.peek() {
        let line = line.trim();
        match line.strip_prefix('-') {
            Some(item) => items.push(read_item(item.trim(), old)?),
            None if line.is_empty() => {}
            None => break,
        }
        lines.next();
    }
    Ok(Json::Array(items))
}

fn read_item(typed: &str, old: &[Json]) -> Result<Json, &'static str> {
    if are_texts(old) {
        return Ok(json!(read_text(typed)));
    }
    match serde_json::from_str(typed) {
        // Keeps a number whose text reads back as another one.
        Ok(item) => Ok(old
            .iter()
            .find(|old| json_text(old) == typed)
            .cloned()
            .unwrap_or(item)),
        Err(_) if old.iter().any(Json::is_string) => Ok(json!(typed)),
        Err(_) => Err("a list of JSON values, one after each `-`"),
    }
}

const INDENT: &str = "  ";
/// Says that the text of a field is in the lines below its name.
const BLOCK: &str = "|";
/// A text with more characters is shown as a block, where an editor wraps it.
const LONG_CHARS: usize = 70;

/// Columns of what is said about an argument that can be added.
const OFFER_CHARS: usize = 100;

/// Precedes the arguments that can be added.
const OFFERS: &str = "# The call may also have these. To add one, remove the `# ` before its name and write its value.";

/// Notes for a person who edits a form.
const NOTES: &str = "\
# Change the values, then save and close the editor. You see the changes before anything happens.
# A text of several lines goes below `name: |`, with two spaces before each line.
# To change nothing, close the editor without saving.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Json) -> Map<String, Json> {
        value.as_object().unwrap().clone()
    }

    fn mail() -> Map<String, Json> {
        map(json!({
            "subject": "Lunch on Friday", "seats": 4, "is_public": false, "cc": [],
            "to": ["ada@example.com", "bob@example.com"], "text": "Hello,\n\nsee you there.\n", "room": null
        }))
    }

    #[test]
    fn a_form_has_a_line_per_field_and_long_texts_as_blocks() {
        assert_eq!(
            render(&mail()),
            "subject: Lunch on Friday\nseats: 4\nis_public: false\ncc: []\nto:\n  - ada@example.com\n  - bob@example.com\n\
             text: |\n  Hello,\n\n  see you there.\nroom: null\n"
        );
        let long = "word ".repeat(20) + "end";
        let form = render(&map(json!({ "text": long })));
        assert_eq!(form, format!("text: |\n  {long}\n"));
    }

    #[test]
    fn edits_keep_the_types_and_the_order() {
        let typed = "# a note\ntext: |\n  Hi,\n\n  see you: soon.\n\n# not a note\nto:\n  - carl@example.com\nseats: 12\nsubject: \"quoted\" words\n\
                     cc: dora@example.com\nis_public: true\nroom:\n";
        let after = parse(typed, &mail(), &Map::new()).unwrap();
        assert_eq!(
            json!(after),
            json!({
                "subject": "\"quoted\" words", "seats": 12, "is_public": true, "cc": ["dora@example.com"],
                "to": ["carl@example.com"], "text": "Hi,\n\nsee you: soon.\n\n# not a note\n", "room": null
            })
        );
        let names: Vec<_> = after.keys().collect();
        assert_eq!(names, mail().keys().collect::<Vec<_>>());
    }

    #[test]
    fn a_line_without_indentation_stays_in_its_text() {
        let before = map(json!({ "text": "one\ntwo", "to": "ada" }));
        let after = parse(
            "text: |\n  one\nDear all: hello\nto: bob\n",
            &before,
            &Map::new(),
        )
        .unwrap();
        assert_eq!(
            json!(after),
            json!({ "text": "one\nDear all: hello", "to": "bob" })
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let before = map(json!({ "seats": 4, "to": "ada", "sure": true, "more": { "a": 1 } }));
        let whole = render(&before);
        let why = |form: String| parse(&form, &before, &Map::new()).unwrap_err().to_string();
        assert_eq!(
            why(whole.replace('4', "four")),
            "line 1: `seats` must be a number"
        );
        assert_eq!(
            why(whole.replace("true", "maybe")),
            "line 3: `sure` must be `true` or `false`"
        );
        assert_eq!(
            why(whole.replace("{\"a\":1}", "1")),
            "line 4: `more` must be a JSON object"
        );
        assert_eq!(
            why(whole.replace("to:", "too:")),
            "line 2: the call has no field `too`; it has seats, to, sure, more"
        );
        assert_eq!(
            why(format!("{whole}to: bob\n")),
            "line 5: `to` is in the form twice; indent the lines of a text by two spaces"
        );
        assert_eq!(
            why(whole.replace("to: ada\n", "")),
            "`to` is missing; to empty a field, write `to:` and nothing after it"
        );
        assert_eq!(
            why(whole.replace("to: ada", "to: ada\nand more")),
            "line 3: `and more` is not `name: value`; write `name: |` before a text of several lines"
        );
    }

    /// Schemas of arguments that a call may have.
    fn optional() -> Map<String, Json> {
        map(json!({
            "copies": { "type": "array", "items": { "type": "string" }, "description": "Who gets a copy" },
            "urgent": { "type": ["boolean", "null"] },
            "kind": { "type": "string", "enum": ["plain", "rich"] },
            "footer": { "anyOf": [{ "type": "string" }, { "type": "null" }], "description": "Text\nat the end" },
            "places": { "type": "array", "items": { "type": "integer" } },
        }))
    }

    #[test]
    fn arguments_that_can_be_added_are_commented_lines_at_the_end() {
        let before = map(json!({ "to": "ada" }));
        let form = render_with_notes(&before, &optional());
        let (_, offered) = form.split_once("\nto: ada\n").unwrap();
        assert_eq!(
            offered,
            "\n# The call may also have these. To add one, remove the `# ` before its name and write its value.\n\
             #     a list: Who gets a copy\n# copies:\n#     `true` or `false`\n# urgent:\n#     one of plain, rich\n# kind:\n\
             #     a text: Text at the end\n# footer:\n#     a list\n# places:\n"
        );
        assert_eq!(parse(&form, &before, &optional()).unwrap(), before);
        assert!(!render_with_notes(&before, &Map::new()).contains("may also have"));
    }

    #[test]
    fn an_argument_is_added_without_its_comment_sign() {
        let before = map(json!({ "text": "Hello,\nall" }));
        let form = render_with_notes(&before, &optional());
        let form = form
            .replace("# copies:", "copies:\n  - bob@example.com")
            // Only the sign is gone.
            .replace("# urgent:", " urgent: true")
            .replace("# footer:", "footer: |\n  Bye,\n  Ada")
            .replace("# places:", "places:\n  - 7");
        assert_eq!(
            json!(parse(&form, &before, &optional()).unwrap()),
            json!({
                "text": "Hello,\nall", "copies": ["bob@example.com"], "urgent": true, "footer": "Bye,\nAda", "places": [7]
            })
        );
    }

    #[test]
    fn what_is_added_has_the_name_and_the_type_of_the_tool() {
        let before = map(json!({ "to": "ada" }));
        let form = render_with_notes(&before, &optional());
        let why = |form: String| {
            let why = parse(&form, &before, &optional()).unwrap_err();
            let why = why.to_string();
            why.split_once(": ").unwrap().1.to_owned()
        };
        assert_eq!(
            why(form.replace("# copies:", "bcc: eve")),
            "the call has no field `bcc`; it has to, copies, urgent, kind, footer, places"
        );
        assert_eq!(
            why(form.replace("# urgent:", "urgent: soon")),
            "`urgent` must be `true` or `false`"
        );
        assert_eq!(
            why(form.replace("# places:", "places: here")),
            "`places` must be a list of JSON values, one after each `-`"
        );
        assert_eq!(
            why(format!("{form}urgent: true\nurgent: false\n")),
            "`urgent` is in the form twice; indent the lines of a text by two spaces"
        );
    }

    #[test]
    fn the_text_of_a_tool_about_an_argument_stays_in_its_line() {
        let schema = json!({ "type": "string", "description": "x\nto: eve\u{1b}[2J" });
        let optional = Map::from_iter([("note".to_owned(), schema)]);
        let before = map(json!({ "to": "ada" }));
        let form = render_with_notes(&before, &optional);
        assert_eq!(printable(&form), form);
        assert_eq!(parse(&form, &before, &optional).unwrap(), before);
    }

    #[test]
    fn changes_name_the_field_and_the_lines() {
        let before = mail();
        let mut after = before.clone();
        after["seats"] = json!(5);
        after["text"] = json!("Hello,\n\nsee you soon.\n");
        let found = changes(&before, &after);
        let shown: Vec<_> = found
            .iter()
            .map(|found| format!("{}: {}", found.path, found.lines.join(" | ")))
            .collect();
        assert_eq!(
            shown,
            [
                "seats: - 4 | + 5",
                "text: - see you there. | + see you soon."
            ]
        );
        assert!(changes(&before, &before).is_empty());
    }

    #[test]
    fn hidden_characters_are_seen_in_the_form_and_come_back() {
        let before =
            map(json!({ "a\u{202e}b": "x\u{1b}[2J", "text": "line\nwith \u{200b}hidden" }));
        let form = render(&before);
        assert_eq!(printable(&form), form);
        assert_eq!(parse(&form, &before, &Map::new()).unwrap(), before);
    }

    /// Numbers from a seed, so that a failure can be repeated.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, end: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % end as u64) as usize
        }

        fn text(&mut self) -> String {
            const PARTS: [&str; 24] = [
                "a",
                "b: c",
                " ",
                "  ",
                "\n",
                "\n\n",
                "\"",
                "#",
                "-",
                "- ",
                "|",
                ":",
                "\\",
                "[]",
                "{}",
                "\t",
                "\r",
                "\r\n",
                "é世",
                "\u{202e}",
                "null",
                "12",
                "a long piece of text, longer than most of the others",
                "to:",
            ];
            (0..self.below(7))
                .map(|_| PARTS[self.below(PARTS.len())])
                .collect()
        }

        fn value(&mut self, depth: usize) -> Json {
            match self.below(if depth > 1 { 6 } else { 9 }) {
                0 => Json::Null,
                1 => json!(self.below(2) == 0),
                2 => json!(self.below(1_000_000)),
                3 => json!(self.below(1_000_000) as f64 / 7.0),
                4 | 5 => json!(self.text()),
                6 => (0..self.below(4)).map(|_| json!(self.text())).collect(),
                7 => (0..self.below(4)).map(|_| self.value(depth + 1)).collect(),
                _ => Json::Object(self.fields(depth + 1)),
            }
        }

        fn fields(&mut self, depth: usize) -> Map<String, Json> {
            (0..self.below(6))
                .map(|at| {
                    let name = match self.below(3) {
                        0 => self.text(),
                        _ => format!("field_{at}"),
                    };
                    (name, self.value(depth))
                })
                .collect()
        }
    }

    #[test]
    fn any_fields_come_back_as_they_were() {
        for seed in 1..4_000_u64 {
            let before = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).fields(0);
            let form = render_with_notes(&before, &optional());
            let after = parse(&form, &before, &optional());
            assert_eq!(after.as_ref(), Ok(&before), "seed {seed}:\n{form}");
        }
    }

    #[test]
    fn any_text_is_taken_or_refused_without_a_panic() {
        let before = mail();
        for seed in 1..4_000_u64 {
            let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let names = ["subject:", "seats:", "to:", "text: |", "cc:", "room:"];
            let form: String = (0..dice.below(9))
                .map(|_| format!("{}{}\n", names[dice.below(names.len())], dice.text()))
                .collect();
            if let Ok(after) = parse(&form, &before, &optional()) {
                assert!(
                    after["seats"].is_number() && after["to"].is_array(),
                    "{form}"
                );
            }
        }
    }
}
