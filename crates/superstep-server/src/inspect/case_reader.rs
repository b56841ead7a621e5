//! Reads a test case from the log of a thread: the inputs and answers of a branch, the replies of its models, and where it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::checkpoint::AnswerBody;
use superstep::checkpoint::format::{
    Change, EntryKind, FrameAdvanced, FrameOpened, StateWritten, Stop, TaskWrite,
};
use superstep::error::CheckpointError;
use superstep::graph::Definition;
use superstep::run::{OpenInterrupt, open_interrupts};
use superstep::trace::CallSpan;
use superstep::{HistoryEntry, InterruptId, Seq, ThreadId, Value};

use super::calls;
use super::log_branch::{entries_after, entries_before};
use crate::Shared;
use crate::error::ApiResult;
use crate::history::Checkpoint;
use crate::start::USER;
use crate::test_case::{CaseAct, CaseAnswer, CaseEnd, CaseInterrupt, CaseScript, TestCase};
use crate::wire::CheckpointId;

/// Returns the branch that ends at a checkpoint as a test case.
pub(crate) async fn test_case(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    end: &Checkpoint,
) -> ApiResult<TestCase> {
    let log = app.runtime.log_of(thread).await?;
    let mut branch = entries_before(&log, end.id.seq);
    branch.extend(entries_up_to_next(&log, end).iter().map(|past| past.seq));
    let rows = app.runtime.all_interrupts_of(thread).await?;
    let interrupts = open_interrupts(rows).map_err(CheckpointError::from)?;
    let mut reader = CaseReader::new(&interrupts);
    let mut compared = 0;
    for past in log.iter().filter(|past| branch.contains(&past.seq)) {
        if past.entry.kind == EntryKind::Fork {
            // Each reads two states of the thread, and callers may fork as often as they like.
            if compared >= FORKS_MAX {
                reader.lose(FORKS);
            } else if is_edited(app, graph, thread, past).await? {
                reader.lose(EDITED);
            }
            compared += 1;
        }
        reader.read(past);
    }
    let values = end.state.values.decode()?;
    Ok(reader.into_case(graph, thread, end, values))
}

/// Returns what happened at a checkpoint before the next one was made: the run stopped there, inside of a subgraph, perhaps.
fn entries_up_to_next<'a>(log: &'a [HistoryEntry], end: &Checkpoint) -> Vec<&'a HistoryEntry> {
    // Before its input, nothing has happened.
    if end.id != CheckpointId::after(end.id.seq) {
        return Vec::new();
    }
    let mut after = entries_after(log, end.id.seq);
    if let Some(next) = after.iter().position(|past| is_checkpoint(past)) {
        // The answers with which the run left the checkpoint belong to the next one.
        let resumed = after
            .iter()
            .position(|past| past.entry.kind == EntryKind::Resume);
        after.truncate(resumed.unwrap_or(next).min(next));
    }
    after
}

fn is_checkpoint(past: &HistoryEntry) -> bool {
    let advances = |change: &Change| matches!(change, Change::FrameAdvanced(advanced) if advanced.frame.is_root());
    match past.entry.kind {
        EntryKind::Input | EntryKind::Update | EntryKind::Fork => true,
        EntryKind::Step | EntryKind::Attempt | EntryKind::Stop | EntryKind::Resume => {
            past.entry.changes.iter().any(advances)
        }
    }
}

/// Whether the state was changed together with a fork: then the change is in no entry.
async fn is_edited(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    fork: &HistoryEntry,
) -> ApiResult<bool> {
    let runtime = &app.runtime;
    let after = runtime.state_of(graph, thread, Some(fork.seq)).await?;
    if fork.entry.parent == Seq(0) {
        return Ok(after.is_some_and(|after| after.edits.is_some_and(|edits| edits > 0)));
    }
    let parent = Some(fork.entry.parent);
    let before = runtime.state_of(graph, thread, parent).await?;
    Ok(before.map(|before| before.values) != after.map(|after| after.values))
}

/// Reads the entries of a branch, oldest first.
struct CaseReader<'a> {
    interrupts: BTreeMap<InterruptId, &'a OpenInterrupt>,
    acts: Vec<CaseAct>,
    replies: Vec<Json>,
    models: Vec<String>,
    context: Option<Json>,
    waiting: Option<Waiting>,
    has_begun: bool,
    lost: Vec<String>,
}

