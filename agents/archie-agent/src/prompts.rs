//! Prompts: Markdown files that come with the program, and that a person can put their own in the place of.

use anyhow::Context;

use crate::agent::AgentDeps;
use crate::user_folder::read_named_file;

/// The prompts of an agent, as they come with it.
pub trait PromptFiles: Default {
    /// Each with the name of its file.
    fn files(&mut self) -> Vec<(&'static str, &mut String)>;

    /// With those in their place that the person has put into the folder of this agent.
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

/// A prompt with its places filled in. What is filled in is not looked at again, so no text can bring places of its own.
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

/// How large a prompt may be.
const PROMPT_BYTES_MAX: u64 = 1 << 20;

#[test]
fn what_is_filled_in_cannot_bring_places_of_its_own() {
    let filled = filled("{{a}} and {{b}} {{c", &[("a", "{{b}}"), ("b", "2")]);
    assert_eq!(filled, "{{b}} and 2 {{c");
}
