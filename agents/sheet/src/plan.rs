//! Parses the planner's last message into its next action: tool calls, the text format, or neither.

use serde_json::{Value as Json, json};
use superstep_llm::{Message, ToolCall};

use super::tools::answer::is_parroted;
use super::tools::{self, INFORMER};

/// The planner's next action.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// Run these tools, in this order.
    Act(Vec<ToolCall>),
    /// Have the informer look something up.
    Ask(ToolCall),
    /// End the analysis with this answer, which may be empty.
    Finish(String),
    /// No action; the message is only reasoning.
    Think,
    /// An action that cannot be parsed, with the reason.
    Malformed(String),
}

impl Plan {
    /// Returns a short description for progress messages.
    pub fn says(&self) -> String {
        match self {
            Self::Act(calls) => {
                let names: Vec<_> = calls.iter().map(|call| call.name.as_str()).collect();
                format!("tool {}", names.join(", "))
            }
            Self::Ask(_) => "informer".to_owned(),
            Self::Finish(_) => "finish".to_owned(),
            Self::Think => "no action".to_owned(),
            Self::Malformed(why) => format!("no action: {why}"),
        }
    }
}

/// Parses a planner's message. The text format has no call ids, so the id of its call is made from `step`.
pub fn read(message: &Message, step: u32) -> Plan {
    let calls = message.tool_calls();
    if let Some(asked) = calls.iter().find(|call| call.name == INFORMER) {
        return Plan::Ask(asked.clone());
    }
    if !calls.is_empty() {
        return Plan::Act(calls.to_vec());
    }
    read_text(&message.text(), step)
}

/// Parses the text format:
///
/// ```text
/// Think: the products are in column A
/// Action: PythonInterpreter
/// Action Input: print(table("Sales"))
/// ```
///
/// At the end of the analysis the planner writes a line that is `Done` or `Finish: the answer` instead. Such a line inside code
/// does not end the analysis, because a message with an action never ends it.
fn read_text(text: &str, step: u32) -> Plan {
    let lines: Vec<&str> = text.lines().collect();
    let action = lines
        .iter()
        .enumerate()
        .find_map(|(at, line)| label(line, "Action").map(|name| (at, name)));
    let Some((at, name)) = action else {
        return match finish(&lines) {
            Some(answer) if is_parroted(&answer) => Plan::Malformed(
                "after `Finish:` comes the answer itself, not words about an answer".to_owned(),
            ),
            Some(answer) => Plan::Finish(answer),
            None if text.trim().is_empty() => Plan::Malformed("the message is empty".to_owned()),
            None if lines
                .iter()
                .any(|line| label(line, "Action Input").is_some()) =>
            {
                Plan::Malformed(
                    "there is an `Action Input:` without an `Action:` before it".to_owned(),
                )
            }
            None => Plan::Think,
        };
    };
    let name = name.trim_matches(['`', '[', ']', '*', ' ']);
    if name.is_empty() {
        return Plan::Malformed("`Action:` names no tool".to_owned());
    }
    let input = lines
        .iter()
        .enumerate()
        .skip(at + 1)
        .find_map(|(at, line)| label(line, "Action Input").map(|rest| (at, rest)));
    let Some((from, first)) = input else {
        return Plan::Malformed(format!("`Action: {name}` has no `Action Input:`"));
    };
    let rest = lines[from + 1..]
        .iter()
        .take_while(|line| label(line, "Observation").is_none());
    let body: Vec<&str> = std::iter::once(first).chain(rest.copied()).collect();
    let input = unfenced(&body.join("\n"));
    let call = ToolCall {
        id: format!("step-{step}"),
        name: name.to_owned(),
        args: arguments(name, &input),
    };
    match name == INFORMER {
        true => Plan::Ask(call),
        false => Plan::Act(vec![call]),
    }
}

/// Returns the rest of a line that starts with the label `name:`, ignoring asterisks around it.
fn label<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line
        .trim_start()
        .trim_start_matches('*')
        .strip_prefix(name)?;
    let rest = rest.trim_start_matches('*').strip_prefix(':')?;
    Some(rest.trim_start_matches('*').trim())
}

/// Returns the answer if a line ends the analysis: exactly `Done` or `Finish`, or `Done:` or `Finish:` with an answer, which
/// may continue on the lines below.
fn finish(lines: &[&str]) -> Option<String> {
    let at = lines.iter().position(|line| {
        let line = line.trim();
        matches!(line, "Done" | "Done." | "Finish" | "Finish.")
            || line.starts_with("Finish:")
            || line.starts_with("Done:")
    })?;
    let first = lines[at]
        .split_once(':')
        .map(|(_, answer)| answer.trim())
        .unwrap_or_default();
    let rest = lines[at + 1..].join("\n");
    Some(format!("{first}\n{rest}").trim().to_owned())
}

