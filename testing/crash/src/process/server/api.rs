//! A client of the server that gives up only when there is nothing left to try, and remembers what it was told.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use super::http::{HttpClient, HttpRequest, ReplyHead};
use super::order::RunOrder;
use super::sse::EventReader;
use harness::prng::Prng;

/// What may happen to a request in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weather {
    /// The server is killed: connections break, and none can be made for a while.
    Kills,
    /// The server lives and its database does not: it replies 503 and says when to try again.
    Outages,
}

/// Something that must never happen, by its kind.
pub(super) type Fault = (&'static str, String);

/// A client.
#[derive(Debug)]
pub(super) struct Api {
    /// One for each server. A request goes to any of them.
    servers: Vec<HttpClient>,
    prng: Prng,
    weather: Weather,
    /// After which a client gives up.
    patience: Duration,
    pub(super) figures: ApiFigures,
    pub(super) faults: Vec<Fault>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ApiFigures {
    pub(super) requests: u64,
    /// Connections that broke, or could not be made.
    pub(super) cut: u64,
    /// Replies with the status 503.
    pub(super) unavailable: u64,
}

/// What a client was told about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    /// A reply with a status of 2xx, or the run is in the list of the thread's runs.
    Accepted {
        run: String,
    },
    Refused(u16),
    /// Nothing: the connection broke, and the run is not in the list.
    Unknown,
}

/// What a client knows of a run that it asked for.
#[derive(Debug, Clone)]
pub(super) struct Submitted {
    pub(super) told: Told,
    /// The thread of a run that was accepted.
    pub(super) thread: Option<String>,
    /// What the run ended with, if the client was told that.
    pub(super) values: Option<Json>,
}

impl ApiFigures {
    pub(super) fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.cut += other.cut;
        self.unavailable += other.unavailable;
    }
}

impl Api {
    pub(super) fn new(ports: &[u16], weather: Weather, patience: Duration) -> Self {
        let servers = ports.iter().map(|port| HttpClient::new(*port, patience));
        Self {
            servers: servers.collect(),
            prng: Prng::new(0),
            weather,
            patience,
            figures: ApiFigures::default(),
            faults: Vec::new(),
        }
    }

    /// Chooses servers by this seed.
    pub(super) fn seeded(mut self, seed: u64) -> Self {
        self.prng = Prng::new(seed);
        self
    }

    fn server(&mut self) -> HttpClient {
        *self.prng.pick(&self.servers)
    }

    /// Creates a thread with an id of the caller's.
    pub(super) fn create_thread(&mut self, id: &str) {
        let body = json!({ "thread_id": id, "if_exists": "do_nothing" });
        let reply = self.insist(&HttpRequest::post("/threads", body));
        if let Some((head, json)) = reply
            && !head.is_success()
        {
            let what = format!("POST /threads: {}: {json}", head.status);
            self.faults.push(("unexpected_refusal", what));
        }
    }

    /// Asks for a run. Without a key, a request that was cut off is not repeated: the client looks whether there is a run.
    pub(super) fn submit(&mut self, order: &RunOrder) -> Submitted {
        let request = order.request();
        let reply = match order.is_keyed {
            true => self.insist(&request),
            false => self.send(&request),
        };
        match reply {
            Some((head, json)) => self.told(order, &head, json),
            None => self.look_for(order),
        }
    }

    fn told(&mut self, order: &RunOrder, head: &ReplyHead, json: Json) -> Submitted {
        let thread = json["thread_id"].as_str().map(str::to_owned);
        let told = match head.status {
            200..300 => match json["run_id"].as_str().or_else(|| run_of(head)) {
                Some(run) => Told::Accepted {
                    run: run.to_owned(),
                },
                None => {
                    let what = format!("{}: a reply without a run: {json}", order.mark);
                    self.faults.push(("malformed_reply", what));
                    Told::Unknown
                }
            },
            400..500 => Told::Refused(head.status),
            _ => Told::Unknown,
        };
        // Only a run that was awaited is answered with its values.
        let is_awaited = head.is_success() && json["run_id"].is_null();
        Submitted {
            told,
            thread: order.thread.clone().or(thread),
            values: is_awaited.then_some(json),
        }
    }