/// The run stopped and waits for answers.
struct Waiting {
    asked: Vec<InterruptId>,
    /// Position of the act that it went on with; `None` as long as it waits.
    act: Option<usize>,
}

impl<'a> CaseReader<'a> {
    fn new(interrupts: &'a [OpenInterrupt]) -> Self {
        let by_id = interrupts.iter().map(|open| (open.interrupt.id, open));
        Self {
            interrupts: by_id.collect(),
            acts: Vec::new(),
            replies: Vec::new(),
            models: Vec::new(),
            context: None,
            waiting: None,
            has_begun: false,
            lost: Vec::new(),
        }
    }

    /// Notes what the case lacks, once.
    fn lose(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.lost.contains(&what) {
            self.lost.push(what);
        }
    }

    fn read(&mut self, past: &HistoryEntry) {
        let entry = &past.entry;
        if !self.has_begun && entry.parent != Seq(0) {
            self.lose(CUT);
        }
        self.has_begun = true;
        match entry.kind {
            // What waited there waits no longer: the thread begins again, or asks again.
            EntryKind::Input | EntryKind::Fork => self.settle(&[]),
            EntryKind::Update => {
                self.settle(&[]);
                self.lose(EDITED);
            }
            EntryKind::Step | EntryKind::Attempt | EntryKind::Stop | EntryKind::Resume => {
                self.resume();
            }
        }
        for change in &entry.changes {
            match change {
                Change::RunStarted(started) => self.context = context_of(started.context.as_ref()),
                Change::FrameOpened(opened) if entry.kind == EntryKind::Input => self.start(opened),
                Change::StateWritten(written) => self.write(written),
                Change::FrameAdvanced(advanced) if entry.kind != EntryKind::Update => {
                    self.advance(advanced);
                }
                Change::Replanned(_) => self.lose(SENT),
                Change::FrameOpened(_)
                | Change::FrameAdvanced(_)
                | Change::AttemptFailed(_)
                | Change::Forked(_)
                | Change::RunResumed(_) => {}
            }
        }
        match &entry.stop {
            None => {}
            Some(Stop::Paused { asked }) => {
                self.settle(asked);
                self.waiting = Some(Waiting {
                    asked: asked.clone(),
                    act: None,
                });
            }
            Some(_) => self.settle(&[]),
        }
    }

    /// The run starts with an input, or enters a subgraph, which is no act of a caller.
    fn start(&mut self, opened: &FrameOpened) {
        if !opened.frame.is_root() {
            return;
        }
        let Some(input) = decoded(opened.input.as_ref()) else {
            return;
        };
        self.acts.push(CaseAct {
            input: Some(input),
            context: self.context.clone(),
            ..CaseAct::default()
        });
    }

    /// The run continues after it waited. Which answers it had shows when it stops the next time.
    fn resume(&mut self) {
        let Some(waiting) = &mut self.waiting else {
            return;
        };
        if waiting.act.is_some() {
            return;
        }
        waiting.act = Some(self.acts.len());
        let asked = waiting.asked.iter();
        let asked = asked.filter_map(|id| self.interrupts.get(id).map(|open| shown(open)));
        let asked: Vec<_> = asked.collect();
        // A copy of a thread has none of the interrupts of its original.
        if asked.len() < waiting.asked.len() {
            self.lose(COPIED);
        }
        self.acts.push(CaseAct {
            asked,
            ..CaseAct::default()
        });
    }

    /// The run has continued with the answers to all interrupts that waited, except to those that still wait. If nothing happened
    /// since it waited, the branch does not need its answers.
    fn settle(&mut self, still: &[InterruptId]) {
        let Some(Waiting {
            asked,
            act: Some(act),
        }) = self.waiting.take()
        else {
            return;
        };
        let known = asked.iter().filter(|id| self.interrupts.contains_key(*id));
        let mut answers = Vec::new();
        let mut is_late = false;
        for (to, id) in known.enumerate().filter(|(_, id)| !still.contains(id)) {
            let answer = self
                .interrupts
                .get(id)
                .and_then(|open| open.row.answer.as_ref());
            match answer {
                Some(AnswerBody::Value(value)) => {
                    let value = value.decode().unwrap_or(Json::Null);
                    answers.push(CaseAnswer { to, value });
                }
                Some(AnswerBody::Expired) => is_late = true,
                None => {}
            }
        }
        if is_late {
            self.lose(EXPIRED);
        }
        let Some(found) = self.acts.get_mut(act) else {
            return;
        };
        found.answers = answers;
        if found.answers.is_empty() && found.write.is_none() {
            // It asked the same again.
            self.acts.remove(act);
        }
    }

