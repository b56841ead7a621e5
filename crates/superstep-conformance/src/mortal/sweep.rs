//! The kill sweep: one trial for each point at which a program can be killed.

use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use crate::mortal::Fate;
use crate::{Prng, give_way};

/// Kills a program at every point, restarts it over the same store, and checks what came of it.
///
/// A *world* is what outlives the processes: the store, and whatever the program acts on, such as a ledger of payments. Each trial
/// gets a new one. A *life* is one process: it opens the store through [`Fate::checkpointer`], starts the work or resumes it, and
/// returns its end, for example the final state. The sweep
///
/// 1. lets one process live without a kill, and counts its points: two for each call of the store, one before and one after it,
///    and those that the program adds with [`Fate::point`] and [`Fate::around`];
/// 2. for each point, in a new world, kills a process there and lets another one live;
/// 3. compares the end of each trial with the end without a kill, and runs the check.
///
/// It stops at the first kill that the program does not survive. A kill drops the future of the life and aborts its tasks; what the
/// process has moved to other OS threads of its own goes on, which no process that was really killed does.
///
/// ```
/// use superstep_conformance::block_on;
/// use superstep_conformance::mortal::KillSweep;
///
/// let sweep = KillSweep::new(|| (), async |_world, fate| {
///     fate.point().await;
///     "done"
/// });
/// let report = block_on(sweep.run(async |_trial| {})).unwrap();
/// assert_eq!((report.points, report.kills), (1, 1));
/// ```
#[derive(Debug)]
pub struct KillSweep<N, L> {
    new_world: N,
    life: L,
    plan: Plan,
}

#[derive(Debug)]
enum Plan {
    Every,
    Only(Vec<u64>),
    Repeated { trials: u32, seed: u64 },
}

/// What the check of a [`KillSweep`] is given.
#[derive(Debug)]
pub struct Trial<'a, W, T> {
    /// What outlived the processes.
    pub world: &'a W,
    /// What the last process returned.
    pub end: &'a T,
    /// The kills, in order. Empty for the trial without one.
    pub kills: &'a [Kill],
}

/// A process was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kill {
    /// Point at which it was killed, counted from 1.
    pub point: u64,
    /// What it was about to do, or had just done.
    pub site: String,
}

/// What a [`KillSweep`] did.
#[derive(Debug, Clone)]
pub struct SweepReport<T> {
    /// How many points a process has that is not killed.
    pub points: u64,
    /// How many processes were killed.
    pub kills: u64,
    /// How it ended without a kill.
    pub calm: T,
}

/// The first kill that a program did not survive. `Debug` prints the same text as `Display`, so that `unwrap` shows it.
#[derive(Clone)]
#[non_exhaustive]
pub struct KillFailure {
    /// The kills before it, in order. Empty if it failed without one.
    pub kills: Vec<Kill>,
    /// How many points a process has that is not killed.
    pub points: u64,
    /// What went wrong.
    pub problem: KillProblem,
}

/// What went wrong after a kill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KillProblem {
    /// The program has no points, so nothing would be tested.
    NoPoints,
    /// The program ended before it came to a point of [`KillSweep::only`].
    NotReached,
    /// A process panicked, with this message.
    Panicked(String),
    /// The check panicked, with this message.
    Check(String),
    /// The end differs from the end without a kill.
    OtherEnd {
        /// End without a kill.
        calm: String,
        /// End after the kill.
        end: String,
    },
    /// Something of the killed process was not dropped.
    NotDropped,
}

impl<N, L> KillSweep<N, L> {
    /// Creates a sweep. `new_world` makes what outlives the processes of one trial, and `life` is one process.
    pub fn new<W, T>(new_world: N, life: L) -> Self
    where
        N: Fn() -> W,
        L: AsyncFn(&W, &Arc<Fate>) -> T,
    {
        Self {
            new_world,
            life,
            plan: Plan::Every,
        }
    }

    /// Runs one trial only, to repeat a failure: its first process is killed at the first of these points, the process after it at
    /// the second, and so on.
    #[must_use]
    pub fn only(mut self, points: impl IntoIterator<Item = u64>) -> Self {
        self.plan = Plan::Only(points.into_iter().collect());
        self
    }

    /// Kills up to three processes of each trial, at points drawn from the seed.
    #[must_use]
    pub fn repeated(mut self, trials: u32, seed: u64) -> Self {
        self.plan = Plan::Repeated { trials, seed };
        self
    }

