//! Execution of an approved call, by the class of the tool.
//!
//! Two records frame a call: that it *started*, and how it *ended*. If only the first one exists, a later execution cannot
//! know whether the call happened. The class decides what to do then: call again, look it up, or ask a person.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use superstep_core::{Labels, NodeError, Timestamp};
use superstep_llm::{Content, ToolStatus};

use crate::call::doubt::{self, Resolved};
use crate::call::{
    Asking, QuestionAnswer, RequestedCall, ToolCallResult, ToolQuestion, tool_question,
};
use crate::digest::{digest, hash};
use crate::spans::{CallTimes, live_tool_call, now, tool_call};
use crate::tool::{CallInfo, Class, ToolCommand, ToolCx, ToolOutput, within};

/// A call to be made, with its final arguments.
pub(super) struct Effect<'a> {
    wanted: &'a RequestedCall<'a>,
    args: Json,
    fingerprint: String,
    asking: &'a Asking<'a>,
    /// What a person answered to questions of the tool's server. Rebuilt from the interrupts by every execution.
    answers: Vec<QuestionAnswer>,
}

/// Recorded before a call that must not be repeated blindly.
#[derive(Debug, Serialize, Deserialize)]
struct Started {
    /// Nonce of the execution that started the call. If two executions of a task compete, only the one whose record is stored
    /// first may call.
    by: String,
    at: Timestamp,
    fingerprint: String,
}

/// Recorded after a call.
#[derive(Debug, Serialize, Deserialize)]
struct CallEnd {
    fingerprint: String,
    how: How,
    took: CallTimes,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum How {
    Gave {
        content: Content,
        labels: Labels,
        #[serde(default, skip_serializing_if = "ToolCommand::is_empty")]
        command: ToolCommand,
    },
    /// The call certainly had no effect.
    Failed { why: String, labels: Labels },
    /// It is unknown whether the call had its effect.
    Unknown { why: String },
    /// The tool's server asked a person something; the client cancelled the question, and the call ended.
    Asks {
        question: ToolQuestion,
        /// How the call ended: it gave something, or failed.
        ended: Box<How>,
    },
}

impl How {
    fn into_result(self) -> ToolCallResult {
        match self {
            Self::Gave {
                content,
                labels,
                command,
            } => ToolCallResult {
                content,
                status: ToolStatus::Success,
                labels,
                command,
            },
            Self::Failed { why, labels } => ToolCallResult {
                labels,
                ..ToolCallResult::error(why)
            },
            Self::Unknown { why } => ToolCallResult::error(why),
            Self::Asks { ended, .. } => ended.into_result(),
        }
    }
}

/// What is recorded of earlier executions of this call.
enum Before {
    /// No earlier execution has started it.
    Nothing,
    /// Another execution started it and did not record its end.
    Started { at: Timestamp },
}

impl<'a> Effect<'a> {
    pub(super) fn new(wanted: &'a RequestedCall<'a>, args: Json, asking: &'a Asking<'a>) -> Self {
        let fingerprint = digest(wanted.tool.name(), &args);
        Self {
            wanted,
            args,
            fingerprint,
            asking,
            answers: Vec::new(),
        }
    }

    /// Makes the call, or asks a person until its outcome is known.
    pub(super) async fn happen(mut self) -> Result<ToolCallResult, NodeError> {
        let mut asked = 0;
        loop {
            let before = self.start().await?;
            let ended = self.end(before).await?;
            self.tell(&ended)?;
            let why = match ended.how {
                known @ (How::Gave { .. } | How::Failed { .. }) => return Ok(known.into_result()),
                How::Asks { question, ended } => match self.ask(&question, &ended).await? {
                    Some(answer) => {
                        self.answers.push(answer);
                        continue;
                    }
                    None => return Ok(ended.into_result()),
                },
                How::Unknown { why } => why,
            };
            match doubt::ask(self.wanted, &self.args, &why, asked, self.asking).await? {
                Resolved::Result(came) => return Ok(came),
                Resolved::Call => asked += 1,
            }
        }
    }

