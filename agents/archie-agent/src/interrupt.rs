//! Shows the interrupts of any agent as text, and parses a typed line into an answer.

use serde_json::{Map, Value as Json, json};
use superstep::InterruptId;
use superstep::checkpoint::format::InterruptRecord;

use crate::form::{self, FormError};
use crate::printable::one_line;
use crate::value_diff::Difference;

/// An open interrupt, decoded from its stored form.
#[derive(Debug, Clone)]
pub struct InterruptRequest {
    /// Id of the interrupt, derived from its task and the key that the node chose; stable across retries.
    pub id: InterruptId,
    /// Name of the node that raised the interrupt.
    pub node: String,
    /// Kind that the node chose, such as `question`, `approval` or `budget`. Decides how the interrupt is shown and how a typed
    /// line is read.
    pub kind: String,
    /// Payload of the interrupt. An approval holds the call under `action_request` and the allowed answers under `config`.
    pub request: Json,
    /// JSON Schema that an answer must match, if the node set one.
    pub schema: Option<Json>,
}

impl InterruptRequest {
    /// Decodes a stored interrupt. Fails if its request or its schema cannot be decoded.
    pub fn of(question: &InterruptRecord) -> anyhow::Result<Self> {
        Ok(Self {
            id: question.id,
            node: question.node.to_string(),
            kind: question.kind.clone(),
            request: question.request.decode()?,
            schema: question
                .schema
                .as_ref()
                .map(|schema| schema.decode())
                .transpose()?,
        })
    }

    /// Returns the full text to show to a person. A call shows its description, its action and all its arguments. Any other
    /// interrupt whose answer can permit an effect shows every field of the request except `config`; a budget interrupt shows
    /// only its description.
    pub fn words(&self) -> String {
        if let Some(call) = self.call() {
            return call;
        }
        let named = ["query", "question", "description"].into_iter();
        let mut named = named.filter_map(|name| Some((name, self.request.get(name)?.as_str()?)));
        let Some((name, text)) = named.next() else {
            return match &self.request {
                Json::String(text) => text.clone(),
                other => other.to_string(),
            };
        };
        let mut words = text.to_owned();
        if self.may_permit_effect() && self.kind != BUDGET {
            let fields = self.request.as_object().into_iter().flatten();
            let others = fields.filter(|(other, _)| *other != name && *other != "config");
            others.for_each(|(name, value)| push_field(&mut words, name, value));
        }
        words
    }

    /// Returns a one-line summary, without details.
    pub fn summary(&self) -> String {
        let call = self.request.get("action_request");
        let Some(action) = call.and_then(|call| call["action"].as_str()) else {
            return self.request["summary"]
                .as_str()
                .map_or_else(|| self.words(), str::to_owned);
        };
        let args = &self.request["action_request"]["args"];
        let fields = args.as_object().into_iter().flatten();
        // The only text of a call, such as the body of an email, needs no name.
        if let [(_, Json::String(text))] = fields.clone().collect::<Vec<_>>()[..] {
            return format!("{action}: {text}");
        }
        let fields = fields.map(|(name, value)| match value {
            Json::String(text) => format!("{name}: {text}"),
            Json::Array(items) => format!("{name}: {}", items.len()),
            other => format!("{name}: {other}"),
        });
        let fields: Vec<_> = fields.collect();
        match fields.is_empty() {
            // For example a notification about an email: its subject is in the description.
            true => format!(
                "{action}: {}",
                self.request["description"].as_str().unwrap_or_default()
            ),
            false => format!("{action}: {}", fields.join(", ")),
        }
    }

    /// Returns a digest of the whole interrupt: SHA-256 over its kind and the canonical form of its request.
    pub fn digest(&self) -> String {
        superstep_agent::digest(&format!("archie.item.v1:{}", self.kind), &self.request)
    }

    /// Returns the digest by which the agent binds an answer to its call, if the request has one.
    pub fn call_digest(&self) -> Option<&str> {
        self.request["digest"].as_str()
    }

    /// Returns whether the call that is shown matches the agent's digest. True if the request has no digest or no call.
    pub fn is_consistent(&self) -> bool {
        let call = &self.request["action_request"];
        match (self.call_digest(), call["action"].as_str()) {
            (Some(digest), Some(action)) => {
                superstep_agent::digest(action, &call["args"]) == digest
            }
            _ => true,
        }
    }

