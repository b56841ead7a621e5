//! What one client of the server does, over and over: every way to start a run, to follow it, to answer it and to end it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value as Json;

use super::api::{Api, Submitted, Told, Weather};
use super::judge::{RequestLog, ThreadLog, parts_of};
use super::order::{Ask, Route, RunOrder, STEPS};
use harness::prng::{Prng, mix};

/// A client, and what it was told.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) api: Api,
    pub(super) threads: Vec<ThreadLog>,
    /// Marks of stateless runs that were accepted, and whose end the client has seen.
    pub(super) stateless: Vec<String>,
    prng: Prng,
    name: String,
    orders: u64,
    weather: Weather,
}

impl Load {
    /// Creates a client with a name that no other client of these trials has.
    pub(super) fn new(name: &str, seed: u64, ports: &[u16], weather: Weather) -> Self {
        Self {
            api: Api::new(ports, weather, PATIENCE).seeded(mix(!seed, name)),
            threads: Vec::new(),
            stateless: Vec::new(),
            prng: Prng::new(mix(seed, name)),
            name: name.to_owned(),
            orders: 0,
            weather,
        }
    }

    /// One thread, and what is done to it.
    pub(super) fn act(&mut self) {
        match self.prng.below(100) {
            0..30 => self.steps(),
            30..50 => self.questions(),
            50..68 => self.second_run(),
            68..84 => self.cancelled(),
            _ => self.stateless(),
        }
    }

    /// One thread, and what is done to it while the server lives: a client without a reply may only repeat what has a key.
    pub(super) fn act_with_keys(&mut self) {
        match self.prng.below(100) {
            0..50 => self.steps(),
            50..80 => self.questions(),
            _ => self.second_run(),
        }
    }

    /// A run in the background, awaited or streamed.
    fn steps(&mut self) {
        let mut log = self.new_thread();
        let order = self.order(&log, Ask::Steps { ms: 0 });
        self.run_to_its_end(&mut log, &order);
        self.threads.push(log);
    }

    /// A run that asks twice.
    fn questions(&mut self) {
        let mut log = self.new_thread();
        let order = self.order(&log, Ask::Questions);
        let mut goes_on = self.run_to_its_end(&mut log, &order);
        for _ in 0..2 {
            if !goes_on {
                break;
            }
            let value = self.prng.next() >> 12;
            let order = RunOrder {
                is_keyed: true,
                ..self.order(&log, Ask::Answer { value })
            };
            goes_on = self.run_to_its_end(&mut log, &order);
            self.repeat(&log, &order);
        }
        self.threads.push(log);
    }

    /// Sends a request that was answered once more, as a client does that lost the reply: it gets the same run.
    fn repeat(&mut self, log: &ThreadLog, order: &RunOrder) {
        let first = log.requests.last().map(|request| request.told.clone());
        let Some(Told::Accepted { run }) = first else {
            return;
        };
        let order = RunOrder {
            route: Route::Create,
            ..order.clone()
        };
        let again = self.api.submit(&order).told;
        if again != (Told::Accepted { run }) && again != Told::Unknown {
            let what = format!("{} was repeated: {again:?}", order.mark);
            self.api.faults.push(("run_doubled", what));
        }
    }

    /// A second run on a thread that is busy, and a third one after both.
    fn second_run(&mut self) {
        let mut log = self.new_thread();
        let first = RunOrder {
            route: Route::Create,
            ..self.order(&log, Ask::Steps { ms: SLOW_MS })
        };
        self.submit(&mut log, &first);
        let strategy = *self.prng.pick(&STRATEGIES);
        let second = RunOrder {
            route: Route::Create,
            strategy: Some(strategy),
            ..self.order(&log, Ask::Steps { ms: 0 })
        };
        for earlier in &mut log.requests {
            earlier.may_be_cancelled |= ["interrupt", "rollback"].contains(&strategy);
            earlier.may_be_deleted |= strategy == "rollback";
        }
        self.submit(&mut log, &second);
        if let Some(request) = log.requests.last_mut() {
            request.may_be_refused = strategy == "reject";
        }
        let third = self.order(&log, Ask::Steps { ms: 0 });
        self.run_to_its_end(&mut log, &third);
        self.threads.push(log);
    }

    /// A run that is cancelled, and one after it, which must not be in its way. Half of the times that one waits already.
    fn cancelled(&mut self) {
        let mut log = self.new_thread();
        let order = RunOrder {
            route: Route::Create,
            ..self.order(&log, Ask::Steps { ms: SLOW_MS })
        };
        let submitted = self.submit(&mut log, &order);
        let mut next = self.order(&log, Ask::Steps { ms: SLOW_MS });
        let mut waiting = None;
        if self.prng.below(2) == 0 {
            next.route = Route::Create;
            waiting = Some(self.submit(&mut log, &next));
        }
        if let Told::Accepted { run } = &submitted.told {
            std::thread::sleep(Duration::from_millis(self.prng.below(2 * SLOW_MS)));
            log.requests[0].may_be_cancelled = true;
            if self.api.cancel(&log.id, run) {
                log.requests[0].cancelled_at = Some(unix_ms());
            }
        }
        match waiting {
            Some(waiting) => self.follow_to_its_end(&log, &next, waiting),
            None => self.run_to_its_end(&mut log, &next),
        };
        self.threads.push(log);
    }

