//! What nodes show, on its way through a bus that others can read.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use superstep::{LiveBus, LiveDelivery, LiveMessage, Subscription};
use superstep_conformance::block_on;
use superstep_conformance::sample::Owner;
use superstep_core::checkpoint::BoxFuture;
use superstep_core::driver::LiveEvent;
use superstep_core::{Epoch, FramePath, NodeName, Seq, TaskId, ThreadId, Value};
use superstep_encryption::EncryptedLiveBus;

use crate::kit::Kit;

/// Delivers what was published to the one subscription.
struct Bus {
    sender: Mutex<Sender<LiveMessage>>,
    receiver: Arc<Mutex<Receiver<LiveMessage>>>,
    /// Everything that went through it, as text.
    seen: Arc<Mutex<String>>,
}

struct Subscribed(Arc<Mutex<Receiver<LiveMessage>>>);

impl LiveBus for Bus {
    fn publish(&self, _: &ThreadId, notice: LiveMessage) {
        self.seen.lock().unwrap().push_str(&format!("{notice:?}\n"));
        self.sender.lock().unwrap().send(notice).unwrap();
    }

    fn subscribe(&self, _: &ThreadId) -> Box<dyn Subscription> {
        Box::new(Subscribed(self.receiver.clone()))
    }
}

impl Subscription for Subscribed {
    fn next(&mut self) -> BoxFuture<'_, LiveDelivery> {
        let next = self.0.lock().unwrap().try_recv();
        Box::pin(async move { next.map_or(LiveDelivery::Missed, LiveDelivery::Now) })
    }
}

fn event(index: u64, text: &str) -> LiveEvent {
    LiveEvent {
        frame: FramePath::root(),
        node: NodeName::new("chat").unwrap(),
        task: TaskId::from_bytes([7; 16]),
        step: 1,
        attempt: 1,
        epoch: Epoch(1),
        go: 9,
        index,
        stored: false,
        payload: Value::plain(text).unwrap(),
    }
}

#[test]
fn what_a_node_shows_is_ciphertext_on_the_bus_and_what_it_was_behind_it() {
    block_on(async {
        let (kit, thread) = (Kit::new(), ThreadId::of_tenant("acme", "t").unwrap());
        let (sender, receiver) = channel();
        let seen = Arc::new(Mutex::new(String::new()));
        let plain = Arc::new(Bus {
            sender: Mutex::new(sender),
            receiver: Arc::new(Mutex::new(receiver)),
            seen: seen.clone(),
        });
        let bus = EncryptedLiveBus::new(plain.clone(), kit.encryption.clone());
        // Before the process has written anything, it has no keys at hand, and drops what it would show in clear.
        bus.publish(&thread, LiveMessage::Live(event(0, "secret")));
        assert_eq!((bus.dropped(), seen.lock().unwrap().as_str()), (1, ""));
        Owner::started_at(&kit.db, &thread).await.unwrap();

        let shown = LiveMessage::Live(event(1, "secret"));
        bus.publish(&thread, shown.clone());
        bus.publish(&thread, LiveMessage::Entry(Seq(3)));
        let other = kit.again(|with| with);
        let mut subscribed =
            EncryptedLiveBus::new(plain.clone(), other.encryption).subscribe(&thread);
        assert_eq!(subscribed.next().await, LiveDelivery::Now(shown));
        let entry = LiveDelivery::Now(LiveMessage::Entry(Seq(3)));
        assert_eq!(subscribed.next().await, entry);
        assert!(!seen.lock().unwrap().contains("secret"));

        // What was planted, or is of another thread, counts as missed.
        plain.publish(&thread, LiveMessage::Live(event(2, "planted")));
        assert_eq!(subscribed.next().await, LiveDelivery::Missed);
        bus.publish(&thread, LiveMessage::Live(event(3, "secret")));
        let foreign = ThreadId::of_tenant("acme", "foreign").unwrap();
        let mut subscribed = bus.subscribe(&foreign);
        assert_eq!(subscribed.next().await, LiveDelivery::Missed);
    });
}
