//! What a run asks of its thread: to start with an input, to resume, to answer interrupts, to end.

use std::sync::Arc;

use serde_json::{Map, Value as Json};
use superstep::checkpoint::format::GotoRecord;
use superstep::checkpoint::{Answer, AnswerBody, Head, InterruptRow, Status};
use superstep::driver::{ThreadEdit, ThreadRequest};
use superstep::graph::Definition;
use superstep::registry::RunRow;
use superstep::run::{Edit, EditNode, OpenInterrupt};
use superstep::{END, FramePath, InterruptId, NodeName, RunId, Seq, ThreadId, Timestamp, Value};

use crate::caller::Caller;
use crate::error::{ApiError, ApiResult};
use crate::start::body::{CommandBody, RunBody};
use crate::start::config::RunConfig;
use crate::{Shared, thread, wire};

/// Everything that decides what a run asks.
pub(super) struct RequestPlan<'a> {
    pub(super) app: &'a Shared,
    pub(super) caller: &'a Caller,
    pub(super) graph: &'a Arc<Definition>,
    pub(super) thread: &'a ThreadId,
    /// The run itself.
    pub(super) run: RunId,
    /// Head of the thread before the request.
    pub(super) head: Head,
    /// Whether the thread went back to an older checkpoint for this run.
    pub(super) is_forked: bool,
    pub(super) body: &'a RunBody,
    pub(super) config: &'a RunConfig,
}

/// What a run asks, and what was dropped from its input.
pub(super) struct PlannedRequest {
    pub(super) request: ThreadRequest,
    pub(super) dropped: Vec<String>,
}

