//! Clients that watch runs: one whose connections are cut at random bytes and that continues where it was, and one that is left
//! alone.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::json;

use super::api::run_of;
use super::http::{HttpClient, HttpReply, HttpRequest, ReplyBody};
use super::sse::{EventReader, StreamedEvent};
use harness::prng::Prng;

/// Which stream a client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StreamKind {
    /// Of one run: `/threads/T/runs/R/stream`.
    Run,
    /// Of a thread and its runs: `/threads/T/stream`.
    Thread,
    /// Of the thread protocol: `/threads/T/stream/events`.
    Protocol,
}

impl StreamKind {
    pub(super) const ALL: [Self; 3] = [Self::Run, Self::Thread, Self::Protocol];

    /// How many runs a client watches: the streams of threads stay open.
    pub(super) fn runs(self) -> usize {
        match self {
            StreamKind::Run => 1,
            StreamKind::Thread | StreamKind::Protocol => 2,
        }
    }

    /// Whether an event says that a run has stopped. Streams of runs end instead.
    fn is_stop(self, event: &StreamedEvent) -> bool {
        let phase = match self {
            StreamKind::Run => return false,
            StreamKind::Thread => &event.data["event"],
            StreamKind::Protocol if event.data["params"]["namespace"] == json!([]) => {
                &event.data["params"]["data"]["event"]
            }
            StreamKind::Protocol => return false,
        };
        let is_stopped = |phase: &str| ["completed", "interrupted", "failed"].contains(&phase);
        event.name == "lifecycle" && phase.as_str().is_some_and(is_stopped)
    }
}

/// What a client watches.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    pub(super) kind: StreamKind,
    pub(super) thread: String,
    /// Known once the run is submitted; streams of threads do not need it.
    pub(super) run: Option<String>,
}

impl Watched {
    /// The request that continues after an event, or that starts at the beginning.
    fn request(&self, last_id: Option<&str>) -> anyhow::Result<HttpRequest> {
        let thread = &self.thread;
        Ok(match self.kind {
            StreamKind::Run => {
                let run = self.run.as_deref().context("the run is not known yet")?;
                let path = format!("/threads/{thread}/runs/{run}/stream");
                HttpRequest::get(path).header("last-event-id", last_id.unwrap_or("-1"))
            }
            StreamKind::Thread => {
                let path = format!("/threads/{thread}/stream?stream_modes=run_modes,lifecycle");
                HttpRequest::get(path).header("last-event-id", last_id.unwrap_or("-1"))
            }
            StreamKind::Protocol => {
                let since: u64 = last_id.unwrap_or("0").parse()?;
                let body = json!({ "channels": CHANNELS, "since": since });
                HttpRequest::post(format!("/threads/{thread}/stream/events"), body)
            }
        })
    }
}

/// A client.
#[derive(Debug)]
pub(super) struct Watcher {
    http: HttpClient,
    watched: Watched,
    /// All events so far, those of every connection one after the other.
    pub(super) events: Vec<StreamedEvent>,
    /// How many bytes all connections had.
    pub(super) bytes: u64,
    /// How often the client hung up.
    pub(super) cuts: u64,
    /// How often the server did, or was not there.
    pub(super) lost: u64,
    deadline: Instant,
    /// Whether the client claims to have seen an event more than it has, to see whether that is noticed.
    is_ahead: bool,
}

impl Watcher {
    pub(super) fn new(port: u16, watched: Watched, mutant: Option<&str>) -> Self {
        Self {
            http: HttpClient::new(port, SILENCE_MAX),
            watched,
            events: Vec::new(),
            bytes: 0,
            cuts: 0,
            lost: 0,
            deadline: Instant::now() + COMPLETE_MAX,
            is_ahead: mutant == Some("event-skipped"),
        }
    }

    /// Returns the run that the client watches, if it is one.
    pub(super) fn run(&self) -> Option<String> {
        self.watched.run.clone()
    }

    /// Opens a stream of a thread at its beginning, which is also where it is: nothing has run yet.
    pub(super) fn open(&self, cut_after: Option<u64>) -> io::Result<HttpReply> {
        let request = self.watched.request(None).map_err(io::Error::other)?;
        self.http.open(&request.cut_after(cut_after))
    }

    /// Submits the run of a stream and reads the reply, which is its stream. Returns whether the stream is complete.
    pub(super) fn submit_and_stream(
        &mut self,
        request: HttpRequest,
        cut_after: Option<u64>,
        find_run: impl FnOnce() -> anyhow::Result<String>,
        on_run: impl FnOnce(&str),
    ) -> anyhow::Result<bool> {
        // Not before the first byte of the reply: a server that has sent one has stored the run.
        let cut_after = cut_after.map(|bytes| bytes.max(1));
        let opened = self.http.open(&request.cut_after(cut_after));
        let run = match &opened {
            Ok(reply) => run_of(&reply.head).map(str::to_owned),
            Err(_) => None,
        };
        let run = match run {
            Some(run) => run,
            None => find_run()?,
        };
        on_run(&run);
        self.watched.run = Some(run);
        self.read(opened)
    }

