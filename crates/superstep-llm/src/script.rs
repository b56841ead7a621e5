//! A model that is a file: ordered replies, for tests, demos and offline use.
//!
//! ```json
//! {"replies": [
//!   {"at": "plan", "text": "First the rows, then the sum.", "usage": {"input_tokens": 12, "output_tokens": 9}},
//!   {"at": "act",  "expect": "rows", "tool_calls": [{"name": "count", "args": {"table": "orders"}}]},
//!   {"at": "act",  "error": {"status": 429, "retry_after_ms": 50}},
//!   {"at": "act",  "delay_ms": 100, "text": "There are 12 rows.", "cut_after": 10}
//! ]}
//! ```
//!
//! A recording of another model's replies also has `model`, `cost` and `reasoning`, which the reply then reports.
//!
//! `at` is the label of the request (in a graph the node's name). Replies with the same label are used in order. `expect` is
//! a text, or several, that the request must contain; a reply with `expect` waits for such a request, so concurrent calls
//! find their replies. A request without a reply is an error, and so is a reply that was never requested
//! ([`Script::finish`]).
//!
//! A program that is killed and resumed needs to know which replies were used: with a *ledger* (a second file) the script
//! records every request with its reply, answers the same request with the same reply again, and continues in order. The
//! ledger is also the list of every prompt.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::error::ModelError;
use crate::lock::lock;
use crate::message::{Answer, ToolCall};
use crate::model::{BoxFuture, Model};
use crate::name::{ModelName, Provider};
use crate::price::{Cost, Price, Prices};
use crate::reply::{Chunk, Finish, Reply, ReplyStream};
use crate::request::Request;
use crate::usage::Usage;

/// A model that plays replies from a file.
#[derive(Debug)]
pub struct Script {
    name: ModelName,
    replies: Vec<ScriptedReply>,
    context_size: Option<u64>,
    price: Option<Price>,
    progress: Mutex<ScriptProgress>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    replies: Vec<ScriptedReply>,
    #[serde(default)]
    context_size: Option<u64>,
    /// Lets a demo show what calls cost.
    #[serde(default)]
    price: Option<WrittenPrice>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPrice {
    /// Billionths of a dollar per token.
    input: u64,
    output: u64,
}

/// A scripted reply.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedReply {
    at: String,
    #[serde(default)]
    expect: Expect,
    #[serde(default)]
    text: String,
    /// An answer in JSON, for structured output; replaces `text`.
    #[serde(default)]
    json: Option<Json>,
    #[serde(default)]
    tool_calls: Vec<WrittenCall>,
    #[serde(default)]
    reasoning: Option<String>,
    /// Model that answered; the script itself if it says nothing.
    #[serde(default)]
    model: Option<ModelName>,
    /// By the price of the script if it says nothing.
    #[serde(default)]
    cost: Option<Cost>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    finish: Option<Finish>,
    #[serde(default)]
    delay_ms: u64,
    /// The stream breaks after this many characters.
    #[serde(default)]
    cut_after: Option<usize>,
    #[serde(default)]
    error: Option<WrittenError>,
    /// The call never returns.
    #[serde(default)]
    timeout: bool,
    /// The process aborts here, once.
    #[serde(default)]
    kill: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCall {
    #[serde(default)]
    id: Option<String>,
    name: String,
    #[serde(default)]
    args: Json,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenError {
    status: u16,
    #[serde(default)]
    retry_after_ms: Option<u64>,
    #[serde(default)]
    why: String,
}

/// What a request must contain.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(untagged)]
enum Expect {
    #[default]
    Anything,
    One(String),
    All(Vec<String>),
}

impl Expect {
    fn is_met(&self, said: &str) -> bool {
        match self {
            Self::Anything => true,
            Self::One(text) => said.contains(text),
            Self::All(texts) => texts.iter().all(|text| said.contains(text)),
        }
    }
}

/// Which replies were used so far.
#[derive(Debug, Default)]
struct ScriptProgress {
    used: Vec<bool>,
    /// Reply that each request got, by the request's digest. Only filled if the script repeats.
    before: BTreeMap<String, usize>,
    ledger: Option<File>,
    /// Whether a request that was answered gets the same reply again.
    repeats: bool,
    prompts: Vec<Request>,
}

/// A line of the ledger.
#[derive(Debug, Serialize, Deserialize)]
struct Noted {
    reply: usize,
    request: Request,
    /// Whether the same request gets this reply again. Errors, timeouts, cuts and aborts happen once.
    again: bool,
}

impl Script {
    /// Reads a script from a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        let name = ModelName::new(Provider::Script, path.display().to_string());
        let text = std::fs::read_to_string(path).map_err(|error| ModelError::BadFile {
            model: name.clone(),
            why: error.to_string(),
        })?;
        Self::read(name, &text)
    }

    /// Parses a script. `name` is used in errors and as the model's name.
    pub fn parse(name: &str, text: &str) -> Result<Self, ModelError> {
        Self::read(ModelName::new(Provider::Script, name), text)
    }

    fn read(name: ModelName, text: &str) -> Result<Self, ModelError> {
        let written: Written = serde_json::from_str(text).map_err(|error| ModelError::BadFile {
            model: name.clone(),
            why: format!("this is not a script: {error}"),
        })?;
        let progress = ScriptProgress {
            used: vec![false; written.replies.len()],
            ..ScriptProgress::default()
        };
        Ok(Self {
            name,
            replies: written.replies,
            context_size: written.context_size,
            price: written.price.map(|price| Price {
                input: price.input,
                cached: price.input,
                output: price.output,
            }),
            progress: Mutex::new(progress),
        })
    }

    /// Answers a request that it has answered before with the same reply, as a script with a ledger does: for tests that kill and
    /// resume an agent within one process.
    #[must_use]
    pub fn repeating(self) -> Self {
        self.progress().repeats = true;
        self
    }

    /// Records replies in a ledger, so a program can be killed and resumed. Reads the ledger if it exists.
    pub fn with_ledger(self, path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path: PathBuf = path.as_ref().to_owned();
        let bad = |why: String| ModelError::BadFile {
            model: self.name.clone(),
            why: format!("its ledger {}: {why}", path.display()),
        };
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&path);
        let file = file.map_err(|error| bad(error.to_string()))?;
        let mut progress = ScriptProgress {
            used: vec![false; self.replies.len()],
            ..ScriptProgress::default()
        };
        for line in BufReader::new(&file).lines() {
            let line = line.map_err(|error| bad(error.to_string()))?;
            // A process killed while writing leaves half a line; its reply was never used.
            let Ok(noted) = serde_json::from_str::<Noted>(&line) else {
                continue;
            };
            if let Some(used) = progress.used.get_mut(noted.reply) {
                *used = true;
            }
            if noted.again {
                progress.before.insert(digest(&noted.request), noted.reply);
            }
            progress.prompts.push(noted.request);
        }
        progress.ledger = Some(file);
        progress.repeats = true;
        Ok(Self {
            progress: Mutex::new(progress),
            ..self
        })
    }

