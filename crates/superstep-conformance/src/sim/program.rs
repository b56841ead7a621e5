//! Programs as data: a random graph, what its nodes do, and what happens to its thread from outside.
//!
//! Everything forward is a walk towards the end; only bounded loops lead back, so every program ends.

use std::cell::Cell;

use superstep_core::SubgraphLife;
use superstep_core::run::Durability;

use super::entropy::Entropy;
use super::world::SLOTS;

/// One program: a graph and the life of one thread of it.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) root: GraphSpec,
    pub(super) durability: Durability,
    pub(super) step_limit: u64,
    pub(super) recoveries_max: u32,
    /// What is done with the thread, one after another, each when the one before has come to rest.
    pub(super) script: Vec<Deed>,
}

/// Something done to a thread from outside.
#[derive(Debug, Clone)]
pub(super) enum Deed {
    /// A run begins with an input.
    Input(u32),
    /// The state is changed in the name of a node, then the thread goes on.
    EditAs(usize),
    /// The state is changed as if by an input, then the thread goes on.
    EditInput,
    /// Whatever was planned is dropped.
    EditEnd,
    /// The thread goes on from where its root graph had made so many supersteps.
    Fork(u64),
}

#[derive(Debug, Clone)]
pub(super) struct GraphSpec {
    pub(super) name: String,
    pub(super) nodes: Vec<NodeSpec>,
    pub(super) start: Vec<usize>,
    pub(super) joins: Vec<JoinSpec>,
    pub(super) pause_before: Vec<usize>,
    pub(super) pause_after: Vec<usize>,
    pub(super) cancels_siblings: bool,
}

#[derive(Debug, Clone)]
pub(super) struct JoinSpec {
    pub(super) sources: Vec<usize>,
    pub(super) target: usize,
}

#[derive(Debug, Clone)]
pub(super) struct NodeSpec {
    /// Its name, which is part of no other graph's: the graph's path and a letter.
    pub(super) name: &'static str,
    /// Unique in the program.
    pub(super) who: String,
    pub(super) takes_job: bool,
    pub(super) body: BodySpec,
    pub(super) leads: Leads,
    pub(super) deferred: bool,
    pub(super) attempts_max: u32,
    pub(super) timeout: bool,
    pub(super) handler: Option<HandlerSpec>,
    /// Nothing of its graph is stored.
    pub(super) stateless: bool,
}

#[derive(Debug, Clone)]
pub(super) enum BodySpec {
    Work(Work),
    Sub {
        graph: Box<GraphSpec>,
        shared: bool,
        life: SubgraphLife,
    },
}

/// What a node does.
#[derive(Debug, Clone, Default)]
pub(super) struct Work {
    pub(super) effects: usize,
    /// Effects run at the same time.
    pub(super) overlapped: bool,
    pub(super) asks: usize,
    pub(super) order: Order,
    /// All questions at once.
    pub(super) asks_together: bool,
    pub(super) fails: Fails,
    /// It fails before it has done anything.
    pub(super) fails_early: bool,
    pub(super) slot: Option<usize>,
    /// Makes entries large, so that snapshots are taken.
    pub(super) padding: usize,
    pub(super) emits: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    EffectsThenAsks,
    AsksThenEffects,
    Mixed,
    MixedHeld,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Fails {
    #[default]
    Never,
    /// The first so many attempts.
    First(u32),
    Always,
}

#[derive(Debug, Clone)]
pub(super) struct HandlerSpec {
    pub(super) effect: bool,
    pub(super) asks: bool,
    /// Goes there instead of where the node leads.
    pub(super) goto: Option<Place>,
}

/// A node, or the end.
pub(super) type Place = Option<usize>;

#[derive(Debug, Clone)]
pub(super) enum Leads {
    Edges(Vec<Place>),
    Route {
        targets: Vec<Place>,
        back: Option<Back>,
    },
    Commands {
        targets: Vec<Place>,
        back: Option<Back>,
        sends: Option<Sends>,
    },
    /// Only joins.
    Join,
}

/// A loop: back to this node until the node that asks has run so often per input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Back {
    pub(super) to: usize,
    pub(super) times: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Sends {
    pub(super) to: usize,
    pub(super) count: u32,
}

const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
const WORKERS: [&str; 3] = ["w0", "w1", "w2"];
const DEPTH_MAX: usize = 3;

impl Program {
    /// The program of a seed.
    pub(super) fn random(seed: u64) -> Self {
        let mut maker = Maker {
            entropy: Entropy::new(seed, 1),
            slots: 0,
            nodes: 0,
        };
        let mut root = maker.graph("g".to_owned(), 0, false);
        let durability = match maker.entropy.below(20) {
            0..3 => Durability::Async,
            3 => Durability::Exit,
            _ => Durability::Sync,
        };
        calm_down(&mut root, false);
        let script = maker.script(&root, durability);
        Self {
            durability,
            // A stateless subgraph that is longer than the limit begins again with every resume.
            step_limit: if maker.entropy.chance(100) && !any_graph(&root, &has_stateless) {
                maker.entropy.within(2, 5) as u64
            } else {
                10_000
            },
            recoveries_max: if maker.entropy.chance(500) { 3 } else { 1_000 },
            script,
            root,
        }
    }

