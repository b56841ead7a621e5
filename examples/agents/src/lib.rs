//! The model of an example: a script in `scripts/`, or the model that `--model` names.
//!
//! The examples are in `src/bin`. By default they run offline: each has a script with the replies of a model, and the build has
//! neither an HTTP client nor TLS. The feature `remote` adds both, and with it `--model` takes the models of servers.
//!
//! With a real model, a program of your own opens it by name with `superstep_llm::open`, and needs nothing of this library.
//!
//! This library has one function, [`model_from_args`], and never decides what an agent does: tools, prompts and graphs are in
//! the examples.

use std::path::Path;
use std::sync::Arc;

use superstep_llm::{Model, ModelName, open};

/// Reads `[--model PROVIDER:NAME] [QUESTION]` and opens the model. The defaults are the script with this name and `question`.
pub fn model_from_args(
    script: &str,
    question: &str,
) -> Result<(Arc<dyn Model>, String), Box<dyn std::error::Error>> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut name = format!("script:{}", scripts.join(script).display());
    let mut question = question.to_owned();
    let mut args = lexopt::Parser::from_env();
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("model") => name = args.value()?.to_string_lossy().into_owned(),
            lexopt::Arg::Value(asked) => question = asked.to_string_lossy().into_owned(),
            other => return Err(other.unexpected().into()),
        }
    }
    // As text, because `main` prints the `Debug` form, and that of the error has no sentence about the missing feature.
    let model = open(&name.parse::<ModelName>()?).map_err(|error| error.to_string())?;
    Ok((model, question))
}
