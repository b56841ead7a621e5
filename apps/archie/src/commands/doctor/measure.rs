//! Measures what a model can do, rather than going by its name.

use std::time::{Duration, Instant};

use archie_agent::ModelProfile;
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
    /// Whether it looks up what it cannot know, instead of answering.
    looks_up: bool,
    /// Whether it picks from a list what meets a condition, and nothing else. Small models name everything.
    picks_by_condition: bool,
}

impl Measured {
    /// Returns how much agents may leave to the model.
    pub(super) fn profile(&self) -> ModelProfile {
        // Servers that do not tell the size of their context are the hosted ones, whose contexts are large.
        let is_roomy = self.context_size.is_none_or(|size| size >= ROOMY_CONTEXT);
        let does_by_itself = self.calls_tools && self.looks_up && self.picks_by_condition;
        match (does_by_itself, is_roomy) {
            (false, _) => ModelProfile::Small,
            (true, false) => ModelProfile::Medium,
            (true, true) => ModelProfile::Large,
        }
    }

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
        says.push_str(match self.profile() {
            ModelProfile::Small => "; profile small: agents ask it one thing at a time, with forms",
            ModelProfile::Medium => "; profile medium",
            ModelProfile::Large => "; profile large",
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

/// Calls the model five times: for some tokens, for a form, for a tool call, for something that it must look up, and for a
/// choice from a list.
pub(super) async fn measure(model: &dyn Model) -> Result<Measured, ModelError> {
    let (first_token, tokens_per_second) = pace(model).await?;
    Ok(Measured {
        first_token_ms: u64::try_from(first_token.as_millis()).unwrap_or(u64::MAX),
        tokens_per_second,
        context_size: model.context_size().await?,
        slots: model.slots().await,
        forms_enforced: keeps_to_forms(model).await?,
        calls_tools: calls_tools(model).await?,
        looks_up: looks_up(model).await?,
        picks_by_condition: picks_by_condition(model).await?,
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
    calls_tool(model, vec![question], tool, |args| {
        args["a"].is_i64() && args["b"].is_i64()
    })
    .await
}

/// Asks for a figure that only a query can tell, without naming the tool.
async fn looks_up(model: &dyn Model) -> Result<bool, ModelError> {
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Query {
        sql: String,
    }
    let tool = ToolSpec {
        name: "query".to_owned(),
        description: "Runs one SQL SELECT and returns its rows.".to_owned(),
        schema: superstep_llm::structured::schema_of::<Query>(),
    };
    let messages = vec![
        Message::system(
            "You answer questions about a database with the table orders (region, amount, units).",
        ),
        Message::user("What is the sum of the amounts in the region North?"),
    ];
    let is_select = |args: &serde_json::Value| {
        let sql = args["sql"].as_str().unwrap_or_default().to_lowercase();
        sql.contains("select") && sql.contains("orders")
    };
    calls_tool(model, messages, tool, is_select).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
enum Part {
    Bolt,
    Nut,
    Hinge,
    Key,
    Lock,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Parts {
    names: Vec<Part>,
}

async fn picks_by_condition(model: &dyn Model) -> Result<bool, ModelError> {
    let question = Message::user(
        "Parts as name, stock, minimum: Bolt 40 25; Nut 12 20; Hinge 9 9; Key 3 8; Lock 31 30. \
         Which parts have less in stock than their minimum?",
    );
    let mut request = Request::new("doctor", vec![question]).tokens_max(64);
    request.output = output_schema::<Parts>().ok();
    let reply = model.reply(&request).await?;
    Ok(read::<Parts>(&reply).is_ok_and(|mut parts| {
        parts.names.sort_unstable();
        parts.names == [Part::Nut, Part::Key]
    }))
}

async fn calls_tool(
    model: &dyn Model,
    messages: Vec<Message>,
    tool: ToolSpec,
    is_right: impl Fn(&serde_json::Value) -> bool,
) -> Result<bool, ModelError> {
    let name = tool.name.clone();
    let request = Request::new("doctor", messages)
        .tools(vec![tool])
        .tokens_max(96);
    let reply = match model.reply(&request).await {
        Ok(reply) => reply,
        // Some servers refuse tools for models that were not trained for them.
        Err(ModelError::Refused { .. }) => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut calls = reply.answer.tool_calls.iter();
    Ok(calls.any(|call| call.name == name && is_right(&call.args)))
}

/// In tokens.
const ROOMY_CONTEXT: u64 = 32_768;
