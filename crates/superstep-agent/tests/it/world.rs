//! A world around agents that die: a store, a model that never says the same twice, and a receiver of effects that counts
//! what reaches it and forgets nothing.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::json;
use superstep::checkpoint::{Checkpointer, Status};
use superstep::{Outcome, RunResult, Runtime, Thread};
use superstep_agent::{Agent, AgentState, Tool, ToolCx, ToolError, tool};
use superstep_llm::{
    Answer, BoxFuture, Chunk, Cost, Finish, Message, Model, ModelError, ModelName, Provider, Reply,
    ReplyStream, Request, ToolCall,
};

use crate::kit::{Note, request};
use crate::mortal::{Fate, Mortal};

/// What outlives every process.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) store: Arc<dyn Checkpointer>,
    pub(crate) receiver: Arc<Receiver>,
    pub(crate) asked: Arc<AtomicU64>,
    pub(crate) mutant: Option<Mutant>,
}

/// A way in which the runtime, or a tool, could be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// The key is another one at each call.
    RandomKey,
    /// That a call was started is not recorded.
    NoStart,
    /// The lookup never finds anything.
    BlindLookup,
}

/// Somebody outside who is told to do things.
#[derive(Debug, Default)]
pub(crate) struct Receiver(Mutex<Effects>);

#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// What happened: tool, key, note.
    pub(crate) happened: Vec<(String, String, String)>,
    /// A value that is put, and how often it changed.
    pub(crate) put: Option<String>,
    pub(crate) puts: u64,
    /// How often each tool's call reached it.
    pub(crate) calls: BTreeMap<String, u64>,
}

impl Receiver {
    pub(crate) fn effects(&self) -> MutexGuard<'_, Effects> {
        self.0.lock().unwrap()
    }

    pub(crate) fn count(&self, tool: &str) -> usize {
        let effects = self.effects();
        effects
            .happened
            .iter()
            .filter(|(name, ..)| name == tool)
            .count()
    }

    fn take(&self, tool: &str, key: &str, note: &str, drops_known_keys: bool) {
        let mut effects = self.effects();
        *effects.calls.entry(tool.to_owned()).or_default() += 1;
        let known = effects
            .happened
            .iter()
            .any(|(name, known, _)| name == tool && known == key);
        if !(drops_known_keys && known) {
            effects
                .happened
                .push((tool.to_owned(), key.to_owned(), note.to_owned()));
        }
    }

    fn put(&self, note: &str) {
        let mut effects = self.effects();
        if effects.put.as_deref() != Some(note) {
            effects.put = Some(note.to_owned());
            effects.puts += 1;
        }
    }

    pub(crate) fn knows(&self, tool: &str, key: &str) -> bool {
        let effects = self.effects();
        effects
            .happened
            .iter()
            .any(|(name, known, _)| name == tool && known == key)
    }
}

/// What stands between a process and the receiver.
#[derive(Clone)]
pub(crate) struct Line {
    world: World,
    fate: Arc<Fate>,
    /// What is lost: for the n-th delivery of a tool, whether it arrives and whether its answer does.
    pub(crate) losses: Arc<dyn Fn(u64) -> Loss + Send + Sync>,
    sent: Arc<AtomicU64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    Nothing,
    /// It never arrives, and nobody is told.
    Request,
    /// It arrives, and its answer is lost.
    Answer,
    /// It is refused, for certain.
    Refused,
}

impl Line {
    pub(crate) fn new(world: &World, fate: &Arc<Fate>) -> Self {
        Self {
            world: world.clone(),
            fate: fate.clone(),
            losses: Arc::new(|_| Loss::Nothing),
            sent: Arc::default(),
        }
    }

    fn key(&self, cx: &ToolCx) -> String {
        match self.world.mutant {
            Some(Mutant::RandomKey) => RandomState::new().build_hasher().finish().to_string(),
            _ => cx.idempotency_key().to_owned(),
        }
    }

    async fn send(&self, deliver: impl FnOnce(&Receiver)) -> Result<(), ToolError> {
        let loss = (self.losses)(self.sent.fetch_add(1, Ordering::SeqCst));
        self.fate.point().await;
        match loss {
            Loss::Refused => return Err(ToolError::failed("the receiver said no")),
            Loss::Request => return Err(ToolError::unknown("nothing came back")),
            Loss::Nothing | Loss::Answer => deliver(&self.world.receiver),
        }
        self.fate.point().await;
        match loss {
            Loss::Answer => Err(ToolError::unknown("nothing came back")),
            _ => Ok(()),
        }
    }
}

