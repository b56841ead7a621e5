//! HTTP as the clients of the trials speak it: a connection for each request, which can be cut after any byte of the reply.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value as Json;

/// A way to a server on loopback.
#[derive(Debug, Clone, Copy)]
pub(super) struct HttpClient {
    address: SocketAddr,
    /// How long the server may be silent.
    silence_max: Duration,
}

/// A request, which can be sent several times.
#[derive(Debug, Clone)]
pub(super) struct HttpRequest {
    method: &'static str,
    pub(super) path: String,
    headers: Vec<(&'static str, String)>,
    body: Option<Json>,
    /// The client hangs up after this many bytes of the reply.
    cut_after: Option<u64>,
}

/// A reply whose body is yet to be read.
#[derive(Debug)]
pub(super) struct HttpReply {
    pub(super) head: ReplyHead,
    pub(super) body: ReplyBody,
}

/// The first lines of a reply. Names of headers are in lower case.
#[derive(Debug, Clone, Default)]
pub(super) struct ReplyHead {
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, String>,
}

/// The body of a reply, as it arrives. Its end is an error unless the server meant it.
#[derive(Debug)]
pub(super) struct ReplyBody {
    reader: BufReader<CutStream>,
    left: BodyLeft,
}

/// What is left of a body.
#[derive(Debug, Clone, Copy)]
enum BodyLeft {
    Nothing,
    Bytes(u64),
    /// The length of a chunk comes next.
    NextChunk,
    /// So many bytes of a chunk.
    Chunk(u64),
    /// The line break after a chunk.
    ChunkEnd,
}

/// A connection that breaks after so many bytes.
#[derive(Debug)]
struct CutStream {
    stream: TcpStream,
    left: u64,
}

impl HttpRequest {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self {
            method: "GET",
            path: path.into(),
            headers: Vec::new(),
            body: None,
            cut_after: None,
        }
    }

    pub(super) fn post(path: impl Into<String>, body: Json) -> Self {
        Self {
            method: "POST",
            body: Some(body),
            ..Self::get(path)
        }
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn cut_after(mut self, bytes: Option<u64>) -> Self {
        self.cut_after = bytes;
        self
    }

    fn to_bytes(&self, address: SocketAddr) -> Vec<u8> {
        let body = self.body.as_ref().map(Json::to_string).unwrap_or_default();
        let mut text = format!(
            "{} {} HTTP/1.1\r\nhost: {address}\r\n",
            self.method, self.path
        );
        text.push_str("connection: close\r\ncontent-type: application/json\r\n");
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        text.into_bytes()
    }
}

impl HttpClient {
    pub(super) fn new(port: u16, silence_max: Duration) -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            silence_max,
        }
    }

    /// Sends a request, and returns when the head of the reply has arrived.
    pub(super) fn open(&self, request: &HttpRequest) -> io::Result<HttpReply> {
        let mut stream = TcpStream::connect_timeout(&self.address, CONNECT_MAX)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.silence_max))?;
        // At once: a server that reads half a request waits for the rest.
        stream.write_all(&request.to_bytes(self.address))?;
        let cut = CutStream {
            stream,
            left: request.cut_after.unwrap_or(u64::MAX),
        };
        HttpReply::read(BufReader::new(cut))
    }

    /// Sends a request, and returns the reply with its whole body, which is JSON or empty.
    pub(super) fn call(&self, request: &HttpRequest) -> io::Result<(ReplyHead, Json)> {
        let mut reply = self.open(request)?;
        let mut bytes = Vec::new();
        reply.body.read_to_end(&mut bytes)?;
        let json = match bytes.is_empty() {
            true => Json::Null,
            false => serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?,
        };
        Ok((reply.head, json))
    }
}

