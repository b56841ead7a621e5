//! A queue of requests between callers and workers that stores ciphertext and returns what was stored.

use std::fmt;
use std::sync::Arc;

use superstep_core::checkpoint::{BoxFuture, CheckpointResult};
use superstep_core::driver::{RequestQueue, RequestRow};
use superstep_core::{RunId, ThreadId, Timestamp};

use crate::body::{BodyPlace, thread_place};
use crate::cipher::Place;
use crate::encryption::{Encryption, Reader};
use crate::error::EncryptionError;

/// A [`RequestQueue`] in front of another one, which gets nothing but ciphertext of requests and replies.
#[derive(Clone)]
pub struct EncryptedRequestQueue {
    inner: Arc<dyn RequestQueue>,
    encryption: Encryption,
}

impl EncryptedRequestQueue {
    /// Creates a queue that encrypts what it stores in another one.
    pub fn new(inner: Arc<dyn RequestQueue>, encryption: Encryption) -> Self {
        Self { inner, encryption }
    }
}

/// Begins an encrypted reply. No reply of ours begins with a zero.
const ENCRYPTED_REPLY: &[u8] = b"\0superstep 1\0";

fn reply_place(thread: &ThreadId, id: RunId) -> Place {
    thread_place("reply", thread).bytes(&id.to_bytes())
}

fn show_reply(
    reader: &Reader<'_>,
    thread: &ThreadId,
    id: RunId,
    reply: &[u8],
) -> Result<Vec<u8>, EncryptionError> {
    let what = || format!("the reply to request `{id}` of thread `{thread}`");
    match reply.strip_prefix(ENCRYPTED_REPLY) {
        Some(encrypted) => reader.decrypt(&reply_place(thread, id), encrypted, what),
        None => reader.check_plain(what).map(|()| reply.to_vec()),
    }
}

impl RequestQueue for EncryptedRequestQueue {
    fn put<'a>(
        &'a self,
        id: RunId,
        thread: &'a ThreadId,
        request: &'a [u8],
        at: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Vec<u8>>> {
        Box::pin(async move {
            let keys = self.encryption.keys_to_write(thread.tenant()).await?;
            let place = BodyPlace::request(thread, id);
            let hidden = place.hide(&keys, request);
            let stored = self.inner.put(id, thread, &hidden, at).await?;
            if stored == hidden {
                return Ok(request.to_vec());
            }
            // The id may have been used for another thread, perhaps of another tenant: the caller finds another request, in either form.
            let row = self.inner.get(id).await?;
            if row.is_some_and(|row| row.thread != *thread) {
                return Ok(stored);
            }
            let show = |reader: &Reader<'_>| place.show(reader, &stored);
            Ok(self.encryption.read(thread.tenant(), show).await?)
        })
    }

    fn get(&self, id: RunId) -> BoxFuture<'_, CheckpointResult<Option<RequestRow>>> {
        Box::pin(async move {
            let Some(row) = self.inner.get(id).await? else {
                return Ok(None);
            };
            let show = |reader: &Reader<'_>| {
                let reply = row.reply.as_deref();
                let show = |reply| show_reply(reader, &row.thread, id, reply);
                Ok(RequestRow {
                    thread: row.thread.clone(),
                    request: BodyPlace::request(&row.thread, id).show(reader, &row.request)?,
                    reply: reply.map(show).transpose()?,
                })
            };
            Ok(Some(self.encryption.read(row.thread.tenant(), show).await?))
        })
    }

    /// Reads the request first: it names the thread, to whose tenant the reply belongs.
    fn reply<'a>(&'a self, id: RunId, reply: &'a [u8]) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            let Some(row) = self.inner.get(id).await? else {
                // Nobody can read it, and it must not be stored in clear.
                return Ok(());
            };
            let keys = self.encryption.keys_to_write(row.thread.tenant()).await?;
            let encrypted = keys.current().encrypt(&reply_place(&row.thread, id), reply);
            let hidden = [ENCRYPTED_REPLY, &encrypted].concat();
            self.inner.reply(id, &hidden).await
        })
    }

    fn sweep(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        self.inner.sweep(before, limit)
    }

    fn erase_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<u64>> {
        self.inner.erase_tenant(tenant)
    }

    fn now(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        self.inner.now()
    }
}

impl fmt::Debug for EncryptedRequestQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptedRequestQueue")
            .field("encryption", &self.encryption)
            .finish_non_exhaustive()
    }
}