    /// Runs the sweep. The check asserts what must hold in the end, and is also called for the trial without a kill.
    pub async fn run<W, T>(
        self,
        mut check: impl AsyncFnMut(&Trial<'_, W, T>),
    ) -> Result<SweepReport<T>, KillFailure>
    where
        N: Fn() -> W,
        L: AsyncFn(&W, &Arc<Fate>) -> T,
        T: PartialEq + fmt::Debug,
    {
        let mut points = 0;
        let fails = |kills: &[Kill], points, problem| KillFailure {
            kills: kills.to_vec(),
            points,
            problem,
        };
        let calm_world = (self.new_world)();
        let calm = last_life(&self.life, &calm_world, &mut points).await;
        let calm = calm.map_err(|problem| fails(&[], points, problem))?;
        let checked = checked(&mut check, &calm_world, &calm, &[]).await;
        checked.map_err(|problem| fails(&[], points, problem))?;
        if points == 0 {
            return Err(fails(&[], 0, KillProblem::NoPoints));
        }
        let mut killed = 0;
        for planned in self.plan.trials(points) {
            let (world, mut kills) = ((self.new_world)(), Vec::new());
            let tried = trial(&self.life, &world, &planned, &mut kills).await;
            let end = tried.map_err(|problem| fails(&kills, points, problem))?;
            if matches!(self.plan, Plan::Only(_)) && kills.len() < planned.len() {
                return Err(fails(&kills, points, KillProblem::NotReached));
            }
            if end != calm {
                let (calm, end) = (format!("{calm:?}"), format!("{end:?}"));
                return Err(fails(&kills, points, KillProblem::OtherEnd { calm, end }));
            }
            let checked = self::checked(&mut check, &world, &end, &kills).await;
            checked.map_err(|problem| fails(&kills, points, problem))?;
            killed += kills.len() as u64;
        }
        Ok(SweepReport {
            points,
            kills: killed,
            calm,
        })
    }
}

impl Plan {
    /// The points of the kills of each trial.
    fn trials(&self, points: u64) -> Vec<Vec<u64>> {
        match self {
            Plan::Every => (1..=points).map(|point| vec![point]).collect(),
            Plan::Only(points) => vec![points.clone()],
            Plan::Repeated { trials, seed } => {
                let mut prng = Prng::new(*seed);
                let mut below =
                    |end: u64| prng.below(usize::try_from(end).unwrap_or(usize::MAX)) as u64;
                let mut trial = || {
                    let kills = 1 + below(3);
                    (0..kills).map(|_| 1 + below(points)).collect()
                };
                (0..*trials).map(|_| trial()).collect()
            }
        }
    }
}

/// Processes that are killed at these points, and then one that is not.
async fn trial<W, T>(
    life: &impl AsyncFn(&W, &Arc<Fate>) -> T,
    world: &W,
    points: &[u64],
    kills: &mut Vec<Kill>,
) -> Result<T, KillProblem> {
    for point in points {
        let fate = Fate::at(*point);
        let lived = Box::pin(caught(fate.lives(life(world, &fate)))).await;
        let is_killed = lived.map_err(KillProblem::Panicked)?.is_none();
        // A process whose tasks take turns in another order may have fewer points, and end first.
        if is_killed {
            kills.push(Kill {
                point: *point,
                site: fate.site(),
            });
        }
        dropped(fate).await?;
    }
    last_life(life, world, &mut 0).await
}

async fn last_life<W, T>(
    life: &impl AsyncFn(&W, &Arc<Fate>) -> T,
    world: &W,
    points: &mut u64,
) -> Result<T, KillProblem> {
    let fate = Fate::never();
    let end = Box::pin(caught(life(world, &fate))).await;
    *points = fate.points();
    let end = end.map_err(KillProblem::Panicked)?;
    dropped(fate).await?;
    Ok(end)
}

/// Waits until nothing is left of a process. Its tasks are dropped when they would run next, and the last of them may close a
/// database, which first commits what was queued: nothing of a killed process commits when the next one is there.
async fn dropped(fate: Arc<Fate>) -> Result<(), KillProblem> {
    let begun = Instant::now();
    let mut turns = 0;
    // Its store knows its fate, too.
    while Arc::strong_count(&fate) > 1 {
        if begun.elapsed() > DROPPED_WITHIN {
            return Err(KillProblem::NotDropped);
        }
        turns += 1;
        if turns > QUICK_TURNS {
            // It waits for another OS thread.
            thread::sleep(Duration::from_millis(1));
        }
        give_way().await;
    }
    Ok(())
}

async fn checked<W, T>(
    check: &mut impl AsyncFnMut(&Trial<'_, W, T>),
    world: &W,
    end: &T,
    kills: &[Kill],
) -> Result<(), KillProblem> {
    let trial = Trial { world, end, kills };
    caught(check(&trial)).await.map_err(KillProblem::Check)
}

/// Runs a future; gives the message if it panics.
async fn caught<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        // The future is not polled again after a panic.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(message_of(&*panic))),
        }
    })
    .await
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}

impl fmt::Display for KillFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Kill { point, site }) in self.kills.iter().enumerate() {
            let again = if at == 0 { "killed" } else { "then killed" };
            write!(f, "{again} at point {point} of {} ({site}), ", self.points)?;
        }
        let next = if self.kills.is_empty() {
            "without a kill, the process"
        } else {
            "and the process after it"
        };
        match &self.problem {
            KillProblem::NoPoints => write!(
                f,
                "the program has no points at which it can be killed; open its store with `fate.checkpointer(store)`"
            )?,
            KillProblem::NotReached => write!(
                f,
                "the program ended before it came to a point of `.only(..)`; the points have moved, so run the whole sweep"
            )?,
            KillProblem::Panicked(message) => write!(f, "{next} panicked: {message}")?,
            KillProblem::Check(message) => {
                write!(f, "{next} ended, but the check failed: {message}")?
            }
            KillProblem::OtherEnd { calm, end } => write!(
                f,
                "{next} ended in another way\n  without a kill: {calm}\n  after the kill: {end}"
            )?,
            KillProblem::NotDropped => write!(
                f,
                "and {} seconds later something still holds its `Fate`; only the life may, and what lives as long as it",
                DROPPED_WITHIN.as_secs()
            )?,
        }
        if self.kills.is_empty() {
            return Ok(());
        }
        let points: Vec<_> = self.kills.iter().map(|kill| kill.point).collect();
        write!(f, "\nrepeat this trial alone with `.only({points:?})`")
    }
}

impl fmt::Debug for KillFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for KillFailure {}

/// How long something of a process may live after it.
const DROPPED_WITHIN: Duration = Duration::from_secs(30);
/// How often other tasks get a turn before the wait for them sleeps.
const QUICK_TURNS: u32 = 100;
