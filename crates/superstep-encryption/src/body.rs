//! Bodies: where each belongs, and its encryption inside the envelope of core.
//!
//! What is encrypted is the plain body as a whole, so what comes out is what went in, byte for byte, whatever it is.

use superstep_core::checkpoint::AnswerBody;
use superstep_core::checkpoint::format::{BodyKind, RECORD_SEQ, unwrap_encrypted, wrap_encrypted};
use superstep_core::{InterruptId, RunId, Seq, TaskId, ThreadId, Value};

use crate::cipher::Place;
use crate::encryption::Reader;
use crate::error::EncryptionError;
use crate::keyring::TenantKeys;

/// The place of a body.
pub(crate) struct BodyPlace<'a> {
    kind: BodyKind,
    thread: &'a ThreadId,
    seq: Seq,
    place: Place,
}

impl<'a> BodyPlace<'a> {
    pub(crate) fn entry(thread: &'a ThreadId, seq: Seq) -> Self {
        Self::new(BodyKind::Entry, thread, seq)
    }

    pub(crate) fn snapshot(thread: &'a ThreadId, seq: Seq) -> Self {
        Self::new(BodyKind::Snapshot, thread, seq)
    }

    pub(crate) fn record(thread: &'a ThreadId, task: TaskId, key: &str) -> Self {
        Self::new(BodyKind::Record, thread, RECORD_SEQ)
            .with(|place| place.bytes(&task.to_bytes()).text(key))
    }

    pub(crate) fn interrupt(thread: &'a ThreadId, seq: Seq, id: InterruptId) -> Self {
        Self::new(BodyKind::Interrupt, thread, seq).with(|place| place.bytes(&id.to_bytes()))
    }

    pub(crate) fn request(thread: &'a ThreadId, id: RunId) -> Self {
        Self::new(BodyKind::Request, thread, RECORD_SEQ).with(|place| place.bytes(&id.to_bytes()))
    }

    fn new(kind: BodyKind, thread: &'a ThreadId, seq: Seq) -> Self {
        let place = thread_place("body", thread)
            .number(kind as u64)
            .number(seq.0);
        Self {
            kind,
            thread,
            seq,
            place,
        }
    }

    fn with(self, more: impl FnOnce(Place) -> Place) -> Self {
        Self {
            place: more(self.place),
            ..self
        }
    }

    /// Encrypts a body.
    pub(crate) fn hide(&self, keys: &TenantKeys, plain: &[u8]) -> Vec<u8> {
        let encrypted = keys.current().encrypt(&self.place, plain);
        wrap_encrypted(self.kind, self.thread, self.seq, &encrypted)
    }

    /// Decrypts a body.
    pub(crate) fn show(
        &self,
        reader: &Reader<'_>,
        stored: &[u8],
    ) -> Result<Vec<u8>, EncryptionError> {
        let what = || {
            let Self { thread, seq, .. } = self;
            format!("the {:?} of thread `{thread}` at {seq}", self.kind).to_lowercase()
        };
        match unwrap_encrypted(self.kind, self.thread, self.seq, stored)? {
            Some(encrypted) => reader.decrypt(&self.place, encrypted, what),
            None => reader.check_plain(what).map(|()| stored.to_vec()),
        }
    }
}

/// Returns the place of something that belongs to a thread.
pub(crate) fn thread_place(kind: &str, thread: &ThreadId) -> Place {
    Place::new(kind, thread.tenant()).text(thread.name())
}

fn answer_place(thread: &ThreadId, id: InterruptId) -> Place {
    thread_place("answer", thread).bytes(&id.to_bytes())
}

/// Returns the place of the name of a person who answered.
pub(crate) fn answerer_place(thread: &ThreadId, id: InterruptId) -> Place {
    thread_place("answerer", thread).bytes(&id.to_bytes())
}

/// The codec byte of an encrypted value. Codec 1 is JSON; a program without keys reports this one by name.
pub(crate) const CODEC_ENCRYPTED: u8 = 2;

/// Encrypts an answer. That a deadline passed is visible.
pub(crate) fn hide_answer(
    keys: &TenantKeys,
    thread: &ThreadId,
    id: InterruptId,
    answer: &AnswerBody,
) -> AnswerBody {
    match answer {
        AnswerBody::Value(value) => {
            let place = answer_place(thread, id);
            let encrypted = keys.current().encrypt(&place, value.as_bytes());
            AnswerBody::Value(Value::from_bytes(
                [&[CODEC_ENCRYPTED][..], &encrypted].concat(),
            ))
        }
        AnswerBody::Expired => AnswerBody::Expired,
    }
}

/// Decrypts an answer.
pub(crate) fn show_answer(
    reader: &Reader<'_>,
    thread: &ThreadId,
    id: InterruptId,
    answer: &AnswerBody,
) -> Result<AnswerBody, EncryptionError> {
    let AnswerBody::Value(value) = answer else {
        return Ok(AnswerBody::Expired);
    };
    let what = || format!("the answer to interrupt `{id}` of thread `{thread}`");
    match value.as_bytes().split_first() {
        Some((&CODEC_ENCRYPTED, encrypted)) => {
            let plain = reader.decrypt(&answer_place(thread, id), encrypted, what)?;
            Ok(AnswerBody::Value(Value::from_bytes(plain)))
        }
        _ => reader.check_plain(what).map(|()| answer.clone()),
    }
}
