//! Recordings of real replies, played back in tests.
//!
//! The file has one line of JSON per call: the request and the chunks of the reply. A request must match exactly; one that is
//! not in the recording is an error that says what differs. Given secrets, and anything that looks like an API key, are never
//! written to the file.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::error::ModelError;
use crate::lock::lock;
use crate::model::{BoxFuture, Model};
use crate::name::{ModelName, Provider};
use crate::reply::{Chunk, ReplyStream};
use crate::request::Request;
use crate::secret::{SCRUBBED, Secret};

/// A model that plays back a recording. Each recorded call is played once.
#[derive(Debug)]
pub struct Cassette {
    name: ModelName,
    tracks: Vec<Track>,
    played: Mutex<Vec<bool>>,
}

/// A model wrapper that records every completed call. Failed calls are not recorded.
pub struct Recorder {
    inner: Arc<dyn Model>,
    tape: Arc<Tape>,
}

/// One recorded call.
#[derive(Debug, Serialize, Deserialize)]
struct Track {
    request: Request,
    chunks: Vec<Chunk>,
}

struct Tape {
    path: PathBuf,
    file: Mutex<File>,
    secrets: Vec<Secret>,
}

impl Cassette {
    /// Reads a recording.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        let name = ModelName::new(Provider::Cassette, path.display().to_string());
        let bad = |why: String| ModelError::BadFile {
            model: name.clone(),
            why,
        };
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        let mut tracks = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let track: Track = serde_json::from_str(line).map_err(|error| {
                bad(format!(
                    "line {} is not a recorded call: {error}",
                    number + 1
                ))
            })?;
            tracks.push(track);
        }
        let played = Mutex::new(vec![false; tracks.len()]);
        Ok(Self {
            name,
            tracks,
            played,
        })
    }

    /// Returns an error if a recorded call was not made.
    pub fn finish(&self) -> Result<(), ModelError> {
        let played = lock(&self.played);
        let Some(at) = played.iter().position(|played| !played) else {
            return Ok(());
        };
        Err(ModelError::Unexpected {
            model: self.name.clone(),
            label: self.tracks[at].request.label.clone(),
            why: format!("the call of line {} was never made", at + 1),
        })
    }

    fn find(&self, request: &Request) -> Result<&Track, ModelError> {
        let asked = scrubbed(request, &[]);
        let mut played = lock(&self.played);
        let same = |track: &Track| serde_json::to_value(&track.request).ok() == asked;
        let found = (0..self.tracks.len()).find(|at| !played[*at] && same(&self.tracks[*at]));
        let Some(at) = found else {
            return Err(ModelError::Unexpected {
                model: self.name.clone(),
                label: request.label.clone(),
                why: self.difference(request, &played),
            });
        };
        played[at] = true;
        Ok(&self.tracks[at])
    }

    /// Describes what differs from the next call to replay with this label.
    fn difference(&self, request: &Request, played: &[bool]) -> String {
        let next = (0..self.tracks.len())
            .find(|at| !played[*at] && self.tracks[*at].request.label == request.label);
        let Some(at) = next else {
            return "no call is left under that label; record it again".to_owned();
        };
        let (was, is) = (
            serde_json::to_string_pretty(&self.tracks[at].request).unwrap_or_default(),
            serde_json::to_string_pretty(request).unwrap_or_default(),
        );
        let line = was.lines().zip(is.lines()).find(|(was, is)| was != is);
        match line {
            Some((was, is)) => format!(
                "the request of line {} differs: recorded `{}`, now `{}`; record it again",
                at + 1,
                was.trim(),
                is.trim()
            ),
            None => format!(
                "the request of line {} has another length; record it again",
                at + 1
            ),
        }
    }
}

impl Model for Cassette {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        Box::pin(async move {
            let track = self.find(request)?;
            let chunks: Vec<_> = track.chunks.iter().cloned().map(Ok).collect();
            Ok(stream::iter(chunks).boxed() as ReplyStream)
        })
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        Box::pin(async move { Ok(None) })
    }
}

impl Recorder {
    /// Records the calls of this model, appending to the file. Removes these secrets from what it writes.
    pub fn new(
        inner: Arc<dyn Model>,
        path: impl AsRef<Path>,
        secrets: Vec<Secret>,
    ) -> Result<Self, ModelError> {
        let path = path.as_ref().to_owned();
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let file = file.map_err(|error| ModelError::BadFile {
            model: inner.name().clone(),
            why: format!("{}: {error}", path.display()),
        })?;
        let tape = Tape {
            path,
            file: Mutex::new(file),
            secrets,
        };
        Ok(Self {
            inner,
            tape: Arc::new(tape),
        })
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("inner", &self.inner)
            .field("path", &self.tape.path)
            .finish_non_exhaustive()
    }
}

