//! Questions of any agent, in words, and what a typed line means as an answer.

use serde_json::{Value as Json, json};
use superstep::InterruptId;
use superstep::checkpoint::format::Question;

/// A question, read.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its id.
    pub id: InterruptId,
    /// The node that asks.
    pub node: String,
    /// What kind of question it is.
    pub kind: String,
    /// What is asked.
    pub request: Json,
    /// The form of an answer, if it has one.
    pub schema: Option<Json>,
}

impl Asked {
    /// Reads a question.
    pub fn of(question: &Question) -> anyhow::Result<Self> {
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

    /// What is asked, for a person.
    pub fn words(&self) -> String {
        let text = |name: &str| self.request.get(name).and_then(Json::as_str);
        if let Some(call) = self.call() {
            return call;
        }
        match text("query")
            .or_else(|| text("question"))
            .or_else(|| text("description"))
        {
            Some(text) => text.to_owned(),
            None => match &self.request {
                Json::String(text) => text.clone(),
                other => other.to_string(),
            },
        }
    }

    /// What stands before what the person types.
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

    /// What a line means. JSON is taken as it is where no text is asked for.
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
                        .map_err(|_| format!("`{by}` is no number"))?,
                    // As much again as there was, or at least what is missing.
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
            "response" => json!(rest.trim()),
            _ => Json::Null,
        };
        Ok(json!({ "type": kind, "args": args }))
    }

    /// The call with some arguments changed.
    fn edited(&self, changes: &str) -> Result<Json, String> {
        let changes: Json = serde_json::from_str(changes).map_err(|error| {
            format!("behind `edit` stand the changed arguments as JSON: {error}")
        })?;
        let call = &self.request["action_request"];
        let mut args = call["args"].clone();
        match (&mut args, changes) {
            (Json::Object(args), Json::Object(changes)) => args.extend(changes),
            _ => return Err("behind `edit` stands a JSON object".to_owned()),
        }
        Ok(json!({ "action": call["action"], "args": args }))
    }

    /// How a call that waits for approval may be answered, in the words of the inbox.
    fn allowed(&self) -> Vec<&'static str> {
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
            let value = match value {
                Json::String(text) => text.clone(),
                other => other.to_string(),
            };
            words.push_str(&format!("\n  {name}: {value}"));
        }
        Some(words)
    }
}

const BUDGET: &str = "budget";

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(kind: &str, request: Json, schema: Option<Json>) -> Asked {
        Asked {
            id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
            node: "n".to_owned(),
            kind: kind.to_owned(),
            request,
            schema,
        }
    }

    fn approval() -> Asked {
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

    /// Whichever order the fields come in.
    fn order(call: &Asked) -> String {
        let args = call.request["action_request"]["args"].as_object().unwrap();
        let lines: Vec<_> = args
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.as_str().unwrap()))
            .collect();
        lines.join("\n  ")
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
}
