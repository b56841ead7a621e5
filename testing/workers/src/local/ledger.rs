//! The ledger: a process that numbers every report in the order it comes, keeps all of them, and drops none.
//!
//! One line each way: `put WORDS` is answered with its number once it is kept; `read AFTER` with every line above
//! a number, then `.`; `settle` with `.` once nobody but the asker is connected, so that no report of a killed
//! process is still on its way.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufStream};

use crate::AnyError;

/// What the serving side holds.
#[derive(Default)]
struct Book {
    lines: Mutex<Vec<String>>,
    connected: AtomicUsize,
}

/// Listens on loopback until the process ends, and says where on stdout.
pub(crate) fn serve() -> Result<(), AnyError> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    let book = Arc::new(Book::default());
    for stream in listener.incoming() {
        let (stream, book) = (stream?, book.clone());
        book.connected.fetch_add(1, Ordering::SeqCst);
        std::thread::spawn(move || {
            // A killed process resets its connection; what came before counts.
            let _ = book.talk(stream);
            book.connected.fetch_sub(1, Ordering::SeqCst);
        });
    }
    Ok(())
}

impl Book {
    fn talk(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut answers = stream.try_clone()?;
        for line in BufReader::new(stream).lines() {
            let line = line?;
            let (command, words) = line.split_once(' ').unwrap_or((&line, ""));
            let answer = match command {
                "put" => self.put(words),
                "read" => self.read(words.parse().unwrap_or(0)),
                "settle" => self.settle(),
                _ => "?\n".to_owned(),
            };
            answers.write_all(answer.as_bytes())?;
        }
        Ok(())
    }

    fn put(&self, words: &str) -> String {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let number = lines.len() + 1;
        lines.push(format!("{number} {words}\n"));
        format!("{number}\n")
    }

    fn read(&self, after: usize) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.get(after..).unwrap_or(&[]).concat() + ".\n"
    }

    fn settle(&self) -> String {
        while self.connected.load(Ordering::SeqCst) > 1 {
            std::thread::sleep(Duration::from_micros(200));
        }
        ".\n".to_owned()
    }
}

/// A way to the ledger.
pub(crate) struct Ledger {
    stream: tokio::sync::Mutex<BufStream<tokio::net::TcpStream>>,
}

impl Ledger {
    pub(crate) async fn connect(address: &str) -> Result<Self, AnyError> {
        let stream = tokio::net::TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: tokio::sync::Mutex::new(BufStream::new(stream)),
        })
    }

    /// Has a report kept; returns when it is.
    pub(crate) async fn report(&self, report: Report<'_>) -> io::Result<()> {
        let Report {
            thread,
            phase,
            key,
            detail,
        } = report;
        let line = format!(
            "put {thread} {} {phase} {key} {detail}\n",
            std::process::id()
        );
        let mut stream = self.stream.lock().await;
        stream.write_all(line.as_bytes()).await?;
        stream.flush().await?;
        let mut number = String::new();
        stream.read_line(&mut number).await?;
        if number.trim().parse::<u64>().is_err() {
            return Err(io::Error::other("the ledger is gone"));
        }
        Ok(())
    }
}

/// Something that happened, in words without spaces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report<'a> {
    pub(crate) thread: &'a str,
    pub(crate) phase: &'a str,
    pub(crate) key: &'a str,
    pub(crate) detail: u64,
}
