use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use superstep_llm::{
    BoxFuture, Chunk, Model, ModelError, ModelName, Patience, ReplyStream, Request, Retrying,
    Script,
};
use tokio::time::Instant;

use crate::kit::{ask, script};

fn retrying(replies: &str) -> Retrying {
    Retrying::new(Arc::new(script(replies)))
}

#[tokio::test(start_paused = true)]
async fn a_limited_model_is_asked_again_after_the_time_it_said() {
    let model = retrying(
        r#"{"at": "a", "error": {"status": 429, "retry_after_ms": 7000}}, {"at": "a", "text": "now"}"#,
    );
    let begun = tokio::time::Instant::now();
    assert_eq!(model.reply(&ask("a", "go")).await.unwrap().text(), "now");
    assert_eq!(begun.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_too_long_goes_to_the_next_model_at_once() {
    let first = script(r#"{"at": "a", "error": {"status": 429, "retry_after_ms": 86400000}}"#);
    let next = script(r#"{"at": "a", "text": "from the next"}"#);
    let model = Retrying::new(Arc::new(first)).then(Arc::new(next));
    let begun = tokio::time::Instant::now();
    let reply = model.reply(&ask("a", "go")).await.unwrap();
    assert_eq!(reply.text(), "from the next");
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn what_came_before_a_break_is_void_and_said_to_be() {
    let model = retrying(
        r#"{"at": "a", "text": "half of it", "cut_after": 5}, {"at": "a", "text": "whole"}"#,
    );
    let stream = model.stream(&ask("a", "go")).await.unwrap();
    let chunks: Vec<_> = stream.map(|chunk| chunk.unwrap()).collect().await;
    let kinds: Vec<_> = chunks
        .iter()
        .map(|chunk| match chunk {
            Chunk::Text(text) => text.as_str(),
            Chunk::Again { .. } => "(again)",
            Chunk::End(_) => "(end)",
            _ => "?",
        })
        .collect();
    assert_eq!(kinds, ["half ", "(again)", "whole", "(end)"]);
}

#[tokio::test(start_paused = true)]
async fn it_gives_up_after_so_many_tries_with_the_last_error() {
    let down = r#"{"at": "a", "error": {"status": 503, "why": "overloaded"}}"#;
    let model = retrying(&[down; 4].join(","));
    let error = model.reply(&ask("a", "go")).await.unwrap_err();
    assert!(matches!(error, ModelError::Unavailable { status: 503, .. }));
    // Not a fifth time: a fifth would have found no reply.
}

#[tokio::test(start_paused = true)]
async fn each_failure_says_which_attempt_follows_and_of_how_many() {
    let down = r#"{"at": "a", "error": {"status": 503, "why": "overloaded"}}"#;
    let first = script(&[down; 4].join(","));
    let next = script(&format!(r#"{down}, {{"at": "a", "text": "at last"}}"#));
    let model = Retrying::new(Arc::new(first)).then(Arc::new(next));
    let stream = model.stream(&ask("a", "go")).await.unwrap();
    let chunks: Vec<_> = stream.map(|chunk| chunk.unwrap()).collect().await;
    let attempts: Vec<_> = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::Again {
                attempt,
                attempts_max,
                ..
            } => Some((*attempt, *attempts_max)),
            _ => None,
        })
        .collect();
    assert_eq!(attempts, [(2, 8), (3, 8), (4, 8), (5, 8), (6, 8)]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_is_not_tried_again() {
    let model = retrying(
        r#"{"at": "a", "error": {"status": 400, "why": "no such model"}}, {"at": "a", "text": "never"}"#,
    );
    let error = model.reply(&ask("a", "go")).await.unwrap_err();
    assert!(matches!(error, ModelError::Refused { status: 400, .. }));
}

#[tokio::test(start_paused = true)]
async fn silence_is_a_failure() {
    let patience = Patience {
        silence_max: Duration::from_secs(5),
        ..Patience::default()
    };
    let model = retrying(r#"{"at": "a", "timeout": true}, {"at": "a", "text": "awake"}"#)
        .patience(patience);
    assert_eq!(model.reply(&ask("a", "go")).await.unwrap().text(), "awake");
}

#[tokio::test(start_paused = true)]
async fn a_failure_before_the_first_data_is_told_before_the_wait() {
    let model = retrying(
        r#"{"at": "a", "error": {"status": 429, "retry_after_ms": 7000}}, {"at": "a", "text": "now"}"#,
    );
    let begun = Instant::now();
    let mut stream = model.stream(&ask("a", "go")).await.unwrap();
    let told = stream.next().await.unwrap().unwrap();
    assert!(matches!(told, Chunk::Again { why, .. } if why.contains("limit")));
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert_eq!(
        stream.next().await.unwrap().unwrap(),
        Chunk::Text("now".into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_gets_as_many_requests_at_once_as_it_has_slots() {
    for slots in [1, 3] {
        let server = Arc::new(Server::new(slots, Duration::from_secs(100)));
        let model = Retrying::new(server.clone());
        let request = ask("a", "go");
        let begun = Instant::now();
        join_all((0..6).map(|_| async { model.reply(&request).await.unwrap() })).await;
        assert_eq!(server.most.load(Ordering::SeqCst), slots);
        assert_eq!(begun.elapsed().as_secs(), 600 / slots as u64);
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_wait_for_a_slot_do_not_time_out() {
    let server = Arc::new(Server::new(1, Duration::from_secs(200)));
    let model = Retrying::new(server.clone());
    let request = ask("a", "go");
    join_all((0..4).map(|_| async { model.reply(&request).await.unwrap() })).await;
    assert_eq!(server.calls.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn after_a_time_out_fewer_requests_are_sent_at_once() {
    // It says four, but processes one at a time.
    let mut server = Server::new(4, Duration::from_secs(200));
    server.real_slots = Some(tokio::sync::Semaphore::new(1));
    let server = Arc::new(server);
    let model = Retrying::new(server.clone());
    let request = ask("a", "go");
    join_all((0..4).map(|_| async { model.reply(&request).await.unwrap() })).await;
    server.most.store(0, Ordering::SeqCst);
    join_all((0..4).map(|_| async { model.reply(&request).await.unwrap() })).await;
    let most = server.most.load(Ordering::SeqCst);
    assert!(most < 4, "{most} at once");
}

#[tokio::test(start_paused = true)]
async fn a_long_request_may_take_longer_to_its_first_data() {
    let server = Arc::new(Server::new(1, Duration::from_secs(1_000)));
    let once = Patience {
        tries: 1,
        ..Patience::default()
    };
    let model = Retrying::new(server).patience(once);
    let error = model.reply(&ask("a", "go")).await.unwrap_err();
    assert!(matches!(error, ModelError::TimedOut { .. }), "{error}");
    let long = "word ".repeat(4_000);
    assert_eq!(model.reply(&ask("a", &long)).await.unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn the_caller_can_set_how_many_requests_are_sent_at_once() {
    let server = Arc::new(Server::new(1, Duration::from_secs(1)));
    let model = Retrying::new(server.clone()).parallel(2);
    assert_eq!(model.slots().await, Some(2));
    let request = ask("a", "go");
    join_all((0..4).map(|_| async { model.reply(&request).await.unwrap() })).await;
    assert_eq!(server.most.load(Ordering::SeqCst), 2);
}

/// A server that takes its time, and knows how many requests it had at once.
#[derive(Debug)]
struct Server {
    answer: Script,
    slots: usize,
    takes: Duration,
    real_slots: Option<tokio::sync::Semaphore>,
    calls: AtomicUsize,
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Server {
    fn new(slots: usize, takes: Duration) -> Self {
        let replies = [r#"{"at": "a", "text": "done"}"#; 8].join(",");
        Self {
            answer: script(&replies),
            slots,
            takes,
            real_slots: None,
            calls: AtomicUsize::new(0),
            now: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        }
    }
}

/// A request that the server has, until it ends or is cancelled.
struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Model for Server {
    fn name(&self) -> &ModelName {
        self.answer.name()
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            let _running = Running(&self.now);
            self.most.fetch_max(now, Ordering::SeqCst);
            let _slot = match &self.real_slots {
                Some(slots) => Some(slots.acquire().await.unwrap()),
                None => None,
            };
            tokio::time::sleep(self.takes).await;
            self.answer.stream(request).await
        })
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        self.answer.context_size()
    }

    fn slots(&self) -> BoxFuture<'_, Option<usize>> {
        Box::pin(async { Some(self.slots) })
    }
}