    fn write(&mut self, written: &StateWritten) {
        if let Some(context) = context_of(written.context.as_ref()) {
            if without_model(Some(&context)) != without_model(self.context.as_ref()) {
                self.lose(CONTEXT);
            }
            self.context = Some(context);
        }
        let Some(update) = decoded(written.update.as_ref()) else {
            return;
        };
        let act = self.waiting.as_ref().and_then(|waiting| waiting.act);
        match act.and_then(|act| self.acts.get_mut(act)) {
            Some(act) => act.write = Some(update),
            None => self.lose(EDITED),
        }
    }

    fn advance(&mut self, advanced: &FrameAdvanced) {
        let mut labels: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        for write in advanced.writes.iter().filter(|write| !write.cached) {
            for label in self.reply(write) {
                labels.entry(label).or_default().insert(write.index);
            }
        }
        if labels.values().any(|tasks| tasks.len() > 1) {
            self.lose(PARALLEL);
        }
    }

    /// Adds the replies that a task got. Returns the labels of their requests.
    fn reply(&mut self, write: &TaskWrite) -> Vec<String> {
        let mut labels = Vec::new();
        let calls = write.events.iter();
        let calls = calls.filter_map(|event| event.decode::<CallSpan>().ok());
        for call in calls.filter(|call| call.span.as_str() == calls::MODEL) {
            let Some((model, reply)) = call.result.as_ref().and_then(scripted) else {
                let node = &write.node;
                self.lose(format!(
                    "A reply of the model to `{node}` is not in the log."
                ));
                continue;
            };
            labels.extend(reply["at"].as_str().map(str::to_owned));
            if !self.models.contains(&model) {
                self.models.push(model);
            }
            self.replies.push(reply);
        }
        labels
    }

    fn into_case(
        mut self,
        graph: &Definition,
        thread: &ThreadId,
        end: &Checkpoint,
        values: Json,
    ) -> TestCase {
        let open = match self.waiting.take() {
            Some(Waiting { asked, act: None }) => asked,
            waiting => {
                self.waiting = waiting;
                self.settle(&[]);
                Vec::new()
            }
        };
        if !end.state.next.is_empty() && open.is_empty() {
            self.lose(NOT_OVER);
        }
        let asked = open.iter();
        let asked = asked.filter_map(|id| self.interrupts.get(id).map(|open| shown(open)));
        TestCase {
            format: TestCase::FORMAT,
            about: ABOUT.to_owned(),
            graph_id: graph.name().to_owned(),
            thread_id: thread.name().to_owned(),
            checkpoint_id: end.id.to_uuid(thread),
            expected: CaseEnd {
                asked: asked.collect(),
                values,
            },
            acts: self.acts,
            models: self.models,
            script: CaseScript {
                replies: self.replies,
                context_size: None,
            },
            files: Vec::new(),
            not_recovered: self.lost,
        }
    }
}

fn shown(open: &OpenInterrupt) -> CaseInterrupt {
    let record = &open.interrupt;
    CaseInterrupt {
        node: record.node.to_string(),
        kind: record.kind.clone(),
        request: record.request.decode().unwrap_or(Json::Null),
    }
}

fn decoded(value: Option<&Value>) -> Option<Json> {
    value.and_then(|value| value.decode().ok())
}

/// Returns what a caller put into the context of a run.
fn context_of(stored: Option<&Value>) -> Option<Json> {
    let mut context: Json = decoded(stored)?;
    if let Some(fields) = context.as_object_mut() {
        fields.remove(USER);
    }
    Some(context)
}

