//! The envelope around everything stored: `format · kind · envelope · checksum · content`.
//!
//! The checksum covers the first three bytes, the content, and the place that the content is sealed for, so it detects both a
//! flipped bit and a row that was moved to another thread. This module does not know what the content means.

use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::checkpoint::format::{BodyKind, FORMAT};
use crate::error::FormatError;
use crate::ids::{Seq, ThreadId};
use crate::scratch::with_scratch;

/// What content is sealed as, and for which place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seal<'a> {
    kind: BodyKind,
    /// `None` for an archive, which is not a row: its thread is named in its content.
    row: Option<(&'a ThreadId, Seq)>,
}

impl<'a> Seal<'a> {
    /// Seals a row of a thread.
    pub(super) fn of_row(kind: BodyKind, thread: &'a ThreadId, seq: Seq) -> Self {
        let row = Some((thread, seq));
        Self { kind, row }
    }

    /// Seals a whole thread on its way from one store to another.
    pub(super) fn of_archive() -> Self {
        Self {
            kind: BodyKind::Archive,
            row: None,
        }
    }

    /// Returns the content in its stored form.
    pub(super) fn close(self, content: &impl Serialize) -> Vec<u8> {
        let header = [FORMAT, self.kind as u8, ENVELOPE_PLAIN];
        with_scratch(|scratch| {
            // The content goes right behind what else the checksum covers: one pass over both is quicker than two.
            self.write_place(header, scratch);
            let place = scratch.len();
            postcard::serialize_with_flavor(content, Append(scratch))
                .expect("plain data in memory always encodes");
            let sum = crc32fast::hash(scratch);
            let content = &scratch[place..];
            let mut bytes = Vec::with_capacity(HEADER_BYTES + content.len());
            bytes.extend_from_slice(&header);
            bytes.extend_from_slice(&sum.to_le_bytes());
            bytes.extend_from_slice(content);
            bytes
        })
    }

    /// Decodes stored bytes, or says what is wrong with them.
    pub(super) fn read<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, FormatError> {
        let content = self.open(bytes)?;
        let (read, rest) =
            postcard::take_from_bytes(content).map_err(|e| self.unreadable(e.to_string()))?;
        if !rest.is_empty() {
            return Err(self.unreadable(format!("{} bytes are left over", rest.len())));
        }
        Ok(read)
    }

    /// Returns bytes of another program's encryption in the envelope for them, see
    /// [`wrap_encrypted`](crate::checkpoint::format::wrap_encrypted).
    pub(super) fn wrap_encrypted(self, content: &[u8]) -> Vec<u8> {
        let header = [FORMAT, self.kind as u8, ENVELOPE_ENCRYPTED];
        let sum = self.checksum(header, content);
        [&header, &sum.to_le_bytes()[..], content].concat()
    }

    /// Returns the content of an encrypted body; `None` if the body is not encrypted.
    pub(super) fn unwrap_encrypted(self, bytes: &[u8]) -> Result<Option<&[u8]>, FormatError> {
        if bytes.len() < HEADER_BYTES || bytes[2] != ENVELOPE_ENCRYPTED {
            return Ok(None);
        }
        self.open_envelope(bytes).map(|(_, content)| Some(content))
    }

    /// Checks that the seal is intact and of this kind and place, whatever the envelope: a store and an archive carry encrypted
    /// bodies without the keys.
    pub(super) fn check(self, bytes: &[u8]) -> Result<(), FormatError> {
        self.open_envelope(bytes).map(|_| ())
    }

    /// Returns the content inside, if the seal is intact and of this kind and place.
    pub(super) fn open(self, bytes: &[u8]) -> Result<&[u8], FormatError> {
        match self.open_envelope(bytes)? {
            (ENVELOPE_PLAIN, content) => Ok(content),
            (envelope, _) => Err(FormatError::Envelope { envelope }),
        }
    }

    /// Returns the envelope and what is in it, if both are as they were sealed for this kind and place.
    fn open_envelope(self, bytes: &[u8]) -> Result<(u8, &[u8]), FormatError> {
        let Some((head, content)) = bytes.split_at_checked(HEADER_BYTES) else {
            return Err(self.damaged());
        };
        let header = [head[0], head[1], head[2]];
        let stored = u32::from_le_bytes([head[3], head[4], head[5], head[6]]);
        if self.checksum(header, content) != stored {
            return Err(self.damaged());
        }
        if header[0] > FORMAT {
            return Err(FormatError::Newer {
                found: header[0],
                known: FORMAT,
            });
        }
        if ![ENVELOPE_PLAIN, ENVELOPE_ENCRYPTED].contains(&header[2]) {
            return Err(FormatError::Envelope {
                envelope: header[2],
            });
        }
        if header[1] != self.kind as u8 {
            let why = format!("it is of kind {}, not {}", header[1], self.kind as u8);
            return Err(self.unreadable(why));
        }
        Ok((header[2], content))
    }

    fn checksum(self, header: [u8; 3], content: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        // Collected first: hashing a few bytes at a time costs more than hashing all of them at once.
        with_scratch(|place| {
            self.write_place(header, place);
            hasher.update(place);
        });
        hasher.update(content);
        hasher.finalize()
    }

    /// Appends what the checksum covers besides the content.
    fn write_place(self, header: [u8; 3], place: &mut Vec<u8>) {
        place.extend_from_slice(&header);
        if let Some((thread, seq)) = self.row {
            for part in [thread.tenant(), thread.name()] {
                place.extend_from_slice(&(part.len() as u32).to_le_bytes());
                place.extend_from_slice(part.as_bytes());
            }
            place.extend_from_slice(&seq.0.to_le_bytes());
        }
    }

    fn damaged(self) -> FormatError {
        let Some((thread, seq)) = self.row else {
            return FormatError::ArchiveDamaged;
        };
        let thread = thread.to_string();
        FormatError::Damaged { thread, seq }
    }

    fn unreadable(self, why: String) -> FormatError {
        let Some((thread, seq)) = self.row else {
            return FormatError::ArchiveContent { why };
        };
        let thread = thread.to_string();
        FormatError::Content { thread, seq, why }
    }
}

/// The content is stored as it is.
const ENVELOPE_PLAIN: u8 = 0;
/// The content is a whole plain body, encrypted: `key id · nonce · ciphertext`, which only a program with the key can read.
const ENVELOPE_ENCRYPTED: u8 = 1;

const HEADER_BYTES: usize = 3 + 4;

/// Appends what postcard writes to a list of bytes.
struct Append<'a>(&'a mut Vec<u8>);

impl Flavor for Append<'_> {
    type Output = ();

    fn try_extend(&mut self, data: &[u8]) -> postcard::Result<()> {
        match data {
            // Most numbers take one byte.
            [byte] => self.0.push(*byte),
            data => self.0.extend_from_slice(data),
        }
        Ok(())
    }

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}
