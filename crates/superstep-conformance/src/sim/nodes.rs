//! Nodes that do what their data says, and the real graphs that are built of them.
//!
//! A body is a function of its input, the answers and the recorded steps. What varies is only how long
//! it takes: it yields as often as the dice say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use superstep_core::error::BuildError;
use superstep_core::label::Labeled;
use superstep_core::{
    Command, END, Failed, Goto, Graph, Interrupt, NodeCx, NodeError, RetryPolicy, START, SendTo,
    Siblings, Timeout, View,
};

use super::check::Check;
use super::entropy::{hash, stir};
use super::lab::{Lab, yield_once};
use super::outside;
use super::program::{
    Back, BodySpec, Fails, GraphSpec, HandlerSpec, Leads, NodeSpec, Order, Place, Work,
};
use super::world::{INPUTS, Job, Note, World, WorldUpdate};
use crate::poll::{join, join_all};

/// Failures that are meant begin with this.
pub(super) const BY_DESIGN: &str = "by design";

/// Builds the real graph of a program.
pub(super) fn build(spec: &GraphSpec, lab: &Arc<Lab>) -> Result<Graph<World>, BuildError> {
    let mut builder = Graph::<World>::builder(spec.name.replace('.', "-"))
        .inputs(["log", "total", "notes", "turns", "s0"]);
    for node in &spec.nodes {
        let own = Arc::new(node.clone());
        builder = match &node.body {
            BodySpec::Work(work) => {
                let around = Around {
                    lab: lab.clone(),
                    spec: own,
                    work: work.clone(),
                    names: spec.nodes.iter().map(|node| node.name).collect(),
                };
                if node.takes_job {
                    builder.map_node(&SendTo::<Job>::new(node.name), move |job: Job, cx| {
                        around.clone().run(Input::of_job(&job), cx)
                    })
                } else {
                    builder.node(node.name, move |view: View<World>, cx| {
                        let input = Input::of_state(&view, &around.spec);
                        drop(view);
                        around.clone().run(input, cx)
                    })
                }
            }
            BodySpec::Sub {
                graph,
                shared,
                life,
            } => {
                let child = build(graph, lab)?;
                let who = node.who.clone();
                let up = move |_: &World, child: &World| come_back(&who, child);
                let builder = match (shared, node.takes_job) {
                    (true, _) => builder.shared_subgraph(node.name, child),
                    (false, true) => builder.subgraph_worker(
                        &SendTo::<Job>::new(node.name),
                        child,
                        |job: Job| go_down(hash(format!("{job:?}").as_bytes())),
                        up,
                    ),
                    (false, false) => builder.subgraph(
                        node.name,
                        child,
                        |state: &World| go_down(state.mark()),
                        up,
                    ),
                };
                builder.life(node.name, *life)
            }
        };
        builder = policies(builder, node, spec, lab);
        builder = lead(builder, node, spec);
    }
    for &node in &spec.start {
        builder = builder.edge(START, spec.nodes[node].name);
    }
    for spec_join in &spec.joins {
        let sources: Vec<&str> = spec_join
            .sources
            .iter()
            .map(|&n| spec.nodes[n].name)
            .collect();
        builder = builder.join(&sources, spec.nodes[spec_join.target].name);
    }
    for &node in &spec.pause_before {
        builder = builder.pause_before(spec.nodes[node].name);
    }
    for &node in &spec.pause_after {
        builder = builder.pause_after(spec.nodes[node].name);
    }
    if spec.cancels_siblings {
        builder = builder.siblings(Siblings::Cancel);
    }
    builder.build()
}

type Builder = superstep_core::GraphBuilder<World>;

