//! Requests and streams that share a connection, over real sockets.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::streams::StreamClient;

/// A server that listens.
struct ListeningServer {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinSet<()>,
}

impl ListeningServer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = StreamClient::new().await;
        let (stop, stopped) = oneshot::channel();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let stopped = async { drop(stopped.await) };
            client.server.serve(listener, stopped).await.unwrap();
        });
        Self {
            address,
            stop,
            serving,
        }
    }

    /// Stops the server, and waits until it has cut or served every connection.
    async fn stop(mut self) {
        self.stop.send(()).unwrap();
        self.serving.join_next().await.unwrap().unwrap();
    }
}

/// One connection to a server.
struct RawConnection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl RawConnection {
    async fn open(server: &ListeningServer) -> Self {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let read = Vec::new();
        Self { stream, read }
    }

    async fn send(&mut self, requests: &str) {
        self.stream.write_all(requests.as_bytes()).await.unwrap();
    }

    /// Reads up to a text and returns everything before it.
    async fn read_to(&mut self, end: &str) -> String {
        loop {
            let found = self.read.windows(end.len());
            let found = found.into_iter().position(|part| part == end.as_bytes());
            if let Some(place) = found {
                let rest = self.read.split_off(place + end.len());
                let read = std::mem::replace(&mut self.read, rest);
                return String::from_utf8_lossy(&read[..place]).into_owned();
            }
            assert!(self.fill().await, "the connection ended before {end:?}");
        }
    }

    /// Reads more. Returns whether the connection is still open.
    async fn fill(&mut self) -> bool {
        let read = self.stream.read_buf(&mut self.read);
        let read = tokio::time::timeout(Duration::from_secs(20), read).await;
        read.expect("something comes in time").unwrap_or(0) > 0
    }

    /// Reads a response. Returns its head and its body, which must have a length or be in chunks.
    async fn response(&mut self) -> (String, String) {
        let head = self.read_to("\r\n\r\n").await;
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let body = match length {
            Some(length) => self.take(length.parse().unwrap()).await,
            None => self.chunks().await,
        };
        (head, body)
    }

    async fn chunks(&mut self) -> String {
        let mut body = String::new();
        loop {
            let length = self.read_to("\r\n").await;
            let length = usize::from_str_radix(&length, 16).unwrap();
            body.push_str(&self.take(length).await);
            assert_eq!(self.take(2).await, "\r\n");
            if length == 0 {
                return body;
            }
        }
    }

    async fn take(&mut self, length: usize) -> String {
        while self.read.len() < length {
            assert!(self.fill().await, "the connection ended in a body");
        }
        let rest = self.read.split_off(length);
        String::from_utf8(std::mem::replace(&mut self.read, rest)).unwrap()
    }

    async fn thread(&mut self) -> String {
        self.send(&post("/threads", &json!({}))).await;
        let (_, body) = self.response().await;
        let created: Json = serde_json::from_str(&body).unwrap();
        format!("/threads/{}", created["thread_id"].as_str().unwrap())
    }
}

