//! Lets a person change the arguments of a call before they agree to it: in their editor, or field by field if none is set. They
//! see the changes before the answer counts.

use archie_agent::form;
use archie_agent::printable::one_line;
use archie_agent::style::Face;
use archie_agent::value_diff::Difference;
use archie_agent::{AgentUi, ChoiceInput, InterruptRequest, Terminal};
use serde_json::{Map, Value as Json, json};

use crate::editor::Editor;

/// Returns whether a typed line asks for the dialog: `edit` without arguments, where the call can be edited as a form, and a
/// person types at a terminal.
pub(crate) fn is_asked_for(
    line: &str,
    ui: &dyn AgentUi,
    asked: &InterruptRequest,
    terminal: &dyn Terminal,
) -> bool {
    let choices = ui.choices(asked);
    let is_offered = choices
        .iter()
        .any(|choice| choice.input == ChoiceInput::Edit);
    matches!(line.trim(), "e" | "edit")
        && is_offered
        && asked.edit_form().is_some()
        && terminal.page_size().is_some()
}

/// Runs the dialog. Returns the answer, or `None` if the person changed nothing or takes their changes back.
pub(crate) async fn run(
    asked: &InterruptRequest,
    terminal: &dyn Terminal,
) -> anyhow::Result<Option<Json>> {
    let edited = match Editor::from_env() {
        Ok(editor) => in_editor(&editor, asked, terminal).await?,
        Err(_) => field_by_field(asked, terminal)?,
    };
    let Some(answer) = edited else {
        return Ok(None);
    };
    let changes = asked.edit_differences(&answer);
    if changes.is_empty() {
        terminal.aside("nothing was changed");
        return Ok(None);
    }
    show(&changes, terminal);
    let sure = terminal.ask("Do it with these changes? [y/N] ")?;
    let is_sure = sure.is_some_and(|sure| matches!(sure.trim(), "y" | "yes"));
    if !is_sure {
        terminal.aside("the changes were dropped");
    }
    Ok(is_sure.then_some(answer))
}

/// Opens the form in the editor, again with the reason at its top if it cannot be read.
async fn in_editor(
    editor: &Editor,
    asked: &InterruptRequest,
    terminal: &dyn Terminal,
) -> anyhow::Result<Option<Json>> {
    let Some(mut form) = asked.edit_form() else {
        return Ok(None);
    };
    loop {
        let edited = match editor.edit(&form).await {
            Ok(edited) => edited,
            Err(error) => {
                terminal.aside(&format!("{error:#}"));
                return Ok(None);
            }
        };
        match asked.read_edit_form(&edited) {
            Ok(answer) => return Ok(Some(answer)),
            Err(why) => {
                terminal.aside(&why.to_string());
                let again = terminal.ask("Edit it again? [Y/n] ")?;
                let is_over = again.is_none_or(|again| matches!(again.trim(), "n" | "no"));
                if is_over {
                    return Ok(None);
                }
                form = edited;
            }
        }
    }
}

/// Asks for every field. Enter keeps what it is.
fn field_by_field(
    asked: &InterruptRequest,
    terminal: &dyn Terminal,
) -> anyhow::Result<Option<Json>> {
    let call = &asked.request["action_request"];
    let Some(before) = call["args"].as_object() else {
        return Ok(None);
    };
    terminal.line("EDITOR is not set, so each field is asked for. Enter keeps it; Ctrl-D stops.");
    let mut after = Map::new();
    for (name, value) in before {
        let field = Map::from_iter([(name.clone(), value.clone())]);
        terminal.line(form::render(&field).trim_end());
        let value = match ask_field(name, value, terminal)? {
            TypedValue::New(new) => new,
            TypedValue::Nothing => value.clone(),
            TypedValue::Stop => return Ok(None),
        };
        after.insert(name.clone(), value);
    }
    if !ask_added(&asked.optional_args(), &mut after, terminal)? {
        return Ok(None);
    }
    let edited = json!({ "action": call["action"], "args": after });
    Ok(Some(json!({ "type": "edit", "args": edited })))
}