    async fn ask(
        &self,
        question: &ToolQuestion,
        ended: &How,
    ) -> Result<Option<QuestionAnswer>, NodeError> {
        let result = match ended {
            How::Gave { content, .. } => Some(content.text()),
            _ => None,
        };
        let result = result.map(|text| text.chars().take(RESULT_CHARS_MAX).collect::<String>());
        tool_question::ask(
            self.wanted,
            &self.args,
            question,
            result.as_deref(),
            self.asking,
        )
        .await
    }

    /// Records that the call starts now, and returns what an earlier execution recorded.
    async fn start(&self) -> Result<Before, NodeError> {
        if !self.records_its_start() {
            return Ok(Before::Nothing);
        }
        let ours = nonce();
        let started = Started {
            by: ours.clone(),
            at: now(),
            fingerprint: self.fingerprint.clone(),
        };
        let name = format!("{}:started", self.wanted.id);
        let stored: Started = self.asking.cx.step(name, || async { Ok(started) }).await?;
        self.check(&stored.fingerprint)?;
        Ok(match stored.by == ours {
            true => Before::Nothing,
            false => Before::Started { at: stored.at },
        })
    }

    /// Returns whether a later execution must know that the call was started.
    fn records_its_start(&self) -> bool {
        match self.wanted.tool.class {
            Class::Read | Class::Idempotent => false,
            Class::Keyed => self.wanted.tool.key_lifetime.is_some(),
            Class::Reconcilable | Class::Unsafe => true,
        }
    }

    async fn end(&self, before: Before) -> Result<CallEnd, NodeError> {
        let name = format!("{}:ended", self.wanted.id);
        let act = || async {
            let since = self.begins(&before);
            let act = self.act(before);
            let how = live_tool_call(self.wanted.tool, self.wanted.id, act).await;
            Ok(CallEnd {
                fingerprint: self.fingerprint.clone(),
                how,
                took: CallTimes::since(since),
            })
        };
        let ended: CallEnd = self.asking.cx.step(name, act).await?;
        self.check(&ended.fingerprint)?;
        Ok(ended)
    }

    /// Returns when the call began: an unsafe call is not repeated, so it began when it was first started.
    fn begins(&self, before: &Before) -> Timestamp {
        match (self.wanted.tool.class, before) {
            (Class::Unsafe, Before::Started { at }) => *at,
            _ => now(),
        }
    }

    /// Emits the call into the log. Includes the error text only if it carries no labels.
    fn tell(&self, ended: &CallEnd) -> Result<(), NodeError> {
        let (why, labels) = match &ended.how {
            How::Gave { .. } => (None, &Labels::NONE),
            How::Failed { why, labels } => (Some(why), labels),
            How::Unknown { why } => (Some(why), &Labels::NONE),
            How::Asks { question, .. } => (Some(&question.message), &Labels::NONE),
        };
        let tool = self.wanted.tool;
        let labels = self.wanted.labels.clone().join(labels).join(&tool.output);
        let error = why.map(|why| match labels.is_empty() {
            true => why.clone(),
            false => format!("it failed; what it said is labeled {labels}"),
        });
        let call = tool_call(tool, self.wanted.id, ended.took, error);
        self.asking.cx.emit(call)
    }

    /// Refuses different arguments under the same key: the receiver may already have seen the others.
    fn check(&self, stored: &str) -> Result<(), NodeError> {
        match stored == self.fingerprint {
            true => Ok(()),
            false => Err(NodeError::fatal(format!(
                "call `{}` of `{}` was begun with other arguments than it has now; a hook or the tool changed under a waiting thread",
                self.wanted.id,
                self.wanted.tool.name()
            ))),
        }
    }

    async fn act(&self, before: Before) -> How {
        let tool = self.wanted.tool;
        match (tool.class, before) {
            (Class::Read | Class::Idempotent, _) | (Class::Keyed, Before::Nothing) => {
                self.call_freely().await
            }
            (Class::Keyed, Before::Started { at }) => match tool.key_lifetime {
                Some(lifetime) if now().0.saturating_sub(at.0) >= millis(lifetime) => How::Unknown {
                    why: "it may have been called so long ago that the receiver no longer knows its key".to_owned(),
                },
                _ => self.call_freely().await,
            },
            (Class::Reconcilable, Before::Nothing) => self.call_and_look(1).await,
            (Class::Reconcilable, Before::Started { .. }) => self.look_and_call(1).await,
            (Class::Unsafe, Before::Nothing) => self.call_once(1).await,
            (Class::Unsafe, Before::Started { .. }) => How::Unknown {
                why: "it was started, and the process ended before its answer was stored".to_owned(),
            },
        }
    }