fn post(path: &str, body: &Json) -> String {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

fn run(thread: &str) -> String {
    let body =
        json!({ "assistant_id": "two", "input": { "topic": "tea" }, "stream_mode": "values" });
    post(&format!("{thread}/runs/stream"), &body)
}

#[tokio::test]
async fn requests_follow_a_stream_on_its_connection() {
    let server = ListeningServer::start().await;
    let mut connection = RawConnection::open(&server).await;
    let thread = connection.thread().await;
    for _ in 0..2 {
        connection.send(&run(&thread)).await;
        let (head, body) = connection.response().await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(
            head.contains("\r\ncontent-type: text/event-stream"),
            "{head}"
        );
        assert!(head.contains("\r\nlocation: "), "{head}");
        assert!(head.contains("\r\ndate: "), "{head}");
        assert!(body.starts_with("event: metadata\r\n"), "{body}");
        assert!(body.contains("event: values\r\n"), "{body}");
    }
    connection.send(&get("/ok")).await;
    assert_eq!(connection.response().await.1, r#"{"ok":true}"#);
    // Requests that come before the stream has ended wait for their turn.
    let requests = [
        get("/ok"),
        run(&thread),
        get("/ok"),
        run(&thread),
        get("/ok"),
    ];
    connection.send(&requests.concat()).await;
    for is_stream in [false, true, false, true, false] {
        let (_, body) = connection.response().await;
        assert_eq!(body.starts_with("event: metadata\r\n"), is_stream, "{body}");
    }
}

#[tokio::test]
async fn the_body_of_a_request_is_not_the_next_request() {
    let server = ListeningServer::start().await;
    let mut connection = RawConnection::open(&server).await;
    let thread = connection.thread().await;
    connection.send(&run(&thread)).await;
    let (head, _) = connection.response().await;
    let joined = head
        .lines()
        .find_map(|line| line.strip_prefix("location: "));
    let body = format!("DELETE {thread} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let request = format!(
        "GET {} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
        joined.unwrap(),
        body.len()
    );
    connection.send(&request).await;
    connection.response().await;
    // The server may close the connection, or skip the body; it has some time to do neither.
    let answer = connection.fill();
    let answer = tokio::time::timeout(Duration::from_millis(300), answer).await;
    assert!(answer != Ok(true), "the body was answered");
    let mut other = RawConnection::open(&server).await;
    other.send(&get(&thread)).await;
    let (head, _) = other.response().await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
}

#[tokio::test]
async fn a_client_that_wants_no_further_request_gets_none() {
    let server = ListeningServer::start().await;
    let mut connection = RawConnection::open(&server).await;
    let thread = connection.thread().await;
    let request = run(&thread).replace("host:", "connection: close\r\nhost:");
    connection.send(&request).await;
    connection.response().await;
    assert!(!connection.fill().await, "the connection is still open");
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_a_stream_without_chunks() {
    let server = ListeningServer::start().await;
    let mut connection = RawConnection::open(&server).await;
    let thread = connection.thread().await;
    let mut connection = RawConnection::open(&server).await;
    connection
        .send(&run(&thread).replace("HTTP/1.1", "HTTP/1.0"))
        .await;
    let head = connection.read_to("\r\n\r\n").await;
    assert!(!head.contains("chunked"), "{head}");
    while connection.fill().await {}
    let body = String::from_utf8(connection.read).unwrap();
    assert!(body.starts_with("event: metadata\r\n"), "{body}");
}

#[tokio::test]
async fn a_server_that_stops_breaks_streams_and_ends_connections() {
    let server = ListeningServer::start().await;
    let (mut idle, mut watching) = (
        RawConnection::open(&server).await,
        RawConnection::open(&server).await,
    );
    let thread = idle.thread().await;
    watching.send(&get(&format!("{thread}/stream"))).await;
    let head = watching.read_to("\r\n\r\n").await;
    assert!(head.contains("chunked"), "{head}");
    server.stop().await;
    assert!(!idle.fill().await, "the connection is still open");
    while watching.fill().await {}
    let text = String::from_utf8(watching.read).unwrap();
    assert!(
        !text.ends_with("0\r\n\r\n"),
        "the stream ended in order: {text:?}"
    );
}

/// Reads until the server closes the connection.
async fn rest_of(connection: &mut RawConnection) -> String {
    let mut rest = Vec::new();
    // A reset is an end too.
    let _ = connection.stream.read_to_end(&mut rest).await;
    String::from_utf8_lossy(&rest).into_owned()
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_arrive_ends_its_request() {
    let server = ListeningServer::start().await;
    let mut connection = RawConnection::open(&server).await;
    let half = "POST /threads HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{";
    connection.send(half).await;
    let reply = rest_of(&mut connection).await;
    assert!(reply.starts_with("HTTP/1.1 400 "), "{reply}");
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_arrive_ends_its_connection() {
    let server = ListeningServer::start().await;
    let mut connection = RawConnection::open(&server).await;
    connection.send("GET /ok HTTP/1.1\r\nhost: loc").await;
    let reply = rest_of(&mut connection).await;
    assert!(!reply.contains("200 OK"), "{reply}");
    server.stop().await;
}
