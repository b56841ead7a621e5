//! The core runs graphs and knows nothing of models, tools, tokens or money. Those are `superstep-agent`'s.

use super::assert_tidy;
use super::files::{self, File};
use super::rust_code::{code_only, line_of, words};

/// Names that mean models wherever they are: in code, in a text, in a comment, in capitals or not.
const NAMES: &[&str] = &[
    "gen_ai",
    "genai",
    "langsmith",
    "openinference",
    "phoenix",
    "openai",
    "anthropic",
    "invoke_agent",
    "execute_tool",
    "input_tokens",
    "output_tokens",
    "dollar",
    "budget",
];

/// Words that a comment may use for an example, and that no name in the code has as a part.
const PARTS: &[&str] = &[
    "llm", "model", "models", "tool", "tools", "prompt", "chat", "price",
];

fn faults_of(file: &File) -> Vec<String> {
    let lower = file.text.to_ascii_lowercase();
    let names = NAMES.iter().flat_map(|name| {
        let found = lower.match_indices(name);
        found.map(|(place, _)| (line_of(&lower, place), (*name).to_owned()))
    });
    let code = code_only(&file.text);
    let parts = words(&code).filter_map(|(place, word)| {
        let mut parts = parts_of(word).into_iter();
        let part = parts.find(|part| PARTS.contains(&part.as_str()))?;
        Some((line_of(&code, place), part))
    });
    let mut found: Vec<_> = names.chain(parts).collect();
    found.sort();
    found
        .into_iter()
        .map(|(line, word)| {
            format!(
                "{}:{line}: `{word}` is about models; it belongs to superstep-agent",
                file.path
            )
        })
        .collect()
}

/// `ModelCall` and `model_call` are `model` and `call`.
fn parts_of(word: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for c in word.chars() {
        let is_new = c == '_' || (c.is_ascii_uppercase() && was_lower);
        was_lower = c.is_ascii_lowercase();
        if is_new {
            parts.push(String::new());
        }
        if c != '_'
            && let Some(part) = parts.last_mut()
        {
            part.push(c.to_ascii_lowercase());
        }
    }
    parts
}

#[test]
fn the_core_knows_no_models_tools_tokens_or_money() {
    let files = files::all();
    let core: Vec<_> = files
        .iter()
        .filter(|f| f.path.starts_with("crates/superstep-core/src/") && f.is_rust())
        .collect();
    assert!(core.len() > 5, "the core was not found");
    assert_tidy(&core.into_iter().flat_map(faults_of).collect::<Vec<_>>());
}

#[test]
fn words_of_models_are_found() {
    let text = "/// What Phoenix reads.\nconst A: &str = \"gen_ai.usage.input_tokens\";\n\
                enum SpanKind { Model, Tool }\nlet nano_dollars = 1;\nfn tool_call() {}\n";
    let belongs = "is about models; it belongs to superstep-agent";
    assert_eq!(
        faults_of(&File::new("a.rs", text)),
        [
            format!("a.rs:1: `phoenix` {belongs}"),
            format!("a.rs:2: `gen_ai` {belongs}"),
            format!("a.rs:2: `input_tokens` {belongs}"),
            format!("a.rs:3: `model` {belongs}"),
            format!("a.rs:3: `tool` {belongs}"),
            format!("a.rs:4: `dollar` {belongs}"),
            format!("a.rs:5: `tool` {belongs}"),
        ]
    );
}

#[test]
fn examples_in_comments_and_words_that_only_look_alike_are_fine() {
    let text = "/// Such as the answer of a model or a tool.\nfn resume_token(remodel: u8, stool: u8) {}\n";
    assert!(faults_of(&File::new("a.rs", text)).is_empty());
}