impl RequestPlan<'_> {
    pub(super) async fn make(&self) -> ApiResult<PlannedRequest> {
        // A command goes before an input: Agent Chat UI sends `{}` as the input of every command.
        if let Some(command) = &self.body.command {
            if let Some(resume) = &command.resume {
                return self.answer(command, resume).await;
            }
            if let Some(goto) = command.targets() {
                return self.go_to(command, goto).await;
            }
            if let Some(update) = &command.update {
                let (write, dropped) = self.read_update(update)?;
                if self.has_finished().await? {
                    let request = write_and_end(write);
                    return Ok(PlannedRequest { request, dropped });
                }
                let request = ThreadRequest::ResumeWith {
                    answers: Vec::new(),
                    write: Some(write),
                    context: self.resume_context()?,
                };
                return Ok(PlannedRequest { request, dropped });
            }
        }
        match &self.body.input {
            None => self.resume().await,
            Some(Json::Object(fields)) if fields.is_empty() && self.has_stopped_midway() => {
                self.resume().await
            }
            Some(input) => {
                let read = wire::read_input(self.graph, input)?;
                let request = ThreadRequest::Start {
                    input: read.update,
                    context: self.config.context_value()?,
                    metadata: None,
                };
                Ok(PlannedRequest {
                    request,
                    dropped: read.dropped,
                })
            }
        }
    }

    /// Whether the thread has something to resume, as far as its head says.
    fn has_stopped_midway(&self) -> bool {
        let stopped = [
            Status::Paused,
            Status::Failed,
            Status::Cancelled,
            Status::StepLimit,
        ];
        self.is_forked || stopped.contains(&self.head.status)
    }

    /// Whether the thread has run, and nothing is left to run on it.
    async fn has_finished(&self) -> ApiResult<bool> {
        let is_idle = self.head.status == Status::Idle && self.head.seq > Seq(0);
        if !is_idle || self.is_forked {
            return Ok(false);
        }
        if !thread::active_runs(self.app, self.thread).await?.is_empty() {
            return Ok(false);
        }
        let runtime = &self.app.runtime;
        let state = runtime.state_of(self.graph, self.thread, None).await?;
        Ok(state.is_some_and(|state| state.next.is_empty()))
    }

    /// Refuses a thread on which nothing has run.
    async fn refuse_new(&self) -> ApiResult<()> {
        // With an active run before this one, there may be something to resume when its turn comes.
        let is_new = self.head.seq == Seq(0);
        if is_new && thread::active_runs(self.app, self.thread).await?.is_empty() {
            return Err(ApiError::bad_request(format!(
                "Thread {} has nothing to resume: nothing has run on it yet; send an `input`",
                self.thread.name()
            )));
        }
        Ok(())
    }

    async fn resume(&self) -> ApiResult<PlannedRequest> {
        self.refuse_new().await?;
        let request = match self.resume_context()? {
            None => ThreadRequest::Resume,
            context => ThreadRequest::ResumeWith {
                answers: Vec::new(),
                write: None,
                context,
            },
        };
        Ok(PlannedRequest {
            request,
            dropped: Vec::new(),
        })
    }

    async fn answer(&self, command: &CommandBody, resume: &Json) -> ApiResult<PlannedRequest> {
        if command.targets().is_some() {
            return Err(ApiError::invalid(
                "A command with both `resume` and `goto` is not supported",
            ));
        }
        let answers = self.answers(resume).await?;
        let (write, dropped) = match &command.update {
            Some(update) => {
                let (write, dropped) = self.read_update(update)?;
                (Some(write), dropped)
            }
            None => (None, Vec::new()),
        };
        let request = match (write, self.resume_context()?) {
            (None, None) => ThreadRequest::Answer(answers),
            (write, context) => ThreadRequest::ResumeWith {
                answers,
                write,
                context,
            },
        };
        Ok(PlannedRequest { request, dropped })
    }

    async fn answers(&self, resume: &Json) -> ApiResult<Vec<Answer>> {
        let ids = named_interrupts(resume);
        // Before the interrupts: an answer goes from a run into the row of its interrupt, and must be found in one of them.
        let accepted = match ids {
            Some(_) => thread::active_runs(self.app, self.thread).await?,
            None => Vec::new(),
        };
        let open = self.open_interrupts(resume).await?;
        if let Some(ids) = &ids {
            let is_open = |id: InterruptId| open.iter().any(|open| open.interrupt.id == id);
            let rows = match ids.iter().all(|(id, _)| is_open(*id)) {
                true => Vec::new(),
                false => self.app.runtime.all_interrupts_of(self.thread).await?,
            };
            refuse_answered(self.run, ids, &rows, &accepted)?;
        }
        if open.is_empty() {
            return Err(ApiError::bad_request(format!(
                "Thread {} has no open interrupt to resume",
                self.thread.name()
            )));
        }
        let pairs = matched(&open, resume, ids)?;
        let answers = pairs.into_iter().map(|(open, answer)| {
            let answer = wire::read_answer(&open.interrupt, answer)?;
            Ok(Answer {
                interrupt: open.interrupt.id,
                body: AnswerBody::Value(Value::plain(&answer)?),
                by: self.caller.principal.clone(),
                at: self.app.runtime.now(),
            })
        });
        answers.collect()
    }

    /// Returns the open interrupts in the order in which the client that sends this answer shows them.
    async fn open_interrupts(&self, resume: &Json) -> ApiResult<Vec<OpenInterrupt>> {
        let mut open = wire::open_interrupts(self.app, self.thread, None).await?;
        if open.len() < 2 {
            return Ok(open);
        }
        if resume.is_array() {
            // Agent Inbox, which answers with a list, shows the first entry of a thread's interrupts by task. Our JSON sorts tasks.
            wire::first_of_each_root_task(&mut open);
            return Ok(open);
        }
        let runtime = &self.app.runtime;
        let state = runtime.state_of(self.graph, self.thread, None).await?;
        let stop = state.and_then(|state| state.stop);
        wire::open_interrupts(self.app, self.thread, stop.as_ref()).await
    }

    /// Goes to nodes, which run next to what is planned, or to the end, where nothing that is planned runs.
    async fn go_to(&self, command: &CommandBody, goto: &Json) -> ApiResult<PlannedRequest> {
        let goto = read_targets(self.graph, goto)?;
        if goto.iter().any(|to| to.node.is_some()) {
            self.refuse_new().await?;
            let update = command.update.as_ref();
            let read = update.map(|update| self.read_update(update)).transpose()?;
            let (write, dropped) =
                read.map_or_else(Default::default, |(write, dropped)| (Some(write), dropped));
            let request = ThreadRequest::GoTo {
                goto,
                write,
                context: self.resume_context()?,
            };
            return Ok(PlannedRequest { request, dropped });
        }
        let (mut updates, mut dropped) = (Vec::new(), Vec::new());
        if let Some(update) = &command.update {
            let (update, unknown) = self.read_update(update)?;
            dropped = unknown;
            updates.push(Edit {
                node: EditNode::Last,
                update,
                goto: Vec::new(),
            });
        }
        updates.push(Edit {
            node: EditNode::End,
            update: Value::from_json_bytes(b"{}"),
            goto: Vec::new(),
        });
        let request = ThreadRequest::Edit(ThreadEdit {
            at: None,
            frame: FramePath::root(),
            updates,
        });
        Ok(PlannedRequest { request, dropped })
    }

    fn read_update(&self, update: &Json) -> ApiResult<(Value, Vec<String>)> {
        let read = wire::read_input(self.graph, &pairs_as_object(update))?;
        Ok((read.update, read.dropped))
    }

    /// Returns the context for a resumed run; `None` keeps the one that it has.
    fn resume_context(&self) -> ApiResult<Option<Value>> {
        match self.config.has_own_context {
            true => self.config.context_value(),
            false => Ok(None),
        }
    }
}