    /// How many breakpoints its graphs have.
    pub(super) fn breakpoints(&self) -> usize {
        let sum = Cell::new(0);
        any_graph(&self.root, &|graph| {
            sum.update(|sum| sum + graph.pause_before.len() + graph.pause_after.len());
            false
        });
        sum.get()
    }

    /// Whether which tasks of a failed superstep have run depends on the order in which they ended.
    pub(super) fn fails_by_order(&self) -> bool {
        any_graph(&self.root, &|graph| graph.cancels_siblings)
    }
}

/// A node that takes too long fails, and where somebody handles that the program would go another way than
/// when it is calm. So only nodes that nobody handles may take too long.
fn calm_down(graph: &mut GraphSpec, handled: bool) {
    for node in &mut graph.nodes {
        node.timeout &= !handled;
        if let BodySpec::Sub { graph, .. } = &mut node.body {
            calm_down(graph, handled || node.handler.is_some());
        }
    }
}

/// Whether this holds for a graph or one inside it.
pub(super) fn any_graph(graph: &GraphSpec, holds: &dyn Fn(&GraphSpec) -> bool) -> bool {
    holds(graph)
        || graph.nodes.iter().any(|node| match &node.body {
            BodySpec::Sub { graph, .. } => any_graph(graph, holds),
            BodySpec::Work(_) => false,
        })
}

fn has_stateless(graph: &GraphSpec) -> bool {
    graph.nodes.iter().any(|node| node.stateless)
}

struct Maker {
    entropy: Entropy,
    slots: usize,
    nodes: usize,
}

impl Maker {
    fn script(&mut self, root: &GraphSpec, durability: Durability) -> Vec<Deed> {
        let mut script = vec![Deed::Input(1)];
        if durability == Durability::Exit || !self.entropy.chance(400) {
            return script;
        }
        let by_edges: Vec<usize> = (0..root.nodes.len())
            .filter(|&n| {
                let node = &root.nodes[n];
                !node.takes_job && !matches!(node.leads, Leads::Commands { .. })
            })
            .collect();
        for number in 0..self.entropy.within(1, 2) {
            script.push(match self.entropy.below(6) {
                0 | 1 => Deed::Input(number as u32 + 2),
                2 if !by_edges.is_empty() => Deed::EditAs(*self.entropy.pick(&by_edges)),
                3 => Deed::EditInput,
                4 if durability == Durability::Sync => Deed::Fork(self.entropy.below(6) as u64),
                5 => Deed::EditEnd,
                _ => Deed::Input(number as u32 + 2),
            });
        }
        script
    }