fn policies(mut builder: Builder, node: &NodeSpec, spec: &GraphSpec, lab: &Arc<Lab>) -> Builder {
    if node.deferred {
        builder = builder.defer(node.name);
    }
    if node.attempts_max > 1 {
        builder = builder.retry(node.name, RetryPolicy::attempts(node.attempts_max));
    }
    if node.timeout {
        builder = builder.timeout(node.name, Timeout::run(Duration::from_secs(1)));
    }
    if let Some(handler) = &node.handler {
        let targets: Vec<&str> = handler
            .goto
            .iter()
            .map(|place| name(spec, *place))
            .collect();
        let is_sub = matches!(node.body, BodySpec::Sub { .. });
        let goto = handler.goto.map(|place| name(spec, place).to_owned());
        let (lab, own, mut handler) = (lab.clone(), Arc::new(node.clone()), handler.clone());
        // A fan-out of subgraphs: nothing that its handlers are given tells one from the other, so their
        // questions could not be told apart here either.
        handler.asks &= !(is_sub && node.takes_job);
        builder = builder.on_error(node.name, &targets, move |failed: Failed<World>, cx| {
            // Tasks of a fan-out see the same state, and fail each in its own words. In a subgraph it may
            // depend on the order of events which node fails first.
            let words = if is_sub { "" } else { &failed.failure.message };
            let mark = failed.state.mark() ^ hash(words.as_bytes());
            handle(
                lab.clone(),
                own.clone(),
                handler.clone(),
                (mark, goto.clone()),
                cx,
            )
        });
    }
    builder
}

fn lead(mut builder: Builder, node: &NodeSpec, spec: &GraphSpec) -> Builder {
    match &node.leads {
        Leads::Edges(targets) => {
            for target in targets {
                builder = builder.edge(node.name, name(spec, *target));
            }
            builder
        }
        Leads::Route { targets, back } => {
            let (names, all) = places(spec, targets, *back);
            let back = back.map(|back| (spec.nodes[back.to].name, back.times));
            let who = node.who.clone();
            builder.route(node.name, &all, move |state: &World| {
                let choice = choose(&who, state.mark(), &names);
                match back {
                    Some((to, times)) if state.turns_of(&who) < times * state.turns_of(INPUTS) => {
                        Goto::<World>::node(to)
                    }
                    _ => Goto::node(choice),
                }
            })
        }
        Leads::Commands {
            targets,
            back,
            sends,
        } => {
            let (_, mut all) = places(spec, targets, *back);
            all.extend(sends.map(|sends| spec.nodes[sends.to].name));
            builder.commands(node.name, &all)
        }
        Leads::Join => builder,
    }
}

fn places(
    spec: &GraphSpec,
    targets: &[Place],
    back: Option<Back>,
) -> (Vec<&'static str>, Vec<&'static str>) {
    let names: Vec<_> = targets.iter().map(|place| name(spec, *place)).collect();
    let mut all = names.clone();
    all.extend(back.map(|back| spec.nodes[back.to].name));
    (names, all)
}

fn name(spec: &GraphSpec, place: Place) -> &'static str {
    place.map_or(END, |node| spec.nodes[node].name)
}