    /// A run without a thread of its own. If its reply is lost, nobody can say which run it was.
    fn stateless(&mut self) {
        let route = *self.prng.pick(&[Route::Create, Route::Wait]);
        let order = RunOrder {
            thread: None,
            mark: self.next_mark(),
            ask: Ask::Steps { ms: 0 },
            route,
            strategy: None,
            is_keyed: false,
        };
        let submitted = self.api.submit(&order);
        let Told::Accepted { run } = &submitted.told else {
            return;
        };
        match (&submitted.values, &submitted.thread) {
            (Some(values), _) => self.check_values(&order, values),
            // Its thread is deleted some seconds after its end; then there is nothing to wait for either.
            (None, Some(thread)) => drop(self.api.join(thread, run)),
            (None, None) => {}
        }
        self.stateless.push(order.mark);
    }

    /// Asks for a run, follows it to its end, and returns whether it has come there.
    fn run_to_its_end(&mut self, log: &mut ThreadLog, order: &RunOrder) -> bool {
        let submitted = self.submit(log, order);
        self.follow_to_its_end(log, order, submitted)
    }

    /// Follows a run to its end, and returns whether it has come there.
    fn follow_to_its_end(
        &mut self,
        log: &ThreadLog,
        order: &RunOrder,
        submitted: Submitted,
    ) -> bool {
        let Told::Accepted { run } = submitted.told else {
            return false;
        };
        let values = match submitted.values {
            Some(values) => Some(values),
            None => self.api.join(&log.id, &run),
        };
        match values {
            Some(values) => {
                self.check_values(order, &values);
                true
            }
            None => false,
        }
    }

    fn submit(&mut self, log: &mut ThreadLog, order: &RunOrder) -> Submitted {
        let submitted = match order.route {
            Route::Stream => self.api.stream(order),
            Route::Create | Route::Wait => self.api.submit(order),
        };
        log.requests.push(RequestLog {
            mark: order.mark.clone(),
            ask: order.ask,
            told: submitted.told.clone(),
            may_be_refused: false,
            may_be_cancelled: false,
            may_be_deleted: false,
            cancelled_at: None,
        });
        submitted
    }

    /// A run that nothing ends early is answered with all that it did.
    fn check_values(&mut self, order: &RunOrder, values: &Json) {
        if !matches!(order.ask, Ask::Steps { .. }) {
            return;
        }
        let done = values["done"].as_array().cloned().unwrap_or_default();
        let done: Vec<String> = done
            .iter()
            .filter_map(|entry| Some(entry.as_str()?.to_owned()))
            .collect();
        if parts_of(&done, &order.mark).0 != STEPS {
            let what = format!("{} by {:?}: {values}", order.mark, order.route);
            self.api.faults.push(("wrong_reply", what));
        }
    }

    fn order(&mut self, log: &ThreadLog, ask: Ask) -> RunOrder {
        let route = *self.prng.pick(&[Route::Create, Route::Wait, Route::Stream]);
        let is_keyed = self.weather == Weather::Outages || self.prng.below(2) == 0;
        RunOrder {
            thread: Some(log.id.clone()),
            mark: self.next_mark(),
            ask,
            route,
            strategy: None,
            is_keyed,
        }
    }

    fn next_mark(&mut self) -> String {
        self.orders += 1;
        format!("{}-{}", self.name, self.orders)
    }

    fn new_thread(&mut self) -> ThreadLog {
        let id = random_uuid(&mut self.prng);
        self.api.create_thread(&id);
        ThreadLog {
            id,
            requests: Vec::new(),
        }
    }
}

pub(super) fn random_uuid(prng: &mut Prng) -> String {
    let digits = format!("{:016x}{:016x}", prng.next(), prng.next());
    let part = |from: usize, to: usize| &digits[from..to];
    let groups = [
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32),
    ];
    groups.join("-")
}

fn unix_ms() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since_1970.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

const STRATEGIES: [&str; 4] = ["enqueue", "reject", "interrupt", "rollback"];
/// How long a run takes that others come in the way of.
const SLOW_MS: u64 = 150;
/// Far longer than a run takes, the restarts of a trial included.
pub(super) const PATIENCE: Duration = Duration::from_secs(40);

#[test]
fn ids_of_threads_have_the_form_of_a_uuid() {
    let id = random_uuid(&mut Prng::new(7));
    let lengths: Vec<usize> = id.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12]);
    assert!(id.chars().all(|c| c == '-' || c.is_ascii_hexdigit()));
}