    /// Returns every request so far, including those in the ledger.
    pub fn prompts(&self) -> Vec<Request> {
        self.progress().prompts.clone()
    }

    /// Returns an error if a reply was never requested.
    pub fn finish(&self) -> Result<(), ModelError> {
        let progress = self.progress();
        let unused = progress.used.iter().position(|used| !used);
        let Some(at) = unused else {
            return Ok(());
        };
        let left = progress.used.iter().filter(|used| !**used).count();
        Err(ModelError::Unexpected {
            model: self.name.clone(),
            label: self.replies[at].at.clone(),
            why: format!("reply {at} was never requested; {left} are unused"),
        })
    }

    fn progress(&self) -> MutexGuard<'_, ScriptProgress> {
        lock(&self.progress)
    }

    /// Picks the reply for a request and records it.
    fn pick(&self, request: &Request) -> Result<(usize, &ScriptedReply), ModelError> {
        let mut progress = self.progress();
        let said = said(request);
        let mut before = None;
        if progress.repeats {
            before = progress.before.get(&digest(request)).copied();
        }
        let fits = |(at, line): &(usize, &ScriptedReply)| {
            !progress.used[*at] && line.at == request.label && line.expect.is_met(&said)
        };
        let picked = match before {
            Some(at) => Some((at, &self.replies[at])),
            None => self.replies.iter().enumerate().find(fits),
        };
        let Some((at, line)) = picked else {
            return Err(self.unexpected(request, &progress));
        };
        progress.used[at] = true;
        progress.prompts.push(request.clone());
        let again = line.error.is_none() && !line.timeout && !line.kill && line.cut_after.is_none();
        if progress.repeats {
            let noted = Noted {
                reply: at,
                request: request.clone(),
                again,
            };
            self.note(&mut progress, &noted)?;
        }
        Ok((at, line))
    }

    fn note(&self, progress: &mut ScriptProgress, noted: &Noted) -> Result<(), ModelError> {
        let bad = |why: String| ModelError::BadFile {
            model: self.name.clone(),
            why: format!("its ledger: {why}"),
        };
        if let Some(ledger) = &mut progress.ledger {
            let mut line = serde_json::to_string(noted).map_err(|error| bad(error.to_string()))?;
            line.push('\n');
            ledger
                .write_all(line.as_bytes())
                .map_err(|error| bad(error.to_string()))?;
        }
        if noted.again {
            progress.before.insert(digest(&noted.request), noted.reply);
        }
        Ok(())
    }

    fn unexpected(&self, request: &Request, progress: &ScriptProgress) -> ModelError {
        let mut left = self
            .replies
            .iter()
            .enumerate()
            .filter(|(at, _)| !progress.used[*at]);
        let why = match left.find(|(_, line)| line.at == request.label) {
            Some((at, line)) => format!(
                "reply {at} expects {:?}, which is not in what was asked",
                line.expect
            ),
            None => format!(
                "all its replies for that are used; it was asked: {}",
                said(request).chars().take(200).collect::<String>()
            ),
        };
        ModelError::Unexpected {
            model: self.name.clone(),
            label: request.label.clone(),
            why,
        }
    }

    fn reply(&self, at: usize, line: &ScriptedReply) -> Reply {
        let text = match &line.json {
            Some(json) => json.to_string(),
            None => line.text.clone(),
        };
        let calls = line.tool_calls.iter().enumerate();
        let tool_calls: Vec<_> = calls
            .map(|(index, call)| ToolCall {
                id: call
                    .id
                    .clone()
                    .unwrap_or_else(|| format!("call_{at}_{index}")),
                name: call.name.clone(),
                args: match &call.args {
                    Json::Null => Json::Object(serde_json::Map::new()),
                    args => args.clone(),
                },
            })
            .collect();
        let finish = line.finish.clone().unwrap_or(match tool_calls.is_empty() {
            true => Finish::Stop,
            false => Finish::ToolCalls,
        });
        let cost = match (line.cost, &self.price, &line.usage) {
            (Some(cost), _, _) => cost,
            (None, Some(price), Some(usage)) => price.of(usage),
            (None, None, usage) => Prices::known().cost(&self.name, usage.as_ref()),
            (None, Some(_), None) => Cost::Unknown,
        };
        Reply {
            answer: Answer {
                content: text.into(),
                tool_calls,
                reasoning: line.reasoning.clone(),
            },
            usage: line.usage,
            finish,
            model: line.model.clone().unwrap_or_else(|| self.name.clone()),
            cost,
        }
    }

    fn failure(&self, error: &WrittenError) -> ModelError {
        let model = self.name.clone();
        let retry_after = error.retry_after_ms.map(Duration::from_millis);
        match error.status {
            429 => ModelError::RateLimited { model, retry_after },
            500..=599 => ModelError::Unavailable {
                model,
                status: error.status,
                why: error.why.clone(),
                retry_after,
            },
            status => ModelError::Refused {
                model,
                status,
                why: error.why.clone(),
            },
        }
    }
}