impl Model for Recorder {
    fn name(&self) -> &ModelName {
        self.inner.name()
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        Box::pin(async move {
            let inner = self.inner.stream(request).await?;
            let listening = (inner, self.tape.clone(), request.clone(), Vec::new());
            let chunks = stream::unfold(
                listening,
                |(mut inner, tape, request, mut heard)| async move {
                    let mut chunk = inner.next().await?;
                    if let Ok(said) = &chunk {
                        heard.push(said.clone());
                    }
                    if let Ok(Chunk::End(reply)) = &chunk
                        && let Err(error) = tape.write(&request, std::mem::take(&mut heard))
                    {
                        // A recording that could not be written must not look like one.
                        chunk = Err(ModelError::BadFile {
                            model: reply.model.clone(),
                            why: format!("{}: {error}", tape.path.display()),
                        });
                    }
                    Some((chunk, (inner, tape, request, heard)))
                },
            );
            Ok(chunks.boxed() as ReplyStream)
        })
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        self.inner.context_size()
    }

    fn slots(&self) -> BoxFuture<'_, Option<usize>> {
        self.inner.slots()
    }
}

impl Tape {
    fn write(&self, request: &Request, mut chunks: Vec<Chunk>) -> std::io::Result<()> {
        join_arguments(&mut chunks);
        let track = Track {
            request: request.clone(),
            chunks,
        };
        let track = scrubbed(&track, &self.secrets);
        let mut line = serde_json::to_string(&track)?;
        line.push('\n');
        let mut file = lock(&self.file);
        file.write_all(line.as_bytes())
    }
}

/// Moves the arguments of each call into its last fragment: a secret that is split over fragments would not be found.
fn join_arguments(chunks: &mut [Chunk]) {
    // A repeated call of the model counts its tool calls from 0 again.
    for attempt in chunks.split_mut(|chunk| matches!(chunk, Chunk::Again { .. })) {
        let mut joined: BTreeMap<u32, String> = BTreeMap::new();
        for chunk in attempt.iter_mut() {
            if let Chunk::ToolCall { index, args, .. } = chunk {
                joined.entry(*index).or_default().push_str(args);
                args.clear();
            }
        }
        for chunk in attempt.iter_mut().rev() {
            if let Chunk::ToolCall { index, args, .. } = chunk
                && let Some(whole) = joined.remove(&*index)
            {
                *args = whole;
            }
        }
    }
}

/// Serializes a value and removes secrets from it.
fn scrubbed(what: &impl Serialize, secrets: &[Secret]) -> Option<Json> {
    let mut json = serde_json::to_value(what).ok()?;
    scrub(&mut json, secrets);
    Some(json)
}

fn scrub(json: &mut Json, secrets: &[Secret]) {
    match json {
        Json::String(text) => {
            for secret in secrets {
                *text = secret.scrub(text);
            }
            *text = without_keys(text);
        }
        Json::Array(items) => items.iter_mut().for_each(|item| scrub(item, secrets)),
        Json::Object(fields) => fields.values_mut().for_each(|field| scrub(field, secrets)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// Removes words that look like a provider's key, in case a key was not among the given secrets.
fn without_keys(text: &str) -> String {
    if !KEY_STARTS.iter().any(|start| text.contains(start)) {
        return text.to_owned();
    }
    let is_key = |word: &str| {
        KEY_STARTS.iter().any(|start| word.starts_with(start)) && word.len() >= KEY_BYTES_MIN
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut clean = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        clean.push_str(if is_key(word) { SCRUBBED } else { word });
        let next = after.chars().next();
        clean.extend(next);
        rest = next.map_or("", |c| &after[c.len_utf8()..]);
    }
    clean
}

/// Prefixes of providers' keys.
const KEY_STARTS: [&str; 6] = ["sk-", "AIza", "ghp_", "gsk_", "xoxb-", "lsv2_"];

/// Shorter words are not keys.
const KEY_BYTES_MIN: usize = 20;

#[test]
fn the_arguments_of_a_call_are_recorded_in_one_piece() {
    let fragment = |index: u32, args: &str| Chunk::ToolCall {
        index,
        id: format!("c{index}"),
        name: "look".to_owned(),
        args: args.to_owned(),
    };
    let again = Chunk::Again {
        why: "cut".to_owned(),
        attempt: 2,
        attempts_max: 4,
    };
    let mut chunks = [
        fragment(0, "{\"key\":\"hun"),
        again.clone(),
        fragment(0, "{\"key\":\"hun"),
        fragment(1, "{}"),
        fragment(0, "ter2\"}"),
    ];
    join_arguments(&mut chunks);
    let joined = [
        fragment(0, "{\"key\":\"hun"),
        again,
        fragment(0, ""),
        fragment(1, "{}"),
        fragment(0, "{\"key\":\"hunter2\"}"),
    ];
    assert_eq!(chunks, joined);
}