impl HttpReply {
    fn read(mut reader: BufReader<CutStream>) -> io::Result<Self> {
        let line = read_line(&mut reader)?;
        let status = line.strip_prefix("HTTP/1.1 ");
        let status = status.and_then(|rest| rest.get(..3)?.parse::<u16>().ok());
        let status = status.ok_or_else(|| invalid(format!("`{line}` begins no reply")))?;
        let mut headers = BTreeMap::new();
        loop {
            let line = read_line(&mut reader)?;
            if line.is_empty() {
                break;
            }
            let header = line.split_once(':');
            let (name, value) =
                header.ok_or_else(|| invalid(format!("`{line}` is not a header")))?;
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers.get("content-length");
        let left = match (headers.get("transfer-encoding"), length) {
            (Some(_), _) => BodyLeft::NextChunk,
            (None, Some(length)) => {
                let length = length.parse::<u64>();
                BodyLeft::Bytes(length.map_err(|_| invalid("the length is not a number"))?)
            }
            (None, None) => BodyLeft::Nothing,
        };
        Ok(Self {
            head: ReplyHead { status, headers },
            body: ReplyBody { reader, left },
        })
    }
}

impl ReplyHead {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

impl ReplyBody {
    fn read_at_most(&mut self, buffer: &mut [u8], left: u64) -> io::Result<usize> {
        let most = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        match self.reader.read(&mut buffer[..most])? {
            0 if most > 0 => Err(ErrorKind::UnexpectedEof.into()),
            read => Ok(read),
        }
    }

    fn next_chunk(&mut self) -> io::Result<BodyLeft> {
        let line = read_line(&mut self.reader)?;
        let length = line.split(';').next().unwrap_or_default().trim();
        let length = u64::from_str_radix(length, 16);
        match length.map_err(|_| invalid(format!("`{line}` is not the length of a chunk")))? {
            0 => {
                read_line(&mut self.reader)?;
                Ok(BodyLeft::Nothing)
            }
            length => Ok(BodyLeft::Chunk(length)),
        }
    }
}

impl Read for ReplyBody {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.left {
                BodyLeft::Nothing | BodyLeft::Bytes(0) => return Ok(0),
                BodyLeft::Bytes(left) => {
                    let read = self.read_at_most(buffer, left)?;
                    self.left = BodyLeft::Bytes(left - read as u64);
                    return Ok(read);
                }
                BodyLeft::NextChunk => self.left = self.next_chunk()?,
                BodyLeft::Chunk(left) => {
                    let read = self.read_at_most(buffer, left)?;
                    self.left = match left - read as u64 {
                        0 => BodyLeft::ChunkEnd,
                        left => BodyLeft::Chunk(left),
                    };
                    return Ok(read);
                }
                // Only now: what is in the chunk counts, also if the connection breaks right after it.
                BodyLeft::ChunkEnd => {
                    read_line(&mut self.reader)?;
                    self.left = BodyLeft::NextChunk;
                }
            }
        }
    }
}

impl Read for CutStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        let most = buffer
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.stream.read(&mut buffer[..most])?;
        self.left -= read as u64;
        Ok(read)
    }
}

/// Reads a line, and returns it without its end.
fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(line) => Ok(line.to_owned()),
        None => Err(ErrorKind::UnexpectedEof.into()),
    }
}

/// What no server may say.
pub(super) fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why.into())
}

const CONNECT_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Sends a request to a server that replies with a text and hangs up.
    fn answered(reply: &'static str, cut_after: Option<u64>) -> io::Result<(u16, String)> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 512];
            let length = stream.read(&mut request).unwrap();
            // The client may be gone by now.
            let _ = stream.write_all(reply.as_bytes());
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        let client = HttpClient::new(port, Duration::from_secs(5));
        let request = HttpRequest::get("/ok").header("last-event-id", "3-1");
        let opened = client.open(&request.cut_after(cut_after));
        let asked = server.join().unwrap();
        assert!(asked.starts_with("GET /ok HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("\r\nlast-event-id: 3-1\r\n"), "{asked}");
        let mut reply = opened?;
        let mut text = String::new();
        reply.body.read_to_string(&mut text)?;
        Ok((reply.head.status, text))
    }

    #[test]
    fn bodies_of_both_forms_are_read() {
        let whole = "HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\nab";
        assert_eq!(answered(whole, None).unwrap(), (409, "ab".to_owned()));
        let chunks =
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
        assert_eq!(answered(chunks, None).unwrap(), (200, "abc".to_owned()));
    }

    #[test]
    fn a_body_that_breaks_off_is_an_error_and_so_is_a_cut() {
        let half = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n";
        let broken = answered(half, None).unwrap_err();
        assert_eq!(broken.kind(), ErrorKind::UnexpectedEof);
        let whole = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab";
        for cut in 1..whole.len() as u64 {
            let cut = answered(whole, Some(cut)).unwrap_err();
            assert_eq!(cut.kind(), ErrorKind::ConnectionAborted);
        }
        assert!(answered(whole, Some(whole.len() as u64)).is_ok());
    }
}