impl Model for Script {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        Box::pin(async move {
            let (at, line) = self.pick(request)?;
            if line.kill {
                // Like a power cut: nothing is closed, nothing is reported.
                std::process::abort();
            }
            if line.timeout {
                std::future::pending::<()>().await;
            }
            if line.delay_ms > 0 {
                tokio::time::sleep(Duration::from_millis(line.delay_ms)).await;
            }
            if let Some(error) = &line.error {
                return Err(self.failure(error));
            }
            let reply = self.reply(at, line);
            let text = reply.text();
            let pieces: Vec<String> = pieces(&text, line.cut_after);
            let mut chunks: Vec<_> = pieces
                .into_iter()
                .map(|piece| Ok(Chunk::Text(piece)))
                .collect();
            match line.cut_after {
                Some(_) => chunks.push(Err(ModelError::Cut)),
                None => {
                    let calls = (0..).zip(&reply.answer.tool_calls).map(|(index, call)| {
                        Ok(Chunk::ToolCall {
                            index,
                            id: call.id.clone(),
                            name: call.name.clone(),
                            args: call.args.to_string(),
                        })
                    });
                    chunks.extend(calls.collect::<Vec<_>>());
                    chunks.push(Ok(Chunk::End(Box::new(reply))));
                }
            }
            Ok(stream::iter(chunks).boxed() as ReplyStream)
        })
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        Box::pin(async move { Ok(self.context_size) })
    }
}

/// Splits into words with the space after them, as a model would stream them.
fn pieces(text: &str, cut_after: Option<usize>) -> Vec<String> {
    let text: String = match cut_after {
        Some(chars) => text.chars().take(chars).collect(),
        None => text.to_owned(),
    };
    text.split_inclusive(' ').map(str::to_owned).collect()
}

fn said(request: &Request) -> String {
    let texts: Vec<_> = request.messages.iter().map(crate::Message::text).collect();
    texts.join("\n")
}

/// The request itself as JSON: a script has only a few, and they must match exactly.
fn digest(request: &Request) -> String {
    serde_json::to_string(request).unwrap_or_default()
}
