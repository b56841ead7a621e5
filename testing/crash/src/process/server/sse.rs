//! Server-sent events as they arrive: whole ones only, as clients keep them.

use std::io::{self, ErrorKind, Read};
use std::time::Instant;

use serde_json::Value as Json;

use super::http::invalid;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StreamedEvent {
    pub(super) name: String,
    pub(super) data: Json,
    pub(super) id: String,
}

/// Reads the events of a body.
#[derive(Debug)]
pub(super) struct EventReader<R> {
    body: R,
    /// What arrived and is not yet a whole event.
    buffer: Vec<u8>,
    bytes: u64,
    /// After which nothing more is waited for, however many heartbeats come.
    deadline: Instant,
}

impl<R: Read> EventReader<R> {
    pub(super) fn new(body: R, deadline: Instant) -> Self {
        Self {
            body,
            buffer: Vec::new(),
            bytes: 0,
            deadline,
        }
    }

    /// Returns how many bytes have arrived.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the next event; nothing if the server ended the stream.
    pub(super) fn next(&mut self) -> io::Result<Option<StreamedEvent>> {
        loop {
            while let Some(text) = self.take_block()? {
                if let Some(event) = StreamedEvent::parse(&text)? {
                    return Ok(Some(event));
                }
            }
            if Instant::now() > self.deadline {
                return Err(ErrorKind::TimedOut.into());
            }
            let mut piece = [0; 4_096];
            match self.body.read(&mut piece)? {
                0 if self.buffer.is_empty() => return Ok(None),
                0 => return Err(invalid("the stream ended within an event")),
                read => {
                    self.bytes += read as u64;
                    self.buffer.extend_from_slice(&piece[..read]);
                }
            }
        }
    }

    /// Takes the lines up to the next empty one.
    fn take_block(&mut self) -> io::Result<Option<String>> {
        let end = self.buffer.windows(4).position(|four| four == b"\r\n\r\n");
        let Some(end) = end else {
            return Ok(None);
        };
        let rest = self.buffer.split_off(end + 4);
        let mut block = std::mem::replace(&mut self.buffer, rest);
        block.truncate(end);
        String::from_utf8(block)
            .map(Some)
            .map_err(|_| invalid("an event is not UTF-8"))
    }
}

impl StreamedEvent {
    /// Returns nothing for a comment.
    fn parse(text: &str) -> io::Result<Option<Self>> {
        let mut event = Self {
            name: String::new(),
            data: Json::Null,
            id: String::new(),
        };
        for line in text.split("\r\n") {
            match line.split_once(": ") {
                Some(("", _)) => return Ok(None),
                Some(("event", name)) => event.name = name.to_owned(),
                Some(("id", id)) => event.id = id.to_owned(),
                Some(("data", data)) => {
                    let read = serde_json::from_str(data);
                    event.data = read.map_err(|_| invalid(format!("`{data}` is not JSON")))?;
                }
                _ => return Err(invalid(format!("`{line}` is not a line of an event"))),
            }
        }
        match event.name.is_empty() || event.id.is_empty() {
            true => Err(invalid(format!("`{text}` has no name or no id"))),
            false => Ok(Some(event)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    const STREAM: &str = "event: metadata\r\ndata: {\"attempt\":1}\r\nid: 0-0\r\n\r\n: heartbeat\r\n\r\nevent: values\r\ndata: {}\r\nid: 1-2\r\n\r\n";

    #[test]
    fn events_are_read_and_heartbeats_are_passed_over() {
        let mut reader = EventReader::new(STREAM.as_bytes(), soon());
        let first = reader.next().unwrap().unwrap();
        assert_eq!(first.data, json!({ "attempt": 1 }));
        let second = reader.next().unwrap().unwrap();
        assert_eq!(
            (second.name.as_str(), second.id.as_str()),
            ("values", "1-2")
        );
        assert_eq!(reader.next().unwrap(), None);
        assert_eq!(reader.bytes(), STREAM.len() as u64);
    }

    #[test]
    fn an_event_without_its_end_is_not_one() {
        let half = &STREAM.as_bytes()[..STREAM.len() - 1];
        let mut reader = EventReader::new(half, soon());
        assert!(reader.next().unwrap().is_some());
        assert!(reader.next().is_err());
    }
}
