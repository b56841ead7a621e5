//! A connection to a server: HTTP/1.1, kept alive.
//!
//! It does as little as possible, because the load shares the processors with the server, and because ten thousand streams are
//! open at once.

use std::net::SocketAddr;

use anyhow::{Context, bail, ensure};
use serde_json::Value as Json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection, for one request after the other.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    address: SocketAddr,
    /// What was received and not read yet.
    received: Vec<u8>,
    /// What is left of the body of the last response.
    rest: RemainingBody,
    /// The part of a stream of events that was read and not returned yet.
    text: Vec<u8>,
    /// A header with the caller's API key, or nothing.
    key: String,
}

/// What is left of the body of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RemainingBody {
    Bytes(usize),
    /// As many chunks as come until an empty one.
    Chunks,
}

/// A server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerEvent {
    pub(super) name: String,
    pub(super) data: String,
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await;
        let stream = stream.with_context(|| format!("no server answers at {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            address,
            received: Vec::new(),
            rest: RemainingBody::Bytes(0),
            text: Vec::new(),
            key: String::new(),
        })
    }

    /// Opens a connection of a caller with an API key.
    pub(super) async fn open_with_key(address: SocketAddr, key: &str) -> anyhow::Result<Self> {
        let key = format!("x-api-key: {key}\r\n");
        Ok(Self {
            key,
            ..Self::open(address).await?
        })
    }

    /// Sends a request, reads the whole response and returns its status, whatever that is.
    pub(super) async fn status_of(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> anyhow::Result<u16> {
        let status = self.send(method, path, body).await?;
        self.read_rest().await?;
        Ok(status)
    }

    /// Sends a request and returns the body of the response, which must be one of success.
    pub(super) async fn call(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> anyhow::Result<Vec<u8>> {
        self.open_stream(method, path, body).await?;
        self.read_rest().await
    }

    /// Sends a request and returns the JSON of the response.
    pub(super) async fn json(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> anyhow::Result<Json> {
        let reply = self.call(method, path, body).await?;
        serde_json::from_slice(&reply).with_context(|| format!("{path} did not answer in JSON"))
    }

    /// Sends a request and reads the head of the response, which must be one of success. Its events come from
    /// [`Connection::next_event`]; all of them must be read before the next request.
    pub(super) async fn open_stream(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> anyhow::Result<()> {
        let status = self.send(method, path, body).await?;
        if !(200..300).contains(&status) {
            let reply = self.read_rest().await?;
            let reply = String::from_utf8_lossy(&reply).into_owned();
            bail!("{method} {path}: {status}: {reply}");
        }
        Ok(())
    }

    /// Returns the next event; `None` after the last one. Comments, which are heartbeats, are passed over.
    pub(super) async fn next_event(&mut self) -> anyhow::Result<Option<ServerEvent>> {
        loop {
            if let Some(event) = take_event(&mut self.text) {
                return Ok(Some(event));
            }
            let mut text = std::mem::take(&mut self.text);
            let is_read = self.read_part(&mut text).await;
            self.text = text;
            if !is_read? {
                return Ok(None);
            }
        }
    }

    /// Sends a request and reads the head of the response.
    async fn send(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<u16> {
        self.text.clear();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\n{}content-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.address,
            self.key,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.read_head().await
    }

    async fn read_rest(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut body = Vec::new();
        while self.read_part(&mut body).await? {}
        Ok(body)
    }

    /// Reads the status and the headers of a response.
    async fn read_head(&mut self) -> anyhow::Result<u16> {
        let end = self.receive_until(b"\r\n\r\n").await?;
        let head = String::from_utf8_lossy(&self.received[..end]).into_owned();
        self.received.drain(..end + 4);
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let status = status.and_then(|status| status.parse().ok());
        self.rest = RemainingBody::Bytes(0);
        for line in lines {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            if name.eq_ignore_ascii_case("content-length") {
                self.rest = RemainingBody::Bytes(value.trim().parse()?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                self.rest = RemainingBody::Chunks;
            }
        }
        status.with_context(|| format!("`{head}` is not the head of a response"))
    }

    /// Appends the next part of the body. Returns whether there was one.
    async fn read_part(&mut self, out: &mut Vec<u8>) -> anyhow::Result<bool> {
        let left = match self.rest {
            RemainingBody::Bytes(0) => return Ok(false),
            RemainingBody::Bytes(left) => left,
            RemainingBody::Chunks => return self.read_chunk(out).await,
        };
        if self.received.is_empty() {
            self.receive().await?;
        }
        let taken = left.min(self.received.len());
        out.extend(self.received.drain(..taken));
        self.rest = RemainingBody::Bytes(left - taken);
        Ok(true)
    }

    async fn read_chunk(&mut self, out: &mut Vec<u8>) -> anyhow::Result<bool> {
        let start = self.receive_until(b"\r\n").await? + 2;
        let size = chunk_size(&self.received[..start])?;
        // A line break follows the bytes.
        let end = start + size + 2;
        while self.received.len() < end {
            self.receive().await?;
        }
        out.extend_from_slice(&self.received[start..start + size]);
        self.received.drain(..end);
        if size == 0 {
            self.rest = RemainingBody::Bytes(0);
        }
        Ok(size > 0)
    }

    /// Receives until these bytes are there, and returns where.
    async fn receive_until(&mut self, wanted: &[u8]) -> anyhow::Result<usize> {
        loop {
            let mut places = self.received.windows(wanted.len());
            if let Some(place) = places.position(|bytes| bytes == wanted) {
                return Ok(place);
            }
            self.receive().await?;
        }
    }

    async fn receive(&mut self) -> anyhow::Result<()> {
        self.received.reserve(RECEIVED_AT_ONCE);
        let count = self.stream.read_buf(&mut self.received).await?;
        ensure!(count > 0, "the server closed the connection");
        Ok(())
    }
}

/// Reads the line before a chunk: its size, and extensions that nobody uses.
fn chunk_size(line: &[u8]) -> anyhow::Result<usize> {
    let line = std::str::from_utf8(line)?;
    let size = line.split(';').next().unwrap_or_default();
    usize::from_str_radix(size.trim(), 16)
        .with_context(|| format!("`{line}` is not the size of a chunk"))
}

/// Takes the first whole event out of a text, with the comments before it.
fn take_event(text: &mut Vec<u8>) -> Option<ServerEvent> {
    while let Some(end) = end_of_block(text) {
        let block: Vec<u8> = text.drain(..end).collect();
        let block = String::from_utf8_lossy(&block);
        let field = |name: &str| {
            let value = block.lines().find_map(|line| line.strip_prefix(name));
            value.map(str::to_owned)
        };
        if let (Some(name), Some(data)) = (field("event: "), field("data: ")) {
            return Some(ServerEvent { name, data });
        }
    }
    None
}

/// Returns where the first blank line ends.
fn end_of_block(text: &[u8]) -> Option<usize> {
    let mut start = 0;
    loop {
        let length = text[start..].iter().position(|byte| *byte == b'\n')? + 1;
        let line = &text[start..start + length];
        start += length;
        if line == b"\n" || line == b"\r\n" {
            return Some(start);
        }
    }
}

/// Small, because many streams are open at once.
const RECEIVED_AT_ONCE: usize = 4096;

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn events_are_taken_one_by_one_and_heartbeats_are_passed_over() {
        let mut text = b": heartbeat\r\n\r\nevent: values\r\ndata: {\"n\":1}\r\nid: 3-1\r\n\r\nevent: end\ndata: 2\n\nevent: x"
            .to_vec();
        let event = |name: &str, data: &str| ServerEvent {
            name: name.to_owned(),
            data: data.to_owned(),
        };
        assert_eq!(take_event(&mut text), Some(event("values", "{\"n\":1}")));
        assert_eq!(take_event(&mut text), Some(event("end", "2")));
        assert_eq!(take_event(&mut text), None);
        assert_eq!(text, b"event: x");
    }

    #[tokio::test]
    async fn bodies_of_both_kinds_are_read_from_one_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let replies = [
                "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}",
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n[1,\r\n2;x\r\n2]\r\n0\r\n\r\n",
                "HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\ngone",
            ];
            for reply in replies {
                let mut request = vec![0; 1024];
                assert!(stream.read(&mut request).await.unwrap() > 0);
                // In pieces, which may end anywhere.
                let (first, second) = reply.split_at(reply.len() - 5);
                stream.write_all(first.as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
                stream.write_all(second.as_bytes()).await.unwrap();
            }
        };
        let ask = async {
            let mut connection = Connection::open(address).await.unwrap();
            let first = connection.json("GET", "/a", "").await.unwrap();
            let second = connection.json("GET", "/b", "").await.unwrap();
            let third = connection.json("GET", "/c", "").await.unwrap_err();
            (first, second, third.to_string())
        };
        let ((), replies) = tokio::join!(serve, ask);
        let (first, second, third) = replies;
        assert_eq!(first, serde_json::json!({ "a": 1 }));
        assert_eq!(second, serde_json::json!([1, 2]));
        assert_eq!(third, "GET /c: 404: gone");
    }
}
