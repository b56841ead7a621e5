//! The task that reads a thread while runs are active on it.

use std::sync::Arc;
use std::time::Duration;

use superstep::{DriveError, EventId, RunId, Seq};

use crate::feed::FeedId;
use crate::feed::event::{FeedBody, FeedEvent};
use crate::feed::log_converter::LogConverter;
use crate::feed::log_source::{EntryReader, FeedInput, LogSource, end_of};
use crate::feed::thread_feed::ThreadFeed;

/// Where a reader is in a thread, while none is at work.
#[derive(Debug)]
pub(super) struct ReaderPlace {
    pub(super) converter: LogConverter,
    /// The last item that was read.
    pub(super) after: EventId,
}

/// Reads a thread of which nothing is known yet. `early` reads it from its beginning, and `is_begun` says that a run is
/// submitted right now.
pub(super) async fn read_from_outside(
    feed: Arc<ThreadFeed>,
    generation: u64,
    source: LogSource,
    early: EntryReader,
    is_begun: bool,
) {
    let requests = feed.requests();
    let mut pause = PAUSE_AFTER_ERROR;
    let found = loop {
        match find_place(&source, is_begun).await {
            Ok(found) => break found,
            Err(_) if !feed.is_current(generation) => return,
            Err(error) => {
                tracing::warn!(thread = %source.thread, ?error, "the state of a thread could not be read");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    };
    let FoundPlace {
        place,
        is_active,
        run_before,
    } = found;
    let (reader, floor) = match place.after.seq {
        Seq(0) => (early, FeedId::START),
        seq => (source.read_after(place.after), FeedId::end_of(seq.0)),
    };
    feed.started(generation, floor, run_before);
    if is_active {
        return read(feed, generation, source, reader, place).await;
    }
    if let Some(place) = feed.rest(generation, place, requests) {
        read(feed, generation, source, reader, place).await;
    }
}

/// Where a reader starts that knows nothing of its thread.
struct FoundPlace {
    place: ReaderPlace,
    /// Whether there may be something to read.
    is_active: bool,
    /// The last run before the place; `None` if the reader reads the last run itself, or there is none.
    run_before: Option<RunId>,
}

/// Returns where to start: at the end of the log, or where its last run begins if clients may wait for that. Not further back:
/// clients that wait for what happens next must not see what happened long ago.
async fn find_place(source: &LogSource, is_begun: bool) -> Result<FoundPlace, DriveError> {
    let mut converter = LogConverter::new(&source.graph, &source.thread);
    // Before it is known whether a run is active: one that begins in between is read from its beginning.
    let newest = source
        .runtime
        .state_of(&source.graph, &source.thread, None)
        .await?;
    let is_active = is_begun || source.has_active_run().await?;
    let mut after = EventId::START;
    let mut run_before = None;
    if let Some(newest) = newest {
        let run = newest.run.run;
        let is_wanted = is_active && source.is_recent(run).await?;
        let state = match is_wanted {
            true => source.state_before(run, newest.seq).await?,
            false => {
                run_before = Some(run);
                Some(newest)
            }
        };
        if let Some(state) = state {
            source.continue_from(&mut converter, &state).await?;
            after = end_of(state.seq);
        }
    }
    Ok(FoundPlace {
        place: ReaderPlace { converter, after },
        is_active,
        run_before,
    })
}

/// Reads a thread until no run is active on it.
pub(super) async fn read(
    feed: Arc<ThreadFeed>,
    generation: u64,
    source: LogSource,
    mut reader: EntryReader,
    mut place: ReaderPlace,
) {
    let mut is_at_rest = true;
    // A thread that was deleted has nothing more to read.
    while feed.is_current(generation) {
        let requests = feed.requests();
        let patience = match is_at_rest {
            true => PATIENCE_AT_REST,
            false => PATIENCE,
        };
        let next = tokio::time::timeout(patience, reader.next()).await;
        let events = match next {
            Ok(Ok(input)) => Ok(take(&source, &mut place, input).await),
            Ok(Err(error)) => Err(error),
            Err(_) => match source.has_active_run().await {
                Ok(true) => continue,
                Ok(false) => match feed.rest(generation, place, requests) {
                    None => return,
                    Some(given_back) => {
                        place = given_back;
                        continue;
                    }
                },
                Err(error) => Err(error),
            },
        };
        match events {
            Ok(events) => {
                for event in &events {
                    match event.body {
                        FeedBody::RunBegan => is_at_rest = false,
                        FeedBody::Stopped(_) => is_at_rest = true,
                        _ => {}
                    }
                }
                feed.push(generation, events);
            }
            Err(error) => {
                tracing::warn!(thread = %source.thread, ?error, "the log of a thread could not be read");
                tokio::time::sleep(PAUSE_AFTER_ERROR).await;
            }
        }
    }
}

async fn take(
    source: &LogSource,
    place: &mut ReaderPlace,
    input: FeedInput,
) -> Vec<Arc<FeedEvent>> {
    let now = source.runtime.now();
    let (items, replaced) = match input {
        FeedInput::Live(event) => return place.converter.live(&event, now),
        FeedInput::Replaced(task) => return place.converter.replaced(task, now),
        FeedInput::Entry { items, replaced } => (items, replaced),
    };
    let mut events = Vec::new();
    for task in replaced {
        events.extend(place.converter.replaced(task, now));
    }
    loop {
        match source.convert(&mut place.converter, &items).await {
            Ok(converted) => {
                events.extend(converted);
                break;
            }
            // The reader returns an entry once, so it is tried until the store answers.
            Err(error) => {
                tracing::warn!(thread = %source.thread, ?error, "an entry could not be streamed yet");
                tokio::time::sleep(PAUSE_AFTER_ERROR).await;
            }
        }
    }
    if let Some(last) = items.last() {
        place.after = EventId {
            seq: last.seq,
            index: last.index,
        };
    }
    events
}

/// How long nothing may happen before the reader asks whether a run is active: while one is, and while none is known.
const PATIENCE: Duration = Duration::from_secs(15);
const PATIENCE_AT_REST: Duration = Duration::from_secs(2);
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(10);
