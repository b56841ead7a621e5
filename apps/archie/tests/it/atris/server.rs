//! A small HTTP server on this machine that writes down every call.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};

/// A call as it came in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Got {
    pub(crate) method: String,
    /// With what stands behind the `?`.
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// What to say.
#[derive(Debug, Clone)]
pub(crate) enum ServerReply {
    Json(u16, Json),
    Redirect(String),
    /// Too busy; come back after this many seconds.
    Later(u64),
    /// Takes the call and hangs up.
    HangUp,
}

type Answers = Arc<dyn Fn(&Got) -> ServerReply + Send + Sync>;

/// The server. It goes when its process does.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) port: u16,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Server {
    pub(crate) fn start(answers: impl Fn(&Got) -> ServerReply + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", answers)
    }

    /// At an address that something remembers.
    pub(crate) fn start_at(
        address: &str,
        answers: impl Fn(&Got) -> ServerReply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let port = listener.local_addr().unwrap().port();
        let got = Arc::new(Mutex::new(Vec::new()));
        let answers: Answers = Arc::new(answers);
        let server = Self {
            port,
            got: got.clone(),
        };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (got, answers) = (got.clone(), answers.clone());
                std::thread::spawn(move || serve(stream, &got, &answers));
            }
        });
        server
    }

    /// `127.0.0.1:1234`
    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.host())
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.got().iter().map(Got::line).collect()
    }

    /// How many calls came that change something.
    pub(crate) fn writes(&self) -> usize {
        self.got().iter().filter(|got| got.method != "GET").count()
    }
}

fn serve(stream: TcpStream, got: &Mutex<Vec<Got>>, answers: &Answers) {
    let mut reader = BufReader::new(stream);
    // Whoever hangs up in the middle has not asked.
    while let Some(request) = read(&mut reader) {
        got.lock().unwrap().push(request.clone());
        let (head, body) = match answers(&request) {
            ServerReply::Json(status, body) => (
                format!("HTTP/1.1 {status} Said\r\ncontent-type: application/json"),
                body.to_string(),
            ),
            ServerReply::Redirect(to) => (
                format!("HTTP/1.1 302 Found\r\nlocation: {to}"),
                String::new(),
            ),
            ServerReply::Later(seconds) => (
                format!("HTTP/1.1 429 Busy\r\nretry-after: {seconds}"),
                String::new(),
            ),
            ServerReply::HangUp => return,
        };
        let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Got> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let length = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Got {
        method,
        path,
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

/// A track as Audius tells it.
pub(crate) fn track(number: usize) -> Json {
    json!({
        "id": format!("D7Ky{number}"), "title": format!("Track {number}"), "play_count": 1_000 * (20 - number) + 234,
        "user": { "id": "nlGNe", "name": format!("Artist {number}"), "handle": format!("artist_{number}") },
        "artwork": { "150x150": "https://example.com/a.jpg" }, "description": "Track description", "genre": "Electronic",
        "mood": "Energizing", "release_date": "2024-03-28", "remix_of": null, "repost_count": 50, "favorite_count": 100,
        "comment_count": 25, "tags": "electronic,dance", "duration": 180, "is_downloadable": true,
        "permalink": format!("/artist_{number}/track-{number}")
    })
}

/// Audius, as far as these tests ask.
pub(crate) fn audius(got: &Got) -> ServerReply {
    let path = got.path.split('?').next().unwrap();
    match (got.method.as_str(), path) {
        (
            "GET",
            "/v1/tracks/trending" | "/v1/tracks/trending/underground" | "/v1/tracks/search",
        ) => {
            let mut tracks: Vec<Json> = (1..=12).map(track).collect();
            tracks[0]["title"] = json!("Example Track");
            tracks[0]["user"]["name"] = json!("Example Artist");
            tracks[0]["play_count"] = json!(1_234);
            ServerReply::Json(200, json!({ "data": tracks }))
        }
        ("GET", "/v1/users/search") => ServerReply::Json(
            200,
            json!({ "data": [
            { "id": "u0", "name": "RACOON", "handle": "racoon" },
            { "id": "u1", "name": "RAC", "handle": "RAC", "follower_count": 1 }
        ] }),
        ),
        ("GET", "/v1/users/u1") => ServerReply::Json(
            200,
            json!({ "data": { "id": "u1", "name": "RAC", "handle": "RAC", "follower_count": 4_321 } }),
        ),
        ("GET", "/v1/tracks/D7KyD") => ServerReply::Json(200, json!({ "data": track(1) })),
        ("POST" | "DELETE", "/v1/tracks/D7KyD/favorites") => {
            ServerReply::Json(200, json!({ "success": true }))
        }
        ("GET", "/v1/tips") => ServerReply::Json(500, json!({ "message": "out of order" })),
        _ => ServerReply::Json(404, json!({ "message": "no such thing" })),
    }
}