/// Asks for arguments that the call lacks, and adds them. Returns `false` if the person stops.
fn ask_added(
    optional: &Map<String, Json>,
    after: &mut Map<String, Json>,
    terminal: &dyn Terminal,
) -> anyhow::Result<bool> {
    loop {
        let missing = optional.keys().filter(|name| !after.contains_key(*name));
        let missing: Vec<_> = missing.map(|name| one_line(name)).collect();
        if missing.is_empty() {
            return Ok(true);
        }
        let prompt = format!("argument to add ({}); Enter: none: ", missing.join(", "));
        let Some(name) = terminal.ask(&prompt)? else {
            return Ok(false);
        };
        let name = name.trim();
        if name.is_empty() {
            return Ok(true);
        }
        let schema = optional.get(name).filter(|_| !after.contains_key(name));
        let Some(schema) = schema else {
            terminal.aside(&format!("the call has no argument `{name}` to add"));
            continue;
        };
        match ask_field(name, &form::example(schema), terminal)? {
            TypedValue::New(value) => {
                after.insert(name.to_owned(), value);
            }
            TypedValue::Nothing => {}
            TypedValue::Stop => return Ok(false),
        }
    }
}

/// What a person typed for a field.
enum TypedValue {
    New(Json),
    /// Only Enter.
    Nothing,
    /// The end of the input.
    Stop,
}

/// Asks for the value of a field until it can be read. `value` decides the type.
fn ask_field(name: &str, value: &Json, terminal: &dyn Terminal) -> anyhow::Result<TypedValue> {
    loop {
        let Some(typed) = ask_value(name, value, terminal)? else {
            return Ok(TypedValue::Stop);
        };
        if typed.is_empty() {
            return Ok(TypedValue::Nothing);
        }
        match parse_field(name, value, &typed) {
            Ok(value) => return Ok(TypedValue::New(value)),
            Err(why) => terminal.aside(&why),
        }
    }
}

/// Asks for a value: one line, or several that end with a line of one full stop if it is a text of several lines or a list.
fn ask_value(
    name: &str,
    value: &Json,
    terminal: &dyn Terminal,
) -> anyhow::Result<Option<Vec<String>>> {
    let takes_lines = match value {
        Json::String(text) => text.contains('\n'),
        Json::Array(_) => true,
        _ => false,
    };
    let name = one_line(name);
    if !takes_lines {
        let typed = terminal.ask(&format!("new {name}: "))?;
        return Ok(typed.map(|line| match line.trim().is_empty() {
            true => Vec::new(),
            false => vec![line],
        }));
    }
    let mut lines = Vec::new();
    let mut prompt = format!("new {name}, line by line, a line with only a full stop ends it: ");
    loop {
        let Some(line) = terminal.ask(&prompt)? else {
            return Ok(None);
        };
        let is_kept = lines.is_empty() && line.trim().is_empty();
        if is_kept || line.trim() == "." {
            return Ok(Some(lines));
        }
        lines.push(line);
        prompt = "> ".to_owned();
    }
}

/// Reads what was typed for one field as the form would.
fn parse_field(name: &str, value: &Json, typed: &[String]) -> Result<Json, String> {
    let text = match value {
        Json::String(_) => return Ok(json!(typed.join("\n"))),
        Json::Array(_) => {
            let items = typed.iter().map(|item| format!("\n  - {}", item.trim()));
            items.collect::<String>()
        }
        _ => format!(" {}", typed.join(" ")),
    };
    let before = Map::from_iter([(name.to_owned(), value.clone())]);
    let form = format!("{}:{text}\n", json!(name));
    let mut after = form::parse(&form, &before, &Map::new()).map_err(|why| why.to_string())?;
    after
        .remove(name)
        .ok_or_else(|| format!("`{name}` has no value"))
}

