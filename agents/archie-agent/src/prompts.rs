//! Prompts: Markdown files built into the program, which a person can override with their own.

use anyhow::Context;

use crate::agent::AgentDeps;
use crate::user_folder::read_named_file;

/// The prompts of an agent. `Default` returns the built-in texts.
pub trait PromptFiles: Default {
    /// Returns each prompt with its file name.
    fn files(&mut self) -> Vec<(&'static str, &mut String)>;

    /// Loads the prompts of `agent`, with the person's files from the prompts folder in place of the built-in texts. Fails if
    /// such a file exists but cannot be read.
    fn of(agent: &str, deps: &AgentDeps) -> anyhow::Result<Self> {
        let mut prompts = Self::default();
        let Some(folder) = &deps.prompts_folder else {
            return Ok(prompts);
        };
        for (name, text) in prompts.files() {
            let path = folder.join(agent).join(name);
            let unread = || format!("the prompt {} cannot be read", path.display());
            match read_named_file(&path, PROMPT_BYTES_MAX) {
                Ok(own) => *text = String::from_utf8(own).with_context(unread)?,
                Err(error) if error.is_missing() => {}
                Err(error) => return Err(error).with_context(unread),
            }
        }
        Ok(prompts)
    }
}

/// Returns the prompt with its `{{placeholders}}` replaced. Inserted text is not scanned again, so it cannot introduce
/// placeholders. Unknown placeholders stay as they are.
pub fn filled(prompt: &str, places: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut rest = prompt;
    while let Some(at) = rest.find("{{") {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.find("}}").map(|end| end + 2);
        let name = end.map(|end| &rest[2..end - 2]);
        let place = name.and_then(|name| places.iter().find(|(known, _)| *known == name));
        match (place, end) {
            (Some((_, text)), Some(end)) => {
                out.push_str(text);
                rest = &rest[end..];
            }
            _ => {
                out.push_str("{{");
                rest = &rest[2..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Maximum size of a prompt file.
const PROMPT_BYTES_MAX: u64 = 1 << 20;

#[test]
fn what_is_filled_in_cannot_bring_places_of_its_own() {
    let filled = filled("{{a}} and {{b}} {{c", &[("a", "{{b}}"), ("b", "2")]);
    assert_eq!(filled, "{{b}} and 2 {{c");
}
