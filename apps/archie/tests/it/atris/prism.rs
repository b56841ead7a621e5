//! Atris against a server that we have not written: Prism, which makes an HTTP server of an OpenAPI document and holds every
//! call against it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use archie_atris::catalogue_store::audius;
use free_ports::free_port;
use superstep::Outcome;

use super::lab::Lab;

/// The server; it goes with the test.
struct Prism {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Prism {
    fn start() -> Self {
        let program = installed();
        let folder = tempfile::tempdir().unwrap();
        let document = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../agents/atris/src/audius.json"
        );
        let port = free_port();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let process = Command::new("node")
            .arg(program)
            .args(["mock", "-h", "127.0.0.1", "-p", &port.to_string(), document])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let prism = Self {
            process,
            port,
            _folder: folder,
        };
        let began = Instant::now();
        while !answers(port) {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "Prism does not come up"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        prism
    }
}

/// Whether it answers a call; it listens a moment before it can.
fn answers(port: u16) -> bool {
    let asked = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.write_all(b"GET /v1/tips HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    asked().is_ok_and(|answer| answer.contains(" 200 "))
}

impl Drop for Prism {
    fn drop(&mut self) {
        // It may have ended by itself, which a test has noticed by now.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// From npm, once.
fn installed() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache =
        cache.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"));
    let folder = cache.join("superstep/documents/prism-5.16.0");
    let program = folder.join("node_modules/@stoplight/prism-cli/dist/index.js");
    if !program.exists() {
        let unfinished = folder.with_extension(format!("unfinished-{}", std::process::id()));
        fs::create_dir_all(&unfinished).unwrap();
        let args = [
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--save-exact",
            "@stoplight/prism-cli@5.16.0",
        ];
        let ran = Command::new("npm")
            .args(args)
            .current_dir(&unfinished)
            .output()
            .unwrap();
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        // Somebody else may have been quicker.
        if fs::rename(&unfinished, &folder).is_err() {
            fs::remove_dir_all(&unfinished).unwrap();
        }
    }
    program
}

#[tokio::test]
async fn a_server_made_from_the_document_takes_every_call() {
    let prism = Prism::start();
    let lab = Lab::empty();
    let mut catalogue = audius();
    catalogue.hosts = vec![format!("http://127.0.0.1:{}", prism.port)];
    lab.put(&catalogue).await;
    lab.ask("t", "What are the trending tracks on Audius?")
        .await;
    assert_eq!(
        lab.answer("t").await,
        "Here are the top 1 trending tracks:\n1. \"Example Track\" by Example Artist (1,234 plays)"
    );
    let questions = [
        "trending underground tracks",
        "trending playlists of the month",
        "search for tracks about summer rain",
        "find the artist RAC",
        "search playlists for study",
        "show track D7KyD",
        "show user nlGNe",
        "user with the handle rac",
        "show playlist DOPRl",
        "tracks of playlist DOPRl",
        "tracks of user nlGNe",
        "favorites of user nlGNe",
        "reposts of user nlGNe",
        "followers of user nlGNe",
        "following of user nlGNe",
        "artists related to user nlGNe",
        "supporters of user nlGNe",
        "who favorited track D7KyD",
        "who reposted track D7KyD",
        "comments on track D7KyD",
        "remixes of track D7KyD",
        "newest tips",
        "How many followers does RAC have?",
        "How many plays does the track Example Track have?",
    ];
    let mut calls = std::collections::BTreeSet::new();
    for (at, question) in questions.iter().enumerate() {
        let thread = format!("q{at}");
        assert_eq!(
            lab.ask(&thread, question).await,
            Outcome::Finished,
            "{question}"
        );
        let answer = lab.answer(&thread).await;
        assert!(
            !answer.starts_with("That did not work"),
            "{question}: {answer}"
        );
        calls.insert(
            lab.wrote(&thread, "select_api_node").await["bestApi"]["id"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    eprintln!(
        "{} questions, {} different calls, every one taken",
        questions.len() + 1,
        calls.len() + 1
    );
    assert!(calls.len() >= 20, "{calls:?}");
    // And it does hold calls against the document.
    lab.ask("w", "favorite track D7KyD user_id=nlGNe").await;
    assert_eq!(
        lab.reply("w", serde_json::json!({ "type": "accept" }))
            .await,
        Outcome::Finished
    );
    assert!(
        lab.answer("w").await.contains("success: true"),
        "{}",
        lab.answer("w").await
    );
}
