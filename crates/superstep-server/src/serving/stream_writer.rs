//! Writes a streamed response to a socket.

use std::io;
use std::time::Duration;

use axum::response::Response;
use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use http::response::Parts;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::serving::socket::ClientSocket;

/// Writes a response whose length is not known. Returns the socket after an orderly end, and `None` if the stream broke or the
/// client went away.
pub(super) async fn write_stream(
    mut socket: ClientSocket,
    response: Response,
) -> Option<ClientSocket> {
    let (parts, body) = response.into_parts();
    let head = head(&parts, jiff::Timestamp::now());
    drop(parts);
    socket.tcp.write_all(&head).await.ok()?;
    drop(head);
    let mut chunks = body.into_data_stream();
    loop {
        let next = tokio::select! {
            next = chunks.next() => next,
            is_there = socket.watch() => match is_there {
                true => continue,
                false => return None,
            },
        };
        match next {
            Some(Ok(chunk)) => {
                // In a box: a stream lasts for days, and waits for its client only now and then.
                let written = write_chunk(&mut socket.tcp, chunk);
                let written = tokio::time::timeout(CHUNK_TIME_MAX, written);
                Box::pin(written).await.ok()?.ok()?;
            }
            // The response stays without its end, by which the client sees that it is broken.
            Some(Err(_)) => return None,
            None => {
                socket.tcp.write_all(b"0\r\n\r\n").await.ok()?;
                return Some(socket);
            }
        }
    }
}

fn head(parts: &Parts, now: jiff::Timestamp) -> Vec<u8> {
    let status = parts.status;
    let reason = status.canonical_reason().unwrap_or_default();
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    for (name, value) in &parts.headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            head.extend_from_slice(part);
        }
    }
    let date = now.strftime("%a, %d %b %Y %H:%M:%S GMT");
    let rest = format!("transfer-encoding: chunked\r\ndate: {date}\r\n\r\n");
    head.extend_from_slice(rest.as_bytes());
    head
}

/// How long a client may take to receive a chunk. One that reads nothing would hold its connection forever.
const CHUNK_TIME_MAX: Duration = Duration::from_secs(300);

async fn write_chunk(tcp: &mut TcpStream, chunk: Bytes) -> io::Result<()> {
    // An empty chunk is the end of the body.
    if chunk.is_empty() {
        return Ok(());
    }
    let length = Bytes::from(format!("{:x}\r\n", chunk.len()));
    let mut framed = length.chain(chunk).chain(&b"\r\n"[..]);
    tcp.write_all_buf(&mut framed).await
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;

    async fn sockets() -> (ClientSocket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await;
        let (accepted, _) = listener.accept().await.unwrap();
        (ClientSocket::new(accepted), client.unwrap())
    }

    fn response(chunks: Vec<io::Result<&'static str>>) -> Response {
        let mut response = Response::new(Body::from_stream(futures_util::stream::iter(chunks)));
        let value = http::HeaderValue::from_static("no-store");
        response
            .headers_mut()
            .insert(http::header::CACHE_CONTROL, value);
        response
    }

    #[test]
    fn a_head_has_the_headers_and_the_date() {
        let (parts, _) = response(vec![]).into_parts();
        let head = head(&parts, jiff::Timestamp::UNIX_EPOCH);
        assert_eq!(
            String::from_utf8(head).unwrap(),
            "HTTP/1.1 200 OK\r\ncache-control: no-store\r\ntransfer-encoding: chunked\r\n\
             date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n"
        );
    }

    #[tokio::test]
    async fn a_stream_is_chunks_and_an_empty_one() {
        let (socket, mut client) = sockets().await;
        let chunks = vec![Ok("seventeen letters"), Ok(""), Ok("two")];
        let written = write_stream(socket, response(chunks)).await;
        drop(written.unwrap());
        let mut read = String::new();
        client.read_to_string(&mut read).await.unwrap();
        let (_, body) = read.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "11\r\nseventeen letters\r\n3\r\ntwo\r\n0\r\n\r\n");
    }

    #[tokio::test]
    async fn a_stream_that_breaks_has_no_end() {
        let (socket, mut client) = sockets().await;
        let chunks = vec![Ok("one"), Err(io::ErrorKind::ConnectionAborted.into())];
        assert!(write_stream(socket, response(chunks)).await.is_none());
        let mut read = String::new();
        client.read_to_string(&mut read).await.unwrap();
        assert!(read.ends_with("3\r\none\r\n"), "{read}");
    }

    #[tokio::test]
    async fn a_client_that_goes_away_ends_its_stream() {
        let (socket, mut client) = sockets().await;
        client.write_all(b"early").await.unwrap();
        drop(client);
        let endless = Body::from_stream(futures_util::stream::pending::<io::Result<Bytes>>());
        assert!(write_stream(socket, Response::new(endless)).await.is_none());
    }
}