    /// Returns whether any answer can permit an effect, such as sending an email or spending money.
    pub fn may_permit_effect(&self) -> bool {
        let config = &self.request["config"];
        let allows = |flag: &str| config[flag] == json!(true);
        EFFECT_KINDS.contains(&self.kind.as_str()) || allows("allow_accept") || allows("allow_edit")
    }

    /// Returns whether this answer permits an effect. If some answer could, an answer of unknown form counts as permission.
    pub fn permits_effect(&self, answer: &Json) -> bool {
        match answer["type"].as_str() {
            Some("accept" | "edit" | "call" | "raise") => true,
            Some("response") if self.kind == ELICITATION => true,
            Some(
                "ignore" | "response" | "result" | "reject" | "skip" | "stop" | "happened"
                | "expired",
            ) => false,
            _ => self.may_permit_effect(),
        }
    }

    /// Returns whether it asks for more money, tokens or calls.
    pub(crate) fn is_budget(&self) -> bool {
        self.kind == BUDGET
    }

    /// Returns the input prompt, with the allowed answers if they are limited.
    pub fn prompt(&self) -> String {
        if self.kind == BUDGET {
            return "raise [BY] or stop: ".to_owned();
        }
        let allowed = self.allowed();
        match allowed.is_empty() {
            true => "Your response: ".to_owned(),
            false => format!("{}: ", allowed.join(", ")),
        }
    }

