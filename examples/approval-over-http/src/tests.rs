//! The service as a client sees it, and through a restart.

use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::Refunds;

/// The program, in a task that dies with this value.
struct Server {
    address: String,
    _running: JoinSet<()>,
}

impl Server {
    async fn start(database: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let refunds = Refunds::open(database).unwrap();
        let mut running = JoinSet::new();
        running.spawn(async move { refunds.serve(listener).await.unwrap() });
        Self {
            address,
            _running: running,
        }
    }

    async fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Json) {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }
}

#[tokio::test]
async fn a_question_survives_a_restart_and_takes_one_answer() {
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("refunds.db");
    let database = database.to_str().unwrap();

    let first = Server::start(database).await;
    assert_eq!(first.ask("GET", "/refunds/order-7", "").await.0, 404);
    let post = first.ask("POST", "/refunds/order-7", r#"{"amount": 120}"#);
    let (status, asked) = post.await;
    assert_eq!(status, 200);
    assert_eq!(asked["open"][0]["question"], "Refund 120 for order-7?");
    drop(first);

    let second = Server::start(database).await;
    assert_eq!(
        second.ask("GET", "/refunds/order-7", "").await,
        (200, asked.clone())
    );
    // A repeated request changes nothing.
    let again = second.ask("POST", "/refunds/order-7", r#"{"amount": 999}"#);
    assert_eq!(again.await, (200, asked.clone()));

    let id = asked["open"][0]["id"].as_str().unwrap();
    let answers = format!("/refunds/order-7/answers/{id}");
    assert_eq!(second.ask("POST", &answers, "\"maybe\"").await.0, 400);
    let (status, answered) = second.ask("POST", &answers, "true").await;
    assert_eq!((status, &answered["open"]), (200, &json!([])));
    let receipt = answered["state"]["receipt"].as_str().unwrap();
    assert!(receipt.starts_with("paid 120 under "), "{receipt}");
    assert_eq!(second.ask("POST", &answers, "false").await.0, 409);
    assert_eq!(
        second.ask("GET", "/refunds/order-7", "").await,
        (200, answered)
    );
}
