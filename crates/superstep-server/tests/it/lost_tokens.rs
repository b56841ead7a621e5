//! Messages whose tokens do not all arrive, as when the Redis of a cluster is away: they come as a whole with the log.

use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};
use superstep::checkpoint::BoxFuture;
use superstep::driver::LiveEvent;
use superstep::label::Labels;
use superstep::prelude::*;
use superstep::registry::MemoryRegistry;
use superstep::{LiveBus, LiveDelivery, LiveMessage, Subscription, ThreadId};
use superstep_agent::ChatMessage;
use superstep_llm::Message;
use superstep_server::Server;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::streams::StreamClient;

/// A bus that loses the live events with these numbers.
struct LossyBus {
    lost: &'static [u64],
    watchers: Mutex<Vec<(ThreadId, UnboundedSender<LiveMessage>)>>,
}

impl LiveBus for LossyBus {
    fn publish(&self, thread: &ThreadId, message: LiveMessage) {
        if let LiveMessage::Live(LiveEvent { index, .. }) = &message
            && self.lost.contains(index)
        {
            return;
        }
        for (watched, watcher) in self.watchers.lock().unwrap().iter() {
            if watched == thread {
                drop(watcher.send(message.clone()));
            }
        }
    }

    fn subscribe(&self, thread: &ThreadId) -> Box<dyn Subscription> {
        let (watcher, messages) = unbounded_channel();
        self.watchers
            .lock()
            .unwrap()
            .push((thread.clone(), watcher));
        Box::new(Messages(messages))
    }
}

struct Messages(UnboundedReceiver<LiveMessage>);

impl Subscription for Messages {
    fn next(&mut self) -> BoxFuture<'_, LiveDelivery> {
        Box::pin(async {
            match self.0.recv().await {
                Some(message) => LiveDelivery::Now(message),
                None => std::future::pending().await,
            }
        })
    }
}

#[derive(Clone, Debug, Default, State)]
struct Talk {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    topic: String,
}

/// Shows three tokens and the end of the message, which are the live events 0 to 3.
async fn speak(_: View<Talk>, cx: NodeCx) -> Result<TalkUpdate, NodeError> {
    let id = cx.message_id(0);
    for text in ["one ", "two ", "three"] {
        cx.emit_live(json!({ "event": "token", "message": id, "text": text }))?;
        tokio::task::yield_now().await;
    }
    cx.emit_live(json!({
        "event": "model_ended", "message": id, "input_tokens": 3, "output_tokens": 3,
    }))?;
    let message = ChatMessage::new(Message::assistant("one two three"), Labels::NONE);
    Ok(TalkUpdate::default().messages(message.with_id(id)))
}

/// Returns the messages of a stream in this mode, on whose way these live events were lost: type and text of each event.
async fn streamed(mode: &str, lost: &'static [u64]) -> Vec<(String, String)> {
    let graph = Graph::builder("talk")
        .node("speak", speak)
        .edge(START, "speak")
        .edge("speak", END)
        .inputs(["topic"])
        .build()
        .unwrap();
    let bus = LossyBus {
        lost,
        watchers: Mutex::default(),
    };
    let runtime = Runtime::builder(Memory::default()).live_bus(bus).build();
    let server = Server::builder(runtime, Arc::new(MemoryRegistry::new()))
        .graph(graph.definition())
        .start()
        .await
        .unwrap();
    let client = StreamClient::of(server);
    let thread = client.thread().await;
    let body =
        json!({ "assistant_id": "talk", "input": { "topic": "tea" }, "stream_mode": [mode] });
    let opened = client.post(&format!("{thread}/runs/stream"), body).await;
    let events = opened.read_all().await.into_iter();
    let is_message = |name: &str| name == "messages" || name == "messages/complete";
    let messages = events.filter(|event| is_message(&event.name));
    let text = |json: &Json| json.as_str().unwrap().to_owned();
    messages
        .map(|event| {
            (
                text(&event.data[0]["type"]),
                text(&event.data[0]["content"]),
            )
        })
        .collect()
}

fn chunk(text: &str) -> (String, String) {
    ("AIMessageChunk".to_owned(), text.to_owned())
}

fn whole() -> (String, String) {
    ("ai".to_owned(), "one two three".to_owned())
}

#[tokio::test]
async fn a_message_that_arrived_completely_does_not_come_again() {
    let all = streamed("messages-tuple", &[]).await;
    let chunks = ["one ", "two ", "three", ""].map(chunk);
    assert_eq!(all, chunks);
}

#[tokio::test]
async fn a_message_without_its_beginning_middle_or_end_comes_as_a_whole() {
    let without = async |lost: &'static [u64]| streamed("messages-tuple", lost).await;
    let (one, two, three) = (chunk("one "), chunk("two "), chunk("three"));
    let beginning = [two.clone(), three.clone(), chunk(""), whole()];
    assert_eq!(without(&[0]).await, beginning);
    let middle = [one.clone(), three.clone(), chunk(""), whole()];
    assert_eq!(without(&[1]).await, middle);
    // The task ended, and so did the message for those who did not hear of its end.
    let end = [one, two, chunk(""), whole()];
    assert_eq!(without(&[2, 3]).await, end);
    assert_eq!(without(&[0, 1, 2, 3]).await, [whole()]);
}

#[tokio::test]
async fn a_message_without_a_middle_is_complete_in_the_older_mode_too() {
    let lost = streamed("messages", &[1]).await;
    assert_eq!(lost, [whole()]);
}

#[tokio::test]
async fn a_message_of_which_only_the_end_is_not_known_does_not_come_again() {
    let lost = streamed("messages-tuple", &[3]).await;
    let chunks = ["one ", "two ", "three", ""].map(chunk);
    assert_eq!(lost, chunks);
}