/// Returns the request that writes into the state of a finished thread, and runs nothing: no node follows a caller.
fn write_and_end(update: Value) -> ThreadRequest {
    let updates = vec![
        Edit {
            node: EditNode::Last,
            update,
            goto: Vec::new(),
        },
        Edit {
            node: EditNode::End,
            update: Value::from_json_bytes(b"{}"),
            goto: Vec::new(),
        },
    ];
    ThreadRequest::Edit(ThreadEdit {
        at: None,
        frame: FramePath::root(),
        updates,
    })
}

/// Checks what can be known of a request before anything is done for it: what it writes, and where it goes.
pub(super) fn check(graph: &Definition, body: &RunBody) -> ApiResult<()> {
    let command = body.command.as_ref();
    let update = command.and_then(|command| command.update.as_ref());
    if let Some(update) = update {
        wire::read_input(graph, &pairs_as_object(update))?;
    }
    let goto = command.and_then(CommandBody::targets);
    if let Some(goto) = goto {
        read_targets(graph, goto)?;
    }
    let resumes = command.is_some_and(|command| command.resume.is_some());
    match &body.input {
        Some(input) if update.is_none() && goto.is_none() && !resumes => {
            wire::read_input(graph, input).map(|_| ())
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns why a run is refused on a thread with active runs: one of them, or one before, answers what this one answers, or the
/// thread is busy.
pub(super) async fn busy_error(
    app: &Shared,
    thread: &ThreadId,
    run: RunId,
    body: &RunBody,
) -> ApiError {
    match refuse_late_answers(app, thread, run, body, true).await {
        Err(late) => late,
        Ok(()) => ApiError::busy(),
    }
}

/// Refuses answers to interrupts that have one, or get one from an active run unless those are about to be cancelled.
pub(super) async fn refuse_late_answers(
    app: &Shared,
    thread: &ThreadId,
    run: RunId,
    body: &RunBody,
    active_count: bool,
) -> ApiResult<()> {
    let resume = body
        .command
        .as_ref()
        .and_then(|command| command.resume.as_ref());
    let Some(ids) = resume.and_then(named_interrupts) else {
        return Ok(());
    };
    // Before the interrupts, as in [`RequestPlan::answers`].
    let accepted = match active_count {
        true => thread::active_runs(app, thread).await?,
        false => Vec::new(),
    };
    let rows = app.runtime.all_interrupts_of(thread).await?;
    refuse_answered(run, &ids, &rows, &accepted)
}

/// Refuses answers to interrupts that have one, or get one from a run that was accepted before.
///
/// Within one process, requests take turns. If several processes share a registry, two of them may accept an answer each: with the
/// strategy `reject` only if the run of the first one has ended before the second is stored. The store takes the first answer, and the
/// run of the other one ends with an error.
fn refuse_answered(
    run: RunId,
    ids: &[(InterruptId, &Json)],
    rows: &[InterruptRow],
    accepted: &[RunRow],
) -> ApiResult<()> {
    for (id, _) in ids {
        let row = rows.iter().find(|row| row.id == *id);
        if let Some(row) = row.filter(|row| row.answer.is_some()) {
            return Err(already_answered(*id, &row.answered_by, row.answered_at));
        }
        let answers = |other: &&RunRow| other.id != run && wire::answers_interrupt(other, *id);
        if let Some(first) = accepted.iter().find(answers) {
            return Err(already_answered(*id, &first.principal, Some(first.created)));
        }
    }
    Ok(())
}

/// The error for an answer that came after another one.
fn already_answered(id: InterruptId, by: &str, at: Option<Timestamp>) -> ApiError {
    let by = Some(by).filter(|by| !by.is_empty());
    let whose = by.map_or_else(String::new, |by| format!(" by `{by}`"));
    ApiError::conflict(format!("Interrupt {id} was already answered{whose}"))
        .with("answered_by", by)
        .with("answered_at", at.map(wire::time))
}

/// Returns the answers by the interrupts that they name; `None` if they are not named by ids.
fn named_interrupts(resume: &Json) -> Option<Vec<(InterruptId, &Json)>> {
    let fields = resume.as_object().filter(|fields| !fields.is_empty())?;
    let fields = fields.iter();
    fields
        .map(|(name, answer)| Some((name.parse().ok()?, answer)))
        .collect()
}

/// Decides which answer is for which interrupt.
fn matched<'a>(
    open: &'a [OpenInterrupt],
    resume: &'a Json,
    ids: Option<Vec<(InterruptId, &'a Json)>>,
) -> ApiResult<Vec<(&'a OpenInterrupt, &'a Json)>> {
    if let Some(ids) = ids {
        let named = ids.into_iter().map(|(id, answer)| {
            let found = open.iter().find(|open| open.interrupt.id == id);
            let found = found
                .ok_or_else(|| ApiError::bad_request(format!("Interrupt {id} is not open")))?;
            Ok((found, answer))
        });
        return named.collect();
    }
    // Several decisions are for as many interrupts, in order.
    let decisions = resume.get("decisions").and_then(Json::as_array);
    if let Some(decisions) = decisions.filter(|decisions| decisions.len() > 1)
        && decisions.len() <= open.len()
    {
        return Ok(open.iter().zip(decisions).collect());
    }
    let answered = answered_without_id(open, resume);
    Ok(answered.map(|open| (open, resume)).into_iter().collect())
}

/// Returns the interrupt that an answer without ids is for: the first about the action that the answer names, or else the first.
fn answered_without_id<'a>(open: &'a [OpenInterrupt], resume: &Json) -> Option<&'a OpenInterrupt> {
    let name = named_action(resume);
    let is_named = |open: &&OpenInterrupt| {
        let shown = wire::interrupt(&open.interrupt);
        name.is_some() && shown["value"]["action_request"]["action"].as_str() == name
    };
    open.iter().find(is_named).or_else(|| open.first())
}

/// Returns the name of the action that an answer accepts or edits, if it has one.
fn named_action(resume: &Json) -> Option<&str> {
    let decisions = resume.get("decisions").unwrap_or(resume);
    let [only] = decisions.as_array()?.as_slice() else {
        return None;
    };
    let accepted = only.get("args").and_then(|args| args.get("action"));
    let edited = only.get("edited_action").and_then(|to| to.get("name"));
    accepted.or(edited)?.as_str()
}

/// Reads where a command goes: a node, `{"node", "input"}`, or a list of them.
pub(crate) fn read_goto(goto: &Json) -> ApiResult<Vec<GotoRecord>> {
    let one = std::slice::from_ref(goto);
    let list = goto.as_array().map_or(one, Vec::as_slice);
    let read = |to: &Json| {
        let name = to.as_str().or_else(|| to.get("node")?.as_str());
        let name = name.ok_or_else(|| ApiError::invalid("`goto` names no node"))?;
        let input = to.get("input").filter(|input| !input.is_null());
        Ok(GotoRecord {
            node: match name {
                END => None,
                name => Some(NodeName::new(name)?),
            },
            payload: input.map(Value::plain).transpose()?,
        })
    };
    list.iter().map(read).collect()
}

/// Reads where a command goes in a graph, and refuses what callers cannot ask for.
fn read_targets(graph: &Definition, goto: &Json) -> ApiResult<Vec<GotoRecord>> {
    let goto = read_goto(goto)?;
    for to in &goto {
        if to.payload.is_some() {
            return Err(no_payload());
        }
        let node = to.node.as_ref();
        if let Some(node) = node.filter(|node| !graph.nodes().any(|found| found == *node)) {
            return Err(ApiError::invalid(format!(
                "`goto` names `{node}`, which is not a node of graph `{}`",
                graph.name()
            )));
        }
    }
    Ok(goto)
}

/// The error for a target with a payload: what a node gets besides the state is for the graph to decide, like the channels that are
/// no inputs.
pub(crate) fn no_payload() -> ApiError {
    ApiError::invalid("`goto` cannot carry an `input`: callers write the inputs of a graph only")
}

/// Returns an update that a client sends as a list of pairs as an object.
pub(crate) fn pairs_as_object(update: &Json) -> Json {
    let Json::Array(pairs) = update else {
        return update.clone();
    };
    let pair = |pair: &Json| {
        let [name, value] = pair.as_array()?.as_slice() else {
            return None;
        };
        Some((name.as_str()?.to_owned(), value.clone()))
    };
    match pairs.iter().map(pair).collect::<Option<Map<_, _>>>() {
        Some(fields) => Json::Object(fields),
        None => update.clone(),
    }
}

#[test]
fn an_empty_list_is_not_a_target() {
    let has_target = |goto: Json| {
        let command = CommandBody {
            goto: Some(goto),
            ..CommandBody::default()
        };
        command.targets().is_some()
    };
    assert!(!has_target(serde_json::json!([])));
    assert!(has_target(serde_json::json!(["__end__"])));
    assert!(has_target(serde_json::json!("__end__")));
}

#[test]
fn the_action_of_an_answer_is_found() {
    use serde_json::json;
    let action = json!({ "action": "pay", "args": {} });
    for (answer, name) in [
        (json!([{ "type": "accept", "args": action }]), Some("pay")),
        (json!([{ "type": "ignore", "args": null }]), None),
        (
            json!({ "decisions": [{ "type": "edit", "edited_action": { "name": "pay" } }] }),
            Some("pay"),
        ),
        (json!({ "decisions": [{ "type": "approve" }] }), None),
        (json!("yes"), None),
    ] {
        assert_eq!(named_action(&answer), name);
    }
}
