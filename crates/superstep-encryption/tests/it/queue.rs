//! Requests on their way to the workers of a cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use superstep_conformance::block_on;
use superstep_core::checkpoint::{BoxFuture, CheckpointResult};
use superstep_core::driver::{QueuedRequest, RequestQueue, RequestRow, ThreadRequest};
use superstep_core::run::RunOptions;
use superstep_core::store::MemoryStore;
use superstep_core::{RunId, ThreadId, Timestamp, Value};
use superstep_encryption::EncryptedRequestQueue;

use crate::kit::{code, encryption};

/// A queue in memory, whose rows the test reads and changes.
#[derive(Default, Clone)]
struct Queue(Arc<Mutex<BTreeMap<RunId, RequestRow>>>);

impl RequestQueue for Queue {
    fn put<'a>(
        &'a self,
        id: RunId,
        thread: &'a ThreadId,
        request: &'a [u8],
        _: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Vec<u8>>> {
        let mut rows = self.0.lock().unwrap();
        let row = rows.entry(id).or_insert_with(|| RequestRow {
            thread: thread.clone(),
            request: request.to_vec(),
            reply: None,
        });
        let stored = row.request.clone();
        Box::pin(async { Ok(stored) })
    }

    fn get(&self, id: RunId) -> BoxFuture<'_, CheckpointResult<Option<RequestRow>>> {
        let row = self.0.lock().unwrap().get(&id).cloned();
        Box::pin(async { Ok(row) })
    }

    fn reply<'a>(&'a self, id: RunId, reply: &'a [u8]) -> BoxFuture<'a, CheckpointResult<()>> {
        if let Some(row) = self.0.lock().unwrap().get_mut(&id) {
            row.reply.get_or_insert_with(|| reply.to_vec());
        }
        Box::pin(async { Ok(()) })
    }

    fn sweep(&self, _: Timestamp, _: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async { Ok(0) })
    }

    fn erase_tenant<'a>(&'a self, _: &'a str) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async { Ok(0) })
    }
}

fn request(text: &str, thread: &ThreadId) -> Vec<u8> {
    let start = ThreadRequest::Start {
        input: Value::plain(text).unwrap(),
        context: None,
        metadata: None,
    };
    let request = QueuedRequest::new("graph", start, &RunOptions::default()).unwrap();
    request.to_bytes(thread)
}

#[test]
fn requests_and_replies_are_ciphertext_in_the_queue_and_what_they_were_outside() {
    block_on(async {
        let plain = Queue::default();
        let keys = Arc::new(MemoryStore::new());
        let queue = EncryptedRequestQueue::new(Arc::new(plain.clone()), encryption(keys.clone()));
        let (id, at) = (RunId::from_bytes([7; 16]), Timestamp(1));
        let thread = ThreadId::of_tenant("acme", "t").unwrap();
        let sent = request("secret", &thread);
        assert_eq!(queue.put(id, &thread, &sent, at).await.unwrap(), sent);
        assert_eq!(
            queue.put(id, &thread, &sent, at).await.unwrap(),
            sent,
            "again"
        );
        let other = request("other", &thread);
        assert_eq!(
            queue.put(id, &thread, &other, at).await.unwrap(),
            sent,
            "the first"
        );
        queue.reply(id, b"secret reply").await.unwrap();
        queue.reply(id, b"another").await.unwrap();
        // Another process reads it.
        let worker = EncryptedRequestQueue::new(Arc::new(plain.clone()), encryption(keys));
        let row = worker.get(id).await.unwrap().unwrap();
        assert_eq!((row.thread, row.request), (thread.clone(), sent));
        assert_eq!(row.reply.as_deref(), Some(&b"secret reply"[..]));
        let stored = plain.get(id).await.unwrap().unwrap();
        let reply = stored.reply.clone().unwrap();
        for bytes in [&stored.request, &reply] {
            assert!(!bytes.windows(6).any(|part| part == b"secret"));
        }
        // An id that was used for another tenant's thread leads to other bytes, not to that tenant's request.
        let foreign = ThreadId::of_tenant("evil", "t").unwrap();
        let asked = request("secret", &foreign);
        assert_ne!(queue.put(id, &foreign, &asked, at).await.unwrap(), asked);
        // A reply of another request does not pass for this one's.
        let two = RunId::from_bytes([8; 16]);
        queue.put(two, &thread, &other, at).await.unwrap();
        plain.reply(two, &reply).await.unwrap();
        assert_eq!(code(queue.get(two).await), "encryption-refused");
    });
}