    /// Returns what may be typed and what each answer causes, for a person. Empty if any text is an answer.
    pub fn answer_effects(&self) -> Vec<(&'static str, &'static str)> {
        if self.kind == BUDGET {
            return vec![
                ("raise", "allow as much again, and continue"),
                ("raise N", "allow N more, and continue"),
                ("stop", "stop here; everything so far is kept"),
            ];
        }
        let asks_server = self.kind == ELICITATION;
        // A question is not a call: nothing happens without an answer.
        let is_call = self.may_permit_effect();
        let effect = |word: &'static str| match word {
            "accept" => ("accept", "do exactly what is shown"),
            "edit" => (
                "edit",
                "change the fields first; you see the changes before anything happens",
            ),
            "response" if asks_server => (
                "response …",
                "answer the server; the call is then made again",
            ),
            "response" if is_call => ("response …", "do not do it; tell the agent this instead"),
            "response" => ("response …", "your answer"),
            _ if is_call => ("ignore", "do not do it"),
            _ => ("ignore", "leave it without an answer"),
        };
        self.allowed().into_iter().map(effect).collect()
    }

    /// Parses a typed line into an answer. Unless the answer must be text, a JSON object is accepted verbatim; so is any other
    /// JSON if the interrupt is neither an approval nor a budget. The error tells the person what to type.
    pub fn read(&self, line: &str) -> Result<Json, String> {
        let line = line.trim();
        let json = serde_json::from_str::<Json>(line).ok();
        if let Some(object) = json.clone().filter(Json::is_object)
            && !self.wants_text()
        {
            return Ok(object);
        }
        if self.kind == BUDGET {
            return self.read_budget(line);
        }
        if !self.allowed().is_empty() {
            return self.read_approval(line);
        }
        Ok(match (self.wants_text(), json) {
            (false, Some(json)) => json,
            _ => json!(line),
        })
    }

    fn wants_text(&self) -> bool {
        match &self.schema {
            Some(schema) => schema.get("type") == Some(&json!("string")),
            None => self.allowed().is_empty() && self.kind != BUDGET,
        }
    }

    fn read_budget(&self, line: &str) -> Result<Json, String> {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("stop" | "n" | "no"), None) => Ok(json!({ "type": "stop" })),
            (Some("raise" | "y" | "yes"), by) => {
                let least = &self.request["short_by"];
                let by = match by {
                    Some(by) => by
                        .parse::<u64>()
                        .map_err(|_| format!("`{by}` is not a number"))?,
                    // Double the limit, or add what is missing if that is more.
                    None => least
                        .as_u64()
                        .max(self.request["limit"].as_u64())
                        .unwrap_or(1),
                };
                Ok(json!({ "type": "raise", "by": by }))
            }
            _ => Err("say `raise`, `raise BY` or `stop`".to_owned()),
        }
    }

    fn read_approval(&self, line: &str) -> Result<Json, String> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let kind = match word {
            "y" | "yes" | "accept" => "accept",
            "n" | "no" | "ignore" => "ignore",
            "e" | "edit" => "edit",
            "r" | "response" | "respond" => "response",
            _ => "",
        };
        let allowed = self.allowed();
        if !allowed.contains(&kind) {
            return Err(format!("say one of {}", allowed.join(", ")));
        }
        let args = match kind {
            "edit" => self.edited(rest)?,
            "response" if rest.trim().is_empty() => {
                return Err("say what you want, behind `response`".to_owned());
            }
            "response" if self.kind == ELICITATION => self.filled(rest.trim())?,
            "response" => json!(rest.trim()),
            _ => Json::Null,
        };
        Ok(json!({ "type": kind, "args": args }))
    }

    /// Returns the call with the given arguments replaced.
    fn edited(&self, changes: &str) -> Result<Json, String> {
        if changes.trim().is_empty() {
            let args = self.request["action_request"]["args"].as_object();
            let optional = self.optional_args();
            let names = args.into_iter().flatten().chain(&optional);
            let names: Vec<_> = names.map(|(name, _)| name.as_str()).collect();
            return Err(format!(
                "say what to change: edit '{{\"argument\": value}}', with the arguments {}; at a terminal, `edit` alone opens an editor",
                names.join(", ")
            ));
        }
        let changes: Json = serde_json::from_str(changes)
            .map_err(|error| format!("{error}; usage: edit '{{\"argument\": value}}'"))?;
        let call = &self.request["action_request"];
        let mut args = call["args"].clone();
        match (&mut args, changes) {
            (Json::Object(args), Json::Object(changes)) => args.extend(changes),
            _ => return Err("not a JSON object; usage: edit '{\"argument\": value}'".to_owned()),
        }
        Ok(json!({ "action": call["action"], "args": args }))
    }

    /// Returns the arguments of the call as a form to edit, or `None` if the person may not edit them or there are none.
    pub fn edit_form(&self) -> Option<String> {
        let args = self.request["action_request"]["args"].as_object();
        let optional = self.optional_args();
        let is_editable = self.allowed().contains(&"edit");
        let has_fields = |args: &&Map<String, Json>| !args.is_empty() || !optional.is_empty();
        let args = args.filter(|_| is_editable).filter(has_fields)?;
        Some(form::render_with_notes(args, &optional))
    }

    /// Returns the JSON Schemas of the arguments that the call lacks and a person may add, by name.
    pub fn optional_args(&self) -> Map<String, Json> {
        let optional = self.request["optional_args"].as_object();
        optional.cloned().unwrap_or_default()
    }

    /// Parses an edited form into an answer. The error tells the person which line to change.
    pub fn read_edit_form(&self, text: &str) -> Result<Json, FormError> {
        let call = &self.request["action_request"];
        let before = call["args"].as_object().cloned().unwrap_or_default();
        let args = form::parse(text, &before, &self.optional_args())?;
        Ok(json!({ "type": "edit", "args": { "action": call["action"], "args": args } }))
    }

    /// Returns where the arguments of an `edit` answer differ from those of the call.
    pub fn edit_differences(&self, answer: &Json) -> Vec<Difference> {
        let before = self.request["action_request"]["args"].as_object();
        match (before, answer["args"]["args"].as_object()) {
            (Some(before), Some(after)) => form::changes(before, after),
            _ => Vec::new(),
        }
    }

    /// Returns the form of a server's question, filled from a JSON object, or from text if the form has a single field.
    fn filled(&self, typed: &str) -> Result<Json, String> {
        let form = &self.request["form"];
        let fields = form["properties"].as_object();
        let json = serde_json::from_str::<Json>(typed).ok();
        if let Some(object) = json.clone().filter(Json::is_object) {
            return Ok(object);
        }
        let single = fields.filter(|fields| fields.len() == 1);
        let Some((name, field)) = single.and_then(|fields| fields.iter().next()) else {
            let names = fields.into_iter().flatten().map(|(name, _)| name.as_str());
            return Err(format!(
                "usage: response '{{\"field\": value}}', with the fields {}",
                names.collect::<Vec<_>>().join(", ")
            ));
        };
        let value = match (field["type"].as_str(), json) {
            (Some("string"), _) | (_, None) => json!(typed),
            (_, Some(json)) => json,
        };
        Ok(json!({ name: value }))
    }

    /// Returns the answers that an approval allows, in the vocabulary of the inbox.
    pub(crate) fn allowed(&self) -> Vec<&'static str> {
        let config = &self.request["config"];
        let all = [
            ("allow_accept", "accept"),
            ("allow_edit", "edit"),
            ("allow_respond", "response"),
            ("allow_ignore", "ignore"),
        ];
        let may = |(flag, _): &(&str, &str)| config[*flag] == json!(true);
        all.into_iter().filter(may).map(|(_, word)| word).collect()
    }

    fn call(&self) -> Option<String> {
        let call = self.request.get("action_request")?;
        let mut words = String::new();
        if let Some(description) = self.request["description"].as_str() {
            words.push_str(description.trim_end());
            words.push('\n');
        }
        words.push_str(call["action"].as_str().unwrap_or_default());
        for (name, value) in call["args"].as_object().into_iter().flatten() {
            push_field(&mut words, name, value);
        }
        if self.kind == ELICITATION {
            push_form(&mut words, &self.request["form"]);
            if let Some(result) = self.request["result"].as_str() {
                words.push_str("\nThe call returned:");
                push_field(&mut words, "result", &json!(result));
            }
        }
        Some(words)
    }
}