    fn graph(&mut self, name: String, depth: usize, stateless: bool) -> GraphSpec {
        let pulled = match depth {
            0 => self.entropy.within(2, 8),
            _ => self.entropy.within(1, 3),
        };
        let workers = match depth {
            0 => self.entropy.below(3),
            _ => usize::from(self.entropy.chance(250)),
        };
        let mut graph = GraphSpec {
            nodes: Vec::new(),
            start: vec![0],
            joins: Vec::new(),
            pause_before: Vec::new(),
            pause_after: Vec::new(),
            cancels_siblings: self.entropy.chance(120),
            name,
        };
        for name in &NAMES[..pulled] {
            let node = self.node(&graph.name, name, false, depth, stateless);
            graph.nodes.push(node);
        }
        for name in &WORKERS[..workers] {
            let node = self.node(&graph.name, name, true, depth, stateless);
            graph.nodes.push(node);
        }
        self.connect(&mut graph, pulled);
        self.join(&mut graph, pulled);
        self.enter(&mut graph, pulled);
        if !stateless {
            for node in 0..pulled {
                if self.entropy.chance(25) {
                    graph.pause_before.push(node);
                }
                if self.entropy.chance(25) {
                    graph.pause_after.push(node);
                }
            }
        }
        graph
    }

    fn node(
        &mut self,
        graph: &str,
        name: &'static str,
        takes_job: bool,
        depth: usize,
        stateless: bool,
    ) -> NodeSpec {
        self.nodes += 1;
        let who = format!("{graph}.{name}");
        let is_sub = depth < DEPTH_MAX - 1 && self.nodes < 14 && self.entropy.chance(220);
        let body = if is_sub {
            self.sub(&who, takes_job, depth, stateless)
        } else {
            BodySpec::Work(self.work(takes_job, stateless))
        };
        let mut node = NodeSpec {
            name,
            who,
            takes_job,
            body,
            leads: Leads::Join,
            deferred: !takes_job && self.entropy.chance(80),
            attempts_max: 1,
            timeout: false,
            handler: None,
            stateless,
        };
        self.policies(&mut node);
        node
    }

    fn sub(&mut self, who: &str, takes_job: bool, depth: usize, stateless: bool) -> BodySpec {
        let shared = !takes_job && self.entropy.chance(400);
        let life = match self.entropy.below(6) {
            0 | 1 if !takes_job && !shared => SubgraphLife::Thread,
            2 => SubgraphLife::Stateless,
            _ => SubgraphLife::Invocation,
        };
        let stateless = stateless || life == SubgraphLife::Stateless;
        BodySpec::Sub {
            graph: Box::new(self.graph(who.replace('.', "-"), depth + 1, stateless)),
            shared,
            life,
        }
    }

    fn work(&mut self, takes_job: bool, stateless: bool) -> Work {
        let entropy = &mut self.entropy;
        let asks = if !stateless && entropy.chance(170) {
            entropy.within(1, 3)
        } else {
            0
        };
        let slot = (!takes_job && self.slots < SLOTS && entropy.chance(500)).then_some(self.slots);
        self.slots += usize::from(slot.is_some());
        Work {
            effects: *entropy.pick(&[0, 0, 1, 1, 2, 3]),
            overlapped: entropy.chance(350),
            asks,
            order: *entropy.pick(&[
                Order::EffectsThenAsks,
                Order::AsksThenEffects,
                Order::Mixed,
                Order::MixedHeld,
            ]),
            asks_together: entropy.chance(500),
            fails: Fails::Never,
            fails_early: entropy.chance(400),
            slot,
            padding: if entropy.chance(120) {
                entropy.within(500, 3000)
            } else {
                0
            },
            emits: entropy.chance(200),
        }
    }

    /// Failures, retries, handlers and time limits that go together.
    fn policies(&mut self, node: &mut NodeSpec) {
        let entropy = &mut self.entropy;
        let handler = HandlerSpec {
            effect: entropy.chance(400),
            asks: !node.stateless && entropy.chance(120),
            goto: None,
        };
        match &mut node.body {
            BodySpec::Sub { .. } => {
                if entropy.chance(150) {
                    node.handler = Some(handler);
                }
            }
            BodySpec::Work(work) => match entropy.below(100) {
                0..12 => {
                    let times = entropy.within(1, 2) as u32;
                    work.fails = Fails::First(times);
                    node.attempts_max = times + 1 + entropy.below(2) as u32;
                    node.timeout = entropy.chance(300);
                }
                12..20 => {
                    work.fails = Fails::Always;
                    node.attempts_max = entropy.within(1, 3) as u32;
                    node.handler = Some(handler);
                }
                20..22 => {
                    work.fails = Fails::Always;
                    node.attempts_max = entropy.within(1, 2) as u32;
                }
                22..32 => {
                    node.timeout = true;
                    node.attempts_max = entropy.within(1, 4) as u32;
                }
                _ => {}
            },
        }
    }