/// Removes the code fence that models often put around code.
fn unfenced(text: &str) -> String {
    let text = text.trim_matches('\n');
    let Some(open) = text.trim_start().strip_prefix("```") else {
        return text.trim_end().to_owned();
    };
    let body = open
        .split_once('\n')
        .map(|(_, body)| body)
        .unwrap_or_default();
    let body = body.rsplit_once("```").map_or(body, |(body, _)| body);
    body.trim_end().to_owned()
}

/// Converts the text input of a tool into its arguments. A JSON object is used as it is.
fn arguments(name: &str, input: &str) -> Json {
    if let Ok(Json::Object(arguments)) = serde_json::from_str(input) {
        return Json::Object(arguments);
    }
    json!({ tools::argument(name).unwrap_or("input"): input })
}

#[cfg(test)]
mod tests {
    use super::super::tools::{PYTHON, READER, SELECTOR, SUBMITTER};
    use super::*;

    fn said(text: &str) -> Plan {
        read(&Message::assistant(text), 3)
    }

    #[test]
    fn b5_done_in_code_ends_nothing() {
        let plan = said(
            "Think: I print it\nAction: PythonInterpreter\nAction Input:\n```python\nprint('''\nDone\nFinish: no\n''')\n```",
        );
        let Plan::Act(calls) = plan else {
            panic!("{plan:?}")
        };
        assert_eq!(
            calls[0].args,
            json!({ "code": "print('''\nDone\nFinish: no\n''')" })
        );
        assert_eq!(calls[0].id, "step-3");
        let call = ToolCall {
            id: "c".to_owned(),
            name: PYTHON.to_owned(),
            args: json!({ "code": "1" }),
        };
        let both = Message::Assistant(superstep_llm::Answer {
            content: "Finish: x".into(),
            tool_calls: vec![call.clone()],
            reasoning: None,
        });
        assert_eq!(read(&both, 1), Plan::Act(vec![call]));
    }

    #[test]
    fn b5_only_a_line_of_its_own_ends_it() {
        assert_eq!(said("Done"), Plan::Finish(String::new()));
        assert_eq!(
            said("Think: all is there\nFinish: four products"),
            Plan::Finish("four products".to_owned())
        );
        assert_eq!(
            said("Finish: a list\n- one\n- two"),
            Plan::Finish("a list\n- one\n- two".to_owned())
        );
        for text in [
            "I am nearly Done with it",
            "Finished soon",
            "What must be Done: everything",
        ] {
            assert_eq!(said(text), Plan::Think, "{text}");
        }
    }

    #[test]
    fn b3_what_is_malformed_is_told() {
        for (text, why) in [
            ("", "empty"),
            ("Action:\nAction Input: 1", "names no tool"),
            (
                "Action: PythonInterpreter\nprint(1)",
                "has no `Action Input:`",
            ),
            ("Action Input: print(1)", "without an `Action:`"),
        ] {
            let plan = said(text);
            assert!(
                matches!(&plan, Plan::Malformed(told) if told.contains(why)),
                "{text:?}: {plan:?}"
            );
        }
    }

    #[test]
    fn b3_text_and_json_are_both_arguments() {
        let Plan::Act(calls) =
            said("**Action:** SheetSelector\n**Action Input:** SELECT 1\nObservation: made up")
        else {
            panic!()
        };
        assert_eq!(
            (calls[0].name.as_str(), &calls[0].args),
            (SELECTOR, &json!({ "sql": "SELECT 1" }))
        );
        let Plan::Act(calls) =
            said("Action: PythonInterpreter\nAction Input: {\"code\": \"print(1)\"}")
        else {
            panic!()
        };
        assert_eq!(calls[0].args, json!({ "code": "print(1)" }));
        assert!(matches!(
            said("Action: Informer\nAction Input: which products?"),
            Plan::Ask(_)
        ));
    }

    #[test]
    fn b3_every_tool_can_be_called_as_text() {
        for (tool, argument) in [(SUBMITTER, "answer"), (READER, "range"), (SELECTOR, "sql")] {
            let Plan::Act(calls) = said(&format!("Action: {tool}\nAction Input: x")) else {
                panic!("{tool}")
            };
            assert_eq!(calls[0].args, json!({ argument: "x" }));
        }
    }

    #[test]
    fn b5_words_about_an_answer_do_not_end_it() {
        let plan = said("Finish: the answer in a sentence");
        assert!(matches!(plan, Plan::Malformed(_)), "{plan:?}");
    }
}