/// Appends the fields of a server's form, one per line: the name, what it takes, and the server's text about it.
fn push_form(words: &mut String, form: &Json) {
    words.push_str("\nIt asks for these fields; answer with response '{\"field\": value}':");
    let required = form["required"].as_array();
    for (name, field) in form["properties"].as_object().into_iter().flatten() {
        let is_required = required.is_some_and(|names| names.contains(&json!(name)));
        let values = field.get("enum").map(|values| format!(", one of {values}"));
        let text = ["title", "description"]
            .into_iter()
            .filter_map(|part| field[part].as_str())
            .collect::<Vec<_>>()
            .join(": ")
            // A line break could imitate another field.
            .replace(['\n', '\r'], " ");
        let takes = format!(
            "{}{}{}",
            field["type"].as_str().unwrap_or("value"),
            values.unwrap_or_default(),
            if is_required { ", required" } else { "" }
        );
        push_field(words, &format!("{name} ({takes})"), &json!(text));
    }
}

/// Appends a named value in full. A multi-line text keeps its lines; a list shows its length and one item per line.
fn push_field(words: &mut String, name: &str, value: &Json) {
    // A line break in a name could imitate another field.
    words.push_str(&format!("\n  {}", one_line(name)));
    match value {
        Json::String(text) if text.contains('\n') => {
            words.push(':');
            let lines = text.split('\n');
            lines.for_each(|line| words.push_str(&format!("\n    {line}")));
        }
        Json::String(text) => words.push_str(&format!(": {text}")),
        Json::Array(items) if items.iter().all(is_one_line) && items.len() > 1 => {
            words.push_str(&format!(" ({}):", items.len()));
            for item in items {
                let text = item
                    .as_str()
                    .map_or_else(|| item.to_string(), str::to_owned);
                words.push_str(&format!("\n    {text}"));
            }
        }
        other => words.push_str(&format!(": {other}")),
    }
}

/// Returns whether a value can be an item of a list that shows one item per line. A text with line breaks could imitate several
/// items.
fn is_one_line(value: &Json) -> bool {
    !value
        .as_str()
        .is_some_and(|text| text.contains(['\n', '\r']))
}

const BUDGET: &str = "budget";
/// A question of a tool's server. The call is made again with the answer.
const ELICITATION: &str = "elicitation";

