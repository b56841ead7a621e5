//! Measures what a model can do, rather than going by its name.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use superstep_llm::structured::{output_schema, read};
use superstep_llm::{Chunk, Message, Model, ModelError, Request, ToolSpec};

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Measured {
    /// Time to the first token of a short request.
    first_token_ms: u64,
    /// `None` if the answer was too short to tell.
    tokens_per_second: Option<f64>,
    /// Context size, if the server tells it.
    context_size: Option<u64>,
    /// Requests that the server processes at once, if it tells.
    slots: Option<usize>,
    /// Whether answers keep to a form even if the prompt asks for something else.
    forms_enforced: bool,
    /// Whether it calls a tool when told to.
    calls_tools: bool,
}

impl Measured {
    /// Says it in one line.
    pub(super) fn says(&self, name: &str) -> String {
        let mut says = format!("{name} answers after {} ms", self.first_token_ms);
        if let Some(rate) = self.tokens_per_second {
            says.push_str(&format!(", {rate:.1} tokens a second"));
        }
        if let Some(size) = self.context_size {
            says.push_str(&format!(", context of {size} tokens"));
        }
        match self.slots {
            Some(1) => says.push_str(", one request at a time"),
            Some(slots) => says.push_str(&format!(", {slots} requests at a time")),
            None => {}
        }
        says.push_str(match self.forms_enforced {
            true => "; keeps to forms",
            false => "; does not keep to forms, so answers that do not fit are asked for again",
        });
        says.push_str(match self.calls_tools {
            true => "; calls tools",
            false => "; did not call a tool when told to: use `--actions text` with `archie sheet`",
        });
        says
    }
}

/// A form that has nothing to do with the question.
#[derive(Debug, Deserialize, JsonSchema)]
struct Paint {
    #[expect(dead_code, reason = "only its form matters")]
    colour: Colour,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Colour {
    Teal,
    Ochre,
}

/// Calls the model three times: for some tokens, for a form, and for a tool call.
pub(super) async fn measure(model: &dyn Model) -> Result<Measured, ModelError> {
    let (first_token, tokens_per_second) = pace(model).await?;
    Ok(Measured {
        first_token_ms: u64::try_from(first_token.as_millis()).unwrap_or(u64::MAX),
        tokens_per_second,
        context_size: model.context_size().await?,
        slots: model.slots().await,
        forms_enforced: keeps_to_forms(model).await?,
        calls_tools: calls_tools(model).await?,
    })
}

async fn pace(model: &dyn Model) -> Result<(Duration, Option<f64>), ModelError> {
    let question = Message::user("Count from one to twenty, in words.");
    let request = Request::new("doctor", vec![question]).tokens_max(32);
    let begun = Instant::now();
    let mut stream = model.stream(&request).await?;
    let (mut first, mut last, mut tokens) = (None, begun, 0_u32);
    while let Some(chunk) = stream.next().await {
        if matches!(chunk?, Chunk::Text(_) | Chunk::Reasoning(_)) {
            last = Instant::now();
            first.get_or_insert(last);
            tokens += 1;
        }
    }
    let first = first.unwrap_or_else(Instant::now);
    let took = last.saturating_duration_since(first).as_secs_f64();
    let rate = (tokens > 4 && took > 0.0).then(|| f64::from(tokens - 1) / took);
    Ok((first - begun, rate))
}

async fn keeps_to_forms(model: &dyn Model) -> Result<bool, ModelError> {
    let question =
        Message::user("Which animal do you like best? Answer with one short sentence, no JSON.");
    let mut request = Request::new("doctor", vec![question]).tokens_max(32);
    request.output = output_schema::<Paint>().ok();
    let reply = model.reply(&request).await?;
    Ok(read::<Paint>(&reply).is_ok())
}

async fn calls_tools(model: &dyn Model) -> Result<bool, ModelError> {
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Sum {
        a: i64,
        b: i64,
    }
    let tool = ToolSpec {
        name: "add".to_owned(),
        description: "Adds two numbers.".to_owned(),
        schema: superstep_llm::structured::schema_of::<Sum>(),
    };
    let question = Message::user("Add 1234 and 4321 with the tool `add`.");
    let request = Request::new("doctor", vec![question])
        .tools(vec![tool])
        .tokens_max(96);
    let reply = match model.reply(&request).await {
        Ok(reply) => reply,
        // Some servers refuse tools for models that were not trained for them.
        Err(ModelError::Refused { .. }) => return Ok(false),
        Err(error) => return Err(error),
    };
    let is_right = |name: &str, args: &serde_json::Value| {
        name == "add" && args["a"].as_i64().is_some() && args["b"].as_i64().is_some()
    };
    let calls = &reply.answer.tool_calls;
    Ok(calls.iter().any(|call| is_right(&call.name, &call.args)))
}