    /// Reads a connection until its end. Returns whether the stream is complete.
    pub(super) fn read(&mut self, opened: io::Result<HttpReply>) -> anyhow::Result<bool> {
        let reply = match opened {
            Ok(reply) => reply,
            Err(error) => return self.note_cut(&error),
        };
        if reply.head.status != 200 {
            bail!("a stream was refused with {}", reply.head.status);
        }
        let mut reader = EventReader::new(reply.body, self.deadline);
        let read = self.read_events(&mut reader);
        self.bytes += reader.bytes();
        match read {
            Ok(is_complete) => Ok(is_complete),
            Err(error) => self.note_cut(&error),
        }
    }

    fn read_events(&mut self, reader: &mut EventReader<ReplyBody>) -> io::Result<bool> {
        loop {
            let Some(event) = reader.next()? else {
                // Only the stream of a run ends by itself.
                return Ok(self.watched.kind == StreamKind::Run);
            };
            let is_stop = self.watched.kind.is_stop(&event);
            self.events.push(event);
            if is_stop && self.stops() == self.watched.kind.runs() {
                return Ok(true);
            }
        }
    }

    /// Continues after the last event until the stream is complete. Each connection is cut after so many bytes, while there are
    /// any numbers left.
    pub(super) fn continue_to_end(&mut self, cuts: &mut Vec<u64>) -> anyhow::Result<()> {
        while Instant::now() < self.deadline {
            let last_id = self.last_id()?;
            let request = self.watched.request(last_id.as_deref())?;
            let opened = self.http.open(&request.cut_after(cuts.pop()));
            if self.read(opened)? {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        bail!("the stream does not end: {:?}", self.watched)
    }

    /// Returns what the client sends to continue; nothing if it has seen nothing.
    fn last_id(&self) -> anyhow::Result<Option<String>> {
        let Some(last) = self.events.last() else {
            return Ok(None);
        };
        if !self.is_ahead {
            return Ok(Some(last.id.clone()));
        }
        let (entry, place) = match last.id.split_once('-') {
            Some((entry, place)) => (format!("{entry}-"), place),
            None => (String::new(), last.id.as_str()),
        };
        let place: u64 = place.parse()?;
        Ok(Some(format!("{entry}{}", place + SKIPPED)))
    }

    /// How many runs have stopped.
    fn stops(&self) -> usize {
        let kind = self.watched.kind;
        self.events
            .iter()
            .filter(|event| kind.is_stop(event))
            .count()
    }

    fn note_cut(&mut self, error: &io::Error) -> anyhow::Result<bool> {
        if error.kind() == ErrorKind::InvalidData {
            bail!("the server sent what is not a stream: {error}");
        }
        match error.kind() {
            ErrorKind::ConnectionAborted => self.cuts += 1,
            _ => self.lost += 1,
        }
        Ok(false)
    }
}

/// Draws after how many bytes the connections of a client are cut, the first one last.
pub(super) fn draw_cuts(prng: &mut Prng, bytes: u64) -> Vec<u64> {
    let count = 1 + prng.below(CUTS_MAX);
    (0..count).map(|_| prng.below(bytes.max(1))).collect()
}

/// All channels of the thread protocol.
const CHANNELS: [&str; 9] = [
    "values",
    "updates",
    "messages",
    "tools",
    "lifecycle",
    "input",
    "checkpoints",
    "tasks",
    "custom",
];
const CUTS_MAX: u64 = 4;
/// So many that the client misses an event, whichever comes next.
const SKIPPED: u64 = 40;
/// Longer than the time between two heartbeats of the server.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// Far longer than the runs of a batch take, and a restart.
const COMPLETE_MAX: Duration = Duration::from_secs(40);
const PAUSE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::*;

    fn event(name: &str, data: Json) -> StreamedEvent {
        StreamedEvent {
            name: name.to_owned(),
            data,
            id: "1-2".to_owned(),
        }
    }

    #[test]
    fn the_end_of_a_run_is_seen_in_both_streams_of_threads() {
        let lifecycle = event("lifecycle", json!({ "event": "completed", "run_id": "r" }));
        assert!(StreamKind::Thread.is_stop(&lifecycle));
        assert!(!StreamKind::Run.is_stop(&lifecycle));
        let running = event("lifecycle", json!({ "event": "running", "run_id": "r" }));
        assert!(!StreamKind::Thread.is_stop(&running));
        let envelope = |namespace: Json| {
            let params = json!({ "namespace": namespace, "data": { "event": "interrupted" } });
            event(
                "lifecycle",
                json!({ "method": "lifecycle", "params": params }),
            )
        };
        assert!(StreamKind::Protocol.is_stop(&envelope(json!([]))));
        assert!(!StreamKind::Protocol.is_stop(&envelope(json!(["inner:1"]))));
    }

    #[test]
    fn a_client_that_is_ahead_names_an_event_that_it_has_not_seen() {
        let watched = Watched {
            kind: StreamKind::Run,
            thread: "t".to_owned(),
            run: Some("r".to_owned()),
        };
        let mut watcher = Watcher::new(1, watched.clone(), None);
        assert_eq!(watcher.last_id().unwrap(), None);
        watcher.events.push(event("values", json!({})));
        assert_eq!(watcher.last_id().unwrap().as_deref(), Some("1-2"));
        let mut ahead = Watcher::new(1, watched, Some("event-skipped"));
        ahead.events.push(event("values", json!({})));
        assert_eq!(ahead.last_id().unwrap().as_deref(), Some("1-42"));
    }
}
