//! A server that speaks Gmail and Calendar.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use archie_email_assistant::google::Google;
use archie_email_assistant::mailbox::{Gmail, Mailbox};
use free_ports::free_port;
use serde_json::{Value as Json, json};
use superstep_conformance::services;

use crate::mail::kit::ACCOUNT;

/// A server of Gmail and Calendar with mails of its own. It ends with the test.
pub(crate) struct Emulated {
    process: Child,
    url: String,
    /// Where a browser comes back to after signing in.
    pub(crate) callback: u16,
    /// How many tokens were given out.
    given: AtomicUsize,
    _folder: tempfile::TempDir,
}

impl Emulated {
    pub(crate) fn with_mails(count: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (port, callback) = (free_port(), free_port());
        let back = format!("http://127.0.0.1:{callback}/callback");
        let messages: Vec<_> = (0..count)
            .map(|at| {
                json!({
                    "id": format!("m{at}"), "thread_id": format!("t{at}"), "user_email": ACCOUNT, "from": "bob@example.com",
                    "to": ACCOUNT, "subject": format!("Question {at}"), "body_text": "When?", "label_ids": ["INBOX", "UNREAD"],
                    "date": "2025-01-04T10:00:00.000Z"
                })
            })
            .collect();
        let scopes = ["https://www.googleapis.com/auth/gmail.modify"];
        let token = json!({ "login": ACCOUNT, "scopes": scopes });
        let tokens: BTreeMap<_, _> = (0..TOKENS)
            .map(|at| (format!("tok-{at}"), &token))
            .collect();
        // YAML is a superset of JSON.
        let seed = json!({
            "tokens": tokens,
            "google": {
                "users": [{ "email": ACCOUNT, "name": "Alice", "email_verified": true }],
                "oauth_clients": [{ "client_id": "archie", "client_secret": "GOCSPX-test", "name": "Archie", "redirect_uris": [back] }],
                "messages": messages,
                "calendars": [{ "id": "primary", "user_email": ACCOUNT, "summary": ACCOUNT, "primary": true, "selected": true, "time_zone": "UTC" }]
            }
        });
        fs::write(folder.path().join("seed.yaml"), seed.to_string()).unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let process = Command::new("node")
            .args(["--import", &services::address("google", "loopback")])
            .arg(services::program("google"))
            .args([
                "start",
                "--service",
                "google",
                "--seed",
                "seed.yaml",
                "--port",
                &port.to_string(),
            ])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "the server does not start"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        Self {
            process,
            url: format!("http://127.0.0.1:{port}"),
            callback,
            given: AtomicUsize::default(),
            _folder: folder,
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What lets somebody in. Another one each time, for the server counts the requests of each and takes so many an hour.
    pub(crate) fn token(&self) -> String {
        let at = self.given.fetch_add(1, Ordering::Relaxed) % TOKENS;
        format!("tok-{at}")
    }

    pub(super) fn gmail(&self) -> Arc<dyn Mailbox> {
        self.gmail_behind(&self.url)
    }

    /// The same mailbox, by way of somebody who stands before the server.
    pub(super) fn gmail_behind(&self, url: &str) -> Arc<dyn Mailbox> {
        let google = Google::with_token(url, &self.token()).unwrap();
        Arc::new(Gmail::new(ACCOUNT, google))
    }

    pub(super) async fn ask(&self, path: &str) -> Json {
        let answer = reqwest::Client::new()
            .get(format!("{}{path}", self.url))
            .bearer_auth(self.token())
            .send()
            .await
            .unwrap();
        answer.json().await.unwrap()
    }

    /// How many mails of a conversation were sent.
    pub(crate) async fn sent_in(&self, thread: &str) -> usize {
        let thread = self
            .ask(&format!("/gmail/v1/users/me/threads/{thread}"))
            .await;
        let messages = thread["messages"].as_array();
        let messages = messages.unwrap_or_else(|| panic!("the server said {thread}"));
        messages
            .iter()
            .filter(|message| {
                message["labelIds"]
                    .as_array()
                    .unwrap()
                    .contains(&json!("SENT"))
            })
            .count()
    }

    pub(super) async fn is_unread(&self, id: &str) -> bool {
        let message = self.ask(&format!("/gmail/v1/users/me/messages/{id}")).await;
        message["labelIds"]
            .as_array()
            .unwrap()
            .contains(&json!("UNREAD"))
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const TOKENS: usize = 50;