/// Kinds of interrupts that a node raises before an effect.
const EFFECT_KINDS: [&str; 6] = [
    "approval",
    "confirmation",
    "outcome_unknown",
    "gate",
    BUDGET,
    ELICITATION,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(kind: &str, request: Json, schema: Option<Json>) -> InterruptRequest {
        InterruptRequest {
            id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
            node: "n".to_owned(),
            kind: kind.to_owned(),
            request,
            schema,
        }
    }

    fn approval() -> InterruptRequest {
        let request = json!({
            "action_request": { "action": "send", "args": { "to": "ada", "text": "hi" } },
            "config": { "allow_ignore": true, "allow_respond": true, "allow_edit": true, "allow_accept": true },
        });
        asked("approval", request, None)
    }

    #[test]
    fn a_plain_question_takes_text_as_it_stands() {
        let plain = asked("", json!({ "query": "How many?" }), None);
        assert_eq!(plain.words(), "How many?");
        assert_eq!(plain.read("{\"a\": 1}").unwrap(), json!("{\"a\": 1}"));
    }

    #[test]
    fn the_name_of_an_argument_cannot_imitate_another_argument() {
        let args = json!({ "path": "/etc", "z\n  path: /tmp/x": "" });
        let request =
            json!({ "action_request": { "action": "delete", "args": args }, "config": {} });
        let words = asked("approval", request, None).words();
        let lines = words.lines().filter(|line| line.starts_with("  path"));
        assert_eq!(lines.collect::<Vec<_>>(), ["  path: /etc"]);
    }

    #[test]
    fn a_call_is_accepted_edited_answered_or_ignored() {
        let call = approval();
        assert_eq!(
            call.words(),
            "send\n  text: hi\n  to: ada".replace("text: hi\n  to: ada", &order(&call))
        );
        assert_eq!(
            call.read("y").unwrap(),
            json!({ "type": "accept", "args": null })
        );
        assert_eq!(
            call.read("edit {\"text\": \"ho\"}").unwrap(),
            json!({ "type": "edit", "args": { "action": "send", "args": { "to": "ada", "text": "ho" } } })
        );
        assert_eq!(
            call.read("response shorter").unwrap(),
            json!({ "type": "response", "args": "shorter" })
        );
        assert!(call.read("perhaps").unwrap_err().contains("accept"));
        assert!(call.read("edit nonsense").is_err());
    }

    /// Returns the arguments in the order of the JSON object, which the test does not fix.
    fn order(call: &InterruptRequest) -> String {
        let args = call.request["action_request"]["args"].as_object().unwrap();
        let lines: Vec<_> = args
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.as_str().unwrap()))
            .collect();
        lines.join("\n  ")
    }

    #[test]
    fn every_recipient_of_a_call_has_its_line_and_lists_have_their_length() {
        let mut call = approval();
        let who: Vec<_> = (0..41).map(|at| format!("p{at}@example.com")).collect();
        call.request["action_request"]["args"] =
            json!({ "to": who, "text": "a\nb", "odd": ["x\ny", "z"] });
        let words = call.words();
        assert!(words.contains("to (41):"), "{words}");
        assert!(
            who.iter()
                .all(|who| words.contains(&format!("\n    {who}"))),
            "{words}"
        );
        assert!(words.contains("text:\n    a\n    b"), "{words}");
        assert!(words.contains(r#"odd: ["x\ny","z"]"#), "{words}");
    }

    #[test]
    fn an_approval_without_a_call_shows_every_field() {
        let request = json!({ "description": "Pay?", "amount": 1_000_000, "to": "mallory" });
        let pay = asked("approval", request, None);
        assert_eq!(pay.words(), "Pay?\n  amount: 1000000\n  to: mallory");
    }

    #[test]
    fn the_digest_covers_everything_that_is_asked() {
        let call = approval();
        let mut other = call.clone();
        other.request["description"] = json!("harmless");
        assert_ne!(call.digest(), other.digest());
        assert_eq!(call.digest(), approval().digest());
        let mut bound = call.clone();
        bound.request["digest"] = json!(superstep_agent::digest(
            "send",
            &json!({ "to": "ada", "text": "hi" })
        ));
        assert!(call.is_consistent() && bound.is_consistent());
        bound.request["action_request"]["args"]["to"] = json!("mallory");
        assert!(!bound.is_consistent());
    }

    #[test]
    fn yes_and_edits_let_something_happen_and_refusals_do_not() {
        let call = approval();
        for (line, permits) in [
            ("y", true),
            ("edit {}", true),
            ("n", false),
            ("response no", false),
        ] {
            let answer = call.read(line).unwrap();
            assert_eq!(call.permits_effect(&answer), permits, "{line}");
        }
        assert!(
            call.permits_effect(&json!({ "approved": true })),
            "an unknown form"
        );
        let plain = asked("", json!({ "query": "How many?" }), None);
        assert!(!plain.permits_effect(&json!("accept")));
    }

    #[test]
    fn a_limit_is_raised_or_stands() {
        let budget = asked(
            "budget",
            json!({ "description": "over", "limit": 10, "short_by": 4 }),
            Some(json!({ "type": "object" })),
        );
        assert_eq!(
            budget.read("raise 7").unwrap(),
            json!({ "type": "raise", "by": 7 })
        );
        assert_eq!(
            budget.read("raise").unwrap(),
            json!({ "type": "raise", "by": 10 })
        );
        assert_eq!(budget.read("stop").unwrap(), json!({ "type": "stop" }));
        assert!(budget.read("maybe").is_err());
    }

    #[test]
    fn every_allowed_answer_says_what_it_causes() {
        let words = |asked: &InterruptRequest| -> Vec<_> {
            let effects = asked.answer_effects().into_iter();
            effects.map(|(word, _)| word).collect()
        };
        let mut call = approval();
        assert_eq!(words(&call), ["accept", "edit", "response …", "ignore"]);
        call.request["config"] = json!({ "allow_ignore": true, "allow_respond": true });
        call.kind = "question".to_owned();
        assert_eq!(
            call.answer_effects(),
            [
                ("response …", "your answer"),
                ("ignore", "leave it without an answer")
            ]
        );
        let plain = asked("", json!({ "query": "How many?" }), None);
        assert!(plain.answer_effects().is_empty());
        let why = approval().read("edit").unwrap_err();
        assert!(why.contains("text") && why.contains("to"), "{why}");
    }

    #[test]
    fn a_call_is_edited_as_a_form_of_its_fields() {
        let call = approval();
        let form = call.edit_form().unwrap();
        assert!(
            form.starts_with("# ") && form.contains("\ntext: hi\n"),
            "{form}"
        );
        let answer = call.read_edit_form(&form.replace("hi", "ho")).unwrap();
        assert_eq!(answer, call.read(r#"edit {"text": "ho"}"#).unwrap());
        let found = call.edit_differences(&answer);
        assert_eq!(found[0].path, "text");
        assert_eq!(found[0].lines, ["- hi", "+ ho"]);
        assert!(call.read_edit_form("nonsense").is_err());
        let mut fixed = call.clone();
        fixed.request["config"]["allow_edit"] = json!(false);
        assert_eq!(fixed.edit_form(), None);
    }

    #[test]
    fn an_argument_that_the_call_lacks_can_be_added_in_its_form() {
        let mut call = approval();
        call.request["optional_args"] =
            json!({ "copies": { "type": "array", "items": { "type": "string" } } });
        let form = call.edit_form().unwrap();
        let answer = call.read_edit_form(&form.replace("# copies:", "copies: bob"));
        let answer = answer.unwrap();
        assert_eq!(
            answer["args"]["args"],
            json!({ "to": "ada", "text": "hi", "copies": ["bob"] })
        );
        let found = call.edit_differences(&answer);
        assert_eq!(found[0].path, "copies");
        assert_eq!(found[0].lines, ["+ bob"]);
        let why = call.read("edit").unwrap_err();
        assert!(why.contains("copies"), "{why}");
        // A call without arguments has a form, too.
        call.request["action_request"]["args"] = json!({});
        assert!(call.edit_form().is_some());
    }

    fn elicitation() -> InterruptRequest {
        let request = json!({
            "action_request": { "action": "files__delete", "args": { "path": "/x" } },
            "config": { "allow_ignore": true, "allow_respond": true },
            "description": "The server `files` asks",
            "form": {
                "type": "object",
                "properties": {
                    "sure": { "type": "boolean", "title": "Sure?\n  path: /y" },
                    "why": { "type": "string", "enum": ["a", "b"] },
                },
                "required": ["sure"],
            },
            "result": "not yet",
        });
        asked("elicitation", request, None)
    }

    #[test]
    fn a_question_of_a_server_shows_its_form_and_its_answer_permits_the_call() {
        let asked = elicitation();
        let words = asked.words();
        assert!(words.contains("files__delete\n  path: /x"), "{words}");
        assert!(
            words.contains("sure (boolean, required): Sure?   path: /y"),
            "{words}"
        );
        assert!(
            words.contains(r#"why (string, one of ["a","b"])"#),
            "{words}"
        );
        assert!(words.contains("result: not yet"), "{words}");
        let answer = asked.read(r#"response {"sure": true}"#).unwrap();
        assert_eq!(
            answer,
            json!({ "type": "response", "args": { "sure": true } })
        );
        // The call is made again with it.
        assert!(asked.may_permit_effect() && asked.permits_effect(&answer));
        assert!(!asked.permits_effect(&asked.read("ignore").unwrap()));
        let why = asked.read("response yes").unwrap_err();
        assert!(why.contains("sure, why"), "{why}");
    }

    #[test]
    fn a_form_with_one_field_takes_its_value_alone() {
        let mut asked = elicitation();
        let read = |asked: &InterruptRequest, line: &str| asked.read(line).unwrap()["args"].clone();
        asked.request["form"]["properties"] = json!({ "sure": { "type": "boolean" } });
        assert_eq!(read(&asked, "response true"), json!({ "sure": true }));
        asked.request["form"]["properties"] = json!({ "name": { "type": "string" } });
        assert_eq!(read(&asked, "response 17"), json!({ "name": "17" }));
        assert_eq!(
            read(&asked, "response Ada Lovelace"),
            json!({ "name": "Ada Lovelace" })
        );
    }
}
