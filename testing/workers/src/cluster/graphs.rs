//! The smaller graphs: one that asks again and again, one that goes wide, and one that exists in two versions.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use harness::prng::mix;
use superstep::error::BuildError;
use superstep::prelude::*;

use super::store::Mutant;
use crate::ledger::{Ledger, Report};

/// What was asked and done.
#[derive(Clone, Debug, Default, PartialEq, State)]
pub(crate) struct Talk {
    /// How many questions there are to be.
    pub(crate) rounds: u64,
    #[state(append)]
    pub(crate) answers: Vec<u64>,
    #[state(append)]
    pub(crate) acted_on: Vec<u64>,
}

/// Asks, does what was answered, and asks again.
pub(crate) fn talk(ledger: &Arc<Ledger>) -> Result<Graph<Talk>, BuildError> {
    let ledger = ledger.clone();
    Graph::builder("talk")
        .node("ask", ask)
        .node("act", move |talk, cx| act(ledger.clone(), talk, cx))
        .edge(START, "ask")
        .edge("ask", "act")
        .commands("act", &["ask", END])
        .build()
}

async fn ask(talk: View<Talk>, cx: NodeCx) -> Result<TalkUpdate, NodeError> {
    let key = format!("round {}", talk.answers.len());
    let answer: u64 = cx.interrupt(Interrupt::new(key, "which one?")).await?;
    Ok(TalkUpdate::default().answers(answer))
}

async fn act(
    ledger: Arc<Ledger>,
    talk: View<Talk>,
    cx: NodeCx,
) -> Result<Command<Talk>, NodeError> {
    let answer = talk.answers.last().copied().unwrap_or(u64::MAX);
    let key = format!("round {}={answer}", talk.acted_on.len());
    let acted_on = effect(&ledger, &cx, "act", &key, answer).await?;
    let next = match (talk.answers.len() as u64) < talk.rounds {
        true => "ask",
        false => END,
    };
    Ok(Command::update(TalkUpdate::default().acted_on(acted_on)).goto(next))
}

/// What a wide superstep leaves behind.
#[derive(Clone, Debug, Default, PartialEq, State)]
pub(crate) struct Wide {
    pub(crate) tasks: u32,
    #[state(append)]
    pub(crate) squares: Vec<u64>,
    #[state(append)]
    pub(crate) joined: Vec<u64>,
}

const PART: SendTo<u32> = SendTo::new("part");

/// Sends to many, and adds up what they found.
pub(crate) fn wide(ledger: &Arc<Ledger>) -> Result<Graph<Wide>, BuildError> {
    let (part, join) = (ledger.clone(), ledger.clone());
    Graph::builder("wide")
        .node("plan", async |wide: View<Wide>, _: NodeCx| {
            let command = Command::update(WideUpdate::default());
            Ok::<_, NodeError>((0..wide.tasks).fold(command, |command, n| command.send(&PART, n)))
        })
        .map_node(&PART, move |n, cx| square(part.clone(), n, cx))
        .node("join", move |wide, cx| join_all(join.clone(), wide, cx))
        .edge(START, "plan")
        .commands("plan", &["part"])
        .edge("part", "join")
        .edge("join", END)
        .build()
}

async fn square(ledger: Arc<Ledger>, n: u32, cx: NodeCx) -> Result<WideUpdate, NodeError> {
    let square = u64::from(n) * u64::from(n);
    // So long that a wide superstep can be caught in the middle.
    tokio::time::sleep(Duration::from_millis(5 + mix(7, &n.to_string()) % 40)).await;
    let square = effect(&ledger, &cx, "square", &format!("part {n}"), square).await?;
    Ok(WideUpdate::default().squares(square))
}

async fn join_all(
    ledger: Arc<Ledger>,
    wide: View<Wide>,
    cx: NodeCx,
) -> Result<WideUpdate, NodeError> {
    let sum = wide.squares.iter().sum();
    let sum = effect(&ledger, &cx, "join", "join", sum).await?;
    Ok(WideUpdate::default().joined(sum))
}

/// Which version of a program a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Old,
    New,
}

impl FromStr for Version {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "old" => Ok(Self::Old),
            "new" => Ok(Self::New),
            unknown => Err(format!("there is no version `{unknown}`: use old or new")),
        }
    }
}

/// What a thread of two versions went through.
#[derive(Clone, Debug, Default, PartialEq, State)]
pub(crate) struct Trip {
    /// Whether it goes by the node that only one of the versions has.
    pub(crate) by_side_way: bool,
    #[state(append)]
    pub(crate) seen: Vec<String>,
}

/// Asks in a node that both versions have, and then, if it is to, in one that only the old one has. The new version has a
/// further node at the end.
pub(crate) fn trip(
    ledger: &Arc<Ledger>,
    version: Version,
    mutant: Mutant,
) -> Result<Graph<Trip>, BuildError> {
    let node = |name: &'static str| {
        let ledger = ledger.clone();
        move |_: View<Trip>, cx: NodeCx| stop(ledger.clone(), name, cx)
    };
    let shared = Graph::builder("trip")
        .node("begin", async |trip: View<Trip>, _: NodeCx| {
            let to = match trip.by_side_way {
                true => SIDE,
                false => "ask",
            };
            Ok::<_, NodeError>(Command::to(to))
        })
        .node("ask", node("ask"))
        .edge(START, "begin");
    match version {
        Version::Old => shared
            .node(SIDE, node(SIDE))
            .commands("begin", &["ask", SIDE])
            .edge("ask", END)
            .edge(SIDE, END)
            .build(),
        Version::New if mutant == Mutant::NameReused => shared
            .node(SIDE, node("another"))
            .node("extra", node("extra"))
            .commands("begin", &["ask", SIDE])
            .edge("ask", "extra")
            .edge(SIDE, "extra")
            .edge("extra", END)
            .build(),
        Version::New => shared
            .node("extra", node("extra"))
            .commands("begin", &["ask"])
            .edge("ask", "extra")
            .edge("extra", END)
            .build(),
    }
}

const SIDE: &str = "side";

/// A node of a trip: asks, unless it is the last one, and has an effect.
async fn stop(
    ledger: Arc<Ledger>,
    name: &'static str,
    cx: NodeCx,
) -> Result<TripUpdate, NodeError> {
    if name != "extra" {
        let _: u64 = cx.interrupt(Interrupt::new("further", "go on?")).await?;
    }
    let seen = effect(&ledger, &cx, "seen", name, name.to_owned()).await?;
    Ok(TripUpdate::default().seen(seen))
}

/// Something that must happen, and not again once it is acknowledged.
async fn effect<T: serde::Serialize + serde::de::DeserializeOwned>(
    ledger: &Ledger,
    cx: &NodeCx,
    step: &str,
    key: &str,
    value: T,
) -> Result<T, NodeError> {
    let report = |phase| Report {
        thread: cx.thread().name(),
        phase,
        key,
        detail: cx.attempt().into(),
    };
    let value = cx
        .step(step, || async {
            ledger.report(report("start")).await;
            Ok::<_, NodeError>(value)
        })
        .await?;
    ledger.report(report("acked")).await;
    Ok(value)
}