/// A tool of each class, all of which tell the receiver.
pub(crate) fn tools(line: &Line) -> Vec<Tool> {
    let to = || line.clone();
    let (look, put, pay, post, find, send) = (to(), to(), to(), to(), to(), to());
    let no_wait = |tool: Tool| tool.tries(3, Duration::ZERO);
    vec![
        no_wait(tool("look", "Looks.", move |_: Note, _| {
            let line = look.clone();
            async move {
                line.send(|_| ()).await?;
                Ok("seen")
            }
        }))
        .read(),
        no_wait(tool("put", "Puts.", move |note: Note, _| {
            let line = put.clone();
            async move {
                line.send(|receiver| receiver.put(&note.note)).await?;
                Ok("put")
            }
        }))
        .idempotent(),
        no_wait(tool("pay", "Pays.", move |note: Note, cx: ToolCx| {
            let line = pay.clone();
            async move {
                let key = line.key(&cx);
                line.send(|receiver| receiver.take("pay", &key, &note.note, true))
                    .await?;
                Ok("paid")
            }
        }))
        .keyed(),
        no_wait(tool("post", "Posts.", move |note: Note, cx: ToolCx| {
            let line = post.clone();
            async move {
                let key = cx.idempotency_key().to_owned();
                line.send(|receiver| receiver.take("post", &key, &note.note, false))
                    .await?;
                Ok("posted")
            }
        }))
        .reconcilable(move |_: Note, cx: ToolCx| {
            let line = find.clone();
            async move {
                line.fate.point().await;
                let blind = line.world.mutant == Some(Mutant::BlindLookup);
                let found = !blind && line.world.receiver.knows("post", cx.idempotency_key());
                Ok(found.then_some("posted"))
            }
        }),
        tool("send", "Sends.", move |note: Note, cx: ToolCx| {
            let line = send.clone();
            async move {
                let key = cx.idempotency_key().to_owned();
                line.send(|receiver| receiver.take("send", &key, &note.note, false))
                    .await?;
                Ok("sent")
            }
        }),
    ]
}

/// What the tools give when all goes well, in the order of the calls.
pub(crate) const RESULTS: [(&str, &str); 5] = [
    ("look", "seen"),
    ("put", "put"),
    ("pay", "paid"),
    ("post", "posted"),
    ("send", "sent"),
];

/// First wants all of these tools, with a note that is another one each time it is asked; then says what they gave.
#[derive(Debug)]
pub(crate) struct Resampler {
    pub(crate) wants: Vec<String>,
    pub(crate) asked: Arc<AtomicU64>,
    pub(crate) fate: Arc<Fate>,
    pub(crate) name: ModelName,
}

impl Resampler {
    pub(crate) fn new(world: &World, fate: &Arc<Fate>, wants: &[&str]) -> Self {
        Self {
            wants: wants.iter().map(|name| (*name).to_owned()).collect(),
            asked: world.asked.clone(),
            fate: fate.clone(),
            name: ModelName::new(Provider::Script, "resampler"),
        }
    }

    fn answer(&self, request: &Request, sample: u64) -> Answer {
        let results: Vec<_> = request
            .messages
            .iter()
            .filter(|message| matches!(message, Message::Tool(_)))
            .map(Message::text)
            .collect();
        if !results.is_empty() {
            return Answer {
                content: format!("done: {}", results.join(", ")).into(),
                ..Answer::default()
            };
        }
        let calls = self.wants.iter().map(|name| ToolCall {
            id: format!("c_{name}"),
            name: name.clone(),
            args: json!({ "note": format!("sample {sample}") }),
        });
        Answer {
            tool_calls: calls.collect(),
            ..Answer::default()
        }
    }
}

impl Model for Resampler {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        Box::pin(async move {
            self.fate.point().await;
            let sample = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
            let answer = self.answer(request, sample);
            self.fate.point().await;
            let reply = Reply {
                answer,
                usage: None,
                finish: Finish::Stop,
                model: self.name.clone(),
                cost: Cost::Unknown,
            };
            Ok(stream::iter([Ok(Chunk::End(Box::new(reply)))]).boxed() as ReplyStream)
        })
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        Box::pin(async { Ok(None) })
    }
}

/// A process with the agent in it.
pub(crate) fn process(
    world: &World,
    fate: &Arc<Fate>,
    line: &Line,
    wants: &[&str],
) -> Thread<AgentState> {
    let model = Arc::new(Resampler::new(world, fate, wants));
    let graph = Agent::builder(model).tools(tools(line)).build().unwrap();
    let store = Mortal {
        inner: world.store.clone(),
        fate: fate.clone(),
        forgets: match world.mutant {
            Some(Mutant::NoStart) => Some(":started"),
            _ => None,
        },
    };
    Runtime::new(store).thread(&graph, "t").unwrap()
}

/// Lives until the run has finished, answering every question by looking at the receiver. Gives the state, and how many
/// questions there were.
pub(crate) async fn finish(world: &World, thread: &Thread<AgentState>) -> (AgentState, u32) {
    let mut asked = 0;
    let loaded = world.store.load(thread.id()).await.unwrap();
    let status = loaded.map(|loaded| loaded.head.status);
    if status == Some(Status::Idle) {
        let state = thread.state().await.unwrap().unwrap();
        return (state.values.decode().unwrap(), asked);
    }
    let mut stopped: RunResult<AgentState> = thread
        .start_or_recover(AgentState::ask("go"))
        .await
        .unwrap();
    loop {
        let question = match &stopped.outcome {
            Outcome::Finished => return (stopped.state, asked),
            Outcome::Paused(questions) => questions[0].clone(),
            other => panic!("{other:?}"),
        };
        asked += 1;
        let told = request(&question);
        assert_eq!(question.kind, "outcome_unknown", "{told}");
        let tool = told["action_request"]["action"]
            .as_str()
            .unwrap()
            .to_owned();
        let result = RESULTS.iter().find(|(name, _)| *name == tool).unwrap().1;
        let answer = match world.receiver.count(&tool) {
            0 => json!({ "type": "call" }),
            _ => json!({ "type": "happened", "result": result }),
        };
        stopped = thread.answer(question.id, answer).await.unwrap().unwrap();
    }
}