    fn look_for(&mut self, order: &RunOrder) -> Submitted {
        let run = match &order.thread {
            Some(thread) => self.find(thread, &order.mark),
            None => None,
        };
        Submitted {
            told: run.map_or(Told::Unknown, |run| Told::Accepted { run }),
            thread: order.thread.clone(),
            values: None,
        }
    }

    /// Returns the run of a thread with this mark.
    fn find(&mut self, thread: &str, mark: &str) -> Option<String> {
        let rows = self.runs(thread)?;
        let row = rows.iter().find(|row| row["metadata"]["mark"] == mark)?;
        Some(row["run_id"].as_str()?.to_owned())
    }

    /// Returns the runs of a thread; nothing if there is no such thread.
    pub(super) fn runs(&mut self, thread: &str) -> Option<Vec<Json>> {
        let path = format!("/threads/{thread}/runs?limit=1000");
        let (head, json) = self.insist(&HttpRequest::get(path))?;
        match json {
            Json::Array(rows) if head.is_success() => Some(rows),
            _ => None,
        }
    }

    /// Returns the values of a thread's state; nothing if there is no such thread.
    pub(super) fn state(&mut self, thread: &str) -> Option<Json> {
        let path = format!("/threads/{thread}/state");
        let (head, mut json) = self.insist(&HttpRequest::get(path))?;
        head.is_success().then(|| json["values"].take())
    }

    /// Waits for the end of a run, again and again if the connection breaks; nothing if the run is gone.
    pub(super) fn join(&mut self, thread: &str, run: &str) -> Option<Json> {
        let path = format!("/threads/{thread}/runs/{run}/join");
        let (head, json) = self.insist(&HttpRequest::get(path))?;
        head.is_success().then_some(json)
    }

    /// Cancels a run, and returns whether the server said that it has stopped.
    pub(super) fn cancel(&mut self, thread: &str, run: &str) -> bool {
        let path = format!("/threads/{thread}/runs/{run}/cancel?wait=true");
        let reply = self.insist(&HttpRequest::post(path, json!({})));
        match reply {
            Some((head, _)) if head.is_success() => true,
            // It was faster, or the reply to the first request was lost.
            Some((head, json)) if head.status == 404 && has_ended(&json) => true,
            Some((head, json)) => {
                let what = format!("cancel of {run}: {}: {json}", head.status);
                self.faults.push(("unexpected_refusal", what));
                false
            }
            None => false,
        }
    }

    /// Asks for a run and streams it to its end, from where the client was if the connection breaks.
    pub(super) fn stream(&mut self, order: &RunOrder) -> Submitted {
        let Some(thread) = order.thread.clone() else {
            return self.submit(order);
        };
        let deadline = Instant::now() + self.patience;
        let mut request = order.request();
        let mut submitted = Submitted {
            told: Told::Unknown,
            thread: Some(thread.clone()),
            values: None,
        };
        let mut last_id = "-1".to_owned();
        while Instant::now() < deadline {
            match self.read_stream(&request, &mut submitted, &mut last_id, deadline) {
                StreamEnd::Whole | StreamEnd::Refused => return submitted,
                StreamEnd::Cut => std::thread::sleep(PAUSE),
            }
            if submitted.told == Told::Unknown
                && let Some(run) = self.find(&thread, &order.mark)
            {
                submitted.told = Told::Accepted { run };
            }
            match &submitted.told {
                Told::Accepted { run } => {
                    let path = format!("/threads/{thread}/runs/{run}/stream");
                    request = HttpRequest::get(path).header("last-event-id", last_id.clone());
                }
                // Nothing was stored, and without a key the client must not try again.
                Told::Unknown if !order.is_keyed => return submitted,
                _ => {}
            }
        }
        self.faults
            .push(("no_answer", format!("the stream of {}", order.mark)));
        submitted
    }