/// Returns a context without the model: a case has the replies of all models.
fn without_model(context: Option<&Json>) -> Json {
    let mut context = context.cloned().unwrap_or_else(|| json!({}));
    if let Some(fields) = context.as_object_mut() {
        fields.remove("model");
    }
    context
}

/// Returns the model of a recorded call, and its reply as a line of a script.
fn scripted(result: &Json) -> Option<(String, Json)> {
    let model = result.get("model")?.as_str()?.to_owned();
    let reply = result.get("reply")?;
    let answer = reply.get("answer")?;
    let mut line = json!({ "at": result.get("label")? });
    let text = text_of(&answer["content"]);
    match serde_json::from_str::<Json>(&text) {
        // Only if the script writes the same text.
        Ok(json) if (json.is_object() || json.is_array()) && json.to_string().as_str() == text => {
            line["json"] = json;
        }
        _ => line["text"] = text.into(),
    }
    let calls = answer["tool_calls"].as_array();
    if let Some(calls) = calls.filter(|calls| !calls.is_empty()) {
        line["tool_calls"] = calls.as_slice().into();
    }
    let known = [
        ("reasoning", answer),
        ("usage", reply),
        ("finish", reply),
        ("model", reply),
        ("cost", reply),
    ];
    for (name, from) in known {
        if let Some(value) = from.get(name).filter(|value| !value.is_null()) {
            line[name] = value.clone();
        }
    }
    Some((model, line))
}

/// Returns the text of a message's content: one text, or a list of blocks.
fn text_of(content: &Json) -> String {
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| block["text"].as_str())
        .collect();
    match content.as_str() {
        Some(text) => text.to_owned(),
        None => texts.join("\n"),
    }
}

const ABOUT: &str = "A test case, made of a thread. `archie test FILE` plays the inputs and the answers again, with the replies in `script` \
     instead of a model, and compares where the thread ends.";
const CUT: &str =
    "The beginning of the thread was pruned, so the first inputs and replies are missing.";
const EDITED: &str = "The state was edited from outside a run; the case does not repeat that.";
const FORKS: &str = "The branch has more than 100 forks; whether the state was edited at the later ones is not known.";
const SENT: &str = "A caller sent the thread to other nodes; the case does not repeat that.";
const COPIED: &str =
    "The thread is a copy, and the answers that were given before the copy are in its original.";
const EXPIRED: &str = "An interrupt was not answered in time; the case does not repeat that.";
const CONTEXT: &str = "The context changed in the middle of a run; the case does not repeat that.";
const PARALLEL: &str = "Tasks that ran at the same time asked models under one label; the case gives the replies in the order of the tasks.";
const NOT_OVER: &str = "The run had not stopped at this checkpoint; the case ends where it stops.";
/// Number of forks of a branch whose states are compared.
const FORKS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn line(content: Json) -> Json {
        let reply = json!({
            "answer": { "content": content, "tool_calls": [] },
            "usage": { "input_tokens": 3, "output_tokens": 2, "cached_tokens": 0 },
            "finish": "stop", "model": "openai:small", "cost": { "nano_dollars": 9 },
        });
        let recorded = json!({ "label": "plan", "model": "openai:small", "reply": reply });
        scripted(&recorded).unwrap().1
    }

    #[test]
    fn a_reply_is_a_line_of_a_script_with_the_same_text() {
        let said = line(json!("Hello."));
        assert_eq!(
            (&said["at"], &said["text"]),
            (&json!("plan"), &json!("Hello."))
        );
        assert_eq!(said["cost"], json!({ "nano_dollars": 9 }));
        assert_eq!(line(json!(r#"{"a":1}"#))["json"], json!({ "a": 1 }));
        let spaced = r#"{ "a": 1 }"#;
        assert_eq!(
            line(json!(spaced))["text"],
            spaced,
            "a script writes no spaces"
        );
        let blocks = json!([{ "type": "text", "text": "one" }, { "type": "text", "text": "two" }]);
        assert_eq!(line(blocks)["text"], "one\ntwo");
        assert_eq!(line(json!("7"))["text"], "7");
    }

    #[test]
    fn what_is_not_a_recorded_reply_is_none() {
        for result in [json!({}), json!("x"), json!({ "label": "a", "model": "b" })] {
            assert_eq!(scripted(&result), None);
        }
    }
}
