//! A receiver of webhooks that answers as a script says.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value as Json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What the receiver does with a delivery after it has read it.
#[derive(Debug, Clone)]
pub(crate) enum Reaction {
    /// Answers with this status line, and with these headers.
    Answer(String),
    /// Never answers.
    Hang,
    /// Confirms, and breaks the connection in the middle of the answer.
    Lie,
    /// Confirms after a while.
    Slow,
    /// Confirms, and then sends more than anyone wants to read.
    Chatter,
}

impl Reaction {
    pub(crate) fn status(line: &str) -> Self {
        Self::Answer(format!("HTTP/1.1 {line}\r\ncontent-length: 0\r\n\r\n"))
    }

    pub(crate) fn redirect(to: &str) -> Self {
        let head = format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {to}\r\n");
        Self::Answer(format!("{head}content-length: 0\r\n\r\n"))
    }
}

/// A delivery as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }
}

type Script = Arc<Mutex<VecDeque<Reaction>>>;

/// A receiver at an address of this machine. After its script it confirms everything.
pub(crate) struct Receiver {
    address: SocketAddr,
    script: Script,
    received: Arc<Mutex<Vec<Received>>>,
    _serving: JoinSet<()>,
}

impl Receiver {
    pub(crate) async fn start(script: impl IntoIterator<Item = Reaction>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script: Script = Arc::new(Mutex::new(script.into_iter().collect()));
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let mut serving = JoinSet::new();
        let (reactions, log) = (script.clone(), received.clone());
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, reactions.clone(), log.clone()));
            }
        });
        Self {
            address,
            script,
            received,
            _serving: serving,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Adds reactions to the script.
    pub(crate) fn then(&self, script: impl IntoIterator<Item = Reaction>) {
        self.script.lock().unwrap().extend(script);
    }
}

async fn serve(mut stream: TcpStream, script: Script, log: Arc<Mutex<Vec<Received>>>) {
    let Some(received) = read(&mut stream).await else {
        return;
    };
    let reaction = script.lock().unwrap().pop_front();
    log.lock().unwrap().push(received);
    let confirmation = Reaction::status("204 No Content");
    // A client that has gone is what some of these are about.
    let _ = match reaction.unwrap_or(confirmation) {
        Reaction::Answer(answer) => stream.write_all(answer.as_bytes()).await,
        Reaction::Hang => stream.read(&mut [0; 1]).await.map(drop),
        Reaction::Lie => {
            let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf";
            stream.write_all(cut).await
        }
        Reaction::Slow => {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
            stream.write_all(answer).await
        }
        Reaction::Chatter => {
            let begun = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
            while begun.is_ok() && stream.write_all(&[b'x'; 4_096]).await.is_ok() {}
            begun
        }
    };
}

async fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let head = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let path = text.split(' ').nth(1).unwrap().to_owned();
    let headers: BTreeMap<String, String> = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers["content-length"].parse().unwrap();
    let mut body = bytes.split_off(head + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Received {
        path,
        headers,
        body,
    })
}
