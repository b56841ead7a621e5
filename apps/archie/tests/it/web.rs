//! Pages of the web in an analysis: off by default, read only after approval, and evidence like a note.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value as Json, json};

use crate::kit::Workdir;

/// A site with one page, that counts its visits.
struct Site {
    port: u16,
    visits: Arc<AtomicUsize>,
}

impl Site {
    fn with(page: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let visits = Arc::new(AtomicUsize::new(0));
        let counted = visits.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                // The request is small, so one read has it.
                let read = stream.read(&mut [0; 4096]).unwrap();
                assert!(read > 0, "a visitor without a request");
                counted.fetch_add(1, Ordering::SeqCst);
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
                    page.len()
                );
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { port, visits }
    }

    fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }

    fn call(&self) -> Json {
        let url = format!("http://127.0.0.1:{}/prices", self.port);
        json!({ "at": "initial", "tool_calls": [{ "name": "fetch_page", "args": { "url": url } }] })
    }

    /// A person whose settings let agents read pages of this site.
    fn person(&self, replies: &Json) -> Workdir {
        let workdir = Workdir::scripted(replies);
        fs::create_dir(workdir.path("home")).unwrap();
        let host = format!("127.0.0.1:{}", self.port);
        let settings = json!({ "web": { "allow_hosts": [host] } });
        fs::write(workdir.path("home/settings.json"), settings.to_string()).unwrap();
        workdir
    }
}

const PAGE: &str = "<h1>Prices</h1><p>The queue costs ten euro a month.</p>";
const ANALYZE: &[&str] = &["analyze", "--query", "How much?", "--inputs", "notes"];

fn asks() -> Json {
    json!({ "at": "initial", "text": "It costs ten euro. Is that fine?" })
}

#[test]
fn a_page_is_read_after_approval_and_can_be_cited() {
    let site = Site::with(PAGE);
    let claim = json!({ "claim": "The queue costs ten euro a month.", "file": "fetch_page#1", "line": 1, "quote": "queue costs ten euro a month" });
    let person = site.person(&json!([
        site.call(),
        asks(),
        { "at": "final", "json": { "assumptions": [claim], "components": [], "alternatives": [], "decisions": [], "open_questions": [] } }
    ]));
    let ran = person.run(ANALYZE, "accept\nDONE\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(
        ran.out()
            .contains("May `fetch_page` read a page of 127.0.0.1?"),
        "{ran:?}"
    );
    assert_eq!(site.visits(), 1);
    let result = person.result();
    assert!(result.contains("supported: `fetch_page#1:"), "{result}");
    assert!(result.contains("## Consulted tools"), "{result}");
}

#[test]
fn no_page_is_read_without_approval_or_while_it_is_off() {
    let site = Site::with(PAGE);
    let asked = site.person(&json!([site.call(), asks()]));
    let ran = asked.run(ANALYZE, "");
    assert!(ran.out().contains("May `fetch_page`"), "{ran:?}");
    let refused = site.person(&json!([site.call(), asks()]));
    let ran = refused.run(ANALYZE, "ignore\n");
    assert!(ran.out().contains("Is that fine?"), "{ran:?}");
    let off = Workdir::scripted(&json!([site.call(), asks()]));
    let ran = off.run(ANALYZE, "");
    assert!(!ran.out().contains("May `fetch_page`"), "{ran:?}");
    assert_eq!(site.visits(), 0);
}