    fn read_stream(
        &mut self,
        request: &HttpRequest,
        submitted: &mut Submitted,
        last_id: &mut String,
        deadline: Instant,
    ) -> StreamEnd {
        self.figures.requests += 1;
        let mut reply = match self.server().open(request) {
            Ok(reply) => reply,
            Err(error) => return self.cut_stream(&request.path, &error),
        };
        match reply.head.status {
            200 => {}
            503 => {
                self.wait_for_service(&reply.head, &request.path);
                return StreamEnd::Cut;
            }
            status => {
                submitted.told = Told::Refused(status);
                return StreamEnd::Refused;
            }
        }
        if let Some(run) = run_of(&reply.head) {
            submitted.told = Told::Accepted {
                run: run.to_owned(),
            };
        }
        let mut events = EventReader::new(&mut reply.body, deadline);
        loop {
            match events.next() {
                Ok(Some(event)) => {
                    *last_id = event.id;
                    if event.name == "values" {
                        submitted.values = Some(event.data);
                    }
                }
                Ok(None) => return StreamEnd::Whole,
                Err(error) => return self.cut_stream(&request.path, &error),
            }
        }
    }

    fn cut_stream(&mut self, path: &str, error: &io::Error) -> StreamEnd {
        self.note_cut(path, error);
        StreamEnd::Cut
    }

    /// Sends a request until it is answered.
    pub(super) fn insist(&mut self, request: &HttpRequest) -> Option<(ReplyHead, Json)> {
        let begun = Instant::now();
        while begun.elapsed() < self.patience {
            match self.send(request) {
                Some((head, _)) if head.status == 503 => {
                    self.wait_for_service(&head, &request.path);
                }
                Some(reply) => return Some(reply),
                None => std::thread::sleep(PAUSE),
            }
        }
        self.faults.push(("no_answer", request.path.clone()));
        None
    }

    /// Sends a request once.
    fn send(&mut self, request: &HttpRequest) -> Option<(ReplyHead, Json)> {
        self.figures.requests += 1;
        match self.server().call(request) {
            Ok((head, json)) => {
                let is_unavailable = head.status == 503 && self.weather == Weather::Outages;
                if head.status >= 500 && !is_unavailable {
                    let what = format!("{}: {}: {json}", request.path, head.status);
                    self.faults.push(("server_error", what));
                }
                Some((head, json))
            }
            Err(error) => {
                self.note_cut(&request.path, &error);
                None
            }
        }
    }

    /// Waits as long as a reply asks for.
    fn wait_for_service(&mut self, head: &ReplyHead, path: &str) {
        self.figures.unavailable += 1;
        let seconds = head.header("retry-after").map(str::parse::<u64>);
        let wait = match seconds {
            Some(Ok(seconds)) => Duration::from_secs(seconds),
            Some(Err(_)) | None => {
                self.faults.push(("no_retry_after", path.to_owned()));
                PAUSE
            }
        };
        std::thread::sleep(wait.clamp(PAUSE, RETRY_MAX));
    }

    fn note_cut(&mut self, path: &str, error: &io::Error) {
        self.figures.cut += 1;
        let kind = match (error.kind(), self.weather) {
            (ErrorKind::InvalidData, _) => "malformed_reply",
            (_, Weather::Outages) => "connection_lost",
            (_, Weather::Kills) => return,
        };
        self.faults.push((kind, format!("{path}: {error}")));
    }
}

/// How one connection of a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamEnd {
    Whole,
    Cut,
    Refused,
}

/// Whether a refusal says that there is nothing to cancel.
fn has_ended(refusal: &Json) -> bool {
    let detail = refusal["detail"].as_str();
    detail.is_some_and(|detail| detail.contains("has ended"))
}

/// Returns the run that a reply names as its place.
pub(super) fn run_of(head: &ReplyHead) -> Option<&str> {
    head.header("content-location")?.rsplit('/').next()
}

/// Before a client tries again.
const PAUSE: Duration = Duration::from_millis(20);
/// A client of a trial has less time than the server may ask for.
const RETRY_MAX: Duration = Duration::from_secs(1);
