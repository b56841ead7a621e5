//! Structured output.
//!
//! Servers that constrain an answer to a schema compile it into a grammar first, and several of them silently give up on
//! `$ref`, `anyOf` and the like: the answer is then not constrained at all. So schemas here are *flat*: one object of
//! scalars, enums and lists of those, or of such objects, all inlined and closed. The answer is still decoded and checked.

use std::fmt;
use std::marker::PhantomData;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use crate::error::ModelError;
use crate::message::Message;
use crate::model::Model;
use crate::name::ModelName;
use crate::reply::{Finish, Reply};
use crate::request::{OutputSchema, Request};

/// Structured output of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Structured<T> {
    /// The decoded answer, or the fallback if there is none.
    pub value: T,
    /// Why the model failed to produce valid output, in words for a person. `None` if `value` is the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
    /// The replies of the calls made: one, or two if the first did not fit.
    pub replies: Vec<Reply>,
}

/// Calls the model for output of type `T`. If the answer does not fit, tells the model why and asks once more. If that fails
/// too, returns the value of `otherwise`, marked as degraded.
pub async fn ask<T: JsonSchema + DeserializeOwned>(
    model: &dyn Model,
    request: Request,
    otherwise: impl FnOnce() -> T,
) -> Result<Structured<T>, ModelError> {
    let mut form = Form::new(model.name(), request, otherwise)?;
    loop {
        let reply = model.reply(form.request()).await?;
        if let Some(answer) = form.answered(reply) {
            return Ok(answer);
        }
    }
}

/// The logic of [`ask`] for callers that make the calls themselves: send [`Form::request`] and pass the reply to
/// [`Form::answered`], until it returns an answer.
pub struct Form<T, F> {
    model: ModelName,
    request: Request,
    replies: Vec<Reply>,
    otherwise: Option<F>,
    answer: PhantomData<fn() -> T>,
}

impl<T: JsonSchema + DeserializeOwned, F: FnOnce() -> T> Form<T, F> {
    /// Prepares a request. Fails if the schema of `T` is not flat.
    pub fn new(model: &ModelName, mut request: Request, otherwise: F) -> Result<Self, ModelError> {
        let output = output_schema::<T>().map_err(|why| ModelError::UnsupportedSchema {
            name: T::schema_name().into_owned(),
            why: why.to_string(),
        })?;
        request.output = Some(output);
        Ok(Self {
            model: model.clone(),
            request,
            replies: Vec::new(),
            otherwise: Some(otherwise),
            answer: PhantomData,
        })
    }

    /// Returns the request to send next.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Takes a reply. Returns `None` if the model must be asked again.
    pub fn answered(&mut self, reply: Reply) -> Option<Structured<T>> {
        let read = read::<T>(&reply);
        self.request.messages.push(reply.message());
        self.replies.push(reply);
        let (value, degraded) = match read {
            Ok(value) => (value, None),
            Err(wrong) if self.replies.len() < TRIES => {
                let told = format!(
                    "That answer does not fit: {wrong}. Answer again with only the JSON object that was asked for."
                );
                self.request.messages.push(Message::user(told));
                return None;
            }
            Err(wrong) => {
                let why = format!(
                    "`{}` gave no answer in the form that was asked for: {wrong}",
                    self.model
                );
                (self.otherwise.take()?(), Some(why))
            }
        };
        Some(Structured {
            value,
            degraded,
            replies: std::mem::take(&mut self.replies),
        })
    }
}

impl<T, F> fmt::Debug for Form<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Form")
            .field("model", &self.model)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

/// The answer, and one repair.
const TRIES: usize = 2;

/// Reads structured output from a reply, with or without a code fence around it. Returns what is wrong if it does not fit.
pub fn read<T: DeserializeOwned>(reply: &Reply) -> Result<T, String> {
    if reply.finish == Finish::Length {
        return Err("it was longer than allowed and is cut off".to_owned());
    }
    let text = reply.text();
    serde_json::from_str(bare(&text)).map_err(|error| error.to_string())
}

/// Strips the code fence that models like to put around JSON.
fn bare(text: &str) -> &str {
    let text = text.trim();
    let inner = text
        .strip_prefix("```json")
        .or_else(|| text.strip_prefix("```"));
    match inner.and_then(|inner| inner.strip_suffix("```")) {
        Some(inner) => inner.trim(),
        None => text,
    }
}

/// Error for a schema that some servers would not enforce.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the form `{form}` is not flat: {at} has `{word}`; use an object of plain fields, enums of words, and lists of those"
)]
pub struct NotFlat {
    /// Name of the type.
    pub form: String,
    /// Where in the type.
    pub at: String,
    /// The unsupported keyword.
    pub word: String,
}

/// Returns the flat schema of a type, closed against unknown fields.
pub fn output_schema<T: JsonSchema>() -> Result<OutputSchema, NotFlat> {
    let name = T::schema_name();
    let schema = schema_of::<T>();
    check_flat(&name, "the form", &schema)?;
    Ok(OutputSchema {
        name: word(&name),
        schema,
    })
}

/// Returns the schema of a type with everything inlined. For tools, whose schemas need not be flat.
pub fn schema_of<T: JsonSchema>() -> Json {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let schema: Schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    tidy(&mut schema);
    schema
}

/// Closes objects, and converts a choice of constants into an enum.
fn tidy(schema: &mut Json) {
    let Json::Object(fields) = schema else {
        return;
    };
    fields.remove("title");
    if let Some(words) = words_of(fields) {
        fields.remove("oneOf");
        fields.insert("type".to_owned(), json!("string"));
        fields.insert("enum".to_owned(), Json::Array(words));
    }
    if fields.get("type") == Some(&json!("object")) && fields.contains_key("properties") {
        fields.entry("additionalProperties").or_insert(json!(false));
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(inner) {
            tidy(inner);
        }
    }
    if let Some(Json::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(tidy);
    }
    if let Some(Json::Array(choices)) = fields.get_mut("anyOf") {
        choices.iter_mut().for_each(tidy);
    }
}

/// Returns the values of a `oneOf` of constants, which is how an enum with descriptions is generated.
fn words_of(schema: &Map<String, Json>) -> Option<Vec<Json>> {
    let choices = schema.get("oneOf")?.as_array()?;
    let mut words = Vec::new();
    for choice in choices {
        match (choice.get("const"), choice.get("enum")) {
            (Some(word @ Json::String(_)), _) => words.push(word.clone()),
            (None, Some(Json::Array(several))) => words.extend(several.iter().cloned()),
            _ => return None,
        }
    }
    Some(words)
}

fn check_flat(form: &str, at: &str, schema: &Json) -> Result<(), NotFlat> {
    let not_flat = |word: &str| NotFlat {
        form: form.to_string(),
        at: at.to_owned(),
        word: word.to_owned(),
    };
    let Json::Object(fields) = schema else {
        return Err(not_flat("anything"));
    };
    let banned = [
        "$ref",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "if",
        "$defs",
        "patternProperties",
    ];
    if let Some(word) = banned.iter().find(|word| fields.contains_key(**word)) {
        return Err(not_flat(word));
    }
    if let Some(items) = fields.get("items") {
        check_flat(form, &format!("{at}'s items"), items)?;
    }
    if let Some(Json::Object(properties)) = fields.get("properties") {
        for (name, property) in properties {
            check_flat(form, &format!("`{name}`"), property)?;
        }
    }
    Ok(())
}

/// Providers only accept these characters in a name.
fn word(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().map(plain).take(64).collect()
}