    /// Calls until the outcome is known, or the attempts are used up.
    async fn call_freely(&self) -> How {
        let mut attempt = 1;
        loop {
            match self.call_once(attempt).await {
                How::Unknown { why } if attempt >= self.wanted.tool.tries_max => {
                    return self.given_up(why);
                }
                How::Unknown { .. } => self.wait(attempt).await,
                known => return known,
            }
            attempt += 1;
        }
    }

    /// A failed read needs no person: it certainly had no effect.
    fn given_up(&self, why: String) -> How {
        match self.wanted.tool.class {
            Class::Read => How::Failed {
                why,
                labels: Labels::NONE,
            },
            _ => How::Unknown { why },
        }
    }

    async fn call_and_look(&self, attempt: u32) -> How {
        match self.call_once(attempt).await {
            How::Unknown { why } if attempt >= self.wanted.tool.tries_max => How::Unknown { why },
            How::Unknown { .. } => {
                self.wait(attempt).await;
                Box::pin(self.look_and_call(attempt + 1)).await
            }
            known => known,
        }
    }

    async fn look_and_call(&self, attempt: u32) -> How {
        let Some(lookup) = &self.wanted.tool.lookup else {
            return How::Unknown {
                why: "there is nothing to look it up with".to_owned(),
            };
        };
        let cx = self.tool_cx(attempt);
        let looked = within(
            self.wanted.tool.timeout,
            lookup(self.args.clone(), cx.clone()),
        )
        .await;
        match looked {
            Ok(Some(output)) => gave(output, &cx),
            Ok(None) => self.call_and_look(attempt).await,
            Err(error) => How::Unknown {
                why: format!("it could not be looked up: {error}"),
            },
        }
    }

    async fn call_once(&self, attempt: u32) -> How {
        let cx = self.tool_cx(attempt);
        let tool = self.wanted.tool;
        let call = (tool.call)(self.args.clone(), cx.clone());
        let limit = tool.timeout.filter(|_| !tool.times_itself);
        let ended = match within(limit, call).await {
            Ok(output) => gave(output, &cx),
            // A question does not matter now: the class decides what to do about a call that may have happened.
            Err(error) if error.may_have_happened => return How::Unknown { why: error.why },
            Err(error) => How::Failed {
                why: error.why,
                labels: cx.given(),
            },
        };
        match cx.question() {
            Some(question) => How::Asks {
                question,
                ended: Box::new(ended),
            },
            None => ended,
        }
    }

    async fn wait(&self, attempt: u32) {
        let factor = 2_u32.saturating_pow(attempt.saturating_sub(1));
        let wait = self.wanted.tool.wait.saturating_mul(factor);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    fn tool_cx(&self, attempt: u32) -> ToolCx {
        let limit = self.wanted.tool.timeout;
        ToolCx::new(CallInfo {
            node: self.asking.cx.clone(),
            call_id: self.wanted.id.to_owned(),
            // The id comes from a model or a provider. Hashing it first makes sure that no id can produce the key of another
            // call.
            idempotency_key: self.asking.cx.effect_key(&hash(&["tool", self.wanted.id])),
            fingerprint: self.fingerprint.clone(),
            attempt,
            deadline: limit.map(|limit| Timestamp(now().0.saturating_add(millis(limit)))),
            timeout: limit,
            labels: self.wanted.labels.clone(),
            answers: self.answers.clone(),
        })
    }
}

fn gave(output: ToolOutput, cx: &ToolCx) -> How {
    How::Gave {
        content: output.content,
        labels: cx.given(),
        command: output.command,
    }
}

/// Returns a value unique to this execution. It only decides which execution was first, so it may be random.
fn nonce() -> String {
    let part = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", part(), part())
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// How much of a result the interrupt for a question shows.
const RESULT_CHARS_MAX: usize = 2_000;