/// Shows what was changed: each field with the lines that are gone and those that are new.
fn show(changes: &[Difference], terminal: &dyn Terminal) {
    for change in changes {
        terminal.line_of(&[(Face::Bold, &format!("{}:", change.path))]);
        for line in &change.lines {
            let face = match line.starts_with('-') {
                true => Face::Error,
                false => Face::Ok,
            };
            terminal.line_of(&[(face, &format!("  {line}"))]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use archie_agent::{PlainUi, Waiting};

    use super::*;

    /// A person at a terminal who types these lines.
    struct Typist {
        types: Mutex<VecDeque<&'static str>>,
        seen: Mutex<String>,
    }

    impl Typist {
        fn new(types: impl IntoIterator<Item = &'static str>) -> Self {
            Self {
                types: Mutex::new(types.into_iter().collect()),
                seen: Mutex::default(),
            }
        }
    }

    impl Terminal for Typist {
        fn line(&self, text: &str) {
            self.seen.lock().unwrap().push_str(&format!("{text}\n"));
        }

        fn markdown(&self, text: &str) {
            self.line(text);
        }

        fn piece(&self, _: &str) {}

        fn pieces_end(&self) {}

        fn aside(&self, text: &str) {
            self.line(text);
        }

        fn ask(&self, prompt: &str) -> anyhow::Result<Option<String>> {
            self.line(prompt);
            let typed = self.types.lock().unwrap().pop_front();
            Ok(typed.map(str::to_owned))
        }

        fn page_size(&self) -> Option<(usize, usize)> {
            Some((80, 24))
        }

        fn waiting(&self, _: &str) -> Waiting {
            Waiting::default()
        }

        fn is_watched(&self) -> bool {
            true
        }
    }

    fn call() -> InterruptRequest {
        InterruptRequest {
            id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
            node: "n".to_owned(),
            kind: "approval".to_owned(),
            request: json!({
                "action_request": { "action": "book", "args": { "seats": 4, "to": ["ada"], "text": "Hello\nall" } },
                "config": { "allow_accept": true, "allow_edit": true, "allow_ignore": true },
            }),
            schema: None,
        }
    }

    #[test]
    fn only_edit_without_arguments_at_a_terminal_asks_for_it() {
        let terminal = Typist::new([]);
        for (line, wanted) in [
            ("edit", true),
            (" e ", true),
            ("edit {}", false),
            ("y", false),
        ] {
            assert_eq!(
                is_asked_for(line, &PlainUi, &call(), &terminal),
                wanted,
                "{line}"
            );
        }
        let mut fixed = call();
        fixed.request["config"]["allow_edit"] = json!(false);
        assert!(!is_asked_for("edit", &PlainUi, &fixed, &terminal));
    }

    #[test]
    fn without_an_editor_each_field_is_asked_for_and_keeps_its_type() {
        // The order of the fields is not fixed; every field but `seats` is kept.
        let asked = call();
        let names: Vec<_> = asked.request["action_request"]["args"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        let types = names.iter().flat_map(|name| match name.as_str() {
            "seats" => vec!["many", "6"],
            "to" => vec!["ada", "bob", "."],
            _ => vec![""],
        });
        let terminal = Typist::new(types);
        let answer = field_by_field(&asked, &terminal).unwrap().unwrap();
        assert_eq!(
            answer["args"]["args"],
            json!({ "seats": 6, "to": ["ada", "bob"], "text": "Hello\nall" })
        );
        let seen = terminal.seen.into_inner().unwrap();
        assert!(seen.contains("`seats` must be a number"), "{seen}");
        assert!(seen.contains("seats: 4"), "{seen}");
    }

    #[test]
    fn without_an_editor_an_argument_that_the_call_lacks_can_be_added() {
        let mut asked = call();
        asked.request["action_request"]["args"] = json!({ "seats": 4 });
        asked.request["optional_args"] = json!({
            "copies": { "type": "array", "items": { "type": "string" } }, "sure": { "type": "boolean" }
        });
        let terminal = Typist::new(["", "bcc", "sure", "perhaps", "true", ""]);
        let answer = field_by_field(&asked, &terminal).unwrap().unwrap();
        assert_eq!(answer["args"]["args"], json!({ "seats": 4, "sure": true }));
        let seen = terminal.seen.into_inner().unwrap();
        assert!(seen.contains("no argument `bcc` to add"), "{seen}");
        assert!(seen.contains("`sure` must be `true` or `false`"), "{seen}");
        assert!(seen.contains("argument to add (copies);"), "{seen}");
        // At the end of the input, nothing is changed.
        let answer = field_by_field(&asked, &Typist::new([""])).unwrap();
        assert_eq!(answer, None);
    }

    #[tokio::test]
    async fn an_editor_that_writes_nonsense_is_opened_again_or_given_up() {
        let editor = Editor::from_words("sed -i s/4/four/").unwrap();
        let terminal = Typist::new(["n"]);
        let answer = in_editor(&editor, &call(), &terminal).await.unwrap();
        assert_eq!(answer, None);
        let seen = terminal.seen.into_inner().unwrap();
        assert!(seen.contains("`seats` must be a number"), "{seen}");
        let editor = Editor::from_words("sed -i s/4/5/").unwrap();
        let answer = in_editor(&editor, &call(), &Typist::new([])).await.unwrap();
        assert_eq!(answer.unwrap()["args"]["args"]["seats"], json!(5));
    }
}
