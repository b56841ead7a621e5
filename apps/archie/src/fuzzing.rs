//! Parsers of untrusted input, for `testing/fuzz`. Not part of the public API.

use archie_agent::{InterruptRequest, markdown};
use archie_docs::scan::{Package, SourceFile, manifest};
use serde_json::Value as Json;
use superstep::InterruptId;

use crate::cli::settings::Settings;

/// Parses the text of `settings.json`, without the environment or the command line.
pub fn read_settings(text: &str) -> anyhow::Result<Settings> {
    Settings::from_text(text)
}

/// Parses a manifest such as `Cargo.toml` or `pom.xml`, chosen by its file name.
pub fn read_package(name: &str, text: &str) -> Option<Package> {
    let file = SourceFile {
        path: name.to_owned(),
        ..SourceFile::default()
    };
    manifest::package(&file, text, &[])
}

/// Returns a page with untrusted text in a heading, a list, a table, a quotation and as code.
pub fn write_page(words: &str) -> String {
    let (text, code) = (markdown::text(words), markdown::code(words));
    let (quoted, fenced) = (
        markdown::quoted_text(words),
        markdown::fenced("text", words),
    );
    format!(
        "# {text}: end\n\n- {text}\n  - checked: {code}\n\n| a | b |\n| --- | --- |\n| {text} | {code} |\n\n{quoted}\n{fenced}\nEnd.\n"
    )
}

/// Parses a typed line as the answer to an interrupt of this kind.
pub fn read_answer(
    kind: &str,
    request: &Json,
    schema: Option<&Json>,
    line: &str,
) -> Result<Json, String> {
    let asked = InterruptRequest {
        id: InterruptId::from_bytes([1; 16]),
        node: "node".to_owned(),
        kind: kind.to_owned(),
        request: request.clone(),
        schema: schema.cloned(),
    };
    asked.words();
    asked.prompt();
    asked.read(line)
}