    /// Where every node leads: forward, or back in a bounded loop.
    fn connect(&mut self, graph: &mut GraphSpec, pulled: usize) {
        for index in 0..pulled {
            let mut targets = vec![self.forward(index, pulled)];
            if self.entropy.chance(350) {
                let second = self.forward(index, pulled);
                if !targets.contains(&second) {
                    targets.push(second);
                }
            }
            // Only who counts its own turns can bound a loop.
            let counts = !matches!(graph.nodes[index].body, BodySpec::Sub { shared: true, .. });
            let back = (self.entropy.chance(250) && counts).then(|| Back {
                to: self.entropy.below(index + 1),
                times: self.entropy.within(1, 3) as u32,
            });
            let is_work = matches!(graph.nodes[index].body, BodySpec::Work(_));
            graph.nodes[index].leads = match self.entropy.below(10) {
                0..3 if is_work => Leads::Commands {
                    targets,
                    back,
                    sends: None,
                },
                3..6 => Leads::Route { targets, back },
                _ => Leads::Edges(targets),
            };
            let goto = self.forward(index, pulled);
            if let Some(handler) = &mut graph.nodes[index].handler
                && self.entropy.chance(400)
            {
                handler.goto = Some(goto);
            }
        }
        let senders: Vec<usize> = (0..pulled)
            .filter(|&n| matches!(graph.nodes[n].body, BodySpec::Work(_)))
            .collect();
        if senders.is_empty() {
            graph.nodes.truncate(pulled);
        }
        for worker in pulled..graph.nodes.len() {
            let sender = *self.entropy.pick(&senders);
            let sends = Some(Sends {
                to: worker,
                count: self.entropy.within(1, 8) as u32,
            });
            let (targets, back) = match &graph.nodes[sender].leads {
                Leads::Commands { sends: Some(_), .. } => {
                    // One kind of worker per sender: this one is sent to by nobody.
                    graph.nodes.truncate(worker);
                    break;
                }
                Leads::Edges(targets) => (targets.clone(), None),
                Leads::Route { targets, back } | Leads::Commands { targets, back, .. } => {
                    (targets.clone(), *back)
                }
                Leads::Join => (vec![None], None),
            };
            graph.nodes[sender].leads = Leads::Commands {
                targets,
                back,
                sends,
            };
            let next = self.forward(sender, pulled);
            graph.nodes[worker].leads = Leads::Edges(vec![next]);
        }
    }

    fn forward(&mut self, from: usize, pulled: usize) -> Place {
        let left = pulled - from - 1;
        match self.entropy.below(left + 1) {
            0 => None,
            step => Some(from + step),
        }
    }

    /// Some nodes lead to a join, and to nothing else.
    fn join(&mut self, graph: &mut GraphSpec, pulled: usize) {
        if pulled < 3 || !self.entropy.chance(400) {
            return;
        }
        let target = self.entropy.within(2, pulled - 1);
        let mut sources: Vec<usize> = (0..target)
            .filter(|&n| !matches!(graph.nodes[n].leads, Leads::Commands { .. }))
            .collect();
        while sources.len() > 3 {
            sources.remove(self.entropy.below(sources.len()));
        }
        if sources.len() < 2 {
            return;
        }
        for &source in &sources {
            if self.entropy.chance(700) {
                graph.nodes[source].leads = Leads::Join;
            }
        }
        graph.joins.push(JoinSpec { sources, target });
    }

    /// Whatever nothing leads to is where the graph begins.
    fn enter(&mut self, graph: &mut GraphSpec, pulled: usize) {
        for index in 1..pulled {
            let mut reached = graph.joins.iter().any(|join| join.target == index);
            for (from, node) in graph.nodes.iter().enumerate() {
                // A loop is no way in.
                let counts = from < index || from >= pulled;
                let targets = match &node.leads {
                    Leads::Edges(targets)
                    | Leads::Route { targets, .. }
                    | Leads::Commands { targets, .. } => targets.as_slice(),
                    Leads::Join => &[],
                };
                reached |= counts && targets.contains(&Some(index));
            }
            if !reached || self.entropy.chance(100) {
                graph.start.push(index);
            }
        }
    }
}