fn choose(who: &str, mark: u64, names: &[&'static str]) -> &'static str {
    let number = stir(mark ^ hash(who.as_bytes()));
    names[(number % names.len() as u64) as usize]
}

fn go_down(mark: u64) -> WorldUpdate {
    WorldUpdate::default()
        .turns(BTreeMap::from([(INPUTS.to_owned(), 1)]))
        .total((mark % 1_000_000_007) as i64)
        .log(format!("from above {mark:x}"))
}

fn come_back(who: &str, child: &World) -> WorldUpdate {
    let update = WorldUpdate::default();
    let update = match child.facts.last() {
        Some(fact) => update.facts(fact.clone()),
        None => update,
    };
    update
        .turns(BTreeMap::from([(who.to_owned(), 1)]))
        .total(child.total)
        .log(format!(
            "{who} came back with {} lines, {:x}",
            child.log.len(),
            hash(format!("{child:?}").as_bytes())
        ))
}

/// What a body's choices hang on.
#[derive(Debug, Clone, Copy)]
struct Input {
    mark: u64,
    turns: u32,
    inputs: u32,
}

impl Input {
    fn of_state(state: &World, spec: &NodeSpec) -> Self {
        Self {
            mark: state.mark(),
            turns: state.turns_of(&spec.who),
            inputs: state.turns_of(INPUTS),
        }
    }

    fn of_job(job: &Job) -> Self {
        Self {
            mark: hash(format!("{job:?}").as_bytes()),
            turns: 0,
            inputs: 0,
        }
    }
}

/// A node with everything it needs.
#[derive(Clone)]
struct Around {
    lab: Arc<Lab>,
    spec: Arc<NodeSpec>,
    work: Work,
    names: Vec<&'static str>,
}

/// What an effect gives: something to work with, and which execution it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Done {
    value: i64,
    execution: u64,
}

impl Around {
    async fn run(self, input: Input, cx: NodeCx) -> Result<Command<World>, NodeError> {
        self.check_attempt(&cx);
        self.lab.dawdle().await;
        if self.work.fails_early {
            self.fail(input, &cx)?;
        }
        let (effects, answers) = match self.work.order {
            Order::EffectsThenAsks => {
                let effects = self.effects(input, &cx).await?;
                (effects, self.ask(input, &cx).await?)
            }
            Order::AsksThenEffects => {
                let answers = self.ask(input, &cx).await?;
                (self.effects(input, &cx).await?, answers)
            }
            Order::Mixed => {
                let (answers, effects) = join(self.ask(input, &cx), self.effects(input, &cx)).await;
                (effects?, answers?)
            }
            Order::MixedHeld => {
                let effects = async {
                    let _hold = cx.hold();
                    self.lab.dawdle().await;
                    self.effects(input, &cx).await
                };
                let (answers, effects) = join(self.ask(input, &cx), effects).await;
                (effects?, answers?)
            }
        };
        self.lab.dawdle().await;
        if !self.work.fails_early {
            self.fail(input, &cx)?;
        }
        if self.work.emits {
            cx.emit(format!("{} at {:x}", self.spec.who, input.mark))?;
        }
        let fact = match self.lab.get().is_outside {
            true => outside::trace_and_label(&self.spec.who, input.mark, &cx)?,
            false => None,
        };
        Ok(self.command(input, &effects, &answers, fact))
    }

    fn check_attempt(&self, cx: &NodeCx) {
        if cx.attempt() > self.spec.attempts_max {
            let what = format!(
                "`{}` runs for the {}th time, {} are allowed",
                self.spec.who,
                cx.attempt(),
                self.spec.attempts_max
            );
            self.lab.get().fail(Check::Attempts, what);
        }
    }

    fn fail(&self, input: Input, cx: &NodeCx) -> Result<(), NodeError> {
        match self.work.fails {
            Fails::First(times) if cx.attempt() <= times => Err(NodeError::retryable("not yet")),
            Fails::Always => Err(NodeError::retryable(format!(
                "{BY_DESIGN}: `{}` at {:x}",
                self.spec.who, input.mark
            ))),
            Fails::Never | Fails::First(_) => Ok(()),
        }
    }

    async fn effects(&self, input: Input, cx: &NodeCx) -> Result<Vec<i64>, NodeError> {
        let one = |n: usize| effect(&self.lab, &self.spec, format!("e{n}"), input.mark, cx);
        if self.work.overlapped {
            let done = join_all((0..self.work.effects).map(one)).await;
            return done.into_iter().collect();
        }
        let mut values = Vec::new();
        for n in 0..self.work.effects {
            values.push(one(n).await?);
        }
        Ok(values)
    }

    async fn ask(&self, input: Input, cx: &NodeCx) -> Result<Vec<i64>, NodeError> {
        let one = |n: usize| ask(&self.lab, &self.spec, format!("q{n}"), input.mark, cx);
        if self.work.asks_together {
            let answers = join_all((0..self.work.asks).map(one)).await;
            return answers.into_iter().collect();
        }
        let mut values = Vec::new();
        for n in 0..self.work.asks {
            values.push(one(n).await?);
        }
        Ok(values)
    }

    fn command(
        &self,
        input: Input,
        effects: &[i64],
        answers: &[i64],
        fact: Option<Labeled<String>>,
    ) -> Command<World> {
        let who = &self.spec.who;
        let sum: i64 = effects.iter().chain(answers).sum();
        let mut update = WorldUpdate::default()
            .turns(BTreeMap::from([(who.clone(), 1)]))
            .total(sum + (input.mark % 97) as i64)
            .log(format!(
                "{who} {effects:?} {answers:?} {:x}{}",
                input.mark,
                "x".repeat(self.work.padding)
            ))
            .bells(who.clone());
        if input.mark.is_multiple_of(3) {
            update = update.notes(Note::new(
                format!("{who}-{}", input.mark % 5),
                format!("{sum} {:x}", input.mark),
            ));
        }
        if let Some(fact) = fact {
            update = update.facts(fact);
        }
        if let Some(slot) = self.work.slot {
            update = update.slot(slot, sum + i64::from(input.turns));
        }
        let command = Command::update(update);
        let Leads::Commands {
            targets,
            back,
            sends,
        } = &self.spec.leads
        else {
            return command;
        };
        match back {
            Some(back) if input.turns < back.times * input.inputs => {
                return command.goto(self.names[back.to]);
            }
            _ => {}
        }
        if let Some(sends) = sends {
            return (0..sends.count).fold(command, |command, number| {
                let job = Job {
                    from: who.clone(),
                    number,
                    salt: input.mark,
                };
                command.send(&SendTo::<Job>::new(self.names[sends.to]), job)
            });
        }
        let names: Vec<&'static str> = targets
            .iter()
            .map(|place| place.map_or(END, |node| self.names[node]))
            .collect();
        command.goto(choose(who, input.mark ^ sum.unsigned_abs(), &names))
    }
}

/// Something that happens once, in a recorded step.
async fn effect(
    lab: &Arc<Lab>,
    spec: &NodeSpec,
    name: String,
    mark: u64,
    cx: &NodeCx,
) -> Result<i64, NodeError> {
    let value = (stir(mark ^ hash(name.as_bytes())) % 1000) as i64;
    let done: Done = cx
        .step(&name, || async {
            lab.dawdle().await;
            let key = cx.effect_key(&name);
            let execution = lab.get().effect(cx.task(), &name, key, spec.stateless);
            lab.dawdle().await;
            Ok(Done { value, execution })
        })
        .await?;
    lab.get()
        .effect_used(cx.task(), &name, done.execution, spec.stateless);
    Ok(done.value)
}

/// A question, named so that the same one of another run of this program is known.
async fn ask(
    lab: &Arc<Lab>,
    spec: &NodeSpec,
    key: String,
    mark: u64,
    cx: &NodeCx,
) -> Result<i64, NodeError> {
    let generation = lab.get().current.map_or(0, |current| current.generation);
    let asked = format!("{}/{key}/{mark:x}/{generation}", spec.who);
    let answer: i64 = cx.interrupt(Interrupt::new(key, &asked)).await?;
    lab.get().answer_seen(&asked, answer);
    Ok(answer)
}

async fn handle(
    lab: Arc<Lab>,
    spec: Arc<NodeSpec>,
    handler: HandlerSpec,
    (mark, goto): (u64, Option<String>),
    cx: NodeCx,
) -> Result<Command<World>, NodeError> {
    let mut sum = 0;
    if handler.effect {
        sum += effect(&lab, &spec, "h0".to_owned(), mark, &cx).await?;
    }
    if handler.asks {
        sum += ask(&lab, &spec, "hq".to_owned(), mark, &cx).await?;
    }
    yield_once().await;
    let update = WorldUpdate::default()
        .turns(BTreeMap::from([(spec.who.clone(), 1)]))
        .total(sum)
        .log(format!("{} handled {sum} {mark:x}", spec.who));
    let command = Command::update(update);
    Ok(match goto {
        Some(place) => command.goto(place),
        None => command,
    })
}
